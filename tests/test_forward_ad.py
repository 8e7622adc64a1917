"""`tapegrad.autograd.forward_ad` beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import tapegrad as tg
from tapegrad.autograd import forward_ad
from tests.both import check, needs_torch


def inside(call: Any) -> Any:
    """The call inside a dual level, with a dual tensor of x and y."""

    def run(w: Any) -> Any:
        with w.forward_ad.dual_level():
            return call(w, w.forward_ad.make_dual(w.x, w.y))

    return run


def unpacked(w: Any, tensor: Any) -> tuple[Any, ...]:
    return tuple(w.forward_ad.unpack_dual(tensor))


def reverse_over_forward(w: Any, _: Any) -> Any:
    dual = w.forward_ad.make_dual(w.w, w.y)
    tangent = w.forward_ad.unpack_dual(dual * dual).tangent
    return w.autograd.grad(tangent.sum(), w.w)


CASES = {
    "product": inside(lambda w, d: unpacked(w, d * d)),
    "with a constant": inside(lambda w, d: unpacked(w, (w.m @ d).sin())),
    "several results": inside(lambda w, d: unpacked(w, d.sort().values)),
    "reduction": inside(lambda w, d: unpacked(w, d.exp().logsumexp(0))),
    "without tangent": inside(lambda w, d: unpacked(w, w.x * 2)),
    "detached": inside(lambda w, d: unpacked(w, d.detach())),
    "clone": inside(lambda w, d: unpacked(w, d.clone())),
    "view": inside(lambda w, d: unpacked(w, d[1:])),
    "under no_grad": inside(lambda w, d: unpacked(w, w.T.no_grad()(lambda: d * 3)())),
    "requires grad": inside(lambda w, d: unpacked(w, w.forward_ad.make_dual(w.w, w.y) ** 2)),
    "primal": inside(lambda w, d: unpacked(w, w.forward_ad.unpack_dual(d).primal)),
    "tangent": inside(lambda w, d: w.forward_ad.unpack_dual(d).tangent is w.y),
    "reverse over forward": inside(reverse_over_forward),
    "field names": inside(lambda w, d: w.forward_ad.unpack_dual(d)._fields),
    "level": lambda w: (w.forward_ad.enter_dual_level(), w.forward_ad.exit_dual_level()),
    "level by number": lambda w: w.forward_ad.exit_dual_level(level=w.forward_ad.enter_dual_level()),
    "unpack outside": lambda w: unpacked(w, w.x),
    "make outside": lambda w: w.forward_ad.make_dual(w.x, w.y),
    "exit outside": lambda w: w.forward_ad.exit_dual_level(),
    "another shape": inside(lambda w, d: w.forward_ad.make_dual(w.x, w.ones(3))),
    "dual of a dual": inside(lambda w, d: w.forward_ad.make_dual(d, w.y)),
    "nested": inside(lambda w, d: w.forward_ad.enter_dual_level()),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    check(CASES[name])


@pytest.mark.parametrize(("arguments", "name"), [(([1], [1.0]), "primal"), (([1.0], [1]), "tangent")])
def test_integers_have_no_tangent(arguments: Any, name: str) -> None:
    with forward_ad.dual_level(), pytest.raises(ValueError, match=f"Expected {name} to be floating point or complex"):
        forward_ad.make_dual(*map(tg.tensor, arguments))


def test_tangents_end_with_the_level() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tg.ones(2), tg.ones(2))
    assert forward_ad.unpack_dual(dual).tangent is None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(dual * 2).tangent is None
    with pytest.raises(ZeroDivisionError), forward_ad.dual_level():
        1 / 0  # noqa: B018
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(tg.ones(2) * 2).tangent is None

    @forward_ad.dual_level()
    def decorated(x: tg.Tensor) -> Any:
        return forward_ad.unpack_dual(forward_ad.make_dual(x, tg.ones(2)) ** 2).tangent

    assert decorated(tg.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert decorated(tg.tensor([3.0, 2.0])).tolist() == [6.0, 4.0]


def test_a_write_in_place_is_refused() -> None:
    with forward_ad.dual_level():
        y = forward_ad.make_dual(tg.ones(2), tg.ones(2)) * 2
        y *= 3
        with pytest.raises(RuntimeError, match="modified by an inplace operation, which forward mode does not follow"):
            forward_ad.unpack_dual(y)


def test_tangents_do_not_keep_tensors_alive() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(2), tg.ones(2))
        for _ in range(5):
            x = x * 2
        assert len(forward_ad._level()[0]._known) == 1
    with pytest.raises(RuntimeError, match="not the last one that was created"), forward_ad.dual_level():
        forward_ad.exit_dual_level(level=3)

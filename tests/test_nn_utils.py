"""Norms of gradients and parameters as vectors, beside torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


def params(one: Any, dtype: str = "float64") -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for shape in ((3, 2), (4,), ()):
        values = rng.standard_normal(shape).astype(dtype)
        found.append(one.tensor(values, requires_grad=True))
        found[-1].grad = one.tensor(rng.standard_normal(shape).astype(dtype))
    found.append(one.tensor([1.0], requires_grad=True))  # without a gradient
    return found


def grads(several: list[Any]) -> list[Any]:
    return [None if one.grad is None else one.grad.tolist() for one in several]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, 0.5, float("inf"), "inf", 2])
@pytest.mark.parametrize("max_norm", [0.1, 1e3])
def test_clip_grad_norm(norm_type: Any, max_norm: float) -> None:
    ours, theirs = params(tg), params(torch)
    a = tg.nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-12)
    for x, y in zip(grads(ours), grads(theirs), strict=True):
        assert (x is None) == (y is None)
        np.testing.assert_allclose(x or 0, y or 0, rtol=1e-12)
    assert not a.requires_grad
    total = tg.nn.utils.get_total_norm([one.grad for one in ours[:3]], norm_type)
    np.testing.assert_allclose(
        total.item(), torch.nn.utils.get_total_norm([one.grad for one in theirs[:3]], norm_type).item(), rtol=1e-12
    )


def test_clip_grad_norm_of_one_and_of_none() -> None:
    for one in (tg, torch):
        x = params(one)[0]
        assert one.nn.utils.clip_grad_norm_(x, 1.0).shape == ()
        assert one.nn.utils.clip_grad_norm_([], 1.0).item() == 0
        with pytest.warns(UserWarning, match="`parameters` is an empty generator"):
            one.nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    x = params(tg, "float32")[0]
    assert tg.nn.utils.clip_grad_norm_([x], 1.0).dtype == x.grad.dtype == tg.float32


def test_norms_that_are_not_finite() -> None:
    for one in (tg, torch):
        x = one.ones(2, requires_grad=True)
        x.grad = one.tensor([float("inf"), 1.0]).to(x.dtype)
        with pytest.raises(RuntimeError, match=r"The total norm of order 2.0 for gradients from `parameters` is"):
            one.nn.utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)
        assert x.grad.tolist() == [float("inf"), 1.0]


def test_clip_grad_value() -> None:
    ours, theirs = params(tg), params(torch)
    tg.nn.utils.clip_grad_value_(ours, 0.3)
    torch.nn.utils.clip_grad_value_(theirs, 0.3)
    assert grads(ours) == grads(theirs)


def test_vectors() -> None:
    ours, theirs = params(tg), params(torch)
    a, b = tg.nn.utils.parameters_to_vector(ours), torch.nn.utils.parameters_to_vector(theirs)
    assert a.tolist() == b.tolist()
    (a * a).sum().backward()
    (b * b).sum().backward()
    assert ours[1].grad.tolist() == theirs[1].grad.tolist()
    tg.nn.utils.vector_to_parameters(a.detach() * 2, ours)
    torch.nn.utils.vector_to_parameters(b.detach() * 2, theirs)
    assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]
    assert all(one.is_leaf and one.requires_grad for one in ours)
    for one in (tg, torch):
        with pytest.raises(TypeError, match=r"expected torch\.Tensor, but got: list"):
            one.nn.utils.vector_to_parameters([1.0], params(one))

"""Values, dtypes and refusals that are PyTorch's: each was once otherwise."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.public import TOP, names_in

F = tg.nn.functional
BYTES = tg.tensor([1, 200], dtype="uint8")
SHORT = tg.tensor([1, -5], dtype="int32")
BOOLS = tg.tensor([True, False])
REALS = tg.tensor([1.0, 2.0])
COMPLEX = tg.tensor([1 + 2j, 3 - 1j])
SINGLE = tg.tensor([1.5], dtype="float32")


VALUES: dict[str, tuple[Any, list[Any] | float, str]] = {
    "var of complex": (lambda: tg.var(COMPLEX), 6.5, "float64"),
    "cat of integers": (lambda: tg.cat([SINGLE, tg.tensor([1])]), [1.5, 1.0], "float32"),
    "stack of integers": (lambda: tg.stack([SINGLE[0], SHORT[0]]), [1.5, 1.0], "float32"),
    "cat of complex": (lambda: tg.cat([SINGLE, COMPLEX.to("complex64")])[:1], [1.5], "complex64"),
    "clamp of bytes": (lambda: tg.clamp(BYTES, 0, 1), [1, 1], "uint8"),
    "clamp of bytes, wrapped": (lambda: tg.clamp(BYTES, min=-1), [255, 255], "uint8"),
    "clamp of integers": (lambda: tg.clamp(SHORT, 0, 1), [1, 0], "int32"),
    "clamp of integers in place": (lambda: SHORT.clone().clamp_(0, 1), [1, 0], "int32"),
    "clamp to a real": (lambda: tg.clamp(SHORT, 0.5), [1.0, 0.5], "float64"),
    "clamp of bools": (lambda: tg.clamp(BOOLS, 0, 1), [1, 0], "int64"),
    "clip by both": (lambda: np.clip(REALS, 0, REALS - 0.5), [0.5, 1.5], "float64"),
    "or of a scalar": (lambda: SHORT | tg.tensor(1), [1, -5], "int32"),
    "or of a number": (lambda: BYTES | -1, [255, 255], "uint8"),
    "or of bools": (lambda: BOOLS | 1, [1, 1], "int64"),
    "any of bytes": (lambda: tg.any(BYTES), 1, "uint8"),
    "all of bytes": (lambda: tg.all(BYTES, 0), 1, "uint8"),
    "any of integers": (lambda: tg.any(SHORT), True, "bool"),
    "square of bools": (lambda: tg.square(BOOLS), [1, 0], "int64"),
    "conj of bools": (lambda: tg.conj(BOOLS), [True, False], "bool"),
    "sign of bools": (lambda: tg.sgn(BOOLS), [True, False], "bool"),
    "a number that wraps": (lambda: BYTES > -1, [False, False], "bool"),
    "a number that wraps, less": (lambda: BYTES < 300, [True, False], "bool"),
    "a number that wraps, added": (lambda: BYTES + (-1), [0, 199], "uint8"),
    "a number that wraps, int32": (lambda: SHORT < 2**40, [False, True], "bool"),
    "fill with a number that wraps": (lambda: BYTES.clone().fill_(-1), [255, 255], "uint8"),
    "logsumexp of complex": (
        lambda: tg.logsumexp(tg.tensor([2 + 4j, 1 - 2j]), 0).imag, np.log(np.exp(2 + 4j) + np.exp(1 - 2j)).imag,
        "float64",
    ),
    "logaddexp of complex": (
        lambda: tg.logaddexp(COMPLEX, COMPLEX), [1 + np.log(2) + 2j, 3 + np.log(2) - 1j], "complex128"
    ),
    "an index beyond 64 bits": (lambda: REALS[: 2**70], [1.0, 2.0], "float64"),
    "np.maximum with a number": (lambda: np.maximum(SINGLE, 2.0), [2.0], "float32"),
    "np.maximum with a number, first": (lambda: np.maximum(2.0, SINGLE[0]), 2.0, "float32"),
    "np.logical_and with a number": (lambda: np.logical_and(REALS, 0), [False, False], "bool"),
    "np.var of integers": (lambda: np.var(SHORT), 9.0, "float64"),
    "np.argmax of bools": (lambda: np.argmax(BOOLS), 0, "int64"),
    "loss of no items": (
        lambda: F.nll_loss(tg.zeros(0, 3), tg.zeros(0, dtype="int64"), reduction="sum"), 0.0, "float64"
    ),
    "loss of no classes": (
        lambda: F.nll_loss(tg.zeros(0, 3, 2), tg.zeros(0, 2, dtype="int64"), reduction="none"), np.zeros((0, 2)),
        "float64",
    ),
    "cross entropy of no items": (
        lambda: F.cross_entropy(tg.zeros(0, 3, 2), tg.zeros(0, 2, dtype="int64"), reduction="sum"), 0.0, "float64"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str) -> None:
    call, expected, dtype = VALUES[name]
    out = call()
    assert out.dtype == dtype
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-7)


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "clamp beyond the dtype": (
        lambda: tg.clamp(BYTES, max=300), RuntimeError, "value cannot be converted to type uint8 without overflow",
    ),
    "fill beyond the dtype": (
        lambda: BYTES.clone().fill_(300), RuntimeError, "value cannot be converted to type uint8 without overflow",
    ),
    "masked_fill out of range": (
        lambda: BYTES.masked_fill(BYTES > 0, 300), RuntimeError, "value cannot be converted to type uint8 without",
    ),
    "masked_fill_ out of range": (
        lambda: BYTES.clone().masked_fill_(BYTES > 0, -256), RuntimeError, "value cannot be converted to type uint8",
    ),
    "index_fill out of range": (
        lambda: BYTES.index_fill(0, tg.tensor([0]), 300), RuntimeError, "value cannot be converted to type uint8",
    ),
    "where out of range": (
        lambda: tg.where(BYTES > 0, BYTES, 300), RuntimeError, "value cannot be converted to type uint8 without",
    ),
    "full beyond the dtype": (
        lambda: tg.full((2,), 300, dtype="uint8"), RuntimeError, "value cannot be converted to type uint8 without",
    ),
    "clamp of bools": (lambda: tg.clamp(BOOLS, BOOLS), RuntimeError, "clamp not implemented for 'Bool'"),
    "clamp by both": (lambda: tg.clamp(REALS, 0, REALS), TypeError, "clamp() received an invalid combination"),
    "addmm that would grow": (
        lambda: tg.addmm(tg.ones(2), tg.ones(2, 2), tg.ones(2, 1)), RuntimeError,
        "The expanded size of the tensor (1) must match the existing size (2) at non-singleton dimension 1",
    ),
    "var of integers": (lambda: tg.var(SHORT), RuntimeError, "std and var only support floating point and complex"),
    "argmin of bools": (lambda: tg.argmin(BOOLS), RuntimeError, "argmin(): does not support bool input"),
    "softmax of integers": (lambda: tg.softmax(SHORT, 0), RuntimeError, "softmax not implemented for 'Int'"),
    "softmax of bools": (lambda: tg.softmax(BOOLS, 0), RuntimeError, "softmax not implemented for 'Bool'"),
    "log_softmax of complex": (lambda: tg.log_softmax(COMPLEX, 0), RuntimeError, "log_softmax not implemented for"),
    "nll_loss of integers": (
        lambda: F.nll_loss(tg.ones(2, 3).long(), tg.zeros(2).long()), RuntimeError,
        "nll_loss not implemented for 'Long'",
    ),
    "cross_entropy of complex": (
        lambda: F.cross_entropy(tg.ones(2, 3).cdouble(), tg.zeros(2).long()), RuntimeError,
        "cross_entropy not implemented for 'ComplexDouble'",
    ),
    "bool - real": (lambda: BOOLS - REALS, RuntimeError, "Subtraction, the `-` operator, with a bool tensor"),
    "1 - bool": (lambda: 1 - BOOLS, RuntimeError, "Subtraction, the `-` operator, with a bool tensor"),
    "bool - bool": (lambda: BOOLS - BOOLS, RuntimeError, "Subtraction, the `-` operator, with two bool tensors"),
    "-bool": (lambda: -BOOLS, RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
    "abs of bools": (lambda: tg.abs(BOOLS), RuntimeError, "abs not implemented for 'Bool'"),
    "relu of bools": (lambda: tg.relu(BOOLS), RuntimeError, "Boolean inputs not supported for relu"),
    "a slice of letters": (lambda: REALS[slice("a")], TypeError, "slice indices must be integers or None"),
    "an index beyond 64 bits": (lambda: REALS[2**70], IndexError, "is out of bounds for dimension 0 with size 2"),
    "an index of int8": (
        lambda: REALS[SHORT.char()], IndexError, "tensors used as indices must be long, int, byte or bool tensors"
    ),
    "a dim beyond 64 bits": (lambda: REALS.sum(2**64), IndexError, "Dimension out of range (expected to be in range"),
    **{
        f"{name} of a number": (
            lambda name=name: getattr(tg, name)(REALS, 1.0), TypeError,
            f"{name}(): argument 'other' (position 2) must be Tensor, not float",
        )
        for name in ("maximum", "minimum", "atan2", "hypot", "logaddexp", "logical_and", "logical_or")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    call, kind, words = ERRORS[name]
    with pytest.raises(kind, match=re.escape(words)):
        call()


def test_dims_beyond_64_bits_after_small_ones() -> None:
    """The table of plans compares attributes as integers of 64 bits."""
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    for known, wide in ((-1, 2**64 - 1), (0, 2**64), (1, 2**64 + 1), (-1, -(2**64) - 1), (0, 2**63)):
        assert x.sum(known).shape == (2,)
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.sum(wide)
        assert x[known].shape == (2,)
        with pytest.raises(IndexError, match="out of bounds"):
            x[wide]


def test_bound_that_wants_a_gradient() -> None:
    low = tg.tensor(1.5, requires_grad=True)
    tg.clamp(tg.tensor([1, 2]), min=low).sum().backward()
    assert low.grad.item() == 1.0


def test_mask_of_bytes() -> None:
    mask = tg.tensor([0, 1], dtype="uint8")
    with pytest.warns(UserWarning, match="indexing with dtype uint8 is deprecated"):
        assert REALS[mask].tolist() == [2.0]
    assert REALS[np.array([0, 1], dtype=np.uint8)].tolist() == [1.0, 2.0]  # an array is one of indices, as in NumPy


def test_flip_of_a_scalar() -> None:
    x = tg.tensor(2.0, requires_grad=True)
    tg.flip(x, (0,)).backward(tg.ones(()))
    assert x.grad.item() == 1.0


def test_many_dimensions() -> None:
    """NumPy's arrays have up to 64, its broadcast_shapes up to 32."""
    x = tg.ones((1,) * 40 + (3,), requires_grad=True)
    ((x + x.detach()) * 2.0 - x * tg.ones(3)).sum().backward()
    assert x.grad.tolist() == np.ones(x.shape).tolist()
    with pytest.raises(RuntimeError, match=re.escape("The size of tensor a (3) must match the size of tensor b (2)")):
        x + tg.ones((1,) * 40 + (2,))


def test_reshape_to_many_dimensions() -> None:
    """Of more arguments than a key of the table of plans has words."""
    for count in range(1, 30):
        x = tg.ones(1, requires_grad=True)
        for _ in range(2):
            assert x.reshape(*(1,) * count).shape == (1,) * count
        x.reshape(*(1,) * count).sum().backward()
        assert x.grad.tolist() == [1.0]


def test_everything_public_is_listed() -> None:
    assert set(names_in(TOP)) <= set(tg.__all__)
    assert len(set(tg.__all__)) == len(tg.__all__)
    for name in tg.__all__:
        assert hasattr(tg, name)
    space: dict[str, Any] = {}
    exec("from tapegrad import *", space)
    assert {"sin", "imag", "tensor", "no_grad"} <= set(space)


@pytest.mark.parametrize("name", ["all", "any"])
def test_truth_over_no_dimension_is_that_of_each_element(name: str) -> None:
    for none in ((), []):
        assert getattr(tg.tensor([[0.0, 2.0], [3.0, 0.0]]), name)(dim=none).tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("compiled", [False, True])
def test_cross_entropy_of_large_scores_keeps_its_digits(target: int, compiled: bool) -> None:
    def loss(x: Any) -> Any:
        return tg.nn.functional.cross_entropy(x, tg.tensor([target]))

    found = []
    for dtype in ("float32", "float64"):
        x = tg.tensor([[1e4, 1e4 + 1, 1e4 - 3]], dtype=dtype, requires_grad=True)
        value = (tg.compile(loss) if compiled else loss)(x)
        value.backward()
        found.append([value.item(), *x.grad.tolist()[0]])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_second_derivative_of_logcumsumexp_of_small_numbers() -> None:
    """The sum of nothing behind the last element is no number that overflows."""
    x = tg.tensor([-384.0, -100.0], dtype="float32", requires_grad=True)
    (slope,) = tg.autograd.grad(tg.logcumsumexp(x, 0).sum(), x, create_graph=True)
    assert slope.tolist() == pytest.approx([1, 1])
    assert tg.autograd.grad((slope * slope).sum(), x)[0].tolist() == [0, 0]

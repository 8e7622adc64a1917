"""Operands with other strides, in memory that is full of nan besides: values and gradients are the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import tapegrad as tg
from tests.tiers import mostly_full


def _columns(array: np.ndarray, fill: Any) -> np.ndarray:
    return np.full((*array.shape[:-1], 2 * array.shape[-1] + 3), fill, array.dtype)[..., 1:-2:2]


def _part(array: np.ndarray, fill: Any) -> np.ndarray:
    return np.full([length + 2 for length in array.shape], fill, array.dtype)[(slice(1, -1),) * array.ndim]


def _turned(array: np.ndarray, fill: Any) -> np.ndarray:
    return _part(array.T, fill).T


def _backwards(array: np.ndarray, fill: Any) -> np.ndarray:
    return np.full(array.shape, fill, array.dtype)[(slice(None, None, -1),) * array.ndim]


PLACES: Final = {"columns": _columns, "part": _part, "turned": _turned, "backwards": _backwards}


def placed(array: np.ndarray, place: str) -> np.ndarray:
    """Return an equal array in such memory."""
    if not array.ndim:
        return array.copy()
    view = PLACES[place](array, np.nan if array.dtype.kind in "fc" else 1)
    view[...] = array
    return view


def outcome(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a function, and the gradients of a sum of them."""
    tensors = [tg.from_numpy(own) for own in arrays]
    leaves = [own.requires_grad_() for own in tensors if own.dtype.kind == "f"]
    result = function(*tensors)
    results = [own for own in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(own, tg.Tensor)]
    total = sum((own * own).sum() for own in results if own.requires_grad and own.dtype.kind == "f")
    grads = tg.autograd.grad(total, leaves, allow_unused=True) if isinstance(total, tg.Tensor) else []
    return [own.detach().numpy().copy() for own in (*results, *grads) if own is not None]


def check(function: Callable[..., Any], arrays: list[np.ndarray], places: Any = tuple(PLACES)) -> None:
    expected = outcome(function, arrays)
    for place in places:
        for _ in range(3):  # by what serves the first call, by a plan, and by a plan that is known
            rows = [np.full(length, np.nan) for length in range(1, 40, 3)]  # so that new memory has nan
            del rows
            found = outcome(function, [placed(own, place) for own in arrays])
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=place)


@pytest.mark.parametrize("exponent", [2, 3, 4, 0.5, 1.5, -1, -2, 0, 1, -0.5, 3.0])
@pytest.mark.parametrize("shape", [(5,), (3, 2), (6, 4), (2, 3, 4)])
def test_powers(exponent: float, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    check(lambda x: x**exponent, [array])
    check(lambda x: exponent**x if exponent > 0 else x.pow(exponent), [array])


opinfo = pytest.importorskip("tests.opinfo", reason="PyTorch's samples are not installed")
torch = opinfo.torch
LAYOUT_MATTERS: Final = {
    "as_strided",
    "as_strided_copy",
    "view_as_complex",
    "view",
    "view_as",
    "view_copy",
    "empty_like",
    "to",
}
SHARED: Final = [
    op
    for op in opinfo.infos()
    if torch.float64 in op.dtypes and opinfo.ours(op) is not None and op.name not in LAYOUT_MATTERS
]


@pytest.mark.parametrize("op", mostly_full(SHARED, 12), ids=opinfo.title)
def test_samples(op: Any) -> None:
    function = opinfo.ours(op)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        sample = next(iter(op.sample_inputs("cpu", torch.float64, requires_grad=False)))
        if opinfo._is_left_out(op, sample):
            pytest.skip("it draws random numbers")
        arrays: list[np.ndarray] = []

        def taken(value: Any) -> Any:
            """Put tensors into a list, and their numbers in their place."""
            if isinstance(value, torch.Tensor):
                arrays.append(opinfo.array_of(value).copy())
                return len(arrays) - 1
            if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
                return [taken(one) for one in value]
            return opinfo.converted(value, [])

        def given(value: Any, template: Any, tensors: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return tensors[template]
            if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
                return type(value)([given(*pair, tensors) for pair in zip(value, template, strict=True)])
            return template

        args = (sample.input, *sample.args)
        places = [taken(one) for one in args]
        kwargs = {name: (one, taken(one)) for name, one in sample.kwargs.items() if name != "device"}

        def call(*tensors: Any) -> Any:
            own = [given(*pair, tensors) for pair in zip(args, places, strict=True)]
            return function(*own, **{name: given(*pair, tensors) for name, pair in kwargs.items()})

        check(call, arrays, ("columns", "turned"))


def test_strides_of_dimensions_of_length_1_do_not_matter():
    """NumPy makes them 0 where an index adds such a dimension: kernels take those arrays as they are."""
    x = tg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    for key, whole in (((None,), (1, 3, 4)), ((slice(None), None), (3, 1, 4)), ((..., None), (3, 4, 1))):
        view = x[key]
        assert view.is_contiguous()
        y = tg.softmax(view, -1 if whole[-1] > 1 else 1)
        (grad,) = tg.autograd.grad((y * y).sum(), x)
        z = tg.softmax(x, -1 if whole[-1] > 1 else 1)
        assert np.array_equal(y.numpy(force=True), z.reshape(whole).numpy(force=True))
        assert np.array_equal(grad.numpy(), tg.autograd.grad((z * z).sum(), x)[0].numpy())
    stretched = np.lib.stride_tricks.as_strided(np.arange(12.0), (1, 3, 1, 4), (12345, 32, 0, 8))
    for function in (tg.sum, tg.cumsum, tg.amax, lambda t, dim: tg.sort(t, dim)[0], lambda t, dim: t @ t.mT):
        t, plain = tg.from_numpy(stretched).requires_grad_(), tg.tensor(stretched.copy(), requires_grad=True)
        for own in (t, plain):
            function(own, 1).square().sum().backward()
        assert np.array_equal(t.grad.numpy(), plain.grad.numpy())
    assert not x.T[None].is_contiguous()

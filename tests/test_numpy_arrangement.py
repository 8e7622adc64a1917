"""NumPy's functions that arrange, write, accumulate and call, on tensors: NumPy's values, slopes by differences."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests import checks

RNG = np.random.default_rng(0)
X, Y, V, W = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=6), RNG.normal(size=4)
P = np.abs(X) + 0.5
Z = V + 1j * RNG.normal(size=6)
HOLES = np.where(np.abs(X) < 0.3, np.nan, X)
PADDED = np.array([0.0, 0.0, 1.5, -2.0, 0.0, 3.0, 0.0])
ANGLES = np.array([0.5, 3.0, -3.0, -2.0, 2.5, 0.1])
CHOICE = np.array([[0, 1, 2, 0]] * 3)


def _written(write: Callable[..., None]) -> Callable[..., Any]:
    """Return what stands in a copy of the first argument that was written to."""

    def call(x: Any, *values: Any) -> Any:
        target = x * 1.0
        write(target, *values)
        return target

    return call


CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    # arrangements
    "insert": (lambda x: np.insert(x, 1, 5.0), (V,)),
    "insert several": (lambda x, v: np.insert(x, [0, 2, 4], v), (V, W[:3])),
    "insert rows": (lambda x, v: np.insert(x, 1, v, axis=0), (X, W)),
    "insert columns": (lambda x, v: np.insert(x, [1, -1], v, axis=1), (X, W[:2])),
    "insert in all": (lambda x: np.insert(x, 3, [1, 2]), (X,)),
    "choose": (lambda x, y: np.choose(CHOICE, [x, y, 2.0]), (X, Y)),
    "choose rows": (lambda x: np.choose([2, 0, 1, 0], x), (X,)),
    "choose wrap": (lambda x, y: np.choose(CHOICE, (x, y), mode="wrap"), (X, Y)),
    "rollaxis": (lambda x: np.rollaxis(x[None], 2, 1), (X,)),
    "rollaxis to end": (lambda x: np.rollaxis(x[None], 0, 3), (X,)),
    "partition": (lambda x: np.partition(x, 2, axis=1), (X,)),
    "partition all": (lambda x: np.partition(x, 3, axis=None), (X,)),
    "sort_complex": (np.sort_complex, (V,)),
    "sort_complex of complex": (np.sort_complex, (Z,)),
    "apply_along_axis": (lambda x: np.apply_along_axis(lambda r: (r * r).sum() / r.sum(), 0, x), (P,)),
    "apply_along_axis to rows": (lambda x: np.apply_along_axis(lambda r: r[::2] * r[0], 1, x), (X,)),
    "apply_along_axis to matrices": (lambda x: np.apply_along_axis(lambda r: np.outer(r, r), 0, x), (X,)),
    "apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x[None], [0, 2]), (X,)),
    "piecewise": (lambda x: np.piecewise(x, [X < 0, X > 1], [lambda v: v * v, 3.0, lambda v: -v]), (X,)),
    "piecewise two": (lambda x: np.piecewise(x, [X < 0, X >= 0], [lambda v, k: v * k, lambda v, k: v**k], 3), (X,)),
    "piecewise of one": (lambda x: np.piecewise(x, V > 0, [np.sin, np.cos]), (V,)),
    # writes
    "copyto": (_written(np.copyto), (X, W)),
    "copyto where": (_written(lambda t, v: np.copyto(t, v, where=X > 0)), (X, W)),
    "put": (_written(lambda t, v: np.put(t, [0, -1, 5], v)), (X, W[:3])),
    "put a few": (_written(lambda t, v: np.put(t, [1, 2, 3, 4, 5], v)), (X, W[:2])),
    "putmask": (_written(lambda t, v: np.putmask(t, X > 0, v)), (X, W[:3])),
    "place": (_written(lambda t, v: np.place(t, X > 0, v)), (X, W[:3])),
    "put_along_axis": (_written(lambda t, v: np.put_along_axis(t, CHOICE[:, :2] + 1, v[:, :2], 1)), (X, Y)),
    "put_along_axis of rows": (_written(lambda t, v: np.put_along_axis(t, CHOICE[:1], v, 0)), (X, W)),
    "put_along_axis of all": (_written(lambda t, v: np.put_along_axis(t, np.array([3, -1]), v, None)), (X, W[:2])),
    "fill_diagonal": (_written(np.fill_diagonal), (X, W[:3])),
    "fill_diagonal wrap": (_written(lambda t, v: np.fill_diagonal(t, v, wrap=True)), (RNG.normal(size=(5, 2)), W[:2])),
    "fill_diagonal of cubes": (_written(np.fill_diagonal), (RNG.normal(size=(2, 2, 2)), np.array(2.0))),
    # series
    **{f"correlate {mode} {n} {m}": (lambda x, y, mode=mode: np.correlate(x, y, mode), (V[:n], W[:m]))
       for mode in ("valid", "same", "full") for n, m in ((6, 3), (6, 4), (2, 3), (2, 4), (3, 4))},
    "correlate of complex": (lambda x, y: np.correlate(x, y, "full"), (Z, Z[::2])),
    "ediff1d": (np.ediff1d, (X,)),
    "ediff1d ends": (lambda x, v: np.ediff1d(x, to_begin=v[:2], to_end=9.0), (V, W)),
    "unwrap": (np.unwrap, (ANGLES,)),
    "unwrap period": (lambda x: np.unwrap(x * 1.7, period=4.0, axis=0), (ANGLES,)),
    "unwrap discont": (lambda x: np.unwrap(x, 4.0), (ANGLES * 2,)),
    "nancumsum": (lambda x: np.nancumsum(x, axis=1), (HOLES,)),
    "nancumsum all": (np.nancumsum, (HOLES,)),
    "nancumprod": (lambda x: np.nancumprod(x, axis=0), (HOLES,)),
    "nanprod": (np.nanprod, (HOLES,)),
    "nanprod axis": (lambda x: np.nanprod(x, axis=1, keepdims=True), (HOLES,)),
    "logspace": (lambda x, y: np.logspace(x, y, 4), (W[0], W[1])),
    "logspace base": (lambda x: np.logspace(x, 2.0, 3, endpoint=False, base=2.0), (W,)),
    "geomspace": (lambda x, y: np.geomspace(x, y, 5), (P[0], P[1])),
    "geomspace axis": (lambda x: np.geomspace(-x, -3.0, 4, axis=-1), (P[0],)),
    "polyadd": (np.polyadd, (V, W)),
    "polysub": (lambda x: np.polysub([1.0, 2.0], x), (W,)),
    "polymul": (np.polymul, (V, W)),
    "polyder": (np.polyder, (V,)),
    "polyder twice": (lambda x: np.polyder(x, 2), (V,)),
    "polyint": (np.polyint, (W,)),
    "polyint twice": (lambda x, k: np.polyint(x, 2, k), (W, V[:2])),
    "polyint k": (lambda x: np.polyint(x, 2, 3.0), (W,)),
    "poly": (np.poly, (W,)),
    # ufuncs
    "add.reduceat": (lambda x: np.add.reduceat(x, [0, 3, 1, 5]), (V,)),
    "add.reduceat axis": (lambda x: np.add.reduceat(x, [1, 3], axis=1), (X,)),
    "multiply.reduceat": (lambda x: np.multiply.reduceat(x, [0, 2, 2], axis=0), (X,)),
    "maximum.reduceat": (lambda x: np.maximum.reduceat(x, [0, 3]), (V,)),
    "cbrt": (np.cbrt, (X,)),
    "divmod": (lambda x: np.divmod(x, 0.7)[1], (X,)),
    "modf": (lambda x: np.modf(x)[0], (X,)),
    "matvec": (np.matvec, (X, W)),
    "vecmat": (np.vecmat, (W, X.T)),
    "vecmat of complex": (np.vecmat, (Z, np.stack([Z, 1j * Z]).T)),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=([0], [0])), (X, Y)),
    "linalg.trace": (lambda x: np.linalg.trace(x[None], offset=1), (X,)),
    "real_if_close": (lambda z: np.real_if_close(z * np.conj(z)), (Z,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values_and_slopes(name: str) -> None:
    function, arrays = CALLS[name]
    holes = any(np.isnan(own).any() for own in arrays)
    leaves = [tg.tensor(own, requires_grad=True) for own in arrays]
    out, expected = function(*leaves), np.asarray(function(*arrays))
    assert isinstance(out, tg.Tensor)
    assert out.requires_grad
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    if holes:  # missing numbers get the gradient 0, the others that of the same call without them
        filled = [np.where(np.isnan(own), 0.0 if "sum" in name else 1.0, own) for own in arrays]
        out.sum().backward()
        others = [tg.tensor(own, requires_grad=True) for own in filled]
        function(*others).sum().backward()
        for leaf, other, own in zip(leaves, others, arrays, strict=True):
            np.testing.assert_allclose(leaf.grad, np.where(np.isnan(own), 0.0, other.grad))
        return
    problem = checks.Problem(function, arrays, tuple(range(len(arrays))))
    checks.check_gradient(problem)
    checks.check_second(problem)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.histogram(x, 4)[0], lambda x: np.histogram(x, [-1, 0, 1], density=True)[0],
        lambda x: np.histogram_bin_edges(x, 3), lambda x: np.histogram2d(x[0], x[1], 2)[0], np.nanargmax,
        lambda x: np.nanargmin(x, axis=1), lambda x: np.lexsort((x[0], x[1])), np.iscomplex,
        lambda x: np.array_equiv(x, X), np.common_type, lambda x: np.modf(x)[1], lambda x: np.divmod(x, 0.7)[0],
        lambda x: np.packbits(x > 0), lambda x: x[np.ix_([0, 2], [1, 3])],
    ],
)  # fmt: skip
def test_by_values(function: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(np.asarray(function(tg.tensor(X))), np.asarray(function(X)))


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
@pytest.mark.parametrize("array", [PADDED, np.zeros(3), V])
def test_zeros_at_the_ends(trim: str, array: np.ndarray) -> None:
    x = tg.tensor(array, requires_grad=True)
    found = np.trim_zeros(x, trim)
    assert found.tolist() == np.trim_zeros(array, trim).tolist()
    assert np.polymul(x, W).tolist() == pytest.approx(np.polymul(array, W).tolist())
    found.sum().backward()
    assert x.grad is not None
    assert x.grad.sum() == len(found)


def test_integers_are_arguments() -> None:
    places = tg.tensor([[1, 0], [2, 3]])
    assert np.ravel_multi_index((places[0], places[1]), (3, 4)).tolist() == [6, 3]
    assert [own.tolist() for own in np.unravel_index(places[1], (3, 4))] == [[0, 0], [2, 3]]
    assert np.insert(tg.tensor([1, 2]), tg.tensor([1]), 2.7).tolist() == [1, 2, 2]
    assert np.piecewise(tg.tensor(0.5), [True], [lambda v: v * 2]).tolist() == 1.0


def test_writes_to_arrays() -> None:
    array = X.copy()
    np.copyto(array, tg.tensor(Y))
    np.testing.assert_array_equal(array, Y)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.copyto(array, tg.tensor(X, requires_grad=True))
    with pytest.raises(TypeError, match=r"Cannot cast array data from .* according to the rule 'same_kind'"):
        np.copyto(tg.tensor([1, 2]), tg.tensor([1.5, 2.5]))


def test_files() -> None:
    file = io.BytesIO()
    np.save(file, tg.tensor(X))
    file.seek(0)
    np.testing.assert_array_equal(np.load(file), X)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.savez(io.BytesIO(), x=tg.tensor(X, requires_grad=True))


def test_nothing_is_put_or_taken() -> None:
    x = tg.tensor(X)
    np.put(x, [], 1.0)
    np.put(x, [0, 1], [])
    np.put(tg.zeros(0), [], 1.0)
    np.testing.assert_array_equal(x, X)
    assert np.take(x, []).shape == (0,)
    number = tg.tensor(3.0)
    np.put(number, [0], 1.0)
    assert number == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: np.put(x, [0, -40], 1.0), IndexError, "index -40 is out of bounds for axis 0 with size"),
        (lambda x: np.put_along_axis(x, np.array([70]), 1.0, None), IndexError, "index 70 is out of bounds for axis 0"),
        (lambda x: np.choose([0], [x[0, :1]], np.zeros(1)), TypeError, "np.choose .* with out="),
        (lambda x: np.trim_zeros(x), TypeError, "np.trim_zeros does not work on tensors of several dimensions"),
        (lambda x: np.put(x, [0], 1.0, mode="new"), ValueError, "clipmode must be one of"),
        (lambda x: np.nanprod(x, where=X > 0), TypeError, "np.nanprod does not work on tensors with"),
        (lambda x: np.insert(x, 20, 1.0), IndexError, "index 20 is out of bounds"),
        (lambda x: np.choose([3], [x[0, :1]]), ValueError, "invalid entry in choice array"),
        (lambda x: np.piecewise(x, [X > 0], [1, 2, 3]), ValueError, "functions are expected"),
        (lambda x: np.geomspace(x, 0.0), ValueError, "Geometric sequence cannot include zero"),
        (lambda x: np.add.reduceat(x, [5]), IndexError, "out-of-bounds"),
        (lambda x: np.polyder(x[0], -1), ValueError, "Order of derivative must be positive"),
        (lambda x: np.polyint(x[0], -1), ValueError, "Order of integral must be positive"),
        (lambda x: np.fill_diagonal(x[0], 1.0), ValueError, "array must be at least 2-d"),
        (lambda x: np.fill_diagonal(x[None], 1.0), ValueError, "All dimensions of input must be of equal length"),
        (lambda x: np.apply_along_axis(np.sum, 0, x[:, :0]), ValueError, "Cannot apply_along_axis when any iteration"),
        (lambda x: np.apply_over_axes(lambda y, axis: y.sum(), x, [0]), ValueError, "is not returning an array"),
        (lambda x: np.rollaxis(x, 2), IndexError, "Dimension out of range"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(tg.tensor(X))


IN_COLUMNS = {
    "reshape": lambda x: x.reshape(6, 4, order="F"),
    "reshape to a tuple": lambda x: x.reshape((6, -1), order="F"),
    "reshape to a line": lambda x: x.reshape(-1, order="F"),
    "reshape in rows": lambda x: x.reshape((3, 8), order="C"),
    "ravel": lambda x: x.ravel("F"),
    "flatten": lambda x: x.flatten("F"),
    "flatten by keyword": lambda x: x.flatten(order="F"),
    "np.reshape": lambda x: np.reshape(x, (4, 6), order="F"),
}


@pytest.mark.parametrize("call", IN_COLUMNS.values(), ids=IN_COLUMNS)
def test_order_of_methods(call):
    """NumPy's order of elements, as NumPy's methods take it; compiled too."""
    array = np.arange(24.0).reshape(2, 3, 4)
    weights = np.random.default_rng(0).normal(size=call(array).shape)
    expected = np.empty(24)
    expected[call(np.arange(24).reshape(2, 3, 4)).ravel()] = weights.ravel()
    for function in (call, tg.compile(call)):
        x = tg.tensor(array, requires_grad=True)
        y = function(x)
        np.testing.assert_array_equal(y.detach(), call(array))
        (y * weights).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy().ravel(), expected)


def test_order_that_there_is_not():
    for call in (lambda x: x.reshape(4, order="A"), lambda x: x.ravel("K"), lambda x: x.flatten("x")):
        with pytest.raises(ValueError, match="order must be 'C' or 'F'"):
            call(tg.ones(2, 2))

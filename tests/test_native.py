"""Machine code of operations of matrices: products, triangles in loops and by BLAS, other factors by LAPACK."""

from __future__ import annotations

import _ctypes
import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.kernels import blas
from tapegrad.program.native import Native, native, triangular
from tapegrad.program.native import code as code_file
from tapegrad.program.stopping import DONE, STOPPED
from tapegrad.program.trace import trace
from tests.tiers import mostly_full

RNG = np.random.default_rng(3)
linalg = tg.linalg


def code_of(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[Native, list[np.ndarray]]:
    """Return the code of a function that is one operation, and its results in an ordinary call."""

    def results(*tensors: Any) -> list[Any]:
        found = function(*tensors)
        return list(found) if isinstance(found, tuple) else [found]

    program, _ = trace(results, list(arrays), [False] * len(arrays))
    code = native(program)
    assert code is not None
    return code, [own.numpy() for own in results(*map(tg.tensor, arrays))]


def call(code: Native, arrays: Any, results: list[np.ndarray]) -> tuple[int, list[np.ndarray]]:
    """Call machine code, and return its status and what it has written; memory behind its results stays as it is."""
    rooms = [np.full(own.size + 16, 7, own.dtype) for own in results]
    scratch = np.empty(code.scratch_bytes + 64, np.uint8)
    tables = [(ctypes.c_void_p * max(len(own), 1))(*[each.ctypes.data for each in own]) for own in (arrays, rooms)]
    aligned = -(-scratch.ctypes.data // 64) * 64
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)(code.address())
    status = function(*map(ctypes.addressof, tables), aligned, 0, 0)
    assert all((room[own.size :] == 7).all() for room, own in zip(rooms, results, strict=True))
    found = [room[: own.size].reshape(own.shape) for room, own in zip(rooms, results, strict=True)]
    return status if code.may_fail else DONE, found


def assert_right(function: Callable[..., Any], *arrays: np.ndarray) -> Native:
    code, expected = code_of(function, *arrays)
    status, found = call(code, arrays, expected)
    assert status == DONE
    for own, right in zip(found, expected, strict=True):
        close = 1e-10 if own.dtype == np.float64 else 1e-4
        largest = np.abs(right[np.isfinite(right)]).max(initial=1)
        np.testing.assert_allclose(own, right, rtol=close, atol=close * largest)
    return code


SIZES = [
    (1, 1, 1), (1, 5, 1), (1, 40, 1), (3, 4, 5), (7, 9, 17), (1, 32, 128), (1, 128, 32), (32, 1, 128), (13, 33, 31),
    (50, 50, 50), (6, 100, 8), (64, 64, 64), (70, 65, 66), (5, 0, 3), (0, 3, 2), (128, 17, 1), (2, 300, 2), (9, 2, 40),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sizes", SIZES)
def test_products(sizes: tuple[int, int, int], turned: tuple[bool, bool], dtype: type, monkeypatch: Any) -> None:
    """Products of whole and transposed matrices are right, in loops and by BLAS."""
    n, k, m = sizes
    a = RNG.normal(size=(k, n) if turned[0] else (n, k)).astype(dtype)
    b = RNG.normal(size=(m, k) if turned[1] else (k, m)).astype(dtype)

    def product(x: Any, y: Any) -> Any:
        return (x.mT if turned[0] else x) @ (y.mT if turned[1] else y)

    for least in (1 << 40, 0):
        monkeypatch.setattr(code_file, "BLAS", least)
        code = assert_right(product, a, b)
        assert not k or bool(code.imports) == (least == 0 and min(n, m) > 1)


@pytest.mark.parametrize(
    "shapes",
    [
        ((5,), (5,)), ((5,), (5, 4)), ((4, 5), (5,)), ((2, 3, 4, 5), (5, 6)), ((2, 3, 4, 5), (3, 5, 6)),
        ((2, 4, 5), (5,)), ((3, 1, 4, 5), (2, 5, 3)),
        ((2, 1, 5), (5, 9)), ((5,), (3, 5, 4)), ((0, 4, 5), (5, 3)), ((2, 0, 5), (2, 5, 3)),
    ],
)  # fmt: skip
def test_batches_and_sums(shapes: Any) -> None:
    """Batches are loops around a product, and a sum begins with what is added to it."""
    a, b = (RNG.normal(size=shape) for shape in shapes)
    assert_right(lambda x, y: x @ y, a, b)
    assert_right(lambda x, y, z: z + x @ y, a, b, RNG.normal(size=(a @ b).shape))


def test_slices_are_no_copies() -> None:
    """Operands may be parts of arrays, with any strides."""
    a, b = RNG.normal(size=(30, 41)), RNG.normal(size=(3, 60, 20))
    assert_right(lambda x, y: x[4:28:2, 1:21] @ y[1, ::3, ::2], a, b)
    assert_right(lambda x, y: x[3, 1:21] @ y[2, :20], a, b)
    assert_right(lambda x, y: y[1] @ y[2].mT, a, b)
    code, _ = code_of(lambda x, y: x[:20, :12] @ y[1, 3:15], a, b)
    assert code.scratch_bytes == 0


def test_nan_and_infinity_are_products() -> None:
    """Nothing is left out of a sum."""
    a, b = RNG.normal(size=(9, 20)), RNG.normal(size=(20, 11))
    a[2, 3], b[3, 4], b[19, 10] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        assert_right(lambda x, y: x @ y, a, b)
        assert_right(lambda x, y: x @ y, np.zeros((3, 20)), b)


def definite(*shape: int) -> np.ndarray:
    x = RNG.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


OF_SQUARES: dict[str, tuple[Callable[[Any], Any], Callable[..., np.ndarray]]] = {
    "cholesky": (lambda x: linalg.cholesky(x), definite),
    "cholesky_upper": (lambda x: linalg.cholesky(x, upper=True), definite),
    "inv": (lambda x: linalg.inv(x), normal),
    "inv_of_transpose": (lambda x: linalg.inv(x.mT), normal),
    "det": (lambda x: linalg.det(x), normal),
    "slogdet": (lambda x: tuple(linalg.slogdet(x)), normal),
    "qr": (lambda x: tuple(linalg.qr(x)), normal),
    "qr_of_tall": (lambda x: tuple(linalg.qr(x[..., : x.shape[-1] // 2 + 1])), normal),
    "qr_of_wide": (lambda x: tuple(linalg.qr(x[..., : x.shape[-1] // 2 + 1, :])), normal),
    "qr_complete": (lambda x: tuple(linalg.qr(x[..., : x.shape[-1] // 2 + 1], mode="complete")), normal),
    "eigh": (lambda x: tuple(linalg.eigh(x)), definite),
    "eigh_upper": (lambda x: tuple(linalg.eigh(x, UPLO="U")), normal),
    "svd": (lambda x: tuple(linalg.svd(x[..., : x.shape[-1] // 2 + 1])), normal),
    "svd_reduced": (lambda x: tuple(linalg.svd(x[..., : x.shape[-1] // 2 + 1, :], full_matrices=False)), normal),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (9, 9), (50, 50), (2, 3, 12, 12)])
@pytest.mark.parametrize("name", OF_SQUARES)
def test_factors(name: str, shape: tuple[int, ...], dtype: type) -> None:
    """Factors are NumPy's, with the same signs."""
    function, make = OF_SQUARES[name]
    assert_right(function, make(*shape).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [0, 1, 4])
@pytest.mark.parametrize("shape", [(1, 1), (20, 20), (2, 3, 12, 12)])
def test_solutions(shape: tuple[int, ...], columns: int, dtype: type) -> None:
    """Solutions of linear systems are right; 0 columns: a vector."""
    a, b = normal(*shape).astype(dtype), normal(*shape[:-1], *([columns] if columns else [])).astype(dtype)
    assert_right(linalg.solve, a + 4 * np.eye(shape[-1], dtype=dtype), b)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(upper: bool, left: bool, unitriangular: bool, columns: int, turned: bool) -> None:
    """Only one triangle is read, of a whole or a transposed matrix, whatever stands in the other one."""

    def solution(a: Any, b: Any) -> Any:
        a = a.mT if turned else a
        return linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)

    for batch, dtype in (((), np.float64), ((2, 3), np.float64), ((), np.float32)):
        a, b = normal(*batch, 11, 11) / 11 + np.eye(11), normal(*batch, *((11, columns) if left else (columns, 11)))
        assert_right(solution, a.astype(dtype), b.astype(dtype))


@pytest.mark.parametrize("rows", [0, 256])  # up to which loops are used
@pytest.mark.parametrize("n", mostly_full([2, 4, 5, 31, 64, 75], 3))
def test_triangles_of_any_size(n: int, rows: int, monkeypatch: Any) -> None:
    """Tiles of rows and columns end where they do; what is in the other triangle does not matter."""
    monkeypatch.setattr(triangular, "_LOOPS", rows)
    for upper, dtype in ((False, np.float64), (True, np.float64), (True, np.float32)):
        a, b = (normal(n, n) / n + np.eye(n)).astype(dtype), normal(n, 41).astype(dtype)
        assert_right(functools.partial(linalg.solve_triangular, upper=upper), a, b)
        assert_right(functools.partial(linalg.solve_triangular, upper=upper, left=False), a, b.T.copy())
        x = definite(n, n).astype(dtype)
        x[np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)] = np.nan
        code = assert_right(functools.partial(linalg.cholesky, upper=upper), x)
        assert ("in loops" in code.explain()[0]) == (rows > 0)


@pytest.mark.parametrize(
    ("function", "bad", "status"),
    [
        (linalg.inv, np.zeros((9, 9)), STOPPED),
        (linalg.inv, np.ones((9, 9)), STOPPED),
        (linalg.cholesky, -np.eye(9), STOPPED),
        (linalg.det, np.ones((9, 9)), DONE),
        (linalg.inv, np.full((9, 9), np.nan), DONE),
    ],
)
def test_refusals_stop(function: Callable[[Any], Any], bad: np.ndarray, status: int) -> None:
    """Where LAPACK refuses a matrix, the code says so, of any matrix of a batch."""
    good = definite(9, 9)
    for matrix, example in ((bad, good), (np.stack([good, bad, good]), np.stack([good] * 3))):
        code, expected = code_of(function, example)
        assert call(code, [matrix], expected)[0] == status


def test_errors_are_those_of_ordinary_calls() -> None:
    """A compiled function raises what LAPACK's refusal raises, and goes on with the next matrix."""
    f = tg.compile(func.grad_and_value(lambda x: linalg.slogdet(linalg.cholesky(tg.exp(x))).logabsdet))
    x = np.log(np.full((12, 12), 0.5) + 4.0 * np.eye(12))
    first = f(x)
    with pytest.raises(tg.linalg.LinAlgError, match="not positive-definite"):
        f(np.zeros((12, 12)))
    np.testing.assert_array_equal(f(x)[0], first[0])
    assert "the Cholesky factor of 12 x 12 in loops" in f.explain()


@pytest.mark.parametrize("routine", ["gemm", "trsm", "potrf", "getrf", "getrs", "getri", "geqrf", "syevd", "gesdd"])
def test_routines_of_scipy_where_numpy_hides_its_own(routine: str, monkeypatch: Any) -> None:
    own = blas.blas_address(routine, "float64")
    monkeypatch.setattr(blas, "numpy_core", lambda: _ctypes)
    assert blas.blas_address.__wrapped__(routine, "float64") not in (0, own)

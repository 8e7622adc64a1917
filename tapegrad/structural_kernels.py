"""Kernels that are no elementwise loops, and the steps that call them: parts, scattering, extrema, matrix products."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.cache import address_of
from tapegrad.intrinsics import as_pointer, call_void, get, load, load_at, store, store_at
from tapegrad.kernels import coalesce, identity_step, product_of_two
from tapegrad.layout import contiguous_strides
from tapegrad.plan import ARRAY, CT, Source, Step

if TYPE_CHECKING:
    from tapegrad.plan import Plan


@cache
def _address(name: str, make: Callable[..., Callable[..., int]], *dtype: str) -> int:
    return address_of("-".join((name, *dtype)), make(*dtype))


def gather_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray], operand: int = 0) -> Step:
    """Return the step of an operand that became a part of the result: its cotangent is the same part of that.

    Parameters
    ----------
    plan : Plan
    view : callable
        From an array of the result's shape to the part.
    operand : int
    """
    own, result = plan.layouts[operand], plan.result
    whole = np.empty(result.shape, result.dtype)
    part = view(whole)
    offset = part.ctypes.data - whole.ctypes.data if part.size else 0
    return identity_step(own.shape, ((CT, offset), result.dtype.name, part.strides), own)


# Scattering ------------------------------------------------------------------------------------------------------


def _scatter_kernel(dtype: str) -> Callable[..., int]:
    size = np.dtype(dtype).itemsize

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source = load(table, 0)
        outer, chosen, inner, arrays = load(block, 1), load(block, 2), load(block, 3), load(block, 4)
        target, step = load(table, arrays + 1), load(block, 5)
        for i in range(outer):
            for j in range(chosen):
                offset = i * step
                for k in range(arrays):
                    index = load_at(load(table, k + 1), 8 * j, "int64")
                    length = load(block, 6 + 2 * k)
                    offset += (index + length if index < 0 else index) * load(block, 7 + 2 * k)
                own, other = as_pointer(target + offset, dtype), as_pointer(source, dtype)
                for k in range(inner):
                    store(own, k, load(own, k) + load(other, k))
                source += inner * size
        return 0

    return kernel


def scatter_step(plan: Plan) -> Step | None:
    """Return the step that adds the cotangent where index arrays say.

    The arrays are of one shape and the other dimensions taken whole. None if the arrays do not stand together.
    """
    own, key = plan.layouts[0], plan.attrs["key"]
    full = [(None, None, None)] * (own.ndim - sum(item is not Ellipsis for item in key))
    at = key.index(Ellipsis) if Ellipsis in key else len(key)
    spread = [*key[:at], *full, *key[at + 1 :]]
    first, arrays = spread.index("array"), spread.count("array")
    if spread[first : first + arrays] != ["array"] * arrays:
        return None
    strides = contiguous_strides(own.shape, own.dtype.itemsize)
    lengths = own.shape[first : first + arrays]
    outer = int(np.prod(own.shape[:first], dtype=np.int64))
    inner = int(np.prod(own.shape[first + arrays :], dtype=np.int64))
    chosen = plan.result.size // (outer * inner) if outer * inner else 0
    step = int(np.prod(lengths, dtype=np.int64)) * inner * own.dtype.itemsize
    dims = [0, outer, chosen, inner, arrays, step]
    for length, stride in zip(lengths, strides[first:], strict=False):
        dims += [length, stride]
    sources = [(CT, 0), *((ARRAY, plan.position(f"extra{number}")) for number in range(arrays))]
    name = own.dtype.name
    return Step(
        partial(_address, "scatter", _scatter_kernel, name),
        np.array(dims, dtype=np.int64),
        sources,
        partial=True,
    )


# Extrema ---------------------------------------------------------------------------------------------------------


def _extremum_kernel(dtype: str) -> Callable[..., int]:
    size, kind = np.dtype(dtype).itemsize, np.dtype(dtype).type

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        ct, out = as_pointer(load(table, 0), dtype), as_pointer(load(table, 2), dtype)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        step = inner * size
        for i in range(outer):
            for j in range(inner):
                first = (i * n * inner + j) * size
                x, target = load(table, 1) + first, load(table, 3) + first
                largest = load(out, i * inner + j)
                ties = 0
                for k in range(n):
                    value = load_at(x, k * step, dtype)
                    ties += 1 if value == largest or value != value else 0
                share = load(ct, i * inner + j) / kind(ties)
                for k in range(n):
                    value = load_at(x, k * step, dtype)
                    part = share if value == largest or value != value else kind(0)
                    before = load_at(target, k * step, dtype) if accumulate else kind(0)
                    store_at(target, k * step, before + part, dtype)
        return 0

    return kernel


def extremum_step(plan: Plan, dim: tuple[int, ...]) -> Step | None:
    """Return the step that shares the cotangent among the elements that are the extremum.

    The reduced dimensions follow each other and the operand is contiguous; otherwise None.
    """
    own = plan.layouts[0]
    if not own.contiguous or (dim and dim != tuple(range(dim[0], dim[-1] + 1))):
        return None
    first, last = (dim[0], dim[-1] + 1) if dim else (own.ndim, own.ndim)
    parts = own.shape[:first], own.shape[first:last], own.shape[last:]
    dims = [0, *(int(np.prod(part, dtype=np.int64)) for part in parts)]
    name = own.dtype.name
    return Step(
        partial(_address, "extremum", _extremum_kernel, name),
        np.array(dims, dtype=np.int64),
        [(CT, 0), plan.source("x"), plan.source("out")],
    )


# Matrix products -------------------------------------------------------------------------------------------------

_GEMM_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Words of the block that a call of gemm finds its arguments in: BLAS takes addresses of everything.
_GEMM, _TRANS_A, _TRANS_B, _M, _N, _K, _LDA, _LDB, _LDC, _ONE, _ZERO = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
_GEMM_WORDS: Final = 13


def _gemm_kernel() -> Callable[..., int]:
    def kernel(args: int, dims: int, accumulate: int) -> int:
        p = get(dims, 1)
        # C = A B in rows is C^T = B^T A^T in columns, so the factors change places.
        call_void(
            get(p, _GEMM), p + 8 * _TRANS_A, p + 8 * _TRANS_B, p + 8 * _M, p + 8 * _N, p + 8 * _K,
            p + 8 * _ONE, get(args, 1), p + 8 * _LDA, get(args, 0), p + 8 * _LDB,
            p + 8 * _ONE if accumulate else p + 8 * _ZERO, get(args, 2), p + 8 * _LDC,
        )  # fmt: skip
        return 0

    return kernel


@cache
def _gemm_address(letter: str) -> int:
    """Return where gemm is of the BLAS that NumPy is linked with; where NumPy hides it, SciPy's.

    That of NumPy multiplies in the forward. Threads of another BLAS would look for work in a loop while these compute,
    and the other way round: with two on two cores, a product takes four times as long. Both widths of integers read
    the words of a block, as they are below 2^31.
    """
    module: Any = importlib.import_module("numpy._core._multiarray_umath")
    library = ctypes.CDLL(module.__file__)  # what it depends on is searched too
    for name in (f"scipy_{letter}gemm_64_", f"{letter}gemm_64_", f"scipy_{letter}gemm_", f"{letter}gemm_"):
        if hasattr(library, name):
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            assert found is not None
            return found
    capsule = importlib.import_module("scipy.linalg.cython_blas").__pyx_capi__[f"{letter}gemm"]
    capsule_name = ctypes.pythonapi.PyCapsule_GetName
    capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = pointer(capsule, capsule_name(capsule))
    return address


def product_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of a factor of a matrix product; None for strides that BLAS cannot take.

    With Z = X Y, the cotangents are X' = Z' Y^H and Y' = X^H Z'. A batch is a loop, unless one longer product will do.
    """
    own, other = plan.layouts[operand], plan.layouts[1 - operand]
    names = plan.row.operands
    x_ndim, y_ndim = (layout.ndim for layout in plan.layouts)

    def matrix(shape: Sequence[int], strides: Sequence[int], number: int) -> np.ndarray:
        array = _shaped(shape, strides, own.dtype)
        return array if array.ndim > 1 else array[None, :] if number == 0 else array[:, None]

    ct = _shaped(plan.result.shape, contiguous_strides(plan.result.shape, own.dtype.itemsize), own.dtype)
    ct = ct[..., None, :] if x_ndim == 1 and y_ndim > 1 else ct[None] if x_ndim == 1 else ct
    ct = ct[..., None] if y_ndim == 1 else ct
    residual = matrix(other.shape, other.strides, 1 - operand).swapaxes(-1, -2)
    target = matrix(own.shape, contiguous_strides(own.shape, own.dtype.itemsize), operand)
    sources = [(CT, 0), plan.source(names[1 - operand])]
    factors = [ct, residual]
    if operand == 1:
        sources.reverse()
        factors.reverse()
    batch = ct.shape[:-2]
    if factors[0].shape[-1] == 1 and own.dtype.kind == "f" and target.shape[:-2] == batch:
        # A product of a column and a row, as in the derivative of dot, needs no BLAS.
        strides = [np.broadcast_to(factor, target.shape).strides for factor in factors]
        both = [(source, own.dtype.name, step) for source, step in zip(sources, strides, strict=True)]
        return product_of_two(target.shape, both, (own.dtype.name, target.strides))
    a, b, c = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (*factors, target))
    return _gemm_step(a, b, c, sources, operand)


def _shaped(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array that is never read, for what NumPy knows of shapes and strides."""
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), tuple(shape), tuple(strides))


def _gemm_step(a: np.ndarray, b: np.ndarray, c: np.ndarray, sources: list[Source], residual: int) -> Step | None:
    """Return the step of c = a b, batched, where the factor that is the residual is to be conjugated."""
    size = c.dtype.itemsize
    p, q, r = a.shape[-2], a.shape[-1], b.shape[-1]
    (a_p, a_q), (b_q, b_r), (c_p, _) = (array.strides[-2:] for array in (a, b, c))
    lengths, steps = coalesce(c.shape[:-2], [array.strides[:-2] for array in (a, b, c)])
    while lengths:
        length, (s_a, s_b, s_c) = lengths[-1], (own[-1] for own in steps)
        if length == 1:
            pass
        elif s_b == 0 and s_c != 0 and (p == 1 or (s_a == p * a_p and s_c == p * c_p)):
            p, a_p, c_p = p * length, (s_a if p == 1 else a_p), (s_c if p == 1 else c_p)
        elif s_c == 0 and (q == 1 or (s_a == q * a_q and s_b == q * b_q)):
            q, a_q, b_q = q * length, (s_a if q == 1 else a_q), (s_b if q == 1 else b_q)
        else:
            break
        lengths.pop()
        for own in steps:
            own.pop()
    if any(step % size for step in (a_p, a_q, b_q, b_r)):
        return None
    a_p, a_q, b_q, b_r, c_p = (step // size for step in (a_p, a_q, b_q, b_r, c_p))
    conjugate = "C" if c.dtype.kind == "c" else "T"
    first = _orientation(r, q, b_r, b_q, conjugate if residual == 0 else "T", c.dtype.kind == "c" and residual == 0)
    second = _orientation(q, p, a_q, a_p, conjugate if residual == 1 else "T", c.dtype.kind == "c" and residual == 1)
    if first is None or second is None or max(p, q, r, first[1], second[1]) >= 1 << 31:
        return None
    block = np.zeros(_GEMM_WORDS, dtype=np.int64)
    block[_GEMM] = _gemm_address(_GEMM_LETTERS[c.dtype.name])
    block[_TRANS_A], block[_TRANS_B] = ord(first[0]), ord(second[0])
    block[_M], block[_N], block[_K] = r, p, q
    block[_LDA], block[_LDB], block[_LDC] = first[1], second[1], c_p if p > 1 else max(r, 1)
    block[_ONE : _ONE + 2].view(np.uint8)[:size] = np.ones(1, c.dtype).view(np.uint8)
    dims = [len(lengths), block.ctypes.data, 0, 0, 0, *lengths]
    for place in range(len(lengths)):
        dims.extend(own[place] for own in steps)
    shared = any(step == 0 for step in steps[2]) and bool(lengths)
    return Step(
        partial(_address, "gemm", _gemm_kernel),
        np.array(dims, dtype=np.int64),
        sources,
        partial=shared,
        keep=(block,),
    )


def _orientation(
    rows: int, columns: int, row_step: int, column_step: int, flag: str, only_flagged: bool
) -> tuple[str, int] | None:
    """Return how BLAS is to read a matrix in columns: the flag and the leading dimension.

    >>> (
    ...     _orientation(2, 3, 1, 2, "T", False),
    ...     _orientation(2, 3, 3, 1, "T", False),
    ...     _orientation(2, 3, 6, 2, "T", False),
    ... )
    (('N', 2), ('T', 3), None)
    """
    for name, m, n, inner, leading in (
        ("N", rows, columns, row_step, column_step),
        (flag, columns, rows, column_step, row_step),
    ):
        if name == "N" and only_flagged:
            continue
        if m <= 1 or inner == 1:
            if n <= 1:
                return name, max(m, 1)
            if leading >= max(m, 1):
                return name, leading
    return None

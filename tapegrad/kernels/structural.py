"""Kernels that are no elementwise loops, and the steps that call them: parts, scattering, extrema."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.kernels.elementwise import identity_step
from tapegrad.tape.layout import contiguous_strides, dtype_name
from tapegrad.tape.plan import ARRAY, CT, Step, address_of_array

if TYPE_CHECKING:
    from tapegrad.tape.plan import Plan


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
    offset = address_of_array(part) - address_of_array(whole) if part.size else 0
    return identity_step(own.shape, ((CT, offset), dtype_name(part.dtype), part.strides), own)


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

    The arrays are of one shape and the other dimensions taken whole. None if the arrays do not stand together, or if
    the key has a slice or a new dimension beside them.
    """
    own, key = plan.layouts[0], plan.attrs["key"]
    if any(item != "array" and item is not Ellipsis and item != (None, None, None) for item in key):
        return None
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
    shape, after = plan.result.shape, own.ndim - first - arrays
    if shape[:first] != own.shape[:first] or shape[len(shape) - after :] != own.shape[first + arrays :]:
        return None  # the sizes that the kernel would go over are not those of the result
    chosen = plan.result.size // (outer * inner) if outer * inner else 0
    step = int(np.prod(lengths, dtype=np.int64)) * inner * own.dtype.itemsize
    dims = [0, outer, chosen, inner, arrays, step]
    for length, stride in zip(lengths, strides[first:], strict=False):
        dims += [length, stride]
    sources = [(CT, 0), *((ARRAY, plan.position(f"index_array{number}")) for number in range(arrays))]
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


def _larger(x: float, y: float) -> float:
    """Return the larger of two numbers; nan if one is."""
    return x if x >= y or x != x else y


def _smaller(x: float, y: float) -> float:
    return x if x <= y or x != x else y


def _rows_kernel(dtype: str, largest: bool) -> Callable[..., int]:
    choose = _larger if largest else _smaller

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        out, n = as_pointer(load(table, 1), dtype), load(block, 2)
        for row in range(load(block, 1)):
            x = as_pointer(load(table, 0) + row * n * itemsize, dtype)
            # Four that do not wait for each other.
            a, last = load(x, 0), n - 1
            b, c, d = load(x, min(1, last)), load(x, min(2, last)), load(x, min(3, last))
            for k in range(4, n - 3, 4):
                a, b = choose(a, load(x, k)), choose(b, load(x, k + 1))
                c, d = choose(c, load(x, k + 2)), choose(d, load(x, k + 3))
            for k in range(max(n & ~3, 4), n):
                a = choose(a, load(x, k))
            store(out, row, choose(choose(a, b), choose(c, d)))
        return 0

    itemsize = np.dtype(dtype).itemsize
    return kernel


@cache
def rows_extremum(dtype: str, largest: bool) -> int:
    """Return the address of the kernel that finds the largest, or smallest, element of each row; nan if there is one.

    Its dims are 0, how many rows, and how long they are, which is not 0.
    """
    name = "largest" if largest else "smallest"
    return address_of(f"{name}-{dtype}", _rows_kernel(dtype, largest))


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

"""Compiled: the geometry of a kernel's loops, that is their lengths and strides, and the loop over outer dimensions."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, get, stack
from tapegrad.runtime.structs import Array, Struct, embedded


class Geometry(Struct):
    """What a kernel is told besides addresses. Without outer dimensions the rest is private to the kernel.

    Behind the strides stand the lengths of the outer dimensions, then their strides, then the rows (`Rows`).
    """

    outer: int  # number of outer dimensions
    length: int  # of the inner loop
    strides: Array[int] = embedded()  # bytes to the next element, for each argument


class SumGeometry(Struct):
    """The geometry of a kernel that sums the middle of three dimensions, all at once or a block at a time."""

    outer: int
    first: int  # the first dimension; the first row of a block
    terms: int  # that are summed; the rows of a block
    inner: int


class CombineGeometry(Struct):
    """The geometry of a kernel that adds up partial sums."""

    outer: int
    groups: int
    inner: int


class Rows(Struct):
    """How many rows a loop over rows goes over, and the bytes from row to row for each argument."""

    count: int
    strides: Array[int] = embedded()


def rows_at(dims: int, count: int) -> int:
    """Return the address of the `Rows` of a loop with `count` arguments. Kernels that numba compiles call it too."""
    return dims + 8 * (2 + count + get(dims, 0) * (1 + count))


def iterate(kernel: int, args: Array[int], count: int, geometry: Geometry, accumulate: int) -> None:
    """Call a kernel for each index of the outer dimensions."""
    outer = geometry.outer
    if outer == 0:
        call(kernel, args, geometry, accumulate)
        return
    lengths = geometry.strides.at(count)
    strides = lengths.at(outer)
    index = Array[int](stack(512))  # 64 dimensions, as many as NumPy allows
    total = 1
    for dim in range(outer):
        index[dim] = 0
        total *= lengths[dim]
    for _ in range(total):
        call(kernel, args, geometry, accumulate)
        dim = outer - 1
        while dim >= 0:
            position = index[dim] + 1
            length = lengths[dim]
            turned = position == length
            for arg in range(count):
                stride = strides[dim * count + arg]
                args[arg] += stride - (length * stride if turned else 0)
            index[dim] = 0 if turned else position
            dim = dim - 1 if turned else -1

"""Compiled: the geometry of a kernel's loops (lengths and strides), and the loop over outer dimensions."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, get, stack
from tapegrad.runtime.structs import Array, Struct, embedded


class Geometry(Struct):
    """Lengths and strides for a kernel. If there are no outer dimensions, the other words are private to the kernel.

    After the strides come the lengths of the outer dimensions, then their strides, then the rows (`Rows`).
    """

    outer: int  # number of outer dimensions
    length: int  # of the inner loop
    strides: Array[int] = embedded()  # bytes to the next element, for each argument


class SumGeometry(Struct):
    """The geometry of a kernel that sums over the middle one of three dimensions, all at once or a block at a time.

    For all at once, the number of times that these follow each other stands behind the outer dimensions.
    """

    outer: int
    first: int  # length of the first dimension; of a block, the number of its first row
    terms: int  # length of the dimension that is summed; of a block, the number of its rows
    inner: int  # length of the last dimension


class CombineGeometry(Struct):
    """The geometry of a kernel that adds up partial sums."""

    outer: int
    groups: int
    inner: int


class Rows(Struct):
    """The number of rows of a loop over rows, and the bytes from row to row for each argument."""

    count: int
    strides: Array[int] = embedded()


def rows_at(geometry: int, count: int) -> int:
    """Return the address of the `Rows` of a loop with `count` arguments. Kernels that numba compiles call it too."""
    return geometry + 8 * (2 + count + get(geometry, 0) * (1 + count))


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

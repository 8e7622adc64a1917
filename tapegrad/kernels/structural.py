"""Steps of operands that are a view of the result or a part of it, or over which the cotangent is spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.intrinsics import get, memcpy, memset, put, stack
from tapegrad.kernels.elementwise import identity_step, loop_step, product_of_two
from tapegrad.kernels.rules import identity
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.kernels.sums import sum_step
from tapegrad.recording.steps import CT, NUMBER, Source, Step, address_of_array
from tapegrad.tape.layout import Layout, contiguous_strides, dtype_name
from tapegrad.tape.lengths import applied

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan


@cache
def _address(name: str, make: Callable[[], Callable[..., int]]) -> int:
    return address_of(name, make())


def copy_step(plan: Plan) -> Step:
    """Return the step of an op whose result is a copy of its operand."""
    own = plan.result
    strides = contiguous_strides(own.shape, own.dtype.itemsize)
    return identity_step(own.shape, ((CT, 0), dtype_name(own.dtype), strides), own)


def view_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray]) -> Step:
    """Return the step of an op whose result is a view of its operand: the cotangent is added through the same view.

    Parameters
    ----------
    plan : Plan
    view : callable
        The forward of the op.
    """
    own, result = plan.layouts[0], plan.result
    if plan.view_offset is not None and own.contiguous:
        strides, offset = result.strides, plan.view_offset if result.size else 0
    else:
        whole = np.empty(own.shape, own.dtype)
        part = view(whole)
        strides, offset = part.strides, address_of_array(part) - address_of_array(whole) if part.size else 0
    operands = [((CT, 0), dtype_name(result.dtype), contiguous_strides(result.shape, result.dtype.itemsize))]
    return loop_step(
        "identity", identity, result.shape, operands, (dtype_name(result.dtype), strides),
        into_view=result.nbytes != own.nbytes, offset=offset,
    )  # fmt: skip


def gather_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray], operand: int = 0) -> Step:
    """Return the step of an operand that became a part of the result: its cotangent is that part of the result's.

    If the operand was broadcast to the part, the part is summed.

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
    source = ((CT, offset), dtype_name(part.dtype), part.strides)
    if own.shape == part.shape:
        return identity_step(own.shape, source, own)
    target = (dtype_name(own.dtype), contiguous_strides(part.shape, own.dtype.itemsize))
    return loop_step("identity", identity, part.shape, [source], target, **summed_to(own, part.shape))


def summed_to(own: Layout, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return further fields of a step whose kernel writes the shape to which the operand was broadcast."""
    size = math.prod(shape) * own.dtype.itemsize
    return {"reduce_to": sum_step(shape, own.shape, own.dtype), "scratch": max(size, 1)}


def slice_step(plan: Plan, operand: int, dim: int, start: int) -> Step:
    """Return the step of an operand that the result has from index `start` of a dimension on, as in `cat` and `stack`.

    The operand may lack the dimension: it stands at one index then.
    """
    own, result = plan.layouts[operand], plan.result
    strides = contiguous_strides(result.shape, result.dtype.itemsize)
    offset = start * strides[dim] if own.size else 0
    if own.ndim < result.ndim:
        strides = (*strides[:dim], *strides[dim + 1 :])
    return identity_step(own.shape, ((CT, offset), dtype_name(result.dtype), strides), own)


def spread_step(plan: Plan, shape: tuple[int, ...], count: int | None = None) -> Step:
    """Return the step of a sum or mean, which broadcasts the cotangent to the operand's shape.

    Parameters
    ----------
    plan : Plan
    shape : tuple of int
        The operand's shape, with 1 for the dimensions that were summed.
    count : int, optional
        Of a mean: the number of elements that were averaged.
    """
    own, result = plan.layouts[0], plan.result
    ct = contiguous_strides(shape, result.dtype.itemsize)
    operands = [((CT, 0), dtype_name(result.dtype), broadcast_strides(shape, ct, own.shape))]
    target = (dtype_name(own.dtype), contiguous_strides(own.shape, own.dtype.itemsize))
    if count is None:
        return loop_step("identity", identity, own.shape, operands, target, unrolled=True)
    dtype = dtype_name(own.dtype) if own.dtype.kind == "f" else "float64"
    operands.append((NUMBER, dtype, (0,) * own.ndim))
    bits = applied(partial(_bits_of_reciprocal, dtype), count or 1)
    return product_of_two(own.shape, operands, target, number=bits, unrolled=True)


def _bits_of_reciprocal(dtype: str, count: int) -> int:
    word = np.zeros(1, dtype=np.int64)
    word.view(dtype)[0] = 1 / count
    return int(word[0])


# Parts left out --------------------------------------------------------------------------------------------------


def _part_kernel() -> Callable[..., int]:
    """Return the kernel that copies a source and writes zeros to a part of the copy; or of the source, if it is both.

    Its geometry after the first word: bytes of the source; the part's offset, bytes of a row, number of dimensions,
    lengths and strides.
    """

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        nbytes, offset, size, ndim = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        lengths, strides, index = geometry + 40, geometry + 40 + 8 * ndim, stack(512)
        at, count = get(args, 1) + offset, 1
        if get(args, 1) != get(args, 0):
            memcpy(get(args, 1), get(args, 0), nbytes)
        for dim in range(ndim):
            put(index, dim, 0)
            count *= get(lengths, dim)
        for _ in range(count):
            memset(at, size)
            dim = ndim - 1
            while dim >= 0:
                position = get(index, dim) + 1
                at += get(strides, dim)
                if position == get(lengths, dim):
                    at -= position * get(strides, dim)
                    put(index, dim, 0)
                    dim -= 1
                else:
                    put(index, dim, position)
                    dim = -1
        return 0

    return kernel


def part_left_out_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray]) -> Step:
    """Return the step of an operand that the result equals except in a part: the cotangent is the result's, 0 there."""
    own = plan.layouts[0]
    whole = np.empty(own.shape, own.dtype)
    part = view(whole)
    offset = part.ctypes.data - whole.ctypes.data if part.size else 0
    lengths, strides = coalesce(part.shape, [part.strides])
    size = part.itemsize
    if strides[0][-1] == size:  # a row at a time
        size *= lengths.pop()
        strides[0].pop()
    count = len(lengths) if part.size else 1
    lengths, steps = (lengths, strides[0]) if part.size else ([0], [0])
    geometry = [0, whole.nbytes, offset, size, count, *lengths, *steps]
    return zeroed_step(own, partial(_address, "part-left-out", _part_kernel), geometry, [(CT, 0)])


def zeroed_step(own: Layout, kernel: Callable[[], int], geometry: Sequence[int], sources: Sequence[Source]) -> Step:
    """Return the step of a kernel that cannot add: it writes to scratch memory, which a second kernel adds.

    The kernel writes zeros to a copy of its source, or to the source itself where the operand takes it over.
    """
    dtype, size = dtype_name(own.dtype), own.dtype.itemsize
    addition = loop_step("identity", identity, (own.size,), [((CT, 0), dtype, (size,))], (dtype, (size,)))
    return Step(
        kernel, geometry, sources, reduce_to=(addition.kernel, addition.geometry), scratch=max(own.nbytes, 1),
        in_place=True,
    )  # fmt: skip

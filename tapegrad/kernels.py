"""Kernels: from a rule to a compiled loop, and the steps of the families that say how a sweep calls it.

A kernel is ``kernel(args, dims, accumulate)`` in the convention of NumPy's inner loops: ``args`` are the addresses of
the sources and of the target, ``dims`` holds the length and the byte steps. It writes, or adds to what is there.
Broadcasting is a step of 0; the sweep iterates over the outer dimensions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import cache, vmath
from tapegrad.intrinsics import as_pointer, load, load_at, stack, store, store_at
from tapegrad.layout import Layout, contiguous_strides
from tapegrad.ops.row import rule_parameters
from tapegrad.plan import CT, Step

if TYPE_CHECKING:
    from tapegrad.plan import Plan

BIND = {"xp": vmath}
STRIDED = -1  # a step that is read when the kernel runs; others are constants, so that LLVM vectorises


# Loops -----------------------------------------------------------------------------------------------------------


def _loop_1(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, target = types
    (c0,) = casts
    s0, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, out = load(table, 0), load(table, 1)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step = load(block, 3) if st == STRIDED else st
        if accumulate:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)))
                store_at(out, i * step, load_at(out, i * step, target) + value, target)
        else:
            for i in range(load(block, 1)):
                store_at(out, i * step, rule(c0(load_at(a, i * step0, d0))), target)
        return 0

    return kernel


def _loop_2(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, target = types
    c0, c1 = casts
    s0, s1, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, out = load(table, 0), load(table, 1), load(table, 2)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step = load(block, 4) if st == STRIDED else st
        if accumulate:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1)))
                store_at(out, i * step, load_at(out, i * step, target) + value, target)
        else:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1)))
                store_at(out, i * step, value, target)
        return 0

    return kernel


def _loop_3(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, d2, target = types
    c0, c1, c2 = casts
    s0, s1, s2, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, c, out = load(table, 0), load(table, 1), load(table, 2), load(table, 3)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step2 = load(block, 4) if s2 == STRIDED else s2
        step = load(block, 5) if st == STRIDED else st
        for i in range(load(block, 1)):
            x, y, z = load_at(a, i * step0, d0), load_at(b, i * step1, d1), load_at(c, i * step2, d2)
            value = rule(c0(x), c1(y), c2(z))
            before = load_at(out, i * step, target) if accumulate else kind(0)
            store_at(out, i * step, before + value, target)
        return 0

    kind = np.dtype(target).type
    return kernel


def _loop_4(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, d2, d3, target = types
    c0, c1, c2, c3 = casts
    s0, s1, s2, s3, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, c, d, out = load(table, 0), load(table, 1), load(table, 2), load(table, 3), load(table, 4)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step2 = load(block, 4) if s2 == STRIDED else s2
        step3 = load(block, 5) if s3 == STRIDED else s3
        step = load(block, 6) if st == STRIDED else st
        for i in range(load(block, 1)):
            x, y = c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1))
            z, w = c2(load_at(c, i * step2, d2)), c3(load_at(d, i * step3, d3))
            before = load_at(out, i * step, target) if accumulate else kind(0)
            store_at(out, i * step, before + rule(x, y, z, w), target)
        return 0

    kind = np.dtype(target).type
    return kernel


_LOOPS = {1: _loop_1, 2: _loop_2, 3: _loop_3, 4: _loop_4}


def _sum_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Sum the middle of three dimensions (outer, n, inner) of a contiguous source.

    A block of 128 terms is added up in double precision, in 8 independent sums where the terms are neighbours; blocks
    are added with the compensation of Knuth's two-sum (TAOCP 2, 4.2.2), so that the error does not grow with the
    number of terms. Terms that are not neighbours are added up for 32 columns at a time, as they lie in memory.
    """
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    columns = 32
    room = 3 * columns * width

    def neighbours(first: int, count: int) -> Any:
        """Add up `count` neighbours."""
        source = as_pointer(first, dtype)
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for k in range(0, count - 7, 8):
            s0 += load(source, k)
            s1 += load(source, k + 1)
            s2 += load(source, k + 2)
            s3 += load(source, k + 3)
            s4 += load(source, k + 4)
            s5 += load(source, k + 5)
            s6 += load(source, k + 6)
            s7 += load(source, k + 7)
        for k in range(count & ~7, count):
            s0 += load(source, k)
        return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source, target = load(table, 0), load(table, 1)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        memory = stack(room)
        total, error = as_pointer(memory, wide), as_pointer(memory + columns * width, wide)
        part = as_pointer(memory + 2 * columns * width, wide)
        for i in range(outer):
            for left in range(0, inner, columns):
                many = min(columns, inner - left)
                for c in range(many):
                    store(total, c, zero)
                    store(error, c, zero)
                for top in range(0, n, 128):
                    count = min(128, n - top)
                    first = source + ((i * n + top) * inner + left) * size
                    if inner == 1:
                        store(part, 0, neighbours(first, count))
                    else:
                        for c in range(many):
                            store(part, c, zero)
                        for k in range(count):
                            row = as_pointer(first + k * inner * size, dtype)
                            for c in range(many):
                                store(part, c, load(part, c) + load(row, c))
                    for c in range(many):
                        before, new = load(total, c), load(part, c)
                        both = before + new
                        back = both - before
                        store(error, c, load(error, c) + ((before - (both - back)) + (new - back)))
                        store(total, c, both)
                out = as_pointer(target + (i * inner + left) * size, dtype)
                for c in range(many):
                    both, rest = load(total, c), load(error, c)
                    # Two-sum of infinities is nan; the plain total is right then.
                    both = both + rest if rest == rest else both
                    store(out, c, load(out, c) + both if accumulate else both)
        return 0

    return kernel


# Steps -----------------------------------------------------------------------------------------------------------


def coalesce(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Merge dimensions that all operands step through evenly, and drop those of length 1.

    >>> coalesce((2, 3), [(24, 8), (24, 8)])
    ([6], [[8], [8]])
    >>> coalesce((2, 3), [(24, 8), (0, 8)])
    ([2, 3], [[24, 8], [0, 8]])
    """
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for dim, length in enumerate(shape):
        if length == 1:
            continue
        if lengths and all(own[-1] == operand[dim] * length for own, operand in zip(steps, strides, strict=True)):
            lengths[-1] *= length
            for own, operand in zip(steps, strides, strict=True):
                own[-1] = operand[dim]
        else:
            lengths.append(length)
            for own, operand in zip(steps, strides, strict=True):
                own.append(operand[dim])
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, steps


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Return the strides with which an operand of this shape is read as one of shape `to`.

    >>> broadcast_strides((3, 1), (8, 8), (2, 3, 4))
    (0, 8, 0)
    """
    own = [0 if length == 1 else step for length, step in zip(shape, strides, strict=True)]
    return (*(0 for _ in range(len(to) - len(own))), *own)


def loop_step(
    name: str,
    rule: Callable[..., Any],
    shape: Sequence[int],
    operands: Sequence[tuple[tuple[int, int], str, Sequence[int]]],
    target: tuple[str, Sequence[int]],
    *,
    casts: Sequence[Any] | None = None,
    **kwargs: Any,
) -> Step:
    """Return the step that runs a rule over all elements of a shape.

    Parameters
    ----------
    name : str
        What the kernel is called in the cache.
    rule : callable
    shape : sequence of int
    operands : sequence of (source, dtype, strides)
        Of the rule's arguments.
    target : (dtype, strides)
    casts : sequence of NumPy scalar types, optional
        What each argument is converted to.
    kwargs
        Further fields of `Step`.
    """
    types = (*(dtype for _, dtype, _ in operands), target[0])
    lengths, steps = coalesce(shape, [*(strides for _, _, strides in operands), target[1]])
    inner = [own[-1] for own in steps]
    sizes = [np.dtype(dtype).itemsize for dtype in types]
    fixed = all(step == size or (step == 0 and place < len(operands))
                for place, (step, size) in enumerate(zip(inner, sizes, strict=True)))  # fmt: skip
    pattern = tuple(inner) if fixed else (STRIDED,) * len(inner)
    casts = tuple(casts or (np.dtype(dtype).type for dtype in types[:-1]))
    outer = len(lengths) - 1
    dims = [outer, lengths[-1], *inner, *lengths[:-1]]
    for dim in range(outer):
        dims.extend(own[dim] for own in steps)

    address = functools.partial(_loop_address, name, rule, types, casts, pattern)
    return Step(address, np.array(dims, dtype=np.int64), [source for source, _, _ in operands], **kwargs)


@functools.cache  # a fingerprint takes 0.2 ms, and a program may index with thousands of numbers: a plan for each
def _loop_address(
    name: str, rule: Callable[..., Any], types: tuple[str, ...], casts: tuple[Any, ...], steps: tuple[int, ...]
) -> int:
    function = _LOOPS[len(casts)](rule, types, casts, steps)
    return cache.address_of(f"{name}-{'-'.join(types)}", function, bind=BIND)


def elementwise_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of an elementwise row: its rule as a loop, then a sum over what was broadcast."""
    rule = plan.row.rule(operand)
    result, own = plan.result, plan.layouts[operand]
    shape, dtype = result.shape, own.dtype
    operands = []
    casts = []
    for name in rule_parameters(rule):
        layout = plan.layout(name)
        strides = layout.strides if name != "ct" else contiguous_strides(shape, layout.dtype.itemsize)
        operands.append((plan.source(name), layout.dtype.name, broadcast_strides(layout.shape, strides, shape)))
        # Python numbers and integers take the dtype of the operation, as in the forward; a condition stays one.
        promoted = layout.weak or layout.dtype.kind in ("iub" if plan.row.family == "binary" else "iu")
        casts.append((result if promoted else layout).dtype.type)
    extra: dict[str, Any] = {}
    if own.size != result.size:
        extra = {"total": sum_step(shape, own.shape, dtype), "between": result.size * dtype.itemsize}
    target = (dtype.name, contiguous_strides(shape, dtype.itemsize))
    name = f"{plan.name}-{plan.row.operands[operand]}"
    return loop_step(name, rule, shape, operands, target, casts=casts, **extra)


@functools.cache
def _sum_address(dtype: str, wide: str) -> int:
    return cache.address_of(f"sum-{dtype}", _sum_kernel(dtype, wide))


def sum_step(shape: tuple[int, ...], to: tuple[int, ...], dtype: np.dtype) -> tuple[Callable[[], int], np.ndarray]:
    """Return the kernel that sums a contiguous array of one shape to another, and its dims."""
    to = (1,) * (len(shape) - len(to)) + tuple(to)
    # Runs of dimensions that are kept or summed; the kernel takes the last three (kept, summed, kept).
    runs: list[tuple[bool, int]] = []
    for length, kept in zip(shape, to, strict=True):
        if length == 1:
            continue
        summed = kept != length
        if runs and runs[-1][0] == summed:
            runs[-1] = (summed, runs[-1][1] * length)
        else:
            runs.append((summed, length))
    inner = runs.pop()[1] if runs and not runs[-1][0] else 1
    n = runs.pop()[1] if runs else 1
    outer = runs.pop()[1] if len(runs) == 1 and not runs[-1][0] else 1
    size = dtype.itemsize
    lengths = [length for _, length in runs]
    # The outer dimensions step through a contiguous source and over the kept dimensions of the target.
    steps = []
    source_step, target_step = outer * n * inner * size, outer * inner * size
    for summed, length in reversed(runs):
        steps.append((source_step, 0 if summed else target_step))
        source_step *= length
        target_step *= 1 if summed else length
    dims = [len(lengths), outer, n, inner, *lengths]
    for pair in reversed(steps):
        dims.extend(pair)
    wide = "complex128" if dtype.kind == "c" else "float64"

    return functools.partial(_sum_address, dtype.name, wide), np.array(dims, dtype=np.int64)


def identity_step(
    shape: Sequence[int], source: tuple[tuple[int, int], str, Sequence[int]], target: Layout, **kwargs: Any
) -> Step:
    """Return the step that copies or adds a source, given as (source, dtype, strides), to a contiguous target."""
    strides = contiguous_strides(target.shape, target.dtype.itemsize)
    return loop_step("identity", _identity, shape, [source], (target.dtype.name, strides), **kwargs)


def view_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray]) -> Step:
    """Return the step of a row whose result is a view of its operand: the cotangent is added through the same view.

    Parameters
    ----------
    plan : Plan
    view : callable
        The row's forward.
    """
    own, result = plan.layouts[0], plan.result
    whole = np.empty(own.shape, own.dtype)
    part = view(whole)
    ct = contiguous_strides(result.shape, own.dtype.itemsize)
    offset = part.ctypes.data - whole.ctypes.data if part.size else 0
    operands = [((CT, 0), result.dtype.name, ct)]
    overlapping = any(step == 0 and length > 1 for step, length in zip(part.strides, part.shape, strict=True))
    assert not overlapping or not part.size, "expand brings its own step"  # NumPy's strides without elements are 0
    return loop_step(
        "identity", _identity, result.shape, operands, (own.dtype.name, part.strides),
        partial=part.size != whole.size, offset=offset,
    )  # fmt: skip


def spread_step(plan: Plan, shape: tuple[int, ...], scale: float | None = None) -> Step:
    """Return the step of a sum or mean: the cotangent, of the operand's shape but 1 where summed, spread over it."""
    own, result = plan.layouts[0], plan.result
    ct = contiguous_strides(shape, result.dtype.itemsize)
    operands = [((CT, 0), result.dtype.name, broadcast_strides(shape, ct, own.shape))]
    target = (own.dtype.name, contiguous_strides(own.shape, own.dtype.itemsize))
    if scale is None:
        return loop_step("identity", _identity, own.shape, operands, target)
    factor = np.array(scale, dtype=own.dtype if own.dtype.kind == "f" else np.float64)
    operands.append(((3, factor.ctypes.data), factor.dtype.name, (0,) * own.ndim))
    return product_of_two(own.shape, operands, target, keep=(factor,))


def product_of_two(
    shape: Sequence[int],
    operands: Sequence[tuple[tuple[int, int], str, Sequence[int]]],
    target: tuple[str, Sequence[int]],
    **kwargs: Any,
) -> Step:
    """Return the step that multiplies two sources, given as (source, dtype, strides), element by element."""
    return loop_step("product", _product, shape, operands, target, **kwargs)


def _identity(ct: Any) -> Any:
    return ct


def _product(ct: Any, factor: Any) -> Any:
    return ct * factor

"""Steps of elementwise rules: the kernel of a rule, and how a sweep calls it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tapegrad import vmath
from tapegrad.compiler import cache
from tapegrad.kernels.loops import STREAMABLE, STREAMS, STRIDED, fused_loop, loop
from tapegrad.kernels.rows import fused_row_loop, row_sum_loop
from tapegrad.kernels.rules import called_functions, identity, is_identity, rule_parameters
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.kernels.sums import blockwise, sum_step, wide_dtype
from tapegrad.recording.steps import CT, NOTHING, Step
from tapegrad.runtime.blocking import is_streamed
from tapegrad.tape.layout import Layout, contiguous_strides, dtype_name, itemsize

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

# Of a rule's argument: where it is found, its dtype, its strides.
Operand = tuple[tuple[int, int], str, Sequence[int]]
BIND = {"xp": vmath}
MAX_SOURCES = 6  # of a step in a group
_STREAMED_ROW = 512  # bytes
SHORT = 4  # elements of rows that have kernels for their length: compiled without a loop, and vectorised nevertheless
#: Functions of NumPy that are worth such kernels, as rules.
ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.true_divide: lambda x, y: x / y,
}


def loop_step(
    name: str,
    rule: Callable[..., Any],
    shape: Sequence[int],
    operands: Sequence[tuple[tuple[int, int], str, Sequence[int]]],
    target: tuple[str, Sequence[int]],
    *,
    casts: Sequence[str] | None = None,
    unrolled: bool = False,
    streams: int | None = None,
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
    casts : sequence of str, optional
        dtypes that the arguments are converted to.
    unrolled : bool
        Use kernels for the length of short rows.
    streams : int, optional
        See `loop`; for a target in the order of memory.
    kwargs
        Further fields of `Step`.
    """
    types = (*[dtype for _, dtype, _ in operands], target[0])
    lengths, steps = coalesce(shape, [*[strides for _, _, strides in operands], target[1]])
    inner = [own[-1] for own in steps]
    casts = tuple(casts) if casts else types[:-1]
    sizes = [itemsize(dtype) for dtype in types]
    is_flat, outer = len(lengths) == 1, max(len(lengths) - 2, 0)
    fixed = inner[-1] == sizes[-1] and all(step in (0, size) for step, size in zip(inner, sizes, strict=True))
    pattern = tuple(map(int, inner)) if fixed else (STRIDED,) * len(inner)
    # The kernel itself goes over the last two dimensions, so that short rows cost no call each.
    length = None if is_flat else int(lengths[-1]) if unrolled and fixed and lengths[-1] <= SHORT else STRIDED
    geometry = [outer, lengths[-1], *inner, *lengths[:outer]]
    for dim in range(outer):
        geometry += [own[dim] for own in steps]
    geometry += [1, *[0] * len(steps)] if is_flat else [lengths[-2], *[own[-2] for own in steps]]

    sources = [source for source, _, _ in operands]
    # In a group (`tapegrad.sweep.groups`) the target and a cotangent may be memory for one block of elements, which
    # are neighbours there. A cotangent that is broadcast has fewer elements, and is never memory for a block.
    in_order = [own[-1] == size and (is_flat or own[0] == size * lengths[-1])
                for own, size in zip(steps, sizes, strict=True)]  # fmt: skip
    divides = outer == 0 and in_order[-1] and not kwargs.get("into_view") and len(sources) <= MAX_SOURCES
    for (kind, _), right, own in zip(sources, in_order, steps, strict=False):
        divides &= kind != CT or right or 0 in own
    size = math.prod(lengths)
    # Short rows would be streamed in pieces.
    if streams is not None and not (in_order[-1] and fixed and lengths[-1] * sizes[-1] >= _STREAMED_ROW):
        streams = None
    donates = (
        rule is identity and sources == [(CT, 0)] and types[0] == types[1] and (size == 1 or in_order == [True, True])
    )
    streams = STREAMS if donates else streams
    if types[-1] not in STREAMABLE:
        streams = None
    if streams:
        kwargs["streams"] = streams
    address = functools.partial(_loop_address, name, rule, types, casts, pattern, length, streams)
    return Step(address, geometry, sources, elements=size if divides else 0, donate=donates, **kwargs)


@functools.cache  # a fingerprint takes 0.2 ms, and a program may index with thousands of numbers: a plan for each
def _loop_address(
    name: str,
    rule: Callable[..., Any],
    types: tuple[str, ...],
    casts: tuple[str, ...],
    steps: tuple[int, ...],
    length: int | None,
    streams: int | None,
) -> int:
    function = loop(rule, types, casts, steps, length, streams)
    return cache.address_of(f"{name}-{'-'.join(types)}", function, bind=BIND)


def _is_compilable(rule: Any) -> TypeGuard[Callable[..., Any]]:
    """Whether there is a rule, and `vmath` has the functions that it calls; else the sweep calls it."""
    return callable(rule) and all(hasattr(vmath, name) for name in called_functions(rule))


def elementwise_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of an elementwise op: its rule as a loop, then a sum over what was broadcast."""
    rule = plan.op.rule(operand)
    if not _is_compilable(rule):
        return None
    result, own = plan.result, plan.layouts[operand]
    shape, dtype = result.shape, own.dtype
    if is_identity(rule) and dtype == result.dtype:
        rule = identity  # one kernel for all ops
    operands, casts = _sources(plan, rule_parameters(rule))
    extra: dict[str, Any] = {}
    name = "identity" if rule is identity else f"{plan.name}-{plan.op.operands[operand]}"
    if own.size != result.size:
        rows = _row_sum_step(name, rule, plan, own, operands, casts)
        if rows is not None:
            return rows
        total = sum_step(shape, own.shape, dtype)
        extra = {
            "reduce_to": total,
            "scratch": result.size * dtype.itemsize,
            "partial_sums": blockwise(total[1], dtype),
        }
        if rule is identity:
            extra["scratch"] = NOTHING  # the cotangent itself is summed
    target = (dtype_name(dtype), contiguous_strides(shape, dtype.itemsize))
    unrolled = plan.op.forward in ARITHMETIC
    streams = STREAMS if is_streamed(result.nbytes) and own.size == result.size else None
    return loop_step(name, rule, shape, operands, target, casts=casts, unrolled=unrolled, streams=streams, **extra)


def _rows_of(
    plan: Plan, operands: Sequence[Operand], targets: Sequence[Layout]
) -> tuple[list[int], list[list[int]]] | None:
    """Return lengths and steps of a loop over rows, for targets with one element a row or all; None if there is none.

    Elements of a row are neighbours, in sources and in targets.
    """
    shape = plan.result.shape
    in_order = [(own.shape, contiguous_strides(own.shape, own.dtype.itemsize)) for own in targets]
    lengths, steps = coalesce(
        shape, [*(own for _, _, own in operands), *(broadcast_strides(*own, shape) for own in in_order)]
    )
    if len(lengths) != 2:
        return None
    sizes = [*(itemsize(dtype) for _, dtype, _ in operands), *(own.dtype.itemsize for own in targets)]
    if any(own[-1] not in (0, size) for own, size in zip(steps, sizes, strict=True)):
        return None
    for target, own in zip(targets, steps[len(operands) :], strict=True):
        size, whole = target.dtype.itemsize, target.size == plan.result.size
        if own != ([lengths[1] * size, size] if whole else [size, 0]):
            return None
    return lengths, steps


def _row_sum_step(
    name: str, rule: Callable[..., Any], plan: Plan, own: Layout, operands: Sequence[Operand], casts: Sequence[str]
) -> Step | None:
    """Return the step that sums the values of a rule over each row; None if the operand is not one element a row."""
    rows = _rows_of(plan, operands, [own])
    if rows is None:
        return None
    lengths, steps = rows
    inner = tuple(int(strides[-1]) for strides in steps)
    types = (*(dtype for _, dtype, _ in operands), dtype_name(own.dtype))
    kernel = functools.partial(_row_sum_address, name, rule, types, tuple(casts), inner, wide_dtype(own.dtype))
    geometry = [0, lengths[1], *inner, lengths[0], *(strides[0] for strides in steps)]
    divides = len(operands) <= MAX_SOURCES and all(
        source[0] != CT or strides == [lengths[1] * itemsize(dtype), itemsize(dtype)]
        for (source, dtype, _), strides in zip(operands, steps, strict=False)
    )
    sources = [source for source, _, _ in operands]
    elements = math.prod(lengths) if divides else 0
    return Step(kernel, geometry, sources, elements=elements, sums_rows=True)


@functools.cache
def _row_sum_address(
    name: str, rule: Callable[..., Any], types: tuple[str, ...], casts: tuple[str, ...], steps: Any, wide: str
) -> int:
    function = row_sum_loop(rule, types, casts, steps, wide)
    return cache.address_of(f"rows-{name}-{'-'.join(types)}", function, bind=BIND)


def fused_step(plan: Plan) -> Step | None:
    """Return the step of a binary elementwise op for both operands at once; None if no such loop serves them."""
    result = plan.result
    rules = plan.op.rule(0), plan.op.rule(1)
    if not _is_compilable(rules[0]) or not _is_compilable(rules[1]):
        return None
    if is_identity(rules[0]) or is_identity(rules[1]):
        return None  # the other step costs nothing where it takes the cotangent's memory over
    names = tuple(dict.fromkeys((*rule_parameters(rules[0]), *rule_parameters(rules[1]))))
    operands, casts = _sources(plan, names)
    types = (*(dtype for _, dtype, _ in operands), *(dtype_name(own.dtype) for own in plan.layouts))
    whole = [own.size == result.size for own in plan.layouts]
    if all(whole):
        targets = [contiguous_strides(result.shape, own.dtype.itemsize) for own in plan.layouts]
        lengths, steps = coalesce(result.shape, [*(own for _, _, own in operands), *targets])
        inner = tuple(int(own[-1]) for own in steps)
        if len(lengths) > 1 or inner != tuple(0 if result.size == 1 else itemsize(dtype) for dtype in types):
            return None
        rows, wide = [1, *(0 for _ in steps)], ""
    else:
        found = _rows_of(plan, operands, plan.layouts) if any(whole) and len(operands) <= MAX_SOURCES - 1 else None
        if found is None:
            return None
        lengths, steps = found
        inner = tuple(int(own[-1]) for own in steps)
        rows, wide = [lengths[0], *(own[0] for own in steps)], wide_dtype(plan.layouts[whole.index(False)].dtype)
    picks = tuple(map(names.index, rule_parameters(rules[0]))), tuple(map(names.index, rule_parameters(rules[1])))
    streams = STREAMS if wide and is_streamed(result.nbytes) and types[-2 + whole.index(True)] in STREAMABLE else 0
    address = functools.partial(_fused_address, plan.name, rules, picks, types, tuple(casts), inner, wide, streams)
    sources = [source for source, _, _ in operands]
    return Step(address, [0, lengths[-1], *inner, *rows], sources, streams=streams)


@functools.cache
def _fused_address(
    name: str,
    rules: Any,
    picks: tuple[tuple[int, ...], tuple[int, ...]],
    types: tuple[str, ...],
    casts: tuple[str, ...],
    steps: tuple[int, ...],
    wide: str,
    streams: int,
) -> int:
    """Return the address of a kernel for both operands; `wide` is the dtype in which it sums rows, if it sums."""
    if wide:
        function, name = fused_row_loop(rules, picks, types, casts, steps, wide, streams), f"rows-{name}"
    else:
        function = fused_loop(rules, picks, types, casts, tuple(itemsize(dtype) for dtype in types))
    return cache.address_of(f"{name}-{'-'.join(types)}", function, bind=BIND)


def _sources(plan: Plan, names: Sequence[str]) -> tuple[list[tuple[tuple[int, int], str, Sequence[int]]], list[str]]:
    """Return sources, dtypes and strides of an elementwise rule's arguments, and the dtypes that they are cast to."""
    result = plan.result
    operands: list[tuple[tuple[int, int], str, Sequence[int]]] = []
    casts = []
    for name in names:
        layout = plan.layout(name)
        strides = layout.strides if name != "ct" else contiguous_strides(result.shape, layout.dtype.itemsize)
        operands.append(
            (plan.source(name), dtype_name(layout.dtype), broadcast_strides(layout.shape, strides, result.shape))
        )
        # Python numbers and integers take the dtype of the operation, as in the forward; a condition stays one.
        promoted = layout.weak or layout.dtype.kind in ("iub" if plan.op.family == "binary" else "iu")
        casts.append(dtype_name((result if promoted else layout).dtype))
    return operands, casts


def identity_step(
    shape: Sequence[int], source: tuple[tuple[int, int], str, Sequence[int]], target: Layout, **kwargs: Any
) -> Step:
    """Return the step that copies or adds a source, given as (source, dtype, strides), to a contiguous target."""
    strides = contiguous_strides(target.shape, target.dtype.itemsize)
    return loop_step("identity", identity, shape, [source], (dtype_name(target.dtype), strides), **kwargs)


def identity_part_step(plan: Plan, offset: int) -> Step:
    """Return the step of one result of several: its cotangent is added to the whole from this byte on."""
    own = plan.result
    strides = contiguous_strides(own.shape, own.dtype.itemsize)
    operands = [((CT, 0), dtype_name(own.dtype), strides)]
    return loop_step(
        "identity", identity, own.shape, operands, (dtype_name(own.dtype), strides), into_view=True, offset=offset
    )


def product_of_two(
    shape: Sequence[int],
    operands: Sequence[tuple[tuple[int, int], str, Sequence[int]]],
    target: tuple[str, Sequence[int]],
    **kwargs: Any,
) -> Step:
    """Return the step that multiplies two sources, given as (source, dtype, strides), element by element."""
    return loop_step("product", _product, shape, operands, target, **kwargs)


def _product(ct: Any, factor: Any) -> Any:
    return ct * factor

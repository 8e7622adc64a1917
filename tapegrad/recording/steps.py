"""Steps: how a sweep computes the cotangent of one operand; and kernel calls, the words of steps for compiled code.

Kernels and ops make a `Step`, in Python. `kernel_calls` writes the steps of a plan into one array of words, which
compiled code reads as `tapegrad.tape.structs.KernelCallFields`.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tapegrad.runtime import blocking, state
from tapegrad.runtime.memory import INTERPRETS, MEMORY, watch
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.structs import WORD
from tapegrad.tape.layout import OBJECT_HEADER, Layout
from tapegrad.tape.lengths import applied
from tapegrad.tape.structs import KernelCallFields

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

(
    KERNEL, GEOMETRY, TARGET_CLASS, KIND, TARGET_BYTES, INTO_VIEW, OFFSET, SUM_KERNEL, SUM_GEOMETRY, SCRATCH_CLASS,
    N_SOURCES, PARTIAL_SUMS_KERNEL, COMBINE_KERNEL, PARTIAL_SUMS_CLASS, STREAMS, SOURCES,
) = (field.offset // WORD for field in KernelCallFields.fields())  # fmt: skip

# Bits of the kind of a kernel call: see `KernelCallFields.kind`.
IN_PARTS, ALIAS, SUMS_ROWS = 1, 2, 4
# A source of a kernel is a pair: the cotangent, and bytes from its beginning; a residual that is an array, or one that
# is a scalar object, and its index in the node; or NUMBER, the number of the step.
CT, ARRAY, INLINE, STATIC = 0, 1, 2, 3
Source = tuple[int, int]
NUMBER: Final[Source] = STATIC, 0

NOTHING: Final = -1  # in place of the bytes, or the size class, of scratch memory: none is needed
_word_in: Final = struct.Struct("q").unpack_from
TERMS: Final = 128  # terms of a partial sum; no block ends within them


def address_of_array(array: np.ndarray) -> int:
    """Return the address of an array's elements; asking NumPy takes five times as long."""
    if INTERPRETS:
        watch(array, "memory of a plan")
    address: int = _word_in(MEMORY, id(array) + OBJECT_HEADER)[0]
    return address


class Step(NamedTuple):
    """How a sweep computes the cotangent of one operand: a kernel, its sources and its geometry.

    Attributes
    ----------
    kernel : callable
        Returns the kernel's address, and compiles the kernel at the first call.
    geometry : sequence of int
        ``[number of outer dimensions, inner length, inner strides..., outer lengths..., outer strides...]``, with a
        stride for each source and the target. If there are no outer dimensions, the other words are private to the
        kernel.
    sources : sequence of (int, int)
    into_view : bool
        The kernel writes only to a part of the operand's cotangent; the rest must be zero before.
    offset : int
        Where that part begins, in bytes.
    reduce_to : tuple of callable and sequence of int, optional
        The kernel that undoes broadcasting, a sum, and its geometry.
    scratch : int
        Bytes of the scratch memory between the two kernels; NOTHING if the sum reads the cotangent itself.
    partial_sums : tuple of callable, callable and int, optional
        For groups, in place of `reduce_to`: the kernel that adds up a block to partial sums, the kernel that combines
        them, and their bytes.
    number : int, optional
        The bits of the number that is the source `NUMBER`.
    elements : int
        How many elements the kernel goes over, if a group may divide them into blocks; else 0. Then the kernel is a
        loop over one or two dimensions, the target is contiguous, and so is a cotangent of as many elements.
    sums_rows : bool
        The kernel goes over rows and sums each: the target has one element a row.
    donate : bool
        The operand's cotangent equals the result's, so it may take over the memory.
    in_place : bool
        It equals a part of it, and the kernel, which does not add, changes the rest: it may take over the memory too,
        and be the kernel's source and target.
    streams : int
        The bit of `accumulate` for which the kernel writes a new target past the caches; 0 if there is none. It is
        used if the result is large.
    """

    kernel: Callable[[], int]
    geometry: Sequence[int]
    sources: Sequence[Source]
    into_view: bool = False
    offset: int = 0
    reduce_to: tuple[Callable[[], int], Sequence[int]] | None = None
    scratch: int = 0
    number: int | None = None
    elements: int = 0
    donate: bool = False
    in_place: bool = False
    partial_sums: tuple[Callable[[], int], Callable[[], int], int] | None = None
    sums_rows: bool = False
    streams: int = 0

    @property
    def multiple(self) -> int:
        """The number of elements of a block must be a multiple of this: of a row, and of a partial sum."""
        row = int(self.geometry[1]) if self.elements and self.elements != self.geometry[1] else 1
        inner = int(self.reduce_to[1][3]) if self.reduce_to is not None else 1
        return math.lcm(row, inner if inner > 1 else TERMS if self.reduce_to is not None else 1)


class KernelCall(NamedTuple):
    """The place of a kernel call in the array of a plan's calls.

    Attributes
    ----------
    plan_word : int
        The word of the plan that holds the address of the call.
    start : int
        The first word of the call in the array.
    kernel : callable
        See `Step`.
    """

    plan_word: int
    start: int
    kernel: Callable[[], int]


class KernelCalls(NamedTuple):
    """The words of all kernel calls of a plan, with their geometry, before the words have an address.

    Attributes
    ----------
    words : list, or array of int
    addresses : tuple of (int, int)
        Pairs of words: the first is to hold the address of the second.
    sources : tuple of (int, int)
        The same for words that hold a source.
    calls : tuple of KernelCall
    elements, multiple : int
        See `tapegrad.tape.structs.PlanFields`.
    python_operands : tuple of int
        Operands whose rules have no kernel.
    last_first : bool
        The first operand may take over the cotangent, and change it: the others read it before.
    """

    words: list[int] | array[int]
    addresses: tuple[tuple[int, int], ...]
    sources: tuple[tuple[int, int], ...]
    calls: tuple[KernelCall, ...]
    elements: int
    multiple: int
    python_operands: tuple[int, ...]
    last_first: bool

    def place(self, block: array[int], address: int) -> None:
        """Write the addresses into the array that holds the words; `address` is where the array begins."""
        for word, target in self.addresses:
            block[word] = address + WORD * target
        for word, target in self.sources:
            block[word] = address + WORD * target << 2 | STATIC


def kernel_calls(plan: Plan, first_word: int, fused_word: int, before: Sequence[int] = ()) -> KernelCalls:
    """Return the kernel calls of a plan, and compile their kernels.

    If a fused call serves both operands, the kernels of the single calls are not compiled yet.

    Parameters
    ----------
    plan : Plan
    first_word, fused_word : int
        Words of the plan that hold the address of the first operand's call, and of the fused one.
    before : sequence of int
        Words that stand before the calls in the same array.
    """
    op = plan.op
    steps = [op.step(plan, operand) if plan.wants(operand) else None for operand in range(plan.arity)]
    fused = op.fused(plan) if op.fused and plan.wants(0) and plan.wants(1) else None
    placed = [(first_word + operand, operand, step) for operand, step in enumerate(steps) if step is not None]
    elements, multiple = _in_blocks([step for _, _, step in placed])
    if fused is not None:
        placed.append((fused_word, 0, fused))
    words = list(before)
    calls, addresses, sources = [], [], []
    for plan_word, operand, step in placed:
        start = len(words)
        words += _words_of(step, plan.layouts[operand], plan.result)
        addresses.append((start + GEOMETRY, len(words)))
        words.extend(step.geometry)
        if step.reduce_to is not None:
            addresses.append((start + SUM_GEOMETRY, len(words)))
            words.extend(step.reduce_to[1])
        if step.number is not None:
            sources.append((start + SOURCES + step.sources.index(NUMBER), len(words)))
            words.append(step.number)
        if plan_word == fused_word or fused is None:
            words[start + KERNEL] = step.kernel()
        if elements and step.partial_sums is not None:
            add_block, combine, nbytes = step.partial_sums
            words[start + PARTIAL_SUMS_KERNEL : start + STREAMS] = (
                add_block(),
                combine(),
                applied(buffer_class, nbytes),
            )
        calls.append(KernelCall(plan_word, start, step.kernel))
    python = tuple([operand for operand, step in enumerate(steps) if step is None and plan.wants(operand)])
    last_first = steps[0] is not None and steps[0].in_place
    return KernelCalls(words, tuple(addresses), tuple(sources), tuple(calls), elements, multiple, python, last_first)


def _words_of(step: Step, target: Layout, result: Layout) -> list[int]:
    """Return the words of a step, without addresses."""
    sum_kernel = scratch = 0
    if step.reduce_to is not None:
        sum_kernel = step.reduce_to[0]()
        scratch = NOTHING if step.scratch == NOTHING else applied(buffer_class, step.scratch)
    kind = 0
    if step.into_view or step.offset or sum_kernel or step.geometry[0]:
        kind = IN_PARTS | (ALIAS if step.in_place else 0)
    elif step.donate and target.nbytes == result.nbytes:
        kind = ALIAS
    elif step.sums_rows:
        kind = SUMS_ROWS
    streams = step.streams if blocking.is_streamed(result.nbytes) else 0
    return [
        0, 0, applied(buffer_class, target.nbytes), kind, target.nbytes, int(step.into_view), step.offset, sum_kernel,
        0, scratch, len(step.sources), 0, 0, 0, streams, *[value * 4 + place for place, value in step.sources],
    ]  # fmt: skip


def _in_blocks(steps: Sequence[Step]) -> tuple[int, int]:
    """Return the number of elements that all steps go over, and the divisor of a block's size; zeros if they differ."""
    elements, block = steps[0].elements if steps else 0, blocking.division.block
    if not block or elements < blocking.ENOUGH_BLOCKS * block:
        return 0, 0
    multiple = math.lcm(blocking.UNROLLED, *(step.multiple for step in steps))
    in_parts = all(step.reduce_to is None or step.partial_sums is not None for step in steps)
    same = all(step.elements == elements for step in steps)
    # A block must not be smaller than a row.
    return (elements, multiple) if same and in_parts and multiple <= blocking.MAX_BLOCK else (0, 0)


# From the bytes of a buffer to its size class, which is the index of a free list in the arena of a sweep. Classes are
# never forgotten, as plans hold them.
size_classes: Final[dict[int, int]] = {}
_EXACT_CLASSES: Final = 256


def buffer_class(nbytes: int) -> int:
    """Return the size class of a buffer.

    Sizes are rounded up to multiples of 64 bytes, a cache line. If a program has hundreds of sizes, further ones are
    rounded up by an eighth at most, so that there are never more than some hundred classes.

    >>> buffer_class(8) == buffer_class(64) != buffer_class(100)
    True
    """
    size = nbytes + 63 & ~63 or 64
    number = size_classes.get(size)
    if number is None:
        if len(size_classes) >= _EXACT_CLASSES:
            eighth = max(1 << (size - 1).bit_length() - 4, 64)
            size = -(-size // eighth) * eighth
        number = size_classes.setdefault(size, len(size_classes))
    return number


state.register("recording.steps: size classes", lambda: len(size_classes))

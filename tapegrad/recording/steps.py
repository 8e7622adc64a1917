"""Steps: how the sweep computes an operand's cotangent; and kernel calls, as which compiled code reads them.

words of a call
0 kernel, or 0 until it is needed   1 its dims   2 size class of the operand's cotangent
3 IN_PARTS if there are outer dimensions or one of 5 to 9 is not 0; ALIAS if it only copies;
SUMS_ROWS if the target has one element a row
4 bytes of the operand's cotangent   5 it must be zeroed first   6 byte offset in it
7 second kernel, which sums a broadcast operand's cotangent   8 its dims   9 size class between the two
10 number of sources   11 kernels that sum a block as parts, 12 and the parts; 13 the parts' size class
14 the bit of `accumulate` for which the kernel writes past the caches
15... each source: where it is found (2 bits), and there
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tapegrad.runtime import blocking, state
from tapegrad.runtime.memory import INTERPRETS, MEMORY, watch
from tapegrad.runtime.structs import WORD
from tapegrad.tape.layout import OBJECT_HEADER, Layout
from tapegrad.tape.lengths import applied
from tapegrad.tape.structs import KernelCallFields

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

(
    KERNEL, DIMS, TARGET_CLASS, KIND, TARGET_BYTES, PARTIAL, OFFSET, SUM_KERNEL, SUM_DIMS, BETWEEN_CLASS, N_SOURCES,
    PARTS_KERNEL, FINISH_KERNEL, PARTS_CLASS, STREAMED_BIT, SOURCES,
) = (field.offset // WORD for field in KernelCallFields.fields())  # fmt: skip

# Kinds of steps, beside 0.
IN_PARTS, ALIAS, SUMS_ROWS = 1, 2, 3
# Where a source of a kernel is found: the cotangent (plus bytes), a residual (position in the node) that is an array
# or a scalar object, or an address: of the step's number.
CT, ARRAY, INLINE, STATIC = 0, 1, 2, 3
Source = tuple[int, int]
NUMBER: Final[Source] = STATIC, 0

NOTHING: Final = -1  # in place of the bytes, and of the size class, of the buffer between a kernel and a sum
_word_in: Final = struct.Struct("q").unpack_from
TERMS: Final = 128  # of a part of a sum, which sums in blocks never cut


def address_of_array(array: np.ndarray) -> int:
    """Return where an array's elements are; to ask NumPy takes five times as long."""
    if INTERPRETS:
        watch(array, "memory of a plan")
    address: int = _word_in(MEMORY, id(array) + OBJECT_HEADER)[0]
    return address


class Step(NamedTuple):
    """How the compiled sweep computes one operand's cotangent.

    Attributes
    ----------
    kernel : callable
        Returns the kernel's address, compiling it when it is first needed.
    dims : sequence of int
        ``[number of outer dimensions, inner length, inner steps..., outer lengths..., outer steps...]`` with a step
        for each source and the target. Without outer dimensions, all behind the first word is the kernel's own affair.
    sources : sequence of (int, int)
    partial : bool
        The kernel writes to a part of the operand's cotangent only.
    offset : int
        Where that part begins, in bytes.
    total : tuple of callable and sequence of int, optional
        The kernel that undoes broadcasting, and its dims.
    between : int
        Bytes of the buffer between the two, or NOTHING where the cotangent itself is summed.
    parts : tuple of callable, callable and int, optional
        In place of `total`, where that can be done: kernels that sum a block as parts, and the parts; their bytes.
    number : int, optional
        The bits of a number that is a source, `NUMBER`.
    elements : int
        How many the kernel goes over, if it may do so in parts: a loop over one or two dimensions, with a contiguous
        target and, for a cotangent of so many elements, a contiguous cotangent; else 0.
    sums_rows : bool
        The kernel goes over rows and sums each: the target has one element a row.
    copies : bool
        The operand's cotangent is the result's, element by element.
    streams : int
        The bit of `accumulate` for which the kernel writes a new target past the caches; 0 if there is none. It is
        used where the result is large.
    """

    kernel: Callable[[], int]
    dims: Sequence[int]
    sources: Sequence[Source]
    partial: bool = False
    offset: int = 0
    total: tuple[Callable[[], int], Sequence[int]] | None = None
    between: int = 0
    number: int | None = None
    elements: int = 0
    copies: bool = False
    parts: tuple[Callable[[], int], Callable[[], int], int] | None = None
    sums_rows: bool = False
    streams: int = 0

    @property
    def grain(self) -> int:
        """Of how many elements a part of them must be a multiple: of rows, and of the terms of a sum's parts."""
        row = int(self.dims[1]) if self.elements and self.elements != self.dims[1] else 1
        inner = int(self.total[1][3]) if self.total is not None else 1
        return math.lcm(row, inner if inner > 1 else TERMS if self.total is not None else 1)


class KernelCall(NamedTuple):
    """Where a kernel call stands.

    Attributes
    ----------
    plan_word : int
        The word of the plan for its address.
    start : int
        Its first word in the array of all calls.
    kernel : callable
        See `Step`.
    """

    plan_word: int
    start: int
    kernel: Callable[[], int]


class KernelCalls(NamedTuple):
    """All kernel calls of a plan, with their geometry, to stand in one array.

    Attributes
    ----------
    words : list, or array of int
    addresses : tuple of (int, int)
        Words in which the address of another word is to stand, and that one.
    sources : tuple of (int, int)
        The same of sources.
    calls : tuple of KernelCall
    elements, multiple : int
        See `tapegrad.tape.structs.PlanFields`.
    python_operands : tuple of int
        Operands whose rules have no kernel.
    """

    words: list[int] | array[int]
    addresses: tuple[tuple[int, int], ...]
    sources: tuple[tuple[int, int], ...]
    calls: tuple[KernelCall, ...]
    elements: int
    multiple: int
    python_operands: tuple[int, ...]

    def place(self, block: array[int], address: int) -> None:
        """Write addresses into the array of the words, which has this address."""
        for word, target in self.addresses:
            block[word] = address + WORD * target
        for word, target in self.sources:
            block[word] = address + WORD * target << 2 | STATIC


def kernel_calls(plan: Plan, first_word: int, fused_word: int, before: Sequence[int] = ()) -> KernelCalls:
    """Return the kernel calls of a plan, compiled but for those that are not needed where a fused one serves both.

    Parameters
    ----------
    plan : Plan
    first_word, fused_word : int
        Words of the plan for the address of the first operand's call, and of the fused one.
    before : sequence of int
        Words that stand before them in the same array.
    """
    op = plan.op
    steps = [op.step(plan, operand) if plan.wants(operand) else None for operand in range(plan.arity)]
    fused = op.joint(plan) if op.joint and plan.wants(0) and plan.wants(1) else None
    own = [(first_word + operand, operand, step) for operand, step in enumerate(steps) if step is not None]
    elements, multiple = _in_blocks([step for _, _, step in own])
    if fused is not None:
        own.append((fused_word, 0, fused))
    words = list(before)
    calls, addresses, sources = [], [], []
    for plan_word, operand, step in own:
        start = len(words)
        words += _words_of(step, plan.layouts[operand], plan.result)
        addresses.append((start + DIMS, len(words)))
        words.extend(step.dims)
        if step.total is not None:
            addresses.append((start + SUM_DIMS, len(words)))
            words.extend(step.total[1])
        if step.number is not None:
            sources.append((start + SOURCES + step.sources.index(NUMBER), len(words)))
            words.append(step.number)
        if plan_word == fused_word or fused is None:
            words[start + KERNEL] = step.kernel()
        if elements and step.parts is not None:
            parts, finish, nbytes = step.parts
            words[start + PARTS_KERNEL : start + STREAMED_BIT] = parts(), finish(), applied(buffer_class, nbytes)
        calls.append(KernelCall(plan_word, start, step.kernel))
    python = tuple([operand for operand, step in enumerate(steps) if step is None and plan.wants(operand)])
    return KernelCalls(words, tuple(addresses), tuple(sources), tuple(calls), elements, multiple, python)


def _words_of(step: Step, target: Layout, result: Layout) -> list[int]:
    """Return the words of a step; addresses of geometry are not known yet."""
    sum_kernel = scratch = 0
    if step.total is not None:
        sum_kernel = step.total[0]()
        scratch = NOTHING if step.between == NOTHING else applied(buffer_class, step.between)
    kind = 0
    if step.partial or step.offset or sum_kernel or step.dims[0]:
        kind = IN_PARTS
    elif step.copies and target.nbytes == result.nbytes:
        kind = ALIAS
    elif step.sums_rows:
        kind = SUMS_ROWS
    streams = step.streams if result.nbytes >= blocking.STREAMED else 0
    return [
        0, 0, applied(buffer_class, target.nbytes), kind, target.nbytes, int(step.partial), step.offset, sum_kernel, 0,
        scratch, len(step.sources), 0, 0, 0, streams, *[value * 4 + place for place, value in step.sources],
    ]  # fmt: skip


def _in_blocks(steps: Sequence[Step]) -> tuple[int, int]:
    """Return how many elements all steps go over, 0 if not the same, and of how many a block must be a multiple."""
    elements, block = steps[0].elements if steps else 0, blocking.division.block
    if not block or elements < blocking.ENOUGH_BLOCKS * block:
        return 0, 0
    grain = math.lcm(blocking.UNROLLED, *(step.grain for step in steps))
    divided = all(step.elements == elements and (step.total is None or step.parts is not None) for step in steps)
    # A row that is longer than a block would be cut.
    return (elements, grain) if divided and grain <= blocking.MAX_BLOCK else (0, 0)


# From the bytes of a buffer to its class: the number of the free list that it goes to in a sweep's arena.  Classes are
# never forgotten: plans hold their numbers.
size_classes: Final[dict[int, int]] = {}
_EXACT_CLASSES: Final = 256


def buffer_class(nbytes: int) -> int:
    """Return the size class of a buffer.

    Sizes are exact up to the 64 bytes of a cache line; only a program with hundreds of sizes has them rounded up, by
    an eighth at most, so that there are never more than some hundred classes.

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

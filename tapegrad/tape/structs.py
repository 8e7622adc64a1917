"""The tape's structs, as compiled code reads them: entries, pages, plans and kernel calls."""

from __future__ import annotations

from typing import Final

from tapegrad.runtime.objects import List, Object
from tapegrad.runtime.structs import Array, Struct, Table, embedded, sizeof
from tapegrad.tape.geometry import Geometry, SumGeometry

__all__ = [
    "ENTRIES", "ENTRY_BYTES", "PAGE_BYTES", "TIMES", "Entry", "KernelCallFields", "PageHead", "PlanFields",
    "ProgramFields", "ProgramInput", "ProgramOutput", "WriteTimes",
]  # fmt: skip


class KernelCallFields(Struct):
    """How the sweep computes one operand's cotangent: see `tapegrad.recording.steps.Step`."""

    kernel: int  # its address, 0 until it is needed
    geometry: Geometry
    target_class: int  # size class of the operand's cotangent
    # IN_PARTS if the geometry has outer dimensions, or one of the fields `into_view` to `sum_geometry` is not 0; ALIAS
    # if both cotangents are equal (with IN_PARTS: but for what the kernel changes in place); SUMS_ROWS if the
    # target has one element a row; else 0.
    kind: int
    target_bytes: int
    into_view: int  # the target must be zeroed first
    offset: int  # bytes from its beginning
    sum_kernel: int  # sums a broadcast operand's cotangent
    sum_geometry: SumGeometry
    scratch_class: int  # size class of the buffer between the two kernels, or NOTHING
    n_sources: int
    partial_sums_kernel: int  # sums a block as partial sums
    combine_kernel: int  # adds up partial sums
    partial_sums_class: int
    streams: int  # the bit of `accumulate` that writes a new target past the caches, or 0
    sources: Array[int] = embedded()  # where a source is found (2 bits), and there


class ProgramInput(Struct):
    """Where machine code finds an input."""

    source: int  # as the sources of a kernel call
    scalar: Object  # the class of a number that may stand in place of an array; or 0


class ProgramOutput(Struct):
    """The cotangent of an operand, which machine code computes."""

    operand: int
    size_class: int
    add_kernel: int  # adds it to a cotangent that is there already
    add_geometry: Geometry


class ProgramFields(Struct):
    """The machine code of a program that computes the cotangents of all operands at once.

    An entry of several results has such a program for each set of results that have cotangents.
    """

    next: ProgramFields  # that of another set, or 0
    given: int  # a bit for each result that has a cotangent; 0 if there is one result
    n_results: int  # 0 if there is one
    results: Array[int]  # where the cotangent of each begins in that of the entry, in bytes
    code: int
    n_inputs: int
    inputs: Table[ProgramInput]
    n_outputs: int
    outputs: Table[ProgramOutput]
    scratch: int  # where the scratch memory of a call begins, behind the addresses of inputs, outputs and copies
    size_class: int  # of the memory of a call
    last_class: int  # the largest of all size classes here


class PlanFields(Struct):
    """The words of a plan, which the recording path and sweeps read."""

    arity: int
    result_class: int  # size class of the result's cotangent
    result_bytes: int
    state: int  # READY, PYTHON, PENDING, LAST_FIRST, BY_RULES
    forward: Object
    result: Object  # its layout
    save: int  # the residuals: a bit for each operand, then one for the result
    wanted_operands: int  # a bit for each operand that wants a gradient
    fused: KernelCallFields  # one call for both operands, or 0
    elements: int  # number of elements that every kernel call goes over; 0 if the plan cannot be part of a group
    multiple: int  # the size of a block must be a multiple of it
    pack: Object  # the function that makes tensors of several results, or 0
    is_view: int  # whether the result may be a view of the operand
    itself: Object  # the `Plan` that has these words
    program: ProgramFields  # what computes the cotangents of all operands in place of the rule in Python, or 0
    calls: Array[KernelCallFields] = embedded()  # for each operand, 0 where no gradient is wanted


class Entry(Struct):
    """A record of the tape: an operation that was computed, or a leaf (see `tapegrad.tape.entries`)."""

    plan: PlanFields  # 0 for a leaf
    node: List  # for a leaf its `Leaf`
    operands: Array[Entry] = embedded(3)  # 0 where no gradient is wanted; more than three stand in a side array
    flags: int  # CONSUMED, WANTED, RESHAPED
    mark: int  # 1 + the id that a sweep gave it; 0 otherwise
    stop: int  # whether a sweep has to stop here for hooks


ENTRY_BYTES: Final = sizeof(Entry)
ENTRIES: Final = 256  # of a page, its head among them
PAGE_BYTES: Final = ENTRIES * ENTRY_BYTES
TIMES: Final = 64  # latest writes to a storage whose times are known


class WriteTimes(Struct):
    """When a storage was written to in place: see `tapegrad.tape.versions`."""

    version: int  # how often
    times: Array[int] = embedded(TIMES)  # that of write n is number n modulo TIMES


class PageHead(Struct):
    """The head of a page, in place of its first two entries."""

    sequence: int  # pages are numbered in the order of recording
    active: int  # whether `find` has reached the page
    reached: Array[int] = embedded(4)  # a bit for each entry that `find` has reached

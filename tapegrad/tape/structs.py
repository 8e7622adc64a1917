"""What compiled code sees of the tape: entries and pages, plans and their kernel calls."""

from __future__ import annotations

from typing import Final

from tapegrad.runtime.objects import List, Object
from tapegrad.runtime.structs import Array, Struct, embedded, sizeof
from tapegrad.tape.geometry import Geometry, SumGeometry

__all__ = ["ENTRY_BYTES", "PAGE_BYTES", "Entry", "KernelCallFields", "PageHead", "PlanFields"]


class KernelCallFields(Struct):
    """How the sweep computes one operand's cotangent: see `tapegrad.recording.plan.Step`."""

    kernel: int  # 0 until it is needed
    geometry: Geometry
    target_class: int  # size class of the operand's cotangent
    # IN_PARTS if there are outer dimensions or one of the next six fields is not 0; ALIAS if both cotangents are equal.
    kind: int
    target_bytes: int
    partial: int  # the target must be zeroed first
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


class PlanFields(Struct):
    """What a sweep, and the recording path, read of a plan."""

    arity: int
    result_class: int  # size class of the result's cotangent, and its bytes
    result_bytes: int
    state: int  # READY, PYTHON, PENDING
    forward: Object
    result: Object  # its layout
    save: int  # residuals: a bit for each operand, and one for the result
    wanted_operands: int  # a bit for each operand that wants a gradient
    fused: KernelCallFields  # for both operands at once, or 0
    elements: int  # that every kernel call goes over; 0 if the plan cannot be a part of a group
    multiple: int  # of how many elements a block must be a multiple
    pack: Object  # makes several results of the forward's, or 0
    is_view: int  # the result may be a view of the operand
    itself: Object  # the plan, of which this is the memory
    calls: Array[KernelCallFields] = embedded()  # for each operand, 0 where no gradient is wanted


class Entry(Struct):
    """A record of the tape: an operation that was computed, or a leaf."""

    plan: PlanFields  # 0 for a leaf
    node: List  # of a leaf its `Leaf`
    operands: Array[Entry] = embedded(3)  # 0 where no gradient is wanted; more than three stand in a side array
    flags: int  # CONSUMED, WANTED
    mark: int  # 1 + the number that a sweep gave it; 0 otherwise
    stop: int  # the sweep has to stop here for hooks


ENTRY_BYTES: Final = sizeof(Entry)
PAGE_BYTES: Final = 256 * ENTRY_BYTES


class PageHead(Struct):
    """The head of a page, in place of its first two entries."""

    sequence: int
    active: int  # a walk has reached the page
    reached: Array[int] = embedded(4)  # a bit for each entry that a walk has reached

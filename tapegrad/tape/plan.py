"""PlanCache: all that is known about one operation on operands of given layouts, worked out once.

An entry names its plan, so neither the recording path nor the sweep looks at a shape.  A plan's *steps*, one for each
operand that wants a gradient, say which kernel turns the cotangent of the result into the operand's, with which
residuals and strides.  They are made when a sweep first meets the plan; compiled code reads them as integers. All
steps of a plan, with their geometry, stand in one array.

    plan words   0 arity   1 size class, 2 bytes of the result's cotangent   3 READY, PYTHON, PENDING
                 4 the function that computes the forward   5 layout of the result   6 residuals: a bit for each operand
                 and one for the result   7 a bit for each operand that wants a gradient
                 8 address of the step for both operands at once, or 0
                 9 the elements that every step goes over, 0 if the plan is none for runs (`tapegrad.sweep.groups`)
                 10 of how many elements a block must be a multiple   11 the function that makes several results of
                 the forward's, or 0   12 whether the result shares its operand's memory   13 the plan itself
                 14... address of each step
    step words   0 kernel, or 0 until it is needed   1 its dims   2 size class of the operand's cotangent
                 3 IN_PARTS if there are outer dimensions or one of 5 to 9 is not 0; ALIAS if it only copies;
                 SUMS_ROWS if the target has one element a row
                 4 bytes of the operand's cotangent   5 it must be zeroed first   6 byte offset in it
                 7 second kernel, which sums a broadcast operand's cotangent   8 its dims   9 size class between the two
                 10 number of sources   11 kernels that sum a block as parts, 12 and the parts; 13 the parts' size class
                 14... each source: where it is found (2 bits), and there
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tapegrad.runtime import blocking, state
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.memory import INTERPRETS, object_at, watch
from tapegrad.runtime.structs import WORD
from tapegrad.tape.entries import FIRST_OPERAND
from tapegrad.tape.layout import OBJECT_HEADER, Layout
from tapegrad.tape.structs import KernelCallFields, PlanFields

if TYPE_CHECKING:
    from tapegrad.ops.table.op import Op

(
    ARITY, RESULT_CLASS, RESULT_BYTES, STATE, FORWARD, RESULT, SAVE, WANTED_OPERANDS, JOINT, ELEMENTS, GRAIN, PACK,
    IS_VIEW, ITSELF, STEPS,
) = (field.offset // WORD for field in PlanFields.fields())  # fmt: skip
READY, PYTHON, PENDING = 1, 2, 4  # of the word STATE, 0 before the steps are made
(
    KERNEL, DIMS, TARGET_CLASS, KIND, TARGET_BYTES, PARTIAL, OFFSET, SUM_KERNEL, SUM_DIMS, BETWEEN_CLASS, N_SOURCES,
    PARTS_KERNEL, FINISH_KERNEL, PARTS_CLASS, STREAMED_BIT, SOURCES,
) = (field.offset // WORD for field in KernelCallFields.fields())  # fmt: skip

# Kinds of steps, beside 0.
IN_PARTS, ALIAS, SUMS_ROWS = 1, 2, 3
# Where a source of a kernel is found: the cotangent (plus bytes), a residual (position in the node) that is an array
# or a scalar object, or a constant's address.
CT, ARRAY, INLINE, STATIC = 0, 1, 2, 3
Source = tuple[int, int]

NOTHING: Final = -1  # in place of the bytes, and of the size class, of the buffer between a kernel and a sum
TERMS: Final = 128  # of a part of a sum, which sums in blocks never cut


_preparing = module_lock()


class _Call(NamedTuple):
    """Where a kernel call stands.

    Attributes
    ----------
    place : int
        The word of the plan for its address.
    start : int
        Its first word in the array of all calls.
    geometry : int
        The first word of its geometry there.
    kernel : callable
        See `Step`.
    """

    place: int
    start: int
    geometry: int
    kernel: Callable[[], int]


class _Siblings:
    """What plans share that differ in the number of their elements only.

    Attributes
    ----------
    model : Plan, optional
        One whose kernel calls the others can have with other counts.
    """

    __slots__ = ("model",)

    def __init__(self) -> None:
        self.model: Plan | None = None


def address_of_array(array: np.ndarray) -> int:
    """Return where an array's elements are; to ask NumPy takes five times as long."""
    if INTERPRETS:
        watch(array, "memory of a plan")
    return ctypes.c_int64.from_address(id(array) + OBJECT_HEADER).value


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
    keep : tuple
        Objects whose addresses stand in the sources.
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
    dims: Sequence[int] | np.ndarray
    sources: Sequence[Source]
    partial: bool = False
    offset: int = 0
    total: tuple[Callable[[], int], Sequence[int] | np.ndarray] | None = None
    between: int = 0
    keep: tuple[Any, ...] = ()
    elements: int = 0
    copies: bool = False
    parts: tuple[Callable[[], int], Callable[[], int], int] | None = None
    sums_rows: bool = False
    streams: int = 0

    @property
    def is_flat(self) -> bool:
        """Whether it goes over contiguous elements and single ones: only the count depends on their number."""
        return not self.keep and self.total is None and not self.partial and not self.offset and not self.dims[0]

    @property
    def grain(self) -> int:
        """Of how many elements a part of them must be a multiple: of rows, and of the terms of a sum's parts."""
        row = int(self.dims[1]) if self.elements and self.elements != self.dims[1] else 1
        inner = int(self.total[1][3]) if self.total is not None else 1
        return math.lcm(row, inner if inner > 1 else TERMS if self.total is not None else 1)


class Plan:
    """One operation on operands of given layouts.

    Attributes
    ----------
    op : Op
    layouts : tuple of Layout
        Of the operands; those of the operands that want a gradient are tracked.
    attrs : dict
        Values of the op's attributes.
    forward : callable
        From the operands' data to the result's.
    result : Layout
    records : bool
        Whether an operand wants a gradient and the op can give it.
    saved : tuple of str
        Names of the residuals, in the order in which they stand in a node.
    python_operands : tuple of int
        Operands whose rules have no kernel, known after `prepare`.
    address : int
        Of the plan's words.
    """

    __slots__ = (
        "__weakref__", "_block", "_calls", "_keep", "_siblings", "_words", "address", "arity", "attrs", "forward",
        "layouts", "name", "op", "pack", "python_operands", "records", "result", "rule_calls", "save", "saved",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        layouts: tuple[Layout, ...],
        attrs: dict[str, Any],
        forward: Callable[..., Any],
        result: Layout,
        extra: tuple[str, ...] = (),
        pack: Callable[..., Any] | None = None,
    ) -> None:
        layouts = op.differentiable_in(layouts)
        self.op, self.layouts, self.attrs = op, layouts, attrs
        self.forward, self.pack = forward, pack
        self.name, self.arity = op.name, len(layouts)
        wanted = tuple([layout.requires_grad for layout in layouts]) if result.floating else ()
        self.records = True in wanted
        if self.records:
            self.result = result.tracked
            saved, self.save = op.residuals(wanted)
            self.saved = saved + extra
            bits = sum([1 << number for number, own in enumerate(wanted[:62]) if own]) or 1
        else:
            self.result, self.saved, self.save, bits = result.plain, (), 0, 0
        self._words = np.array(
            [
                self.arity, buffer_class(result.nbytes), result.nbytes, 0, id(forward), id(self.result),
                0 if op.variadic else self.save, bits, 0, 0, 0, id(pack) if pack else 0, 0, id(self),
                *[0] * self.arity,
            ],
            dtype=np.int64,
        )  # fmt: skip
        self.address = address_of_array(self._words)
        self._siblings: _Siblings | None = None
        self._calls: Sequence[_Call] = ()
        self._block: Any = None  # the words of the kernel calls
        self._keep: Any = None  # objects whose addresses stand there
        self.rule_calls: tuple[Any, ...] = ()  # what rules are called with (`tapegrad.ops.table.rules`), when one was
        self.python_operands: tuple[int, ...] = ()  # those whose rule the sweep has to call in Python
        if self.records:
            _alive.add(weakref.ref(self, _alive.discard))

    def wants(self, operand: int) -> bool:
        """Whether a gradient is wanted for the operand with this number."""
        return self.layouts[operand].requires_grad

    def note_view(self) -> None:
        """Note that the result shares its operand's memory."""
        self._words[IS_VIEW] = 1

    def position(self, name: str) -> int:
        """Return where a node keeps the residual of this name."""
        return FIRST_OPERAND + self.arity + self.saved.index(name)

    def source(self, name: str) -> Source:
        """Return where a kernel finds the residual of this name, or the cotangent."""
        if name == "ct":
            return (CT, 0)
        return (INLINE if self.layout(name).inline else ARRAY), self.position(name)

    def layout(self, name: str) -> Layout:
        """Return the layout of an operand, of the result (``out``), or of its cotangent (``ct``)."""
        if name in ("ct", "out"):
            return self.result
        return self.layouts[self.op.operand_number(name)]

    def prepare(self) -> None:
        """Make the steps and compile their kernels, so that a sweep can run."""
        with _preparing:
            if not self._words[STATE]:  # another thread may have done it, and reads the words of its steps
                self._prepare()

    def _prepare(self) -> None:
        steps = [self.op.step(self, operand) if self.wants(operand) else None for operand in range(self.arity)]
        joint = self.op.joint(self) if self.op.joint and self.wants(0) and self.wants(1) else None
        places = [(STEPS + operand, step) for operand, step in enumerate(steps) if step is not None]
        elements, grain = _for_runs([step for _, step in places])
        if joint is not None:
            places.append((JOINT, joint))
        words: list[int] = []
        calls, addresses = [], []  # words in which an address within the array stands
        for place, step in places:
            start, geometry = len(words), len(words) + SOURCES + len(step.sources)
            words += self._words_of(step, self.layouts[max(place - STEPS, 0)])
            words += step.dims if isinstance(step.dims, list) else map(int, step.dims)
            addresses.append((start + DIMS, geometry))
            if step.total is not None:
                addresses.append((start + SUM_DIMS, len(words)))
                words += map(int, step.total[1])
            if place == JOINT or joint is None:
                words[start + KERNEL] = step.kernel()
            if elements and step.parts is not None:
                parts, finish, nbytes = step.parts
                words[start + PARTS_KERNEL : start + STREAMED_BIT] = parts(), finish(), buffer_class(nbytes)
            calls.append(_Call(place, start, geometry, step.kernel))
        block = np.array(words, dtype=np.int64)
        address = address_of_array(block)
        for word, target in addresses:
            block[word] = address + WORD * target
        self._block, self._calls, self._keep = block, calls, [step.keep for _, step in places if step.keep]
        own = self._words
        own[ELEMENTS], own[GRAIN] = elements, grain
        for call in calls:
            own[call.place] = address + WORD * call.start
        self.python_operands = tuple([n for n, step in enumerate(steps) if step is None and self.wants(n)])
        own[STATE] = READY | PYTHON if self.python_operands else READY
        siblings = self._siblings
        if siblings is not None and self._is_whole() and all(step.is_flat for _, step in places):
            siblings.model = self

    def _is_whole(self) -> bool:
        """Whether a sweep goes over all elements at once."""
        block = blocking.division.block
        return not block or self.result.size < blocking.ENOUGH_BLOCKS * block

    def share_kernel_calls(self) -> None:
        """Let plans that are made `like` this one have its kernel calls, with other counts."""
        self._siblings = _Siblings()

    def like(self, layouts: tuple[Layout, ...], result: Layout, forward: Callable[..., Any]) -> Plan:
        """Return the plan of the same elementwise operation on operands with another number of elements."""
        plan: Plan = object.__new__(Plan)
        plan.op, plan.name, plan.arity, plan.attrs, plan.pack = self.op, self.name, self.arity, self.attrs, self.pack
        plan.records, plan.save, plan.saved = self.records, self.save, self.saved
        plan.layouts, plan.forward = self.op.differentiable_in(layouts), forward
        plan.result = result.tracked if self.records else result.plain
        plan.rule_calls, plan._keep = (), None
        siblings = plan._siblings = self._siblings
        model = siblings.model if siblings is not None and plan._is_whole() else None
        words = plan._words = (model or self)._words.copy()
        plan.address = address_of_array(words)
        words[RESULT_CLASS], words[RESULT_BYTES] = buffer_class(result.nbytes), result.nbytes
        words[FORWARD], words[RESULT], words[ITSELF], words[ELEMENTS] = id(forward), id(plan.result), id(plan), 0
        if model is not None:
            plan._take_calls(model)
        else:
            plan._block, plan._calls, plan.python_operands = None, (), ()
            words[STATE] = words[JOINT] = 0
        if self.records:
            _alive.add(weakref.ref(plan, _alive.discard))
        return plan

    def _take_calls(self, model: Plan) -> None:
        """Take the kernel calls of a plan with another number of elements."""
        words, size = self._words, self.result.size
        block = self._block = model._block.copy()
        address = address_of_array(block)
        self._calls, self.python_operands = model._calls, model.python_operands
        for place, start, geometry, _ in model._calls:
            nbytes = self.layouts[max(place - STEPS, 0)].nbytes
            words[place] = address + WORD * start
            block[start + DIMS] = address + WORD * geometry
            block[start + TARGET_CLASS], block[start + TARGET_BYTES] = buffer_class(nbytes), nbytes
            block[geometry + 1] = size

    def complete(self) -> None:
        """Compile the kernels of single operands, which are needed where a joint step cannot run."""
        for call in self._calls:
            self._block[call.start + KERNEL] = call.kernel()

    def _words_of(self, step: Step, layout: Layout) -> list[int]:
        """Return the words of a step; addresses of geometry are not known yet."""
        sum_kernel = scratch = 0
        if step.total is not None:
            sum_kernel = step.total[0]()
            scratch = NOTHING if step.between == NOTHING else buffer_class(step.between)
        kind = 0
        if step.partial or step.offset or sum_kernel or step.dims[0]:
            kind = IN_PARTS
        elif step.copies and layout.nbytes == self.result.nbytes:
            kind = ALIAS
        elif step.sums_rows:
            kind = SUMS_ROWS
        streams = step.streams if self.result.nbytes >= blocking.STREAMED else 0
        return [
            0, 0, buffer_class(layout.nbytes), kind, layout.nbytes, step.partial, step.offset, sum_kernel, 0, scratch,
            len(step.sources), 0, 0, 0, streams, *[value << 2 | place for place, value in step.sources],
        ]  # fmt: skip

    def forget_steps(self) -> None:
        """Have them made again when a sweep next meets the plan."""
        self._words[STATE] = 0


def _for_runs(steps: Sequence[Step]) -> tuple[int, int]:
    """Return how many elements all steps go over, 0 if not the same, and of how many a block must be a multiple."""
    elements, block = steps[0].elements if steps else 0, blocking.division.block
    if not block or elements < blocking.ENOUGH_BLOCKS * block:
        return 0, 0
    grain = math.lcm(blocking.UNROLLED, *(step.grain for step in steps))
    divided = all(step.elements == elements and (step.total is None or step.parts is not None) for step in steps)
    # A row that is longer than a block would be cut.
    return (elements, grain) if divided and grain <= blocking.MAX_BLOCK else (0, 0)


# Plans that record. They are noted without a call of Python, when they are made and when they die.
_alive: Final[set[weakref.ref[Plan]]] = set()


def alive() -> list[Plan]:
    """Return the plans that entries may name."""
    return [plan for reference in _alive.copy() if (plan := reference()) is not None]


def plan_at(address: int) -> Plan:
    """Return the plan with this address, which the caller knows to be alive: the node of every entry holds its plan."""
    plan: Plan = object_at(ctypes.c_int64.from_address(address + WORD * ITSELF).value)
    return plan


def _forget_steps() -> None:
    for plan in alive():
        plan.forget_steps()


blocking.on_new_block.append(_forget_steps)
state.register("tape.plan: plans that are alive", lambda: len(_alive))

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
    size = max(-(-nbytes // 64), 1) * 64
    number = size_classes.get(size)
    if number is None:
        if len(size_classes) >= _EXACT_CLASSES:
            eighth = max(1 << (size - 1).bit_length() - 4, 64)
            size = -(-size // eighth) * eighth
        number = size_classes.setdefault(size, len(size_classes))
    return number


state.register("tape.plan: size classes", lambda: len(size_classes))

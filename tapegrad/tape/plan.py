"""PlanCache: all that is known about one operation on operands of given layouts, worked out once.

An entry names its plan, so neither the recording path nor the sweep looks at a shape.  A plan's *steps*, one for each
operand that wants a gradient, say which kernel turns the cotangent of the result into the operand's, with which
residuals and strides.  They are made when a sweep first meets the plan; compiled code reads them as integers.

    plan words   0 arity   1 size class, 2 bytes of the result's cotangent   3 READY, PYTHON, PENDING
                 4 the function that computes the forward   5 layout of the result   6 residuals: a bit for each operand
                 and one for the result   7 a bit for each operand that wants a gradient
                 8 address of the step for both operands at once, or 0
                 9 the elements that every step goes over, 0 if the plan is none for runs (`tapegrad.sweep.groups`)
                 10 of how many elements a block must be a multiple   11 the function that makes several results of
                 the forward's, or 0   12 whether the result shares its operand's memory   13... address of each step
    step words   0 kernel, or 0 until it is needed   1 its dims   2 size class of the operand's cotangent
                 3 IN_PARTS if there are outer dimensions or one of 5 to 9 is not 0; PASSES if it only copies;
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
from tapegrad.runtime.memory import INTERPRETS, watch
from tapegrad.runtime.structs import WORD
from tapegrad.tape.entries import FIRST_OPERAND
from tapegrad.tape.layout import OBJECT_HEADER, Layout
from tapegrad.tape.structs import KernelCallFields, PlanFields

if TYPE_CHECKING:
    from tapegrad.ops.table.op import Op

(
    ARITY, RESULT_CLASS, RESULT_BYTES, STATE, FORWARD, RESULT, SAVE, WANTED_OPERANDS, JOINT, ELEMENTS, GRAIN, PACK,
    IS_VIEW, STEPS,
) = (field.offset // WORD for field in PlanFields.fields())  # fmt: skip
READY, PYTHON, PENDING = 1, 2, 4  # of the word STATE, 0 before the steps are made
(
    KERNEL, DIMS, TARGET_CLASS, KIND, TARGET_BYTES, PARTIAL, OFFSET, SUM_KERNEL, SUM_DIMS, BETWEEN_CLASS, N_SOURCES,
    PARTS_KERNEL, FINISH_KERNEL, PARTS_CLASS, SOURCES,
) = (field.offset // WORD for field in KernelCallFields.fields())  # fmt: skip

# Kinds of steps, beside 0.
IN_PARTS, PASSES, SUMS_ROWS = 1, 2, 3
# Where a source of a kernel is found: the cotangent (plus bytes), a residual (position in the node) that is an array
# or a scalar object, or a constant's address.
CT, ARRAY, INLINE, STATIC = 0, 1, 2, 3
Source = tuple[int, int]

NOTHING: Final = -1  # in place of the bytes, and of the size class, of the buffer between a kernel and a sum
TERMS: Final = 128  # of a part of a sum, which sums in blocks never cut


_preparing = module_lock()


class _Alike:
    """What plans share that differ in the number of their elements only.

    Attributes
    ----------
    calls : list
        Of each step the word of the plan for its address, the kernel, and the step's words with its geometry behind
        them, which begins at that word.
    python_operands : tuple of int
    """

    __slots__ = ("calls", "python_operands")

    def __init__(self) -> None:
        self.calls: Sequence[tuple[int, Callable[[], int], np.ndarray, int]] = ()
        self.python_operands: tuple[int, ...] = ()


_SHARED_BY_SIBLINGS: Final = ("_alike", "arity", "attrs", "name", "op", "pack", "records", "save", "saved")


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
    dims : numpy.ndarray of int64
        ``[number of outer dimensions, inner length, inner steps..., outer lengths..., outer steps...]`` with a step
        for each source and the target. Without outer dimensions, all behind the first word is the kernel's own affair.
    sources : sequence of (int, int)
    partial : bool
        The kernel writes to a part of the operand's cotangent only.
    offset : int
        Where that part begins, in bytes.
    total : tuple of callable and numpy.ndarray, optional
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
    """

    kernel: Callable[[], int]
    dims: np.ndarray
    sources: Sequence[Source]
    partial: bool = False
    offset: int = 0
    total: tuple[Callable[[], int], np.ndarray] | None = None
    between: int = 0
    keep: tuple[Any, ...] = ()
    elements: int = 0
    copies: bool = False
    parts: tuple[Callable[[], int], Callable[[], int], int] | None = None
    sums_rows: bool = False

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
        "__weakref__", "_alike", "_steps", "_words", "address", "arity", "attrs", "forward", "layouts", "name",
        "op", "pack", "python_operands", "records", "result", "rule_calls", "save", "saved",
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
        self.name = op.name
        self.arity = len(layouts)
        self.records = result.floating and any(layout.requires_grad for layout in layouts)
        self.result = result.tracked if self.records else result.plain
        self.saved: tuple[str, ...] = op.residuals(layouts) + extra if self.records else ()
        self.save = op.save_code(self.saved)
        wanted = sum(1 << number for number in range(min(self.arity, 62)) if self.records and self.wants(number))
        self._words = np.array(
            [
                self.arity, buffer_class(result.nbytes), result.nbytes, 0, id(self.forward), id(self.result),
                0 if op.variadic else self.save, wanted or self.records, 0, 0, 0, id(pack) if pack else 0, 0,
                *[0] * self.arity,
            ],
            dtype=np.int64,
        )  # fmt: skip
        self._alike: _Alike | None = None
        self._register()

    def _register(self) -> None:
        self.address = address_of_array(self._words)
        # Kernel and words of each step, and what holds the arrays whose addresses stand there.
        self._steps: list[tuple[Callable[[], int], np.ndarray, Any]] = []
        self.rule_calls: tuple[Any, ...] = ()  # what rules are called with (`tapegrad.ops.table.rules`), when one was
        self.python_operands: tuple[int, ...] = ()  # those whose rule the sweep has to call in Python
        if self.records:
            plans_by_address[self.address] = self

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
        alike = self._alike
        if alike is not None and alike.calls and self._is_whole():
            self._prepare_like(alike)
            return
        steps = [self.op.step(self, operand) if self.wants(operand) else None for operand in range(self.arity)]
        joint = self.op.joint(self) if self.op.joint and self.wants(0) and self.wants(1) else None
        calls = [(STEPS + operand, step) for operand, step in enumerate(steps) if step is not None]
        if joint is not None:
            calls.append((JOINT, joint))
        self._steps = [
            (step.kernel, self._words_of(step, self.layouts[max(place - STEPS, 0)]), step) for place, step in calls
        ]
        elements, self._words[GRAIN] = _for_runs([step for step in steps if step is not None])
        self._words[ELEMENTS] = elements
        for (place, step), (_, words, _) in zip(calls, self._steps, strict=True):
            if place == JOINT or joint is None:
                words[KERNEL] = step.kernel()
            if elements and step.parts is not None:
                parts, finish, nbytes = step.parts
                words[PARTS_KERNEL:SOURCES] = parts(), finish(), buffer_class(nbytes)
            self._words[place] = address_of_array(words)
        self.python_operands = tuple(n for n, step in enumerate(steps) if step is None and self.wants(n))
        self._words[STATE] = READY | PYTHON if self.python_operands else READY
        if alike is not None and self._is_whole() and all(step.is_flat for _, step in calls):
            alike.python_operands = self.python_operands
            alike.calls = [
                (place, step.kernel, np.concatenate((words, step.dims)), len(words))
                for (place, step), (_, words, _) in zip(calls, self._steps, strict=True)
            ]

    def _is_whole(self) -> bool:
        """Whether a sweep goes over all elements at once."""
        block = blocking.division.block
        return not block or self.result.size < blocking.ENOUGH_BLOCKS * block

    def _prepare_like(self, alike: _Alike) -> None:
        """Make the steps as those of a plan with another number of elements."""
        steps: list[tuple[Callable[[], int], np.ndarray, Any]] = []
        for place, kernel, words, geometry in alike.calls:
            layout = self.layouts[max(place - STEPS, 0)]
            own = words.copy()
            address = address_of_array(own)
            own[DIMS] = address + 8 * geometry
            own[geometry + 1] = self.result.size
            own[TARGET_CLASS], own[TARGET_BYTES] = buffer_class(layout.nbytes), layout.nbytes
            self._words[place] = address
            steps.append((kernel, own, None))
        self._words[ELEMENTS] = 0
        self._steps, self.python_operands = steps, alike.python_operands
        self._words[STATE] = READY | PYTHON if self.python_operands else READY

    def share_kernel_calls(self) -> None:
        """Let plans that are made `like` this one have its kernel calls, with other counts."""
        self._alike = _Alike()

    def like(self, layouts: tuple[Layout, ...], result: Layout, forward: Callable[..., Any]) -> Plan:
        """Return the plan of the same elementwise operation on operands with another number of elements."""
        plan: Plan = object.__new__(Plan)
        for name in _SHARED_BY_SIBLINGS:
            setattr(plan, name, getattr(self, name))
        plan.layouts, plan.forward = plan.op.differentiable_in(layouts), forward
        plan.result = result.tracked if self.records else result.plain
        words = plan._words = self._words.copy()
        words[RESULT_CLASS], words[RESULT_BYTES] = buffer_class(result.nbytes), result.nbytes
        words[FORWARD], words[RESULT] = id(forward), id(plan.result)
        words[STATE] = words[JOINT] = words[ELEMENTS] = 0
        plan._register()
        return plan

    def complete(self) -> None:
        """Compile the kernels of single operands, which are needed where a joint step cannot run."""
        for kernel, words, _ in self._steps:
            words[KERNEL] = kernel()

    def _words_of(self, step: Step, layout: Layout) -> np.ndarray:
        sum_kernel = sum_dims = scratch = 0
        if step.total is not None:
            get_kernel, dims = step.total
            sum_kernel, sum_dims = get_kernel(), address_of_array(dims)
            scratch = NOTHING if step.between == NOTHING else buffer_class(step.between)
        kind = 0
        if step.partial or step.offset or sum_kernel or step.dims[0]:
            kind = IN_PARTS
        elif step.copies and layout.nbytes == self.result.nbytes:
            kind = PASSES
        elif step.sums_rows:
            kind = SUMS_ROWS
        return np.array(
            [
                0, address_of_array(step.dims), buffer_class(layout.nbytes), kind, layout.nbytes, step.partial,
                step.offset, sum_kernel, sum_dims, scratch, len(step.sources), 0, 0, 0,
                *(value << 2 | place for place, value in step.sources),
            ],
            dtype=np.int64,
        )  # fmt: skip

    def forget_steps(self) -> None:
        """Have them made again when a sweep next meets the plan."""
        self._words[STATE] = 0


def _for_runs(steps: Sequence[Step]) -> tuple[int, int]:
    """Return how many elements all steps go over, 0 if not the same, and of how many a block must be a multiple."""
    elements = steps[0].elements if steps else 0
    grain = math.lcm(blocking.UNROLLED, *(step.grain for step in steps))
    divided = all(step.elements == elements and (step.total is None or step.parts is not None) for step in steps)
    block = blocking.division.block
    # A row that is longer than a block would be cut.
    if not divided or not block or elements < blocking.ENOUGH_BLOCKS * block or grain > blocking.MAX_BLOCK:
        return 0, 0
    return elements, grain


# Every entry's node holds its plan, so a plan that a sweep meets is here.
plans_by_address: Final[weakref.WeakValueDictionary[int, Plan]] = weakref.WeakValueDictionary()


def _forget_steps() -> None:
    for plan in list(plans_by_address.values()):
        plan.forget_steps()


blocking.on_new_block.append(_forget_steps)
state.register("tape.plan: plans that are alive", lambda: len(plans_by_address))

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

"""Plans: all that is known about one operation on operands of given layouts, worked out once.

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
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.dtypes import on_change
from tapegrad.recording.steps import (
    ARRAY,
    CT,
    INLINE,
    KERNEL,
    KernelCall,
    KernelCalls,
    Source,
    address_of_array,
    buffer_class,
    kernel_calls,
)
from tapegrad.runtime import blocking, state
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.memory import object_at
from tapegrad.runtime.structs import WORD
from tapegrad.tape.entries import FIRST_OPERAND
from tapegrad.tape.layout import Layout, general
from tapegrad.tape.lengths import Templates, Trace, applied
from tapegrad.tape.structs import PlanFields

if TYPE_CHECKING:
    from tapegrad.ops.table.op import Op

(
    ARITY, RESULT_CLASS, RESULT_BYTES, STATE, FORWARD, RESULT, SAVE, WANTED_OPERANDS, JOINT, ELEMENTS, GRAIN, PACK,
    IS_VIEW, ITSELF, STEPS,
) = (field.offset // WORD for field in PlanFields.fields())  # fmt: skip
READY, PYTHON, PENDING = 1, 2, 4  # of the word STATE, 0 before the steps are made

_preparing = module_lock()
_templates = Templates("recording.plan: kernel calls of all lengths")
_MOST_OPERANDS: Final = 8  # of an op whose kernel calls are worked out for all lengths


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
    view_offset : int, optional
        Where in its operand's memory the result begins, in bytes, if it is a view.
    """

    __slots__ = (
        "__weakref__", "_block", "_calls", "_words", "address", "arity", "attrs", "forward", "layouts", "name", "op",
        "pack", "python_operands", "records", "result", "rule_calls", "save", "saved", "view_offset",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        layouts: tuple[Layout, ...],
        attrs: Mapping[str, Any],
        forward: Callable[..., Any],
        result: Layout,
        extra: tuple[str, ...] = (),
        pack: Callable[..., Any] | None = None,
        view_offset: int | None = None,
    ) -> None:
        layouts = op.differentiable_in(layouts)
        self.op, self.layouts, self.attrs = op, layouts, attrs
        self.forward, self.pack = forward, pack
        self.name, self.arity = op.name, len(layouts)
        self.view_offset = view_offset
        self.records, self.save = False, 0
        self.saved: tuple[str, ...] = ()
        if result.floating:
            self.records, self.saved, self.save, _ = op.residuals(tuple([own.requires_grad for own in layouts]))
            self.saved += extra
        self.result = result.tracked if self.records else result.plain
        self._calls: Sequence[KernelCall] = ()
        self._block: Any = None  # the words of the kernel calls
        self.rule_calls: tuple[Any, ...] = ()  # what rules are called with (`tapegrad.ops.table.rules`), when one was
        self.python_operands: tuple[int, ...] = ()  # those whose rule the sweep has to call in Python
        calls = _templates.find(*self._kind(), attrs) if self.records and self._is_general() else None
        if calls is None:
            self._words = np.array(self._first_words(), dtype=np.int64)
            self.address = address_of_array(self._words)
        else:
            self._words = calls.words
            self.address = address_of_array(self._words)
            self._take(calls, self._words, self.address)
        self._words[FORWARD], self._words[RESULT] = id(forward), id(self.result)
        self._words[ITSELF], self._words[PACK] = id(self), id(pack) if pack else 0
        if self.records:
            _alive.add(weakref.ref(self, _alive.discard))

    def _first_words(self) -> list[int]:
        """Return the words of the plan, but for what has an address and for kernel calls."""
        result = self.result
        wanted = self.op.residuals(tuple([own.requires_grad for own in self.layouts]))[-1] if self.records else 0
        return [
            self.arity, applied(buffer_class, result.nbytes), result.nbytes, 0, 0, 0,
            0 if self.op.variadic else self.save, wanted, 0, 0, 0, 0, int(self.view_offset is not None), 0,
            *[0] * self.arity,
        ]  # fmt: skip

    def wants(self, operand: int) -> bool:
        """Whether a gradient is wanted for the operand with this number."""
        return self.layouts[operand].requires_grad

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
        calls = kernel_calls(self, STEPS, JOINT)
        if self._is_general():
            _templates.learn(self._kind()[0], self._for_all_lengths)
        block = np.array(calls.words, dtype=np.int64)
        self._take(calls, block, address_of_array(block))

    def _is_general(self) -> bool:
        """Whether the plan may have kernel calls that were worked out for all lengths."""
        return self.arity <= _MOST_OPERANDS and bool(self.result.size)

    def _kind(self) -> tuple[Hashable, list[int]]:
        """Return all that the kernel calls depend on besides attributes: the kind of plan, and lengths."""
        op, offset, result = self.op, self.view_offset, self.result
        kind = [op.plans, op.step, op.vjp, self.saved, offset is None, result.kind]
        lengths = [offset or 0, *result.lengths]
        for layout in self.layouts:
            kind.append(layout.kind)
            lengths += layout.lengths
        for name in op.lengths:
            kind.append(len(self.attrs[name]))
            lengths += self.attrs[name]
        return tuple(kind), lengths

    def _for_all_lengths(self, trace: Trace) -> KernelCalls:
        """Return the kernel calls of a plan like this one on layouts of the same kind."""
        plan: Plan = object.__new__(Plan)
        for name in ("op", "name", "arity", "saved", "save", "records"):
            setattr(plan, name, getattr(self, name))
        offset = trace.length(self.view_offset or 0)
        plan.view_offset = None if self.view_offset is None else offset  # type: ignore[assignment]  # stands for any
        plan.result, *layouts = [general(layout, trace) for layout in (self.result, *self.layouts)]
        plan.layouts, plan.attrs = tuple(layouts), trace.attributes(self.attrs, self.op.lengths)
        return kernel_calls(plan, STEPS, JOINT, plan._first_words())

    def _take(self, calls: KernelCalls, block: np.ndarray, address: int) -> None:
        """Let the sweep find kernel calls, whose words stand in an array with this address."""
        words = self._words
        calls.place(block, address)
        self._block, self._calls, self.python_operands = block, calls.calls, calls.python_operands
        words[ELEMENTS], words[GRAIN] = calls.elements, calls.multiple
        for call in calls.calls:
            words[call.plan_word] = address + WORD * call.start
        words[STATE] = READY | PYTHON if self.python_operands else READY

    def complete(self) -> None:
        """Compile the kernels of single operands, which are needed where a joint step cannot run."""
        for call in self._calls:
            self._block[call.start + KERNEL] = call.kernel()

    def forget_steps(self) -> None:
        """Have them made again when a sweep next meets the plan."""
        self._words[STATE] = 0


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


blocking.on_new_block += [_forget_steps, _templates.clear]
on_change.append(_templates.clear)
state.register("recording.plan: plans that are alive", lambda: len(_alive))

"""Plans: everything about one operation on operands of certain layouts, worked out once.

An entry refers to its plan, so neither the recording path nor a sweep looks at shapes. Compiled code reads the words of
a plan as `tapegrad.tape.structs.PlanFields`.

When a sweep first meets a plan, the plan gets its kernel calls (`tapegrad.recording.steps`): for each operand that
wants a gradient, the kernel that turns the result's cotangent into the operand's, with residuals and strides. They
stand in one array, with their geometry.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tapegrad.dtypes import on_change
from tapegrad.recording.steps import (
    ARRAY,
    CT,
    INLINE,
    KERNEL,
    KernelCall,
    KernelCalls,
    Source,
    buffer_class,
    kernel_calls,
)
from tapegrad.runtime import blocking, state
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.memory import INTERPRETS, object_at, watch
from tapegrad.runtime.structs import WORD
from tapegrad.tape.entries import FIRST_OPERAND, MAX_SAVED
from tapegrad.tape.kinds import Kind, Templates
from tapegrad.tape.layout import Layout, general
from tapegrad.tape.lengths import Trace, applied
from tapegrad.tape.structs import PlanFields

if TYPE_CHECKING:
    from tapegrad.ops.table.op import Op

(
    ARITY, RESULT_CLASS, RESULT_BYTES, STATE, FORWARD, RESULT, SAVE, WANTED_OPERANDS, FUSED, ELEMENTS, MULTIPLE, PACK,
    IS_VIEW, ITSELF, PROGRAM, CALLS,
) = (field.offset // WORD for field in PlanFields.fields())  # fmt: skip
# Bits of the word STATE, which is 0 before a pass first meets the plan. LAST_FIRST: operands are served in reverse.
# BY_RULES: only passes that call rules from Python have met it, so its kernel calls are not made.
READY, PYTHON, PENDING, LAST_FIRST, BY_RULES = 1, 2, 4, 8, 16

_preparing = module_lock()


def _integers(values: list[int] | array[int]) -> array[int]:
    """Return words in an `array`: Python writes them in half the time that NumPy's array takes."""
    return array("q", values)


def _address_of(words: array[int]) -> int:
    if INTERPRETS:
        watch(words, "memory of a plan")
    return words.buffer_info()[0]


_templates = Templates("recording.plan: kernel calls of all lengths", _integers)
_MOST_OPERANDS: Final = 8  # ops with more operands get no kernel calls for all lengths


class Plan:
    """One operation on operands of certain layouts.

    Attributes
    ----------
    op : Op
    node_name : str
        Of its nodes, unless the op names them by their attributes.
    layouts : tuple of Layout
        The layouts of the operands; tracked for operands that want a gradient.
    attrs : dict
        The values of the op's attributes.
    forward : callable
        From the operands' data to the result's.
    result : Layout
    records : bool
        Whether an operand wants a gradient and the op has one.
    saved : tuple of str
        The names of the residuals, in the order in which a node has them.
    python_operands : tuple of int
        The operands whose rules have no kernel; set by `prepare`.
    address : int
        The address of the plan's words.
    extra : tuple of str
        The names of further residuals, besides operands and the result.
    view_offset : int, optional
        If the result is a view: where it begins in the operand's memory, in bytes.
    """

    __slots__ = (
        "__weakref__", "_block", "_calls", "_words", "address", "arity", "attrs", "extra", "forward", "layouts",
        "name", "node_name", "op", "pack", "python_operands", "records", "result", "rule_calls", "save", "saved",
        "view_offset",
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
        if op.has_constants:
            layouts = op.differentiable_in(layouts)
        self.op, self.layouts, self.attrs = op.origin, layouts, attrs
        self.node_name = op.node_name
        self.forward, self.pack = forward, pack
        self.name, self.arity = op.name, len(layouts)
        self.view_offset, self.extra = view_offset, extra
        self.records, self.save = False, 0
        self.saved: tuple[str, ...] = ()
        self.result = result.plain
        self._calls: Sequence[KernelCall] = ()
        self._block: Any = None  # the words of the kernel calls
        self.rule_calls: tuple[Any, ...] = ()  # the arguments of rules (`tapegrad.ops.table.rules`), once one is called
        self.python_operands: tuple[int, ...] = ()
        calls = None
        if result.floating:
            self.saved = extra
            for own in layouts:
                if own.requires_grad:
                    calls = self._recorded(result)
                    break
        if calls is None:
            words = self._words = _integers(self._first_words())
            self.address = _address_of(words)
        else:
            words = self._words = calls.words  # type: ignore[assignment]  # an array: see `_templates`
            self.address = _address_of(words)
            self._take(calls, words, self.address)
        words[FORWARD], words[RESULT], words[ITSELF] = id(forward), id(self.result), id(self)
        if pack is not None:
            words[PACK] = id(pack)
        if self.records:
            _alive.add(weakref.ref(self, _alive.discard))

    def _recorded(self, result: Layout) -> KernelCalls | None:
        """Set the residuals of a plan that records; return its kernel calls if a template has them, else None."""
        op, layouts = self.op, self.layouts
        self.records, self.result = True, result.tracked
        kind, lengths = self._kind() if self._is_general() else (None, [])
        facts = None if kind is None else kind.facts
        if facts is None:
            facts = op.residuals(tuple([own.requires_grad for own in layouts]))
            _check_saved(op, facts[1])
            if kind is not None:
                kind.facts = facts
        _, saved, self.save, _ = facts
        self.saved = saved + self.extra
        return kind.find(lengths, self.attrs) if kind is not None and kind.functions else None

    def _first_words(self) -> list[int]:
        """Return the words of the plan, without addresses and kernel calls."""
        result = self.result
        wanted = self.op.residuals(tuple([own.requires_grad for own in self.layouts]))[-1] if self.records else 0
        return [
            self.arity, applied(buffer_class, result.nbytes), result.nbytes, 0, 0, 0,
            0 if self.op.variadic else self.save, wanted, 0, 0, 0, 0, int(self.view_offset is not None), 0, 0,
            *[0] * self.arity,
        ]  # fmt: skip

    def wants(self, operand: int) -> bool:
        """Whether a gradient is wanted for an operand."""
        return self.layouts[operand].requires_grad

    def position(self, name: str) -> int:
        """Return the index of a residual in a node."""
        return FIRST_OPERAND + self.arity + self.saved.index(name)

    def source(self, name: str) -> Source:
        """Return the source of a kernel for a residual, or for the cotangent (``ct``)."""
        if name == "ct":
            return (CT, 0)
        return (INLINE if self.layout(name).inline else ARRAY), self.position(name)

    def layout(self, name: str) -> Layout:
        """Return the layout of an operand, of the result (``out``), or of its cotangent (``ct``)."""
        if name in ("ct", "out"):
            return self.result
        return self.layouts[self.op.operands.index(name)]

    def prepare(self) -> None:
        """Make the kernel calls and compile their kernels, so that a sweep can run."""
        with _preparing:
            if not self._words[STATE] & READY:  # another thread may have done it, and may read the words of its calls
                self._prepare()

    def prepare_for_rules(self) -> None:
        """Let passes that call rules from Python meet the plan, without its kernel calls."""
        with _preparing:
            self._words[STATE] |= BY_RULES

    def _prepare(self) -> None:
        calls = kernel_calls(self, CALLS, FUSED)
        if self._is_general():
            self._kind()[0].learn(self._for_all_lengths)
        block = _integers(calls.words)
        self._take(calls, block, _address_of(block))

    def _is_general(self) -> bool:
        """Whether the kernel calls of the plan may come from a template for all lengths."""
        return self.arity <= _MOST_OPERANDS and bool(self.result.size)

    def _kind(self) -> tuple[Kind, list[int]]:
        """Return what the kernel calls depend on, besides attributes: the kind of the plan, and lengths."""
        op, offset, result = self.op, self.view_offset, self.result
        key = [op.plans, op.step, op.vjp, self.extra, offset is None, result.kind]
        lengths = [offset or 0, *result.lengths]
        for layout in self.layouts:
            key.append(layout.kind)
            lengths += layout.lengths
        for name in op.lengths:
            key.append(len(self.attrs[name]))
            lengths += self.attrs[name]
        return _templates.kind(tuple(key)), lengths

    def _for_all_lengths(self, trace: Trace) -> KernelCalls:
        """Return the kernel calls of a plan like this one, with lengths that stand for any others."""
        plan: Plan = object.__new__(Plan)
        for name in ("op", "name", "arity", "saved", "save", "records", "extra"):
            setattr(plan, name, getattr(self, name))
        offset = trace.length(self.view_offset or 0)
        plan.view_offset = None if self.view_offset is None else offset  # type: ignore[assignment]  # stands for any
        plan.result, *layouts = [general(layout, trace) for layout in (self.result, *self.layouts)]
        plan.layouts, plan.attrs = tuple(layouts), trace.attributes(self.attrs, self.op.lengths)
        return in_one_array(kernel_calls(plan, CALLS, FUSED, plan._first_words()))

    def _take(self, calls: KernelCalls, block: array[int], address: int) -> None:
        """Take over kernel calls, whose words stand in an array with this address, and make the plan ready."""
        words = self._words
        calls.place(block, address)
        self._block, self._calls, self.python_operands = block, calls.calls, calls.python_operands
        if block is not words:
            words[ELEMENTS], words[MULTIPLE] = calls.elements, calls.multiple
            for call in calls.calls:
                words[call.plan_word] = address + WORD * call.start
            words[STATE] = _state(calls)

    def complete(self) -> None:
        """Compile the kernels of single operands: a sweep needs them where the fused call cannot run."""
        for call in self._calls:
            self._block[call.start + KERNEL] = call.kernel()

    def use_program(self, address: int) -> None:
        """Let sweeps call machine code in place of the rule; its words are at `address` (`ProgramFields`)."""
        self._words[PROGRAM] = address

    def forget_steps(self) -> None:
        """Forget the kernel calls. They are made again when a sweep next meets the plan."""
        self._words[STATE] = 0


def _state(calls: KernelCalls) -> int:
    return READY | (PYTHON if calls.python_operands else 0) | (LAST_FIRST if calls.last_first else 0)


def in_one_array(calls: KernelCalls) -> KernelCalls:
    """Return kernel calls whose words stand behind those of their plan, which already refer to them."""
    words = list(calls.words)
    words[ELEMENTS], words[MULTIPLE], words[STATE] = calls.elements, calls.multiple, _state(calls)
    starts = tuple([(call.plan_word, call.start) for call in calls.calls])
    return calls._replace(words=words, addresses=calls.addresses + starts)


# Plans that record. Adding one, and removing it when it dies, runs no Python code.
_alive: Final[set[weakref.ref[Plan]]] = set()


def alive() -> list[Plan]:
    """Return the plans that entries may name."""
    return [plan for reference in _alive.copy() if (plan := reference()) is not None]


def plan_at(address: int) -> Plan:
    """Return the plan with this address. It must be alive: the node of every entry holds its plan."""
    plan: Plan = object_at(ctypes.c_int64.from_address(address + WORD * ITSELF).value)
    return plan


def _forget_steps() -> None:
    for plan in alive():
        plan.forget_steps()


blocking.on_new_block += [_forget_steps, _templates.clear]
on_change.append(_templates.clear)
state.register("recording.plan: plans that are alive", lambda: len(_alive))


def _check_saved(op: Op, saved: Sequence[str]) -> None:
    """Raise an error if an entry has no room for the residuals of an op."""
    beyond = () if op.variadic else set(saved).intersection(op.operands[MAX_SAVED:])
    if beyond:
        given = f"the first {MAX_SAVED} operands and the result, and these take {', '.join(sorted(beyond))}"
        raise ValueError(f"{op.name}: derivatives can take {given}; stack operands in one tensor")

"""The entry of a call of a program with one result: its rule is the program of the derivative.

Compiled code writes the entry (`tapegrad.program.variants`); it keeps the data of all inputs. Calls with several
results are those of a `Function`, see `tapegrad.program.derivative`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.kernels.elementwise import identity_step
from tapegrad.kernels.rules import identity
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Op, op_table
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.derivative import Pullback, pulled
from tapegrad.program.entry import Input, Output, make_entry
from tapegrad.program.program import Program
from tapegrad.program.templates import Pieces, of_output
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import ARRAY, CT, buffer_class
from tapegrad.runtime.structs import WORD, sizeof
from tapegrad.sweep.program_calls import ALIGNMENT
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, TapeNode
from tapegrad.tape.layout import Layout, contiguous_layout, dtype_name, layout_of
from tapegrad.tape.structs import ProgramFields
from tapegrad.tensor import Tensor


class CallRule:
    """The rule of the calls of a program with inputs of some classes.

    Parameters
    ----------
    program : Program
    kinds : sequence of type
        The classes of what the entry keeps: arrays, or Python's numbers.
    wanted : tuple of bool
        Which inputs want a gradient.
    """

    def __init__(self, program: Program, kinds: Sequence[type], wanted: tuple[bool, ...]) -> None:
        self._program, self._kinds, self._wanted = program, kinds, wanted
        self._words: np.ndarray | None = None  # of `ProgramFields`
        self._entry: Callable[..., Any] | None = None  # machine code, which takes what the entry keeps, and a cotangent

    def __call__(self, ct: Tensor, node: TapeNode, is_recorded: bool) -> tuple[Any, ...]:
        """Return the cotangents of the inputs of an entry."""
        layouts = node[PLAN_OBJECT].layouts
        saved = node[FIRST_OPERAND + len(layouts) : FIRST_OPERAND + 2 * len(layouts)]
        if is_recorded:
            return self._pulled(list(map(_attached, saved, layouts, node[FIRST_OPERAND:])), ct)
        found: tuple[Any, ...] | None = None if self._entry is None else self._entry(*saved, ct)
        return self._unrecorded(ct, saved, node[PLAN_OBJECT]) if found is None else found

    def _pulled(self, inputs: Sequence[Tensor], ct: Tensor) -> tuple[Any, ...]:
        found = pulled(self._program, inputs, (ct,), self._wanted)
        return tuple([NO_COTANGENT if own is None else own for own in found])

    def _unrecorded(self, ct: Tensor, saved: Sequence[Any], plan: Plan) -> tuple[Any, ...]:
        """Compute without machine code that fits, and make it for the next pass."""
        inputs = [_attached(own, layout.plain, None) for own, layout in zip(saved, plan.layouts, strict=True)]
        is_enabled = modes.is_grad_enabled()
        try:
            if is_enabled:
                modes.pause()
            result = self._pulled(inputs, constant(ct._data.copy(), ct._layout))  # the sweep's memory is its own
        finally:
            if is_enabled:
                modes.resume()
        if self._entry is None:
            self._entry = self._compiled()
            self._words = words_of(self._program.run.pullbacks[self._wanted, (True,)], self._kinds)
            if self._words is not None:
                plan.use_program(self._words.ctypes.data)
        return result

    def _compiled(self) -> Callable[..., Any]:
        """Return what calls the machine code of the derivative; it returns None where that does not serve."""
        pullback = self._program.run.pullbacks[self._wanted, (True,)]
        run, vjp = pullback.run, pullback.vjp
        if run.code is None:
            return _not_served
        layouts = [vjp.layouts[number] for number in vjp.inputs]
        own = len(self._kinds)
        outputs = iter(range(len(vjp.outputs)))
        variant = run.variant(
            [*map(Input, self._kinds, layouts[:own]), Input(Tensor, layouts[own])],
            captured=list(zip(pullback.captured, layouts[own + 1 :], strict=True)),
            result=tuple([Output(next(outputs)) if is_reached else NO_COTANGENT for is_reached in pullback.reached]),
            as_tensors=True,
        )
        return make_entry(_not_served, (variant,))[0]


def words_of(pullback: Pullback, kinds: Sequence[type]) -> np.ndarray | None:
    """Return the words of `ProgramFields` for a sweep; None if it has to leave the derivative to Python."""
    run, vjp, arity = pullback.run, pullback.vjp, len(kinds)
    code, layouts = run.code, [vjp.layouts[number] for number in vjp.inputs[:arity]]
    operands = [place for place, is_wanted in enumerate(pullback.wanted) if is_wanted]
    outputs = [vjp.layouts[number] for number in vjp.outputs]
    if (
        code is None or code.stages or code.may_fail or run.checked.guards or pullback.captured
        or pullback.reached != pullback.wanted or any(kind in (int, bool) for kind in kinds)
        or any((own.shape, own.dtype) != (layouts[place].shape, layouts[place].dtype)
               for place, own in zip(operands, outputs, strict=True))
    ):  # fmt: skip
        return None
    pieces = Pieces(sizeof(ProgramFields) // WORD)
    inputs = []
    for place, (kind, layout) in enumerate(zip(kinds, layouts, strict=True), FIRST_OPERAND + arity):
        scalar = layout.dtype.type if kind is np.ndarray else kind
        inputs.append([place << 2 | ARRAY, 0 if layout.ndim else pieces.hold(scalar)])
    rows = []
    for place, layout in zip(operands, outputs, strict=True):
        name, flat = dtype_name(layout.dtype), contiguous_layout((layout.size,), layout.dtype)
        step = identity_step(flat.shape, ((CT, 0), name, flat.strides), flat)
        rows.append([place, buffer_class(layout.nbytes), step.kernel(), pieces.add(list(map(int, step.geometry)))])
    scratch = -(-WORD * (arity + 1 + 2 * len(rows)) // ALIGNMENT) * ALIGNMENT
    memory = buffer_class(ALIGNMENT + scratch + code.scratch_bytes)
    words = [
        code.address(), arity + 1, pieces.table([*inputs, [CT, 0]]), len(rows), pieces.table(rows), scratch, memory,
        max(memory, *[row[1] for row in rows]),
    ]  # fmt: skip
    pieces.words[: len(words)] = words
    return pieces.placed()


def _not_served(*_: Any) -> None:
    return None


def _attached(data: Any, layout: Layout, parent: Any) -> Tensor:
    """Return what an entry has kept as a tensor, in its old place in the graph."""
    if not isinstance(data, (np.ndarray, np.generic)):  # a number of Python's
        data = np.asarray(data, layout.dtype)
    if not layout.requires_grad:
        return constant(data, layout_of(data))
    tensor = constant(data, layout_of(data).tracked)
    tensor._node = parent
    return tensor


def _rule(ct: Tensor, wanted: tuple[bool, ...], entry: tuple[TapeNode, bool]) -> tuple[Any, ...]:
    node, is_recorded = entry
    rule: CallRule = node[PLAN_OBJECT].attrs["rule"]
    return rule(ct, node, is_recorded)


_op: Final = Op(
    name="compiled_function", operands=("*inputs",), forward=identity, vjp=_rule, family="function",
    node_name="CompiledFunctionBackward",
)  # fmt: skip
del op_table[_op.name]  # nobody calls it: it is not listed, sampled or documented


def plan_of_calls(program: Program, inputs: Sequence[Input]) -> Plan | None:
    """Return the plan of calls with such inputs; None where a call has several results, or is not recorded.

    Parameters
    ----------
    program : Program
    inputs : sequence of Input
        Their layouts are tracked where a gradient is wanted.
    """
    wanted = tuple([own.layout.requires_grad for own in inputs])
    if len(program.outputs) != 1 or True not in wanted or program.run.fixed(wanted):
        return None
    kinds = [np.ndarray if issubclass(own.kind, Tensor) else own.kind for own in inputs]
    result = of_output(program.layouts[program.outputs[0]])
    names = tuple([f"input{number}" for number in range(len(inputs))])
    layouts = tuple([own.layout for own in inputs])
    return Plan(_op, layouts, {"rule": CallRule(program, kinds, wanted)}, identity, result, names)

"""The entry of a call of a program: its rule is the program of the derivative.

Compiled code writes the entry (`tapegrad.program.variants`); it keeps the data of all inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.kernels.elementwise import identity_part_step, identity_step
from tapegrad.kernels.rules import identity
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Op, op_table
from tapegrad.ops.table.results import part_of_results, parts_of, plan_of_several, renamed
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
    offsets : dict
        Where the cotangent of each output that has one begins in the entry's, in bytes.
    """

    def __init__(
        self, program: Program, kinds: Sequence[type], wanted: tuple[bool, ...], offsets: dict[int, int]
    ) -> None:
        self._program, self._kinds, self._wanted, self._offsets = program, kinds, wanted, offsets
        self._words: list[np.ndarray] = []  # of `ProgramFields`
        # By the outputs that have cotangents: machine code, which takes what the entry keeps, and these cotangents.
        self._entries: dict[tuple[bool, ...], Callable[..., Any]] = {}

    def __call__(self, cts: Sequence[Tensor | None], node: TapeNode, is_recorded: bool) -> tuple[Any, ...]:
        """Return the cotangents of the inputs of an entry."""
        layouts = node[PLAN_OBJECT].layouts
        saved = node[FIRST_OPERAND + len(layouts) : FIRST_OPERAND + 2 * len(layouts)]
        if is_recorded:
            return self._pulled(list(map(_attached, saved, layouts, node[FIRST_OPERAND:])), cts)
        entry = self._entries.get(tuple([ct is not None for ct in cts]))
        found: tuple[Any, ...] | None = None
        if entry is not None:
            found = entry(*saved, *[ct for ct in cts if ct is not None])
        return self._unrecorded(cts, saved, node[PLAN_OBJECT]) if found is None else found

    def _pulled(self, inputs: Sequence[Tensor], cts: Sequence[Tensor | None]) -> tuple[Any, ...]:
        found = pulled(self._program, inputs, self._of_all(cts, None), self._wanted)
        return tuple([NO_COTANGENT if own is None else own for own in found])

    def _of_all(self, values: Sequence[Any], other: Any) -> list[Any]:
        """Return a value for each output, from those for outputs that can have cotangents."""
        result = [other] * len(self._program.outputs)
        for place, value in zip(self._offsets, values, strict=True):
            result[place] = value
        return result

    def _unrecorded(self, cts: Sequence[Tensor | None], saved: Sequence[Any], plan: Plan) -> tuple[Any, ...]:
        """Compute without machine code that fits, and make it for the next pass."""
        inputs = [_attached(own, layout.plain, None) for own, layout in zip(saved, plan.layouts, strict=True)]
        copies = [None if ct is None else constant(ct._data.copy(), ct._layout) for ct in cts]  # of the sweep's memory
        is_enabled = modes.is_grad_enabled()
        try:
            if is_enabled:
                modes.pause()
            result = self._pulled(inputs, copies)
        finally:
            if is_enabled:
                modes.resume()
        given = tuple([ct is not None for ct in cts])
        pullback = self._program.run.pullbacks.get((self._wanted, tuple(self._of_all(given, False))))
        if given not in self._entries and pullback is not None:
            self._entries[given] = _entry_of(pullback, self._kinds)
            offsets = list(self._offsets.values()) if len(self._offsets) > 1 else []
            words = words_of(pullback, self._kinds, given, offsets, self._words[-1] if self._words else None)
            if words is not None:
                self._words.append(words)
                plan.use_program(words.ctypes.data)
        return result


def _entry_of(pullback: Pullback, kinds: Sequence[type]) -> Callable[..., Any]:
    """Return what calls the machine code of a derivative; it returns None where that does not serve."""
    run, vjp = pullback.run, pullback.vjp
    if run.code is None:
        return _not_served
    layouts = [vjp.layouts[number] for number in vjp.inputs]
    end = len(layouts) - len(pullback.captured)
    outputs = iter(range(len(vjp.outputs)))
    variant = run.variant(
        [*map(Input, kinds, layouts), *[Input(Tensor, layout) for layout in layouts[len(kinds) : end]]],
        captured=list(zip(pullback.captured, layouts[end:], strict=True)),
        result=tuple([Output(next(outputs)) if is_reached else NO_COTANGENT for is_reached in pullback.reached]),
        as_tensors=True,
    )
    return make_entry(_not_served, (variant,))[0]


def words_of(
    pullback: Pullback,
    kinds: Sequence[type],
    given: Sequence[bool],
    offsets: Sequence[int],
    other: np.ndarray | None,
) -> np.ndarray | None:
    """Return the words of `ProgramFields` for a sweep; None if it has to leave the derivative to Python.

    Parameters
    ----------
    pullback, kinds
        The derivative, and the classes of what the entry keeps.
    given : sequence of bool
        Which results have cotangents.
    offsets : sequence of int
        Where the cotangents of results begin; empty if there is one result.
    other : numpy.ndarray, optional
        The words for other results that are given.
    """
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
    inputs += [[place << 2 | CT, 0] for place in itertools.compress(offsets or [0], given)]
    scratch = -(-WORD * (len(inputs) + 2 * len(rows)) // ALIGNMENT) * ALIGNMENT
    memory = buffer_class(ALIGNMENT + scratch + code.scratch_bytes)
    bits = sum(own << place for place, own in enumerate(given if offsets else ()))
    words = [
        0 if other is None else other.ctypes.data, bits, len(offsets), pieces.add(offsets), code.address(),
        len(inputs), pieces.table(inputs), len(rows), pieces.table(rows), scratch, memory,
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


def _rule(ct: Any, wanted: tuple[bool, ...], entry: tuple[TapeNode, bool]) -> tuple[Any, ...]:
    node, is_recorded = entry
    rule: CallRule = node[PLAN_OBJECT].attrs["rule"]
    return rule(ct if ct.__class__ is tuple else (ct,), node, is_recorded)


_rule.takes_none = True  # type: ignore[attr-defined]  # see `tapegrad.ops.table.rules`
_NODE: Final = "CompiledFunctionBackward"
_op: Final = Op(
    name="compiled_function", operands=("*inputs",), forward=identity, vjp=_rule, family="function", node_name=_NODE
)
del op_table[_op.name]  # nobody calls it: it is not listed, sampled or documented
_op_of_parts: Final = renamed(part_of_results, part_of_results.name, _NODE)
# No group serves them: what belongs to a group has no cotangent of its own, and rules ask which parts have one.
vars(_op_of_parts)["step"] = lambda plan, _: identity_part_step(plan, plan.attrs["offset"])._replace(elements=0)


def plans_of_calls(
    program: Program, inputs: Sequence[Input], n_results: int | None = None
) -> tuple[Plan | None, dict[int, Plan]]:
    """Return the plan of calls with such inputs, and those of results, by their numbers.

    Parameters
    ----------
    program : Program
    inputs : sequence of Input
        Their layouts are tracked where a gradient is wanted.
    n_results : int, optional
        How many outputs are results; what is written to memory has no entry.
    """
    count = len(program.outputs)
    n_results = count if n_results is None else n_results
    wanted = tuple([own.layout.requires_grad for own in inputs])
    wanted = program.reached(wanted, [place < n_results for place in range(count)])
    fixed = program.run.fixed(wanted)
    smooth = [place for place in range(n_results) if place not in fixed]
    if True not in wanted or not smooth:
        return None, {}
    kinds = [np.ndarray if issubclass(own.kind, Tensor) else own.kind for own in inputs]
    names = tuple([f"input{number}" for number in range(len(inputs))])
    layouts = tuple([
        own.layout if is_wanted else own.layout.plain for own, is_wanted in zip(inputs, wanted, strict=True)
    ])  # fmt: skip
    results = {place: of_output(program.layouts[program.outputs[place]]) for place in smooth}
    attrs: dict[str, Any] = {}
    if len(smooth) == 1:
        attrs["rule"] = CallRule(program, kinds, wanted, {smooth[0]: 0})
        plan = Plan(_op, layouts, attrs, identity, results[smooth[0]], names)
        return plan, {smooth[0]: plan}
    plan = plan_of_several(_op, layouts, attrs, identity, results, names)
    offsets = {place: offset for place, (_, offset) in parts_of(plan).items()}
    attrs["rule"] = CallRule(program, kinds, wanted, offsets)
    parts = {}
    for place, offset in offsets.items():
        own = {"number_of_result": place, "offset": offset}
        parts[place] = Plan(_op_of_parts, (plan.result,), own, identity, results[place])
    return plan, parts

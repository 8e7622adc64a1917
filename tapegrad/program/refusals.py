"""Values that operations refuse, as one more guard: machine code raises no errors.

Where an eager operation raises an error because of its operands' values, e.g. for a singular matrix, the program gets a
flag, and Python computes the call if that is true. It then raises what it always does. A matrix that is nearly singular
is left to Python too, as rounding decides there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table
from tapegrad.program.batch import Batch, batch_of, batch_op
from tapegrad.program.machine_code import LARGEST
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of

__all__ = ["OPERATIONS", "with_refusals"]

#: Those of this file.
OPERATIONS: Final = set[Op]()

_FLAG: Final = layout_of(np.array(False))
_WHERE: Final = "an operation refuses its values: a matrix is singular or indefinite, or an integer is divided by 0"


def _op(name: str, forward: Callable[..., Any], operands: tuple[str, ...] = ("x",), **fields: Any) -> Op:
    op = Op(name=name, operands=operands, forward=forward, vjp=(NOT_DIFFERENTIABLE,) * len(operands), **fields)
    del op_table[name]  # it stands only in programs
    OPERATIONS.add(op)
    return op


def _raises(function: Callable[..., Any]) -> Callable[..., Any]:
    def refused(x: Any, **attrs: Any) -> Any:
        try:
            function(x, **attrs)
        except np.linalg.LinAlgError:
            return np.True_
        return np.False_

    return refused


_is_singular: Final = _op("is_singular", _raises(np.linalg.inv), family="refusal")
_is_indefinite: Final = _op("is_indefinite", _raises(np.linalg.cholesky), attrs=("upper",), family="refusal")
_has_zeros: Final = _op("has_zeros", lambda x: np.any(x == 0), family="refusal")
_has_true: Final = _op("has_true", lambda x: np.any(x), family="refusal")
_both: Final = _op("both", np.logical_and, ("x", "y"), family="binary", fx=lambda x, y: x & y)
_either: Final = _op("either", np.logical_or, ("x", "y"), family="binary", fx=lambda x, y: x | y)

#: By names of operations: what says whether their values are refused, and the operand that it asks.
_OF_MATRICES: Final = {
    "inv": (_is_singular, 0), "solve": (_is_singular, 0), "cholesky": (_is_indefinite, 0),
}  # fmt: skip
_NESTED: Final = frozenset(("batch", "scan"))  # attributes
_OF_INTEGERS: Final = dict.fromkeys(("remainder", "floor_divide", "trunc_divide", "fmod"), (_has_zeros, 1))


def _asked(program: Program, entry: Entry) -> tuple[Op, int] | None:
    """Return what says whether an operation refuses its operands' values, and the value that it takes."""
    found = None
    if entry.op.name in _OF_MATRICES:  # larger matrices are LAPACK's, which says so itself
        if program.layouts[entry.operands[0]].shape[-1] <= LARGEST:
            found = _OF_MATRICES[entry.op.name]
    elif entry.op.name in _OF_INTEGERS and program.layouts[entry.results[0]].dtype.kind in "iu":
        found = _OF_INTEGERS[entry.op.name]
    if found is None or entry.operands[found[1]] in program.constants:  # a constant was looked at in the trace
        return None
    return found[0], entry.operands[found[1]]


class _Flagged:
    """The operations of a program, with those that say whether one of them refuses its operands."""

    def __init__(self, program: Program) -> None:
        self.program, self.constants = program, dict(program.constants)
        self.layouts, self.entries = list(program.layouts), list[Entry]()
        self.flag: int | None = None
        for entry in program.entries:
            if "batch" in entry.attrs:
                self.batch(entry)
                continue
            if "scan" in entry.attrs:  # a loop back from checkpoints computes again what the loop has computed
                self.scan(entry)
                continue
            self.entries.append(entry)
            asked = _asked(program, entry)
            if asked is not None:
                self.note(self.new(*asked, of=entry.attrs))

    def new(self, op: Op, *operands: int, of: Mapping[str, Any] = MappingProxyType({})) -> int:
        """Return the number of a new flag, of an operation with some attributes."""
        number = self.value(_FLAG)
        self.entries.append(Entry(op, operands, {name: of[name] for name in op.attrs}, (), (number,)))
        return number

    def value(self, layout: Layout) -> int:
        """Return the number of a new value."""
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def note(self, flag: int) -> None:
        """Add a flag to those before."""
        self.flag = flag if self.flag is None else self.new(_either, self.flag, flag)

    def batch(self, entry: Entry) -> None:
        """Add the operation of a batch; its items have a flag each."""
        batch = _of_items(entry.attrs["batch"])
        if batch is None:
            self.entries.append(entry)
            return
        size = self.layouts[entry.results[0]].shape[0]
        flags = self.value(contiguous_layout((size,), _FLAG.dtype))
        results = [*entry.results]
        results.insert(len(results) - batch.flags, flags)
        op = batch_op(len(entry.operands), len(results))
        self.entries.append(entry._replace(op=op, attrs={"batch": batch}, results=tuple(results)))
        if len(self.program.entries) == 1:
            self.flag = flags  # the batch remains the only operation
        else:
            self.note(self.new(_has_true, flags))

    def scan(self, entry: Entry) -> None:
        """Add a loop, which carries a flag from turn to turn."""
        scan = entry.attrs["scan"]
        found, count = _Flagged(scan.body), scan.n_carried
        if found.flag is None:
            self.entries.append(entry)
            return
        before, condition = found.value(_FLAG), scan.condition
        outputs = [*scan.body.outputs]
        outputs.insert(count, found.new(_either, before, found.flag))
        if condition is not None:
            condition = _with_input(condition, _FLAG)
        changed = scan.changed(
            body=_with_inputs(found.made(outputs), [before]), condition=condition,
            counts=(*scan.counts[:2], count + 1), examples=[*scan.examples, np.array(False)],
        )  # fmt: skip
        start, flag, results = self.value(_FLAG), self.value(_FLAG), [*entry.results]
        self.constants[start] = np.array(False)
        results.insert(count, flag)
        operands = (*entry.operands, start)
        self.entries.append(
            entry._replace(op=changed.op, operands=operands, attrs={"scan": changed}, results=tuple(results))
        )
        self.note(flag)

    def made(self, outputs: Sequence[int], guards: Sequence[Guard] = ()) -> Program:
        """Return the program with other outputs and guards."""
        own = self.program
        return Program(self.layouts, own.inputs, self.constants, self.entries, outputs, guards)


def _with_inputs(program: Program, numbers: Sequence[int]) -> Program:
    """Return a program with further inputs."""
    inputs = [*program.inputs, *numbers]
    return Program(program.layouts, inputs, program.constants, program.entries, program.outputs, program.guards)


def _with_input(program: Program, layout: Layout) -> Program:
    """Return a program with one more input, which it does not use."""
    layouts = [*program.layouts, layout]
    own = Program(layouts, program.inputs, program.constants, program.entries, program.outputs, program.guards)
    return _with_inputs(own, [len(program.layouts)])


def _of_items(batch: Batch) -> Batch | None:
    """Return a batch whose items have one more result, their flag; None if they refuse nothing."""
    found = [_Flagged(way) for way in batch.ways]
    if all(own.flag is None for own in found):
        return None
    ways = []
    for own in found:
        outputs = [*own.program.outputs]
        flag = own.flag
        if flag is None:
            flag = own.value(_FLAG)
            own.constants[flag] = np.array(False)
        elif batch.flags:  # another way may do what this item refuses
            flag = own.new(_both, flag, outputs[-1])
        outputs.insert(len(outputs) - batch.flags, flag)
        ways.append(own.made(outputs))
    return batch_of(ways, batch.mapped, batch.flags)


def _may_refuse(program: Program) -> bool:
    """Whether a program has an operation that may refuse its values, or one that is a program itself."""
    return any(
        op.name in _OF_MATRICES or op.name in _OF_INTEGERS or not _NESTED.isdisjoint(op.attrs) for op in program.ops
    )


def with_refusals(program: Program) -> Program:
    """Return a program with a last guard that says that no operation refuses its values, if there is one that may."""
    if not _may_refuse(program):
        return program
    found = _Flagged(program)
    if found.flag is None:
        return program
    guard = Guard(found.flag, np.zeros(found.layouts[found.flag].shape, bool), _WHERE)
    return found.made(program.outputs, [*program.guards, guard])

"""Programs of one item, put into the program that runs them for a batch.

Their operations become operations of the whole program on values of the item's shape. The batch is an axis that these
values have besides: no operation on them knows of it, as their nodes depend on it and their shapes do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tapegrad.kernels.rules import identity
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Flat", "enter", "flat", "leave"]


def _op(name: str) -> Op:
    op = Op(name=name, operands=("x",), forward=identity, vjp=(NOT_DIFFERENTIABLE,), family="batch")
    del op_table[name]  # it stands only in flat programs
    return op


#: From a value to each item's: its part along the dimension `dim`, 0 or -1; all of it if that is None.
enter: Final = _op("enter_batch")
#: From the values of items to that of the batch, along whose dimension `dim` they stand.
leave: Final = _op("leave_batch")


class Flat(NamedTuple):
    """A program without batches.

    Attributes
    ----------
    program : Program
    batches : dict
        For each value the batches that it is an item of, the outermost first.
    sizes : list of int
        How many items each batch has.
    """

    program: Program
    batches: Mapping[int, tuple[int, ...]]
    sizes: list[int]


class _Flattening:
    def __init__(self, program: Program) -> None:
        self.layouts: list[Any] = list(program.layouts)
        self.constants: dict[int, Any] = dict(program.constants)
        self.entries: list[Entry] = []
        self.batches: dict[int, tuple[int, ...]] = {}
        self.sizes: list[int] = []

    def new(self, layout: Any, batches: tuple[int, ...]) -> int:
        """Return the number of a new value."""
        self.layouts.append(layout)
        if batches:
            self.batches[len(self.layouts) - 1] = batches
        return len(self.layouts) - 1

    def add(self, program: Program, numbers: dict[int, int], batches: tuple[int, ...]) -> None:
        """Add the operations of a program, whose inputs have these numbers; all of its values get one."""
        for number, value in program.constants.items():
            if number not in numbers:
                numbers[number] = self.new(program.layouts[number], batches)
                self.constants[numbers[number]] = value
        for entry in program.entries:
            for number in entry.results:
                if number not in numbers:
                    numbers[number] = self.new(program.layouts[number], batches)
            entry = entry._replace(
                operands=tuple([numbers[number] for number in entry.operands]),
                index_arrays=tuple([numbers[number] for number in entry.index_arrays]),
                results=tuple([numbers[number] for number in entry.results]),
            )
            if entry.op.family == "batch":
                self.batch(entry, batches)
            else:
                self.entries.append(entry)

    def batch(self, entry: Entry, batches: tuple[int, ...]) -> None:
        """Add the operations of an item."""
        batch = entry.attrs["batch"]
        item, batches = batch.program, (*batches, len(self.sizes))
        self.sizes.append(self.layouts[entry.results[0]].shape[batch.dims[1]])
        numbers = {}
        for number, operand, mapped in zip(item.inputs, entry.operands, batch.mapped, strict=True):
            numbers[number] = self.new(item.layouts[number], batches)
            dim = batch.dims[0] if mapped else None
            self.entries.append(Entry(enter, (operand,), {"dim": dim}, (), (numbers[number],)))
        self.add(item, numbers, batches)
        for number, result in zip(item.outputs, entry.results, strict=True):
            self.entries.append(Entry(leave, (numbers[number],), {"dim": batch.dims[1]}, (), (result,)))


def flat(program: Program) -> Flat:
    """Return a program with the operations of items in place of batches."""
    if not any(entry.op.family == "batch" for entry in program.entries):
        return Flat(program, {}, [])
    made = _Flattening(program)
    made.add(program, {number: number for number in range(len(program.layouts))}, ())
    whole = Program(made.layouts, program.inputs, made.constants, made.entries, program.outputs, program.guards)
    return Flat(whole, made.batches, made.sizes)

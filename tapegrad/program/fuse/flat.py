"""Programs of one item, put into the program that runs them for a batch.

Their operations become operations of the whole program on values of the item's shape. The batch is an axis that these
values have besides: no operation on them knows of it, as their nodes depend on it and their shapes do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.kernels.rules import identity
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table
from tapegrad.program.fuse.moves import Movements
from tapegrad.program.fuse.slices import Slice, with_slices
from tapegrad.program.machine_code import Refused, TooLongError
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout

__all__ = ["Flat", "batches_alone", "enter", "flat", "leave", "note_too_long", "sliced"]


#: How many operations the ways through branches may have together, if each item goes all of them.
_OF_ALL_WAYS: Final = 1000
#: How many operations an item may have beside others: more have code of their own, in which loops are loops.
_BESIDE_OTHERS: Final = 400
_ALONE: Final = 4000  # and how many without others


#: From batches to how many items are too many for nests of loops, beside whatever they stand.
_too_many: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()


def _op(name: str, forward: Callable[..., Any] = identity, operands: tuple[str, ...] = ("x",)) -> Op:
    rules = (NOT_DIFFERENTIABLE,) * len(operands)
    op = Op(name=name, operands=operands, forward=forward, vjp=rules, family="batch_way")
    del op_table[name]  # it stands only in flat programs
    return op


#: From a value to each item's: its part along the dimension `dim`, 0 or -1; all of it if that is None.
enter: Final = _op("enter_batch")
#: From the values of items to that of the batch, along whose dimension `dim` they stand.
leave: Final = _op("leave_batch")
#: From whether an item takes a way to its results of that way, or of another.
choose: Final = _op("choose_way", lambda flag, x, y: np.where(flag, x, y), ("flag", "x", "y"))


class Flat(NamedTuple):
    """A program without batches.

    Attributes
    ----------
    program : Program
    batches : dict
        For each value the batches that it is an item of, the outermost first.
    sizes : list of int
        How many items each batch has.
    movements : Movements
        Where its operations move elements from.
    slices : dict
        Where inputs stand that are slices of others, by their numbers.
    """

    program: Program
    batches: Mapping[int, tuple[int, ...]]
    sizes: list[int]
    movements: Movements
    slices: Mapping[int, Slice]


class _Flattening:
    def __init__(self, program: Program) -> None:
        self.layouts: list[Any] = list(program.layouts)
        self.constants: dict[int, Any] = dict(program.constants)
        self.entries: list[Entry] = []
        self.batches: dict[int, tuple[int, ...]] = {}
        self.sizes: list[int] = []
        self.has_others = len(program.entries) > 1

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
        count = sum(len(way.entries) for way in batch.ways)
        if len(batch.ways) > 1 and count > _OF_ALL_WAYS:
            raise Refused(f"vmap: its branches have {count} operations")
        if not batches and count > (_BESIDE_OTHERS if self.has_others else _ALONE):
            raise Refused(f"vmap: an item has {count} operations")
        size = _size_of(entry, self.layouts)
        if size >= _too_many.get(batch, size + 1):
            raise TooLongError(f"vmap: {size} items have too many nests of loops, or too much between them")
        batches = (*batches, len(self.sizes))
        self.sizes.append(size)
        inputs = []
        for number, operand, mapped in zip(batch.program.inputs, entry.operands, batch.mapped, strict=True):
            inputs.append(self.new(batch.program.layouts[number], batches))
            dim = batch.dims[0] if mapped else None
            self.entries.append(Entry(enter, (operand,), {"dim": dim}, (), (inputs[-1],)))
        results = [self.way(way, inputs, batches) for way in batch.ways]
        chosen = results.pop()
        while results:
            chosen = self.chosen(results.pop(), chosen, batches)
        for number, result in zip(chosen, entry.results, strict=True):
            self.entries.append(Entry(leave, (number,), {"dim": batch.dims[1]}, (), (result,)))

    def way(self, program: Program, inputs: Sequence[int], batches: tuple[int, ...]) -> list[int]:
        """Add the operations of one way, and return its outputs."""
        numbers = dict(zip(program.inputs, inputs, strict=True))
        self.add(program, numbers, batches)
        return [numbers[number] for number in program.outputs]

    def chosen(self, results: Sequence[int], others: Sequence[int], batches: tuple[int, ...]) -> list[int]:
        """Return the results of a way where its flag, the last one, is true, else the others."""
        found = []
        for one, two in zip(results, others, strict=True):
            found.append(self.new(self.layouts[one], batches))
            self.entries.append(Entry(choose, (results[-1], one, two), {}, (), (found[-1],)))
        return found


def _size_of(entry: Entry, layouts: Sequence[Layout]) -> int:
    """Return the number of items of a batch."""
    dim: int = entry.attrs["batch"].dims[1]
    return layouts[entry.results[0]].shape[dim]


def note_too_long(program: Program) -> None:
    """Note that a program of one operation is too long: if it is a batch, all that have it will be refused at once."""
    (entry,) = program.entries
    if entry.op.family == "batch":
        _too_many[entry.attrs["batch"]] = _size_of(entry, program.layouts)


def batches_alone(program: Program) -> list[Program]:
    """Return the programs of each batch of a program that has other operations, too."""
    if len(program.entries) == 1:
        return []
    return [
        Program(program.layouts, tuple(dict.fromkeys(own.operands)), {}, [own], own.results).compact()
        for own in program.entries if own.op.family == "batch"
    ]  # fmt: skip


def sliced(program: Program) -> Flat | None:
    """Return a program whose slices along several dimensions are inputs; None if it has none, or batches."""
    made, slices = with_slices(program)
    if not slices or any(entry.op.family == "batch" for entry in program.entries):
        return None
    return Flat(made, {}, [], Movements(), slices)


def flat(program: Program) -> Flat:
    """Return a program with the operations of items in place of batches."""
    if not any(entry.op.family == "batch" for entry in program.entries):
        return Flat(program, {}, [], Movements(), {})
    made = _Flattening(program)
    made.add(program, {number: number for number in range(len(program.layouts))}, ())
    whole = Program(made.layouts, program.inputs, made.constants, made.entries, program.outputs, program.guards)
    return Flat(whole, made.batches, made.sizes, Movements(), {})

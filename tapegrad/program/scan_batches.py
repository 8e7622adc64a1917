"""Batches of items with loops: one loop for all items, whose turn is a batch of the item's turn.

So the items stand in the lanes of vectors. Where items take different numbers of turns, there are as many turns as the
last item takes, and those of items that are done change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.ops.table import functions as ops
from tapegrad.program.batch import batch_of
from tapegrad.program.checkpoints import Checkpointed
from tapegrad.program.program import Entry, Program
from tapegrad.program.replay import replay
from tapegrad.program.scan import TURNS_LAYOUT, Scan, scan_of
from tapegrad.program.trace import trace
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["lifted"]

_ONE: Final = np.array(1)


def lifted(program: Program) -> Program:
    """Return a program with loops around batches in place of batches of loops."""
    if not any(_is_lifted(program, entry) for entry in program.entries):
        return program
    made = _List(program)
    for entry in program.entries:
        if _is_lifted(program, entry):
            results = _Items(made, entry).results([made.numbers[number] for number in entry.operands])
            made.numbers.update(zip(entry.results, results, strict=True))
        else:
            made.copy(entry, made.numbers, program)
    return made.program(program)


def _is_lifted(program: Program, entry: Entry) -> bool:
    batch = entry.attrs.get("batch") if entry.op.family == "batch" else None
    if batch is None or len(batch.ways) > 1 or batch.dims != (0, 0):
        return False
    loops = [own for own in batch.program.entries if own.op.family == "scan"]
    return bool(loops) and not any(_is_apart(own) for own in loops)


def _is_apart(entry: Entry) -> bool:
    """Whether items of a loop would need schedules of their own."""
    own = entry.attrs.get("checkpoints")
    return own is not None and own.scan.is_open


class _List:
    """A list of operations that is being made.

    Attributes
    ----------
    numbers : dict
        From numbers of values of the program that it stands for to those of the list.
    """

    def __init__(self, program: Program) -> None:
        self.layouts = [program.layouts[number] for number in program.inputs]
        self.numbers = {number: place for place, number in enumerate(program.inputs)}
        self.constants: dict[int, Any] = {}
        self.entries: list[Entry] = []
        self._n_inputs = len(self.layouts)
        self.add_constants(program, self.numbers)

    def new(self, layout: Layout) -> int:
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def add_constants(self, program: Program, numbers: dict[int, int]) -> None:
        """Add the constants of a program."""
        for number, value in program.constants.items():
            numbers[number] = self.new(program.layouts[number])
            self.constants[numbers[number]] = value

    def copy(self, entry: Entry, numbers: dict[int, int], program: Program) -> None:
        """Add an operation of a program, by the numbers that its values have here."""
        for number in entry.results:
            numbers[number] = self.new(program.layouts[number])
        self.entries.append(
            entry._replace(
                operands=tuple([numbers[number] for number in entry.operands]),
                index_arrays=tuple([numbers[number] for number in entry.index_arrays]),
                results=tuple([numbers[number] for number in entry.results]),
            )
        )

    def splice(self, program: Program, inputs: Sequence[int]) -> list[int]:
        """Add the operations of a program, and return its outputs."""
        numbers = dict(zip(program.inputs, inputs, strict=True))
        self.add_constants(program, numbers)
        for entry in program.entries:
            self.copy(entry, numbers, program)
        return [numbers[number] for number in program.outputs]

    def call(self, function: Callable[..., Tensor], *numbers: int) -> int:
        """Add the operations that a function calls, and return the number of its result."""
        examples = [np.ones(self.layouts[number].shape, self.layouts[number].dtype) for number in numbers]
        with no_grad():
            program = trace(lambda *tensors: [function(*tensors)], examples)[0]
        return self.splice(program, numbers)[0]

    def program(self, like: Program) -> Program:
        """Return the program, with the outputs and guards of the one that it stands for."""
        guards = [guard._replace(value=self.numbers[guard.value]) for guard in like.guards]
        outputs = [self.numbers[number] for number in like.outputs]
        whole = Program(self.layouts, range(self._n_inputs), self.constants, self.entries, outputs, guards)
        return whole.cleaned()


class _Items:
    """The items of a batch. Values have a number in the list, and are those of each item, or the same for all."""

    def __init__(self, made: _List, entry: Entry) -> None:
        self._list, batch = made, entry.attrs["batch"]
        self._item: Program = batch.program
        self._flags: Sequence[bool] = batch.mapped
        self._values: dict[int, tuple[int, bool]] = {}
        self._size = 0
        self._turned: dict[int, int] = {}  # from rows to the same with the items behind the turns

    def results(self, operands: Sequence[int]) -> list[int]:
        """Add the operations of all items, and return their results."""
        item, made = self._item, self._list
        self._size = made.layouts[operands[list(self._flags).index(True)]].shape[0]
        self._values = dict(zip(item.inputs, zip(operands, self._flags, strict=True), strict=True))
        pending: list[Entry] = []
        for entry in item.entries:
            if entry.op.family == "scan":
                self._stretch(pending)
                pending = []
                self._loop(entry)
            else:
                pending.append(entry)
        self._stretch(pending)
        return [self._each(number) for number in item.outputs]

    def _value(self, number: int) -> tuple[int, bool]:
        if number not in self._values:  # a constant
            place = self._list.new(self._item.layouts[number])
            self._list.constants[place] = self._item.constants[number]
            self._values[number] = place, False
        return self._values[number]

    def _each(self, number: int) -> int:
        """Return a value of each item."""
        found, each = self._value(number)
        return found if each else self._spread(found)

    def _spread(self, number: int) -> int:
        """Return for each item a value that is the same for all."""
        size, shape = self._size, self._list.layouts[number].shape
        return self._list.call(lambda x: ops.expand(ops.unsqueeze(x, 0), (size, *shape)), number)

    def _stretch(self, entries: Sequence[Entry]) -> None:
        """Add operations without loops."""
        if not entries:
            return
        item = self._item
        made = [number for entry in entries for number in entry.results]
        inside = {*made, *item.constants}
        asked = dict.fromkeys(
            number for entry in entries for number in (*entry.operands, *entry.index_arrays) if number not in inside
        )
        later = {*item.outputs}
        stands = {id(entry) for entry in entries}
        for entry in item.entries:
            if id(entry) not in stands:
                later.update(entry.operands, entry.index_arrays)
        wanted = [number for number in made if number in later]
        program = Program(item.layouts, list(asked), item.constants, entries, wanted).cleaned().compact()
        values = [self._value(number) for number in asked]
        for number, found in zip(wanted, self._batch(program, values), strict=True):
            self._values[number] = found

    def _batch(self, program: Program, values: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """Return the outputs of a program of an item."""
        flags = [each for _, each in values]
        numbers = [number for number, _ in values]
        if not program.outputs:
            return []
        if not any(flags):
            return [(number, False) for number in self._list.splice(program, numbers)]
        whole = batch_of([program], flags).whole(self._size)
        return [(number, True) for number in self._list.splice(whole, numbers)]

    # ---- loops

    def _loop(self, entry: Entry) -> None:
        values = [self._value(number) for number in entry.operands]
        if not any(each for _, each in values):
            whole = (entry.attrs.get("scan") or entry.attrs["checkpoints"]).whole()
            found = [(number, False) for number in self._list.splice(whole, [number for number, _ in values])]
        elif "checkpoints" in entry.attrs:
            found = self._back(entry.attrs["checkpoints"], values)
        else:
            found = self._scan(entry.attrs["scan"], values)
        self._values.update(zip(entry.results, found, strict=True))

    def _rows(self, values: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """Return rows with the items behind the turns, where the results of other loops stand so already."""
        found = []
        for number, each in values:
            turned = self._turned.get(number) if each else number
            if turned is None:
                turned = self._list.call(lambda x: ops.movedim(x, 1, 0), number)
            found.append((turned, each))
        return found

    def _made(self, numbers: Sequence[int], n_carried: int) -> list[tuple[int, bool]]:
        """Return the results of a loop over turns of all items."""
        rows = [self._list.call(lambda x: ops.movedim(x, 0, 1), number) for number in numbers[n_carried:]]
        self._turned.update(zip(rows, numbers[n_carried:], strict=True))
        return [(number, True) for number in (*numbers[:n_carried], *rows)]

    def _scan(self, scan: Scan, values: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        consts, rows, turns, carried = scan.parts(values)
        rows = self._rows(rows)
        carried = [(number if each else self._spread(number), True) for number, each in carried]
        n_carried = scan.n_carried
        if scan.condition is not None:
            return self._until(scan, consts, carried)
        if turns and turns[0][1]:
            return self._counted(scan, consts, rows, turns[0][0], carried)
        whole = _of_all(scan, [*consts, *rows, *carried], self._size)
        operands = whole.operands(*[[number for number, _ in own] for own in (consts, rows, turns, carried)])
        return self._made(self._list.splice(whole.whole(), operands), n_carried)

    def _until(
        self, scan: Scan, consts: Sequence[tuple[int, bool]], carried: Sequence[tuple[int, bool]]
    ) -> list[tuple[int, bool]]:
        """Add a loop that ends when the condition of no item holds; the number of an item's turns is carried."""
        condition, n_consts, n_carried = scan.condition, len(consts), scan.n_carried
        assert condition is not None

        def turn(*tensors: Tensor) -> list[Tensor]:
            *own, count = tensors
            goes_on = replay(condition, own)[0][0]
            outputs = replay(scan.body, own)[0]
            new = [ops.where(goes_on, *pair) for pair in zip(outputs, own[n_consts:], strict=False)]
            return [*new, ops.add(count, goes_on), *outputs[n_carried:]]

        masked = _changed(scan, turn, [*scan.examples, _ONE], n_carried + 1)
        none = self._list.new(TURNS_LAYOUT)
        self._list.constants[none] = np.array(0)
        states = [*carried, (self._spread(none), True)]
        whole = _of_all(masked, [*consts, *states], self._size)
        flags = [each for _, each in (*consts, *carried)]
        asked = batch_of([condition], flags).whole(self._size)

        layouts = [whole.body.layouts[number] for number in whole.body.inputs]
        test = _List(Program(layouts, range(len(layouts)), {}, [], []))
        flag = test.call(lambda x: ops.any(x), *test.splice(asked, range(len(layouts) - 1)))
        goes_on = Program(test.layouts, range(len(layouts)), test.constants, test.entries, [flag])
        whole = Scan(whole.body, whole.counts, whole.length, (), condition=goes_on)
        found = self._list.splice(whole.whole(), [*[number for number, _ in consts], *[number for number, _ in states]])
        count = found[n_carried]
        if scan.length is not None:  # there was no room for the items that go on
            more = self._batch(condition, [*consts, *[(number, True) for number in found[:n_carried]]])[0][0]
            count = self._list.call(lambda x, y: ops.add(x, y), count, more)
        made = self._made([*found[:n_carried], *found[n_carried + 1 : -1]], n_carried)
        return [*made, (count, True)]

    def _counted(
        self, scan: Scan, consts: Sequence[tuple[int, bool]], rows: Sequence[tuple[int, bool]], turns: int,
        carried: Sequence[tuple[int, bool]],
    ) -> list[tuple[int, bool]]:  # fmt: skip
        """Add a loop of as many turns as the last item takes; the number of the row is carried."""
        n_consts, n_rows, n_carried = scan.counts
        step = -1 if scan.reverse else 1

        def turn(*tensors: Tensor) -> list[Tensor]:
            *own, row = tensors
            count, own = own[n_consts], [*own[:n_consts], *own[n_consts + 1 :]]
            goes_on = ops.lt(row, count)
            outputs = replay(scan.body, own)[0]
            new = [ops.where(goes_on, *pair) for pair in zip(outputs, own[n_consts + n_rows :], strict=False)]
            return [*new, ops.add(row, step), *outputs[n_carried:]]

        examples = [*scan.examples[:n_consts], _ONE, *scan.examples[n_consts:], _ONE]
        masked = _changed(scan, turn, examples, n_carried + 1, n_consts + 1)
        most = self._list.call(lambda x: ops.amax(x, 0), turns)
        if scan.length is not None:
            length = scan.length
            most = self._list.call(lambda x: ops.clamp(x, 0, length), most)
        first = self._list.call((lambda x: ops.sub(x, 1)) if scan.reverse else (lambda x: ops.mul(x, 0)), most)
        own = [*consts, (turns, True)]
        states = [*carried, (self._spread(first), True)]
        whole = _of_all(masked, [*own, *rows, *states], self._size)
        operands = whole.operands(*[[number for number, _ in part] for part in (own, rows, [(most, False)], states)])
        found = self._list.splice(whole.whole(), operands)
        return self._made([*found[:n_carried], *found[n_carried + 1 :]], n_carried)

    def _back(self, checkpoints: Checkpointed, values: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """Add a loop back from checkpoints, which are those of all items."""
        consts, rows, turns, first, seeds, carried = checkpoints.parts(values)
        rows, seeds = self._rows(rows), self._rows(seeds)
        first, carried = [
            [(number if each else self._spread(number), True) for number, each in own] for own in (first, carried)
        ]
        scan, back = checkpoints.scan, checkpoints.back
        n_consts = scan.counts[0]
        forth = _of_all(scan, [*consts[:n_consts], *rows, *first], self._size)
        kept = [(0, True)] * len(checkpoints.kept)
        whole = Checkpointed(
            forth, checkpoints.kept, _of_all(back, [*consts, *rows, *kept, *seeds, *carried], self._size),
            checkpoints.slots,
        )  # fmt: skip
        found = self._list.splice(
            whole.whole(), [number for own in (consts, rows, turns, first, seeds, carried) for number, _ in own]
        )
        return self._made(found, back.n_carried)


def _changed(
    scan: Scan, turn: Callable[..., list[Tensor]], examples: Sequence[Any], n_carried: int, n_consts: int | None = None
) -> Scan:
    """Return a loop of another turn, which takes more."""
    with no_grad():
        body = trace(turn, [np.asarray(own) for own in examples])[0]
    counts = (scan.counts[0] if n_consts is None else n_consts, scan.counts[1], n_carried)
    return scan_of(
        body, counts, scan.length, examples, reverse=scan.reverse, counted=scan.counted, condition=scan.condition
    )


def _of_all(scan: Scan, values: Sequence[tuple[int, bool]], size: int) -> Scan:
    """Return a loop whose turn is that of all items."""
    flags = [each for _, each in values]
    body = batch_of([scan.body], flags).whole(size)
    return Scan(
        body, scan.counts, scan.length, scan.examples,
        reverse=scan.reverse, counted=scan.counted, condition=scan.condition,
    )  # fmt: skip


Scan.lifted = staticmethod(lifted)

"""Programs as lists: operations on numbered values, and what is found out of such a list."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table
from tapegrad.program.columns import Columns
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout

if TYPE_CHECKING:
    from tapegrad.program.functional import Functional
    from tapegrad.program.signature import Signature


class Entry(NamedTuple):
    """One operation of a program.

    Attributes
    ----------
    op : Op
    operands : tuple of int
        The numbers of the values that it takes.
    attrs : mapping
    index_arrays : tuple of int
        The numbers of the values that are its arrays of indices.
    results : tuple of int
        The numbers of the values that it computes, one for each of the op's results.
    records : bool
        Whether gradients go through it: not if it was computed without a graph.

    Examples
    --------
    >>> import tapegrad as tg
    >>> f = tg.compile(lambda x: tg.sum(x.sin()))
    >>> _ = f(tg.tensor([1.0, 2.0]))
    >>> [entry.op.name for entry in f.programs[0].entries]
    ['sin', 'sum']
    """

    op: Op
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    index_arrays: tuple[int, ...]
    results: tuple[int, ...]
    records: bool = False


#: An entry from a tuple of its fields, in a third of the time.
entry_of: Final[Callable[[Any], Entry]] = functools.partial(tuple.__new__, Entry)


#: `Tensor.detach` as an operation of programs.
detach_op: Final = Op(
    name="detach",
    operands=("x",),
    forward=lambda x: x,
    vjp=(NOT_DIFFERENTIABLE,),
    family="unary",
    fx=lambda x: x,
)
del op_table[detach_op.name]  # it is a method, and stands only in programs


#: A value that was written over where nothing is recorded: its history is that of the one before.
rewritten_op: Final = Op(
    name="rewritten",
    operands=("x", "value"),
    forward=lambda x, value: value,
    vjp=(lambda ct: ct, NOT_DIFFERENTIABLE),
    family="binary",
    fx=lambda x, value: value,
)
del op_table[rewritten_op.name]


class Guard(NamedTuple):
    """A value that Python looked at while a function was traced: the program holds for this outcome only.

    Attributes
    ----------
    value : int
        The number of the value.
    outcome : object
        What it was: an array of its shape, whose bits are compared.
    where : str
        The line of the user's program that looked.
    """

    value: int
    outcome: np.ndarray
    where: str


class Listed:
    """The list of a program; see `tapegrad.program.Program`."""

    def __init__(
        self,
        layouts: Sequence[Layout],
        inputs: Sequence[int],
        constants: Mapping[int, Any],
        entries: Sequence[Entry] | Columns,
        outputs: Sequence[int],
        guards: Sequence[Guard] = (),
    ) -> None:
        self.layouts, self.inputs, self.outputs = list(layouts), tuple(inputs), tuple(outputs)
        self.constants, self.guards = dict(constants), tuple(guards)
        if isinstance(entries, Columns):
            self.columns, entries = entries, entries.entries
        self.entries: list[Entry] = list(entries)
        self.has_functions = False
        self.tracked: tuple[bool, ...] = ()
        self.limit: int | None = None
        self.function: Callable[[Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]] | None = None
        self.signature: Signature | None = None
        self.impure: Functional | None = None
        self._hash: int | None = None

    @functools.cached_property
    def columns(self) -> Columns:
        """The list as integers."""
        return Columns(self.entries)

    @functools.cached_property
    def kinds(self) -> tuple[np.ndarray, list[int]]:
        """For each entry its kind, and for each kind an entry: see `Columns.kinds`."""
        return self.columns.kinds(self.layouts)

    @property
    def ops(self) -> set[Op]:
        """The operations, of which a list of a million entries has a few."""
        return {self.entries[place].op for place in self.kinds[1]}

    def forget(self) -> None:
        """Forget what can be read from the list again."""
        for name in ("columns", "kinds"):
            self.__dict__.pop(name, None)

    def cleaned(self) -> Self:
        """Return the program without operations that no output and no guard depends on."""
        columns = self.columns
        alive, kept = columns.alive(len(self.layouts), [*self.outputs, *[guard.value for guard in self.guards]])
        constants = {number: value for number, value in self.constants.items() if alive[number]}
        return self.__class__(self.layouts, self.inputs, constants, columns.chosen(kept), self.outputs, self.guards)

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether the values of guards are the outcomes that the program was traced for, bit by bit."""
        return all(
            np.asarray(value).tobytes() == guard.outcome.tobytes()
            for value, guard in zip(values, self.guards, strict=True)
        )

    def compact(self) -> Self:
        """Return the program with numbers for the values that it has, and for no others."""
        results = [number for entry in self.entries for number in entry.results]
        kept = [*self.inputs, *self.constants, *results]
        to = {number: place for place, number in enumerate(kept)}

        def moved(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([to[number] for number in numbers]) if numbers else ()

        entries = [
            entry_of((op, moved(operands), attrs, moved(index_arrays), moved(results), records))
            for op, operands, attrs, index_arrays, results, records in self.entries
        ]
        return self.__class__(
            [self.layouts[number] for number in kept],
            moved(self.inputs),
            {to[number]: value for number, value in self.constants.items()},
            entries,
            moved(self.outputs),
            [guard._replace(value=to[guard.value]) for guard in self.guards],
        )

    def having_outputs(self, outputs: Sequence[int]) -> Self:
        """Return the same list with other outputs."""
        return self.__class__(self.layouts, self.inputs, self.constants, self.entries, outputs, self.guards)

    def with_outputs(self, outputs: Sequence[int]) -> Self:
        """Return the program of other outputs."""
        return self.having_outputs(outputs).cleaned()

    def key(self) -> Hashable:
        """Return what is equal for programs that do the same, if they are `compact`."""
        return (
            tuple([(own.shape, own.dtype, own.weak) for own in self.layouts]),
            self.inputs,
            tuple([(number, *_bits(value)) for number, value in self.constants.items()]),
            tuple([(*own[:2], _exact(tuple(own.attrs.items())), *own[3:]) for own in self.entries]),
            self.outputs,
            tuple([(own.value, *_bits(own.outcome)) for own in self.guards]),
        )

    def differentiable(self, wanted: Sequence[int]) -> set[int]:
        """Return the outputs that gradients reach from, of inputs with these numbers."""
        if self.has_functions:  # the list has what they compute, and not that gradients go through them
            return {number for number, is_tracked in zip(self.outputs, self.tracked, strict=False) if is_tracked}
        reached = set(wanted)
        for entry in self.entries:
            if entry.records and not reached.isdisjoint(entry.operands):
                reached.update(number for number in entry.results if self.layouts[number].floating)
        return reached.intersection(self.outputs)

    def reached(self, wanted: Sequence[bool], given: Sequence[bool]) -> tuple[bool, ...]:
        """Return for each input whether it is wanted, and gradients reach it from the outputs that are given."""
        if self.has_functions:
            return tuple(wanted)
        reached = set(itertools.compress(self.outputs, given))
        for entry in reversed(self.entries):
            if entry.records and not reached.isdisjoint(entry.results):
                reached.update(entry.operands)
        return tuple([own and number in reached for own, number in zip(wanted, self.inputs, strict=True)])

    def __eq__(self, other: object) -> bool:
        """Whether another program does the same by the same operations, and is called in the same way."""
        if self is other or not isinstance(other, Listed):
            return self is other
        if self.has_functions or other.has_functions or hash(self) != hash(other):
            return False
        return self.compact().key() == other.compact().key() and _call_key(self) == _call_key(other)

    def __hash__(self) -> int:
        if self._hash is None:
            names = tuple([entry.op.name for entry in self.entries])
            self._hash = hash((names, len(self.constants), len(self.outputs), len(self.inputs)))
        return self._hash


def _exact(value: Any) -> Hashable:
    """Return an attribute as what is equal for the same numbers only: 1, 1.0 and True are equal, and so are zeros."""
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    return (value.__class__, repr(value)) if isinstance(value, (int, float, complex)) else value


def _call_key(program: Listed) -> Hashable:
    """Return what is equal for programs that are called in the same way."""
    if program.signature is None:
        return None
    _, arguments, result, wanted, captured = program.signature
    return repr((arguments, result)), wanted, tuple([(own.requires_grad, *_bits(own._data)) for own in captured])


def _bits(value: Any) -> tuple[Hashable, ...]:
    """Return a constant as what is equal for equal bits."""
    data = np.asarray(value)
    return value.__class__, data.dtype, data.shape, data.tobytes()

"""`Program`: a pure function of arrays, as a straight list of operations on numbered values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout

if TYPE_CHECKING:
    from tapegrad.program.run import Runner


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
    """

    op: Op
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    index_arrays: tuple[int, ...]
    results: tuple[int, ...]
    records: bool = False


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


class Program:
    """A function of arrays, as the list of operations that computes its results.

    Values have numbers: first the inputs, then constants and results in the order in which they came. An operation
    stands behind those whose results it takes. The list is pure: it changes no value, and computes the same from the
    same inputs.

    Attributes
    ----------
    layouts : list of Layout
        Shape and dtype of each value. All stand row by row; a Python number, which does not decide a dtype, is `weak`.
    inputs : tuple of int
    constants : dict
        From numbers of values to arrays and Python numbers.
    entries : list of Entry
    outputs : tuple of int
    guards : tuple of Guard
    has_functions : bool
        Whether a `tapegrad.autograd.Function` was called, whose rule is not a part of the program.
    function : callable, optional
        From tensors in place of the inputs to the outputs and to the tensors that they depend on: what was traced. It
        serves derivatives if `has_functions`.
    """

    def __init__(
        self,
        layouts: Sequence[Layout],
        inputs: Sequence[int],
        constants: Mapping[int, Any],
        entries: Sequence[Entry],
        outputs: Sequence[int],
        guards: Sequence[Guard] = (),
    ) -> None:
        self.layouts, self.inputs, self.outputs = list(layouts), tuple(inputs), tuple(outputs)
        self.constants, self.entries, self.guards = dict(constants), list(entries), tuple(guards)
        self.has_functions = False
        self.function: Callable[[Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]] | None = None
        self._called: Callable[..., Any] | None = None  # by `trace`

    @staticmethod
    def trace(function: Callable[..., Any], *examples: Any) -> Program:
        """Return the program of a function, for arguments like these.

        Parameters
        ----------
        function : callable
            As for `tapegrad.compile`. It is called once.
        examples
            Its arguments.

        Returns
        -------
        Program
            It is called like the function, and returns the same.

        Raises
        ------
        TracingError
            If a value leaves the function in a way that cannot be followed.
        ValueError
            When the program is called, if the arguments have other shapes, dtypes or containers than the examples, or
            if Python would take another branch. `tapegrad.compile` traces again in these cases.

        Examples
        --------
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> program = tg.program.Program.trace(lambda x: (x * x).sum(), np.ones(3))
        >>> print(program)
        program(in0: float64[3])
            %0: float64[3] = mul(in0, in0)
            %1: float64[] = sum(%0, dim=(0,), keepdim=False, dtype=None)
            return %1
        >>> float(program(np.array([1.0, 2.0, 3.0])))
        14.0
        """
        from tapegrad.program.fixed import Fixed

        called: Any = Fixed(function)
        called(*examples)
        program: Program = called.programs[0]
        program._called = called
        return program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns that was traced; see `trace`."""
        if self._called is None:
            raise TypeError("this program is a part of a compiled function; call that, or make one by Program.trace()")
        return self._called(*args, **kwargs)

    @functools.cached_property
    def run(self) -> Runner:
        """How it runs."""
        from tapegrad.program.run import Runner

        return Runner(self)

    def source(self) -> str:
        """Return its loops as readable code."""
        return self.run.source()

    def explain(self) -> str:
        """Return how it runs, and why."""
        return self.run.explain()

    def cleaned(self) -> Program:
        """Return the program without operations that no output and no guard depends on."""
        alive = {*self.outputs, *(guard.value for guard in self.guards)}
        entries = []
        for entry in reversed(self.entries):
            _, operands, _, arrays, results, _ = entry  # attributes take twice the time
            if results[0] in alive or not alive.isdisjoint(results):
                alive.update(operands, arrays)
                entries.append(entry)
        constants = {number: value for number, value in self.constants.items() if number in alive}
        return Program(self.layouts, self.inputs, constants, entries[::-1], self.outputs, self.guards)

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether the values of guards are the outcomes that the program was traced for, bit by bit."""
        return all(
            np.asarray(value).tobytes() == guard.outcome.tobytes()
            for value, guard in zip(values, self.guards, strict=True)
        )

    def compact(self) -> Program:
        """Return the program with numbers for the values that it has, and for no others."""
        results = [number for entry in self.entries for number in entry.results]
        kept = [*self.inputs, *self.constants, *results]
        to = {number: place for place, number in enumerate(kept)}

        def moved(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([to[number] for number in numbers])

        entries = [
            own._replace(operands=moved(own.operands), index_arrays=moved(own.index_arrays), results=moved(own.results))
            for own in self.entries
        ]
        return Program(
            [self.layouts[number] for number in kept],
            moved(self.inputs),
            {to[number]: value for number, value in self.constants.items()},
            entries,
            moved(self.outputs),
            [guard._replace(value=to[guard.value]) for guard in self.guards],
        )

    def with_outputs(self, outputs: Sequence[int]) -> Program:
        """Return the program of other outputs."""
        return Program(self.layouts, self.inputs, self.constants, self.entries, outputs, self.guards).cleaned()

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
        reached = set(wanted)
        for entry in self.entries:
            if entry.records and not reached.isdisjoint(entry.operands):
                reached.update(number for number in entry.results if self.layouts[number].floating)
        return reached.intersection(self.outputs)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        names = {number: f"in{position}" for position, number in enumerate(self.inputs)}
        for number, value in self.constants.items():
            names[number] = repr(value) if not isinstance(value, np.ndarray) else f"const{list(value.shape)}"
        count = 0
        lines = []
        for entry in self.entries:
            for result in entry.results:
                names[result] = f"%{count}"
                count += 1
            left = ", ".join(f"{names[result]}: {self.layouts[result]}" for result in entry.results)
            values = [names[number] for number in (*entry.operands, *entry.index_arrays)]
            attrs = [f"{name}={value!r}" for name, value in entry.attrs.items()]
            lines.append(f"{left} = {entry.op.name}({', '.join([*values, *attrs])})")
        lines += [f"guard {names[guard.value]} == {guard.outcome!r}  # {guard.where}" for guard in self.guards]
        inputs = ", ".join(f"{names[number]}: {self.layouts[number]}" for number in self.inputs)
        outputs = ", ".join(names[number] for number in self.outputs)
        return [f"program({inputs})", *(f"    {line}" for line in lines), f"    return {outputs}"]


def _exact(value: Any) -> Hashable:
    """Return an attribute as what is equal for the same numbers only: 1, 1.0 and True are equal, and so are zeros."""
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    return (value.__class__, repr(value)) if isinstance(value, (int, float, complex)) else value


def _bits(value: Any) -> tuple[Hashable, ...]:
    """Return a constant as what is equal for equal bits."""
    data = np.asarray(value)
    return value.__class__, data.dtype, data.shape, data.tobytes()

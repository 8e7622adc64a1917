"""Programs with effects as pure functions: what a function writes to is an argument more, and a result more.

So they run where there are no tensors that could be written to: in code of Numba and C, and from files.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tapegrad.func.trees import flatten, rebuild
from tapegrad.program.effects import Drawn, Outside, Read, identity_of
from tapegrad.program.program import Program
from tapegrad.program.signature import Signature, Slot
from tapegrad.program.templates import GradOf
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor

__all__ = ["Functional"]

Cell = Tensor | GradOf | Read


class Functional:
    """How a program with effects becomes a pure one.

    Parameters
    ----------
    program : Program
    outside : Outside
        What it takes from outside, and changes there.
    signature : Signature
        Of the function, without what comes from outside.
    """

    def __init__(self, program: Program, outside: Outside, signature: Signature) -> None:
        self._program, self._outside, self._signature = program, outside, signature

    def _refusal(self) -> str:
        """Return why it has no state that could be an argument; "" if it has."""
        outside = self._outside
        if any(isinstance(own, Drawn) for own in outside.sources):
            return "it draws random numbers; let them be an argument"
        if any(isinstance(own, int) for own in outside.written):
            return "it writes to its arguments; let it return new values"
        if outside.puts:
            return "it puts tensors in attributes of modules; let it return them"
        return ""

    def _cells(self) -> list[Cell]:
        """Return what the state consists of: what is read and may be another one in each call, then what is written."""
        written = {identity_of(own) for own in self._outside.written}
        cells = {
            identity_of(own): own
            for own in self._outside.sources
            if not isinstance(own, Drawn) and (not isinstance(own, Tensor) or identity_of(own) in written)
        }
        cells.update({identity_of(own): own for own in self._outside.written if not isinstance(own, int)})
        return list(cells.values())

    def state(self) -> tuple[Any, ...]:
        """Return the state as it is now, in new arrays, and numbers."""
        return tuple([_array(own)[()] for own in self._cells()])

    def program(self) -> Program:
        """Return the pure program.

        Raises
        ------
        TypeError
            If the state cannot be an argument; the message says why.
        """
        program, outside, own = self._program, self._outside, self._signature
        problem = self._refusal()
        if problem:
            raise TypeError(f"{own.name} has no form without effects, as {problem}")
        cells = self._cells()
        count = len(own.wanted)
        sources = dict(zip(map(identity_of, outside.sources), program.inputs[count:], strict=True))
        layouts, inputs = list(program.layouts), []
        for cell in cells:
            number = sources.pop(identity_of(cell), None)
            if number is None:  # it is written to, and not read
                number = len(layouts)
                layouts.append(layout_of(_array(cell)))
            inputs.append(number)
        n_results = len(program.outputs) - len(outside.written) - len(outside.new_grads)
        end = n_results + len(outside.written)
        results, grads = program.outputs[:n_results], program.outputs[end:]
        written = dict(zip(map(identity_of, outside.written), program.outputs[n_results:end], strict=True))
        states = [written.get(identity_of(cell), number) for cell, number in zip(cells, inputs, strict=True)]
        args, kwargs = own.arguments
        first = sum(isinstance(leaf, Slot) for leaf in flatten(args))
        given = [*program.inputs[:first], *inputs, *program.inputs[first:count]]
        pure = Program(
            layouts, [*given, *sources.values()], program.constants, program.entries, [*results, *states, *grads],
            program.guards,
        ).compact()  # fmt: skip
        pure.has_functions, pure.tracked, pure.limit = program.has_functions, program.tracked, program.limit
        state, slopes = (Slot(0),) * len(cells), (Slot(0),) * len(grads)
        pure.signature = Signature(
            own.name,
            _numbered(((*args, state), kwargs)),
            _numbered((own.result, state, slopes)),
            (*own.wanted[:first], *[False] * len(cells), *own.wanted[first:]),
            tuple([other for other in outside.sources if isinstance(other, Tensor) and identity_of(other) in sources]),
        )
        return pure


def _numbered(tree: Any) -> Any:
    """Return a tree whose slots have numbers in their order."""
    numbers = itertools.count()
    return rebuild(tree, [Slot(next(numbers)) if isinstance(leaf, Slot) else leaf for leaf in flatten(tree)])


def _array(cell: Cell) -> np.ndarray:
    """Return a copy of what a cell has now."""
    if isinstance(cell, Read):
        return np.array(cell.new())
    tensor: Any = cell.tensor.grad if isinstance(cell, GradOf) else cell
    return np.array(tensor._data)

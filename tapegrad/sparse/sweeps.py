"""What computes a sparse matrix: a sweep for each colour, and where its elements stand in what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from tapegrad.autograd.backward import grad
from tapegrad.func.level import recorded
from tapegrad.func.products import linearize
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.trace import trace
from tapegrad.sparse.coloring import Coloring
from tapegrad.tensor import Tensor

__all__ = ["Sweeps"]

_LONG: Final = 64  # indices: as constants, each would be looked at while code is made


def _places_of(pattern: csr_array, coloring: Coloring) -> np.ndarray:
    """Return for each element of a pattern where it stands in the flat array of all sweeps' results."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    columns, colors = pattern.indices.astype(np.int64), coloring.colors
    if coloring.kind == "columns":
        places: np.ndarray = colors[columns] * pattern.shape[0] + rows
        return places
    by_row: np.ndarray = colors[rows] * pattern.shape[1] + columns
    if coloring.kind == "rows":
        return by_row
    # In row i, an unknown j is alone with its colour, or else i is in row j.
    _, which, times = np.unique(rows * coloring.n_colors + colors[columns], return_inverse=True, return_counts=True)
    return np.where(times[which] == 1, colors[columns] * pattern.shape[0] + rows, by_row)


class Sweeps:
    """The elements of a matrix, in their order, and what the guards of its function look at.

    A program computes the sweep of one colour, and is called for each. Colours and long indices are inputs of it, as
    constants would be a part of its text.

    Parameters
    ----------
    program : Program
        The function, or the gradient of which the matrix is the Jacobian.
    wanted : sequence of int
        The inputs that it is differentiated by, by their places.
    arrays : sequence of numpy.ndarray
        Examples of all inputs.
    coloring : Coloring
    pattern : csr_array
    """

    def __init__(
        self, program: Program, wanted: Sequence[int], arrays: Sequence[Any], coloring: Coloring, pattern: csr_array
    ) -> None:
        self._n_outputs, self._wanted, self._is_forward = len(program.outputs), wanted, coloring.kind == "columns"
        self._function, indices = _with_indices(program)
        self._places = _places_of(pattern, coloring)
        self._numbers = [np.array(float(k)) for k in range(max(coloring.n_colors, 1))]
        self._rest = [*indices, coloring.colors.astype(np.float64)]
        self.program, captured = trace(self._sweep, [*arrays, *self._rest, self._numbers[0]])
        self._captured = [raw_data(own) for own in captured]

    def run(self, arrays: Sequence[Any]) -> tuple[np.ndarray, Sequence[Any]] | None:
        """Return the elements, and the values that guards look at; None if the sweeps themselves go another way."""
        found: list[np.ndarray] = []
        values: Sequence[Any] = ()
        for number in self._numbers:
            (results, *values), guards = self.program.run([*arrays, *self._rest, number, *self._captured])
            if not self.program.holds(guards):
                return None
            found.append(results)
        return np.take(found[0] if len(found) == 1 else np.concatenate(found), self._places), values

    def _sweep(self, *tensors: Tensor) -> list[Tensor]:
        """Return the results of a sweep, and what the guards of the function look at."""
        *inputs, colors, number = tensors
        seen: list[Tensor] = []

        def outputs(*unknowns: Tensor) -> Tensor:
            for place, tensor in zip(self._wanted, unknowns, strict=True):
                inputs[place] = tensor
            results = replay(self._function, inputs)[0]
            seen[:] = [value.detach() for value in results[self._n_outputs :]]
            return _vector(results[: self._n_outputs])

        sweep = _tangents if self._is_forward else _cotangents
        product = sweep(outputs, [inputs[place] for place in self._wanted])
        return [product((colors == number).to(np.float64)), *seen]


def _with_indices(program: Program) -> tuple[Program, list[np.ndarray]]:
    """Return a program whose long constant indices are inputs, behind the others, and these indices.

    Its last outputs are what its guards look at.
    """
    long = {
        number: np.asarray(program.constants[number])
        for entry in program.entries
        for number in entry.index_arrays
        if number in program.constants and program.layouts[number].size > _LONG
    }
    constants = {number: value for number, value in program.constants.items() if number not in long}
    outputs = [*program.outputs, *[guard.value for guard in program.guards]]
    function = Program(program.layouts, [*program.inputs, *long], constants, program.entries, outputs).cleaned()
    return function, list(long.values())


def _vector(tensors: Sequence[Tensor]) -> Tensor:
    parts = [own if own.ndim == 1 else own.reshape(-1) for own in tensors]
    return parts[0] if len(parts) == 1 else ops.cat(parts)


def _tangents(outputs: Callable[..., Tensor], unknowns: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the function that multiplies the Jacobian by a vector."""
    _, push = linearize(outputs, *unknowns)

    def product(vector: Tensor) -> Tensor:
        parts = ops.split(vector, [own.numel() for own in unknowns]) if len(unknowns) > 1 else [vector]
        tangents = [part.to(own.dtype).reshape(own.shape) for part, own in zip(parts, unknowns, strict=True)]
        found: Tensor = push(*tangents)
        return found

    return product


def _cotangents(outputs: Callable[..., Tensor], unknowns: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the function that multiplies the transposed Jacobian by a vector."""
    leaves = [own.detach().requires_grad_() for own in unknowns]
    result = recorded(outputs, *leaves)

    def product(vector: Tensor) -> Tensor:
        if not result.requires_grad:
            return vector.new_zeros(sum(own.numel() for own in unknowns))
        seed = vector.to(result.dtype)
        return _vector(grad(result, leaves, seed, retain_graph=True, allow_unused=True, materialize_grads=True))

    return product

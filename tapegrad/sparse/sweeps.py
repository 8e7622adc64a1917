"""The program that computes a sparse matrix: a sweep for each colour, and where its elements stand in what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from tapegrad.autograd.backward import grad
from tapegrad.func.level import recorded
from tapegrad.func.mapping import vmap
from tapegrad.func.products import linearize
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.trace import trace
from tapegrad.sparse.coloring import Coloring
from tapegrad.tensor import Tensor

__all__ = ["Sweeps", "places_of"]

_FEW: Final = 8  # colours, each of which is written down


def places_of(pattern: csr_array, coloring: Coloring) -> np.ndarray:
    """Return for each element of a pattern where it stands in the flat array of all sweeps' results."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    columns, colors = pattern.indices.astype(np.int64), coloring.colors
    if coloring.kind == "columns":
        return colors[columns] * pattern.shape[0] + rows
    if coloring.kind == "rows":
        return colors[rows] * pattern.shape[1] + columns
    # In row i, an unknown j is alone with its colour, or else i is in row j.
    count = coloring.count
    here, there = rows * count + colors[columns], columns * count + colors[rows]
    _, which, times = np.unique(here, return_inverse=True, return_counts=True)
    alone = times[which] == 1
    return np.where(alone, colors[columns] * len(colors) + rows, colors[rows] * len(colors) + columns)


class Sweeps:
    """The program of the elements of a matrix, in their order, and of what the guards of its function look at.

    Colours and places are inputs of the program, as large constants would be a part of its text.

    Parameters
    ----------
    program : Program
        The function, or the gradient of which the matrix is the Jacobian.
    wanted : sequence of int
        The inputs that it is differentiated by, by their places.
    arrays : sequence of numpy.ndarray
        Examples of all inputs.
    coloring : Coloring
    places : numpy.ndarray
        See `places_of`.
    """

    def __init__(
        self, program: Program, wanted: Sequence[int], arrays: Sequence[Any], coloring: Coloring, places: np.ndarray
    ) -> None:
        self._function = program.with_outputs([*program.outputs, *[guard.value for guard in program.guards]])
        self._n_outputs, self._wanted, self._coloring = len(program.outputs), wanted, coloring
        colors = coloring.colors.astype(np.float64)
        self._rest = [colors, np.arange(float(coloring.count)), places]
        self.program, captured = trace(self._elements, [*arrays, *self._rest])
        self._rest += [raw_data(own) for own in captured]

    def run(self, arrays: Sequence[Any]) -> tuple[np.ndarray, Sequence[Any]] | None:
        """Return the elements, and the values that guards look at; None if the sweeps themselves go another way."""
        (data, *values), guards = self.program.run([*arrays, *self._rest])
        return (np.asarray(data), values) if self.program.holds(guards) else None

    def _elements(self, *tensors: Tensor) -> list[Tensor]:
        *inputs, colors, numbers, places = tensors
        seen: list[Tensor] = []

        def outputs(*unknowns: Tensor) -> Tensor:
            for place, tensor in zip(self._wanted, unknowns, strict=True):
                inputs[place] = tensor
            results = replay(self._function, inputs)[0]
            seen[:] = [value.detach() for value in results[self._n_outputs :]]
            return _vector(results[: self._n_outputs])

        product = (_tangents if self._coloring.kind == "columns" else _cotangents)(
            outputs, [inputs[place] for place in self._wanted]
        )

        def sweep(number: Tensor) -> Tensor:
            return product((colors == number).to(np.float64))

        if self._coloring.count > _FEW:
            results = vmap(sweep)(numbers).reshape(-1)
        else:
            results = ops.cat([sweep(numbers[k]) for k in range(self._coloring.count)])
        return [results[places], *seen]


def _vector(tensors: Sequence[Tensor]) -> Tensor:
    parts = [own if own.ndim == 1 else own.reshape(-1) for own in tensors]
    return parts[0] if len(parts) == 1 else ops.cat(parts)


def _tangents(outputs: Any, unknowns: Sequence[Tensor]) -> Any:
    """Return the function that multiplies the Jacobian by a vector."""
    _, push = linearize(outputs, *unknowns)

    def product(vector: Tensor) -> Tensor:
        tangents, at = [], 0
        for own in unknowns:
            size = own.numel()
            tangents.append(vector[at : at + size].reshape(own.shape))
            at += size
        found: Tensor = push(*tangents)
        return found

    return product


def _cotangents(outputs: Any, unknowns: Sequence[Tensor]) -> Any:
    """Return the function that multiplies the transposed Jacobian by a vector."""
    leaves = [own.detach().requires_grad_() for own in unknowns]
    result = recorded(outputs, *leaves)

    def product(vector: Tensor) -> Tensor:
        found = grad(result, leaves, vector, retain_graph=True, allow_unused=True, materialize_grads=True)
        return _vector(found)

    return product

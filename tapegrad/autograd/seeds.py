"""Jacobians: the gradients of each element of a result, from unit vectors as cotangents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.rows import pull_rows
from tapegrad.modes import enable_grad
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor, from_array

_FEW: Final = 8  # rows, which a trace writes down one after the other; else the row is a batch's item


def pull_units(
    root: Tensor, inputs: Sequence[Tensor], *, create_graph: bool, chunk: int | None = None
) -> list[Tensor | None]:
    """Return for each input the gradients of all elements of a result; the graph is kept.

    Parameters
    ----------
    root : Tensor
    inputs : sequence of Tensor
        Which require grad.
    create_graph : bool
        Record the computation of the gradients.
    chunk : int, optional
        How many gradients to compute at once.

    Returns
    -------
    list of (Tensor or None)
        With the elements of the result along the first dimension; None for an input that it does not depend on.
    """
    if not root.requires_grad:
        return [None] * len(inputs)
    if root.is_leaf:  # an input is returned as it is
        with enable_grad():
            root = root.view_as(root)
    parts = [_pulled(root, inputs, batch, create_graph) for batch in _units(root, chunk)]
    if len(parts) == 1:
        return parts[0]
    columns = zip(*parts, strict=True) if parts else [(None,)] * len(inputs)
    return [None if column[0] is None else xp.cat(column, 0) for column in columns]


def _units(tensor: Tensor, chunk: int | None) -> Iterator[np.ndarray]:
    """Yield the unit vectors of a tensor's shape along the first dimension, so many at once."""
    count = tensor.numel()
    step = min(chunk or count, count)
    for first in range(0, count, max(step, 1)):
        size = min(step, count - first)
        rows = np.zeros((size, count), tensor.dtype)
        rows[np.arange(size), np.arange(first, first + size)] = 1
        yield rows.reshape(size, *tensor.shape)


def _pulled(root: Tensor, inputs: Sequence[Tensor], batch: np.ndarray, create_graph: bool) -> list[Tensor | None]:
    if root.is_traced and len(batch) > _FEW:
        from tapegrad.program.mapped import mapped  # at call time: programs import this package

        def row(ct: Tensor) -> list[Tensor | None]:
            return list(grad(root, inputs, ct, retain_graph=True, create_graph=create_graph, allow_unused=True))

        pulled: list[Tensor | None] | None = mapped(row, row, [from_array(batch)], in_program=True)
        if pulled is not None:
            return pulled
    if len(batch) > 1 or not create_graph:
        gradients = pull_rows([root], inputs, [from_array(batch)], retain=True, create_graph=create_graph)
        if gradients is not None:
            return gradients
    rows = [
        grad(root, inputs, from_array(batch[row, ...]), retain_graph=True, create_graph=create_graph, allow_unused=True)
        for row in range(len(batch))
    ]
    if len(rows) == 1:
        return [None if row is None else xp.unsqueeze(row, 0) for row in rows[0]]
    return [None if column[0] is None else xp.stack(column) for column in zip(*rows, strict=True)]


def block(output: Tensor, x: Tensor, rows: Tensor | None) -> Tensor:
    """Return the Jacobian of one output with respect to one input, of both shapes, from its elements in order."""
    shape = output.shape + x.shape
    if rows is None:
        return from_array(np.zeros(shape, x.dtype))
    return rows if rows.shape == shape else xp.reshape(rows, shape)

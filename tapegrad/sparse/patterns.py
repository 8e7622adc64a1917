"""The pattern of a program's Jacobian: which outputs depend on which inputs, found by a walk over its operations.

It holds for all values of the inputs, along the way through branches that the program is for. An element of the
pattern may be 0 for some values, or for all; what is no element is 0 for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from tapegrad.program.batch import Batch
from tapegrad.program.program import Entry, Program
from tapegrad.sparse.operations import Rows, dependencies
from tapegrad.sparse.structure import chosen, empty, gathered, stacked, unit, united

__all__ = ["pattern_of"]


def pattern_of(program: Program, wanted: Sequence[int]) -> csr_array:
    """Return the pattern of a program's Jacobian.

    Parameters
    ----------
    program : Program
    wanted : sequence of int
        Values, mostly inputs: the columns are their elements.

    Returns
    -------
    csr_array
        Boolean; the rows are the elements of all outputs.

    Raises
    ------
    TooDense
        If an operation's results depend on too much.
    """
    width = sum(program.layouts[number].size for number in wanted)
    known: dict[int, Rows] = {}
    start = 0
    for number in wanted:
        size = program.layouts[number].size
        known[number] = unit(start, size, width)
        start += size
    last = {number: position for position, entry in enumerate(program.entries) for number in _taken(entry)}
    kept = {*program.outputs, *wanted}
    for position, entry in enumerate(program.entries):
        operands = [known.get(number) for number in entry.operands]
        if any(rows is not None for rows in operands):
            if entry.op.family == "batch":
                results = _of_batch(program, entry, operands, width)
            else:
                results = dependencies(program, entry, operands)
            known.update(zip(entry.results, results, strict=True))
        for number in _taken(entry):
            if last[number] == position and number not in kept:
                known.pop(number, None)
    outputs = [(known.get(number), program.layouts[number].size) for number in program.outputs]
    found = stacked([empty(size, width) if rows is None else rows for rows, size in outputs])
    found.sort_indices()
    return found


def _taken(entry: Entry) -> tuple[int, ...]:
    return (*entry.operands, *entry.index_arrays)


def _of_batch(program: Program, entry: Entry, operands: Sequence[Rows], width: int) -> list[Rows]:
    """Return what the results of `vmap` depend on: each item as its program says, by whichever way it goes."""
    batch: Batch = entry.attrs["batch"]
    shapes = [program.layouts[number].shape for number in entry.operands]
    places = [place for place, rows in enumerate(operands) if rows is not None]
    taken, given = batch.dims
    each = batch.mapped.index(True)
    size = shapes[each][-1 if taken else 0]
    whole = stacked([rows for rows in operands if rows is not None])
    # Where an element of an item's input stands among the rows of `whole`, and how far on that of the next item.
    bases, steps, start = [], [], 0
    for place in places:
        count = math.prod(shapes[place])
        own = count // size if batch.mapped[place] else count
        element = np.arange(own)
        bases.append(start + (element * size if batch.mapped[place] and taken else element))
        steps.append(np.full(own, (1 if taken else own) if batch.mapped[place] else 0))
        start += count
    base, step = np.concatenate(bases), np.concatenate(steps)
    items = [pattern_of(way, [way.inputs[place] for place in places]) for way in batch.ways]
    local = united(items)
    results: list[Rows] = []
    row = 0
    for number in batch.program.outputs:
        layout = batch.program.layouts[number]
        part = local[row : row + layout.size]
        row += layout.size
        if not layout.floating or not part.nnz:
            results.append(None)
            continue
        columns = base[part.indices] + np.arange(size)[:, None] * step[part.indices]
        ends = np.concatenate([[0], (np.arange(size)[:, None] * part.nnz + part.indptr[1:]).reshape(-1)])
        spread = csr_array((np.ones(columns.size, bool), columns.reshape(-1), ends), shape=(size * layout.size, start))
        rows = chosen(spread, whole)
        if given:  # items stand along the last dimension
            rows = gathered(rows, np.arange(size * layout.size).reshape(size, layout.size).T.reshape(-1))
        results.append(rows)
    return results

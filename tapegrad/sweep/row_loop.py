"""Compiled: one search of the tape, and a sweep for each of many cotangents.

`sweep_rows` is a function as described in `tapegrad.recording.native`. Like `sweep`, which it repeats, it works without
the GIL, never raises, and returns a status. Where a sweep stops, Python finishes it, and calls again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.compiler.intrinsics import memcpy
from tapegrad.recording.native import new_integer, release_gil, take_gil
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array, Struct, Table
from tapegrad.sweep.loop import go_back, start
from tapegrad.sweep.workspace import DONE, WRITTEN, State


class Moved(Struct):
    """An array that gets one row after the other, or that is copied to them."""

    array: int
    rows: int  # address of the first
    nbytes: int  # of one
    entry_id: int  # of a leaf, whose gradient it is


class Rows(Struct):
    """The memory of `sweep_rows`."""

    cts: Array[int]  # as `find` has left them
    n_seeds: int
    seeds: Table[Moved]
    n_gradients: int
    gradients: Table[Moved]
    row: int
    count: int
    is_swept: int  # whether Python has finished the row


def begin(state: State, rows: Rows, seeds: List) -> None:
    """Copy the seeds of the row, and start a sweep."""
    memcpy(state.cts, rows.cts, 8 * state.n_ids)
    for index in range(rows.n_seeds):
        seed = rows.seeds[index]
        memcpy(seed.array, seed.rows + rows.row * seed.nbytes, seed.nbytes)
    start(state, seeds)


def collect(state: State, rows: Rows) -> None:
    """Copy the gradients of leaves to their rows."""
    for index in range(rows.n_gradients):
        gradient = rows.gradients[index]
        if state.cts[gradient.entry_id] & WRITTEN:
            memcpy(gradient.rows + rows.row * gradient.nbytes, gradient.array, gradient.nbytes)


def sweep_rows(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Sweep for each row, from the one that is next: ``sweep_rows(seeds, words)``.

    Parameters
    ----------
    self : numpy.ndarray
        The words of the workspace.
    seeds : list of numpy.ndarray
        The arrays that hold the cotangents of the roots.
    words : numpy.ndarray
        The words of `Rows`.
    """
    state, seeds, rows = State(self.data), List(args[0]), Rows(NDArray(args[1]).data)
    status = DONE
    thread = release_gil()
    while status == DONE and rows.row < rows.count:
        if rows.is_swept == 0:
            begin(state, rows, seeds)
            status = go_back(state)
        rows.is_swept = 1
        if status == DONE:
            collect(state, rows)
            rows.row += 1
            rows.is_swept = 0
    take_gil(thread)
    return new_integer(status)


# In Python -----------------------------------------------------------------------------------------------------------


def _moved(pairs: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> np.ndarray:
    """Return the words of a table: of each an array, its rows, and an id."""
    words = []
    for array, rows, entry_id in pairs:
        for own in (array, rows):
            watch(own, "rows of cotangents")
        words += [address_of_array(array), address_of_array(rows), array.nbytes, entry_id]
    return watch(np.array([*words, 0], np.int64), "a table of rows")


class RowLoop:
    """The memory of `sweep_rows` for one pass.

    Parameters
    ----------
    cts : numpy.ndarray
        The words of `State.cts`, as `find` has left them.
    seeds, gradients : sequence of (numpy.ndarray, numpy.ndarray, int)
        An array, its rows, and the id of the entry.
    count : int
        How many rows there are.
    """

    def __init__(
        self, cts: np.ndarray, seeds: Sequence[tuple[np.ndarray, np.ndarray, int]],
        gradients: Sequence[tuple[np.ndarray, np.ndarray, int]], count: int,
    ) -> None:  # fmt: skip
        self.held = watch(cts, "cotangents"), _moved(seeds), _moved(gradients)
        at = [address_of_array(own) for own in self.held]
        words = [at[0], len(seeds), at[1], len(gradients), at[2], 0, count, 0]
        self.words = watch(np.array(words, np.int64), "the rows of a sweep")

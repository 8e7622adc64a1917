"""Slices of inputs along several dimensions: inputs of their own, which stand in the memory of others.

So neighbours on a grid are loads of one memory. Else a slice has other axes than its operand.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tapegrad.program.fuse.space import steps_of
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Slice", "with_slices"]

_FEW: Final = 256  # elements of a slice that may be scalars


class Slice(NamedTuple):
    """Where an input stands: in which one, with which strides, and from where on, in elements."""

    position: int
    strides: tuple[int, ...]
    offset: int


def with_slices(program: Program) -> tuple[Program, dict[int, Slice]]:
    """Return a program whose slices of inputs are inputs behind its own, and where these stand, by their numbers."""
    standing = {
        number: Slice(position, steps_of(program.layouts[number].shape), 0)
        for position, number in enumerate(program.inputs)
    }
    found: dict[int, Slice] = {}
    entries = []
    for entry in program.entries:
        own = _slice(program, entry, standing)
        if own is None:
            entries.append(entry)
        else:
            found[entry.results[0]] = standing[entry.results[0]] = own
    if not found:
        return program, {}
    inputs = (*program.inputs, *found)
    return Program(program.layouts, inputs, program.constants, entries, program.outputs, program.guards), found


def _slice(program: Program, entry: Entry, standing: dict[int, Slice]) -> Slice | None:
    """Return where the result of an operation stands, if it is a slice along several dimensions of what stands."""
    source = standing.get(entry.operands[0]) if entry.operands else None
    if source is None or entry.op.name != "getitem" or entry.index_arrays:
        return None
    key: tuple[Any, ...] = entry.attrs["key"]
    shape, result = program.layouts[entry.operands[0]].shape, program.layouts[entry.results[0]].shape
    is_long = math.prod(result) >= _FEW and sum(length > 1 for length in result) > 1
    if not is_long or len(key) > len(shape) or not all(isinstance(own, tuple) for own in key):
        return None
    strides, offset = list(source.strides), source.offset
    for k, own in enumerate(key):
        start, _, step = slice(*own).indices(shape[k])
        offset += start * strides[k]
        strides[k] *= step
    return Slice(source.position, tuple(strides), offset)

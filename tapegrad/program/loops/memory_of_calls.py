"""Where values stand between the calls of a program: an arena in which memory serves again when nobody reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tapegrad.program.loops.places import nbytes_of
from tapegrad.program.machine_code import Refused
from tapegrad.program.program import Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Memory", "Step"]

_ALIGNMENT: Final = 64
_MOST_BYTES: Final = 1 << 28  # of the arena
_MOST_OFFSET: Final = (1 << 31) - 1


class Step(NamedTuple):
    """A call: the number of the code, and the values that it takes and computes."""

    code: int
    inputs: Sequence[int]
    outputs: Sequence[int]


class Memory:
    """Where the values of a program stand, in which each operation is a call.

    Attributes
    ----------
    bases : list of str
        Of `table_text`.
    calls : list of list
        The places of the operands and results of each step.
    constants : list of bytes
        The memory of constants, in aligned parts.
    arena_bytes : int
    """

    def __init__(
        self,
        program: Program,
        steps: Sequence[Step],
        aliases: Mapping[int, tuple[int, int]],
        scalars: Mapping[int, np.ndarray],
    ) -> None:
        self.program, self._scalars = program, scalars
        results = [*program.outputs, *[guard.value for guard in program.guards]]
        self.bases = ["arena", "constants"]
        self.bases += [f"inputs {k}" for k in range(len(program.inputs))]
        self.bases += [f"outputs {k}" for k in range(len(results))]
        self.constants: list[bytes] = []
        self.arena_bytes = self._constant_bytes = 0
        self._places = {number: (2 + k, 0) for k, number in enumerate(program.inputs)}
        self._outputs = [(number, (2 + len(program.inputs) + k, 0)) for k, number in enumerate(results)]
        self._aliases = aliases
        ends: dict[int, tuple[int, int]] = {}
        for number, place in self._outputs:
            ends.setdefault(number, place)
        last = {self._owner(number)[0]: len(steps) for number in results}
        dead: list[list[int]] = [[] for _ in steps]
        for k in range(len(steps) - 1, -1, -1):
            for number in (*steps[k].inputs, *steps[k].outputs):
                owner, _ = self._owner(number)
                if owner not in last:
                    last[owner] = k
                    dead[k].append(owner)
        idle: dict[int, list[int]] = {}
        self.calls: list[list[tuple[int, int]]] = []
        for k, step in enumerate(steps):
            for number in step.outputs:
                self._places[number] = ends[number] if number in ends else self._allocate(number, idle)
            self.calls.append([self._place(number) for number in (*step.inputs, *step.outputs)])
            for number in dead[k]:
                base, offset = self._places[number]
                if base == 0:
                    idle.setdefault(_room(nbytes_of(program, number)), []).append(offset)
        if self.arena_bytes > _MOST_BYTES:
            raise Refused(f"{self.arena_bytes} bytes would stand between its operations")

    def _allocate(self, number: int, idle: dict[int, list[int]]) -> tuple[int, int]:
        """Return memory: what was used last, as that is in the cache."""
        nbytes = _room(nbytes_of(self.program, number))
        found = idle.get(nbytes)
        offset = found.pop() if found else _part(nbytes, idle)
        if offset is None:
            offset = self.arena_bytes
            self.arena_bytes += nbytes
        return 0, offset

    def _owner(self, number: int) -> tuple[int, int]:
        """Return in whose memory a value stands, and at which byte."""
        offset = 0
        while number in self._aliases:
            number, more = self._aliases[number]
            offset += more
        return number, offset

    def _place(self, number: int) -> tuple[int, int]:
        owner, offset = self._owner(number)
        if owner not in self._places:
            self._places[owner] = self._constant(owner)
        base, first = self._places[owner]
        if first + offset > _MOST_OFFSET:
            raise Refused("a part of an array stands too far behind its beginning")
        return base, first + offset

    def _constant(self, number: int) -> tuple[int, int]:
        data = self._scalars.get(number)
        if data is None:
            data = np.asarray(self.program.constants[number], self.program.layouts[number].dtype)
        raw = data.tobytes()
        self.constants.append(raw.ljust(_room(len(raw)), b"\0"))
        self._constant_bytes += _room(len(raw))
        return 1, self._constant_bytes - _room(len(raw))

    def copies(self) -> list[tuple[tuple[int, int], tuple[int, int], int]]:
        """Return what is copied in the end: results that stand elsewhere."""
        found = [(self._place(number), end, nbytes_of(self.program, number)) for number, end in self._outputs]
        return [own for own in found if own[0] != own[1]]


def _room(nbytes: int) -> int:
    return max(-(-nbytes // _ALIGNMENT), 1) * _ALIGNMENT


def _part(nbytes: int, idle: dict[int, list[int]]) -> int | None:
    """Take memory of the smallest block that has enough, neighbours as one; return its offset, None without one."""
    blocks: list[tuple[int, int]] = []
    for offset, size in sorted((offset, size) for size, offsets in idle.items() for offset in offsets):
        if blocks and sum(blocks[-1]) == offset:
            offset, size = blocks[-1][0], blocks.pop()[1] + size
        blocks.append((offset, size))
    chosen = min((block for block in blocks if block[1] >= nbytes), key=lambda block: block[1], default=None)
    if chosen is None:
        return None
    blocks.remove(chosen)
    offset, size = chosen
    if size > nbytes:
        blocks.append((offset + nbytes, size - nbytes))
    idle.clear()
    for start, length in blocks:
        idle.setdefault(length, []).append(start)
    return offset

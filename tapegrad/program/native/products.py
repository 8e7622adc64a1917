"""Products of matrices as loops: tiles of rows by vectors, whose sums stay in registers.

Where the columns of the second matrix stand side by side, lanes run along them, and a turn of the loop adds the product
of a column and a row. Where its rows do, lanes run along the sum, and the parts of each sum are added up at its end.
What stands otherwise is copied first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

from tapegrad.compiler import cpu
from tapegrad.program.fuse.text import constant
from tapegrad.program.native.writer import Matrix, Writer

__all__ = ["Products", "registers"]

_ROWS: Final = 8  # of a tile, at most
_ACROSS: Final = 4  # rows and columns of a tile whose lanes run along the sum
_STRAIGHT: Final = 8  # turns that are written one after the other
_SHORT: Final = 16  # products of a sum below which its lanes are too few


@functools.cache
def registers() -> int:
    """Return how many vectors of 64 bytes this CPU's registers hold, besides those for operands."""
    return 24 if cpu.features().get("avx512f") else 6


class Products(Writer):
    """Writes products of matrices."""

    def product(self, a: Matrix, b: Matrix, result: str, start: str = "") -> None:
        """Write C = A B, or C = A B + D, of a result that stands row by row.

        Parameters
        ----------
        a, b : Matrix
        result : str
            The pointer of C.
        start : str, optional
            The pointer of D, which stands as C does.
        """
        (n, _), m = a.shape, b.shape[1]
        if not n * m:
            return
        if m == 1 and n > 1:  # C^T = B^T A^T, and both are vectors
            a, b, n, m = b.turned, a.turned, 1, n
        a, b = a.plain, b.plain
        along_sum = b.strides[0] == 1 and (n == 1 or (a.strides[1] == 1 and a.shape[1] >= _SHORT))
        if b.strides[1] == 1 and not (m == 1 and along_sum):
            self._along_columns(a, b, result, start)
        elif along_sum:
            self._along_sums(a if a.strides[1] == 1 else self.copied(a), b, result, start)
        else:
            self._along_columns(a, self.copied(b), result, start)

    # ---- lanes along the columns of the result

    def _along_columns(self, a: Matrix, b: Matrix, result: str, start: str) -> None:
        (n, k), m = a.shape, b.shape[1]
        across = -(-m // self.lanes)
        rows, vectors = _tile(n, across)
        chains = _chains(n * across)

        def tile(i: str, j: str, rows: int, columns: int) -> None:
            firsts = range(0, columns, self.lanes)
            masks = [self.mask(columns - first) for first in firsts]
            row, column = self.at(a.pointer, (i, a.strides[0])), self.at(b.pointer, (j, 1))

            def turn(at: str, sums: list[str], count: int) -> list[str]:
                made: list[str] = []
                here, there = self.at(row, (at, a.strides[1])), self.at(column, (at, b.strides[0]))
                for chain in range(count):
                    steps = [self.at(there, (chain, b.strides[0]), (first, 1)) for first in firsts]
                    parts = [self.load(step, mask) for step, mask in zip(steps, masks, strict=True)]
                    for r in range(rows):
                        one = self.spread(self.get(self.at(here, (chain, a.strides[1]), (r, a.strides[0]))))
                        for part in parts:
                            made.append(self.fma(one, part, sums[len(made)]))
                return [*made, *sums[len(made) :]]

            def places(base: str) -> list[tuple[str, str]]:
                corner = self.at(base, (i, m), (j, 1))
                return [
                    (self.at(corner, (r, m), (first, 1)), mask)
                    for r in range(rows) for first, mask in zip(firsts, masks, strict=True)
                ]  # fmt: skip

            count = rows * len(firsts)
            sums = [self._nothing()] * (count * chains)
            if start:
                sums[:count] = [self.load(*own) for own in places(start)]
            sums = self._turns(k, chains, sums, turn)
            for t, (place, mask) in enumerate(places(result)):
                self.store(self._total(sums[t::count], self.lanes), place, mask, self.lanes)

        self.tiles(n, rows, lambda i, r: self.tiles(m, vectors * self.lanes, lambda j, c: tile(i, j, r, c)))

    # ---- lanes along the sum

    def _along_sums(self, a: Matrix, b: Matrix, result: str, start: str) -> None:
        (n, k), m = a.shape, b.shape[1]
        chains, lanes = _chains(n * m), self.lanes

        def tile(i: str, j: str, rows: int, columns: int) -> None:
            row, column = self.at(a.pointer, (i, a.strides[0])), self.at(b.pointer, (j, b.strides[1]))

            def turn(at: str, sums: list[str], count: int, mask: str = "") -> list[str]:
                made: list[str] = []
                here, there = self.at(row, (at, lanes)), self.at(column, (at, lanes))
                for chain in range(count):
                    ones = [self.load(self.at(here, (chain, lanes), (r, a.strides[0])), mask) for r in range(rows)]
                    twos = [self.load(self.at(there, (chain, lanes), (c, b.strides[1])), mask) for c in range(columns)]
                    made += [
                        self.fma(one, two, sums[len(made) + t])
                        for t, (one, two) in enumerate((one, two) for one in ones for two in twos)
                    ]
                return [*made, *sums[len(made) :]]

            count = rows * columns
            sums = self._turns(k // lanes, chains, [self._nothing()] * (count * chains), turn)
            if k % lanes:
                sums = turn(str(k // lanes), sums, 1, self.mask(k % lanes))
            totals = [self._total(sums[t::count], lanes) for t in range(count)]
            corner = self.at(result, (i, m), (j, 1))
            begin = self.at(start, (i, m), (j, 1)) if start else ""
            for r in range(rows):
                value = self._across(totals[r * columns : (r + 1) * columns])
                if start:
                    value = self.add(self.load(self.at(begin, (r, m)), "", columns), value, columns)
                self.store(value, self.at(corner, (r, m)), "", columns)

        def columns_of(i: str, rows: int) -> None:
            left, across = m, 2 * _ACROSS if n == 1 else _ACROSS
            while across:  # what is left over is less than each power of 2
                first, whole = m - left, left - left % across

                def part(j: str, columns: int, first: int = first) -> None:
                    tile(i, self.sum(j, first), rows, columns)

                self.tiles(whole, across, part)
                left, across = left - whole, across // 2

        self.tiles(n, _ACROSS, columns_of)

    def _across(self, values: list[str]) -> str:
        """Return a vector of the sums over the lanes of some vectors, of which there are a power of 2."""
        width, block = self.lanes, 1
        while len(values) > 1:  # each lane holds a part of the sum of one vector, in turn
            low = [[lane for lane in range(width) if lane // block % 2 == half] for half in (0, 1)]
            picks = [
                [own + side * width for group in range(0, len(lanes), block) for side in (0, 1)
                 for own in lanes[group : group + block]]
                for lanes in low
            ]  # fmt: skip
            values = [
                self.add(self.shuffled(x, y, picks[0], width), self.shuffled(x, y, picks[1], width), width)
                for x, y in zip(values[::2], values[1::2], strict=True)
            ]
            block *= 2
        (value,) = values
        while width > block:
            halves = [list(range(first, first + width // 2)) for first in (0, width // 2)]
            low_half, high_half = (self.shuffled(value, value, pick, width) for pick in halves)
            width //= 2
            value = self.add(low_half, high_half, width)
        return value

    # ---- loops

    def _turns(
        self, length: int, chains: int, sums: list[str], turn: Callable[[str, list[str], int], list[str]]
    ) -> list[str]:
        """Write turns, as many at once as there are chains of sums; return the sums."""
        whole = length - length % chains
        if whole <= _STRAIGHT * chains:
            for at in range(0, whole, chains):
                sums = turn(str(at), sums, chains)
        else:
            starts = [(self.vector, own) for own in sums]
            sums = self.accumulate(whole, chains, starts, lambda at, own: turn(at, own, chains))
        return turn(str(whole), sums, length - whole) if whole < length else sums

    # ---- sums

    def _nothing(self) -> str:
        return constant(0.0, self.char, self.lanes)

    def sum(self, x: str, y: int) -> str:
        """Add a number to an index."""
        return str(int(x) + y) if x.isdigit() else self.text.op(f"add i64 {x}, {y}") if y else x

    def _total(self, values: Sequence[str], width: int) -> str:
        """Return the sum of chains: halves are added until one is left."""
        own = list(values)
        while len(own) > 1:
            half = len(own) // 2
            own = [self.add(x, y, width) for x, y in zip(own[:half], own[half:], strict=True)]
        return own[0]


def _chains(sums: int) -> int:
    """Return how many chains of additions each of some sums has, so that one is worked at while others wait."""
    return 4 if sums <= 2 else 2 if sums <= 4 else 1


def _tile(rows: int, vectors: int) -> tuple[int, int]:
    """Return the rows and vectors of a tile: those with the fewest loads, whose sums fit into registers."""
    most = registers()
    choices = [(r, v) for r in range(1, min(rows, _ROWS) + 1) for v in range(1, min(vectors, most // r) + 1)]

    def cycles(choice: tuple[int, int]) -> float:
        r, v = choice
        return -(-rows // r) * -(-vectors // v) * max(r * v, r + v, 8) / 2

    return min(choices, key=lambda choice: (cycles(choice), -choice[0] * choice[1]))

"""Solutions with triangles, and Cholesky factors, as loops: some rows at once, with lanes along their columns.

A factor U of A = U^T U is the solution of U^T U = A row by row: each row is what the rows before it leave of A's row,
divided by the root of its own first element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tapegrad.program.native.products import Products, registers
from tapegrad.program.native.writer import Matrix

__all__ = ["Triangles"]

_ROWS: Final = 4  # at once: a row that was solved is loaded once for all of them
_VECTORS: Final = 4  # of each, at most

#: From a row that is the first of some and how many rows it is behind that, to what the row is multiplied with.
Inverse = Callable[[str, int], str]


class Triangles(Products):
    """Writes solutions with triangles."""

    def solve(self, a: Matrix, x: Matrix, is_upper: bool, is_unit: bool) -> None:
        """Write A^-1 X in the place of X, whose columns stand side by side; A is a triangle."""
        if is_upper:  # a lower one from the last row on
            a, x = self._from_end(a, (0, 1)), self._from_end(x, (0,))

        def known(i: str, r: int) -> str:
            return self._inverse(self.get(self._diagonal(a, i, r)))

        def tile(j: str, width: int) -> None:
            own = x._replace(pointer=self.at(x.pointer, (j, 1)), shape=(x.shape[0], width))
            self._rows(a, own, 0, x.shape[0], None if is_unit else known)

        self.tiles(x.shape[1], self._width(x), tile)

    def factor_upper(self, x: Matrix) -> None:
        """Write U of A = U^T U in the place of A, of which the upper triangle is read; below U is anything.

        Where an element whose root is taken is not positive, the code stops later.
        """
        n, step = x.shape[0], self._width(x)

        def known(i: str, r: int) -> str:
            return self._inverse(self.get(self._diagonal(x, i, r)))

        def rooted(i: str, r: int) -> str:
            value = self.get(self._diagonal(x, i, r))
            self.fail_if(self.text.op(f"fcmp ule {self.kind} {value}, {self.number(0.0)}"))
            return self._inverse(self.of("sqrt", value))

        for first in range(0, n, step):
            width = min(step, n - first)
            own = x._replace(pointer=self.at(x.pointer, (first, 1)), shape=(n, width))
            self._rows(x.turned, own, 0, first, known)
            self._rows(x.turned, own, first, first + width, rooted)

    def _rows(self, a: Matrix, x: Matrix, begin: int, end: int, inverse: Inverse | None) -> None:
        """Write rows of a solution whose columns are a tile; the rows before them are there."""
        if not begin:
            begin = min(_ROWS, end)
            self._some_rows(a, x, "0", begin, inverse)
        self.tiles(end - begin, _ROWS, lambda at, count: self._some_rows(a, x, self.sum(at, begin), count, inverse))

    def _some_rows(self, a: Matrix, x: Matrix, i: str, count: int, inverse: Inverse | None) -> None:
        firsts = range(0, x.shape[1], self.lanes)
        masks = [self.mask(x.shape[1] - first) for first in firsts]
        (down, _), (a_down, a_along) = x.strides, a.strides

        def places(k: str, r: int) -> list[str]:
            return [self.at(x.pointer, (k, down), (r, down), (first, 1)) for first in firsts]

        def loaded(k: str, r: int) -> list[str]:
            return [self.load(*own) for own in zip(places(k, r), masks, strict=True)]

        def less(sums: list[str], factor: str, row: list[str]) -> list[str]:
            factor = self.negative(self.spread(self.get(factor)))
            return [self.fma(factor, *own) for own in zip(row, sums, strict=True)]

        corner = self.at(a.pointer, (i, a_down))

        def turn(k: str, sums: list[str]) -> list[str]:
            row, column, made = loaded(k, 0), self.at(corner, (k, a_along)), list[str]()
            for r in range(count):
                made += less(sums[r * len(row) : (r + 1) * len(row)], self.at(column, (r, a_down)), row)
            return made

        sums = [own for r in range(count) for own in loaded(i, r)]
        if i != "0":
            sums = self.accumulate(i, 1, [(self.vector, own) for own in sums], turn)
        solved: list[list[str]] = []
        for r in range(count):
            own, ends = sums[r * len(firsts) : (r + 1) * len(firsts)], places(i, r)
            for q, row in enumerate(solved):
                own = less(own, self.at(corner, (r, a_down), (i, a_along), (q, a_along)), row)
            self._stored(own, ends, masks)
            if inverse is not None:  # a root is that of an element of this row
                factor = self.spread(inverse(i, r))
                own = [self.text.op(f"fmul {self.vector} {each}, {factor}") for each in own]
                self._stored(own, ends, masks)
            solved.append(own)

    def _stored(self, row: list[str], places: list[str], masks: list[str]) -> None:
        for value, place, mask in zip(row, places, masks, strict=True):
            self.store(value, place, mask, self.lanes)

    def _from_end(self, own: Matrix, dims: tuple[int, ...]) -> Matrix:
        """Return a matrix of which dimensions run from their end to their begin."""
        last = self.at(own.pointer, *[(own.shape[dim] - 1, own.strides[dim]) for dim in dims])
        down, along = (-step if dim in dims else step for dim, step in enumerate(own.strides))
        return own._replace(pointer=last, strides=(down, along))

    def _diagonal(self, a: Matrix, i: str, r: int) -> str:
        """Return a pointer to an element of the diagonal."""
        step = sum(a.strides)
        return self.at(a.pointer, (i, step), (r, step))

    def _inverse(self, value: str) -> str:
        return self.text.op(f"fdiv {self.kind} {self.number(1.0)}, {value}")

    def _width(self, x: Matrix) -> int:
        """Return how many columns are solved at once: their sums stay in registers, and tiles are about as wide."""
        across = -(-x.shape[1] // self.lanes)
        tiles = -(-across // min(_VECTORS, registers() // _ROWS))
        return -(-across // tiles) * self.lanes

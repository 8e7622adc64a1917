"""Tiles of matrices in registers: a few rows, with lanes along their columns, from which products of others are taken.

What LLVM's vectoriser makes of loops stores a row for each few products, as it does not keep several in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad.compiler import cpu, values
from tapegrad.compiler.arithmetic import CONTRACT, cast
from tapegrad.compiler.assembly import MARK
from tapegrad.compiler.intrinsics import intrinsic
from tapegrad.compiler.values import NotCompilableError, Value, constant

__all__ = ["ROWS", "Tile", "eliminated", "known", "lanes_of", "tile", "vectors_of"]

ROWS: Final = 4  # of a tile: a row that is multiplied is loaded once for all of them


@cache
def lanes_of(dtype: str) -> int:
    """Return how many elements of a dtype a vector has."""
    features = cpu.features()
    return (64 if features.get("avx512f") else 32 if features.get("avx") else 16) // np.dtype(dtype).itemsize


@cache
def vectors_of() -> int:
    """Return how many vectors side by side the rows of a tile have at most: all sums stay in registers."""
    return 4 if cpu.features().get("avx512f") else 2


class Tile:
    """Emits what is done with vectors of one dtype; addresses and distances in bytes are words."""

    def __init__(self, builder: Any, dtype: str) -> None:
        from llvmlite import ir

        if MARK not in builder.module.namedmetadata:
            builder.module.add_named_metadata(MARK, ["tiles"])
        self.builder, self.size, self.lanes = builder, np.dtype(dtype).itemsize, lanes_of(dtype)
        self.kind, self.word, self.half = values.type_of(dtype), ir.IntType(64), ir.IntType(32)
        self.vector = ir.VectorType(self.kind, self.lanes)
        self.iota = ir.Constant(ir.VectorType(self.half, self.lanes), list(range(self.lanes)))

    def several(self, step: Any, count: int) -> list[Any]:
        """Return the distances of some steps."""
        return [self.word(0), step, *[self.builder.mul(step, self.word(n)) for n in range(2, count)]][:count]

    def places(self, address: Any, count: int) -> list[Any]:
        """Return the addresses of vectors side by side."""
        return [
            self.builder.add(address, self.word(n * self.lanes * self.size)) if n else address for n in range(count)
        ]

    def pointer(self, address: Any, kind: Any) -> Any:
        """Return an address as a pointer."""
        return self.builder.inttoptr(address, kind.as_pointer())

    def get(self, address: Any) -> Any:
        """Return the number at an address."""
        return self.builder.load(self.pointer(address, self.kind), align=self.size, typ=self.kind)

    def spread(self, number: Any, kind: Any = None) -> Any:
        """Return a vector of one number."""
        from llvmlite import ir

        vector = ir.VectorType(number.type, self.lanes)
        one = self.builder.insert_element(ir.Constant(vector, ir.Undefined), number, self.half(0))
        return self.builder.shuffle_vector(
            one, ir.Constant(vector, ir.Undefined), ir.Constant(self.iota.type, [0] * self.lanes)
        )

    def mask(self, count: Any) -> Any:
        """Return which lanes are the first ones."""
        return self.builder.icmp_signed("<", self.iota, self.spread(self.builder.trunc(count, self.half)))

    def load(self, address: Any, mask: Any) -> Any:
        """Return the vector at an address, or those of its lanes that a mask says."""
        place = self.pointer(address, self.vector)
        if mask is None:
            return self.builder.load(place, align=self.size, typ=self.vector)
        return self.builder.call(self._masked("load"), [place, self.half(self.size), mask, self.vector(None)])

    def store(self, address: Any, vector: Any, mask: Any) -> None:
        """Write a vector, or those of its lanes that a mask says."""
        place = self.pointer(address, self.vector)
        if mask is None:
            self.builder.store(vector, place, align=self.size)
        else:
            self.builder.call(self._masked("store"), [vector, place, self.half(self.size), mask])

    def _masked(self, way: str) -> Any:
        from llvmlite import ir

        name = f"llvm.masked.{way}.v{self.lanes}f{8 * self.size}.p0"
        found = self.builder.module.globals.get(name)
        if found is not None:
            return found
        place, mask = self.vector.as_pointer(), ir.VectorType(ir.IntType(1), self.lanes)
        if way == "load":
            kind = ir.FunctionType(self.vector, [place, self.half, mask, self.vector])
        else:
            kind = ir.FunctionType(ir.VoidType(), [self.vector, place, self.half, mask])
        return ir.Function(self.builder.module, kind, name)

    def less(self, start: Any, x: Any, y: Any) -> Any:
        """Return ``start - x * y``, perhaps rounded once."""
        product = self.builder.fmul(x, y, flags=CONTRACT)
        return self.builder.fsub(start, product, flags=CONTRACT)

    def turns(self, count: Any, state: list[Any], turn: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """Emit a loop; return the state after it."""
        builder = self.builder
        before, test, body, after = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(test)
        builder.position_at_end(test)
        number, *places = (builder.phi(kind) for kind in (self.word, *[own.type for own in state]))
        builder.cbranch(builder.icmp_signed("<", number, count), body, after)
        builder.position_at_end(body)
        new = [builder.add(number, self.word(1), flags=("nsw",)), *turn(number, places)]
        for place, first, one in zip((number, *places), (self.word(0), *state), new, strict=True):
            place.add_incoming(first, before)
            place.add_incoming(one, builder.block)
        builder.branch(test)
        builder.position_at_end(after)
        return places


def known(*numbers: Value) -> Iterator[int]:
    """Yield the sizes of a tile, which must be constants."""
    for own in numbers:
        number = constant(own)
        if number is None:
            raise NotCompilableError("the size of a tile must be known")
        yield number


@intrinsic
def tile(
    builder: Any, dtype: Value, x: Value, step: Value, rows: Value, vectors: Value, last: Value, a: Value, down: Value,
    along: Value, y: Value, step_of_y: Value, count: Value, solves: Value, unit: Value,
) -> None:  # fmt: skip
    """Take from a tile X the product A Y, where A has `count` columns, and perhaps solve with what stands behind A.

    Parameters
    ----------
    dtype : str
    x, step : int
        The tile, and the distance of its rows.
    rows, vectors : int
        Its size, known beforehand; of the last vector the first `last` lanes belong to it.
    a, down, along : int
        Where A begins, and the distances of its rows and columns.
    y, step_of_y, count : int
        Y, whose columns are those of X; the distance of its rows; their number.
    solves : int
        Whether a lower triangle of as many rows stands behind A, with which X is solved.
    unit : int
        Whether its diagonal counts as ones.
    """
    to = Tile(builder, values.dtype_of(dtype))
    n, across = known(rows, vectors)
    x_at, x_step, begin, a_down, a_along, y_at, y_step, turns, size_of_last, is_solved, is_unit = (
        cast(builder, own, "int64").one for own in (x, step, a, down, along, y, step_of_y, count, last, solves, unit)
    )
    masks = [None] * (across - 1) + [to.mask(size_of_last)]
    places = [to.places(builder.add(x_at, own), across) for own in to.several(x_step, n)]
    downs, alongs = to.several(a_down, n), to.several(a_along, n)
    rows_of_a = [builder.add(begin, own) for own in downs]
    sums = [to.load(place, mask) for own in places for place, mask in zip(own, masks, strict=True)]

    def turn(number: Any, sums: list[Any]) -> list[Any]:
        row, far = builder.add(y_at, builder.mul(number, y_step)), builder.mul(number, a_along)
        parts = [to.load(place, mask) for place, mask in zip(to.places(row, across), masks, strict=True)]
        made = []
        for r, own in enumerate(rows_of_a):
            factor = to.spread(to.get(builder.add(own, far)))
            made += [to.less(sums[r * across + v], factor, part) for v, part in enumerate(parts)]
        return made

    sums = to.turns(turns, sums, turn)
    before, solving, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("!=", is_solved, to.word(0)), solving, after)
    builder.position_at_end(solving)
    far, solved = builder.mul(turns, a_along), list[list[Any]]()
    for r, row in enumerate(rows_of_a):
        own, corner = sums[r * across : (r + 1) * across], builder.add(row, far)
        for q, other in enumerate(solved):
            factor = to.spread(to.get(builder.add(corner, alongs[q])))
            own = [to.less(*each) for each in zip(own, [factor] * across, other, strict=True)]
        diagonal, one = to.get(builder.add(corner, alongs[r])), to.kind(1.0)
        chosen = builder.select(builder.icmp_signed("!=", is_unit, to.word(0)), one, diagonal)
        inverse = to.spread(builder.fdiv(one, chosen))
        solved.append([builder.fmul(value, inverse) for value in own])
    builder.branch(after)
    builder.position_at_end(after)
    results = []
    for value, new, (r, v) in zip(
        sums, [own for row in solved for own in row], [(r, v) for r in range(n) for v in range(across)], strict=True
    ):
        found = builder.phi(to.vector)
        found.add_incoming(value, before)
        found.add_incoming(new, solving)
        results.append((found, places[r][v], masks[v]))
    for found, place, mask in results:
        to.store(place, found, mask)


@intrinsic
def eliminated(
    builder: Any, dtype: Value, row: Value, column: Value, count: Value, pivot: Value, inverse: Value
) -> Value:
    """Eliminate a column of a row of a panel; the next element of the row is returned.

    Parameters
    ----------
    dtype : str
    row : int
        The row, of one vector, of which the first `count` lanes belong to it.
    column, count : int
    pivot : int
        The row whose multiple is taken away.
    inverse : number
        Of the pivot: its product with the row's element is the factor, which stays in the column.
    """
    to = Tile(builder, values.dtype_of(dtype))
    at, place, size, other = (cast(builder, own, "int64").one for own in (row, column, count, pivot))
    mask, lane = to.mask(size), to.spread(builder.trunc(place, to.half))
    own, top = to.load(at, mask), to.load(other, mask)
    factor = builder.fmul(to.get(builder.add(at, builder.mul(place, to.word(to.size)))), inverse.one)
    spread = to.spread(factor)
    after = builder.select(builder.icmp_signed(">", to.iota, lane), to.less(own, spread, top), own)
    after = builder.select(builder.icmp_signed("==", to.iota, lane), spread, after)
    to.store(at, after, mask)
    # Behind the last lane stands the first one: nobody asks for it, but it must be a number.
    following = builder.and_(builder.add(place, to.word(1)), to.word(to.lanes - 1))
    following = builder.extract_element(after, builder.trunc(following, to.half))
    return Value(values.dtype_of(dtype), (following,))

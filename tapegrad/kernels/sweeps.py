"""What reductions of matrices do with whole rows, and with columns in registers: copies, sums of products, rotations.

Rows begin and end with whole vectors: what stands behind the last column is zero.
"""

from __future__ import annotations

from typing import Any, Final

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import CONTRACT, cast
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import intrinsic
from tapegrad.compiler.values import Value
from tapegrad.kernels.tiles import Tile, known

__all__ = [
    "LEAST", "MOST", "combined", "copied", "dot", "multiplied", "reflected", "rooted", "rotated", "summed", "updated",
]  # fmt: skip


#: The smallest and the largest size of a matrix's largest number; LAPACK has the others, whose squares may be lost.
LEAST: Final = 1e-60
MOST: Final = 1e60


def copied(target: int, step: int, x: int, rows: int, columns: int, below: int, beside: int) -> int:
    """Copy a matrix of float64, given the distances of its rows and columns. Return 1 if LAPACK should have it."""
    largest = 0.0
    for i in range(rows):
        for k in range(columns):
            value = load_at(x, (i * below + k * beside) * 8, "float64")
            store_at(target + i * step, k * 8, value, "float64")
            value = abs(value)
            if not value <= largest:
                largest = value
                if not value <= MOST:
                    return 1
    return 1 if 0 < largest < LEAST else 0


def _sum(to: Tile, vector: Any) -> Any:
    """Return the sum of the lanes, of halves in turn."""
    from llvmlite import ir

    width = to.lanes
    while width > 1:
        width //= 2
        chosen = [*range(width, 2 * width), *[0] * (to.lanes - width)]
        other = to.builder.shuffle_vector(
            vector, ir.Constant(to.vector, ir.Undefined), ir.Constant(to.iota.type, chosen)
        )
        vector = to.builder.fadd(vector, other)
    return to.builder.extract_element(vector, to.half(0))


def _zeros(to: Tile) -> Any:
    from llvmlite import ir

    return ir.Constant(to.vector, [to.kind(0.0)] * to.lanes)


def _more(to: Tile, start: Any, x: Any, y: Any) -> Any:
    """Return ``start + x * y``, perhaps rounded once."""
    return to.builder.fadd(start, to.builder.fmul(x, y, flags=CONTRACT), flags=CONTRACT)


def _numbers(to: Tile, address: Any, count: int) -> list[Any]:
    """Return vectors, each of one of some numbers side by side."""
    return [to.spread(to.get(to.builder.add(address, to.word(r * to.size)))) for r in range(count)]


def _words(builder: Any, *own: Value) -> list[Any]:
    return [cast(builder, one, "int64").one for one in own]


@intrinsic
def dot(builder: Any, dtype: Value, x: Value, y: Value, count: Value) -> Value:
    """Return the sum of products of `count` vectors at two addresses."""
    to = Tile(builder, values.dtype_of(dtype))
    first, second, turns = _words(builder, x, y, count)

    def turn(number: Any, sums: list[Any]) -> list[Any]:
        far = builder.mul(number, to.word(to.lanes * to.size))
        return [_more(to, sums[0], *[to.load(builder.add(own, far), None) for own in (first, second)])]

    return Value(values.dtype_of(dtype), (_sum(to, to.turns(turns, [_zeros(to)], turn)[0]),))


@intrinsic
def combined(
    builder: Any, dtype: Value, target: Value, x: Value, a: Value, y: Value, b: Value, z: Value, c: Value, count: Value
) -> None:  # fmt: skip
    """Write the sum of three rows of `count` vectors, each times a number."""
    to = Tile(builder, values.dtype_of(dtype))
    out, *rows, turns = _words(builder, target, x, y, z, count)
    factors = [to.spread(cast(builder, own, values.dtype_of(dtype)).one) for own in (a, b, c)]

    def turn(number: Any, nothing: list[Any]) -> list[Any]:
        far = builder.mul(number, to.word(to.lanes * to.size))
        one, other, third = (to.load(builder.add(own, far), None) for own in rows)
        total = builder.fmul(factors[0], one, flags=CONTRACT)
        total = _more(to, _more(to, total, factors[1], other), factors[2], third)
        to.store(builder.add(out, far), total, None)
        return []

    to.turns(turns, [], turn)


@intrinsic
def updated(
    builder: Any, dtype: Value, x: Value, step: Value, rows: Value, factors: Value, others: Value, y: Value, z: Value,
    u: Value, count: Value, products: Value,
) -> None:  # fmt: skip
    """Take from some rows multiples of two others; write the sums of their products with a third one.

    Parameters
    ----------
    dtype : str
    x, step, rows, count : int
        Where the rows begin, their distance, how many there are, known beforehand, and of how many vectors.
    factors, others : int
        How much of `y` and of `z` is taken from each.
    y, z, u : int
    products : int
        Where the sum of products with `u` is written for each.
    """
    to = Tile(builder, values.dtype_of(dtype))
    (n,) = known(rows)
    at, far, of_y, of_z, *lines, turns, target = _words(builder, x, step, factors, others, y, z, u, count, products)
    starts = [builder.add(at, own) for own in to.several(far, n)]

    ys, zs = _numbers(to, of_y, n), _numbers(to, of_z, n)

    def turn(number: Any, sums: list[Any]) -> list[Any]:
        beside = builder.mul(number, to.word(to.lanes * to.size))
        one, other, third = (to.load(builder.add(own, beside), None) for own in lines)
        made = []
        for r, start in enumerate(starts):
            place = builder.add(start, beside)
            value = to.less(to.less(to.load(place, None), ys[r], one), zs[r], other)
            to.store(place, value, None)
            made.append(_more(to, sums[r], value, third))
        return made

    _write(to, target, to.turns(turns, [_zeros(to)] * n, turn))


@intrinsic
def summed(
    builder: Any, dtype: Value, x: Value, step: Value, rows: Value, factors: Value, others: Value, y: Value, z: Value,
    weights: Value, count: Value, sums: Value,
) -> None:  # fmt: skip
    """Take from some rows multiples of two others, as `updated` does, and add multiples of them to a row of sums."""
    to = Tile(builder, values.dtype_of(dtype))
    (n,) = known(rows)
    at, far, of_y, of_z, of_sum, one, other, turns, target = _words(
        builder, x, step, factors, others, weights, y, z, count, sums
    )
    starts = [builder.add(at, own) for own in to.several(far, n)]
    ys, zs, shares = (_numbers(to, own, n) for own in (of_y, of_z, of_sum))

    def turn(number: Any, nothing: list[Any]) -> list[Any]:
        beside = builder.mul(number, to.word(to.lanes * to.size))
        parts = [to.load(builder.add(own, beside), None) for own in (one, other)]
        place_of_sum = builder.add(target, beside)
        total = to.load(place_of_sum, None)
        for r, start in enumerate(starts):
            place = builder.add(start, beside)
            value = to.less(to.less(to.load(place, None), ys[r], parts[0]), zs[r], parts[1])
            to.store(place, value, None)
            total = _more(to, total, shares[r], value)
        to.store(place_of_sum, total, None)
        return []

    to.turns(turns, [], turn)


@intrinsic
def multiplied(
    builder: Any, dtype: Value, x: Value, step: Value, rows: Value, u: Value, count: Value, products: Value
) -> None:  # fmt: skip
    """Write the sums of products of some rows with another one, each of `count` vectors."""
    to = Tile(builder, values.dtype_of(dtype))
    (n,) = known(rows)
    at, far, line, turns, target = _words(builder, x, step, u, count, products)
    starts = [builder.add(at, own) for own in to.several(far, n)]

    def turn(number: Any, sums: list[Any]) -> list[Any]:
        beside = builder.mul(number, to.word(to.lanes * to.size))
        own = to.load(builder.add(line, beside), None)
        return [
            _more(to, total, to.load(builder.add(start, beside), None), own)
            for total, start in zip(sums, starts, strict=True)
        ]

    _write(to, target, to.turns(turns, [_zeros(to)] * n, turn))


def _write(to: Tile, target: Any, vectors: list[Any]) -> None:
    """Write the sum of the lanes of each vector."""
    for r, vector in enumerate(vectors):
        place = to.pointer(to.builder.add(target, to.word(r * to.size)), to.kind)
        to.builder.store(_sum(to, vector), place, align=to.size)


@intrinsic
def reflected(
    builder: Any, dtype: Value, x: Value, step: Value, second: Value, third: Value, tau: Value, count: Value
) -> None:
    """Reflect three rows of `count` vectors with the vector (1, second, third)."""
    to = Tile(builder, values.dtype_of(dtype))
    at, far, turns = _words(builder, x, step, count)
    starts = [builder.add(at, own) for own in to.several(far, 3)]
    two, three, one = (to.spread(own.one) for own in (second, third, tau))
    shares = [one, *[builder.fmul(one, own, flags=CONTRACT) for own in (two, three)]]

    def turn(number: Any, nothing: list[Any]) -> list[Any]:
        beside = builder.mul(number, to.word(to.lanes * to.size))
        places = [builder.add(start, beside) for start in starts]
        rows = [to.load(place, None) for place in places]
        total = _more(to, _more(to, rows[0], two, rows[1]), three, rows[2])
        for place, row, share in zip(places, rows, shares, strict=True):
            to.store(place, to.less(row, total, share), None)
        return []

    to.turns(turns, [], turn)


@intrinsic
def rooted(
    builder: Any, dtype: Value, squares: Value, lengths: Value, signed: Value, signs: Value, pairs: Value, count: Value
) -> None:  # fmt: skip
    """Write cosines and sines of a sweep, given squares, and the squares of numbers beside the diagonal after it.

    Parameters
    ----------
    dtype : str
    squares, lengths, signed, signs : int
        Squares of numbers beside the diagonal; r^2 of each rotation, and one more; c^2 r^2 with the sign of c; numbers
        that have the signs of sines.
    pairs : int
        Where the cosines are written, and the sines behind them.
    count : int
        How many rotations there are.
    """
    from llvmlite import ir

    to = Tile(builder, values.dtype_of(dtype))
    beside, r_at, c_at, s_at, target, turns = _words(builder, squares, lengths, signed, signs, pairs, count)
    behind, zero = builder.add(target, builder.mul(turns, to.word(to.size))), _zeros(to)
    kind = f"v{to.lanes}f{8 * to.size}"
    one = ir.FunctionType(to.vector, [to.vector])
    root, size = (builder.module.declare_intrinsic(f"llvm.{name}.{kind}", (), one) for name in ("sqrt", "fabs"))

    def turn(number: Any, nothing: list[Any]) -> list[Any]:
        first = builder.mul(number, to.word(to.lanes))
        far, mask = builder.mul(first, to.word(to.size)), to.mask(builder.sub(turns, first))
        square, r, own, sign = (to.load(builder.add(place, far), mask) for place in (beside, r_at, c_at, s_at))
        square = builder.fdiv(square, r)
        cosine = builder.call(root, [builder.fdiv(builder.call(size, [own]), r)])
        for place, value, by in ((target, cosine, own), (behind, builder.call(root, [square]), sign)):
            turned = builder.select(builder.fcmp_ordered("<", by, zero), builder.fneg(value), value)
            to.store(builder.add(place, far), turned, mask)
        following = to.load(builder.add(builder.add(r_at, far), to.word(to.size)), mask)
        to.store(builder.add(beside, far), builder.fmul(square, following), mask)
        return []

    several = builder.add(turns, to.word(to.lanes - 1))
    to.turns(builder.sdiv(several, to.word(to.lanes)), [], turn)


@intrinsic
def rotated(builder: Any, dtype: Value, x: Value, step: Value, count: Value, pairs: Value, vectors: Value) -> None:
    """Rotate each of some rows with the next one, the first with the second first.

    Parameters
    ----------
    dtype : str
    x, step, count : int
        The first row, the distance of rows, which may be negative, and how many rotations there are.
    pairs : int
        Cosines c of all, then sines s: of x and its next row y, c x + s y stays, and c y - s x is rotated further.
    vectors : int
        How many vectors a row has, known beforehand.
    """
    to = Tile(builder, values.dtype_of(dtype))
    (across,) = known(vectors)
    at, far, turns, first = _words(builder, x, step, count, pairs)
    second = builder.add(first, builder.mul(turns, to.word(to.size)))

    def turn(number: Any, rows: list[Any]) -> list[Any]:
        beside = builder.mul(number, to.word(to.size))
        c, s = (to.spread(to.get(builder.add(own, beside))) for own in (first, second))
        place = builder.add(at, builder.mul(number, far))
        made = []
        for own, there, target in zip(
            rows, to.places(builder.add(place, far), across), to.places(place, across), strict=True
        ):
            following = to.load(there, None)
            to.store(target, _more(to, builder.fmul(s, following, flags=CONTRACT), c, own), None)
            made.append(to.less(builder.fmul(c, following, flags=CONTRACT), s, own))
        return made

    rows = to.turns(turns, [to.load(place, None) for place in to.places(at, across)], turn)
    for own, place in zip(rows, to.places(builder.add(at, builder.mul(turns, far)), across), strict=True):
        to.store(place, own, None)

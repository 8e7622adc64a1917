"""Products of a matrix with vectors: rows are read whole, where else their columns would be transposed in registers.

A product with known factors, as in ``X @ w``, has eight partial sums, of every eighth column; those of eight rows are
added up in three stages. Of ``c @ X`` the multiples of even rows are added up, and those of odd ones. So results do not
depend on the width of registers. Numbers in single precision are multiplied and added in double.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.rows import STAGES, address, joined
from tapegrad.program.fuse.scalars import FLOATS, Node
from tapegrad.program.fuse.schedule import Root, Segment
from tapegrad.program.fuse.text import BYTES, FENCE, SCALARS, Text, constant, first_lanes, suffix, typed

__all__ = ["Dot", "Place", "RowProducts", "RowSum", "row_products"]

VECTOR: Final = typed("d", 8)
Row = tuple[tuple[str, int], int, str]  # in which memory, how far apart, and of which dtype
_REGISTERS: Final = 20  # for partial sums of columns; more of them are read and written in each turn


class Place(NamedTuple):
    """Where rows stand: in which memory, how far apart, their dtype, their first column, and how many columns."""

    base: tuple[str, int]
    stride: int
    char: str
    first: int
    columns: int

    @property
    def vectors(self) -> int:
        """How many vectors of eight a row is made of; behind its last column are zeros."""
        return -(-self.columns // 8)

    def row(self, body: Body, lane: int) -> list[str]:
        """Load the row of a lane."""
        text, at, kind = body.text, address(body, self.base, self.stride, self.first, self.char), typed(self.char, 8)
        for column in (self.first, self.first + self.columns - 1):
            body.prove(self.base, column, ((body.axis, self.stride),))
        found = []
        for start in range(0, self.columns, 8):
            pointer = text.op(f"getelementptr {SCALARS[self.char]}, ptr {at}, i64 {lane * self.stride + start}")
            size = BYTES[self.char]
            if self.columns - start >= 8:
                value = text.op(f"load {kind}, ptr {pointer}, align {size}")
            else:
                mask = f"<8 x i1> {first_lanes(self.columns - start, 8)}"
                operands = f"ptr {pointer}", f"i32 {size}", mask, f"{kind} zeroinitializer"
                value = text.call(f"llvm.masked.load.{suffix(self.char, 8)}.p0", kind, *operands)
            found.append(_widened(text, self.char, 8, value))
        return found


class Dot(NamedTuple):
    """A product of each row with known factors, and the nodes that add it up."""

    place: Place
    chain: tuple[Node, ...]

    def factors(self, text: Text, memory: Memory, uniform: dict[int, str]) -> list[str]:
        """Return the factors as vectors of eight, with zeros behind the last."""
        one, found = Body(text, memory, 1, uniform), []
        for start in range(0, len(self.chain), 8):
            vector = "zeroinitializer"
            for lane, node in enumerate(self.chain[start : start + 8]):
                factor = _widened(text, self.place.char, 1, one.name(_split(node)[1]))
                vector = text.op(f"insertelement {VECTOR} {vector}, double {factor}, i64 {lane}")
            found.append(vector)
        return found

    def compute(self, body: Body, factors: Sequence[str]) -> None:
        """Write the products of a body's rows."""
        text, parts = body.text, []
        for first in range(0, body.width, 8):
            rows = []
            for lane in range(first, first + 8):
                total = ""
                row = self.place.row(body, lane) if lane < _count(body) else ()
                for part, factor in zip(row, factors, strict=False):
                    total = _product(text, part, factor, total)
                rows.append(total or "zeroinitializer")
            for _, low, high in STAGES:
                rows = [
                    text.op(f"fadd {VECTOR} {_lanes(text, *pair, low)}, {_lanes(text, *pair, high)}")
                    for pair in zip(rows[::2], rows[1::2], strict=True)
                ]
            parts += rows
        value, char = joined(body, parts), self.place.char
        if body.width == 1:
            value = text.op(f"extractelement {VECTOR} {value}, i64 0")
        elif body.width < 8:
            value = _lanes(text, value, "poison", range(body.width))
        if char != "d":
            value = text.op(f"fptrunc {typed('d', body.width)} {value} to {typed(char, body.width)}")
        body.names[self.chain[-1].number] = value


class RowSum(NamedTuple):
    """Sums over all rows of each column times a factor of the row: the reductions, by columns."""

    place: Place
    factor: Node
    roots: tuple[Root, ...]

    def starts(self) -> list[str]:
        """Return sums of nothing: of even rows, and of odd ones."""
        return [constant(-0.0, "d", 8)] * (2 * self.place.vectors)

    def added(self, body: Body, sums: Sequence[str], first: int) -> list[str]:
        """Write the rows of a body to the sums; `first` is the place of its first row in a turn."""
        text, half, sums = body.text, self.place.vectors, list(sums)
        factor = _widened(text, self.place.char, body.width, body.name(self.factor))
        text.put(FENCE)  # rows are read again, as there are too few registers to keep them
        for lane in range(_count(body)):
            if body.width == 1:
                one = text.op(f"insertelement {VECTOR} poison, double {factor}, i64 0")
                spread = _lanes(text, one, "poison", [0] * 8)
            else:
                of, order = typed("d", body.width), ", ".join([f"i32 {lane}"] * 8)
                spread = text.op(f"shufflevector {of} {factor}, {of} poison, <8 x i32> <{order}>")
            for place, row in enumerate(self.place.row(body, lane), half * ((first + lane) % 2)):
                sums[place] = _product(text, row, spread, sums[place])
        return sums

    def columns(self, text: Text, sums: Sequence[str]) -> list[str]:
        """Return the sum of each column."""
        half = self.place.vectors
        whole = [text.op(f"fadd {VECTOR} {even}, {odd}") for even, odd in zip(sums[:half], sums[half:], strict=True)]
        found = [text.op(f"extractelement {VECTOR} {whole[k // 8]}, i64 {k % 8}") for k in range(self.place.columns)]
        return found if self.place.char == "d" else [text.op(f"fptrunc double {own} to float") for own in found]


class RowProducts:
    """What a segment multiplies rows with.

    Attributes
    ----------
    sums : sequence of RowSum
    tops : frozenset of int
        The numbers of the nodes that are products with known factors.
    roots : frozenset of int
        The ids of the reductions that `sums` serve.
    """

    def __init__(self, dots: Sequence[Dot] = (), sums: Sequence[RowSum] = ()) -> None:
        self._dots, self.sums = dots, sums
        self._factors: list[list[str]] = []
        self.tops = frozenset([dot.chain[-1].number for dot in dots])
        self.roots = frozenset([id(root) for own in sums for root in own.roots])

    def begin(self, text: Text, memory: Memory, uniform: dict[int, str]) -> None:
        """Write what is the same in all turns."""
        self._factors = [dot.factors(text, memory, uniform) for dot in self._dots]

    def compute(self, body: Body) -> None:
        """Write the products of a body's rows with known factors."""
        for dot, factors in zip(self._dots, self._factors, strict=True):
            dot.compute(body, factors)


def row_products(segment: Segment, lanes: int, nodes: Iterable[Node]) -> RowProducts:
    """Return the products with rows of a segment that are quicker with whole rows.

    Parameters
    ----------
    segment : Segment
    lanes : int
        Of a turn.
    nodes : iterable of Node
        What it computes, each behind its arguments.
    """
    nodes = [node for node in nodes if node.axes and node.kind != "red"]
    users: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        for arg in node.args:
            users[arg.number].append(node)
    wanted = {node.number for _, node in segment.roots}
    columns: dict[Row, list[Node]] = defaultdict(list)
    for node in nodes:
        if (row := _row_of(node)) is not None:
            columns[row].append(node)
    all_dots, all_sums, dots, sums = _dots(nodes, users, wanted), _sums(segment), [], []
    for row, loads in columns.items():
        own_dots = [own for own in all_dots if own.place[:3] == row]
        own_sums = [own for own in all_sums if own.place[:3] == row]
        served = {node.number for dot in own_dots for node in dot.chain}
        ids = {id(root) for own in own_sums for root in own.roots}
        served |= {node.number for root, node in segment.roots if id(root) in ids}
        others = {user.number for load in loads for user in users[load.number]} - served
        others |= wanted & {load.number for load in loads}
        if not others and _is_quicker(own_dots, own_sums, len(loads), lanes, row[2]):
            dots += own_dots
            sums += own_sums
    return RowProducts(dots, sums)


def _is_quicker(dots: Sequence[Dot], sums: Sequence[RowSum], columns: int, lanes: int, char: str) -> bool:
    """Whether whole rows take fewer cycles than columns, which are transposed; counted for eight rows."""
    multiplied, added = sum(own.place.columns for own in dots), sum(own.place.columns for own in sums)
    kept = 3 * added if added * lanes // 8 > _REGISTERS else 0
    by_columns = 24 * -(-columns // 8) + multiplied + added + kept
    vectors = sum(own.place.vectors for own in dots) + sum(own.place.vectors for own in sums)
    if char == "f":  # registers have twice as many columns, and rows are converted
        return 21 * len(dots) + 8 * len(sums) + 12 * vectors < by_columns / 2
    return 21 * len(dots) + 8 * len(sums) + 8 * vectors < by_columns


def _row_of(node: Node) -> Row | None:
    """Return in which memory, and how far apart, the rows are that a node is a column of; None if it is none."""
    if node.kind != "load" or node.dtype not in FLOATS:
        return None
    base, _, strides = node.attr
    return (base, strides[0][1], node.dtype) if len(strides) == 1 and strides[0][1] > 1 else None


def _split(node: Node) -> tuple[Node, Node]:
    """Return the column and the factor that a product multiplies; the column is the second if both are none."""
    x, y = node.args[:2]
    return (x, y) if _row_of(x) else (y, x)


def _dots(nodes: Sequence[Node], users: dict[int, list[Node]], wanted: set[int]) -> list[Dot]:
    """Return sums of products of neighbours in a row with factors without axes, in their order."""
    chains: dict[int, tuple[Node, ...]] = {}  # by the numbers of their last nodes
    for node in nodes:
        if node.kind not in ("mul", "fma"):
            continue
        load, factor = _split(node)
        row = _row_of(load)
        if row is None or factor.axes:
            continue
        if node.kind == "mul":
            chains[node.number] = (node,)
            continue
        before = node.args[2]
        chain = chains.get(before.number, ())
        if chain and before.number not in wanted and len(users[before.number]) == 1:
            last = _split(before)[0]
            if _row_of(last) == row and last.attr[1] + 1 == load.attr[1]:
                chains[node.number] = (*chain, node)
                del chains[before.number]
    return [Dot(_place(_split(chain[0])[0], len(chain)), chain) for chain in chains.values()]


def _sums(segment: Segment) -> list[RowSum]:
    """Return sums of neighbours in a row times one factor of the row."""
    groups: dict[tuple[object, ...], list[tuple[int, Root, Node, Node]]] = defaultdict(list)
    for root, node in segment.roots:
        if root.red is not None and root.red.attr[0] == "sum" and node.kind == "mul":
            load, factor = _split(node)
            row = _row_of(load)
            if row is not None and factor.axes and not _row_of(factor):
                groups[row, factor.number].append((load.attr[1], root, load, factor))
    found = []
    for group in groups.values():
        group.sort(key=lambda own: own[0])
        first, _, load, factor = group[0]
        if [own[0] for own in group] == list(range(first, first + len(group))):
            found.append(RowSum(_place(load, len(group)), factor, tuple([own[1] for own in group])))
    return found


def _place(load: Node, columns: int) -> Place:
    """Return where rows stand of which a node is the first column."""
    base, first, strides = load.attr
    return Place(base, strides[0][1], load.dtype, first, columns)


def _count(body: Body) -> int:
    """Return how many rows of a body count."""
    return body.bounds[1] - body.bounds[0] if body.mask else body.width


def _widened(text: Text, char: str, width: int, value: str) -> str:
    """Return numbers in double precision."""
    return value if char == "d" else text.op(f"fpext {typed(char, width)} {value} to {typed('d', width)}")


def _product(text: Text, x: str, y: str, total: str) -> str:
    """Return x * y + total, rounded once; the product alone if there is no total."""
    if not total:
        return text.op(f"fmul {VECTOR} {x}, {y}")
    return text.call("llvm.fma.v8f64", VECTOR, f"{VECTOR} {x}", f"{VECTOR} {y}", f"{VECTOR} {total}")


def _lanes(text: Text, one: str, two: str, lanes: Sequence[int]) -> str:
    """Return chosen lanes of two vectors of eight."""
    order = ", ".join(f"i32 {lane}" for lane in lanes)
    return text.op(f"shufflevector {VECTOR} {one}, {VECTOR} {two}, <{len(lanes)} x i32> <{order}>")

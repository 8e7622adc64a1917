"""LLVM's text for what matrices have in common: their elements, vectors of them, copies, and scratch memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from tapegrad.program.fuse.rows import transposed
from tapegrad.program.fuse.text import BYTES, SCALARS, constant, first_lanes, suffix, typed
from tapegrad.program.fuse.turns import Turns
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Matrix", "Writer"]

_LANES: Final = {"d": 8, "f": 16}
_SIDE: Final = 8  # of squares that are transposed in registers: what `transposed` takes


class Matrix(NamedTuple):
    """A matrix in memory: the name of the pointer to its first element, its lengths, and its strides in elements."""

    pointer: str
    shape: tuple[int, int]
    strides: tuple[int, int]

    @property
    def turned(self) -> Matrix:
        """The matrix transposed."""
        return Matrix(self.pointer, self.shape[::-1], self.strides[::-1])

    @property
    def plain(self) -> Matrix:
        """The matrix with strides 1 where a length is 1: they do not matter there."""
        (rows, columns), (down, along) = self.shape, self.strides
        return Matrix(self.pointer, self.shape, (1 if rows == 1 else down, 1 if columns == 1 else along))


class Writer(Turns):
    """Writes instructions on elements of one dtype.

    Parameters
    ----------
    char : str
        NumPy's character of the dtype.

    Attributes
    ----------
    scratch : int
        Bytes of scratch memory that the code needs, at ``%scratch``.
    may_fail : bool
        The code may stop before it is done.
    """

    def __init__(self, char: str) -> None:
        super().__init__()
        self.scratch, self.may_fail = 0, False
        self.become(char)

    def become(self, char: str) -> None:
        """Write instructions on elements of another dtype from now on."""
        self.char, self.lanes, self.bytes = char, _LANES[char], BYTES[char]
        self.kind, self.vector = SCALARS[char], typed(char, self.lanes)

    # ---- loops

    def tiles(self, length: int, step: int, body: Callable[[str, int], None]) -> None:
        """Write a body for each part of a length: it takes where that begins, and how long it is."""
        whole = length - length % step
        if whole > step:
            self.loop_over(whole, step, lambda at: body(at, step))
        elif whole:
            body("0", step)
        if whole < length:
            body(str(whole), length - whole)

    # ---- memory

    def at(self, pointer: str, *steps: tuple[str | int, int]) -> str:
        """Return a pointer to an element: for each step, so many strides further."""
        known = sum(int(at) * stride for at, stride in steps if isinstance(at, int) or at.isdigit())
        for at, stride in steps:
            if isinstance(at, str) and not at.isdigit() and stride:
                far = at if stride == 1 else self.text.op(f"mul i64 {at}, {stride}")
                pointer = self.text.op(f"getelementptr {self.kind}, ptr {pointer}, i64 {far}")
        return self.text.op(f"getelementptr {self.kind}, ptr {pointer}, i64 {known}") if known else pointer

    def room(self, count: int, nbytes: int = 0) -> str:
        """Return scratch memory for some elements, or for some of so many bytes."""
        at, size = self.scratch, count * (nbytes or self.bytes)
        self.scratch += -(-size // 64) * 64
        return self.at("%scratch", (at // self.bytes, 1))

    def copy(self, own: Matrix, target: Matrix, upper: bool = False) -> None:
        """Copy a matrix, or its upper triangle with zeros below, to where another one stands."""
        rows, columns = own.shape
        if not upper and own.plain.strides == target.plain.strides == (columns if rows > 1 else 1, 1):
            nbytes = f"i64 {rows * columns * self.bytes}"
            places = f"ptr {target.pointer}", f"ptr {own.pointer}"
            self.text.call("llvm.memcpy.p0.p0.i64", "void", *places, nbytes, "i1 false")
            return
        pairs = (own, target), (own.turned, target.turned)
        by_columns = [pair for pair in pairs if (pair[0].strides[0], pair[1].strides[1]) == (1, 1)]
        if not upper and min(own.shape) >= _SIDE and by_columns:
            self._transpose(*by_columns[0])
            return

        def one(i: str, j: str) -> None:
            places = [self.at(each.pointer, (i, each.strides[0]), (j, each.strides[1])) for each in (own, target)]
            value = self.get(places[0])
            if upper:
                above = self.text.op(f"icmp uge i64 {j}, {i}")
                value = self.text.op(f"select i1 {above}, {self.kind} {value}, {self.kind} {self.number(0.0)}")
            self.put(value, places[1])

        self.loop_over(rows, 1, lambda i: self.loop_over(columns, 1, lambda j: one(i, j)))

    def _transpose(self, own: Matrix, target: Matrix) -> None:
        """Copy a matrix that stands column by column to one that stands row by row: squares, in registers."""

        def square(i: str, rows: int, j: str, columns: int) -> None:
            down, along = (self.mask(count, _SIDE) for count in (rows, columns))
            corner = self.at(own.pointer, (i, 1), (j, own.strides[1]))
            lines = [self.load(self.at(corner, (c, own.strides[1])), down, _SIDE) for c in range(columns)]
            lines = transposed(self.text, lines + lines[-1:] * (_SIDE - columns), self.char)
            corner = self.at(target.pointer, (i, target.strides[0]), (j, 1))
            for r in range(rows):
                self.store(lines[r], self.at(corner, (r, target.strides[0])), along, _SIDE)

        rows, columns = own.shape
        self.tiles(rows, _SIDE, lambda i, r: self.tiles(columns, _SIDE, lambda j, c: square(i, r, j, c)))

    def copied(self, own: Matrix) -> Matrix:
        """Return a copy of a matrix that stands row by row."""
        target = Matrix(self.room(math.prod(own.shape)), own.shape, (own.shape[1], 1))
        self.copy(own, target)
        return target

    def converted(self, own: Matrix, target: Matrix, dtypes: tuple[str, str]) -> None:
        """Copy a matrix into another dtype."""
        rows, columns = own.shape
        how, before = "fpext" if dtypes == ("f", "d") else "fptrunc", self.char

        def one(i: str, j: str) -> None:
            source = self._element(own, i, j, dtypes[0])
            value = self.text.op(f"{how} {self.kind} {self.get(source)} to {SCALARS[dtypes[1]]}")
            place = self._element(target, i, j, dtypes[1])
            self.put(value, place)

        self.loop_over(rows, 1, lambda i: self.loop_over(columns, 1, lambda j: one(i, j)))
        self.become(before)

    def _element(self, own: Matrix, i: str, j: str, char: str) -> str:
        self.become(char)
        return self.at(own.pointer, (i, own.strides[0]), (j, own.strides[1]))

    def clear(self, pointer: str, count: str) -> None:
        """Write zeros to some elements."""
        nbytes = self.text.op(f"mul i64 {count}, {self.bytes}")
        self.text.call("llvm.memset.p0.i64", "void", f"ptr {pointer}", "i8 0", f"i64 {nbytes}", "i1 false")

    # ---- elements

    def number(self, value: float) -> str:
        """Return a number."""
        return constant(value, self.char, 1)

    def get(self, pointer: str) -> str:
        """Load an element."""
        return self.text.op(f"load {self.kind}, ptr {pointer}, align {self.bytes}")

    def put(self, value: str, pointer: str) -> None:
        """Store an element."""
        self.text.put(f"store {self.kind} {value}, ptr {pointer}, align {self.bytes}")

    def times(self, x: str, y: str) -> str:
        """Multiply elements."""
        return self.text.op(f"fmul {self.kind} {x}, {y}")

    def of(self, function: str, *args: str) -> str:
        """Call one of LLVM's functions of elements."""
        name = f"llvm.{function}.{suffix(self.char, 1)}"
        return self.text.call(name, self.kind, *[f"{self.kind} {own}" for own in args])

    def fail_if(self, condition: str) -> None:
        """Stop later if a condition is true, and otherwise if one was before."""
        found, before = self.text.op(f"zext i1 {condition} to i64"), self.text.op("load i64, ptr %failed, align 8")
        self.text.put(f"store i64 {self.text.op(f'or i64 {found}, {before}')}, ptr %failed, align 8")
        self.may_fail = True

    # ---- vectors

    def mask(self, count: int, width: int = 0) -> str:
        """Return the mask of the first lanes; "" for all."""
        width = width or self.lanes
        if count >= width:
            return ""
        return first_lanes(count, width)

    def load(self, pointer: str, mask: str, width: int = 0) -> str:
        """Load a vector; lanes that the mask leaves out are 0."""
        width = width or self.lanes
        kind, align = typed(self.char, width), self.bytes
        if not mask:
            return self.text.op(f"load {kind}, ptr {pointer}, align {align}")
        name = f"llvm.masked.load.{suffix(self.char, width)}.p0"
        flags = f"<{width} x i1> {mask}"
        return self.text.call(name, kind, f"ptr {pointer}", f"i32 {align}", flags, f"{kind} zeroinitializer")

    def store(self, value: str, pointer: str, mask: str, width: int) -> None:
        """Store the lanes of a vector that the mask does not leave out."""
        kind, align = typed(self.char, width), self.bytes
        if not mask:
            self.text.put(f"store {kind} {value}, ptr {pointer}, align {align}")
            return
        name = f"llvm.masked.store.{suffix(self.char, width)}.p0"
        self.text.call(name, "void", f"{kind} {value}", f"ptr {pointer}", f"i32 {align}", f"<{width} x i1> {mask}")

    def spread(self, value: str) -> str:
        """Return a vector with a number in all lanes."""
        one = self.text.op(f"insertelement {self.vector} poison, {self.kind} {value}, i64 0")
        return self.text.op(
            f"shufflevector {self.vector} {one}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def shuffled(self, x: str, y: str, lanes: Sequence[int], width: int) -> str:
        """Return a vector of lanes of two vectors, or one lane of the first."""
        kind, picks = typed(self.char, width), ", ".join(f"i32 {lane}" for lane in lanes)
        if len(lanes) == 1:
            return self.text.op(f"extractelement {kind} {x}, i64 {lanes[0]}")
        return self.text.op(f"shufflevector {kind} {x}, {kind} {y}, <{len(lanes)} x i32> <{picks}>")

    def add(self, x: str, y: str, width: int) -> str:
        """Add vectors."""
        return self.text.op(f"fadd {typed(self.char, width)} {x}, {y}")

    def negative(self, x: str) -> str:
        """Return a vector with the other sign."""
        return self.text.op(f"fneg {self.vector} {x}")

    def fma(self, x: str, y: str, z: str) -> str:
        """Return x * y + z of vectors, rounded once."""
        name = f"llvm.fma.{suffix(self.char, self.lanes)}"
        return self.text.call(name, self.vector, *[f"{self.vector} {own}" for own in (x, y, z)])

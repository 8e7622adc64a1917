"""The body of a loop, or straight code: nodes become instructions on vectors of one width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

from tapegrad.program.fuse.scalars import Node, Refused
from tapegrad.program.fuse.text import BYTES, SCALARS, STORED, Text, constant, suffix, typed

__all__ = ["Body", "Memory"]

_FLOAT: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE: Final = {"add": "add", "sub": "sub", "mul": "mul"}
_BITS: Final = {"and": "and", "or": "or", "xor": "xor"}
_ORDERED: Final = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_SIGNED: Final = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_INTRINSIC: Final = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
                     "rint": "rint", "fma": "fma", "copysign": "copysign"}  # fmt: skip


_NORMAL: Final = (2.0**-600, 2.0**600)  # sizes of numbers whose quotients and their parts are normal numbers


class Memory:
    """Where the parts of a function's memory begin."""

    def __init__(self) -> None:
        self.pointers: dict[tuple[str, int], str] = {}
        self.sizes: dict[tuple[str, int], int] = {}  # in elements


class Body:
    """Instructions for some nodes.

    Parameters
    ----------
    text : Text
    memory : Memory
    width : int
        Lanes of a vector; 1 for straight code, and for loops over single elements.
    uniform : dict
        Names of the scalar values that are known outside, by numbers of nodes.
    axis, position : int and str, optional
        The axis that lanes run along, and the position of the first lane.
    bounds : pair of int
        Between which all positions are, for the proof that loads stay within memory.
    mask : str
        The name of the vector that says which lanes count; "" for all.
    sequential : dict
        Positions along other axes, by axis.
    """

    def __init__(
        self, text: Text, memory: Memory, width: int, uniform: dict[int, str], axis: int = -1, position: str = "0",
        bounds: tuple[int, int] = (0, 1), mask: str = "",
    ) -> None:  # fmt: skip
        self.text, self.memory, self.width, self.uniform = text, memory, width, uniform
        self.axis, self.position, self.bounds, self.mask = axis, position, bounds, mask
        self.names: dict[int, str] = uniform if width == 1 and axis < 0 else {}
        self.rows: dict[Any, list[int]] = {}

    # ---- values

    def compute(self, nodes: Iterable[Node]) -> None:
        """Write the instructions of nodes, which stand behind their arguments."""
        for node in nodes:
            if node.number not in self.names:
                self.names[node.number] = self._value(node)

    def name(self, node: Node) -> str:
        """Return the name of a value that was computed here or outside."""
        if node.kind == "const":
            return constant(node.attr, node.dtype, self.width)
        if node.kind == "zero":
            return constant(0, node.dtype, self.width)
        known = self.names.get(node.number)
        if known is None:
            known = self.names[node.number] = self.spread(self.uniform[node.number], node.dtype)
        return known

    def spread(self, scalar: str, char: str) -> str:
        """Return a scalar in all lanes."""
        if self.width == 1:
            return scalar
        kind = typed(char, self.width)
        one = self.text.op(f"insertelement {kind} poison, {SCALARS[char]} {scalar}, i64 0")
        return self.text.op(f"shufflevector {kind} {one}, {kind} poison, <{self.width} x i32> zeroinitializer")

    def _value(self, node: Node) -> str:
        kind, char, text = node.kind, node.dtype, self.text
        of = typed(char, self.width)
        if kind == "load":
            return self._load(node)
        if kind == "index":
            return self._positions(node.attr)
        args = [self.name(arg) for arg in node.args]
        first = node.args[0].dtype
        source = typed(first, self.width)
        if kind in _ORDERED:
            if first in "df":
                return text.op(f"fcmp {_ORDERED[kind]} {source} {args[0]}, {args[1]}")
            signed = _SIGNED[kind] if first == "l" else _SIGNED[kind].replace("s", "u", 1)
            return text.op(f"icmp {signed} {source} {args[0]}, {args[1]}")
        if kind == "div" and char == "d" and node.args[1].kind == "const" and _divides(node.args[1].attr):
            return self._quotient(args[0], node.args[1].attr)
        if kind in _FLOAT and char in "df":
            return text.op(f"{_FLOAT[kind]} {of} {args[0]}, {args[1]}")
        if kind in _WHOLE and char == "l":
            return text.op(f"{_WHOLE[kind]} {of} {args[0]}, {args[1]}")
        if kind in _BITS and char in "l?":
            return text.op(f"{_BITS[kind]} {of} {args[0]}, {args[1]}")
        if kind == "neg":
            return text.op(
                f"fneg {of} {args[0]}" if char in "df" else f"sub {of} {constant(0, char, self.width)}, {args[0]}"
            )
        if kind == "not":
            return text.op(f"xor {of} {args[0]}, {constant(True if char == '?' else -1, char, self.width)}")
        if kind == "select":
            mask = typed("?", self.width)
            return text.op(f"select {mask} {args[0]}, {of} {args[1]}, {of} {args[2]}")
        if kind in ("max", "min"):
            return self.extreme(kind, char, *args)
        if kind == "cast":
            return self._cast(first, char, args[0])
        if kind == "abs" and char == "l":
            return text.call(f"llvm.abs.{suffix(char, self.width)}", of, f"{of} {args[0]}", "i1 false")
        if kind in _INTRINSIC and char in "df":
            return text.call(
                f"llvm.{_INTRINSIC[kind]}.{suffix(char, self.width)}", of, *[f"{of} {arg}" for arg in args]
            )
        if kind == "call":
            return text.formula(node.attr, char, self.width, args)
        if kind == "libm":
            return self._lanewise(node.attr, char, args)
        raise Refused(f"no instruction for {kind} of {char}")

    def _quotient(self, x: str, divisor: float) -> str:
        """Divide by a known number: a product with its reciprocal in two parts.

        Rounded as the quotient is: N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating correctly rounded
        floating-point division when the divisor is known in advance" (2004), method 2. What is very large or small, or
        not finite, is multiplied by the first part alone.
        """
        exact = 1 / Fraction(divisor)
        high = float(exact)
        low = float(exact - Fraction(high))
        text, width = self.text, self.width
        of, end = typed("d", width), suffix("d", width)
        first, second = (constant(part, "d", width) for part in (high, low))
        small = text.op(f"fmul {of} {x}, {second}")
        result = text.call(f"llvm.fma.{end}", of, f"{of} {x}", f"{of} {first}", f"{of} {small}")
        size = text.call(f"llvm.fabs.{end}", of, f"{of} {x}")
        above = text.op(f"fcmp ogt {of} {size}, {constant(_NORMAL[0], 'd', width)}")
        below = text.op(f"fcmp olt {of} {size}, {constant(_NORMAL[1], 'd', width)}")
        plain = text.op(f"and {typed('?', width)} {above}, {below}")
        other = text.op(f"fmul {of} {x}, {first}")
        return text.op(f"select {typed('?', width)} {plain}, {of} {result}, {of} {other}")

    def extreme(self, kind: str, char: str, x: str, y: str) -> str:
        """Return the larger or smaller of two as NumPy's maximum and minimum: nan if one is."""
        of, mask, text = typed(char, self.width), typed("?", self.width), self.text
        if char in "df":
            one = text.op(f"fcmp {'oge' if kind == 'max' else 'ole'} {of} {x}, {y}")
            two = text.op(f"fcmp uno {of} {x}, {x}")
            chosen = text.op(f"or {mask} {one}, {two}")
        elif char == "l":
            chosen = text.op(f"icmp {'sge' if kind == 'max' else 'sle'} {of} {x}, {y}")
        else:
            return text.op(f"{'or' if kind == 'max' else 'and'} {of} {x}, {y}")
        return text.op(f"select {mask} {chosen}, {of} {x}, {of} {y}")

    def combine(self, kind: str, char: str, x: str, y: str) -> str:
        """Return a step of a reduction."""
        if kind in ("max", "min"):
            return self.extreme(kind, char, x, y)
        if char == "?":
            return self.text.op(f"{'or' if kind == 'sum' else 'and'} {typed(char, self.width)} {x}, {y}")
        step = {"sum": "add", "prod": "mul"}[kind]
        return self.text.op(f"{(_FLOAT if char in 'df' else _WHOLE)[step]} {typed(char, self.width)} {x}, {y}")

    def _cast(self, source: str, char: str, value: str) -> str:
        one, two = typed(source, self.width), typed(char, self.width)
        if char == "?":
            zero = constant(0, source, self.width)
            return self.text.op(
                f"fcmp une {one} {value}, {zero}" if source in "df" else f"icmp ne {one} {value}, {zero}"
            )
        how = {
            "df": "fptrunc",
            "fd": "fpext",
            "ld": "sitofp",
            "lf": "sitofp",
            "?d": "uitofp",
            "?f": "uitofp",
            "?l": "zext",
        }
        if source + char in how:
            return self.text.op(f"{how[source + char]} {one} {value} to {two}")
        name = f"llvm.fptosi.sat.{suffix(char, self.width)}.{suffix(source, self.width)}"
        return self.text.call(name, two, f"{one} {value}")

    def _lanewise(self, function: str, char: str, args: list[str]) -> str:
        """Call a function of libm for each lane."""
        name = function if char == "d" else f"{function}f"
        of, one = typed(char, self.width), SCALARS[char]
        if self.width == 1:
            return self.text.call(name, one, *[f"{one} {arg}" for arg in args])
        result = "poison"
        for lane in range(self.width):
            parts = [self.text.op(f"extractelement {of} {arg}, i64 {lane}") for arg in args]
            value = self.text.call(name, one, *[f"{one} {part}" for part in parts])
            result = self.text.op(f"insertelement {of} {result}, {one} {value}, i64 {lane}")
        return result

    # ---- memory

    def _positions(self, axis: int) -> str:
        """Return the positions of the lanes along an axis."""
        if self.width == 1:
            return self.position if self.position.startswith("%") else self.text.op(f"add i64 0, {self.position}")
        start = self.spread(self.position, "l")
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
        return self.text.op(f"add {typed('l', self.width)} {start}, <{lanes}>")

    def _address(
        self, base: tuple[str, int], offset: int, strides: Sequence[tuple[int, int]], char: str, span: int
    ) -> str:
        """Return the address of the element of the first lane; prove that the last one is within memory."""
        stride = dict(strides).get(self.axis, 0)
        if any(axis != self.axis for axis, _ in strides):
            raise Refused("more than one long dimension")
        low, high = self.bounds
        ends = [offset + stride * low, offset + stride * (high - 1)]
        if min(ends) < 0 or max(ends) >= self.memory.sizes[base]:
            raise Refused(f"an access to {base} at {ends} of {self.memory.sizes[base]}")
        pointer = self.memory.pointers[base]
        if not stride:
            return self.text.op(f"getelementptr {STORED[char]}, ptr {pointer}, i64 {offset}") if offset else pointer
        at = self.position if stride == 1 else self.text.op(f"mul i64 {self.position}, {stride}")
        at = self.text.op(f"add i64 {at}, {offset}") if offset else at
        return self.text.op(f"getelementptr {STORED[char]}, ptr {pointer}, i64 {at}")

    def _load(self, node: Node) -> str:
        base, offset, strides = node.attr
        char, text = node.dtype, self.text
        stride = dict(strides).get(self.axis, 0)
        address = self._address(base, offset, strides, char, self.width)
        kind, align = STORED[char], BYTES[char]
        if self.width == 1 or not stride:
            value = text.op(f"load {kind}, ptr {address}, align {align}")
            value = text.op(f"icmp ne i8 {value}, 0") if char == "?" else value
            return self.spread(value, char)
        vector = f"<{self.width} x {kind}>"
        if stride == 1 and not self.mask:
            value = text.op(f"load {vector}, ptr {address}, align {align}")
        elif stride == 1:
            name = f"llvm.masked.load.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.p0"
            value = text.call(
                name,
                vector,
                f"ptr {address}",
                f"i32 {align}",
                f"<{self.width} x i1> {self.mask}",
                f"{vector} {_ones(char)}",
            )
        else:
            pointers = self._lane_pointers(address, stride, kind)
            name = f"llvm.masked.gather.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.v{self.width}p0"
            value = text.call(
                name, vector, f"<{self.width} x ptr> {pointers}", f"i32 {align}",
                f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}", f"{vector} {_ones(char)}",
            )  # fmt: skip
        return text.op(f"icmp ne {vector} {value}, zeroinitializer") if char == "?" else value

    def _lane_pointers(self, address: str, stride: int, kind: str) -> str:
        lanes = ", ".join(f"i64 {lane * stride}" for lane in range(self.width))
        return self.text.op(f"getelementptr {kind}, ptr {address}, <{self.width} x i64> <{lanes}>")

    def store(
        self,
        node: Node,
        base: tuple[str, int],
        offset: int,
        stride: int,
        strides: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Write the value of a node for the lanes of this body, which stand by a stride."""
        char, text, value = node.dtype, self.text, self.name(node)
        if strides is None:
            strides = ((self.axis, stride),) if stride else ()
        address = self._address(base, offset, strides, char, self.width)
        kind = STORED[char] if self.width == 1 else f"<{self.width} x {STORED[char]}>"
        if char == "?":
            value = text.op(f"zext {typed(char, self.width)} {value} to {kind}")
        if self.width == 1 or (stride == 1 and not self.mask):
            text.put(f"store {kind} {value}, ptr {address}, align {BYTES[char]}")
        elif stride == 1:
            name = f"llvm.masked.store.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.p0"
            text.call(
                name,
                "void",
                f"{kind} {value}",
                f"ptr {address}",
                f"i32 {BYTES[char]}",
                f"<{self.width} x i1> {self.mask}",
            )
        else:
            pointers = self._lane_pointers(address, stride, STORED[char])
            name = f"llvm.masked.scatter.v{self.width}{'i8' if char == '?' else suffix(char, 1)}.v{self.width}p0"
            text.call(
                name, "void", f"{kind} {value}", f"<{self.width} x ptr> {pointers}", f"i32 {BYTES[char]}",
                f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}",
            )  # fmt: skip


def _divides(value: float) -> bool:
    """Return whether a quotient by a number is worth a product: not by powers of 2, of which LLVM knows it."""
    return 1e-100 < abs(value) < 1e100 and abs(math.frexp(value)[0]) != 0.5


def _ones(char: str) -> str:
    """Return what lanes hold that do not count: the functions of vmath have no rare case there."""
    return "splat (double 1.0)" if char == "d" else "splat (float 1.0)" if char == "f" else "zeroinitializer"


Each = Callable[[Body], None]

"""The body of a loop, or straight code: nodes become instructions on vectors of one width."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from tapegrad.compiler import cpu
from tapegrad.program.fuse.accesses import Accesses
from tapegrad.program.fuse.scalars import FLOATS, WHOLES, Node
from tapegrad.program.fuse.schedule import longest_first
from tapegrad.program.fuse.text import SCALARS, constant, suffix, typed
from tapegrad.program.machine_code import Refused

__all__ = ["Body"]

_FLOAT: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE: Final = {"add": "add", "sub": "sub", "mul": "mul", "quotient": "sdiv", "rest": "srem"}
_BITS: Final = {"and": "and", "or": "or", "xor": "xor"}
_ORDERED: Final = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_SIGNED: Final = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_INTRINSIC: Final = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
                     "rint": "rint", "fma": "fma", "copysign": "copysign"}  # fmt: skip

_NORMAL: Final = (2.0**-600, 2.0**600)  # sizes of numbers whose quotients and their parts are normal numbers
Inverse = tuple[str, str, str]  # a factor of both parts of a quotient, the divisor times it, and that one's reciprocal


class Body(Accesses):
    """Instructions for some nodes."""

    def compute(self, nodes: Iterable[Node]) -> None:
        """Write the instructions of nodes, which stand behind their arguments."""
        nodes = [node for node in nodes if node.number not in self.names]
        nodes = longest_first(nodes) if self.width > 1 else nodes
        inverses = self._worth_inverses(nodes) if self.width > 1 else {}
        for node in nodes:
            if node.kind == "div" and node.args[1].number in inverses:
                self.names[node.number] = self._shared_quotient(node.args[0], node.args[1], inverses)
            else:
                self.names[node.number] = self.value(node)

    def _worth_inverses(self, nodes: Iterable[Node]) -> dict[int, Inverse | None]:
        """Return by whose reciprocals to multiply: of several quotients, or the same one in each turn of the loop.

        On Intel's CPUs a division of eight numbers takes 16 cycles, and a product with a known reciprocal 4.
        """
        if cpu.divides_quickly():
            return {}
        divisors = [node.args[1] for node in nodes if node.kind == "div" and node.dtype == "d"]
        counts = Counter(own.number for own in divisors)
        return {
            own.number: None for own in divisors
            if own.kind != "const" and (self.axis not in own.axes or counts[own.number] > 1)
        }  # fmt: skip

    def value(self, node: Node, args: Sequence[str] | None = None) -> str:
        """Write the instruction of a node, perhaps of other arguments than its own."""
        kind, char, text = node.kind, node.dtype, self.text
        of = typed(char, self.width)
        if kind == "load":
            return self._load(node)
        if kind == "index":
            return self._positions(node.attr)
        args = [self.name(arg) for arg in node.args] if args is None else args
        first = node.args[0].dtype
        source = typed(first, self.width)
        if kind in _ORDERED:
            if first in "df":
                return text.op(f"fcmp {_ORDERED[kind]} {source} {args[0]}, {args[1]}")
            signed = _SIGNED[kind] if first in WHOLES else _SIGNED[kind].replace("s", "u", 1)
            return text.op(f"icmp {signed} {source} {args[0]}, {args[1]}")
        if kind == "div" and char == "d" and node.args[1].kind == "const" and _divides(node.args[1].attr):
            return self._quotient(args[0], node.args[1].attr)
        if kind in _FLOAT and char in "df":
            return text.op(f"{_FLOAT[kind]} {of} {args[0]}, {args[1]}")
        if kind in _WHOLE and char in WHOLES:
            return text.op(f"{_WHOLE[kind]} {of} {args[0]}, {args[1]}")
        if kind in _BITS and char not in FLOATS:
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
        if kind == "abs" and char in WHOLES:
            return text.call(f"llvm.abs.{suffix(char, self.width)}", of, f"{of} {args[0]}", "i1 false")
        if kind in _INTRINSIC and char in "df":
            return text.call(
                f"llvm.{_INTRINSIC[kind]}.{suffix(char, self.width)}", of, *[f"{of} {arg}" for arg in args]
            )
        if kind == "call":
            return text.formula(node.attr, char, self.width, list(args))
        if kind == "gather":
            return self._gather(node, args[0])
        if kind == "libm":
            return self._lanewise(node.attr, char, args)
        raise Refused(f"there is no instruction for {kind} of {char}")

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

    def _shared_quotient(self, x: Node, y: Node, inverses: dict[int, Inverse | None]) -> str:
        """Divide by a number that has been divided by before: a product with its reciprocal, corrected twice.

        Rounded as the quotient is, if x is above 2**-960: P. Markstein, "Computation of elementary functions on the IBM
        RISC System/6000 processor" (1990), theorem 8.3. Both are scaled if the reciprocal of y would overflow. The
        product itself is right where its correction is nan or 0: for infinities, nan, and a zero with its sign.
        """
        text, of, end = self.text, typed("d", self.width), suffix("d", self.width)
        fma, zero = f"llvm.fma.{end}", constant(0.0, "d", self.width)
        known = inverses[y.number]
        if known is None:
            size = text.call(f"llvm.fabs.{end}", of, f"{of} {self.name(y)}")
            tiny = text.op(f"fcmp olt {of} {size}, {constant(2.0**-900, 'd', self.width)}")
            up, same = (constant(number, "d", self.width) for number in (2.0**200, 1.0))
            scale = text.op(f"select {typed('?', self.width)} {tiny}, {of} {up}, {of} {same}")
            divisor = text.op(f"fmul {of} {self.name(y)}, {scale}")
            known = inverses[y.number] = scale, divisor, text.op(f"fdiv {of} {same}, {divisor}")
        scale, divisor, inverse = known
        scaled = text.op(f"fmul {of} {self.name(x)}, {scale}")
        first = result = text.op(f"fmul {of} {scaled}, {inverse}")
        for _ in range(2):
            negative = text.op(f"fneg {of} {result}")
            rest = text.call(fma, of, f"{of} {negative}", f"{of} {divisor}", f"{of} {scaled}")
            result = text.call(fma, of, f"{of} {rest}", f"{of} {inverse}", f"{of} {result}")
        corrected = text.op(f"fcmp one {of} {result}, {zero}")
        return text.op(f"select {typed('?', self.width)} {corrected}, {of} {result}, {of} {first}")

    def extreme(self, kind: str, char: str, x: str, y: str) -> str:
        """Return the larger or smaller of two as NumPy's maximum and minimum: nan if one is."""
        of, mask, text = typed(char, self.width), typed("?", self.width), self.text
        if char in "df":  # one instruction, but for nan
            other = text.op(f"fcmp {'ogt' if kind == 'max' else 'olt'} {of} {y}, {x}")
            result = text.op(f"select {mask} {other}, {of} {y}, {of} {x}")
            wrong = text.op(f"fcmp uno {of} {y}, {y}")
            return text.op(f"select {mask} {wrong}, {of} {y}, {of} {result}")
        if char in WHOLES:
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
            "id": "sitofp",
            "if": "sitofp",
            "il": "sext",
            "li": "trunc",
            "?d": "uitofp",
            "?f": "uitofp",
            "?l": "zext",
            "?i": "zext",
        }
        if source + char in how:
            return self.text.op(f"{how[source + char]} {one} {value} to {two}")
        name = f"llvm.fptosi.sat.{suffix(char, self.width)}.{suffix(source, self.width)}"
        return self.text.call(name, two, f"{one} {value}")

    def _lanewise(self, function: str, char: str, args: Sequence[str]) -> str:
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


def _divides(value: float) -> bool:
    """Return whether a quotient by a number is worth a product: not by powers of 2, of which LLVM knows it."""
    return 1e-100 < abs(value) < 1e100 and abs(math.frexp(value)[0]) != 0.5

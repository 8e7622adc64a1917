"""Formulas on numbers or on whole vectors of them, emitted as LLVM: the same bits in every lane.

A formula is a Python function of `Lanes`. Nothing in it is contracted, reordered or approximated: a lane of a vector
holds what the single number would give, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Lanes", "absolute", "bits", "copysign", "fma", "narrow", "number", "polynomial", "repeated",
    "rint", "root", "trunc", "where", "wide",
]  # fmt: skip


class Lanes:
    """One LLVM value, a scalar or a vector, with Python's operators; Python numbers become constants of its type."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    @property
    def type(self) -> Any:
        """LLVM's type of the value."""
        return self.value.type

    @property
    def element(self) -> Any:
        """LLVM's type of one lane."""
        return getattr(self.type, "element", self.type)

    @property
    def width(self) -> int:
        """Number of lanes; 0 for a scalar."""
        return getattr(self.type, "count", 0)

    @property
    def single(self) -> bool:
        """Whether lanes have four bytes."""
        return str(self.element) in ("float", "i32")

    def of(self, other: Any) -> Any:
        """Return a value, or a constant of the type of this one, as LLVM's."""
        from llvmlite import ir

        if isinstance(other, Lanes):
            return other.value
        return ir.Constant(self.type, [ir.Constant(self.element, other)] * self.width if self.width else other)

    def _emit(self, name: str, other: Any, swap: bool = False) -> Lanes:
        a, b = self.value, self.of(other)
        if swap:
            a, b = b, a
        prefix = "f" if str(self.element) in ("float", "double") and name in ("add", "sub", "mul", "div") else ""
        return Lanes(self.builder, getattr(self.builder, prefix + name)(a, b))

    def _compare(self, sign: str, other: Any) -> Lanes:
        if str(self.element) in ("float", "double"):
            emit = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
        else:
            emit = self.builder.icmp_signed
        return Lanes(self.builder, emit(sign, self.value, self.of(other)))

    def __add__(self, other: Any) -> Lanes:
        return self._emit("add", other)

    def __sub__(self, other: Any) -> Lanes:
        return self._emit("sub", other)

    def __mul__(self, other: Any) -> Lanes:
        return self._emit("mul", other)

    def __truediv__(self, other: Any) -> Lanes:
        return self._emit("div", other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Lanes:
        return self._emit("sub", other, swap=True)

    def __rtruediv__(self, other: Any) -> Lanes:
        return self._emit("div", other, swap=True)

    def __neg__(self) -> Lanes:
        if str(self.element) in ("float", "double"):
            return Lanes(self.builder, self.builder.fneg(self.value))
        return self._emit("sub", 0, swap=True)

    def __and__(self, other: Any) -> Lanes:
        return self._emit("and_", other)

    def __or__(self, other: Any) -> Lanes:
        return self._emit("or_", other)

    def __xor__(self, other: Any) -> Lanes:
        return self._emit("xor", other)

    def __invert__(self) -> Lanes:
        return self._emit("xor", -1 if str(self.element) != "i1" else 1)

    def __lshift__(self, other: int) -> Lanes:
        return self._emit("shl", other)

    def __rshift__(self, other: int) -> Lanes:
        """Shift bits to the right; zeros come in."""
        return self._emit("lshr", other)

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> Lanes:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Lanes:  # type: ignore[override]
        return self._compare("!=", other)

    __hash__ = None  # type: ignore[assignment]


# ---- what formulas call besides operators


def _call(name: str, x: Lanes, *others: Any) -> Lanes:
    """Call one of LLVM's functions of numbers of one type."""
    from llvmlite import ir

    of = {"float": "f32", "double": "f64"}[str(x.element)]
    name = f"llvm.{name}.{f'v{x.width}' if x.width else ''}{of}"
    module = x.builder.module
    known = module.globals.get(name)
    if known is None:
        known = ir.Function(module, ir.FunctionType(x.type, [x.type] * (1 + len(others))), name)
    return Lanes(x.builder, x.builder.call(known, [x.value, *map(x.of, others)]))


def fma(x: Lanes, y: Any, z: Any) -> Lanes:
    """Return ``x * y + z``, rounded once."""
    return _call("fma", x, y, z)


def absolute(x: Lanes) -> Lanes:
    """Return the number without its sign."""
    return _call("fabs", x)


def copysign(x: Lanes, sign: Any) -> Lanes:
    """Return the first number with the sign of the second."""
    return _call("copysign", x, sign)


def root(x: Lanes) -> Lanes:
    """Return the square root."""
    return _call("sqrt", x)


def rint(x: Lanes) -> Lanes:
    """Round to the nearest integer, ties to even."""
    return _call("rint", x)


def trunc(x: Lanes) -> Lanes:
    """Round toward 0."""
    return _call("trunc", x)


def where(mask: Lanes, x: Any, y: Any) -> Lanes:
    """Return the first where a mask is true, else the second; one of them is no Python number."""
    like = x if isinstance(x, Lanes) else y
    return Lanes(mask.builder, mask.builder.select(mask.value, like.of(x), like.of(y)))


def repeated(step: Callable[..., Sequence[Lanes]], asked: Lanes, *state: Lanes) -> Sequence[Lanes]:
    """Return the state after the steps that each lane asks for; it stays as it is while others go on.

    Parameters
    ----------
    step : callable
        From a state to the next one, and a mask of the lanes that ask for another step. It is emitted once.
    asked : Lanes
        Which lanes ask for a step at all.
    state : Lanes
    """
    from llvmlite import ir

    builder = asked.builder
    before, turn, done = builder.block, builder.append_basic_block(), builder.append_basic_block()

    def go_on(mask: Lanes) -> None:
        some, whole = mask.value, ir.IntType(mask.width)
        if mask.width:
            some = builder.icmp_unsigned("!=", builder.bitcast(some, whole), whole(0))
        builder.cbranch(some, turn, done)

    go_on(asked)
    builder.position_at_end(turn)
    mask, *places = (builder.phi(own.type) for own in (asked, *state))
    *new, again = step(*[Lanes(builder, place) for place in places])
    own = Lanes(builder, mask)
    after = [own & again, *[where(own, one, Lanes(builder, place)) for one, place in zip(new, places, strict=True)]]
    last = builder.block
    go_on(after[0])
    for place, first, one in zip((mask, *places), (asked, *state), after, strict=True):
        place.add_incoming(first.value, before)
        place.add_incoming(one.value, last)
    builder.position_at_end(done)
    results = []
    for first, one in zip(state, after[1:], strict=True):
        results.append(Lanes(builder, builder.phi(first.type)))
        results[-1].value.add_incoming(first.value, before)
        results[-1].value.add_incoming(one.value, last)
    return results


def _retyped(x: Lanes, element: Any, how: str) -> Lanes:
    from llvmlite import ir

    return Lanes(x.builder, getattr(x.builder, how)(x.value, ir.VectorType(element, x.width) if x.width else element))


def bits(x: Lanes) -> Lanes:
    """Return the bits of floating numbers as integers."""
    from llvmlite import ir

    return _retyped(x, ir.IntType(32 if x.single else 64), "bitcast")


def number(x: Lanes) -> Lanes:
    """Return the floating numbers that integers are the bits of."""
    from llvmlite import ir

    return _retyped(x, ir.FloatType() if x.single else ir.DoubleType(), "bitcast")


def wide(x: Lanes) -> Lanes:
    """Return float32 numbers as float64."""
    from llvmlite import ir

    return _retyped(x, ir.DoubleType(), "fpext")


def narrow(x: Lanes) -> Lanes:
    """Round float64 numbers to float32."""
    from llvmlite import ir

    return _retyped(x, ir.FloatType(), "fptrunc")


def polynomial(x: Lanes, coefficients: Sequence[Any]) -> Any:
    """Return ``c[0] + c[1] x + ...`` by Horner's rule."""
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = fma(x, result, c)
    return result

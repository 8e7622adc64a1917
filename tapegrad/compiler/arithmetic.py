"""Arithmetic on values of compiled functions, as LLVM.

Numbers of two kinds are computed in the kind that holds both, as in NumPy; integers in 64 bits.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.values import (
    Known,
    NotCompilableError,
    Value,
    constant,
    elements_of,
    is_complex,
    is_float,
    is_word,
    known,
    number_of,
    packed,
    part_of,
    parts,
    promoted,
    type_of,
    word,
)  # fmt: skip

__all__ = ["CONTRACT", "arithmetic", "cast", "compared", "divided", "negated", "quotient", "truth"]

#: Flags of arithmetic: a product and a sum may be one fma, and nothing else; nan, inf and signed zeros survive.
CONTRACT = ("contract",)


@cache
def _computed_in(one: str, other: str) -> str:
    """Return the dtype of a sum: integers have 64 bits, and a sign unless both have none."""
    kinds = np.dtype(one).kind + np.dtype(other).kind
    if set(kinds) <= set("biu"):
        return "uint64" if kinds == "uu" else "int64"
    return promoted(one, other)


def cast(builder: Any, value: Value, kind: Any) -> Value:
    """Return a value as one of another kind; of a complex number the real part, for a real kind."""
    if value.kind == kind:
        return value
    if is_word(value.kind) and is_word(kind):
        return Value(kind, value.parts)
    if type(kind) is tuple:
        pairs = zip(elements_of(value), kind, strict=True)
        return packed([cast(builder, own, each) for own, each in pairs])
    source = "int64" if isinstance(value.kind, type) else value.kind
    target = "int64" if isinstance(kind, type) else kind
    if not isinstance(source, str) or not isinstance(target, str):
        raise NotCompilableError(f"{source} as {target}")
    if is_complex(target):
        real, imag = (cast(builder, own, part_of(target)) for own in parts(Value(source, value.parts)))
        return Value(target, (real.one, imag.one))
    if is_complex(source):
        return cast(builder, parts(value)[0], target)
    return Value(kind, (_number(builder, value.one, source, target),))


def _number(builder: Any, number: Any, source: str, target: str) -> Any:
    """Emit a real number as one of another dtype."""
    kind = type_of(target)
    signed = not source.startswith("uint") and source != "bool"
    if target == "bool":
        if is_float(source):
            return builder.fcmp_unordered("!=", number, number.type(0.0))
        return builder.icmp_signed("!=", number, number.type(0))
    if is_float(source):
        if is_float(target):
            return builder.fptrunc(number, kind) if target == "float32" else builder.fpext(number, kind)
        return builder.fptoui(number, kind) if target.startswith("uint") else builder.fptosi(number, kind)
    if is_float(target):
        value = number_of(number)
        if value is not None and source != "bool":
            return kind(float(value % (1 << 64) if source == "uint64" else value))  # as written
        return builder.sitofp(number, kind) if signed else builder.uitofp(number, kind)
    if number.type.width < kind.width:
        return builder.sext(number, kind) if signed else builder.zext(number, kind)
    return number if number.type.width == kind.width else builder.trunc(number, kind)


def truth(builder: Any, value: Value) -> Any:
    """Emit whether a value is true, as a bit."""
    if value.kind == "bool":
        return value.one
    if isinstance(value.kind, Known):
        return type_of("bool")(int(bool(value.kind.value)))
    if constant(value) is not None:
        return type_of("bool")(int(bool(constant(value))))
    if is_complex(value.kind):
        return builder.or_(*(truth(builder, own) for own in parts(value)))
    return cast(builder, value, "bool").one


def negated(builder: Any, bit: Any) -> Any:
    """Emit the other truth value."""
    number = number_of(bit)
    return builder.not_(bit) if number is None else bit.type(1 - number)


def _both(builder: Any, a: Value, b: Value, compares: bool = False) -> tuple[str, Value, Value]:
    kinds = ["int64" if isinstance(own.kind, type) else own.kind for own in (a, b)]
    if not all(isinstance(own, str) for own in kinds):
        raise NotCompilableError(f"arithmetic with {kinds[0]} and {kinds[1]}")
    kind = promoted(*kinds) if compares else _computed_in(*kinds)
    return kind, cast(builder, a, kind), cast(builder, b, kind)


_INTEGERS = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor", "shl": "shl"}

_KNOWN = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "shl": operator.lshift,
}


def arithmetic(builder: Any, name: str, a: Value, b: Value) -> Value:
    """Emit an operation, named add, sub, mul, and, or, xor, shl or shr."""
    if name in ("and", "or", "xor") and a.kind == b.kind == "bool":
        return Value("bool", (getattr(builder, _INTEGERS[name])(a.one, b.one),))
    kind, a, b = _both(builder, a, b)
    if name == "shr":
        if kind not in ("int64", "uint64"):
            raise NotCompilableError(f"a shift of {kind}")
        return Value(kind, ((builder.lshr if kind == "uint64" else builder.ashr)(a.one, b.one),))
    if kind in ("int64", "uint64"):
        x, y = constant(a), constant(b)
        if name in ("shl", "shr") and y is not None and not 0 <= y < 64:
            raise NotCompilableError(f"a shift by {y}")
        if x is not None and y is not None and name in _KNOWN:
            return known(_KNOWN[name](x, y))
        if name == "and" and 0 in (x, y):
            return word(0)
        return Value(kind, (getattr(builder, _INTEGERS[name])(a.one, b.one),))
    if name not in ("add", "sub", "mul"):
        raise NotCompilableError(f"{name} of {kind}")

    def emit(name: str, x: Any, y: Any) -> Any:
        return getattr(builder, f"f{name}")(x, y, flags=CONTRACT)

    if not is_complex(kind):
        return Value(kind, (emit(name, a.one, b.one),))
    (p, q), (r, s) = a.parts, b.parts
    if name != "mul":
        return Value(kind, (emit(name, p, r), emit(name, q, s)))
    real = emit("sub", emit("mul", p, r), emit("mul", q, s))
    return Value(kind, (real, emit("add", emit("mul", p, s), emit("mul", q, r))))


def divided(builder: Any, a: Value, b: Value) -> Value:
    """Emit ``a / b`` as NumPy computes it: nothing raises.

    Complex numbers by Smith's method (R. L. Smith, Algorithm 116, 1962), without branches so that loops vectorise; for
    zero divisors as in NumPy's loops both parts of ``a`` are divided by +0.
    """
    kind, a, b = _both(builder, a, b)
    if kind in ("int64", "uint64"):
        kind, a, b = "float64", cast(builder, a, "float64"), cast(builder, b, "float64")
    if not is_complex(kind):
        return Value(kind, (builder.fdiv(a.one, b.one, flags=CONTRACT),))
    (top_real, top_imag), (real, imag) = a.parts, b.parts
    part = real.type
    zero, one = part(0.0), part(1.0)
    fabs = builder.module.declare_intrinsic("llvm.fabs", [part])
    real_leads = builder.fcmp_ordered(">=", builder.call(fabs, [real]), builder.call(fabs, [imag]))

    def lead(x: Any, y: Any) -> Any:
        return builder.select(real_leads, x, y)

    def emit(name: str, x: Any, y: Any) -> Any:
        return getattr(builder, name)(x, y, flags=CONTRACT)

    p, q, x, y = lead(real, imag), lead(imag, real), lead(top_real, top_imag), lead(top_imag, top_real)
    by_zero = builder.and_(builder.fcmp_ordered("==", p, zero), builder.fcmp_ordered("==", q, zero))
    ratio = emit("fdiv", q, builder.select(by_zero, one, p))
    # For zero divisors the scale is 1 / +0, whatever their signs, and the parts are not mixed (inf * 0).
    scale = emit("fdiv", one, builder.select(by_zero, zero, emit("fadd", p, emit("fmul", q, ratio))))
    first = builder.select(by_zero, x, emit("fadd", x, emit("fmul", y, ratio)))
    second = builder.select(by_zero, y, emit("fsub", y, emit("fmul", x, ratio)))
    return Value(kind, (emit("fmul", first, scale), emit("fmul", lead(second, builder.fneg(second)), scale)))


def quotient(builder: Any, a: Value, b: Value, divides: bool) -> Value:
    """Emit a division of integers that rounds down, or its remainder."""
    if not all(isinstance(own.kind, type) or own.kind in ("int64", "int32", "bool") for own in (a, b)):
        raise NotCompilableError("// and % of numbers that are no int64")
    number, divisor = constant(a), constant(b)
    if number is not None and divisor:
        return word(number // divisor if divides else number % divisor)
    x, y = (cast(builder, own, "int64").one for own in (a, b))
    if divisor and divisor > 0 and divisor & (divisor - 1) == 0:
        power = x.type(divisor.bit_length() - 1)
        return Value("int64", (builder.ashr(x, power) if divides else builder.and_(x, x.type(divisor - 1)),))
    return Value("int64", (_floor(builder, x, y, divides),))


def _floor(builder: Any, a: Any, b: Any, divides: bool) -> Any:
    """Emit a division that rounds down, or its remainder. By 0 and -1, where the CPU may trap, nothing is divided."""
    kind = a.type
    special = builder.icmp_unsigned("<=", builder.add(b, kind(1)), kind(1))
    divisor = builder.select(special, kind(1), b)
    quotient, rest = builder.sdiv(a, divisor), builder.srem(a, divisor)
    signs_differ = builder.icmp_signed("<", builder.xor(rest, divisor), kind(0))
    down = builder.and_(builder.icmp_signed("!=", rest, kind(0)), signs_differ)
    if divides:
        result = builder.sub(quotient, builder.zext(down, kind))
        return builder.select(special, builder.mul(a, b), result)  # by -1 or by 0
    return builder.select(down, builder.add(rest, divisor), rest)


_COMPARED = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compared(builder: Any, sign: str, a: Value, b: Value) -> Value:
    """Emit a comparison, as a truth value."""
    kind, a, b = _both(builder, a, b, compares=True)
    x, y = constant(a), constant(b)
    if x is not None and y is not None:
        return known(bool(_COMPARED[sign](x, y)))
    if is_complex(kind):
        if sign not in ("==", "!="):
            raise NotCompilableError(f"{sign} of complex numbers")
        join = builder.and_ if sign == "==" else builder.or_
        pairs = zip(parts(a), parts(b), strict=True)
        return Value("bool", (join(*(compared(builder, sign, x, y).one for x, y in pairs)),))
    if is_float(kind):
        emit = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
    else:
        emit = builder.icmp_unsigned if kind == "bool" or kind.startswith("uint") else builder.icmp_signed
    return Value("bool", (emit(sign, a.one, b.one),))

"""Functions of Python, `math` and NumPy that compiled functions call, by the functions themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import arithmetic, cast, compared, divided, truth
from tapegrad.compiler.values import NotCompilableError, Value, constant

__all__ = ["FUNCTIONS", "power"]

_OF_TWO = ("atan2", "pow", "hypot", "fmod", "remainder")  # functions of two numbers
_POWERS = 64  # the largest exponent of a power by products


def _floats(builder: Any, args: tuple[Value, ...]) -> tuple[str, list[Any]]:
    """Return real arguments as numbers of one dtype: float32 if all are, else float64."""
    if any(values.is_complex(own.kind) for own in args):
        raise NotCompilableError("a function of complex numbers")
    kind = "float32" if all(own.kind == "float32" for own in args) else "float64"
    return kind, [cast(builder, own, kind).one for own in args]


def _of_llvm(name: str, count: int = 1) -> Callable[..., Value]:
    """Return a function of so many numbers that LLVM knows as an intrinsic."""

    def emit(builder: Any, *args: Value) -> Value:
        from llvmlite import ir

        if len(args) != count:
            raise NotCompilableError(f"{name} of {len(args)} numbers")
        kind, numbers = _floats(builder, args)
        own = values.type_of(kind)
        function = builder.module.declare_intrinsic(
            f"llvm.{name}", [own], ir.FunctionType(own, [own] * len(args))
        )  # fmt: skip
        return Value(kind, (builder.call(function, numbers),))

    return emit


def _of_libm(name: str, count: int = 1) -> Callable[..., Value]:
    """Return a function of so many numbers of C's library."""

    def emit(builder: Any, *args: Value) -> Value:
        from llvmlite import ir

        if len(args) != count:
            raise NotCompilableError(f"{name} of {len(args)} numbers")
        kind, numbers = _floats(builder, args)
        symbol = name if kind == "float64" else f"{name}f"
        own = values.type_of(kind)
        function = builder.module.globals.get(symbol) or ir.Function(
            builder.module, ir.FunctionType(own, [own] * len(args)), symbol
        )
        function.attributes.add("readnone")
        return Value(kind, (builder.call(function, numbers),))

    return emit


def power(builder: Any, a: Value, b: Value) -> Value:
    """Emit a power whose exponent is a known integer by products, another by libm."""
    exponent, is_whole = constant(b), not (values.is_float(a.kind) or values.is_complex(a.kind))
    if exponent is None or not 0 < abs(exponent) <= _POWERS or (is_whole and exponent < 0):
        if is_whole and not values.is_float(b.kind):
            raise NotCompilableError("an integer to a power that is not known")
        return _of_libm("pow", 2)(builder, a, b)
    found, factor, rest = None, a, abs(exponent)
    while True:
        if rest & 1:
            found = factor if found is None else arithmetic(builder, "mul", found, factor)
        rest >>= 1
        if not rest:
            break
        factor = arithmetic(builder, "mul", factor, factor)
    assert found is not None
    one = values.known_as(1, "float64") if a.kind == "float64" else values.known_as(1, "float32")
    return found if exponent > 0 else divided(builder, one, found)


def _integer(builder: Any, x: Value) -> Value:
    """Emit `int`: nan is 0, and numbers beyond 64 bits the nearest of 64 bits; a plain cast has no value for them."""
    from llvmlite import ir

    if values.is_complex(x.kind):
        raise NotCompilableError("int of a complex number")
    if not values.is_float(x.kind):
        return cast(builder, x, "int64")
    word, kind = values.type_of("int64"), x.one.type
    name = f"llvm.fptosi.sat.i64.{kind.intrinsic_name}"
    function = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(word, [kind]), name)
    return Value("int64", (builder.call(function, [x.one]),))


def _whole(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function whose result is an integer, as those of `math` are."""

    def emit(builder: Any, *args: Value) -> Value:
        return _integer(builder, function(builder, *args))

    return emit


def _absolute(builder: Any, x: Value) -> Value:
    if values.is_complex(x.kind):
        return _of_libm("hypot", 2)(builder, *values.parts(x))
    if values.is_float(x.kind):
        return _of_llvm("fabs")(builder, x)
    if x.kind == "bool" or str(x.kind).startswith("uint"):
        return x
    x = cast(builder, x, "int64")
    negative = compared(builder, "<", x, values.word(0))
    return Value("int64", (builder.select(negative.one, builder.neg(x.one), x.one),))


def _best(sign: str) -> Callable[..., Value]:
    def emit(builder: Any, *args: Value) -> Value:
        if len(args) < 2:
            raise NotCompilableError("the extreme of a sequence")
        kind = values.common([own.kind for own in args])
        best, *others = (cast(builder, own, kind) for own in args)
        for other in others:
            better = compared(builder, sign, other, best)
            best = Value(kind, (builder.select(better.one, other.one, best.one),))
        return best

    return emit


def _as(kind: str) -> Callable[..., Value]:
    def emit(builder: Any, x: Value) -> Value:
        if values.is_complex(x.kind):
            raise NotCompilableError(f"a complex number as {kind}")
        return cast(builder, x, kind)

    return emit


def _complex(builder: Any, real: Value, imag: Value | None = None) -> Value:
    if imag is None:
        return cast(builder, real, "complex64" if real.kind in ("float32", "complex64") else "complex128")
    part, (x, y) = _floats(builder, (real, imag))
    return Value("complex64" if part == "float32" else "complex128", (x, y))


def _conjugate(builder: Any, x: Value) -> Value:
    return Value(x.kind, (x.parts[0], builder.fneg(x.parts[1]))) if values.is_complex(x.kind) else x


def _is_nan(builder: Any, x: Value) -> Value:
    return compared(builder, "!=", x, x)


def _length(builder: Any, x: Value) -> Value:
    return values.word(len(values.elements_of(x)))


def _where(builder: Any, test: Value, x: Value, y: Value) -> Value:
    kind, bit = values.common([x.kind, y.kind]), truth(builder, test)
    pairs = zip(cast(builder, x, kind).parts, cast(builder, y, kind).parts, strict=True)
    return Value(kind, tuple(builder.select(bit, one, other) for one, other in pairs))


def _log(builder: Any, x: Value, base: Value | None = None) -> Value:
    found = _of_libm("log")(builder, x)
    return found if base is None else divided(builder, found, _of_libm("log")(builder, base))


#: Classes of which numbers of one kind only are instances.
_CLASSES = {int, float, complex, bool, *(np.dtype(name).type for name in "?bBhHiIlLfdFD")}


def _is_instance(builder: Any, number: Value, classes: Value) -> Value:
    """Emit whether a number is an instance of a class, or of one of a tuple of classes: its kind says it."""
    options = values.elements_of(classes) if type(classes.kind) is tuple else [classes]
    python = {"int64": int, "float64": float, "complex128": complex, "bool": bool}.get(number.kind)
    own = {python, np.dtype(number.kind).type} if isinstance(number.kind, str) else {number.kind}
    for one in options:
        if not isinstance(one.kind, values.Known) or one.kind.value not in _CLASSES:
            raise NotCompilableError(f"isinstance of {one.kind}")
    return values.known(any(one.kind.value in own for one in options))


#: What emits each function: from a builder and values to a value.
FUNCTIONS: dict[Any, Callable[..., Value]] = {
    abs: _absolute, np.abs: _absolute, np.absolute: _absolute, math.fabs: _of_llvm("fabs"), np.fabs: _of_llvm("fabs"),
    min: _best("<"), max: _best(">"), len: _length, isinstance: _is_instance, np.where: _where,
    int: _integer, float: _as("float64"), bool: _as("bool"), complex: _complex,
    np.conj: _conjugate, np.conjugate: _conjugate,
    np.real: lambda builder, x: values.parts(x)[0], np.imag: lambda builder, x: values.parts(x)[1],
    np.isnan: _is_nan, math.isnan: _is_nan,
    np.sqrt: _of_llvm("sqrt"), math.sqrt: _of_llvm("sqrt"), np.floor: _of_llvm("floor"), np.ceil: _of_llvm("ceil"),
    np.trunc: _of_llvm("trunc"), np.rint: _of_llvm("rint"),
    math.floor: _whole(_of_llvm("floor")), math.ceil: _whole(_of_llvm("ceil")), math.trunc: _whole(_of_llvm("trunc")),
    np.copysign: _of_llvm("copysign", 2), math.copysign: _of_llvm("copysign", 2),
}  # fmt: skip
for _name, _other in {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2",
    "pow": "power", "hypot": "hypot", "fmod": "fmod", "erf": "", "erfc": "", "lgamma": "", "gamma": "",
    "cbrt": "cbrt", "remainder": "",
}.items():  # fmt: skip
    for _function in (getattr(math, _name, None), getattr(np, _other, None) if _other else None):
        if _function is not None:
            FUNCTIONS[_function] = _of_libm({"gamma": "tgamma"}.get(_name, _name), 2 if _name in _OF_TWO else 1)
FUNCTIONS[math.log] = _log

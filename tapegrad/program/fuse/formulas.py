"""Functions of scalar nodes: what `xp` and NumPy's ufuncs are where formulas of the op table run on nodes."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.intrinsics import Intrinsic
from tapegrad.ops.table.op import Op, op_table
from tapegrad.program.fuse import shares
from tapegrad.program.fuse.scalars import WHOLES, Node
from tapegrad.program.machine_code import Refused
from tapegrad.vmath.functions import FORMULAS

__all__ = ["TABLE", "of_op", "of_ufunc", "rebound", "where"]

Formula = Callable[..., Any]


def _floating(function: Callable[..., Node]) -> Callable[..., Node]:
    """Return a function that converts integers to float64 first, and all arguments to one dtype."""

    def converted(*args: Any) -> Node:
        graph = next(arg.graph for arg in args if isinstance(arg, Node))
        kinds = [arg.dtype for arg in args if isinstance(arg, Node)]
        dtype = np.result_type(*kinds).char
        dtype = dtype if dtype in "df" else "d"
        nodes = [graph.cast(arg, dtype) if isinstance(arg, Node) else graph.const(arg, dtype) for arg in args]
        return function(graph, *nodes)

    return converted


def _vmath(name: str) -> Callable[..., Node]:
    return _floating(lambda graph, *args: graph.call(name, *args))


def _libm(name: str) -> Callable[..., Node]:
    return _floating(lambda graph, *args: graph.libm(name, *args))


def _unary(kind: str) -> Callable[..., Node]:
    return lambda x: x.graph.unary(kind, x)


def _binary(kind: str) -> Callable[..., Node]:
    def function(x: Any, y: Any) -> Node:
        graph = (x if isinstance(x, Node) else y).graph
        x = x if isinstance(x, Node) else graph.number_like(x, y)
        y = y if isinstance(y, Node) else graph.number_like(y, x)
        return graph.binary(kind, x, y)

    return function


def _extreme(kind: str) -> Callable[..., Node]:
    def function(x: Any, y: Any) -> Node:
        graph = (x if isinstance(x, Node) else y).graph
        x = x if isinstance(x, Node) else graph.number_like(x, y)
        y = y if isinstance(y, Node) else graph.number_like(y, x)
        return graph.maximum(kind, x, y)

    return function


def _other_extreme(kind: str) -> Callable[..., Node]:
    """Return fmax or fmin: of a number and nan it is the number."""
    return lambda x, y: where(x != x, y, where(y != y, x, _extreme(kind)(x, y)))


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where a condition is true, else y."""
    if not isinstance(condition, Node):
        return x if condition else y
    graph = condition.graph
    if not isinstance(x, Node):
        x = graph.number_like(x, y) if isinstance(y, Node) else graph.const(x, "d" if isinstance(x, float) else "l")
    if not isinstance(y, Node):
        y = graph.number_like(y, x)
    return graph.select(condition, x, y)


def power(x: Any, y: Any) -> Any:
    """Return x**y; some exponents as the eager power computes them, small whole ones by products."""
    if not isinstance(x, Node):
        x = y.graph.number_like(x, y)
    graph = x.graph
    exponent = y.attr if isinstance(y, Node) and y.kind == "const" else None if isinstance(y, Node) else y
    if exponent is not None and (x.dtype in "df" or exponent in (1, 2, 3, 4)):
        if exponent == 1:
            return x
        if exponent == 2:
            return x * x
        if exponent == 3:
            return x * x * x
        if exponent == 4:
            return (x * x) * (x * x)
        if exponent == 0.5:
            return graph.unary("sqrt", x)
        if exponent == 0:
            return graph.const(1, x.dtype)
        if exponent == -1:
            return 1 / x
    if x.dtype not in "df":
        raise Refused("it is a power of integers")
    return _vmath("pow")(x, y)


def _sign(x: Node) -> Node:
    zero, one, minus_one = (x.graph.const(number, x.dtype) for number in (0, 1, -1))
    sign: Node = where(x > zero, one, where(x < zero, minus_one, where(x == zero, zero, x)))
    return sign


def _truth(x: Node) -> Node:
    return x if x.dtype == "?" else x != 0


def _logical(kind: str) -> Callable[..., Node]:
    return lambda x, y: x.graph.binary(kind, _truth(x), _truth(y))


def _same(x: Any, *others: Any) -> Any:
    return x


def _divided(of_floats: Callable[..., Any], of_whole: Callable[..., Any]) -> Callable[..., Any]:
    """Return a division of floating numbers, or of integers: by their quotient towards 0 and the rest of that."""

    def function(x: Any, y: Any) -> Any:
        graph = (x if isinstance(x, Node) else y).graph
        x = x if isinstance(x, Node) else graph.number_like(x, y)
        y = y if isinstance(y, Node) else graph.number_like(y, x)
        if x.dtype not in WHOLES or y.dtype != x.dtype:
            return _floating(lambda graph, x, y: of_floats(x, y))(x, y)
        # The CPU stops a program that divides by 0, or the least number by -1.
        opposite, y = y == -1, where(y == 0, 1, y)
        divisor = where(opposite, 1, y)
        quotient, rest = (graph.node(kind, (graph.solid(x), graph.solid(divisor)), None, x.dtype)
                          for kind in ("quotient", "rest"))  # fmt: skip
        return of_whole(where(opposite, -x, quotient), rest, y)

    return function


def _is_apart(rest: Node, y: Node) -> Node:
    """Return whether a rest is not 0, and has another sign than the divisor."""
    return (rest != 0) & ((rest < 0) != (y < 0))


def _floor_divide(x: Any, y: Any) -> Any:
    """Return the floor of a quotient, as Python has it: by the exact rest, which is finite, if y is not."""
    rest = TABLE["fmod"](x, y)
    quotient = TABLE["rint"]((x - rest) / y)
    quotient = where(_is_apart(rest, y), quotient - 1.0, quotient)
    quotient = where(quotient == 0, TABLE["copysign"](quotient, x / y), quotient)
    return where(y == 0, x / y, quotient)


def _remainder(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of the divisor."""
    rest = TABLE["fmod"](x, y)
    rest = where(_is_apart(rest, y), rest + y, rest)
    return where(rest == 0, TABLE["copysign"](abs(rest), y), rest)


def _is_finite(x: Node) -> Node:
    return abs(x) < np.inf if x.dtype in "df" else x.graph.const(True, "?")


def _logaddexp(x: Any, y: Any) -> Any:
    """Return the logarithm of a sum of exponentials, as NumPy computes it."""
    difference = x - y
    return where(
        x == y, x + np.log(2.0),
        where(difference > 0, x + TABLE["log1p"](TABLE["exp"](-difference)),
              where(difference <= 0, y + TABLE["log1p"](TABLE["exp"](difference)), difference)),
    )  # fmt: skip


# By the names of ufuncs, and of functions of `vmath`.
TABLE: Final[dict[str, Callable[..., Any]]] = {
    **{name: _vmath(name) for name in FORMULAS if not name.startswith("_")}, "exp": _floating(shares.exp),
    "add": _binary("add"), "subtract": _binary("sub"), "multiply": _binary("mul"),
    "divide": _floating(lambda graph, x, y: graph.binary("div", x, y)),
    "true_divide": _floating(lambda graph, x, y: graph.binary("div", x, y)),
    "less": _binary("lt"), "less_equal": _binary("le"), "greater": _binary("gt"), "greater_equal": _binary("ge"),
    "equal": _binary("eq"), "not_equal": _binary("ne"), "bitwise_and": _binary("and"), "bitwise_or": _binary("or"),
    "bitwise_xor": _binary("xor"), "logical_and": _logical("and"), "logical_or": _logical("or"),
    "logical_xor": _logical("xor"), "logical_not": lambda x: ~_truth(x), "invert": lambda x: ~x,
    "negative": lambda x: -x, "positive": _same, "absolute": abs, "fabs": abs, "abs": abs,
    "square": lambda x: x * x, "reciprocal": lambda x: 1 / x, "power": power, "pow": power, "float_power": power,
    "sqrt": _floating(lambda graph, x: graph.unary("sqrt", x)),
    "floor": _unary("floor"), "ceil": _unary("ceil"), "trunc": _unary("trunc"), "rint": _unary("rint"),
    "maximum": _extreme("max"), "minimum": _extreme("min"),
    "fmax": _other_extreme("max"), "fmin": _other_extreme("min"),
    "copysign": _floating(lambda graph, x, y: graph.node("copysign", (graph.solid(x), graph.solid(y)), None, x.dtype)),
    "sign": _sign, "sgn": _sign, "where": where, "isnan": lambda x: x != x, "isfinite": _is_finite,
    "isinf": lambda x: abs(x) == np.inf if x.dtype in "df" else x.graph.const(False, "?"),
    "conj": _same, "conjugate": _same, "real": _same, "alike": _same, "flat_by": lambda ct, x: ct,
    "logaddexp": _logaddexp,
    "sigmoid": _vmath("sigmoid"), "tan": _vmath("tan"), "root": _floating(lambda graph, x: graph.unary("sqrt", x)),
    "signbit": lambda x: x.graph.node("copysign", (x.graph.const(1, x.dtype), x.graph.solid(x)), None, x.dtype) < 0,
    "frac": lambda x: x - TABLE["trunc"](x), "round": _unary("rint"), "isreal": lambda x: x.graph.const(True, "?"),
    "isposinf": lambda x: x == np.inf, "isneginf": lambda x: x == -np.inf,
    "remainder": _divided(_remainder, lambda quotient, rest, y: where(_is_apart(rest, y), rest + y, rest)),
    "floor_divide": _divided(
        _floor_divide, lambda quotient, rest, y: where(_is_apart(rest, y), quotient - 1, quotient)
    ),
    "heaviside": lambda x, y: where(x != x, x, where(x == 0, y, x.graph.cast(x > 0, x.dtype))),
    "trunc_divide": _divided(lambda x, y: x.graph.unary("trunc", x / y), lambda quotient, rest, y: quotient),
    "fmod": _divided(_vmath("fmod"), lambda quotient, rest, y: rest),
    "ndtr": lambda x: 0.5 * TABLE["erfc"](x * -0.7071067811865476),
    **{name: _vmath(other) for name, other in {
        "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
        "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    }.items()},
    "gamma": _libm("tgamma"),
}  # fmt: skip


class _Xp:
    """What `xp` is: functions of nodes by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return of_name(name)


_XP: Final = _Xp()


@functools.cache
def of_name(name: str) -> Callable[..., Any]:
    """Return a function of nodes: of the table, or the formula of the op of this name."""
    if name in TABLE:
        return TABLE[name]
    try:
        op = op_table[name]
    except KeyError:
        op = None
    formula = None if op is None else op.formula
    if formula is None or getattr(formula, "__name__", "") == name or vars(vmath).get(name) is formula:
        raise Refused(f"{name.strip('_') or 'it'} has no formula")  # or one that is found by this name
    return of_nodes(formula)


def of_op(op: Op) -> Callable[..., Any]:
    """Return what an elementwise op computes, on nodes."""
    if op.name in TABLE:
        return TABLE[op.name]
    if op.formula is None:
        raise Refused("it has no formula")
    return of_nodes(op.formula)


def of_ufunc(ufunc: Any) -> Callable[..., Any]:
    """Return what a ufunc computes, on nodes."""
    return of_name(ufunc.__name__)


@functools.cache
def of_nodes(formula: Formula) -> Callable[..., Any]:
    """Return a formula of the op table as a function of nodes."""
    if isinstance(formula, (np.ufunc, Intrinsic)) or formula in vars(vmath).values():
        name = next((name for name, own in vars(vmath).items() if own is formula), None)
        return of_name(name or (formula.__name__ if isinstance(formula, np.ufunc) else ""))
    name = getattr(formula, "__name__", "")
    if isinstance(formula, types.FunctionType):
        return rebound(formula, {"xp": _XP})
    raise Refused(f"{name.strip('_') or 'it'} has no formula")


def rebound(function: types.FunctionType, names: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that reads other globals, as do the functions of the library that it calls."""
    made: dict[int, types.FunctionType] = {}

    def again(own: types.FunctionType) -> types.FunctionType:
        if id(own) in made:
            return made[id(own)]
        scope: dict[str, Any] = dict(own.__globals__)
        twin = types.FunctionType(own.__code__, scope, own.__name__, own.__defaults__, own.__closure__)
        twin.__kwdefaults__ = own.__kwdefaults__
        made[id(own)] = twin
        for name in _names(own.__code__):
            value = own.__globals__.get(name)
            if isinstance(value, Intrinsic):
                scope[name] = of_nodes(value)
            elif isinstance(value, types.FunctionType) and value.__module__.startswith("tapegrad."):
                scope[name] = again(value)
        scope.update(names)
        return twin

    return again(function)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names

"""A second implementation, to be compared with: a tape of plain Python on NumPy, sharing nothing with tapegrad.

Everything is made of elementwise functions and of two linear maps, each the adjoint of the other: `gather`, which takes
elements at places, and `scatter`, which adds elements up at places. Cotangents are variables too, so that derivatives
of any order come from running it on itself. It knows real numbers only, in double precision.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_count = itertools.count()


class Var:
    """A value, and what it was computed from: pairs of an operand and of the map from our cotangent to its."""

    def __init__(self, value: Any, pulls: Sequence[tuple[Var, Callable[[Var], Var]]] = ()) -> None:
        value = np.asarray(value)
        self.value = value.astype(float) if value.dtype.kind == "f" else value
        self.pulls = [(operand, pull) for operand, pull in pulls if operand.active]
        self.active = bool(self.pulls)
        self.number = next(_count)

    shape = property(lambda self: self.value.shape)

    def __add__(self, other: Any) -> Var:
        return elementwise("add", self, other)

    def __mul__(self, other: Any) -> Var:
        return elementwise("mul", self, other)

    def __pow__(self, other: Any) -> Var:
        return elementwise("pow", self, other)

    __radd__, __rmul__ = __add__, __mul__


def grad(output: Var, ct: Any, inputs: Sequence[Var]) -> list[Var]:
    """Return the cotangents of inputs, as variables."""
    cts = {output.number: ct if isinstance(ct, Var) else Var(ct)}
    found = {own.number: Var(np.zeros(own.shape)) for own in inputs}
    pending = {output.number: output}
    while pending:
        own = pending.pop(max(pending))
        ct = cts.pop(own.number)
        if own.number in found:
            found[own.number] = ct
        for operand, pull in own.pulls:
            value = pull(ct)
            cts[operand.number] = cts[operand.number] + value if operand.number in cts else value
            pending[operand.number] = operand
    return [found[own.number] for own in inputs]


def variable(value: Any) -> Var:
    """Return an input of a computation."""
    own = Var(value)
    own.active = True
    return own


# The three primitives --------------------------------------------------------------------------------------------

# Name to function and derivative with respect to each operand.
FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "add": (np.add, lambda x, y: 1, lambda x, y: 1),
    "mul": (np.multiply, lambda x, y: y, lambda x, y: x),
    # Of its own: x (1/y) is less than 1 for some x = y, and a program may ask whether it is.
    "div": (np.true_divide, lambda x, y: y**-1.0, lambda x, y: x * y**-2.0 * -1),
    "pow": (np.power, lambda x, y: y * x ** (y + -1), lambda x, y: x**y * elementwise("log", x)),
    "exp": (np.exp, lambda x: elementwise("exp", x)),
    "log": (np.log, lambda x: x**-1.0),
    "sin": (np.sin, lambda x: elementwise("cos", x)),
    "cos": (np.cos, lambda x: -1 * elementwise("sin", x)),
    "sinh": (np.sinh, lambda x: elementwise("cosh", x)),
    "cosh": (np.cosh, lambda x: elementwise("sinh", x)),
    "tanh": (np.tanh, lambda x: elementwise("cosh", x) ** -2.0),
}


def elementwise(name: str, *operands: Any) -> Var:
    given = [own if isinstance(own, Var) else Var(own) for own in operands]
    shape = np.broadcast_shapes(*(own.shape for own in given))
    spread = [own if own.shape == shape else expand(own, shape) for own in given]
    function, *derivatives = FUNCTIONS[name]
    pulls = [(own, lambda ct, d=d: ct * d(*spread)) for own, d in zip(spread, derivatives, strict=True)]
    return Var(function(*(own.value.astype(float) for own in spread)), pulls)


def gather(x: Var, places: np.ndarray) -> Var:
    return Var(x.value.ravel()[places], [(x, lambda ct: scatter(ct, places, x.shape))])


def scatter(x: Var, places: np.ndarray, shape: tuple[int, ...]) -> Var:
    out = np.bincount(places.ravel(), x.value.ravel(), int(np.prod(shape)))[: int(np.prod(shape))]
    return Var(out.reshape(shape), [(x, lambda ct: gather(ct, places))])


# What programs are made of ---------------------------------------------------------------------------------------


def places_of(x: Var) -> np.ndarray:
    return np.arange(x.value.size).reshape(x.shape)


def moved(move: Callable[..., np.ndarray]) -> Callable[..., Var]:
    """Return the function that moves elements as NumPy moves the numbers of their places."""
    return lambda x, *args, **attrs: gather(x, np.asarray(move(places_of(x), *args, **attrs)))


expand = moved(lambda i, size: i + np.zeros([1 if length == -1 else length for length in size], int))
reshape = moved(lambda i, shape: i.reshape(shape))


def total(x: Var, dim: Any = None, keepdim: bool = False) -> Var:
    dims = range(x.value.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = {own % max(x.value.ndim, 1) for own in dims}
    kept = [1 if place in dims else length for place, length in enumerate(x.shape)]
    summed = scatter(x, np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), x.shape), tuple(kept))
    return summed if keepdim else reshape(summed, [n for place, n in enumerate(x.shape) if place not in dims])


def mean(x: Var, dim: Any = None, keepdim: bool = False) -> Var:
    summed = total(x, dim, keepdim)
    return summed * (summed.value.size / x.value.size)


def extremum(sign: int) -> Callable[..., Var]:
    def call(x: Var, dim: Any = None, keepdim: bool = False) -> Var:
        axis = tuple(dim) if isinstance(dim, tuple) else dim
        largest = (sign * x.value).max(axis=axis if x.value.ndim else None, keepdims=True)
        chosen = (sign * x.value == largest) * 1.0
        return total(x * (chosen / chosen.sum(axis=axis if x.value.ndim else None, keepdims=True)), dim, keepdim)

    return call


def select(condition: np.ndarray, x: Any, y: Any) -> Var:
    return elementwise("mul", x, condition * 1.0) + elementwise("mul", y, ~condition * 1.0)


def larger(x: Any, y: Any, sign: int = 1) -> Var:
    a, b = sign * value_of(x), sign * value_of(y)
    return select(a > b, x, y) * (a != b) + (x * 0.5 + y * 0.5) * (a == b) if np.any(a == b) else select(a > b, x, y)


def clamp(x: Any, low: Any, high: Any) -> Var:
    a, b, c = map(value_of, (x, low, high))
    return select((a >= b) & (a <= c), x, select((a < b) & (b <= c), low, high))


def value_of(x: Any) -> np.ndarray:
    return x.value if isinstance(x, Var) else np.asarray(x)


def join(together: Callable[..., np.ndarray]) -> Callable[..., Var]:
    def call(parts: Sequence[Var], dim: int = 0) -> Var:
        ends = np.cumsum([0, *(own.value.size for own in parts)])
        joined = together([places_of(own) + end for own, end in zip(parts, ends[:-1], strict=True)], axis=dim)
        places = np.argsort(joined, axis=None)
        return sum(
            (scatter(own, places[end : end + own.value.size].reshape(own.shape), joined.shape)
             for own, end in zip(parts, ends[:-1], strict=True)), Var(np.zeros(joined.shape)))  # fmt: skip

    return call


def matmul(x: Var, y: Var) -> Var:
    left = reshape(x, (*x.shape[:-1], 1, x.shape[-1]) if x.value.ndim > 1 else (1, 1, -1))  # (..., n, 1, k)
    right = moved(lambda i: np.swapaxes(i, -1, -2)[..., None, :, :])(y) if y.value.ndim > 1 else reshape(y, (1, 1, -1))
    return reshape(total(left * right, -1), np.matmul(x.value, y.value).shape)  # (..., n, m)


def data(function: Callable[..., Any]) -> Callable[..., Var]:
    """Return a function without derivative."""
    return lambda *operands, **attrs: Var(function(*map(value_of, operands), **attrs))


OPS: dict[str, Callable[..., Var]] = {
    **{name: lambda *operands, name=name: elementwise(name, *operands) for name in FUNCTIONS},
    "sub": lambda x, y: x + elementwise("mul", y, -1), "neg": lambda x: x * -1, "cast": lambda x, dtype: x,
    "sqrt": lambda x: x**0.5,
    "sigmoid": lambda x: 0.5 * elementwise("tanh", x * 0.5) + 0.5, "sign": lambda x: x * 0 + np.sign(x.value),
    "abs": lambda x: x * np.sign(x.value), "relu": lambda x: x * (x.value > 0), "conj": lambda x: x,
    "maximum": larger, "minimum": lambda x, y: larger(x, y, -1), "clamp": clamp,
    "where": lambda condition, x, y: select(value_of(condition) != 0, x, y),
    "sum": total, "mean": mean, "amax": extremum(1), "amin": extremum(-1), "matmul": matmul,
    "reshape": reshape, "expand": expand, "permute": moved(lambda i, dims: i.transpose(dims)),
    "flip": moved(lambda i, dims: np.flip(i, dims if i.ndim else ())), "clone": moved(lambda i: i),
    "getitem": moved(lambda i, key: i[key]), "index_gather": moved(lambda i, key: i[key]),
    "cat": join(np.concatenate), "stack": join(np.stack),
    "eq": data(np.equal), "ne": data(np.not_equal), "lt": data(np.less), "le": data(np.less_equal),
    "gt": data(np.greater), "ge": data(np.greater_equal), "logical_and": data(np.logical_and),
    "logical_or": data(np.logical_or), "logical_not": data(np.logical_not),
}  # fmt: skip

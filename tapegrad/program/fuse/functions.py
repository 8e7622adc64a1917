"""NumPy's functions on arrays of nodes: those that forwards of the op table call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.formulas import TABLE, of_ufunc, where
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.space import Space
from tapegrad.program.machine_code import Refused

__all__ = ["function", "ufunc"]

_MOVES: Final = frozenset((
    "reshape", "ravel", "transpose", "permute_dims", "moveaxis", "swapaxes", "squeeze", "expand_dims", "broadcast_to",
    "concatenate", "stack", "flip", "roll", "rot90", "diagonal", "diag", "tril", "triu", "repeat", "tile", "take",
    "take_along_axis", "copy", "atleast_1d", "atleast_2d", "matrix_transpose", "pad", "flipud", "fliplr",
    "ascontiguousarray", "asarray", "array", "hstack", "vstack",
))  # fmt: skip
#: How many multiplications a product of matrices may be made of.
PRODUCTS: Final = 20000


def ufunc(space: Space, own: np.ufunc, method: str, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Serve a call of a ufunc, or of its ``reduce``."""
    where = options.pop("where", True)
    if options.pop("out", None) is not None or where is not True:
        raise Refused(f"it calls numpy.{own.__name__} with out or where")
    if method == "reduce":
        return reduced(space, own, *operands, **options)
    if method != "__call__" or own.nout != 1:
        raise Refused(f"it calls numpy.{own.__name__}" + (f".{method}" if method != "__call__" else ""))
    if own is np.matmul:
        return matmul(space, *map(space.array, operands))
    if own.signature is not None:
        raise Refused(f"it calls numpy.{own.__name__}")
    kinds = [x.dtype if isinstance(x, (Array, np.ndarray, np.generic)) else type(x) for x in operands]
    return space.map(*_converted(space, own, operands, kinds, options.get("dtype")))


def _converted(space: Space, own: np.ufunc, operands: Sequence[Any], kinds: list[Any], dtype: Any) -> Any:
    """Return the function of nodes, the operands in the dtype that NumPy computes in, and the dtype of the result."""
    try:
        resolved = own.resolve_dtypes((*kinds, dtype and np.dtype(dtype)))
    except TypeError:
        common = np.result_type(*[kind for kind in kinds if isinstance(kind, np.dtype)])
        resolved = (*[common] * len(kinds), common)
    arrays = [space.array(x).astype(kind) for x, kind in zip(operands, resolved[:-1], strict=True)]
    return of_ufunc(own), arrays, resolved[-1]


_IDENTITIES: Final = {
    "add": 0,
    "multiply": 1,
    "logical_and": True,
    "logical_or": False,
    "maximum": None,
    "minimum": None,
}
_REDUCTIONS: Final = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
                      "logical_and": "min", "logical_or": "max"}  # fmt: skip


def reduced(
    space: Space, own: np.ufunc, x: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None
) -> Array:
    """Reduce dimensions: those that are axes by a node, others one element after the other as NumPy does."""
    x = space.array(x)
    if own.__name__ not in _IDENTITIES:
        raise Refused(f"it calls numpy.{own.__name__}.reduce")
    if own.__name__.startswith("logical"):
        x = space.map(lambda node: node if node.dtype == "?" else node != 0, [x], bool)
    elif dtype is not None:
        x = x.astype(dtype)
    elif x.dtype.kind == "b" and own is np.add:
        x = x.astype(np.int64)
    dims = tuple(range(x.ndim)) if axis is None else tuple(k % x.ndim for k in np.atleast_1d(axis)) if x.ndim else ()
    rest = [k for k in range(x.ndim) if k not in dims]
    lines = np.transpose(x.nodes, [*rest, *dims])
    lines = lines.reshape(math.prod(lines.shape[: len(rest)]), math.prod(lines.shape[len(rest) :]))
    kind, char = _REDUCTIONS[own.__name__], space.char(x.dtype)
    combine, longs = of_ufunc(own), [(x.axes[k], x.shape[k]) for k in dims if x.axes[k] is not None]
    empty = space.graph.const(_identity(own, initial), char) if 0 in lines.shape else None
    nodes = []
    for line in lines:
        node = empty if empty is not None else summed(combine, line.tolist())
        for number, length in longs:
            if kind == "sum" and number not in node.axes and node.kind != "zero":
                node = node * length
            else:
                node = space.graph.reduce(kind, node, number, 0, length)
        if initial is not None and not (kind in ("max", "min") and math.isinf(initial)) and empty is None:
            node = combine(space.graph.const(initial, char), node)
        nodes.append(node)
    shape = tuple(1 if k in dims else length for k, length in enumerate(x.shape))
    axes = tuple(None if k in dims else number for k, number in enumerate(x.axes))
    if not keepdims:
        shape, axes = tuple(shape[k] for k in rest), tuple(axes[k] for k in rest)
    made = np.empty(space.held(shape, axes), object)
    made.reshape(-1)[:] = nodes
    return Array(space, made, shape, axes, x.dtype)


def _identity(own: np.ufunc, initial: Any) -> Any:
    value = _IDENTITIES[own.__name__] if initial is None else initial
    if value is None:
        raise Refused("it has no elements to find the largest of")
    return value


def summed(combine: Callable[..., Node], line: list[Node]) -> Node:
    """Reduce a list in the order of NumPy's sums: eight chains, from eight elements on."""
    line = [node for node in line if node.kind != "zero"] or line[:1]
    if len(line) < 8:
        return reduce(combine, line)
    chains, whole = line[:8], len(line) - len(line) % 8
    for at in range(8, whole, 8):
        chains = [combine(x, y) for x, y in zip(chains, line[at : at + 8], strict=True)]
    while len(chains) > 1:
        chains = [combine(x, y) for x, y in zip(chains[::2], chains[1::2], strict=True)]
    return reduce(combine, line[whole:], chains[0])


def matmul(space: Space, x: Array, y: Array) -> Array:
    """Multiply matrices, with one rounding for a product and its addition."""
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = x.astype(dtype), y.astype(dtype)
    vectors = x.ndim == 1, y.ndim == 1
    x = x[None, :] if vectors[0] else x
    y = y[:, None] if vectors[1] else y
    inner = x.shape[-1]
    left = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    whole = (*left, x.shape[-2], inner, y.shape[-1])
    # (..., n, k, 1) and (..., 1, k, m)
    (x, y), axes = space.aligned([_with_dimension(x, x.ndim), _with_dimension(y, y.ndim - 2)], whole)
    held = space.held(whole, axes)
    if math.prod(held) > PRODUCTS:
        raise Refused(f"{math.prod(held)} multiplications are too many for straight code")
    count = math.prod(held[:-2]) * held[-1]
    a, b = (np.moveaxis(np.broadcast_to(own.nodes, held), -2, -1).reshape(count, held[-2]) for own in (x, y))
    char = space.char(dtype)
    nodes = [_dot(space, one, two, axes[-2], inner, char) for one, two in zip(a.tolist(), b.tolist(), strict=True)]
    shape, axes = (*left, whole[-3], whole[-1]), (*axes[:-2], axes[-1])
    made = np.empty(space.held(shape, axes), object)
    made.reshape(-1)[:] = nodes
    result = Array(space, made, shape, axes, dtype)
    key: list[Any] = [0 if vectors[0] else slice(None), 0 if vectors[1] else slice(None)]
    return result[(..., *key)] if any(vectors) else result


def _with_dimension(x: Array, at: int) -> Array:
    """Return an array with another dimension of length 1."""
    shape, axes = (*x.shape[:at], 1, *x.shape[at:]), (*x.axes[:at], None, *x.axes[at:])
    return Array(x.space, np.expand_dims(x.nodes, at), shape, axes, x.dtype)


def _dot(space: Space, x: list[Node], y: list[Node], axis: int | None, length: int, char: str) -> Node:
    graph = space.graph
    if axis is not None:
        product = x[0] * y[0]
        return graph.reduce("sum", product, axis, 0, length) if axis in product.axes else product * length
    total = graph.zero(char) if x else graph.const(0, char)
    for one, two in zip(x, y, strict=True):
        total = fma(one, two, total)
    return total


def fma(x: Node, y: Node, z: Node) -> Node:
    """Return x * y + z, rounded once."""
    graph = x.graph
    if "zero" in (x.kind, y.kind):
        return z
    if z.kind == "zero":
        return x * y
    if x.dtype not in "df" or any(own.kind == "const" and abs(own.attr) == 1 for own in (x, y)):
        return x * y + z
    return graph.node("fma", (x, y, z), None, x.dtype)


def function(space: Space, own: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Serve a call of one of NumPy's functions that are no ufuncs."""
    name = own.__name__
    served = SERVED.get(name)
    if served is not None:
        return served(space, *args, **options)
    if name in _MOVES:
        return _moved(space, own, args, options)
    raise Refused(f"it calls {own.__module__}.{name}")


def _moved(space: Space, own: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Array:
    """Call a function that moves elements on positions in the place of its arrays."""
    arrays: list[Array] = []

    def gather(value: Any) -> None:
        if isinstance(value, Array):
            arrays.append(value)
        elif isinstance(value, (list, tuple)):
            for each in value:
                gather(each)

    def put(value: Any, given: Any) -> Any:
        if isinstance(value, Array):
            return next(given)
        if isinstance(value, (list, tuple)):
            return type(value)([put(each, given) for each in value])
        return value

    gather(args)

    def call(*positions: np.ndarray) -> Any:
        given = iter(positions)
        return own(*[put(value, given) for value in args], **options)

    return space.moved(call, arrays)


def _where(space: Space, condition: Any, x: Any, y: Any) -> Array:
    kinds = [own.dtype if isinstance(own, (Array, np.ndarray, np.generic)) else own for own in (x, y)]
    dtype = np.result_type(*kinds)
    x, y = space.array(x).astype(dtype), space.array(y).astype(dtype)
    return space.map(TABLE["where"], [condition, x, y], dtype)


def _reduction(ufunc: np.ufunc) -> Callable[..., Array]:
    def call(space: Space, x: Any, axis: Any = None, **options: Any) -> Array:
        options.pop("out", None)
        return reduced(space, ufunc, x, axis, **options)

    return call


def _mean(space: Space, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    x = space.array(x)
    total = reduced(space, np.add, x, axis, dtype or (None if x.dtype.kind == "f" else np.float64), keepdims)
    count = x.size // total.size if total.size else 0
    return total / float(count) if count else total * np.nan


def _like(value: Any) -> Callable[..., Array]:
    def call(space: Space, x: Array, dtype: Any = None, **options: Any) -> Array:
        own = space.graph.const(value, space.char(dtype or x.dtype))
        return x.like([own] * x.nodes.size, dtype or x.dtype)

    return call


def _nan_to_num(space: Space, x: Any, copy: bool, nan: float, posinf: float | None, neginf: float | None) -> Array:
    x = space.array(x)
    ends = np.finfo(x.dtype)
    high, low = (float(end) if own is None else own for own, end in ((posinf, ends.max), (neginf, ends.min)))

    def of_one(value: Node) -> Any:
        return where(value != value, nan, where(value == np.inf, high, where(value == -np.inf, low, value)))

    return space.map(of_one, [x], x.dtype)


def _round(space: Space, x: Any, decimals: int) -> Array:
    scaled = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    before, after = (TABLE[name] for name in scaled)
    factor = 10.0 ** abs(decimals)

    def of_one(value: Node) -> Any:
        return after(TABLE["rint"](before(value, factor)), factor) if decimals else TABLE["rint"](value)

    x = space.array(x)
    space.char(x.dtype)
    return space.map(of_one, [x], x.dtype)


SERVED: Final[dict[str, Callable[..., Any]]] = {
    "sum": _reduction(np.add), "prod": _reduction(np.multiply), "max": _reduction(np.maximum),
    "amax": _reduction(np.maximum), "min": _reduction(np.minimum), "amin": _reduction(np.minimum),
    "nan_to_num": _nan_to_num, "round": _round,
    "all": _reduction(np.logical_and), "any": _reduction(np.logical_or), "mean": _mean, "where": _where,
    "shape": lambda space, x: x.shape, "ndim": lambda space, x: x.ndim, "size": lambda space, x: x.size,
    "result_type": lambda space, *kinds: np.result_type(
        *[own.dtype if isinstance(own, Array) else own for own in kinds]
    ),
    "iscomplexobj": lambda space, x: False, "conjugate": lambda space, x: x, "real": lambda space, x: x,
    "zeros_like": _like(0), "ones_like": _like(1), "empty_like": _like(0),
    "dot": lambda space, x, y: matmul(space, space.array(x), space.array(y)),
}  # fmt: skip

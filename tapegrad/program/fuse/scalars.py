"""Scalars: one node for each number that fused code computes.

A node may depend on *axes*: variables that run over the elements of long dimensions. So one node stands for all
elements of a vector, and its loads say by which strides they follow the axes.

`ZERO` nodes are absent terms: elements of a cotangent that no part was added to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from tapegrad.program.machine_code import Refused

__all__ = ["COMMUTATIVE", "FLOATS", "NUMPY", "PREDICATES", "Node"]

FLOATS: Final = "df"
WHOLES: Final = "li"  # int64, int32
#: Kinds of nodes whose result is a truth value, whatever they take.
PREDICATES: Final = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
COMMUTATIVE: Final = frozenset(("add", "mul", "eq", "ne", "and", "or", "xor"))

#: What kinds of nodes do with numbers.
NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "abs": np.absolute, "sqrt": np.sqrt, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
}  # fmt: skip


class Maker(Protocol):
    """What nodes ask of their graph."""

    def binary(self, kind: str, x: Node, y: Node) -> Node: ...
    def unary(self, kind: str, x: Node) -> Node: ...
    def neg(self, x: Node) -> Node: ...
    def number_like(self, value: Any, other: Node) -> Node: ...
    def const(self, value: Any, dtype: str) -> Node: ...
    def cast(self, x: Node, dtype: str) -> Node: ...
    def solid(self, x: Node) -> Node: ...
    def select(self, condition: Node, x: Node, y: Node) -> Node: ...
    def maximum(self, kind: str, x: Node, y: Node) -> Node: ...
    def node(
        self, kind: str, args: tuple[Node, ...], attr: Any, dtype: str, axes: frozenset[int] | None = None
    ) -> Node: ...


class Node:
    """One scalar.

    Attributes
    ----------
    graph : Graph
    number : int
        Nodes stand behind their arguments.
    kind : str
        ``const``, ``load``, ``add``, ..., ``call`` (of a function of `tapegrad.vmath`), ``libm``, ``place``, ``red``.
    args : tuple of Node
    attr : object
        The value of a constant; base, offset and strides of a load; the function's name; the axis and range of a
        reduction, or of a place.
    dtype : str
        NumPy's character.
    axes : frozenset of int
    depth : int
        How many reductions stand one above the other below this node.
    """

    __slots__ = ("args", "attr", "axes", "depth", "dtype", "graph", "kind", "number")

    def __init__(
        self, graph: Maker, number: int, kind: str, args: tuple[Node, ...], attr: Any, dtype: str, axes: frozenset[int]
    ) -> None:
        self.graph, self.number, self.kind, self.args = graph, number, kind, args
        self.attr, self.dtype, self.axes = attr, dtype, axes
        self.depth: int = 0
        for arg in args:
            if arg.depth > self.depth:
                self.depth = arg.depth
        if kind == "red":
            self.depth += 1

    def __repr__(self) -> str:
        return f"{self.kind}{self.number}"

    def __bool__(self) -> bool:
        if self.kind == "const":
            return bool(self.attr)
        raise Refused("its formula looks at a value")

    def _with(self, kind: str, other: Any, swap: bool = False) -> Node:
        if not isinstance(other, Node):
            if not isinstance(other, (bool, int, float, np.generic)):
                return NotImplemented  # type: ignore[no-any-return]
            other = self.graph.number_like(other, self)
        pair = (other, self) if swap else (self, other)
        return self.graph.binary(kind, *pair)

    def __add__(self, other: Any) -> Node:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Node:
        return self._with("add", other, True)

    def __sub__(self, other: Any) -> Node:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Node:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Node:
        return self._with("mul", other)

    def __rmul__(self, other: Any) -> Node:
        return self._with("mul", other, True)

    def __truediv__(self, other: Any) -> Node:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Node:
        return self._with("div", other, True)

    def __lt__(self, other: Any) -> Node:
        return self._with("lt", other)

    def __le__(self, other: Any) -> Node:
        return self._with("le", other)

    def __gt__(self, other: Any) -> Node:
        return self._with("gt", other)

    def __ge__(self, other: Any) -> Node:
        return self._with("ge", other)

    def __eq__(self, other: Any) -> Node:  # type: ignore[override]
        return self._with("eq", other)

    def __ne__(self, other: Any) -> Node:  # type: ignore[override]
        return self._with("ne", other)

    def __and__(self, other: Any) -> Node:
        return self._with("and", other)

    def __or__(self, other: Any) -> Node:
        return self._with("or", other)

    def __xor__(self, other: Any) -> Node:
        return self._with("xor", other)

    def __neg__(self) -> Node:
        return self.graph.neg(self)

    def __abs__(self) -> Node:
        return self.graph.unary("abs", self)

    def __invert__(self) -> Node:
        return self.graph.unary("not", self)

    def __pos__(self) -> Node:
        return self

    __hash__ = object.__hash__

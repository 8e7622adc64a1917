"""The graph of scalars: equal nodes stand once, what is exact is simplified, and axes can be moved.

`Graph.pull` puts other positions in the place of axes, which is how slices, transposes and broadcasts cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.program.fuse.scalars import COMMUTATIVE, FLOATS, NUMPY, PREDICATES, WHOLES, Node
from tapegrad.program.machine_code import Refused


class Graph:
    """All nodes of a program, and how they are made."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Any, Node] = {}
        self._rebuilt: dict[Any, dict[int, Node]] = {}
        self.limit = 1 << 30
        self.lengths: dict[int, int] | None = None  # of axes, if each has one

    def node(
        self, kind: str, args: tuple[Node, ...], attr: Any, dtype: str, axes: frozenset[int] | None = None
    ) -> Node:
        """Return the node, made if there is none like it."""
        key = (kind, attr, dtype, *[arg.number for arg in args])
        known = self._known.get(key)
        if known is not None:
            return known
        if axes is None:
            axes = args[0].axes if args else frozenset()
            for arg in args[1:]:
                if arg.axes is not axes:
                    axes = axes | arg.axes
        node = Node(self, len(self.nodes), kind, args, attr, dtype, axes)
        if len(self.nodes) >= self.limit:
            raise Refused(f"the program has more than {self.limit} scalars")
        self.nodes.append(node)
        self._known[key] = node
        return node

    def free_axis(self, length: int, taken: Collection[int | None]) -> int:
        """Return an axis for a dimension of a length that is none of those that are taken."""
        if self.lengths is None:
            return next(number for number in range(len(taken) + 1) if number not in taken)
        for number, own in self.lengths.items():
            if own == length and number not in taken:
                return number
        self.lengths[len(self.lengths)] = length
        return len(self.lengths) - 1

    # ---- leaves

    def const(self, value: Any, dtype: str) -> Node:
        """Return a constant; -0.0 and the bits of nan count."""
        number = np.dtype(dtype).type(value)
        key = ("const", number.tobytes(), dtype)
        known = self._known.get(key)
        if known is None:
            known = Node(self, len(self.nodes), "const", (), number.item(), dtype, frozenset())
            self.nodes.append(known)
            self._known[key] = known
        return known

    def zero(self, dtype: str) -> Node:
        """Return the absent term."""
        return self.node("zero", (), None, dtype)

    def load(self, base: tuple[str, int], offset: int, strides: tuple[tuple[int, int], ...], dtype: str) -> Node:
        """Return an element of memory: ``base[offset + sum of stride * axis]``."""
        return self.loads(base, (offset,), strides, dtype)[0]

    def loads(
        self, base: tuple[str, int], offsets: Sequence[int], strides: tuple[tuple[int, int], ...], dtype: str
    ) -> list[Node]:
        """Return elements of memory from these offsets on."""
        strides = tuple(sorted([(axis, stride) for axis, stride in strides if stride]))
        axes = frozenset([axis for axis, _ in strides])
        return [self.node("load", (), (base, offset, strides), dtype, axes) for offset in offsets]

    def gather(self, place: tuple[Any, ...], index: Node, dtype: str) -> Node:
        """Return an element of memory that an index chooses: ``base[offset + strides * axes + step * index]``.

        `place` is base, offset, strides, step, and how many elements there are to choose from.
        """
        base, offset, strides, step, count = place
        strides = tuple(sorted((axis, stride) for axis, stride in strides if stride))
        at, axes = self.solid(self.cast(index, "l")), index.axes | frozenset(axis for axis, _ in strides)
        return self.node("gather", (at,), (base, offset, strides, step, count), dtype, axes)

    def number_like(self, value: Any, other: Node) -> Node:
        """Return a Python number as a constant beside a node: it does not widen the node's dtype."""
        if other.dtype == "?" and not isinstance(value, (bool, np.bool_)):
            return self.const(value, "d" if isinstance(value, float) else "l")
        if other.dtype in WHOLES and isinstance(value, float):
            return self.const(value, "d")
        return self.const(value, other.dtype)

    # ---- arithmetic

    def cast(self, x: Node, dtype: str) -> Node:
        """Return a node in another dtype."""
        if x.dtype == dtype:
            return x
        if x.kind == "const":
            with np.errstate(all="ignore"):
                return self.const(np.dtype(x.dtype).type(x.attr).astype(dtype), dtype)
        if x.kind == "zero":
            return self.zero(dtype)
        return self.node("cast", (x,), None, dtype)

    def solid(self, x: Node) -> Node:
        """Return an absent term as the number 0."""
        return self.const(0, x.dtype) if x.kind == "zero" else x

    def neg(self, x: Node) -> Node:
        """Return the negative of a node."""
        if x.kind == "zero":
            return x
        if x.kind == "neg":
            return x.args[0]
        if x.kind == "const":
            return self.const(-x.attr, x.dtype)
        return self.node("neg", (x,), None, x.dtype)

    def unary(self, kind: str, x: Node) -> Node:
        """Return a node of one argument."""
        x = self.solid(x)
        if x.kind == "const":
            if kind == "not":
                return self.const(not x.attr, "?") if x.dtype == "?" else self.const(~x.attr, x.dtype)
            with np.errstate(all="ignore"):
                return self.const(NUMPY[kind](np.dtype(x.dtype).type(x.attr)), x.dtype)
        return self.node(kind, (x,), None, x.dtype)

    def binary(self, kind: str, x: Node, y: Node) -> Node:
        """Return a node of two arguments, which get a common dtype."""
        if x.dtype != y.dtype:
            common = np.result_type(x.dtype, y.dtype).char
            x, y = self.cast(x, common), self.cast(y, common)
        dtype = x.dtype
        if x.kind == "zero" or y.kind == "zero":
            if kind == "add":
                return y if x.kind == "zero" else x
            if kind == "sub":
                return x if y.kind == "zero" else self.neg(y)
            if kind == "mul" or (kind == "div" and y.kind != "zero"):
                return self.zero(dtype)
            x, y = self.solid(x), self.solid(y)
        if x.kind == "const" and y.kind == "const":
            with np.errstate(all="ignore"):
                value = NUMPY[kind](np.dtype(dtype).type(x.attr), np.dtype(dtype).type(y.attr))
            return self.const(value, "?" if kind in PREDICATES else value.dtype.char)
        if dtype in FLOATS:
            if kind == "mul":  # exact for every number
                if y.kind == "const" and y.attr == 1:
                    return x
                if x.kind == "const" and x.attr == 1:
                    return y
            elif kind == "div" and y.kind == "const" and y.attr == 1:
                return x
        elif kind == "div":
            raise Refused("it divides integers")
        if dtype == "?" and kind in ("add", "mul"):
            kind = "or" if kind == "add" else "and"
        if kind in COMMUTATIVE and x.number > y.number:
            x, y = y, x
        return self.node(kind, (x, y), None, "?" if kind in PREDICATES else dtype)

    def select(self, condition: Node, x: Node, y: Node) -> Node:
        """Return x where a condition is true, else y."""
        if condition.dtype != "?":
            condition = self.binary("ne", condition, self.const(0, condition.dtype))
        condition = self.solid(condition)
        if x.dtype != y.dtype:
            dtype = np.result_type(x.dtype, y.dtype).char
            x, y = self.cast(x, dtype), self.cast(y, dtype)
        if condition.kind == "const":
            return x if condition.attr else y
        if x is y:
            return x
        return self.node("select", (condition, self.solid(x), self.solid(y)), None, x.dtype)

    def maximum(self, kind: str, x: Node, y: Node) -> Node:
        """Return the larger (``max``) or smaller (``min``) of two; nan if one is."""
        if x.dtype != y.dtype:
            dtype = np.result_type(x.dtype, y.dtype).char
            x, y = self.cast(x, dtype), self.cast(y, dtype)
        x, y = self.solid(x), self.solid(y)
        if x is y:
            return x
        if kind == "max" and x.kind == "const" and x.attr == -np.inf:  # where a reduction starts
            return y
        if kind == "min" and x.kind == "const" and x.attr == np.inf:
            return y
        return self.node(kind, (x, y), None, x.dtype)

    def call(self, name: str, *args: Node) -> Node:
        """Return a value of a function of `tapegrad.vmath`."""
        return self.node("call", tuple(map(self.solid, args)), name, args[0].dtype)

    def libm(self, name: str, *args: Node) -> Node:
        """Return a value of a function of libm, which is called lane by lane."""
        return self.node("libm", tuple(map(self.solid, args)), name, args[0].dtype)

    # ---- axes

    def place(self, x: Node, axis: int, low: int, high: int) -> Node:
        """Return a node that is absent where an axis is outside of a range."""
        if x.kind == "zero":
            return x
        return self.node("place", (x,), (axis, low, high), x.dtype, x.axes | {axis})

    def reduce(self, kind: str, x: Node, axis: int, low: int, high: int) -> Node:
        """Return the ``sum``, ``max``, ``min`` or ``prod`` over a range of an axis."""
        if x.kind == "zero" and kind == "sum":
            return x
        return self.node("red", (self.solid(x),), (kind, axis, low, high), x.dtype, x.axes - {axis})

    def cone(self, roots: Iterable[Node], stop: Callable[[Node], bool] = lambda node: False) -> list[Node]:
        """Return the nodes that roots depend on, roots included, each behind its arguments."""
        met: dict[int, Node] = {}
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node.number not in met:
                met[node.number] = node
                if not stop(node):
                    waiting.extend(node.args)
        return [met[number] for number in sorted(met)]

    def rebuild(
        self,
        roots: Iterable[Node],
        change: Callable[[Node, tuple[Node, ...]], Node | None],
        key: Any = None,
        axes: Collection[int] | None = None,
    ) -> dict[int, Node]:
        """Return the roots' cone made anew, by old numbers; `change` may return another node for one.

        What depends on none of the `axes` stays. A `key` stands for a change, which makes each node once.
        """
        made: dict[int, Node] = {} if key is None else self._rebuilt.setdefault(key, {})

        def is_done(node: Node) -> bool:
            if axes is not None and node.axes.isdisjoint(axes):
                made[node.number] = node
            return node.number in made

        for node in self.cone(roots, is_done):
            if node.number not in made:
                args = tuple([made[arg.number] for arg in node.args])
                other = change(node, args)
                made[node.number] = other if other is not None else self.again(node, args)
        return made

    def again(self, node: Node, args: tuple[Node, ...]) -> Node:
        """Return a node with other arguments, as its function would make it."""
        if all(map(_same, args, node.args)):
            return node
        kind = node.kind
        if kind in ("max", "min"):
            return self.maximum(kind, *args)
        if kind == "select":
            return self.select(*args)
        if kind == "neg":
            return self.neg(*args)
        if kind == "cast":
            return self.cast(args[0], node.dtype)
        if kind == "place":
            return self.place(args[0], *node.attr)
        if kind == "red":
            return self.reduce(node.attr[0], args[0], *node.attr[1:])
        if kind == "gather":
            return self.gather(node.attr, args[0], node.dtype)
        if kind in ("call", "libm"):
            return self.node(kind, tuple(map(self.solid, args)), node.attr, node.dtype)
        if kind in NUMPY or kind == "not":
            return self.binary(kind, *args) if len(args) == 2 else self.unary(kind, *args)
        return self.node(kind, tuple(map(self.solid, args)), node.attr, node.dtype)

    def pull(self, node: Node, where: tuple[tuple[int, int, int | None, int], ...]) -> Node:
        """Return a node at other positions: for each (axis, factor, other, offset), axis is factor * other + offset."""
        where = tuple(own for own in where if own[0] in node.axes and own[1:] != (1, own[0], 0))
        if not where:
            return node
        changed = {own[0]: own[1:] for own in where}

        def change(node: Node, args: tuple[Node, ...]) -> Node | None:
            if node.kind in ("load", "gather"):
                base, offset, strides, *chosen = node.attr
                moved: dict[int, int] = {}
                for axis, stride in strides:
                    factor, other, start = changed.get(axis, (1, axis, 0))
                    offset += stride * start
                    if other is not None:
                        moved[other] = moved.get(other, 0) + stride * factor
                if chosen:
                    return self.gather((base, offset, tuple(moved.items()), *chosen), args[0], node.dtype)
                return self.load(base, offset, tuple(moved.items()), node.dtype)
            if node.kind == "index":
                factor, other, start = changed[node.attr]
                value = self.const(start, "l")
                return value if other is None else self.index(other) * self.const(factor, "l") + value
            if node.kind == "place":
                axis, low, high = node.attr
                if axis not in changed:
                    return self.place(args[0], axis, low, high)
                factor, other, start = changed[axis]
                if other is None or factor == 0:
                    return args[0] if low <= start < high else self.zero(node.dtype)
                # low <= factor * i + start < high
                ends = (-((start - low) // factor), -((start - high) // factor)) if factor > 0 else (
                    (start - high) // -factor + 1, (start - low) // -factor + 1)  # fmt: skip
                return self.place(args[0], other, *ends)
            if node.kind == "red":
                bound = node.attr[1]
                targets = {other for _, other, _ in changed.values()}
                if bound in targets or bound in changed:  # another axis is reduced, first
                    how, _, low, high = node.attr
                    fresh = self.free_axis(high, node.args[0].axes | targets | changed.keys())
                    renamed = self.pull(node.args[0], ((bound, 1, fresh, 0),))
                    return self.reduce(how, self.pull(renamed, where), fresh, low, high)
            return None

        return self.rebuild([node], change, where, changed)[node.number]

    def index(self, axis: int) -> Node:
        """Return the position along an axis, as an integer."""
        return self.node("index", (), axis, "l", frozenset((axis,)))

    def within(self, node: Node, axis: int, low: int, high: int) -> Node:
        """Return a node for positions within a range, which no place in it begins or ends inside of."""

        def change(own: Node, args: tuple[Node, ...]) -> Node | None:
            if own.kind == "place" and own.attr[0] == axis:
                return args[0] if own.attr[1] <= low and high <= own.attr[2] else self.zero(own.dtype)
            return own if own.kind == "red" else None

        return self.rebuild([node], change, (axis, low, high), (axis,))[node.number]


def _same(x: Node, y: Node) -> bool:
    return x is y

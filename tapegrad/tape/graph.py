"""The graph as PyTorch shows it: `Node`, with a name and `next_functions`, around a node of the tape."""

from __future__ import annotations

import weakref
from functools import cache
from typing import TYPE_CHECKING, Final

from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf, TapeNode, operand_nodes

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor


class Node:
    """The operation that computed a tensor; its class is named after the operation, e.g. ``MulBackward0``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn
    <MulBackward0>
    >>> y.grad_fn.next_functions[0][0].variable is x
    True
    """

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: TapeNode | Leaf) -> None:
        self._node = node

    def name(self) -> str:
        """Return the name of the class."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each operand, the node that computed it (None for a constant) and the number of that node's output."""
        if isinstance(self._node, Leaf):
            return ()
        return tuple((None, 0) if node is None else edge_of(node) for node in operand_nodes(self._node))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class AccumulateGrad(Node):
    """The end of the graph: a leaf, whose gradient is accumulated."""

    __slots__ = ()

    @property
    def variable(self) -> Tensor | None:
        """The leaf, None if it has died."""
        assert isinstance(self._node, Leaf)
        return self._node.tensor()


@cache
def _node_class(name: str) -> type[Node]:
    return type(name, (Node,), {"__slots__": ()})


_nodes: Final[weakref.WeakValueDictionary[int, Node]] = weakref.WeakValueDictionary()


def node_of(node: TapeNode | Leaf) -> Node:
    """Return the `Node` of a node of the tape: always the same one, as long as somebody holds it."""
    if not isinstance(node, Leaf) and len(node) > FIRST_OPERAND and "number_of_result" in node[PLAN_OBJECT].attrs:
        node = node[FIRST_OPERAND]  # one result of several: users see one node for all
    shown = _nodes.get(id(node))
    if shown is None:
        if isinstance(node, Leaf):
            shown = AccumulateGrad(node)
        else:
            plan = node[PLAN_OBJECT]
            of = plan.attrs.get("node_class")
            shown = _node_class(plan.op.node_name)(node) if of is None else of.of(node)
        _nodes[id(node)] = shown
    return shown


def short_name(node: TapeNode) -> str:
    """Return how messages of PyTorch name a node: ``Exp`` for ``ExpBackward0``."""
    name: str = node[PLAN_OBJECT].op.node_name
    return name.removesuffix("0").removesuffix("Backward")


def edge_of(node: TapeNode | Leaf) -> tuple[Node, int]:
    """Return the `Node` of a node of the tape, and the number of its output."""
    return node_of(node), 0 if isinstance(node, Leaf) else node[PLAN_OBJECT].attrs.get("number_of_result", 0)

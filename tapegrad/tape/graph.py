"""The graph as PyTorch shows it: `Node`, with a name and `next_functions`, around a node of the tape."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf, TapeNode, operand_nodes
from tapegrad.tape.hooks import HookTable, RemovableHandle, hooks_of, is_freed
from tapegrad.tape.node_names import name_of_plan

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
        """Return the name of the class; that of a write to a part begins with PyTorch's namespace."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name == "CopySlices" else name

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each operand, the node that computed it (None for a constant) and the number of that node's output."""
        if isinstance(self._node, Leaf):
            return ()
        return tuple((None, 0) if node is None else edge_of(node) for node in operand_nodes(self._node))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for notes about the node; it lives as long as the node does."""
        if isinstance(self._node, Leaf):
            return {}
        return hooks_of(self._node).metadata

    @property
    def requires_grad(self) -> bool:
        """True: there are no nodes of constants."""
        return True

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node has run in a backward pass.

        `grad_inputs` are the gradients of the operands, None where none is wanted. If the hook returns a tuple, that
        replaces them.

        Examples
        --------
        >>> import tapegrad as tg
        >>> x = tg.tensor(2.0, requires_grad=True)
        >>> y = x.exp()
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 0,))
        >>> y.backward()
        >>> x.grad
        tensor(0.)
        """
        return RemovableHandle(hooks_of(self._tape_node()).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node runs. If it returns a tuple, that replaces the gradients."""
        return RemovableHandle(hooks_of(self._tape_node()).pre, hook)

    def _tape_node(self) -> TapeNode:
        assert isinstance(self._node, list)
        return self._node

    def __getattr__(self, name: str) -> Any:
        """Return a saved value by PyTorch's name, e.g. ``_saved_self``, or ``_raw_saved_self``: see `saved_value`."""
        if name.startswith("_raw_saved_") and isinstance(self._node, list):
            from tapegrad.autograd.saved import SavedTensor  # at call time, as below

            return SavedTensor(self._node, name.removeprefix("_raw_saved_"))
        if name.startswith("_saved_") and isinstance(self._node, list):
            from tapegrad.autograd.saved import saved_value  # at call time: it needs tensors

            return saved_value(self._node, name.removeprefix("_saved_"))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        from tapegrad.autograd.saved import saved_names  # at call time, as above

        names = saved_names(self._node) if isinstance(self._node, list) else ()
        return sorted({*super().__dir__(), *(f"_saved_{name}" for name in names)})

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class AccumulateGrad(Node):
    """The end of the graph: a leaf, whose gradient is accumulated."""

    __slots__ = ()

    def name(self) -> str:
        """Return the name that PyTorch gives to it."""
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` with the leaf's gradient before it is accumulated, after the leaf's own hooks."""
        return self._register(lambda ct: (hook((ct,)) or (None,))[0])

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook((), grad_outputs)`` when the leaf's gradient was accumulated."""
        assert isinstance(self._node, Leaf)
        latest: list[Any] = []
        before = self._register(lambda ct: latest.__setitem__(slice(None), [ct]))
        if self._node.post_hooks is None:
            self._node.post_hooks = HookTable()

        def after(_: Tensor) -> None:
            hook((), tuple(latest))

        handle = RemovableHandle(self._node.post_hooks, after)
        handle.others = (before,)
        return handle

    def _register(self, hook: Callable[..., Any]) -> RemovableHandle:
        assert isinstance(self._node, Leaf)
        if self._node.hooks is None:
            self._node.hooks = HookTable()
        return RemovableHandle(self._node.hooks, hook)

    @property
    def variable(self) -> Tensor | None:
        """The leaf, None if it has died."""
        assert isinstance(self._node, Leaf)
        return self._node.tensor()


class GradientEdge(NamedTuple):
    """A node, and the number of one of its outputs.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> y = x**2
    >>> edge = tg.autograd.graph.get_gradient_edge(y)
    >>> edge.output_nr, edge.node is not None
    (0, True)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


@cache
def _node_class(name: str) -> type[Node]:
    return type(name, (Node,), {"__slots__": ()})


_nodes: Final[weakref.WeakValueDictionary[int, Node]] = weakref.WeakValueDictionary()


def node_of(node: TapeNode | Leaf) -> Node:
    """Return the `Node` of a node of the tape: always the same one, as long as somebody holds it."""
    if not isinstance(node, Leaf):
        node = whole_node(node)
    shown = _nodes.get(id(node))
    if shown is None:
        if isinstance(node, Leaf):
            shown = AccumulateGrad(node)
        else:
            plan = node[PLAN_OBJECT]
            of = plan.attrs.get("node_class")
            shown = _node_class(name_of(node))(node) if of is None else of.of(node)
        _nodes[id(node)] = shown
    return shown


def whole_node(node: TapeNode) -> TapeNode:
    """Return the node of the entry that stands for all results; users see this one for each of several."""
    is_part = not is_freed(node) and "number_of_result" in node[PLAN_OBJECT].attrs
    whole: TapeNode = node[FIRST_OPERAND] if is_part else node
    return whole


def output_of(node: TapeNode) -> str:
    """Return how messages of PyTorch name the result of a node: ``output 0 of Exp`` for that of ``ExpBackward0``."""
    number = node[PLAN_OBJECT].attrs.get("number_of_result", 0)
    return f"output {number} of {name_of(node).removesuffix('0').removesuffix('Backward')}"


def source_of(node: TapeNode, name: str) -> TapeNode | Leaf | None:
    """Return the node that computed what an entry saved as `name`: its own node, if that is its result."""
    op = node[PLAN_OBJECT].op
    if name == "out":
        return node
    source: TapeNode | Leaf | None = node[FIRST_OPERAND + op.operands.index(name)] if name in op.operands else None
    return source


def name_of(node: TapeNode) -> str:
    """Return PyTorch's name of a node, which may depend on the attributes of the call."""
    return name_of_plan(node[PLAN_OBJECT])


def edge_of(node: TapeNode | Leaf) -> tuple[Node, int]:
    """Return the `Node` of a node of the tape, and the number of its output."""
    return node_of(node), 0 if isinstance(node, Leaf) else node[PLAN_OBJECT].attrs.get("number_of_result", 0)

"""PyTorch's ``torch.autograd.graph``: nodes, edges, hooks of several tensors or of what is saved; and drawings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from tapegrad.autograd.saved_hooks import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from tapegrad.sweep.sweep import current_sweep
from tapegrad.tape import versions, views
from tapegrad.tape.drawing import to_dot
from tapegrad.tape.entries import slot_of
from tapegrad.tape.graph import GradientEdge, Node, edge_of
from tapegrad.tape.hooks import RemovableHandle
from tapegrad.tape.memory_use import memory
from tapegrad.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "memory",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "to_dot",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the node through which gradients of a tensor flow, and the number of its output.

    `backward` and `grad` take it in place of the tensor, which need not be alive then.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> tg.autograd.graph.get_gradient_edge(x * 3).node
    <MulBackward0>
    """
    node = views.renewed(tensor)._node
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge_of(node))


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Note a write to tensors that was made in a way that is not noticed, e.g. through NumPy.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2)
    >>> tg.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        versions.note(one._array())


class _MultiHandle(RemovableHandle):
    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.others = handles

    def remove(self) -> None:
        """Remove the hook from all tensors."""
        for handle in self.others:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Call a function once a backward pass, with the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
    fn : callable
        Mode "all": called with a list of all gradients when the last was computed; None for a tensor that the pass does
        not reach. Mode "any": called with the first gradient.
    mode : {"all", "any"}

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y = tg.tensor(2.0, requires_grad=True), tg.tensor(3.0, requires_grad=True)
    >>> handle = tg.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads))
    >>> (x * y).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":

        def first(grad: Tensor) -> None:
            sweep = current_sweep()
            with lock:
                is_first = sweep is None or sweep.note(first, grad) is grad
            if is_first:
                fn(grad)  # type: ignore[arg-type]

        return _MultiHandle([tensor.register_hook(first) for tensor in tensors if tensor.requires_grad])
    slots = [slot_of(views.renewed(tensor)._node) for tensor in tensors]

    def of(index: int) -> Callable[[Tensor], None]:
        def note(grad: Tensor) -> None:
            sweep = current_sweep()
            if sweep is None:  # a leaf that is a root itself
                return
            with lock:
                reached, grads = sweep.note(of, ([], [None] * len(slots)))
                reached.append(index)
                grads[index] = grad
                is_last = len(reached) == sum(map(sweep.runs().__contains__, slots))
            if is_last:
                fn(grads)

        return note

    return _MultiHandle([tensor.register_hook(of(index)) for index, tensor in enumerate(tensors)])

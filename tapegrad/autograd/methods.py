"""`Tensor.backward`, which `tapegrad.ops.bind` gives to Tensor: this folder stands behind `tapegrad.tensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.autograd.backward import backward as run_backward
from tapegrad.tensor import Tensor


def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves, and accumulate it in their `grad`.

    Parameters
    ----------
    gradient : Tensor, optional
        The cotangent of this tensor, of the same shape. By default 1 for a tensor with one element.
    retain_graph : bool, optional
        Keep the saved values, so that a second pass can use the graph. Default: the value of `create_graph`.
    create_graph : bool
        Record how the gradients are computed, so that they can be differentiated again.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate only into these tensors.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad, if it has several elements and no gradient is given, if the gradient has
        another shape, or if the graph was freed. The tape and all gradients stay unchanged.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> (3 * x**2).backward()
    >>> x.grad
    tensor(12.)
    """
    run_backward(self, gradient, retain_graph, create_graph, None, inputs)

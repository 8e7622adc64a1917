"""Roots of a backward pass: check the tensors to differentiate and their cotangents, before anything changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.ops.table.gateway import as_operand, constant, raw_data
from tapegrad.ops.table.op import xp
from tapegrad.runtime import state
from tapegrad.sweep.workspace import is_aligned
from tapegrad.tape import views
from tapegrad.tape.entries import PLAN_OBJECT, Leaf
from tapegrad.tape.graph import GradientEdge
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

_MOST_ONES: Final = 256
_ones: Final[dict[Layout, Tensor | None]] = {}
state.register("autograd.roots: ones", lambda: len(_ones), _ones.clear)


def implicit_cotangent(layout: Layout) -> Tensor | None:
    """Return the default cotangent of a root of this layout, a one; None if the user has to pass a cotangent."""
    try:
        return _ones[layout]
    except KeyError:
        return state.put(_ones, layout, _one(layout), _MOST_ONES)


def _one(layout: Layout) -> Tensor | None:
    if layout.size != 1 or layout.dtype.kind == "c":
        return None
    one = np.ones(layout.shape, layout.dtype)
    one.flags.writeable = False
    return from_array(one)


def like(root: Tensor, gradient: Any) -> Tensor | None:
    """Return a gradient if a sweep can use it as it is: a contiguous array of the root's shape and dtype; else None.

    The strides of the root say nothing: it may be a view.
    """
    if gradient.__class__ is not Tensor:
        return None
    data, gradient_layout, layout = gradient._data, gradient._layout.plain, root._layout.plain
    if gradient_layout is not layout and (
        gradient_layout.shape != layout.shape or gradient_layout.dtype != layout.dtype
    ):
        return None
    return gradient if data.__class__ is np.ndarray and gradient._layout.contiguous and is_aligned(data) else None


def as_sequence(value: Any) -> tuple[Any, ...]:
    """Return one tensor, or a sequence of them, as a tuple; an edge of the graph becomes the tensor it belongs to."""
    values = (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)
    return tuple([_at_edge(root) if isinstance(root, GradientEdge) else root for root in values])


def _at_edge(edge: GradientEdge) -> Any:
    """Return the leaf at an edge of the graph, or a tensor without data that stands for the result there."""
    node = edge.node._node
    if isinstance(node, Leaf):
        return node.tensor()
    if node[PLAN_OBJECT].pack is not None:
        raise RuntimeError(f"{edge.node} has several results, whose edges cannot be told apart: pass the tensor")
    result = constant(None, node[PLAN_OBJECT].result)
    result._node = node
    return result


def check_roots(call: str, tensors: Sequence[Any], gradients: Any) -> list[tuple[Tensor, Tensor]]:
    """Check roots and gradients, and return each root with its cotangent.

    Parameters
    ----------
    call : str
        The function that the user called, for messages.
    tensors : sequence of Tensor
    gradients : Tensor, sequence of Tensor or None, or None

    Raises
    ------
    RuntimeError
        If a root does not require grad, has several elements and no gradient, or its gradient has another shape.
    TypeError
        If a gradient is no tensor.
    """
    if gradients is None:
        gradients = (None,) * len(tensors)
    elif isinstance(gradients, (Tensor, np.ndarray)):
        gradients = (gradients,)
    else:
        gradients = tuple(gradients)  # Python raises for a number
    for gradient in gradients:
        if gradient is not None and not isinstance(gradient, (Tensor, np.ndarray)):
            raise errors.gradient_kind(type(gradient).__name__)
    if len(gradients) != len(tensors):
        raise RuntimeError(
            f"got {len(tensors)} tensors and {len(gradients)} gradients; {call} needs one for each, None for ones"
        )
    roots = []
    for index, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        if not isinstance(tensor, Tensor):
            raise errors.not_a_tensor(call.removesuffix("()"), "tensors", index, tensor)
        if views.renewed(tensor)._node is None:
            raise errors.no_grad_fn(call, index)
        roots.append((tensor, _cotangent(call, index, tensor, gradient)))
    return roots


def _cotangent(call: str, index: int, tensor: Tensor, gradient: Tensor | np.ndarray | None) -> Tensor:
    layout = tensor._layout
    if gradient is None:
        one = implicit_cotangent(layout)
        if one is not None:
            return one
        if layout.size != 1:
            raise errors.not_scalar(call, index, layout.shape)
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {layout.dtype}; "
            f"differentiate the real part, or pass a gradient"
        )
    if isinstance(gradient, np.ndarray):
        gradient = from_array(gradient)
    if gradient.shape != layout.shape:
        raise errors.gradient_shape(call, index, gradient.shape, layout.shape)
    if not gradient._layout.floating:
        raise TypeError(
            f"gradients must be of floating point or complex dtype, but grad_output[{index}] has dtype "
            f"{gradient.dtype}; convert it, e.g. with .to('{layout.dtype}')"
        )
    if (gradient.dtype.kind == "c") is not (layout.dtype.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of {layout.dtype}."
        )
    if gradient.dtype != layout.dtype:
        return xp.cast(gradient, layout.dtype)  # type: ignore[no-any-return]
    return as_operand(gradient, call, "gradient", index)  # hooks and gradients are plain tensors


def seed_arrays(cotangents: Sequence[Tensor]) -> list[np.ndarray]:
    """Return the cotangents of the roots as arrays for a sweep: C-contiguous, with the low bits of the address free.

    If there are several, they are copies: a root may be an operand of another one, and the sweep adds to its cotangent.
    """
    seeds = []
    for cotangent in cotangents:
        seed = np.ascontiguousarray(raw_data(cotangent)).reshape(cotangent.shape)
        seeds.append(seed if len(cotangents) == 1 and is_aligned(seed) else seed.copy())
    return seeds


def zeros_of(tensor: Tensor) -> Tensor:
    """Return zeros of a tensor's shape and dtype."""
    data = np.zeros(tensor.shape, tensor.dtype)
    return from_array(data)

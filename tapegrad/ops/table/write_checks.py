"""Before a write in place: whose memory it is, and what PyTorch says if it may not be written to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.pass_modes import is_inference_mode_enabled
from tapegrad.recording.writes import written
from tapegrad.tape import views
from tapegrad.tape.entries import Leaf
from tapegrad.tape.layout import InferenceLayout
from tapegrad.tape.views import base_of
from tapegrad.tensor import Tensor


def records(target: Tensor, *others: Any) -> bool:
    """Whether a write to a tensor is recorded: it, or another operand, wants a gradient."""
    if target._layout.__class__ is InferenceLayout and not is_inference_mode_enabled():
        raise RuntimeError(errors.INFERENCE_WRITTEN)
    if not modes.is_grad_enabled():
        return False
    if hasattr(target, "_viewed") and target._viewed is views.UNRECORDED[0]:
        raise RuntimeError(errors.UNRECORDED_VIEW)
    for value in (target, *others):
        if isinstance(value, Tensor) and (value._node is not None or views.renewed(value)._node is not None):
            if hasattr(target, "_part_of"):
                raise errors.part_written(*target._part_of)
            return True
    return False


_SMALL: Final = 1e4  # any floating dtype has numbers up to this one


def plain_memory(target: Tensor, value: float) -> np.ndarray | None:
    """Return the array that a small number is about to be written to with no record, and note that; None if it is not.

    A trace would take it for a look at the numbers.
    """
    if target._layout.dtype.kind != "f" or not -_SMALL < value < _SMALL:
        return None
    array: np.ndarray | None = written.memory(target)
    return array


def follower(*values: Any) -> Any:
    """Return what follows tangents (see `tapegrad.autograd.forward_mode`) if one of these tensors has a tangent."""
    interceptor: Any = modes.interceptor()
    follows = getattr(interceptor, "follows_write", None)
    return interceptor if follows is not None and follows(*values) else None


def check_leaf(target: Tensor) -> None:
    """Raise if a leaf that requires grad, or a view of one, is to be written to while grad mode is on."""
    if isinstance(target._node, Leaf):
        raise RuntimeError(errors.LEAF_IN_PLACE)
    base = base_of(target)
    if base is not None and isinstance(base._node, Leaf):
        raise RuntimeError(errors.LEAF_VIEW_IN_PLACE)


def can_hold(target: np.dtype, result: np.dtype) -> bool:
    """Whether a result may be written to a tensor: of its kind, or one below; integers to unsigned ones, too."""
    return np.can_cast(result, target, "same_kind") or (target.kind == "u" and result.kind == "i")


def wrapped(number: float, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as an integer of a dtype, which wraps around; NumPy would raise."""
    return np.array(number).astype(dtype)


def cast_error(result: np.dtype, target: np.dtype) -> RuntimeError:
    """Return the error of a result whose dtype the written tensor cannot hold."""
    return RuntimeError(
        f"result type {TORCH_NAMES.get(result.name, result.name)} can't be cast to the desired output type "
        f"{TORCH_NAMES.get(target.name, target.name)}. Convert the tensor that is written to first, e.g. with "
        f".to({result.name!r})"
    )


def shape_error(target: tuple[int, ...], result: tuple[int, ...]) -> RuntimeError:
    """Return the error of a result whose shape is not the written tensor's."""
    return RuntimeError(
        f"output with shape {list(target)} doesn't match the broadcast shape {list(result)}. An in-place operation "
        f"keeps its tensor's shape: write it as x = x + ..."
    )


def check_distinct(array: np.ndarray) -> None:
    """Raise PyTorch's error if elements share memory, as after `expand`."""
    steps = array.strides
    if 0 in steps and array.size > 1 and any(s == 0 and n > 1 for s, n in zip(steps, array.shape, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )

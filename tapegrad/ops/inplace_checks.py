"""Before a write in place: whose memory it is, and what PyTorch says if it may not be written to."""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.tape.entries import FIRST_OPERAND, Leaf
from tapegrad.tape.versions import owner_of
from tapegrad.tensor import Tensor


def is_view(target: Tensor) -> bool:
    """Whether the tensor's memory is a part of what something else that is alive refers to."""
    data = target._data
    owner = data.base if isinstance(data, np.ndarray) else None
    # The view's own `base`, this function's variable, and the argument of getrefcount.
    return isinstance(owner, np.ndarray) and sys.getrefcount(owner) > 3


def check_leaf(target: Tensor) -> None:
    """Raise if a leaf that requires grad, or a view of one, is to be written to while grad mode is on."""
    node = target._node
    if isinstance(node, Leaf):
        raise RuntimeError(errors.LEAF_IN_PLACE)
    if isinstance(node, list) and isinstance(target._data, np.ndarray) and target._data.base is not None:
        while isinstance(node, list):
            node = node[FIRST_OPERAND]
        leaf = node.tensor() if isinstance(node, Leaf) else None
        if leaf is not None and owner_of(leaf._data) is owner_of(target._data):
            raise RuntimeError(errors.LEAF_VIEW_IN_PLACE)


def check_no_view(call: str, target: Tensor, args: tuple[Any, ...]) -> None:
    """Raise if a view of the tensor may be alive: it would show what is written, with the graph of what was there."""
    if not getattr(target, "_viewed", False):
        return
    if any(isinstance(arg, Tensor) and np.may_share_memory(arg._data, target._data) for arg in args):
        return  # the operand itself is such a view, and is copied
    # Of the references one is the tensor's, one the caller's, one the argument of getrefcount. A residual counts as
    # well: the graph that saved it would be refused after the write anyway.
    if sys.getrefcount(target._data) > 3:
        raise RuntimeError(
            f"{call} would write to a tensor of which there are views, and their gradients would then be wrong. "
            f"Write before the views are taken, to a clone() of the tensor, or out of place."
        )


def view_error(call: str) -> RuntimeError:
    """Return the error of a recorded write to a view."""
    return RuntimeError(
        f"{call} would write to a view of another tensor, whose gradient would then be wrong: this is not recorded. "
        f"Write through the tensor itself, e.g. base[index] = value, or clone() the view first."
    )


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
    if array.size > 1 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


_SWAP, _CACHE = opmap["SWAP"], opmap.get("CACHE", 0)
_STORES = [opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opmap]


def is_stored_back(frame: FrameType) -> bool:
    """Whether the caller is in the middle of ``x[index] += value``, and will store what it gets at ``x[index]``."""
    code = frame.f_code.co_code
    place = frame.f_lasti + 2
    while place < len(code) and code[place] in (_CACHE, _SWAP):
        place += 2
    return place < len(code) and code[place] in _STORES

"""Views: which tensor the memory of a tensor belongs to, and whether its history is older than the last write to it.

A result that shares the memory of its operand keeps its *base*: the tensor that the memory belongs to. A recorded write
in place, through the base or through a view, gives the base a new entry. Every view whose own entry stands before that
one on the tape is then *stale*: it shows the new values and has the old history. It gets a new history, as a part of
the base, when it is next used.

Recording looks for stale views only after the first recorded write of the process (`modes.note_write`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tapegrad import modes
from tapegrad.tape.entries import SLOT, Leaf, order_of
from tapegrad.tape.versions import owner_of

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor


class _Late:
    """`tapegrad.ops.parts`, which has the ops of a part, puts its `renew` here."""

    renew: Callable[[Tensor], None]


late = _Late()


def base_of(tensor: Tensor) -> Tensor | None:
    """Return the tensor whose memory a view shows; None if the tensor is no view."""
    base: Tensor | None = getattr(tensor, "_base", None)
    if base is None or isinstance(tensor._node, Leaf):
        return None
    # Unless the data of either were replaced. (NumPy copies what has no elements.)
    if tensor._layout.size and owner_of(tensor._data) is not owner_of(base._array()):
        del tensor._base
        return None
    return base


def root_of(tensor: Tensor) -> Tensor:
    """Return the base of a view, and any other tensor itself."""
    base = base_of(tensor)
    return tensor if base is None else base


def is_stale(tensor: Tensor) -> bool:
    """Whether the base of a view was written to after the entry of the view; compiled code asks the same."""
    base: Tensor | None = getattr(tensor, "_base", None)
    if base is None or not isinstance(base._node, list):
        return False
    node = tensor._node
    return node is None or (isinstance(node, list) and order_of(node[SLOT]) < order_of(base._node[SLOT]))


def renewed(tensor: Tensor) -> Tensor:
    """Return a tensor, with a new history if it is a stale view."""
    if modes.mode.value and is_stale(tensor):
        late.renew(tensor)
    return tensor

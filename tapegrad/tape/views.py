"""Views: the base of a tensor that shares another's memory, and whether a write has made its history stale.

A result that shares the memory of its operand has a *base*, `Tensor._viewed`: the tensor whose memory it is. That
of a view without history, made with recording off of a tensor that requires grad, is `UNRECORDED`. `Tensor._part_of` is
the name of the function that returned a view among others, and the view's number; views of that view have it as well.
A third element says that it is the one view that a user's `Function` returned.

A recorded write in place, to the base or to a view, gives the base a new entry. A view whose entry stands before that
one on the tape is *stale*: it has the new values and the old history. When it is next used, `Tensor._renew`
(`tapegrad.ops.history`) gives it a new history, as a part of the base.

Recording looks for stale views only after the first recorded write of the process (`modes.note_write`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapegrad import modes
from tapegrad.tape.entries import SLOT, Leaf, is_older
from tapegrad.tape.versions import owner_of

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor


#: Stands for the base of views that have no history; `tapegrad.recording.objects` puts the tensor there.
UNRECORDED: list[Tensor] = []


def base_of(tensor: Tensor) -> Tensor | None:
    """Return the tensor whose memory a view shows; None if the tensor is no view."""
    base: Tensor | None = getattr(tensor, "_viewed", None)
    if base is None or isinstance(tensor._node, Leaf) or base is UNRECORDED[0]:
        return None
    # The data of either may have been replaced. (NumPy copies arrays without elements.)
    memory, owner = tensor._data.base, base._data
    shared = memory is owner or (memory is not None and memory is owner.base)  # else the bases of bases tell
    if not shared and tensor._layout.size and owner_of(tensor._data) is not owner_of(base._array()):
        del tensor._viewed
        return None
    return base


def root_of(tensor: Tensor) -> Tensor:
    """Return the base of a view; a tensor that is no view is its own."""
    base = base_of(tensor)
    return tensor if base is None else base


def is_stale(tensor: Tensor) -> bool:
    """Whether the base of a view was written to after the view's entry (compiled: `recording.operands.is_stale`)."""
    base: Tensor | None = getattr(tensor, "_viewed", None)
    if base is None or not isinstance(base._node, list):
        return False
    node = tensor._node
    return node is None or (isinstance(node, list) and is_older(node[SLOT], base._node[SLOT]))


def renewed(tensor: Tensor) -> Tensor:
    """Return a tensor, which gets a new history first if it is a stale view."""
    if modes.mode.value and is_stale(tensor):
        tensor._renew()
    return tensor

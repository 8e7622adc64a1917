"""Views in a function that is traced: what each is a part of, and where, so that a write to one is seen by all.

A write changes no memory: the tensor that owns it gets another value. Its views are renewed when they are next used, by
the operations that made them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.parts import Part
from tapegrad.ops.table.gateway import as_operand, compute, raw_data
from tapegrad.ops.table.op import Bound
from tapegrad.ops.table.write_checks import check_distinct
from tapegrad.program.scripts import Scripts
from tapegrad.program.traced import Noticed, Traced, origin_of, set_data
from tapegrad.recording.plan import Plan
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import Leaf
from tapegrad.tensor import Tensor


class View(NamedTuple):
    """How a tensor became a view.

    Attributes
    ----------
    parent : Tensor
        What it was made of, which may be a view too.
    plan : Plan, or None
        Of the operation; None for `detach`.
    result : int
        Which of the results it is.
    root : Tensor
        What is no view; its data, when the view was last up to date, were `data`.
    data : array
    records : bool
        Whether it has a history.
    """

    parent: Tensor
    plan: Plan | None
    result: int
    root: Tensor
    data: Any
    records: bool


class Views(Scripts):
    """Knows the views that were made."""

    def __init__(self) -> None:
        super().__init__()
        self._views: dict[int, tuple[Tensor, View]] = {}  # by identity; it keeps the tensors, so none is used twice

    def view_of(self, tensor: Tensor) -> View | None:
        """Return how a tensor became a view; None if it is none."""
        for made, operand, plan, result, enabled in self._noted:
            parent = origin_of(operand)
            records = enabled or parent._node is None
            before = self._views.get(id(parent))
            root = parent if before is None else before[1].root
            self._views[id(made)] = made, View(parent, plan, result, root, raw_data(root), records)
        self._noted.clear()
        known = self._views.get(id(tensor))
        return None if known is None else known[1]

    def forget_views(self) -> None:
        """Forget the views, which keep what they are views of."""
        self._views.clear()
        self._noted.clear()

    def note_view(self, tensor: Tensor, operand: Tensor, plan: Plan | None, result: int = 0) -> None:
        """Note that a tensor is a view of an operand."""
        self._noted.append((tensor, operand, plan, result, modes.is_grad_enabled()))

    def renew(self, tensor: Tensor) -> None:
        """Let a stale view, of what was written to since it was made, have its present value and history."""
        if not self.has_writes:
            return
        if isinstance(tensor, Noticed):
            self.renew(tensor.origin)
            tensor.follow()
            return
        view = self.view_of(tensor)
        if view is None or raw_data(view.root) is view.data:
            return
        self.renew(view.parent)
        new = self._again(view)
        if tensor.__class__ is Tensor:
            tensor.__class__ = Traced
        set_data(tensor, raw_data(new))
        if isinstance(tensor._node, Leaf) and new._node is None:  # it is a leaf over this memory, and stays one
            tensor._layout = new._layout.tracked
        else:
            tensor._layout, tensor._node = new._layout, new._node
        self._views[id(tensor)] = tensor, view._replace(data=raw_data(view.root))

    def renew_all(self, values: Iterable[Any]) -> None:
        """Renew the stale views among some operands."""
        for value in values:
            if isinstance(value, Tensor):
                self.renew(value)
            elif value.__class__ in (list, tuple):
                self.renew_all(value)

    def _again(self, view: View) -> Tensor:
        """Return a view of the present value of its parent."""
        if view.plan is None:
            return self.detached(view.parent)
        with modes.set_grad_enabled(view.records):
            out = compute(view.plan.op, Bound([operand_of(view.parent)], dict(view.plan.attrs), ()))[0]
        made: Tensor = out[view.result] if isinstance(out, tuple) else out
        return made

    def detached(self, tensor: Tensor) -> Tensor:
        """Return a traced tensor of the same value without a graph."""
        raise NotImplementedError

    def has_history(self, tensor: Tensor) -> bool:
        """Whether a write to a tensor is recorded in what it is a view of: not through `detach`."""
        view = self.view_of(tensor)
        while view is not None:
            if view.plan is None or not view.records:
                return False
            view = self.view_of(view.parent)
        return True

    def places_in(self, base: Tensor, tensor: Tensor) -> np.ndarray:
        """Return the place of each element of a view among those of what it is a view of, counted row by row."""
        view = self.view_of(tensor)
        if tensor is base or view is None:
            data = raw_data(tensor)
            places = np.empty_like(data, np.int64)
            places[...] = np.arange(data.size).reshape(data.shape)
            return places
        found = self.places_in(base, view.parent)
        if view.plan is None:
            return found
        out = view.plan.forward(found)
        return np.asarray(out[view.result] if isinstance(out, tuple) else out)


def operand_of(value: Any) -> Tensor:
    """Return what is written, or written to, as an operand."""
    return as_operand(value, "x[index] = value", "value", 1)


def part_at(places: np.ndarray) -> Part | None:
    """Return places as a part; None if they do not stand in equal steps."""
    check_distinct(places)
    if not places.size:
        return Part(places.shape, (0,) * places.ndim)
    first = (0,) * places.ndim
    offset, strides, found = int(places[first]), [], np.array(places[first])
    for dim, length in enumerate(places.shape):
        step = int(places[(*first[:dim], 1, *first[dim + 1 :])]) - offset if length > 1 else 0
        strides.append(step)
        found = found[..., None] + np.arange(length) * step
    return Part(places.shape, tuple(strides), offset) if np.array_equal(found, places) else None

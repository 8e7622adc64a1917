"""Writes in a function that is traced: each computes another value, and nothing in memory changes.

What was written to tensors from outside is found when the function has returned: see `tapegrad.program.effects`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_range
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.history import give_node
from tapegrad.ops.index_keys import numpy_index
from tapegrad.ops.index_put import chosen_shape, encode, index_error, index_replace
from tapegrad.ops.table.gateway import apply, raw_data
from tapegrad.ops.table.index_values import TracedIndices, index_values
from tapegrad.ops.table.op import Bound, xp
from tapegrad.ops.table.write_checks import check_distinct, check_leaf
from tapegrad.program.lists import rewritten_op
from tapegrad.program.traced import Noticed, Traced, error, set_data
from tapegrad.program.views import Views, operand_of, part_at
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import Leaf
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor, from_array


class Original(NamedTuple):
    """A tensor that is not of this trace as it was before."""

    tensor: weakref.ref[Tensor]
    kind: type[Tensor]
    data: Any
    layout: Layout
    node: Any


#: By names of views: the complex numbers of which a view has another value.
_WITH_PART: Final[Mapping[str, Callable[[Tensor, Tensor], Tensor]]] = MappingProxyType({
    "real": lambda whole, part: xp.complex(part, xp.imag(whole)),
    "imag": lambda whole, part: xp.complex(xp.real(whole), part),
    "view_as_real": lambda whole, part: xp.view_as_complex(part),
})  # fmt: skip


class Writes(Views):
    """Follows writes.

    Attributes
    ----------
    originals : dict
        Tensors that are not of this trace and were written to, by their identity.
    """

    def __init__(self) -> None:
        super().__init__()
        self.originals: dict[int, Original] = {}

    def is_own(self, tensor: Tensor) -> bool:
        """Whether a tensor is a value of this trace, and none that it took from outside."""
        raise NotImplementedError

    # --- writes ----------------------------------------------------------------------------------------------------

    def follows_write(self, *values: Any) -> bool:
        """Every write is followed: see `tapegrad.ops.table.write_checks.follower`."""
        return True

    def write(self, target: Tensor, key: Any, value: Any, write: Any = None) -> None:
        """Write a value at an index of a tensor."""
        if isinstance(value, (list, tuple)):
            value = np.asarray(value)
        target = target.origin if target.__class__ is Noticed else target
        self.renew_all((target, value))
        operand = self._fitting(target, value)
        enabled, view = modes.is_grad_enabled(), self.view_of(target)
        if enabled and view is not None and view.plan is not None and not view.records:
            raise RuntimeError(errors.UNRECORDED_VIEW)
        if enabled and (target._node is not None or operand._node is not None):
            check_leaf(target)
            if hasattr(target, "_part_of"):
                raise errors.part_written(*target._part_of)
            if view is not None and isinstance(view.root._node, Leaf) and self.has_history(target):
                raise RuntimeError(errors.LEAF_VIEW_IN_PLACE)
        with modes.set_grad_enabled(enabled and self.has_history(target)):
            self._rebind(*self._written(target, key, operand))

    def overwrite(self, target: Tensor, value: Any) -> None:
        """Write a value to all of a tensor, and record nothing."""
        with modes.no_grad():
            self.write(target, Ellipsis, value)

    def replaced(self, target: Tensor, value: Tensor) -> None:
        """Let a tensor have other data, as ``target.data = value`` does: a copy, as memory is no part of a program."""
        if value.shape != target.shape or value.dtype != target.dtype:
            raise error("its data are replaced by some of another shape or dtype; make another tensor")
        self.overwrite(target.detach(), value)

    def reshaped(self, name: str) -> None:
        """Refuse to give a tensor another shape."""
        raise error(f"{name}() gives it another shape in place; write x = x.{name[:-1]}(...)")

    def _fitting(self, target: Tensor, value: Any) -> Tensor:
        """Return a value as a tensor of the dtype that it is written to."""
        dtype = target.dtype
        if isinstance(value, (bool, int, float, complex)):
            check_range(value, dtype)
            value = np.array(value).astype(dtype)
        operand = operand_of(value)
        if operand.dtype != dtype:
            if operand.dtype.kind == "c" and dtype.kind != "c":
                raise RuntimeError("complex numbers cannot be written to real ones; write their real part")
            operand = xp.cast(operand, dtype)
        return operand

    def _written(self, target: Tensor, key: Any, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return what owns the memory of a tensor, and the new value of that."""
        view = self.view_of(target)
        # The history goes on where numbers without one are written: the slopes of what stood there are 0.
        goes_on = modes.is_grad_enabled() and target._node is not None and value._node is None
        is_whole = key is Ellipsis and not goes_on
        if is_whole and view is None:
            return target, self._stretched(target, value)
        mask = _mask_of(target, key)
        if mask is not None and value._layout.size == 1:
            chosen = xp.where(mask, xp.reshape(value, ()), target)
            return self._written(target, Ellipsis, chosen)
        keys, arrays = encode(target, key)
        base = self._base_of(target)
        try:
            if base is target:
                put = self._stretched(target, value) if is_whole else self._put(target, value, arrays, keys)
                return self._with_part(target, put)
            places: Any = self.places_in(base, target)
            if any(isinstance(own, TracedIndices) for own in arrays):  # so are the places
                places = index_values(xp.index_gather(from_array(places), arrays, keys))
            else:
                places = places[numpy_index(keys, arrays)]
        except (IndexError, ValueError) as reason:
            raise index_error(reason, target, raw_data(value), arrays, keys) from None
        value = _without_leading(value, places.ndim)
        part = part_at(places) if not arrays else None
        if part is not None:
            if value.shape != part.shape:
                value = xp.expand(value, part.shape)
            return self._with_part(base, xp.strided_put(base, value, part))
        flat = index_replace(xp.reshape(base, (-1,)), value, (places,), (ARRAY,))
        return self._with_part(base, xp.reshape(flat, base.shape))

    def _base_of(self, target: Tensor) -> Tensor:
        """Return the tensor whose elements a view has: what is no view, or real or imaginary parts."""
        view = self.view_of(target)
        while view is not None and view.parent.dtype == target.dtype:
            target = view.parent
            view = self.view_of(target)
        return target

    def _with_part(self, base: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return what owns the memory of a base, and the value of that in which the base has another one."""
        view = self.view_of(base)
        if view is None:
            return base, value
        whole = _WITH_PART.get(view.plan.op.name if view.plan is not None else "")
        if whole is None:
            raise error("a write to its memory by another dtype is not traced; compute the numbers anew")
        return self._written(view.parent, Ellipsis, whole(view.parent, value))

    def _put(self, target: Tensor, value: Tensor, arrays: Any, keys: Any) -> Tensor:
        shape = chosen_shape(target.shape, arrays, keys)
        value = _without_leading(value, len(shape))
        if np.broadcast_shapes(value.shape, shape) != shape:
            raise ValueError("shape mismatch")
        return index_replace(target, value, arrays, keys)

    def _stretched(self, target: Tensor, value: Tensor) -> Tensor:
        check_distinct(raw_data(target))
        value = _without_leading(value, target.ndim)
        if value.shape != target.shape:
            stretched: Tensor = xp.expand(value, target.shape)
            return stretched
        # Nobody else is to have the new node; a value without one may stand for several tensors.
        is_shared = value._node is None or not modes.is_grad_enabled()
        copy: Tensor = value if is_shared else xp.clone(value)
        return copy

    def _rebind(self, root: Any, value: Tensor) -> None:
        """Let a tensor have another value."""
        self.has_writes = True
        self.let_serve()
        known = self.originals.get(id(root))
        if (known is None or known.tensor() is not root) and not self.is_own(root):
            self.originals[id(root)] = Original(
                weakref.ref(root), root.__class__, raw_data(root), root._layout, root._node
            )
            if root.__class__ is Tensor:
                root.__class__ = Traced
        if isinstance(root._node, list) and (value._node is None or not modes.is_grad_enabled()):
            with modes.enable_grad():
                value = apply(rewritten_op, Bound([operand_of(root), value.detach()], {}, ()))
                give_node(root, value._layout, value._node)
        data = self._like(np.asarray(raw_data(root)), value)
        layout = layout_of(data)
        set_data(root, data)
        if value._node is not None and modes.is_grad_enabled():
            give_node(root, layout.tracked, value._node)
        else:
            root._layout = layout.tracked if root._node is not None else layout

    def _like(self, before: np.ndarray, value: Tensor) -> np.ndarray:
        """Return an array that stands for a value and has the strides of another one: views depend on them."""
        number, data = self.number_of(value), raw_data(value)
        if isinstance(data, np.ndarray) and (data.strides == before.strides or data.size < 2):
            return data
        array = np.empty_like(before)
        array[...] = self.value_of(number)
        self.bind(array, number)
        return array

    def restore(self) -> None:
        """Let all tensors from outside be as they were before the trace."""
        for own in self.originals.values():
            tensor: Any = own.tensor()
            if tensor is not None:
                tensor.__class__ = own.kind
                tensor._data, tensor._layout, tensor._node = own.data, own.layout, own.node


def _mask_of(target: Tensor, key: Any) -> Tensor | None:
    """Return a key that is one mask, of the first dimensions, in a shape that broadcasts; None if it is no such key."""
    if not isinstance(key, (Tensor, np.ndarray)) or key.dtype != np.bool_:
        return None
    shape = tuple(key.shape)
    if not shape or shape != target.shape[: len(shape)]:
        return None
    mask: Tensor = xp.reshape(operand_of(key), (*shape, *[1] * (target.ndim - len(shape))))
    return mask


def _without_leading(value: Tensor, ndim: int) -> Tensor:
    """Return a value without the leading dimensions that are too many, as NumPy does."""
    if value.ndim <= ndim or any(length != 1 for length in value.shape[: value.ndim - ndim]):
        return value
    rest: Tensor = xp.reshape(value, value.shape[value.ndim - ndim :])
    return rest

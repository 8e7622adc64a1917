"""`x[index] = value`: compiled code finds the plan of a write by layouts and index, once it is known.

The forward of such a plan writes, and returns the array that it wrote to. The tensor then takes the node of the result.
Views, values that are views, numbers for integers, leaves and quotients go through `write_at_index`, which looks at
each write anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_range
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops import plain_writes
from tapegrad.ops.history import is_part, keep_quotient, part_of, rewrite_at
from tapegrad.ops.index_keys import Key, index_without_plan, numpy_index, simple_index
from tapegrad.ops.index_put import attributes_of, basic_part, encode, index_error, index_put_op, write_at
from tapegrad.ops.mask_put import MASKED, mask_put_op, whole_mask
from tapegrad.ops.parts import strided_put_op
from tapegrad.ops.table.gateway import as_operand, names_of_arrays, raw_data, shape_of
from tapegrad.ops.table.op import Op
from tapegrad.ops.table.write_checks import check_distinct, check_leaf, follower, records, wrapped
from tapegrad.recording.keys import TAKES_ARRAYS
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import PlanCache, compiled
from tapegrad.recording.writes import written
from tapegrad.tape.entries import PLAN_OBJECT, Leaf
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tape.views import UNRECORDED, base_of
from tapegrad.tensor import Tensor

_plans = PlanCache()
_SIMPLE: Final = frozenset({int, slice, type(None)})


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write at an index, as ``x[index] = value`` does; recorded where a gradient is wanted.

    Raises
    ------
    IndexError
        If the index does not fit the shape.
    RuntimeError
        If the value does not broadcast to what is chosen, or the tensor is a leaf that requires grad.
    """
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    node = self._node
    is_result = node is None or (node.__class__ is list and node[PLAN_OBJECT].name != "div")  # see `keep_quotient`
    wraps = _wraps_around(value, self._layout.dtype)
    if is_result and not wraps:
        owner = plain_writes.owner_of(self) if _has_base(self) else self
        if (
            owner is not None
            and (owner is self or self._layout.contiguous)
            and not (_has_base(value) and base_of(value) is owner)
        ):
            result: Tensor | None = _plans.call(self, value, key)  # None if Python wrote
            if result is not None and result._node is not None:
                plain_writes.give_history(self, owner, result)
            return
    if _is_itself(self, key, value):  # what the write to the part did is in the history of both
        if modes.is_grad_enabled():
            check_leaf(self)
        return
    if records(self) and isinstance(node, Leaf):
        raise RuntimeError(errors.LEAF_VIEW_IN_PLACE)
    if not _written_to_constant(self, value, key, has_plan=False):
        write_at_index(self, key, value, "x[index] = value")


def _is_itself(self: Tensor, key: Any, value: Any) -> bool:
    """Whether ``x[key] += y`` writes a part back to its place. A simple key says so without an encoding."""
    items = key if key.__class__ is tuple else (key,)
    if modes.mode.value & modes.INTERCEPTORS or any(item.__class__ not in _SIMPLE for item in items):
        return False
    try:
        return is_part(self, self._array()[(*items, ...)], value)  # with the dots never a scalar
    except IndexError:
        return False


def _has_base(value: Any) -> bool:
    """Whether a value is a view; to ask a tensor for a base that it does not have takes 0.4 µs."""
    return (
        isinstance(value, Tensor) and getattr(raw_data(value), "base", None) is not None and hasattr(value, "_viewed")
    )


def _wraps_around(value: Any, dtype: np.dtype) -> bool:
    """Whether a Python number is written to integers, which it may have to wrap around for."""
    return dtype.kind in "iu" and isinstance(value, (int, float))


def _set_new(self: Tensor, value: Any, key: Any) -> None:
    if _written_to_constant(self, value, key, has_plan=value.__class__ is not bool):
        return
    write_at_index(self, key, value, "x[index] = value")


def _written_to_constant(self: Tensor, value: Any, key: Any, *, has_plan: bool) -> bool:
    """Write to a part of a tensor, all without history, and make no plan for that; False if there is more to it.

    Where writes like this one may have a plan, it is for keys that compiled code does not find, or very many of them.
    """
    layout, is_constant = self._layout, value.__class__ is Tensor and value._node is None
    if (
        modes.mode.value & modes.INTERCEPTORS
        or self._node is not None
        or layout.__class__ is not Layout
        or (_has_base(self) and self._viewed._node is not None)
        or (_has_base(self) and (self._viewed is UNRECORDED[0] or hasattr(self, "_part_of")))
        or (not is_constant and isinstance(value, Tensor))
        or not _is_of(value._data if is_constant else value, layout.dtype)
        or (index := _index_without_plan(self, value, key, has_plan)) is None
    ):
        return False
    array = self._array()
    check_distinct(array)
    if is_constant and not value._layout.size and value._layout.ndim > 1 and simple_index(key) is None:
        return False  # NumPy writes no elements of any shape to where a mask is true
    try:
        array[index] = value._data if is_constant else value
    except (IndexError, ValueError, TypeError):
        return False  # whose errors the general way words; and to where a mask is true NumPy writes vectors only
    written.note(array)
    return True


def _is_of(value: Any, dtype: np.dtype) -> bool:
    """Whether a value is of a dtype, or a number that this dtype holds as it is."""
    kind = value.__class__
    if kind is bool:
        return dtype.kind in "bfi"
    if kind is float or kind is int:
        return dtype.kind == "f" or (kind is int and dtype.kind == "i" and -128 <= value < 128)
    return getattr(value, "dtype", None) is dtype


def _index_without_plan(self: Tensor, value: Any, key: Any, has_plan: bool) -> Any:
    """Return NumPy's index for `_written_to_constant`; None of keys that it leaves to others."""
    index = simple_index(key)
    if index is not None:
        return index if not has_plan or _plans.is_crowded() else None
    # Where a mask as large as the tensor is true, `mask_put_op` writes a number.
    is_number = value.__class__ is not Tensor or not value._layout.ndim
    return index_without_plan(self, key, mixed=not has_plan, whole_masks=not (has_plan and is_number))


_plans.connect("setitem", 2, _set_new, 1, TAKES_ARRAYS)


def write_at_index(self: Tensor, key: Any, value: Any, call: str) -> None:
    """Write at an index, and record it where a gradient is wanted; `call` is how errors name this."""
    tangents = follower(self, value) if modes.mode.value & modes.INTERCEPTORS else None
    if tangents is not None:
        tangents.write(self, key, value, functools.partial(write_at_index, call=call))
        return
    array = self._array()
    mask = None if len(shape_of(value)) else whole_mask(self, key)
    keys, index_arrays = encode(self, key) if mask is None else (MASKED, (mask,))
    if _wraps_around(value, array.dtype):
        check_range(value, array.dtype)
        value = wrapped(value, array.dtype)
    check_distinct(array)
    try:
        part = None if index_arrays else basic_part(array, keys)
        if part is not None and is_part(self, part, value):
            if modes.is_grad_enabled():
                check_leaf(self)
            return  # what the write to the part did is in the history of both
        operand = as_operand(value, call, "value", 2)
        recorded = records(self, operand)
        if recorded:
            check_leaf(self)
        keep_quotient(self)
        fits = mask is not None or operand._layout.ndim <= _ndim_of(array, part, index_arrays, keys)
        owner = self if base_of(self) is None else plain_writes.owner_of(self)
        is_plain = array.flags.c_contiguous or (part is None and owner is self)
        if owner is not None and fits and is_plain and base_of(operand) is not owner:
            _write_by_plan(self, owner, operand, part, index_arrays, keys, (self, value, key))
            return
        if mask is not None:  # of a view, or of what has one: its history knows places
            keys, index_arrays = encode(self, key)
        write_at(array, index_arrays, keys, operand._data)
        written.note(array)
        if recorded and self._layout.floating:
            rewrite_at(self, operand, part, index_arrays, keys)
    except (IndexError, ValueError) as error:
        raise index_error(error, self, getattr(value, "_data", value), index_arrays, keys) from None


def _ndim_of(array: np.ndarray, part: np.ndarray | None, index_arrays: tuple[np.ndarray, ...], keys: Key) -> int:
    """Return how many dimensions the chosen elements have; -1 if a truth value is among the keys."""
    if part is not None:
        return part.ndim
    if not index_arrays or any(item.__class__ is str and item != ARRAY for item in keys):
        return -1
    return index_arrays[0].ndim + array.ndim - len(index_arrays) + keys.count(None)


def _write_by_plan(
    self: Tensor,
    owner: Tensor,
    value: Tensor,
    part: np.ndarray | None,
    index_arrays: tuple[np.ndarray, ...],
    keys: Key,
    args: tuple[Any, ...],
) -> None:
    """Write by a plan. A plan that is met again goes into the table of compiled code, for calls with such `args`."""
    array, enabled = self._array(), modes.is_grad_enabled()
    layouts = tuple([tensor._layout if enabled else tensor._layout.plain for tensor in (self, value)])
    plan_key = (layouts, keys, tuple([own.shape for own in index_arrays]))
    plan = _plans.get(plan_key)
    if plan is None:
        op, attrs, writer = _op_of(array, part, keys, index_arrays)
        writer(array, value._data, *index_arrays)
        plan = Plan(op, layouts, attrs, writer, layout_of(array), names_of_arrays(len(index_arrays)))
        _plans.remember(plan_key, plan)
    else:
        plan.forward(array, value._data, *index_arrays)
        _plans.insert(plan, args, {}, (self, value), index_arrays)
    if plan.records:
        if plan.op is mask_put_op:  # the entry keeps the mask, and the user may change it
            index_arrays = (index_arrays[0].copy(),)
        plain_writes.give_history(self, owner, compiled.finish(plan, array, self, value, *index_arrays))


def _op_of(
    array: np.ndarray, part: np.ndarray | None, keys: Key, index_arrays: tuple[np.ndarray, ...]
) -> tuple[Op, dict[str, Any], Callable[..., np.ndarray]]:
    """Return the op that records a write, its attributes, and what writes a value to an array, and notes it."""

    def write(array: np.ndarray, value: Any, *index_arrays: np.ndarray) -> np.ndarray:
        array[numpy_index(keys, index_arrays)] = value
        written.note(array)
        return array

    def write_by_array(array: np.ndarray, value: Any, indices: np.ndarray) -> np.ndarray:
        array[indices] = value
        written.note(array)
        return array

    def write_by_mask(array: np.ndarray, value: Any, mask: np.ndarray) -> np.ndarray:
        np.putmask(array, mask, value)  # half the time of array[mask] = value
        written.note(array)
        return array

    if part is not None:
        index = numpy_index(keys)

        def write_part(array: np.ndarray, value: Any) -> np.ndarray:
            array[index] = value
            written.note(array)
            return array

        return strided_put_op, {"part": part_of(array, part)}, write_part
    if keys is MASKED:
        return mask_put_op, {}, write_by_mask
    return index_put_op, attributes_of(keys, index_arrays), write_by_array if keys == (ARRAY,) else write

"""The short way of recorded writes: to the whole of a result, or of a view of one.

Nearly every recorded write is of this kind: ``y[i].mul_(v)``, ``y += v``, ``y[i].zero_()``. What is asked here in a few
loads takes the general way several microseconds. It serves whatever else there is, and raises all errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.ops.history import give_node, put_part
from tapegrad.ops.parts import strided_put_op
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Op
from tapegrad.recording.plan_cache import compiled
from tapegrad.recording.steps import address_of_array
from tapegrad.recording.writes import written
from tapegrad.tape import views
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT
from tapegrad.tape.hooks import Hooks
from tapegrad.tape.layout import FLOAT, INTEGER, Layout
from tapegrad.tensor import Tensor

_NUMBERS: Final = frozenset({int, float})
_SIMPLE: Final = frozenset({int, float, str, type(None)})  # arguments that share no memory
_young = dict.get  # of a `PlanCache`, in which nearly all plans are young
_OTHER_WAYS: Final = modes.INTERCEPTORS | modes.DISABLED


def owner_of(target: Tensor) -> Tensor | None:
    """Return the tensor that gets a new entry by a write: the target, or its base; None if the short way serves not."""
    if modes.mode.value & _OTHER_WAYS or target._node.__class__ is not list:
        return None  # before a look at data, which is a guard where the target is traced
    layout, array = target._layout, target._data
    if (
        array.__class__ is not np.ndarray
        or layout.__class__ is not Layout
        or (not layout.contiguous and 0 in layout.strides)  # which `expand` has stretched
    ):
        return None
    owner = target
    if array.base is not None and hasattr(target, "_viewed"):
        owner = target._viewed
        memory, data = array.base, owner._data
        if not (memory is data or memory is data.base) or hasattr(target, "_part_of"):
            return None
        if target._node[-1].__class__ is Hooks:  # see `node_before_write`
            return None
    node = owner._node
    if node.__class__ is not list or node[PLAN_OBJECT].name == "div":  # see `keep_quotient`  # type: ignore[index]
        return None
    return owner


def _is_apart(value: Any, array: np.ndarray) -> bool:
    """Whether an argument is a number, or a tensor or array that shares no memory with an array."""
    kind = value.__class__
    if kind is not Tensor and kind is not np.ndarray:
        return kind in _SIMPLE
    data = value._data if kind is Tensor else value
    if data.__class__ is not np.ndarray:
        return True
    if data.base is None:
        return data is not array and data is not array.base
    return not np.may_share_memory(data, array)


def _fits(value: Tensor, target: Tensor) -> bool:
    """Whether a value has the shape and dtype of what it is written to."""
    layout, other = target._layout, value._layout
    return other is layout or (other.shape == layout.shape and other.dtype is layout.dtype)


def writer(function: Callable[..., Tensor]) -> Callable[..., bool]:
    """Return what lets a tensor be ``function(target, *others)``; that returns False if the short way does not serve.

    Then the function may have been called in vain, which does no harm.
    """
    op: Op | None = getattr(function, "op", None)  # its entry alone can have saved what is written over
    if op is None or not op.is_elementwise:
        return lambda target, *others, **kwargs: False

    def write(target: Tensor, *others: Any, **kwargs: Any) -> bool:
        owner = owner_of(target)
        if owner is None:
            return False
        array = target._data
        for own in (*others, *kwargs.values()) if kwargs else others:
            if not _is_apart(own, array):
                return False
        result = function(target, *others, **kwargs)
        node = result._node
        if not isinstance(node, list):  # it has no derivative
            return False
        plan = node[PLAN_OBJECT]
        if plan.op is not op or node[FIRST_OPERAND] is not target._node or not _fits(result, target):
            return False
        if plan.save:
            for place in range(FIRST_OPERAND + plan.arity, len(node)):
                if node[place] is array:
                    if not target._layout.contiguous:  # a copy has other strides than the plan says
                        return False
                    node[place] = array.copy()
        _take(target, owner, array, result)
        return True

    return write


def copy(target: Tensor, source: Any) -> bool:
    """Write a number, or a tensor of the same shape and dtype, to a view; return False if this way does not serve."""
    owner = owner_of(target)
    if owner is None or owner is target:
        return False
    array, layout = target._data, target._layout
    if source.__class__ in _NUMBERS and layout.dtype.kind == "f":
        value = constant(source, FLOAT if source.__class__ is float else INTEGER)
    elif source.__class__ is Tensor and _fits(source, target) and _is_apart(source, array):
        value = views.renewed(source)
    else:
        return False
    _take(target, owner, array, value)
    return True


def _take(target: Tensor, owner: Tensor, array: np.ndarray, value: Tensor) -> None:
    """Write a value to the memory of a tensor, and let the owner have the history of that."""
    written.note(array)
    array[...] = value._data
    give_history(target, owner, value)


def give_history(target: Tensor, owner: Tensor, value: Tensor) -> None:
    """Let the owner of a tensor's memory have the history of a value that was written to that."""
    if owner is not target:
        value = _put(owner, target, value)
    give_node(owner, owner._layout.tracked, value._node)
    if not modes.mode.value & modes.WRITES_NOTED:
        modes.note_write()


def _put(base: Tensor, view: Tensor, value: Tensor) -> Tensor:
    """Record that a value was written to a view, and return the base's new value.

    A loop writes to the same views again and again, so their plans are known by layouts and offset.
    """
    plans, array, data = strided_put_op.plans, base._data, view._data
    key = base._layout, value._layout, view._layout, address_of_array(data) - address_of_array(array)
    plan = _young(plans, key) or plans.get(key)
    if plan is not None:
        return compiled.finish(plan, array, base, value)
    put = put_part(base, data, value)
    if put._node[PLAN_OBJECT].op is strided_put_op:  # type: ignore[index]
        plans.remember(key, put._node[PLAN_OBJECT])  # type: ignore[index]
    return put

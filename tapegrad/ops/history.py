"""The history of memory that was written to in place: a new entry for its base, and for each view when it is next used.

A recorded write computes its result elsewhere, copies it into memory, and calls `rewrite`. For a view the base gets an
entry that puts the part into the base's old value, PyTorch's CopySlices; `renew` makes the view a part of the base
again. The values are in memory already, so neither computes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.index_keys import Key, numpy_index
from tapegrad.ops.index_put import attributes_of, index_put_op, index_replace
from tapegrad.ops.indexing import index_gather
from tapegrad.ops.movement import reshape
from tapegrad.ops.parts import Part, strided_part, strided_part_op, strided_put_op
from tapegrad.ops.table.gateway import constant, names_of_arrays
from tapegrad.ops.table.op import Op, xp
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import compiled
from tapegrad.recording.steps import address_of_array
from tapegrad.recording.writes import written
from tapegrad.tape import views
from tapegrad.tape.entries import PLAN_OBJECT, Leaf, TapeNode
from tapegrad.tape.hooks import Hooks, hooks_of, retains_grad
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor


def record_written(
    op: Op,
    operands: Sequence[Tensor],
    attrs: dict[str, Any],
    out: np.ndarray,
    index_arrays: tuple[np.ndarray, ...] = (),
) -> Tensor:
    """Record an op whose result is in memory already, and return it."""
    layouts, result = tuple(tensor._layout for tensor in operands), layout_of(out)
    key = ("written", layouts, result, tuple(attrs.values()), tuple((own.shape, own.strides) for own in index_arrays))
    plan = op.plans.get(key)
    if plan is None:
        plan = Plan(op, layouts, attrs, op.forward, result, names_of_arrays(len(index_arrays)))
        op.plans.remember(key, plan)
    return compiled.finish(plan, out, *operands, *index_arrays)


# Before and after a write -------------------------------------------------------------------------------------------


def keep_quotient(target: Tensor) -> None:
    """Let the entry of a quotient keep a copy, as its value is about to be written over.

    PyTorch saves the operands of a quotient, so that a result of ``a / b`` may be written to. We save the quotient.
    """
    node = target._node
    if node.__class__ is not list and not hasattr(target, "_viewed"):
        return  # no result, and no view of one: what optimizers and averages of weights write to
    node = views.root_of(target)._node
    if node.__class__ is list and node[PLAN_OBJECT].name == "div" and "out" in node[PLAN_OBJECT].saved:
        place = node[PLAN_OBJECT].position("out")
        if place < len(node) and isinstance(node[place], (np.ndarray, np.generic)):
            node[place] = node[place].copy(order="K")


def before_write(target: Tensor) -> None:
    """Prepare a write to the whole of a tensor, and note it."""
    keep_quotient(target)
    written.note(target._array())


def is_part(target: Tensor, part: np.ndarray, value: Any) -> bool:
    """Whether a value is the very part of a tensor that it is to be written to, as it is after ``x[index] += y``."""
    base = views.base_of(value) if isinstance(value, Tensor) else None
    if base is None or base is not views.root_of(target):
        return False
    other = value._array()
    return (
        part.shape == other.shape
        and part.strides == other.strides
        and part.dtype == other.dtype
        and address_of_array(part) == address_of_array(other)
    )


def rewrite(target: Tensor, result: Tensor) -> None:
    """Let a tensor, and what it is a view of, have the history of a result that was written to its memory."""
    base = views.base_of(target)
    if base is None:
        _give(target, result._node)
    else:
        _give(base, put_part(base, target._array(), result)._node)
    if not modes.mode.value & modes.WRITES_NOTED:
        modes.note_write()


def node_before_write(target: Tensor) -> TapeNode | Leaf | None:
    """Return the node of what is about to be written over.

    Of a view that has hooks it is a new one, a part of the base: as in PyTorch, a write to a view is one to its base,
    and hooks of the view see what its other uses send back.
    """
    node = target._node
    base = views.base_of(target) if node.__class__ is list and type(node[-1]) is Hooks else None
    return node if base is None else _part_again(target, base)._node


def rewrite_at(
    target: Tensor, value: Tensor, part: np.ndarray | None, index_arrays: tuple[np.ndarray, ...], key: Key
) -> None:
    """Record that a value was written to a part of a tensor, or where index arrays say."""
    ndim = part.ndim if part is not None else np.empty(target.shape, bool)[numpy_index(key, index_arrays)].ndim
    while value._layout.ndim > ndim and value.shape[0] == 1:  # NumPy drops leading dimensions that are too many
        value = index_gather(value, (), (0,))
    if part is None:
        attrs = attributes_of(key, index_arrays)
        before = constant(target._data, target._layout)
        before._node = node_before_write(target)
        rewrite(target, record_written(index_put_op, (before, value), attrs, target._array(), index_arrays))
    else:
        base = views.root_of(target)
        _give(base, put_part(base, part, value)._node)
        modes.note_write()


def _give(tensor: Tensor, node: TapeNode | Leaf | None) -> None:
    """Give a tensor its newest node."""
    tensor._array()  # which gives an array's layout to what held a NumPy scalar
    layout = tensor._layout
    give_node(tensor, layout.tracked if node is not None else layout.plain, node)


def give_node(tensor: Tensor, layout: Layout, node: TapeNode | Leaf | None) -> None:
    """Give a tensor a node and the layout that goes with it; `retain_grad` moves to the node."""
    before = tensor._node
    retained = type(before) is list and type(before[-1]) is Hooks and retains_grad(tensor)
    tensor._layout, tensor._node = layout, node
    if retained and isinstance(before, list):
        hooks_of(before).retained = None
        tensor.retain_grad()


def renew(view: Tensor) -> None:
    """Give a stale view a new history: it is a part of its base."""
    base = views.base_of(view)
    if base is None:
        return
    function, number, is_custom = (*getattr(view, "_part_of", ("", 0)), False)[:3]
    if is_custom:
        raise errors.part_written(function, number, is_custom, of_base=True)
    if modes.is_grad_enabled():
        _renew(view, base)
    else:
        with modes.enable_grad():
            _renew(view, base)


def _renew(view: Tensor, base: Tensor) -> None:
    give_node(view, view._layout.tracked, _part_again(view, base)._node)


def _part_again(view: Tensor, base: Tensor) -> Tensor:
    data = view._array()
    if 0 not in data.strides:
        return _take(base, data)
    # What `expand` stretched is a part that is stretched again.
    stretched = [step == 0 and length > 1 for step, length in zip(data.strides, data.shape, strict=True)]
    part = _take(base, data[(*(slice(0, 1) if own else slice(None) for own in stretched), ...)])
    return expand(part, data.shape) if any(stretched) else part


# Parts ---------------------------------------------------------------------------------------------------------------


def _of_part(op: Op, operands: tuple[Tensor, ...], data: np.ndarray, out: np.ndarray) -> Tensor | None:
    """Record an op on the part of the first operand that a view of it is; None if the operand is not contiguous.

    A loop writes to the same parts again and again: they are known by their memory, so that none is described anew.
    """
    array = operands[0]._array()
    offset = address_of_array(data) - address_of_array(array)
    # Of complex numbers it may be the real or the imaginary part, which the size of its elements says.
    key = *[own._layout for own in operands], data.shape, data.strides, data.itemsize, offset
    plan = op.plans.get(key)
    if plan is not None:
        return compiled.finish(plan, out, *operands)
    part = part_of(array, data)
    if part is None:
        return None
    layouts = tuple([own._layout for own in operands])
    plan = Plan(op, layouts, {"part": part}, op.forward, layout_of(out))
    op.plans.remember(key, plan)
    return compiled.finish(plan, out, *operands)


def _take(base: Tensor, data: np.ndarray) -> Tensor:
    taken = _of_part(strided_part_op, (base,), data, data)
    if taken is not None:
        return taken
    numbers = index_gather(reshape(base, -1), (_places_in(base._array(), data),), (ARRAY,))
    return numbers if data.dtype == base.dtype else _take(numbers, _same_half(numbers, data, base))


def same_part(tensor: Tensor, base: Tensor, view: Tensor) -> Tensor | None:
    """Return the part of a tensor that a view is of its base; None if that is no view of the tensor."""
    part = part_of(base._array(), view._array())
    return None if part is None or not tensor._layout.contiguous else strided_part(tensor, part)


xp.same_part = same_part


def put_part(base: Tensor, data: np.ndarray, value: Tensor) -> Tensor:
    """Record that a value was written to the part of a base that a view shows, and return the base's new value."""
    put = _of_part(strided_put_op, (base, value), data, base._array())
    if put is not None:
        return put
    places = _places_in(base._array(), data)
    if data.dtype != base.dtype:  # the complex numbers with new real or imaginary parts
        numbers = index_gather(reshape(base, -1), (places,), (ARRAY,))
        value = put_part(numbers, _same_half(numbers, data, base), value)
    return reshape(index_replace(reshape(base, -1), value, (places,), (ARRAY,)), base.shape)


def _same_half(numbers: Tensor, data: np.ndarray, base: Tensor) -> np.ndarray:
    """Return the real or the imaginary part of complex numbers, as `data` is of the base."""
    array, offset = numbers._array(), data.ctypes.data - base._array().ctypes.data
    return array.imag if offset % array.itemsize else array.real


def part_of(base: np.ndarray, data: np.ndarray) -> Part | None:
    """Return which part of a base a view of it is; None if the base is not contiguous."""
    if data.dtype.kind == "c" and base.dtype.kind != "c":
        raise RuntimeError(
            "real numbers that are seen as complex ones by view_as_complex() would be written to in place, which is "
            "not recorded. Write to a copy of them."
        )
    if not base.flags.c_contiguous:
        return None
    size, of_real = data.itemsize, data.dtype != base.dtype
    offset = (address_of_array(data) - address_of_array(base)) // size if data.size else 0
    strides = [step // size if length > 1 else 0 for step, length in zip(data.strides, data.shape, strict=True)]
    return Part(data.shape, tuple(strides), offset, of_real)


def _places_in(base: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return the place of each element of a view, or of its complex number, in a base that is not contiguous."""
    first, last = np.lib.array_utils.byte_bounds(base)
    places = np.full((last - first) // base.itemsize, -1)

    def seen(array: np.ndarray) -> np.ndarray:
        step = places.itemsize
        offset = (array.ctypes.data - first) // base.itemsize * step
        strides = [own // base.itemsize * step for own in array.strides]
        return np.ndarray(array.shape, places.dtype, places, offset, strides)

    seen(base)[...] = np.arange(base.size).reshape(base.shape)
    return seen(data).copy()

"""Ops: indexing with integers, slices, arrays and masks, after NumPy's rules, and its adjoint; see `index_keys`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.forward import chosen
from tapegrad.kernels.indexed import ARRAY, gather_by_arrays_step, is_indexed_by_kernel, scatter_step
from tapegrad.kernels.structural import gather_step, view_step
from tapegrad.ops.index_keys import (
    COPIES,
    FLAGS,
    WHOLE,
    Key,
    in_words_of_torch,
    index_arrays_of,
    index_without_plan,
    items_of,
    key_of,
    numpy_index,
    plain_items,
    simple_index,
)
from tapegrad.ops.table.gateway import apply, as_operand, call_intercepted, compute, connect, constant
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.keys import MAKES_VIEWS, TAKES_ARRAYS
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import with_known
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor


def _view(x: np.ndarray, key: Key) -> Any:
    return x[numpy_index(key)]


def _view_step(plan: Plan, operand: int) -> Step | None:
    key = plan.attrs["key"]
    return None if any(item in COPIES for item in key) else view_step(plan, lambda x: _view(x, key))


def _node_name(attrs: Mapping[str, Any]) -> str:
    """Return PyTorch's name of the view that the last item of an index makes, as it takes them one by one."""
    for item in reversed(attrs["key"]):
        if item is None:
            return "UnsqueezeBackward0"
        if item.__class__ is int:
            return "SelectBackward0"
        if item.__class__ is tuple and item != WHOLE:
            return "SliceBackward0"
        if item in COPIES:
            return "IndexBackward0"
    return "SliceBackward0" if WHOLE in attrs["key"] else "AliasBackward0"


_getitem = Op(
    name="getitem",
    names_node=_node_name,
    operands=("x",),
    forward=_view,
    vjp=(lambda ct, key, x_shape: index_scatter_add(ct, (), key, x_shape),),
    family="movement",
    linear=True,
    step=_view_step,
    attrs=("key",),
    prepare_forward=lambda layouts, attrs: operator.itemgetter(numpy_index(attrs["key"])),
    oracle=lambda x, key: x[key],
    samples=(
        Sample(((3,),), {"key": 1}),
        Sample(((3,),), {"key": -1}),
        Sample(((),), {"key": ()}),
        Sample(((2, 3),), {"key": (slice(None), 0)}),
        Sample(((5, 3),), {"key": slice(1, None, 2)}),
        Sample(((5,),), {"key": slice(None, None, -2)}),
        Sample(((2, 3, 4),), {"key": (Ellipsis, slice(3, 0, -1))}),
        Sample(((2, 3),), {"key": (None, 1, None, slice(0, 2))}),
        Sample(((4,),), {"key": slice(2, 2)}),
        Sample(((3,),), {"key": True}),
        Sample(((),), {"key": np.False_}),
    ),
    errors=(
        ErrorSample(lambda: getitem(np.ones(3), 3), IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ErrorSample(lambda: getitem(np.ones(3), (0, 0)), IndexError, "too many indices for tensor of dimension 1"),
        ErrorSample(lambda: getitem(np.ones(3), 1.5), IndexError, "only integers, slices"),
    ),
)


def _choice(key: Key) -> Callable[..., Any]:
    # NumPy's quickest way for one array, which never gives a scalar.
    return operator.getitem if key == (ARRAY,) else lambda x, *index_arrays: x[numpy_index(key, index_arrays)]


index_gather_op = Op(
    name="index_gather",
    operands=("x",),
    forward=lambda x, *index_arrays, key: np.asarray(x[numpy_index(key, index_arrays)]),
    prepare_forward=lambda layouts, attrs: _choice(attrs["key"]),
    vjp=(lambda ct, index_arrays, key, x_shape: index_scatter_add(ct, index_arrays, key, x_shape),),
    family="indexing",
    linear=True,
    step=lambda plan, operand: scatter_step(plan),
    attrs=("key",),
    node_name="IndexBackward0",
    call=lambda x, key: getitem(x, key),
    oracle=lambda x, key: x[key],
    samples=(
        Sample(((4,),), {"key": np.array([0, -1, 0])}),
        Sample(((4, 3),), {"key": ([[0, 1], [3, 0]],)}),
        Sample(((4, 3),), {"key": (slice(None), [2, 0, 2])}),
        Sample(((4, 3),), {"key": (np.array([[0], [1]]), np.array([2, 2]))}),
        Sample(((2, 3, 4),), {"key": (Ellipsis, [1, 1], [0, 2], slice(None))}),
        Sample(((2, 3, 4),), {"key": ([0, 1], slice(None), [0, 3])}),
        Sample(((2, 3, 4),), {"key": (1, slice(0, 2), [0, 0, 3])}),
        Sample(((3,),), {"key": np.array([True, False, True])}),
        Sample(((2, 3),), {"key": np.array([[True, False, True], [False, True, False]])}),
        Sample(((2, 3),), {"key": (slice(None), np.array([True, False, True]))}),
        Sample(((3,),), {"key": np.array([], dtype=np.int64)}),
        Sample(((4, 3),), {"key": (slice(1, None), [2, 0, 2])}),
        Sample(((5, 4, 3),), {"key": (slice(None, None, -2), None, [[2], [0]], [1, -1])}),
    ),
    errors=(
        ErrorSample(lambda: getitem(np.ones(3), [3]), IndexError, "index 3 is out of bounds for dimension 0"),
        ErrorSample(
            lambda: getitem(np.ones(3), np.ones(2, dtype=bool)), IndexError,
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at index 0",
        ),
    ),
)  # fmt: skip


def _put_forward(x: Any, *index_arrays: np.ndarray, key: Key, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, dtype=x.dtype)
    if index_arrays:
        np.add.at(out, numpy_index(key, index_arrays), x)
    else:
        out[numpy_index(key)] = x
    return out


def _put_oracle(x: Any, index_arrays: tuple[np.ndarray, ...], key: Key, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, dtype=x.dtype)
    places = np.arange(out.size).reshape(shape)[numpy_index(key, index_arrays)]
    for place, value in zip(places.ravel(), x.ravel(), strict=True):
        out.flat[place] += value
    return out


def _taken_step(plan: Plan, operand: int) -> Step | None:
    """Return the step that reads the cotangent where it was written to."""
    key = plan.attrs["key"]
    copies = any(item in COPIES for item in key)
    return gather_by_arrays_step(plan, operand) if copies else gather_step(plan, lambda x: _view(x, key))


index_scatter_add_op = Op(
    name="index_scatter_add",
    operands=("x",),
    forward=_put_forward,
    prepare_forward=lambda layouts, attrs: chosen.added(
        layouts[0], **attrs, by_numpy=functools.partial(_put_forward, **attrs)
    ),
    vjp=(lambda ct, index_arrays, key: index_gather(ct, index_arrays, key),),
    family="indexing",
    linear=True,
    step=_taken_step,
    attrs=("key", "shape"),
    oracle=_put_oracle,
    samples=(
        Sample(((2,),), {"index_arrays": (np.array([0, 0]),), "key": (ARRAY,), "shape": (3,)}),
        Sample(((2, 2),), {"index_arrays": (), "key": ((0, None, 2),), "shape": (4, 2)}),
    ),
)


def getitem(input: Any, key: Any) -> Tensor:
    """Index: what ``x[key]`` computes. A view for integers and slices, a copy for arrays and masks.

    Parameters
    ----------
    input : Tensor or array
    key : int, slice, None, Ellipsis, Tensor, array or list of int or bool, or a tuple of these

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If an index is out of bounds, there are more indices than dimensions, or one is of no such kind.

    Notes
    -----
    Derivative: 1 for the elements chosen, added up for those chosen several times.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> x[[0, 0, 2]].sum().backward()
    >>> x.grad.tolist()
    [2.0, 0.0, 1.0]
    """
    return _plans.call(input, key)


def _part_of_constant(x: Tensor, key: Any) -> Tensor | None:
    """Return a part of a tensor without history, as a view that no plan is made for; None if there is more to it."""
    index = simple_index(key) if x._node is None and x._layout.__class__ is Layout else None
    base = getattr(x, "_viewed", None)
    if index is None or (base is not None and hasattr(x, "_part_of")):
        return None
    part = x._array()[index]
    result = constant(part, layout_of(part))
    result._viewed = x if base is None else base
    return result


def _elements_of_constant(x: Tensor, key: Any) -> Tensor | None:
    """Return the elements that arrays choose of a tensor without history, by no plan; None if there is more to it."""
    index = index_without_plan(x, key) if x._node is None and x._layout.__class__ is Layout else None
    if index is None or not any(item.__class__ is Tensor for item in (key if key.__class__ is tuple else (key,))):
        return None
    try:
        chosen = np.ascontiguousarray(x._array()[index])
    except IndexError:  # the general way has the words
        return None
    return constant(chosen, layout_of(chosen))


def _getitem_new(input: Any, key: Any, *, is_seen: bool = True) -> Tensor:
    interceptor = modes.interceptor() if is_seen else None
    if interceptor is not None:
        found: Any = modes.around_call(_plans.call, (input, key), {})
        if found is NotImplemented:
            found = call_intercepted(interceptor, _plans, _getitem_seen_later, (input, key), {})
        return found  # type: ignore[no-any-return]
    x = as_operand(input, "getitem", "input", 1)
    x._array()
    items = items_of(key)
    try:
        part = _elements_of_constant(x, key) if is_seen else None
        if part is None and is_seen and _plans.is_crowded():
            part = _part_of_constant(x, key)
        if part is not None:
            return part
        plain = plain_items(x, items)
        if is_seen and (len(plain) != len(items) or any(map(operator.is_not, plain, items))):
            return _plans.call(input, plain if len(plain) > 1 else plain[0])
        parts, index_arrays = key_of(plain)
        if index_arrays and len(parts) > 1:
            # Where there is no kernel, slices and new dimensions first, as a view; so the arrays meet whole dimensions.
            basic = tuple(WHOLE if item is ARRAY else item for item in parts if item not in FLAGS)
            is_mixed = any(item is not Ellipsis and item != WHOLE for item in basic)
            if is_mixed and not is_indexed_by_kernel(x._layout, parts):
                rest = tuple(item if item in (Ellipsis, *COPIES) else WHOLE for item in parts)
                return index_gather(index_gather(x, (), basic), index_arrays, rest)
        op = index_gather_op if index_arrays else _getitem
        result, plan = compute(op, Bound((x,), {"key": parts}, index_arrays), is_seen=is_seen)
    except IndexError as error:
        raise in_words_of_torch(error, x) from None
    if plan is not None:
        _plans.insert(plan, (input, key), {}, (x,), index_arrays)
    return result  # type: ignore[no-any-return]


def row_like(plan: Plan, row: int) -> Plan | None:
    """Return a plan like one whose key ends with an integer, for another one, in a fraction of the time of a new one.

    None if the plan is of another kind, or there is no such row.
    """
    layout, key = plan.layouts[0], plan.attrs.get("key", ())
    if plan.op is not _getitem or plan.view_offset is None or not all(item.__class__ in (int, tuple) for item in key):
        return None
    length, before = layout.shape[len(key) - 1], key[-1]
    if before.__class__ is not int or not -length <= row < length:
        return None
    offset = plan.view_offset + (row % length - before % length) * layout.strides[len(key) - 1]
    attrs = {"key": (*key[:-1], row)}
    forward = operator.itemgetter(numpy_index(attrs["key"]))
    return Plan(_getitem, plan.layouts, attrs, forward, plan.result, view_offset=offset)


_getitem_seen_later = functools.partial(_getitem_new, is_seen=False)
_plans = _getitem.plans
_plans.connect("getitem", 1, _getitem_new, 1, TAKES_ARRAYS | MAKES_VIEWS)


def index_gather(input: Any, index_arrays: tuple[np.ndarray, ...], key: Key) -> Tensor:
    """Return the elements that a key and its arrays choose; the primitive form of `getitem`."""
    x, arrays = as_operand(input, "index_gather", "input", 1), index_arrays_of("index_gather", index_arrays, key)
    x._array()
    return apply(index_gather_op if arrays else _getitem, Bound((x,), {"key": key}, arrays))


def index_scatter_add(input: Any, index_arrays: tuple[np.ndarray, ...], key: Key, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a shape, with elements added where a key and its arrays say: the adjoint of `index_gather`."""
    if not index_arrays:
        return _put(input, with_known(key), shape)  # type: ignore[no-any-return]
    return apply(index_scatter_add_op, _bind_put(input, key, shape, index_arrays))


def _bind_put(input: Any, key: Key, shape: tuple[int, ...], index_arrays: tuple[np.ndarray, ...] = ()) -> Bound:
    x = as_operand(input, "index_scatter_add", "input", 1)
    arrays = index_arrays_of("index_scatter_add", index_arrays, key)
    return Bound((x,), {"key": key, "shape": tuple(shape)}, arrays)


_put = connect(index_scatter_add_op, 2, bind=_bind_put)


publish(getitem, _getitem, getitem.__doc__ or "")
publish(index_gather, index_gather_op, index_gather.__doc__ or "")
publish(index_scatter_add, index_scatter_add_op, index_scatter_add.__doc__ or "")


xp.index_gather, xp.index_scatter_add = index_gather, index_scatter_add

"""Ops: indexing with integers, slices, arrays and masks, after NumPy's rules, and its adjoint.

A *key* says what an index does with each dimension, in hashable form: an int, a slice as ``(start, stop, step)``, None,
an Ellipsis, the name of a bool, or `ARRAY` for an array of integers. The arrays are the op's index_arrays.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.kernels.indexed import ARRAY, gather_by_arrays_step, is_indexed_by_kernel, scatter_step
from tapegrad.kernels.structural import gather_step, view_step
from tapegrad.ops.table.gateway import apply, as_operand, compute
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.keys import MAKES_VIEWS, TAKES_ARRAYS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime import state
from tapegrad.tensor import Tensor

WHOLE: Final = (None, None, None)
# Single bools by name: as True and False they would equal 1 and 0.
_FLAGS: Final[dict[Any, Any]] = {"true": np.True_, "false": np.False_}
_COPIES: Final = (ARRAY, *_FLAGS)
Key = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def _items(key: Key) -> tuple[tuple[Any, ...], list[int]]:
    """Return NumPy's index of a key without its arrays, and where they stand in it."""
    index = tuple(slice(*item) if item.__class__ is tuple else _FLAGS.get(item, item) for item in key)
    places = [place for place, item in enumerate(key) if item == ARRAY]
    return index if places or Ellipsis in key else (*index, Ellipsis), places


state.register("ops.indexing: keys", lambda: _items.cache_info().currsize, _items.cache_clear)


def _index(key: Key, index_arrays: tuple[np.ndarray, ...] = ()) -> tuple[Any, ...]:
    """Return NumPy's index of a key; with an Ellipsis if it has no arrays, so that the result is never a scalar."""
    items, places = _items(key)
    if not places:
        return items
    index = list(items)
    for place, array in zip(places, index_arrays, strict=True):
        index[place] = array
    return tuple(index)


def _view(x: np.ndarray, key: Key) -> Any:
    return x[_index(key)]


def _view_step(plan: Plan, operand: int) -> Step | None:
    key = plan.attrs["key"]
    return None if any(item in _COPIES for item in key) else view_step(plan, lambda x: _view(x, key))


_getitem = Op(
    name="getitem",
    operands=("x",),
    forward=_view,
    vjp=(lambda ct, key, x_shape: index_scatter_add(ct, (), key, x_shape),),
    family="movement",
    linear=True,
    step=_view_step,
    attrs=("key",),
    prepare_forward=lambda layouts, attrs: operator.itemgetter(_index(attrs["key"])),
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
    return operator.getitem if key == (ARRAY,) else lambda x, *index_arrays: x[_index(key, index_arrays)]


_index_gather = Op(
    name="index_gather",
    operands=("x",),
    forward=lambda x, *index_arrays, key: np.asarray(x[_index(key, index_arrays)]),
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
        Sample(((4, 3),), {"key": [[0, 1], [3, 0]]}),
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
        np.add.at(out, _index(key, index_arrays), x)
    else:
        out[_index(key)] = x
    return out


def _put_oracle(x: Any, index_arrays: tuple[np.ndarray, ...], key: Key, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, dtype=x.dtype)
    places = np.arange(out.size).reshape(shape)[_index(key, index_arrays)]
    for place, value in zip(places.ravel(), x.ravel(), strict=True):
        out.flat[place] += value
    return out


def _taken_step(plan: Plan, operand: int) -> Step | None:
    """Return the step that reads the cotangent where it was written to."""
    key = plan.attrs["key"]
    copies = any(item in _COPIES for item in key)
    return gather_by_arrays_step(plan, operand) if copies else gather_step(plan, lambda x: _view(x, key))


_index_scatter_add = Op(
    name="index_scatter_add",
    operands=("x",),
    forward=_put_forward,
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
    return _getitem.plans.call(input, key)


def _getitem_new(input: Any, key: Any) -> Tensor:
    x = as_operand(input, "getitem", "input", 1)
    x._array()
    parts, index_arrays = _encode(x, key if key.__class__ is tuple else (key,))
    try:
        if index_arrays and len(parts) > 1:
            # Where there is no kernel, slices and new dimensions first, as a view; so the arrays meet whole dimensions.
            basic = tuple(WHOLE if item is ARRAY else item for item in parts if item not in _FLAGS)
            is_mixed = any(item is not Ellipsis and item != WHOLE for item in basic)
            if is_mixed and not is_indexed_by_kernel(x._layout, parts):
                rest = tuple(item if item in (Ellipsis, *_COPIES) else WHOLE for item in parts)
                return index_gather(index_gather(x, (), basic), index_arrays, rest)
        result, plan = compute(_index_gather if index_arrays else _getitem, Bound((x,), {"key": parts}, index_arrays))
    except IndexError as error:
        raise _index_error(error, x) from None
    if plan is not None:
        _getitem.plans.insert(plan, (input, key), {}, (x,), index_arrays)
    return result  # type: ignore[no-any-return]


_getitem.plans.connect("getitem", 1, _getitem_new, 1, TAKES_ARRAYS | MAKES_VIEWS)


def index_gather(input: Any, index_arrays: tuple[np.ndarray, ...], key: Key) -> Tensor:
    """Return the elements that a key and its arrays choose; the primitive form of `getitem`."""
    x = as_operand(input, "index_gather", "input", 1)
    x._array()
    return apply(_index_gather if index_arrays else _getitem, Bound((x,), {"key": key}, index_arrays))


def index_scatter_add(input: Any, index_arrays: tuple[np.ndarray, ...], key: Key, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a shape, with elements added where a key and its arrays say: the adjoint of `index_gather`."""
    x = as_operand(input, "index_scatter_add", "input", 1)
    return apply(_index_scatter_add, Bound((x,), {"key": key, "shape": tuple(shape)}, index_arrays))


publish(getitem, _getitem, getitem.__doc__ or "")
publish(index_gather, _index_gather, index_gather.__doc__ or "")
publish(index_scatter_add, _index_scatter_add, index_scatter_add.__doc__ or "")


def _encode(x: Tensor, items: tuple[Any, ...]) -> tuple[Key, tuple[np.ndarray, ...]]:
    """Return the key of an index, and copies of its arrays: later changes of the user's do not matter."""
    key: list[Any] = []
    arrays: list[np.ndarray] = []
    for item in items:
        kind = item.__class__
        if kind is int:
            key.append(_in_range(item))
        elif item is None or item is Ellipsis:
            key.append(item)
        elif kind is slice:
            key.append((_bound(item.start), _bound(item.stop), _bound(item.step)))
        else:
            array = np.asarray(item._data if kind is Tensor else item)
            if kind is Tensor and array.dtype.name in (("uint8", "int8", "int16") if array.ndim else ("uint8",)):
                array = _mask_of_bytes(array)
            if array.dtype == np.bool_:
                arrays += _check_mask(x, key, array).nonzero() if array.ndim else ()
                key += [ARRAY] * array.ndim if array.ndim else ["true" if array else "false"]
            elif array.dtype.kind in "iu" and array.ndim == 0:
                key.append(int(array))
            elif array.dtype.kind in "iu" or (array.size == 0 and kind is not Tensor):  # an empty list is one of floats
                arrays.append(array.astype(np.int64))
                key.append(ARRAY)
            else:
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                    f"(got {type(item).__name__}); arrays must be of integers or bool, this is of dtype {array.dtype}"
                )
    if arrays and int in map(type, key):  # beside arrays, an int is an array without dimensions
        rest = iter(arrays)
        both = [item for item in key if item is ARRAY or item.__class__ is int]
        arrays = [next(rest) if item is ARRAY else np.array(item) for item in both]
        key = [ARRAY if item.__class__ is int else item for item in key]
    if len(arrays) > 1:
        try:
            arrays = list(np.broadcast_arrays(*arrays))
        except ValueError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(array.shape)) for array in arrays)
            ) from None
    return tuple(key), tuple(map(np.ascontiguousarray, arrays))


def _mask_of_bytes(array: np.ndarray) -> np.ndarray:
    if array.dtype != np.uint8:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors; this is of {array.dtype}")
    warnings.warn(
        "indexing with dtype uint8 is deprecated: such a tensor is a mask; convert it with .bool(), or with .long() if "
        "it holds indices",
        UserWarning,
        stacklevel=4,
    )
    return array.astype(np.bool_)


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return _in_range(operator.index(value))
    except TypeError:
        raise TypeError(
            f"slice indices must be integers or None or have an __index__ method, not {type(value).__name__}"
        ) from None


def _in_range(index: int) -> int:
    """Return an index; one of more than 64 bits, which no array has, as the farthest one."""
    return min(max(index, -sys.maxsize - 1), sys.maxsize)


def _check_mask(x: Tensor, key: list[Any], mask: np.ndarray) -> np.ndarray:
    if Ellipsis not in key:
        first = sum(item is not None for item in key)
        own = x.shape[first : first + mask.ndim]
        for dim, (length, needed) in enumerate(zip(mask.shape, own, strict=False)):
            if length != needed:
                raise IndexError(
                    f"The shape of the mask {list(mask.shape)} at index {dim} does not match the shape of the indexed "
                    f"tensor {list(x.shape)} at index {first + dim}"
                )
    return mask


def _index_error(error: IndexError, x: Tensor) -> IndexError:
    """Return NumPy's error in PyTorch's words."""
    text = str(error)
    if text.startswith("too many indices"):
        return IndexError(f"too many indices for tensor of dimension {x.ndim}; it has shape {list(x.shape)}")
    return IndexError(f"{text.replace('axis', 'dimension')}; the tensor has shape {list(x.shape)}")


xp.index_gather, xp.index_scatter_add = index_gather, index_scatter_add

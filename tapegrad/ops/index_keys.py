"""Keys of indexing: an index in hashable form, and its arrays as compiled code reads them.

A *key* says what an index does with each dimension: an int, a slice as ``(start, stop, step)``, None, an Ellipsis, the
name of a bool, or `ARRAY` for an array of integers. The arrays are the op's index_arrays.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from typing import Any, Final

import numpy as np

from tapegrad import errors, modes
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.table.index_values import TracedIndices, are_within, index_values, stretched
from tapegrad.ops.table.op import xp
from tapegrad.runtime import state
from tapegrad.tensor import Tensor

WHOLE: Final = (None, None, None)
# Single bools by name: as True and False they would equal 1 and 0.
FLAGS: Final[dict[Any, Any]] = {"true": np.True_, "false": np.False_}
_NAMES: Final = {bool(flag): name for name, flag in FLAGS.items()}
COPIES: Final = (ARRAY, *FLAGS)
_ARRAYS: Final = (np.ndarray, TracedIndices)
_SIMPLE: Final = frozenset({int, type(None), type(Ellipsis)})
_BOUNDS: Final = frozenset({int, type(None)})
_LONGEST_LIST: Final = 32  # of those that stand for tuples
Key = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def _items(key: Key) -> tuple[tuple[Any, ...], list[int]]:
    """Return NumPy's index of a key without its arrays, and where they stand in it."""
    index = tuple(slice(*item) if item.__class__ is tuple else FLAGS.get(item, item) for item in key)
    places = [place for place, item in enumerate(key) if item == ARRAY]
    return index if places or Ellipsis in key else (*index, Ellipsis), places


state.register("ops.index_keys: keys", lambda: _items.cache_info().currsize, _items.cache_clear)


def numpy_index(key: Key, index_arrays: tuple[np.ndarray, ...] = ()) -> tuple[Any, ...]:
    """Return NumPy's index of a key; with an Ellipsis if it has no arrays, so that the result is never a scalar."""
    items, places = _items(key)
    if not places:
        return items
    index = list(items)
    for place, array in zip(places, index_arrays, strict=True):
        index[place] = array
    return tuple(index)


def plain_items(x: Tensor, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the items of an index in the form in which compiled code finds plans for them.

    They are ints, slices of ints, None, Ellipsis, bools of NumPy, and contiguous arrays of int64, all of one shape and
    with no int beside them. A mask becomes the places of its elements. What is plain already stays the same object.
    """
    plain: list[Any] = []
    items = tuple([_joined(item) if item.__class__ is list else item for item in items])
    for place, item in enumerate(items):
        kind = item.__class__
        if kind is int:
            plain.append(_in_range(item))
        elif kind is slice:
            plain.append(_plain_slice(item))
        elif item is None or item is Ellipsis:
            plain.append(item)
        elif isinstance(item, Tensor) and item.is_traced and item.dtype.kind in "iu":
            plain.append(_of_traced(x, items, place))
        else:
            plain += _plain_arrays(x, items, place, item)
    shapes = {item.shape for item in plain if isinstance(item, _ARRAYS)}
    if not shapes or (len(shapes) == 1 and int not in map(type, plain)):
        return tuple(plain)
    try:
        shape = np.broadcast_shapes(*shapes) if len(shapes) > 1 else next(iter(shapes))
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(item.shape)) for item in plain if isinstance(item, _ARRAYS))
        ) from None
    if 0 in shape:  # NumPy does not look at the ints then
        _check_ints(x, tuple(plain))
    # Beside arrays, an int is an array without dimensions.
    return tuple([stretched(item, shape) if isinstance(item, (int, *_ARRAYS)) else item for item in plain])


def _check_ints(x: Tensor, plain: tuple[Any, ...]) -> None:
    """Refuse ints that are out of range."""
    for place, item in enumerate(plain):
        if item.__class__ is int and not -(length := x.shape[dim := _dim_at(x, plain, place)]) <= item < length:
            raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {length}")


def items_of(key: Any) -> tuple[Any, ...]:
    """Return the items of an index. As in PyTorch, a list in which lists or slices stand is a tuple, with a warning.

    Tensors without dimensions count as integers: in PyTorch they make a tuple too, in NumPy integers do not.
    """
    if key.__class__ is tuple:
        return key
    if key.__class__ is not list or len(key) >= _LONGEST_LIST or not any(map(_makes_tuple, key)):
        return (key,)
    errors.warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed; use x[tuple(seq)] "
        "instead of x[seq], or x[tapegrad.tensor(seq)] for an index of several dimensions."
    )
    return tuple(key)


def _makes_tuple(item: Any) -> bool:
    if isinstance(item, (np.ndarray, Tensor)):
        return item.ndim > 0
    return item is None or item is Ellipsis or isinstance(item, (list, tuple, slice, range, str))


def simple_index(key: Any) -> tuple[Any, ...] | None:
    """Return NumPy's index of a part, if a key has only ints, slices of ints, None and dots; never one of a scalar."""
    items = key if key.__class__ is tuple else (key,)
    for item in items:
        if item.__class__ is slice:
            if not {item.start.__class__, item.stop.__class__, item.step.__class__} <= _BOUNDS:
                return None
        elif item.__class__ not in _SIMPLE:
            return None
    return items if Ellipsis in items else (*items, ...)


def index_without_plan(x: Tensor, key: Any, *, mixed: bool = False, whole_masks: bool = True) -> Any:
    """Return NumPy's index for a key with arrays that compiled code finds no plan for; None for any other.

    It has masks, or ints or lists of ints beside arrays.

    Parameters
    ----------
    x : Tensor
    key : index
    mixed : bool
        Return it for all arrays.
    whole_masks : bool
        Masks as large as the tensor count.
    """
    items = []
    for item in key if key.__class__ is tuple else (key,):
        kind = item.__class__
        if kind is Tensor and item._layout.ndim:
            is_mask = item._layout.dtype == np.bool_
            if item._layout.dtype != np.int64 and (not is_mask or not item._layout.size):
                return None  # NumPy takes a mask of no elements for one of a single element
            mixed |= is_mask and (whole_masks or item._layout.ndim < x._layout.ndim)
            items.append(item._data)
        elif kind is list and all(own.__class__ is int for own in item) and item:
            mixed = True
            items.append(item)
        elif simple_index(item) is not None:
            mixed |= kind is int
            items.append(item)
        else:
            return None
    return tuple(items) if mixed else None


def key_of(plain: tuple[Any, ...]) -> tuple[Key, tuple[np.ndarray, ...]]:
    """Return the key of plain items, and copies of their arrays: later changes of the user's do not matter."""
    key: list[Any] = []
    arrays: list[Any] = []  # or `TracedIndices`
    for item in plain:
        if isinstance(item, _ARRAYS):
            arrays.append(item if isinstance(item, TracedIndices) else item.copy())
            key.append(ARRAY)
        elif item.__class__ is slice:
            key.append((item.start, item.stop, item.step))
        else:
            key.append(_NAMES[bool(item)] if item.__class__ is np.bool_ else item)
    return tuple(key), tuple(arrays)


def _plain_slice(item: slice) -> slice:
    bounds = start, stop, step = _bound(item.start), _bound(item.stop), _bound(item.step)
    same = start is item.start and stop is item.stop and step is item.step
    return item if same else slice(*bounds)


def _plain_arrays(x: Tensor, items: tuple[Any, ...], place: int, item: Any) -> list[Any]:
    """Return what stands for an array, or for a number of NumPy's, in `plain_items`."""
    array = _array_of(item)
    kind = array.dtype.kind
    if kind == "b":
        if not array.ndim:
            return [np.bool_(array)]
        return [np.ascontiguousarray(places) for places in _check_mask(x, items, place, array).nonzero()]
    if kind in "iu" and array.ndim == 0:
        return [int(array)]
    if kind in "iu" or (array.size == 0 and item.__class__ is not Tensor):  # an empty list is one of floats
        is_plain = array.dtype == np.int64 and array.flags.c_contiguous
        return [array if is_plain else np.array(array, np.int64, order="C")]
    if item.__class__ is Tensor:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, not of dtype {array.dtype}")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__}); arrays must be of integers or bool, this is of dtype {array.dtype}"
    )


def _joined(items: list[Any]) -> Any:
    """Return a list of an index, as a tensor if integers of a traced function stand in it."""
    parts = [_joined(item) if item.__class__ is list else item for item in items]
    if not any(isinstance(item, Tensor) and item.is_traced for item in parts):
        return items
    whole = [item if isinstance(item, Tensor) else np.asarray(item) for item in parts]
    if any(item.dtype.kind not in "iu" for item in whole):
        return items
    return xp.stack([xp.cast(item, np.dtype(np.int64)) for item in whole])


def _of_traced(x: Tensor, items: tuple[Any, ...], place: int) -> Any:
    """Return the array of integers at a place of an index, after a look at their range."""
    item, dim = items[place], _dim_at(x, items, place)
    length = x.shape[dim]
    if not are_within(item, -length, length):
        values = np.asarray(item._data)
        bad = values[(values < -length) | (values >= length)].flat[0]
        raise in_words_of_torch(IndexError(f"index {bad} is out of bounds for axis {dim} with size {length}"), x)
    return index_values(xp.cast(item, np.dtype(np.int64)))


def _dim_at(x: Tensor, items: tuple[Any, ...], place: int) -> int:
    """Return the dimension of the tensor that the item at a place of an index stands for."""
    dims = [_n_dims(item) for item in items]
    behind = any(item is Ellipsis for item in items[:place])
    dim = x.ndim - sum(dims[place:]) if behind else sum(dims[:place])
    if not 0 <= dim < x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    return dim


def _n_dims(item: Any) -> int:
    """Return how many dimensions of a tensor an item of an index takes."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    mask = item if isinstance(item, (Tensor, np.ndarray)) else np.asarray(item) if item.__class__ is list else None
    is_mask = mask is not None and (mask.dtype == np.bool_ or (mask.dtype == np.uint8 and isinstance(mask, Tensor)))
    return mask.ndim if is_mask else 1  # type: ignore[union-attr]


def _array_of(item: Any) -> np.ndarray:
    """Return an item of an index as an array; bytes of a tensor are a mask, as in PyTorch."""
    if not isinstance(item, Tensor):
        return np.asarray(item)
    modes.tell("looked", item)
    array = np.asarray(item._data)
    if array.dtype.char in ("Bbh" if array.ndim else "B"):  # uint8, int8 and int16
        return _mask_of_bytes(array)
    return array


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


def _check_mask(x: Tensor, items: tuple[Any, ...], place: int, mask: np.ndarray) -> np.ndarray:
    if not place and mask.shape == x._layout.shape:  # as nearly every mask
        return mask
    first = _dim_at(x, items, place)
    for dim, (length, needed) in enumerate(zip(mask.shape, x.shape[first:], strict=False)):
        if length != needed:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {dim} does not match the shape of the indexed "
                f"tensor {list(x.shape)} at index {first + dim}"
            )
    return mask


def in_words_of_torch(error: IndexError, x: Tensor) -> IndexError:
    """Return NumPy's error in PyTorch's words."""
    text = str(error)
    if not x.ndim and text.endswith(" 1 were indexed"):
        return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert it to a number")
    if text.startswith("too many indices"):
        return IndexError(f"too many indices for tensor of dimension {x.ndim}; it has shape {list(x.shape)}")
    return IndexError(f"{text.replace('axis', 'dimension')}; the tensor has shape {list(x.shape)}")


def index_arrays_of(call: str, arrays: tuple[np.ndarray, ...], key: Key) -> tuple[np.ndarray, ...]:
    """Return index arrays as compiled code reads them: one for each place in the key, contiguous int64, of one shape.

    The forward, which is NumPy's, looks whether they are in range; kernels run on the same arrays.

    Raises
    ------
    IndexError
        If there are more or fewer than the key says, or one is of no integers, or the shapes do not broadcast.
    """
    if key.count(ARRAY) != len(arrays):
        raise IndexError(f"{call}(): the key has {key.count(ARRAY)} places for index arrays; got {len(arrays)}")
    if all(own.dtype == np.int64 and own.flags.c_contiguous and own.shape == arrays[0].shape for own in arrays):
        return arrays
    if any(own.dtype.kind not in "iu" for own in arrays):
        raise IndexError(f"{call}(): index arrays must be of integers, not {[str(own.dtype) for own in arrays]}")
    try:
        shape = np.broadcast_shapes(*[own.shape for own in arrays])
    except ValueError as error:
        raise IndexError(f"{call}(): {error}") from None
    return tuple([stretched(own, shape) for own in arrays])

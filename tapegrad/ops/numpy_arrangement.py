"""NumPy's functions that arrange elements, or call a function on parts of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops import numpy_ufuncs
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.concat import cat, stack
from tapegrad.ops.fill import zeros
from tapegrad.ops.gather import take_along_dim
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import refuse, unsupported
from tapegrad.ops.permutations import movedim
from tapegrad.ops.setitem import setitem
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor

# Elements in another order -----------------------------------------------------------------------------------------


def _rearranged(function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Return what a function that only moves elements makes of tensors: it is called with the elements' numbers."""
    begin, numbers = 0, []
    for own in tensors:
        numbers.append(np.arange(begin, begin + own.numel()).reshape(own.shape))
        begin += own.numel()
    result: Tensor = getitem(cat([reshape(own, (-1,)) for own in tensors]), np.asarray(function(*numbers)))
    return result


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    x = as_operand(arr, "insert", "arr", 1)
    values = numpy_ufuncs.no_list(values)
    new = cast(as_operand(values, "insert", "values", 3), x.dtype)
    return _rearranged(lambda old, more: np.insert(old, numpy_ufuncs.values(obj), more, axis), x, new)


def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Tensor:
    refuse("choose", out=out)
    tensors = [as_operand(own, "choose", "choices", 2) for own in choices]
    return _rearranged(lambda *numbers: np.choose(numpy_ufuncs.values(a), numbers, mode=mode), *tensors)


def _rollaxis(a: Tensor, axis: int, start: int = 0) -> Tensor:
    place, target = one_dim("rollaxis", a.ndim, axis), one_dim("rollaxis", a.ndim + 1, start)
    moved: Tensor = movedim(a, place, target - (place < target))
    return moved


def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    x = as_operand(filt, "trim_zeros", "filt", 1)
    if x.ndim != 1:
        raise unsupported("np.trim_zeros", "of several dimensions")
    places = np.flatnonzero(x._data)
    if not len(places):
        return x[:0]
    first, last = (places[0] if "f" in trim.lower() else 0), (places[-1] + 1 if "b" in trim.lower() else len(x))
    return x[int(first) : int(last)]


def _partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    x = as_operand(a, "partition", "a", 1)
    places = np.argpartition(np.asarray(x._data), kth, axis)
    return take_along_dim(x, places, axis) if axis is not None else getitem(reshape(x, (-1,)), places)


def _sort_complex(a: Any) -> Tensor:
    x = as_operand(a, "sort_complex", "a", 1)
    wide = x if x.dtype.kind == "c" else cast(x, np.result_type(x.dtype, np.complex64))
    return take_along_dim(wide, np.argsort(np.asarray(wide._data), -1), -1)


# Functions of parts ------------------------------------------------------------------------------------------------


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return a function's values of each line along a dimension; what it returns stands in place of the line."""
    x = as_operand(arr, "apply_along_axis", "arr", 3)
    place = one_dim("apply_along_axis", x.ndim, axis)
    last = movedim(x, place, -1)
    lines = reshape(last, (-1, x.shape[place]))
    if not len(lines):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = (func1d(line, *args, **kwargs) for line in lines)
    each = [as_operand(own, "apply_along_axis", "func1d", 1) for own in results]
    found = reshape(stack(each), (*last.shape[:-1], *each[0].shape))
    for k in range(each[0].ndim):  # (..., result) -> the result's dimensions where the line was
        found = movedim(found, last.ndim - 1 + k, place + k)
    return found


def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    """Call a function for each of several dimensions; a reduction gets them back with length 1."""
    x = as_operand(a, "apply_over_axes", "a", 2)
    for axis in np.atleast_1d(axes).tolist():
        found = func(x, axis)
        if found.ndim not in (x.ndim, x.ndim - 1):
            raise ValueError("function is not returning an array of the correct shape")
        x = found if found.ndim == x.ndim else unsqueeze(found, one_dim("apply_over_axes", x.ndim, axis))
    return x


def _conditions(condlist: Any, ndim: int, count: int) -> list[np.ndarray]:
    """Return the conditions of np.piecewise, and that none holds if there is a function more."""
    given = np.asarray(numpy_ufuncs.values(condlist))
    masks = list((given[None] if given.ndim <= ndim and (ndim or not given.ndim) else given).astype(bool))
    if len(masks) == count - 1:
        masks.append(~np.any(masks, 0))
    if len(masks) != count:
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected"
        )
    return masks


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any] | Iterable[Any], *args: Any, **kw: Any) -> Tensor:
    """Return functions of the elements for which conditions hold; 0 where none does."""
    operand, functions = as_operand(x, "piecewise", "x", 1), list(funclist)
    out = zeros(operand.shape, dtype=operand.dtype)
    for mask, function in zip(_conditions(condlist, operand.ndim, len(functions)), functions, strict=True):
        if mask.any():
            setitem(out, mask, function(getitem(operand, mask), *args, **kw) if callable(function) else function)
    return out


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.insert: _insert, np.choose: _choose, np.rollaxis: _rollaxis, np.trim_zeros: _trim_zeros,
    np.partition: _partition, np.sort_complex: _sort_complex, np.apply_along_axis: _apply_along_axis,
    np.apply_over_axes: _apply_over_axes, np.piecewise: _piecewise,
}  # fmt: skip

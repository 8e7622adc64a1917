"""NumPy's functions that write to an array: recorded if it is a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import where as choose
from tapegrad.ops.casts import cast
from tapegrad.ops.inplace import copy_
from tapegrad.ops.inplace_diagonals import on_diagonal
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import array_of, no_list, plain, refuse_gradients
from tapegrad.ops.setitem import setitem
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import in_mode, index_array
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


def _on_tensors(function: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of what writes to a tensor; NumPy's function writes to an array, of what wants no gradient."""

    def decorate(write: Callable[..., None]) -> Callable[..., None]:
        def call(target: Any, *args: Any, **kwargs: Any) -> None:
            if isinstance(target, Tensor):
                write(target, *args, **kwargs)
            else:
                function(target, *map(plain, args), **{key: plain(own) for key, own in kwargs.items()})

        return call

    return decorate


def _repeated(call: str, values: Any, count: int) -> Tensor:
    """Return values one after another, from the beginning again until there are so many."""
    values = no_list(values)
    given = as_operand(values, call, "values", 3)
    return reshape(given, (-1,))[np.arange(count) % max(given.numel(), 1)]


@_on_tensors(np.copyto)
def _copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    src = no_list(src)
    source = as_operand(src, "copyto", "src", 2)
    if not source._layout.weak and not np.can_cast(source.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {source.dtype!r} to {dst.dtype!r} according to the rule '{casting}'"
        )
    source = cast(source, dst.dtype)
    copy_(dst, source if where is True else choose(array_of(where), source, dst))


@_on_tensors(np.put)
def _put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    places, new = in_mode(index_array(plain(ind)).ravel(), a.numel(), mode), no_list(v)
    if np.size(new):
        a = a if a.ndim else reshape(a, (1,))
        setitem(a, _unraveled(places, a), _repeated("put", new, len(places)))


def _unraveled(places: np.ndarray, a: Tensor) -> Any:
    """Return indices of each dimension for those of all elements."""
    size = a.numel()
    for wrong in places[(places < -size) | (places >= size)]:
        raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {size}")
    return np.unravel_index(np.where(places < 0, places + size, places), a.shape)


@_on_tensors(np.putmask)
def _putmask(a: Tensor, mask: Any, values: Any) -> None:
    new = reshape(_repeated("putmask", values, a.numel()), a.shape)
    copy_(a, choose(array_of(mask), cast(new, a.dtype), a))


@_on_tensors(np.place)
def _place(arr: Tensor, mask: Any, vals: Any) -> None:
    chosen = array_of(mask).astype(bool)
    if chosen.any():
        setitem(arr, chosen, _repeated("place", vals, int(chosen.sum())))


@_on_tensors(np.put_along_axis)
def _put_along_axis(arr: Tensor, indices: Any, values: Any, axis: int | None) -> None:
    places = array_of(indices)
    if axis is None:
        at: Any = _unraveled(places, arr)
    else:
        at = list(np.ogrid[tuple(slice(n) for n in places.shape)])
        at = [own if arr.shape[k] == places.shape[k] else np.arange(arr.shape[k]).reshape(
            [-1 if j == k else 1 for j in range(arr.ndim)]) for k, own in enumerate(at)]  # fmt: skip
        at[axis] = places
    setitem(arr, tuple(at), values)


@_on_tensors(np.fill_diagonal)
def _fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    places = on_diagonal(a, wrap)
    setitem(a, places, _repeated("fill_diagonal", val, len(places[0])))


def to_out(shown: str, function: Callable[..., Any], out: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call one of NumPy's functions, write its result to `out`, and return that."""
    refuse_gradients(shown, [*args, *kwargs.values(), out])
    result = function(*args, **kwargs)
    if np.shape(out) != np.shape(result):
        raise ValueError(f"{shown}(): out has the wrong shape {np.shape(out)}; the result has {np.shape(result)}")
    if not isinstance(out, Tensor):
        versions.note(out)
    _copyto(out, result)
    return out


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.copyto: _copyto, np.put: _put, np.putmask: _putmask, np.place: _place, np.put_along_axis: _put_along_axis,
    np.fill_diagonal: _fill_diagonal,
}  # fmt: skip

"""In-place operations: writing to a tensor's memory, recorded where a gradient is wanted.

A recorded in-place operation computes its result as the row does, copies it into the memory that aliases see, and gives
the tensor the new entry's node.  What the entry saved are copies, so that ``y *= y`` has a gradient.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_range
from tapegrad.ops import arithmetic, transcendental
from tapegrad.ops.casts import cast
from tapegrad.ops.composite import reciprocal, square
from tapegrad.ops.index_put import encode, index_error, index_put, write_at
from tapegrad.ops.indexing import index_gather
from tapegrad.ops.inplace_checks import (
    cast_error,
    check_distinct,
    check_leaf,
    check_no_view,
    is_stored_back,
    is_view,
    shape_error,
    view_error,
)
from tapegrad.ops.random import Generator, numpy_generator
from tapegrad.ops.table.gateway import as_operand, constant
from tapegrad.tape import versions
from tapegrad.tape.entries import Leaf
from tapegrad.tape.hooks import hooks_of
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor


def _records(target: Tensor, *others: Any) -> bool:
    return (
        target._node is not None or any(isinstance(value, Tensor) and value._node is not None for value in others)
    ) and modes.is_grad_enabled()


# Recorded ----------------------------------------------------------------------------------------------------------


def _copy(value: Any, target: np.ndarray) -> Any:
    """Return an operand with a copy of its data if that is about to be written over."""
    if not isinstance(value, Tensor) or not isinstance(value._data, np.ndarray):
        return value
    if not np.may_share_memory(value._data, target):
        return value
    data = value._data.copy()
    copy = constant(data, layout_of(data))
    if value._node is not None:
        copy._layout, copy._node = copy._layout.tracked, value._node
    return copy


def _rebase(call: str, target: Tensor, function: Callable[..., Tensor], args: tuple[Any, ...]) -> Tensor:
    """Record ``function(target, *args)``, write its value to the target's memory, and let the target be its result."""
    array = target._array()
    check_distinct(array)
    check_no_view(call, target, args)
    before, retained = target._node, target.retains_grad
    result = function(*(_copy(value, array) for value in (target, *args)))
    if result.shape != target.shape:
        raise shape_error(target.shape, result.shape)
    if result.dtype != array.dtype:
        if not np.can_cast(result.dtype, array.dtype, "same_kind"):
            raise cast_error(result.dtype, array.dtype)
        result = cast(result, array.dtype)
    versions.note(array)
    array[...] = result._data
    layout = layout_of(array)
    target._layout = layout.tracked if result._node is not None else layout
    target._node = result._node
    if retained and isinstance(before, list):  # it moves to the newest entry, as in PyTorch
        hooks_of(before).retained = None
        target.retain_grad()
    return target


def _operator(symbol: str, function: Callable[..., Tensor], ufunc: np.ufunc) -> Callable[[Tensor, Any], Any]:
    """Return the method that is an in-place operator."""
    name = f"x {symbol} y"

    def call(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        if not _records(self, other):
            return _write(self, other, ufunc)
        if not self._layout.floating:
            raise cast_error(as_operand(other, name, "y", 2).dtype, self.dtype)
        if is_view(self):
            if isinstance(self._node, list):
                check_leaf(self)
            if is_stored_back(sys._getframe(1)):
                return function(*(_copy(value, self._data) for value in (self, other)))
            raise view_error(name)
        check_leaf(self)
        return _rebase(name, self, function, (other,))

    call.__doc__ = f"Compute ``{symbol}`` in place; recorded where a gradient is wanted."
    return call


def _write(target: Tensor, other: Any, ufunc: np.ufunc) -> Tensor:
    """Compute in place what is not recorded."""
    array = target._data
    if array.__class__ is not np.ndarray:
        array = target._array()
    value = other._data if isinstance(other, Tensor) else other
    versions.note(array)
    try:
        ufunc(array, value, out=array, casting="same_kind")
    except TypeError:
        if array.dtype.kind == "b":
            raise
        result = ufunc(array.dtype.type(1), np.asarray(value).dtype.type(1)).dtype
        raise cast_error(result, array.dtype) from None
    except ValueError:
        check_distinct(array)
        if not array.flags.writeable:
            raise
        try:
            shape = np.broadcast_shapes(array.shape, np.shape(value))
        except ValueError:
            raise errors.broadcast_mismatch(ufunc.__name__, array.shape, np.shape(value)) from None
        raise shape_error(array.shape, shape) from None
    return target


iadd = _operator("+=", arithmetic.add, np.add)
isub = _operator("-=", arithmetic.sub, np.subtract)
imul = _operator("*=", arithmetic.mul, np.multiply)
idiv = _operator("/=", arithmetic.div, np.true_divide)
ipow = _operator("**=", arithmetic.pow, np.power)


# Methods -----------------------------------------------------------------------------------------------------------


def _method(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    call_name = f"{name}_()"

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if _records(self, *args, *kwargs.values()):
            check_leaf(self)
            if is_view(self):
                raise view_error(call_name)
            return _rebase(call_name, self, lambda x, *rest: function(x, *rest, **kwargs), args)
        with modes.no_grad():
            result = function(self, *args, **kwargs)
        array = self._array()
        check_distinct(array)
        if result.shape != self.shape:
            raise shape_error(self.shape, result.shape)
        if not np.can_cast(result.dtype, array.dtype, "same_kind"):
            raise cast_error(result.dtype, array.dtype)
        versions.note(array)
        array[...] = result._data
        return self

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__doc__ = f"Compute `{name}` in place; recorded where a gradient is wanted."
    return call


def _scaled(operator: Callable[[Tensor, Any], Tensor], name: str) -> Callable[..., Tensor]:
    def call(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        other = as_operand(other, f"{name}_", "other", 1)
        return operator(self, other if alpha == 1 else arithmetic.mul(other, alpha))

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__doc__ = f"Compute `{name}` in place, with `other` times `alpha`; recorded where a gradient is wanted."
    return call


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
    recorded = _records(self, value)
    if recorded:
        if isinstance(self._node, Leaf):
            raise RuntimeError(errors.LEAF_VIEW_IN_PLACE)
        check_leaf(self)
    _set(self, key, value, recorded, "x[index] = value")


def _set(self: Tensor, key: Any, value: Any, recorded: bool, call: str) -> None:
    keys, index_arrays = encode(self, key)
    operand = as_operand(value, call, "value", 2)
    try:
        if recorded and self._layout.floating:
            if is_view(self):
                raise view_error(call)
            if operand._layout.shape[:1] == (1,):  # NumPy drops leading dimensions of length 1 that are too many
                ndim = index_gather(self.detach(), index_arrays, keys)._layout.ndim
                while operand._layout.ndim > ndim and operand.shape[0] == 1:
                    operand = index_gather(operand, (), (0,))
            _rebase(call, self, lambda x, v: index_put(x, v, index_arrays, keys), (operand,))
        else:
            array = self._array()
            check_distinct(array)
            versions.note(array)
            write_at(array, index_arrays, keys, operand._data)
    except (IndexError, ValueError) as error:
        raise index_error(error, self, operand._data, index_arrays, keys) from None


def copy_(self: Tensor, source: Any) -> Tensor:
    """Copy the elements of a tensor or array, broadcast to this one's shape; recorded where a gradient is wanted."""
    recorded = _records(self, source)
    if recorded:
        check_leaf(self)
    _set(self, Ellipsis, source, recorded, "copy_()")
    return self


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set all elements to a number, in place; recorded where a gradient is wanted."""
    if np.ndim(getattr(value, "_data", value)):
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got shape {list(np.shape(value))}")
    if self._layout.dtype.kind in "iu" and isinstance(value, int):
        check_range(value, self._layout.dtype)
        value = np.array(value).astype(self._layout.dtype)  # wraps around; NumPy would raise
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Set all elements to zero, in place; recorded where a gradient is wanted."""
    return copy_(self, 0)


def _draw(self: Tensor, values: np.ndarray) -> Tensor:
    if modes.is_grad_enabled():
        check_leaf(self)
        if isinstance(self._node, list):
            _set(self, Ellipsis, values, True, "a random number's method")
            return self
    array = self._array()
    versions.note(array)
    array[...] = values
    return self


def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers drawn uniformly from `low` to `high`, in place."""
    return _draw(self, numpy_generator(generator).uniform(low, high, self.shape))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers, in place."""
    return _draw(self, numpy_generator(generator).normal(mean, std, self.shape))


def detach_(self: Tensor) -> Tensor:
    """Make this result a leaf that no gradient is wanted for, in place.

    Raises
    ------
    RuntimeError
        If it is a view: what it is a view of would still be a result.
    """
    if isinstance(self._node, list) and is_view(self):
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._layout, self._node = self._layout.plain, None
    return self


METHODS: dict[str, Callable[..., Any]] = {
    "add_": _scaled(iadd, "add"), "sub_": _scaled(isub, "sub"),
    "mul_": _scaled(imul, "mul"), "div_": _scaled(idiv, "div"),
    **{
        f"{function.__name__}_": _method(function, function.__name__)
        for function in (
            arithmetic.pow, arithmetic.neg, arithmetic.abs, arithmetic.clamp, arithmetic.relu, square, reciprocal,
            transcendental.exp, transcendental.log, transcendental.sqrt, transcendental.sin, transcendental.cos,
            transcendental.tanh, transcendental.sigmoid,
        )
    },
    "copy_": copy_, "fill_": fill_, "zero_": zero_, "uniform_": uniform_, "normal_": normal_, "detach_": detach_,
}  # fmt: skip

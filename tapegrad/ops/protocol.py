"""NumPy's protocols: its functions, called on tensors, are ours and recorded.

Each function of ours says which of NumPy's it is, and how the arguments differ: see `tapegrad.ops.table.public`.
`_TABLE` has these, and functions of NumPy that are put together from several of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.ops.complex import imag_or_zero
from tapegrad.ops.extremes import clip_to
from tapegrad.ops.followed import is_close, is_followed
from tapegrad.ops.numpy_arrangement import FUNCTIONS as ARRANGEMENT
from tapegrad.ops.numpy_functions import FUNCTIONS
from tapegrad.ops.numpy_operands import operands
from tapegrad.ops.numpy_padding import pad_of_numpy
from tapegrad.ops.numpy_polynomials import FUNCTIONS as POLYNOMIALS
from tapegrad.ops.numpy_series import FUNCTIONS as SERIES
from tapegrad.ops.numpy_sets import FUNCTIONS as SETS
from tapegrad.ops.numpy_statistics import FUNCTIONS as STATISTICS
from tapegrad.ops.numpy_statistics import variance_of
from tapegrad.ops.numpy_ufuncs import along, ndim_of, no_list, plain, reduced, refuse, unsupported, values
from tapegrad.ops.numpy_writes import FUNCTIONS as WRITES
from tapegrad.ops.numpy_writes import to_out
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table import public
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import reduced_dims
from tapegrad.ops.variance import root
from tapegrad.tensor import Tensor, from_array

# Functions ---------------------------------------------------------------------------------------------------------


def _reduction(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        refuse(name, out=out)
        result = reduced(a, function, axis, bool(keepdims), _given(where, True), _given(initial, None))
        return result if dtype is None else result.to(dtype)

    return call


def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse("cumsum", out=out)
    x = as_operand(a, "cumsum", "input", 1)
    return ops.cumsum(ops.reshape(x, (-1,)) if axis is None else x, axis or 0, dtype=dtype)


def _extremum(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        refuse(name, out=out, **kwargs)
        return reduced(a, function, axis, bool(keepdims), _given(where, True), _given(initial, None))

    return call


def _moment(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        **kwargs: Any,
    ) -> Any:
        correction, chosen = kwargs.pop("correction", ddof), _given(kwargs.pop("where", True), True)
        center = _given(kwargs.pop("mean", None), None)
        refuse(name, out=out, dtype=dtype, **kwargs)
        x = as_operand(a, name, "input", 1)
        x = x if x._layout.floating else x.to(default_dtype())
        if chosen is not True or center is not None:
            found = variance_of(x, axis, chosen, center, correction, bool(keepdims))
            return root(found) if name == "std" else found
        return along(function, x, axis, correction=correction, keepdim=bool(keepdims))

    return call


def _given(value: Any, default: Any) -> Any:
    """Return an argument that NumPy hands over, or our default for its mark of none."""
    return default if value is np._NoValue else value


def _squeeze(a: Any, axis: Any = None) -> Any:
    """Remove dimensions of length 1. Of another length PyTorch leaves one alone, NumPy raises."""
    if axis is None:
        return ops.squeeze(a)
    dims = reduced_dims("squeeze", a.ndim, axis) if axis != () else ()
    if any(a.shape[dim] != 1 for dim in dims):
        raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one: {axis} of {a.shape}")
    return ops.squeeze(a, axis)


def _expand_dims(a: Any, axis: Any) -> Any:
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    for place in sorted(reduced_dims("expand_dims", a.ndim + count, axis) if count else ()):
        a = ops.unsqueeze(a, place)
    return a


def _transpose(a: Any, axes: Any = None) -> Any:
    return ops.permute(a, tuple(axes) if axes is not None else tuple(range(a.ndim - 1, -1, -1)))


def _reshape(a: Any, shape: Any, order: str = "C", **_: Any) -> Any:
    if order == "C":
        return ops.reshape(a, shape)
    if order != "F":
        raise unsupported("np.reshape", f"with order={order!r}")
    return ops.reshape(a, shape, order=order)


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, **kwargs: Any) -> Any:
    refuse("concatenate", out=out, dtype=kwargs.get("dtype"))
    if axis is None:
        return ops.cat([ops.reshape(one, (-1,)) for one in arrays])
    return ops.cat([as_operand(one, "concatenate", "arrays", 1) for one in map(no_list, arrays)], axis)


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return _concatenate([as_operand(one, "append", "arr", 1) for one in (arr, values)], axis)


def _stack(arrays: Any, axis: int = 0, out: Any = None, **kwargs: Any) -> Any:
    refuse("stack", out=out, dtype=kwargs.get("dtype"))
    return ops.stack([as_operand(one, "stack", "arrays", 1) for one in arrays], axis)


def _where(condition: Any, *values: Any) -> Any:
    if not values:
        return np.nonzero(plain(condition))
    return ops.where(condition, *values)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    refuse("clip", out=out)
    return clip_to(a, kwargs.get("min", a_min), kwargs.get("max", a_max))


def _arg(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        refuse(name, out=out)
        x = as_operand(a, name, "input", 1)
        return function(x.to("uint8") if x.dtype.kind == "b" else x, axis, keepdims is True)

    return call


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    refuse("dot", out=out)
    if 0 in (ndim_of(a), ndim_of(b)):
        return ops.mul(a, b)
    if ndim_of(b) > 2:
        return ops.tensordot(a, b, ([-1], [-2]))
    return ops.matmul(a, b)  # for matrices and vectors the same


def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    refuse("einsum", out=out, **kwargs)
    return ops.einsum(*operands)


def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return ops.clone(a)


def _like(name: str) -> Callable[..., Any]:
    def call(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
        return getattr(ops, name)(_shape_or(a, shape), dtype=dtype or a.dtype)

    return call


def _shape_or(a: Any, shape: Any) -> tuple[int, ...]:
    return tuple(a.shape if shape is None else np.atleast_1d(shape))


def _full_like(a: Any, fill_value: Any, dtype: Any = None, *_: Any, shape: Any = None, **__: Any) -> Any:
    if isinstance(fill_value, Tensor):
        return ops.clone(ops.broadcast_to(fill_value.to(dtype or a.dtype), _shape_or(a, shape)))
    return ops.full(_shape_or(a, shape), fill_value, dtype=dtype or a.dtype)


def _adapted(one: public.Public) -> Callable[..., Any]:
    """Return what takes the arguments of NumPy's functions that one of ours is."""
    adapter, function = one.names.adapter, one.function
    if isinstance(adapter, Mapping):
        return lambda *args, **kwargs: function(*args, **{adapter.get(key, key): own for key, own in kwargs.items()})
    return adapter if callable(adapter) else _ADAPTERS[adapter](one.name, function)


def _by_values(function: Callable[..., Any], wrap: bool = False) -> Callable[..., Any]:
    """Return NumPy's function on the values, for results that have no gradient: counts, comparisons, shapes."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*(values(arg) for arg in args), **{key: values(value) for key, value in kwargs.items()})
        return from_array(np.asarray(found)) if wrap else found

    return call


def _close(is_all: bool) -> Callable[..., Any]:
    function = _by_values(np.allclose if is_all else np.isclose, wrap=not is_all)

    def call(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
        if not is_followed(a, b):
            return function(a, b, rtol, atol, equal_nan)
        a, b = no_list(a), no_list(b)
        one, two = as_operand(a, "isclose", "a", 1), as_operand(b, "isclose", "b", 2)
        found = is_close(one, two, rtol, atol, equal_nan)
        return bool(ops.all(found)) if is_all else found

    return call


def _by_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's function on arrays, which refuses tensors that require grad."""
    return lambda *args, **kwargs: function(*map(plain, args), **{key: plain(own) for key, own in kwargs.items()})


# How the arguments of a function of NumPy are made ours; `Names.adapter` says which one it is.
_ADAPTERS: Final[dict[str, Callable[[str, Callable[..., Any]], Callable[..., Any]]]] = {
    "same": lambda name, function: function,
    "reduction": _reduction, "extremum": _extremum, "moment": _moment, "position": _arg,
}  # fmt: skip

_TABLE: Final[dict[Any, Callable[..., Any]]] = {
    np.cumsum: _cumsum,
    np.reshape: _reshape, np.ravel: lambda a, order="C": _reshape(a, (-1,), order),
    np.transpose: _transpose,
    np.squeeze: _squeeze, np.expand_dims: _expand_dims,
    np.broadcast_to: lambda array, shape, subok=False: ops.broadcast_to(array, shape),
    np.concatenate: _concatenate, np.stack: _stack, np.where: _where, np.clip: _clip, np.dot: _dot, np.copy: _copy,
    np.einsum: _einsum,
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: ops.diagonal(a, offset, axis1, axis2),
    np.outer: lambda a, b, out=None: ops.mul(ops.reshape(a, (-1, 1)), ops.reshape(b, (1, -1))),
    np.flip: lambda m, axis=None: ops.flip(m, tuple(range(m.ndim)) if axis is None else axis),
    np.zeros_like: _like("zeros"), np.ones_like: _like("ones"), np.empty_like: _like("empty"),
    np.full_like: _full_like,
    np.imag: imag_or_zero, np.pad: pad_of_numpy, np.append: _append,
    **{
        function: _by_values(function)
        for function in (
            np.shape, np.ndim, np.size, np.array_equal, np.iscomplexobj, np.isrealobj, np.result_type,
            np.may_share_memory, np.shares_memory, np.array_repr, np.array_str, np.count_nonzero, np.nonzero,
        )
    },
    np.isclose: _close(False), np.allclose: _close(True),
    **{function: _by_values(function) for function in (
        np.histogram, np.histogram2d, np.histogramdd, np.histogram_bin_edges, np.lexsort, np.ravel_multi_index,
        np.unravel_index, np.ix_, np.array_equiv, np.iscomplex, np.common_type, np.min_scalar_type, np.packbits,
        np.unpackbits, np.nanargmax, np.nanargmin, np.einsum_path,
    )},
    **{function: _by_arrays(function) for function in (np.save, np.savez, np.savez_compressed, np.savetxt)},
    np.linalg.tensordot: lambda a, b, /, *, axes=2: np.tensordot(a, b, axes),
    np.linalg.trace: lambda x, /, *, offset=0, dtype=None: ops.sum(
        ops.diagonal(x, offset, -2, -1), -1, dtype=dtype
    ),
    **FUNCTIONS, **STATISTICS, **ARRANGEMENT, **SERIES, **POLYNOMIALS, **SETS, **WRITES,
}  # fmt: skip


# Functions of NumPy that are one of ours, by the name under which it is found.
_OURS: Final[dict[Any, str]] = {attrgetter(name)(np): name for name in public.names_in(public.NUMPY)}


def functions() -> list[Any]:
    """Return NumPy's functions that tensors have, for lists of them."""
    return [*dict.fromkeys([*_TABLE, *_OURS])]


def array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call what the table has for one of NumPy's functions."""
    ours = _TABLE.get(function)
    if ours is None and (one := public.find(public.NUMPY, _OURS.get(function, ""))):
        ours = _TABLE[function] = _adapted(one)
    if ours is None:
        raise unsupported(_shown(function))
    args, kwargs = operands(function, args, kwargs)
    if kwargs and kwargs.get("out") is not None:
        rest = {key: own for key, own in kwargs.items() if key != "out"}
        return to_out(_shown(function), ours, kwargs["out"], args, rest)
    return ours(*args, **kwargs)


def _shown(function: Any) -> str:
    return f"{function.__module__.replace('numpy', 'np')}.{function.__name__}"

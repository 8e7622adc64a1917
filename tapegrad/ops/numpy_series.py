"""NumPy's functions of sequences: sums of products, differences, steps of equal ratio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import real_dtype
from tapegrad.ops.arithmetic import add, div, mul, pow, where
from tapegrad.ops.complex import real
from tapegrad.ops.concat import cat
from tapegrad.ops.cumulative import cumsum, prod
from tapegrad.ops.differences import diff
from tapegrad.ops.followed import corrections, is_followed
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import no_list, refuse
from tapegrad.ops.scans import cumprod
from tapegrad.ops.table.gateway import as_operand
from tapegrad.tensor import Tensor, from_array


def flat_of(call: str, name: str, value: Any) -> Tensor:
    """Return all elements of an operand in one dimension."""
    given = no_list(value)
    return reshape(as_operand(given, call, name, 1), (-1,))


# NumPy's own, which come back here; type checkers take their results for arrays.
_convolve: Final[Any] = np.convolve


# Sums and differences ----------------------------------------------------------------------------------------------


def _correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    x, y = flat_of("correlate", "a", a), flat_of("correlate", "v", v)
    if mode == "same" and len(x) < len(y):  # NumPy's middle of an even number is the other one
        reversed_middle: Tensor = _convolve(x.flip(0), y.conj(), mode).flip(0)
        return reversed_middle
    found: Tensor = _convolve(x, y.conj().flip(0), mode)
    return found


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    found = diff(flat_of("ediff1d", "ary", ary))
    ends = [None if own is None else flat_of("ediff1d", "ends", own) for own in (to_begin, to_end)]
    joined: Tensor = cat([own for own in (ends[0], found, ends[1]) if own is not None])
    return joined


def _unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Return angles without jumps; what is added to them is constant."""
    x = as_operand(p, "unwrap", "p", 1)
    if is_followed(x) and x._layout.floating and x.shape[axis]:
        return add(x, corrections(x, max(period / 2, discont or 0.0), axis % x.ndim, period))
    values = np.asarray(x._data)
    turns = np.round((np.unwrap(values, discont, axis, period=period) - values) / period) * period
    return add(x, from_array(turns.astype(x.dtype)))


def _without_nan(name: str, function: Callable[..., Tensor], neutral: float) -> Callable[..., Tensor]:
    def call(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Tensor:
        keeps = kwargs.pop("keepdims", False) is True
        refuse(name, out=out, **kwargs)
        x = as_operand(a, name, "a", 1)
        x = where(x == x, x, neutral) if x.dtype.kind in "fc" else x
        if name != "nanprod":
            return function(reshape(x, (-1,)) if axis is None else x, axis or 0, dtype=dtype)
        found = function(x, axis, keeps)
        return found if dtype is None else found.to(dtype)

    return call


# Equal ratios ------------------------------------------------------------------------------------------------------


def _logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    powers = np.linspace(start, stop, num, endpoint, axis=axis)
    found = pow(base, powers)
    return found if dtype is None else found.to(dtype)


def _geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    first, last = as_operand(start, "geomspace", "start", 1), as_operand(stop, "geomspace", "stop", 2)
    ratio = div(last, first)
    if np.any(np.asarray(first._data) == 0) or np.any(np.asarray(last._data) == 0):
        raise ValueError("Geometric sequence cannot include zero")
    shape = [1] * ratio.ndim
    parts = np.linspace(0.0, 1.0, num, endpoint).reshape(-1, *shape).astype(real_dtype(ratio.dtype))
    found = mul(first, pow(ratio, parts)).movedim(0, axis)
    return found if dtype is None else found.to(dtype)


# Complex numbers --------------------------------------------------------------------------------------------------


def _real_if_close(a: Any, tol: float = 100) -> Tensor:
    x = as_operand(a, "real_if_close", "a", 1)
    return real(x) if x.dtype.kind == "c" and not np.iscomplexobj(np.real_if_close(x._data, tol)) else x


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.correlate: _correlate, np.ediff1d: _ediff1d, np.unwrap: _unwrap,
    np.nancumsum: _without_nan("nancumsum", cumsum, 0.0), np.nancumprod: _without_nan("nancumprod", cumprod, 1.0),
    np.nanprod: _without_nan("nanprod", prod, 1.0), np.logspace: _logspace, np.geomspace: _geomspace,
    np.real_if_close: _real_if_close,
}  # fmt: skip

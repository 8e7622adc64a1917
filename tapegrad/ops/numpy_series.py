"""NumPy's functions of sequences: sums of products, differences, steps of equal ratio, polynomials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import add, div, mul, pow, sub, where
from tapegrad.ops.complex import real
from tapegrad.ops.concat import cat
from tapegrad.ops.cumulative import cumsum, prod
from tapegrad.ops.differences import diff
from tapegrad.ops.fill import zeros
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import no_list, unsupported
from tapegrad.ops.scans import cumprod
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.tensor import Tensor, from_array


def _flat(call: str, name: str, value: Any) -> Tensor:
    given = no_list(value)
    return reshape(as_operand(given, call, name, 1), (-1,))


# NumPy's own, which come back here; type checkers take their results for arrays.
_convolve: Final[Any] = np.convolve
_eigvals: Final[Any] = np.linalg.eigvals


# Sums and differences ----------------------------------------------------------------------------------------------


def _correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    x, y = _flat("correlate", "a", a), _flat("correlate", "v", v)
    if mode == "same" and len(x) < len(y):  # NumPy's middle of an even number is the other one
        reversed_middle: Tensor = _convolve(x.flip(0), y.conj(), mode).flip(0)
        return reversed_middle
    found: Tensor = _convolve(x, y.conj().flip(0), mode)
    return found


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    found = diff(_flat("ediff1d", "ary", ary))
    ends = [None if own is None else _flat("ediff1d", "ends", own) for own in (to_begin, to_end)]
    joined: Tensor = cat([own for own in (ends[0], found, ends[1]) if own is not None])
    return joined


def _unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Return angles without jumps; what is added to them is constant."""
    x = as_operand(p, "unwrap", "p", 1)
    values = np.asarray(x._data)
    turns = np.round((np.unwrap(values, discont, axis, period=period) - values) / period) * period
    return add(x, from_array(turns.astype(x.dtype)))


def _without_nan(name: str, function: Callable[..., Tensor], neutral: float) -> Callable[..., Tensor]:
    def call(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Tensor:
        if out is not None or not kwargs.keys() <= {"keepdims"}:
            raise unsupported(f"np.{name}", "with out=, initial= or where=")
        x = as_operand(a, name, "a", 1)
        x = where(x == x, x, neutral) if x.dtype.kind in "fc" else x
        if name != "nanprod":
            return function(reshape(x, (-1,)) if axis is None else x, axis or 0, dtype=dtype)
        found = function(x, axis, kwargs.get("keepdims") is True)
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
    parts = np.linspace(0.0, 1.0, num, endpoint).reshape(-1, *shape).astype(real_dtype(ratio))
    found = mul(first, pow(ratio, parts)).movedim(0, axis)
    return found if dtype is None else found.to(dtype)


def real_dtype(x: Tensor) -> np.dtype:
    """Return the dtype of a tensor's real parts."""
    return np.zeros(0, x.dtype).real.dtype


# Polynomials -------------------------------------------------------------------------------------------------------


def _polyadd_of(name: str, function: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    def call(a1: Any, a2: Any) -> Tensor:
        x, y = _flat(name, "a1", a1), _flat(name, "a2", a2)
        n = max(len(x), len(y))
        return function(*(cat([zeros(n - len(own), dtype=own.dtype), own]) for own in (x, y)))

    return call


def _polymul(a1: Any, a2: Any) -> Tensor:
    factors = (np.trim_zeros(_flat("polymul", name, own), "f") for name, own in (("a1", a1), ("a2", a2)))
    first, second = (own if len(own) else zeros(1, dtype=own.dtype) for own in factors)
    product: Tensor = _convolve(first, second)
    return product


def _polyder(p: Any, m: int = 1) -> Tensor:
    x = _flat("polyder", "p", p)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        x = mul(x[:-1], from_array(np.arange(len(x) - 1, 0, -1).astype(x.dtype)))
    return x


def _polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    x = _flat("polyint", "p", p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = zeros(m, dtype=x.dtype) if k is None else _flat("polyint", "k", k)
    if len(constants) not in (1, m) or (len(constants) == 1 and m > 1 and len(shape_of(k))):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for j in range(m):
        own = constants[min(j, len(constants) - 1)]
        x = cat([div(x, from_array(np.arange(len(x), 0, -1).astype(x.dtype))), reshape(own, (1,))])
    return x


def _poly(seq_of_zeros: Any) -> Tensor:
    """Return the coefficients of the polynomial with these roots, or those of the characteristic one of a matrix."""
    roots = as_operand(seq_of_zeros, "poly", "seq_of_zeros", 1)
    roots = _eigvals(roots) if roots.ndim == 2 else roots
    result = from_array(np.ones(1, roots.dtype))
    for root in roots:
        result = cat([result, zeros(1, dtype=result.dtype)]) - cat([zeros(1, dtype=result.dtype), mul(root, result)])
    return result


# Complex numbers --------------------------------------------------------------------------------------------------


def _real_if_close(a: Any, tol: float = 100) -> Tensor:
    x = as_operand(a, "real_if_close", "a", 1)
    return real(x) if x.dtype.kind == "c" and not np.iscomplexobj(np.real_if_close(x._data, tol)) else x


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.correlate: _correlate, np.ediff1d: _ediff1d, np.unwrap: _unwrap,
    np.nancumsum: _without_nan("nancumsum", cumsum, 0.0), np.nancumprod: _without_nan("nancumprod", cumprod, 1.0),
    np.nanprod: _without_nan("nanprod", prod, 1.0), np.logspace: _logspace, np.geomspace: _geomspace,
    np.polyadd: _polyadd_of("polyadd", add), np.polysub: _polyadd_of("polysub", sub), np.polymul: _polymul,
    np.polyder: _polyder, np.polyint: _polyint, np.poly: _poly, np.real_if_close: _real_if_close,
}  # fmt: skip

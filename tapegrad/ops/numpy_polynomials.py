"""NumPy's functions of polynomials, by the coefficients with the highest degree first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import add, div, mul, sub
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.concat import cat
from tapegrad.ops.eigenvalues import eigvals
from tapegrad.ops.fill import zeros
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_series import flat_of
from tapegrad.ops.numpy_ufuncs import no_list, refuse
from tapegrad.ops.older import vander
from tapegrad.ops.pseudoinverses import lstsq
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.transcendental import sqrt
from tapegrad.tensor import Tensor, from_array

_convolve: Final[Any] = np.convolve  # comes back here; type checkers take its results for arrays


def _polyadd_of(name: str, function: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    def call(a1: Any, a2: Any) -> Tensor:
        x, y = flat_of(name, "a1", a1), flat_of(name, "a2", a2)
        n = max(len(x), len(y))
        return function(*(cat([zeros(n - len(own), dtype=own.dtype), own]) for own in (x, y)))

    return call


def _polymul(a1: Any, a2: Any) -> Tensor:
    factors = (np.trim_zeros(flat_of("polymul", name, own), "f") for name, own in (("a1", a1), ("a2", a2)))
    first, second = (own if len(own) else zeros(1, dtype=own.dtype) for own in factors)
    product: Tensor = _convolve(first, second)
    return product


def _polyder(p: Any, m: int = 1) -> Tensor:
    x = flat_of("polyder", "p", p)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        x = mul(x[:-1], from_array(np.arange(len(x) - 1, 0, -1).astype(x.dtype)))
    return x


def _polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    x = flat_of("polyint", "p", p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = zeros(m, dtype=x.dtype) if k is None else flat_of("polyint", "k", k)
    if len(constants) not in (1, m) or (len(constants) == 1 and m > 1 and len(shape_of(k))):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for j in range(m):
        own = constants[min(j, len(constants) - 1)]
        x = cat([div(x, from_array(np.arange(len(x), 0, -1).astype(x.dtype))), reshape(own, (1,))])
    return x


def _poly(seq_of_zeros: Any) -> Tensor:
    """Return the coefficients of the polynomial with these roots, or those of the characteristic one of a matrix."""
    roots = as_operand(seq_of_zeros, "poly", "seq_of_zeros", 1)
    roots = eigvals(roots) if roots.ndim == 2 else roots
    result = from_array(np.ones(1, roots.dtype))
    for root in roots:
        result = cat([result, zeros(1, dtype=result.dtype)]) - cat([zeros(1, dtype=result.dtype), mul(root, result)])
    return result


def _polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder, whose leading zeros are cut off."""
    rest, divisor = flat_of("polydiv", "u", u), flat_of("polydiv", "v", v)
    n, parts = len(divisor), []
    for _ in range(len(rest) - n + 1):
        parts.append(div(rest[:1], divisor[:1]))
        rest = cat([sub(rest[1:n], mul(parts[-1], divisor[1:])), rest[n:]])
    values = np.asarray(rest._data)
    zero = np.isclose(values, 0, rtol=1e-14)
    begin = min(int(np.argmin(zero)) if not zero.all() else len(values) - 1, max(len(values) - 1, 0))
    quotient = cat(parts) if parts else zeros(1, dtype=rest.dtype)
    return quotient, rest[begin:] if len(rest) else zeros(1, dtype=rest.dtype)


def _polyfit(
    x: Any, y: Any, deg: Any, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Tensor:
    """Return the coefficients of the polynomial that fits best, by least squares."""
    refuse("polyfit", full=full, cov=cov)
    if np.ndim(deg) or deg < 0:
        raise ValueError("expected deg >= 0; np.polyfit() of tensors takes one degree")
    y = no_list(y)
    points, values = add(flat_of("polyfit", "x", x), 0.0), add(as_operand(y, "polyfit", "y", 2), 0.0)  # of integers too
    if len(values) != len(points):
        raise TypeError(f"expected x and y to have same length; they have {len(points)} and {len(values)}")
    rows = vander(points, deg + 1)
    right = values if values.ndim == 2 else unsqueeze(values, -1)
    if w is not None:
        weights = unsqueeze(flat_of("polyfit", "w", w), -1)
        rows, right = mul(rows, weights), mul(right, weights)
    scale = sqrt(sum(mul(rows, rows), 0))
    cut = len(points) * np.finfo(rows.dtype).eps if rcond is None else rcond
    found = div(lstsq(div(rows, scale), right, cut)[0], unsqueeze(scale, -1))
    result: Tensor = found if values.ndim == 2 else found[:, 0]
    return result


def _roots(p: Any) -> Tensor:
    """Return the eigenvalues of the companion matrix; complex, as all eigenvalues here."""
    x = flat_of("roots", "p", p)
    places = np.flatnonzero(np.asarray(x._data))
    if not len(places):
        return zeros(0, dtype=x.dtype)
    last = int(places[-1])
    own = x[int(places[0]) : last + 1]
    n = len(own) - 1
    top = div(-own[1:], own[:1])
    found: Tensor = eigvals(cat([unsqueeze(top, 0), from_array(np.eye(n - 1, n, dtype=x.dtype))])) if n > 0 else top
    result: Tensor = cat([found, zeros(len(x) - 1 - last, dtype=found.dtype)])
    return result


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.polyadd: _polyadd_of("polyadd", add), np.polysub: _polyadd_of("polysub", sub), np.polymul: _polymul,
    np.polydiv: _polydiv, np.polyfit: _polyfit, np.polyder: _polyder, np.polyint: _polyint, np.poly: _poly,
    np.roots: _roots,
}  # fmt: skip

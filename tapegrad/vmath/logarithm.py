"""log, log2, log10, log1p, softplus: x = 2**k m, and log m from s = f / (2 + f), f = m - 1 (Tang 1990; fdlibm)."""

from __future__ import annotations

import math

from tapegrad.vmath import pairs
from tapegrad.vmath.exponential import EXP, EXP_SINGLE, exp_parts
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_tiny, split, times_power_of_two
from tapegrad.vmath.functions import function, in_double
from tapegrad.vmath.lanes import Lanes, absolute, fma, number, polynomial, root, where

__all__ = ["log", "log10", "log1p", "log1p_of_finite", "log2", "log_of", "softplus"]

# (2 artanh(s) - 2 s) / s**3 in s**2, for m in [sqrt(1/2), sqrt(2)]; error relative to the logarithm 2**-59.5.
LOG = (
    0.6666666666666735, 0.39999999999407543, 0.28571428744123684, 0.2222219838073301, 0.18183575030004337,
    0.1531375960897712, 0.14799024422136922,
)  # fmt: skip
# (log(1 + f) - f + f**2 / 2) / f**3; error of the logarithm 2**-27.3.
LOG_SINGLE = (
    0.33333316445350647, -0.25000813603401184, 0.20002371072769165, -0.1662442982196808, 0.14179068803787231,
    -0.13128645718097687, 0.128975972533226, -0.07878890633583069,
)  # fmt: skip


# log_b(2) and log_b(e) for two bases b, in two parts.
TWO = (1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17)
TEN = (0.3010299956639812, -2.8037281277851704e-18), (0.4342944819032518, 1.098319650216765e-17)
Base = tuple[tuple[float, float], tuple[float, float]]


def _off(f: Lanes, rest: Lanes | float, form: Format) -> Lanes:
    """Return log(1 + f) - f + rest."""
    if form == DOUBLE:
        s = f / (2.0 + f)
        square = s * s
        return fma(-s, fma(-square, polynomial(square, LOG), f), rest)
    return fma(f * f, fma(f, polynomial(f, LOG_SINGLE), -0.5), rest)


def log_of(k: Lanes, f: Lanes, rest: Lanes | float, form: Format) -> Lanes:
    """Return k log 2 + log(1 + f) + rest, where the rest is small."""
    return fma(k, form.ln2[0], f + _off(f, fma(k, form.ln2[1], rest), form))


def _log_to(base: Base, k: Lanes, f: Lanes) -> Lanes:
    """Return the logarithm of 2**k (1 + f) to a base: exact where it is an integer."""
    two, e = base
    whole, part = k * two[0], f * e[0]
    high = whole + part
    low = fma(k, two[1], fma(k, two[0], -whole)) + fma(f, e[1], fma(f, e[0], -part))
    return high + (((whole - high) + part) + fma(_off(f, 0.0, DOUBLE), e[0], low))


def _log(x: Lanes, form: Format, base: Base | None = None) -> tuple[Lanes, Lanes]:
    k, m, _ = split(x, form)
    result = _log_to(base, k, m - 1.0) if base else log_of(k, m - 1.0, 0.0, form)
    return result, ~((x >= form.normal) & (x < math.inf))


def _log_of_any(x: Lanes, base: Base | None = None) -> Lanes:
    """Return the logarithms of numbers of which some are not normal, or not positive."""
    form = SINGLE if x.single else DOUBLE
    tiny = x < form.normal
    k, m, _ = split(where(tiny, x * 2.0 ** (form.shift + 2), x), form)
    k = where(tiny, k - (form.shift + 2.0), k)
    return _edges(x, x, _log_to(base, k, m - 1.0) if base else log_of(k, m - 1.0, 0.0, form))


def _edges(x: Lanes, u: Lanes, result: Lanes) -> Lanes:
    """Put in the logarithms of u that are not finite, by what sets the CPU's flags; nan and inf are those of x."""
    result = where(u > 0.0, result, where(u == 0.0, -1.0 / absolute(u), root(u)))
    return where(x == math.inf, x, result)


def log1p_of_finite(x: Lanes, form: Format, low: Lanes | float = 0.0) -> tuple[Lanes, Lanes]:
    """Return log(1 + x + low) where that is finite, for a low part that is small beside x; and 1 + x."""
    u = 1.0 + x
    before = u - 1.0
    error = (1.0 - (u - before)) + (x - before)  # u + error = 1 + x (Knuth)
    if isinstance(low, Lanes):
        error = error + low
    k, m, exponent = split(u, form)
    # error / 2**k, and by 1 / m = 1 - f + f**2: it is half an ulp of m at most. For k = 0, f = x exactly.
    scale = number((2 * form.bias << form.shift) - (exponent << form.shift))
    scale = where(u > 2.0 ** (form.shift + 8), 0.0, scale)
    near = k == 0.0
    f = where(near, x, m - 1.0)
    rest = where(near, low, error * scale * fma(f, f - 1.0, 1.0))
    return keep_tiny(x, log_of(k, f, rest, form), form), u


def _log1p(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    result, u = log1p_of_finite(x, form)
    return result, ~((u > 0.0) & (u < math.inf))


def _log1p_of_any(x: Lanes) -> Lanes:
    """Return log(1 + x) where some are not finite."""
    result, u = log1p_of_finite(x, SINGLE if x.single else DOUBLE)
    return _edges(x, u, result)


def _softplus(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    """Return max(x, 0) + log(1 + e), where e = exp(-|x|) is at most 1."""
    n, high, low = exp_parts(-absolute(x), form, coefficients)
    e, e_low = times_power_of_two(high, n, form), times_power_of_two(low, n, form)
    large = e > math.sqrt(2.0) - 1.0
    f = where(large, 0.5 * (e - 1.0), e)  # exact
    rest = e_low * fma(e, -0.5, 1.0)  # about e_low / (1 + e)
    result = log_of(where(large, 1.0, e * 0.0), f, rest, form)
    return where(x > 0.0, x, 0.0) + result


log = function(
    "log", lambda x: _log(x, DOUBLE), lambda x: _log(x, SINGLE), otherwise=pairs.log, rare=_log_of_any, whole=True
)
log2 = in_double("log2", lambda x: _log(x, DOUBLE, TWO), lambda x: _log_of_any(x, TWO))
log10 = in_double("log10", lambda x: _log(x, DOUBLE, TEN), lambda x: _log_of_any(x, TEN))
log1p = function("log1p", lambda x: _log1p(x, DOUBLE), lambda x: _log1p(x, SINGLE), rare=_log1p_of_any, whole=True)
softplus = function("softplus", lambda x: _softplus(x, DOUBLE, EXP), lambda x: _softplus(x, SINGLE, EXP_SINGLE))

"""exp, exp2, expm1, sinh, cosh, tanh, sigmoid: x = n log 2 + r, and a polynomial in r (Cody & Waite 1980)."""

from __future__ import annotations

from tapegrad.vmath import pairs
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_tiny, power_of_two, quotient, times_power_of_two
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, polynomial, where

__all__ = ["cosh", "exp", "exp2", "expm1", "sigmoid", "sinh", "tanh"]

LOG2_E = 1.4426950408889634
# (e**r - 1 - r) / r**2 for |r| <= log(2) / 2. Relative error of e**r: 2**-57.9, 2**-28.3 (tools/minimax.py).
EXP = (
    0.500000000000001, 0.1666666666666642, 0.04166666666653552, 0.0083333333334931, 0.0013888888942393044,
    0.00019841269506615765, 2.48014942529053e-05, 2.7557588222276933e-06, 2.7629871435933324e-07,
    2.4999027205713267e-08,
)  # fmt: skip
EXP_SINGLE = (0.4999999403953552, 0.1666652113199234, 0.041668374091386795, 0.008368643932044506, 0.0013814909616485238)
# The same with the error relative to e**r - 1: 2**-55.5, 2**-26.1.
EXPM1 = (
    0.5000000000000006, 0.16666666666666685, 0.04166666666657814, 0.008333333333315178, 0.001388888893120337,
    0.00019841269901756315, 2.4801505637731916e-05, 2.755722908029975e-06, 2.762591267525603e-07,
    2.5114122673803167e-08,
)  # fmt: skip
EXPM1_SINGLE = (0.5, 0.1666654497385025, 0.041666291654109955, 0.008366459980607033, 0.001394602470099926)
# (tanh r - r) / r**3 in r**2, r <= log(2) / 2. Error relative to r: 2**-56.8, 2**-31.1.
TANH = (
    -0.33333333333332643, 0.1333333333314576, -0.0539682537942019, 0.021869480716239176, -0.0088630407354546,
    0.0035892888787286584, -0.0014316281478651545, 0.00047670567838800995,
)  # fmt: skip
TANH_SINGLE = (-0.33333322405815125, 0.13332410156726837, -0.05373255908489227, 0.019469022750854492)


def reduced(x: Lanes, form: Format) -> tuple[Lanes, Lanes, Lanes]:
    """Return n in the lowest bits of integers, and the high and low part of x - n log 2."""
    shifted = fma(x, LOG2_E, form.magic)
    n = shifted - form.magic
    first = fma(-n, form.ln2[0], x)  # exact, as both are multiples of the same 2**-54 and the difference is below 1/2
    high = fma(-n, form.ln2[1], first)
    return bits(shifted), high, fma(-n, form.ln2[1], first - high)


def exp_parts(
    x: Lanes, form: Format, coefficients: tuple[float, ...], low: Lanes | float = 0.0
) -> tuple[Lanes, Lanes, Lanes]:
    """Return n as `times_power_of_two` takes it, and the high and low part of exp(x + low) / 2**n, for a small low."""
    is_zero = x < form.lowest
    x = where(is_zero, form.lowest, x)
    x = where(x > form.highest, form.highest, x)
    shifted = fma(x, LOG2_E, form.magic)
    n = shifted - form.magic
    r = fma(-n, form.ln2[1], fma(-n, form.ln2[0], x))
    if isinstance(low, Lanes):
        r = r + low
    part = fma(r * r, polynomial(r, coefficients), r)
    high = part + 1.0
    # What is rounded to 0 takes CPUs up to 50 times as long as a product with 0.
    return bits(shifted), where(is_zero, 0.0, high), where(is_zero, 0.0, part - (high - 1.0))


def exp_of(x: Lanes, form: Format, coefficients: tuple[float, ...], low: Lanes | float = 0.0, times: int = 0) -> Lanes:
    """Return 2**times exp(x + low) for a low part that is small beside 1."""
    n, high, _ = exp_parts(x, form, coefficients, low)
    return times_power_of_two(high, n + times, form)


def _exp2(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    """Return 2**n exp(r log 2), where x = n + r: exact for integers."""
    lowest, highest = -form.bias - form.shift - 3.0, form.bias + 3.0
    is_zero = x < lowest
    x = where(is_zero, lowest, x)
    x = where(x > highest, highest, x)
    shifted = x + form.magic
    r = (x - (shifted - form.magic)) * form.ln2[0]
    part = fma(r * r, polynomial(r, coefficients), r)
    return times_power_of_two(where(is_zero, 0.0, part + 1.0), bits(shifted), form)


def expm1_parts(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> tuple[Lanes, Lanes]:
    """Return a quarter of e**x - 1 as a high and a low part; a quarter, so that 2**n never overflows alone."""
    n, r, r_low = reduced(x, form)
    correction = fma(r * r, polynomial(r, coefficients), r_low)
    high = r + correction
    low = (r - high) + correction
    scale = power_of_two(n - 2, form)
    rest = scale - 0.25
    result = fma(scale, high, rest)
    return result, fma(scale, low, fma(scale, high, rest - result))


def _expm1(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    lowest = -0.75 * (form.shift + 4)  # e**lowest is nothing beside 1
    inside = where(x < lowest, lowest, x)
    inside = where(inside > form.highest, form.highest, inside)
    high, _ = expm1_parts(inside, form, coefficients)
    return keep_tiny(x, 4.0 * high, form)


def _tanh(x: Lanes, form: Format) -> Lanes:
    """Return (s - 1 + (s + 1) h) / (s + 1 + (s - 1) h), where |x| = n log(2) / 2 + r, s = 2**n and h = tanh r.

    As r is not negative, nothing cancels. From s = 4 on it is 1 - 2 (1 - h) / (s + 1 + (s - 1) h):
    the quotient is small then.
    """
    size = absolute(x)
    size = where(size > form.one, form.one, size)
    shifted = fma(size, 2.0 * LOG2_E, -0.5) + form.magic
    n = shifted - form.magic
    r = fma(-n, 0.5 * form.ln2[1], fma(-n, 0.5 * form.ln2[0], size))
    square = r * r
    h = fma(r * square, polynomial(square, TANH if form == DOUBLE else TANH_SINGLE), r)
    s = power_of_two(bits(shifted), form)
    less, more = s - 1.0, s + 1.0
    few = n < 2.0
    result = where(few, fma(more, h, less), fma(h, 2.0, -2.0)) / fma(less, h, more)
    return copysign(where(few, result, 1.0 + result), x)


def _sigmoid(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    """Return 1 / (1 + e) or e / (1 + e), where e = exp(-|x|)."""
    e = exp_of(-absolute(x), form, coefficients)
    under = 1.0 + e
    return quotient(where(x >= 0.0, 1.0, e), None, under, e - (under - 1.0))


def _cosh(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    half = exp_of(absolute(x), form, coefficients, times=-1)
    return half + 0.25 / half


def _sinh(x: Lanes, form: Format, coefficients: tuple[float, ...]) -> Lanes:
    """Return (m + m / (1 + m)) / 2, where m = exp(|x|) - 1."""
    size = absolute(x)
    high, low = expm1_parts(where(size > form.highest, form.highest, size), form, coefficients)
    inverse = 1.0 / fma(high, 4.0, 1.0)
    result = 2.0 * (high + fma(high, inverse, fma(low * inverse, inverse, low)))
    return keep_tiny(x, copysign(result, x), form)


exp = function("exp", lambda x: exp_of(x, DOUBLE, EXP), lambda x: exp_of(x, SINGLE, EXP_SINGLE), otherwise=pairs.exp)
exp2 = function(
    "exp2", lambda x: _exp2(x, DOUBLE, EXP), lambda x: _exp2(x, SINGLE, EXP_SINGLE),
    otherwise=pairs.exp2,
)  # fmt: skip
expm1 = function("expm1", lambda x: _expm1(x, DOUBLE, EXPM1), lambda x: _expm1(x, SINGLE, EXPM1_SINGLE))
tanh = function("tanh", lambda x: _tanh(x, DOUBLE), lambda x: _tanh(x, SINGLE), otherwise=pairs.tanh)
sigmoid = function("sigmoid", lambda x: _sigmoid(x, DOUBLE, EXP), lambda x: _sigmoid(x, SINGLE, EXP_SINGLE))
cosh = function("cosh", lambda x: _cosh(x, DOUBLE, EXP), lambda x: _cosh(x, SINGLE, EXP_SINGLE), otherwise=pairs.cosh)
sinh = function(
    "sinh", lambda x: _sinh(x, DOUBLE, EXPM1), lambda x: _sinh(x, SINGLE, EXPM1_SINGLE), otherwise=pairs.sinh
)

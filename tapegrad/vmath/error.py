"""erf: a polynomial about the nearest of 16 centres, with coefficients from a table.

In float32 it is x times a polynomial in x**2 up to 1, beyond 1 - exp(-x**2) times a polynomial, both for all numbers.

erfc: 1 - erf up to 1/2, beyond exp(-x**2) / (1 + 2 x) times a polynomial in (x - K) / (x + K) (M. M. Shepherd and J. G.
Laframboise, Math. Comp. 36, 1981). erfcx and log_ndtr are made of that polynomial, too.
"""

from __future__ import annotations

from tapegrad.vmath.avx512 import chosen
from tapegrad.vmath.error_table import ERF_ROWS
from tapegrad.vmath.exponential import EXP, EXP_SINGLE, exp_of, exp_parts
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, quotient, split, times_power_of_two
from tapegrad.vmath.functions import function, in_double
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, polynomial, where
from tapegrad.vmath.logarithm import log_of

__all__ = ["erf", "erfc", "erfcx", "log_ndtr"]

# erf(x) / x - 1 in x**2 for |x| <= 1, relative error 2**-56.9 and 2**-29.6 (tools/minimax.py).
SMALL = (
    0.12837916709551256, -0.37612638903183515, 0.11283791670944078, -0.026866170643093983, 0.0052239776059709595,
    -0.0008548325922063054, 0.00012055293355121583, -1.4924707955420549e-05, 1.6447076964932265e-06,
    -1.6205888643249607e-07, 1.370911365169976e-08, -7.775934917326648e-10,
)  # fmt: skip
SMALL_SINGLE = (
    0.12837916612625122, -0.3761262595653534, 0.1128358393907547, -0.026853766292333603, 0.005188231822103262,
    -0.0008009271696209908, 7.850555266486481e-05,
)  # fmt: skip
# exp((1 + t)**2) erfc(1 + t) for 1 + t up to 4, error of erf 2**-28.6.
LARGE_SINGLE = (
    0.42758357524871826, -0.2732110619544983, 0.15435054898262024, -0.07905328273773193, 0.03687480092048645,
    -0.015109865926206112, 0.004911037627607584, -0.001056951005011797, 0.00010682591528166085,
)  # fmt: skip
# (1 + 2 x) exp(x**2) erfc(x) in (x - K) / (x + K) for all x from 0 on, relative error 2**-59.7.
COMPLEMENT = (
    1.2423492448711544, -0.14000918013761943, -0.010555596332218541, 0.09751909515325695, -0.1150895981601799,
    0.08798315382496331, -0.0488233258280997, 0.01909933094004802, -0.004215019906625955, -0.00030226784774156396,
    0.0005643844196431963, -0.00012151264319548475, -4.278229092119936e-05, 2.4261987108924026e-05,
    2.3286388515085743e-06, -3.817671447723327e-06, -4.5163391403651024e-08, 6.068597856586455e-07,
    -6.445625495791291e-09, -1.0168052221953953e-07, -7.712846825258834e-10, 1.694164265052955e-08,
    6.07671531465928e-10, -2.3713452410041977e-09, -9.121745710465565e-11, 1.9282242523214106e-10,
)  # fmt: skip
K = 3.5
ROOT_PI_INVERSE = 0.5641895835477563
ROOT_HALF = 0.7071067811865476, -4.833646656726457e-17


def _near(size: Lanes, form: Format) -> Lanes:
    return fma(size, polynomial(size * size, SMALL if form == DOUBLE else SMALL_SINGLE), size)


def _erf(x: Lanes) -> Lanes:
    """Return erf(c) + t p(t), where |x| = c + t, and p is the polynomial of the centre c; about 0 it is t + t p(t)."""
    size = absolute(x)
    size = where(size > 5.95, 5.95, size)  # beyond, erf is 1
    which = bits(fma(size, fma(size, -0.236, 4.0), DOUBLE.magic))
    centre, value, *coefficients = (chosen(which, column) for column in zip(*ERF_ROWS, strict=True))
    t = size - centre
    return copysign(fma(t, polynomial(t, coefficients), where(centre == 0.0, t, value)), x)


def _erf_single(x: Lanes) -> Lanes:
    size = absolute(x)
    # In a loop with erf's derivative, LLVM computes this exponential once.
    power = exp_of(-(x * x), SINGLE, EXP_SINGLE)
    scaled = polynomial(where(size > 4.0, 4.0, size) - 1.0, LARGE_SINGLE)  # beyond, erf is 1
    return copysign(where(size < 1.0, _near(size, SINGLE), fma(-power, scaled, 1.0)), x)


erf = function("erf", _erf, _erf_single)


def _scaled(size: Lanes) -> Lanes:
    """Return exp(x**2) erfc(x) for x from 1/2 to 1e10."""
    more, less = size + K, size - K
    near = quotient(less, (size - (less + K)), more, size - (more - K))
    under = fma(size, 2.0, 1.0)
    return quotient(polynomial(near, COMPLEMENT), None, under, fma(size, 2.0, 1.0 - under))


def _power(square: Lanes, low: Lanes, factor: Lanes) -> Lanes:
    """Return exp(square + low) times a factor."""
    n, power, rest = exp_parts(square, DOUBLE, EXP, low)
    return times_power_of_two(fma(power, factor, rest * factor), n, DOUBLE)


def _erfc(x: Lanes) -> Lanes:
    size = absolute(x)
    size = where(size > 27.5, 27.5, size)  # beyond, erfc is 0
    square = size * size
    result = _power(-square, -fma(size, size, -square), _scaled(size))
    result = where(x < 0.0, 2.0 - result, result)
    return where(size < 0.5, 1.0 - copysign(_near(size, DOUBLE), x), result)


def _scaled_of_any(size: Lanes) -> Lanes:
    return where(size > 1e10, ROOT_PI_INVERSE / size, _scaled(size))


def _erfcx(x: Lanes) -> Lanes:
    """Return exp(x**2) (1 - erf(x)) up to 1/2; for x below -1/2 twice the exponential less the function of -x."""
    size = absolute(x)
    scaled = _scaled_of_any(size)
    near, size = size < 0.5, where(size > 27.5, 27.5, size)  # beyond, exp(x**2) is infinite
    square = size * size
    factor = where(near, 1.0 - copysign(_near(size, DOUBLE), x), 2.0)
    power = _power(square, fma(size, size, -square), factor)
    return where(near, power, where(x < 0.0, power - scaled, scaled))


def _log_ndtr(x: Lanes) -> Lanes:
    """Return log((1 + erf(t)) / 2) where t = x / sqrt(2) is small.

    Below it is log(g) - t**2, and above log(1 - g exp(-t**2)), where g is half the scaled complement of |t|.
    """
    size = absolute(x)
    t = where(size > 1e300, 1e300, size)
    t = fma(t, ROOT_HALF[0], t * ROOT_HALF[1])
    half = 0.5 * _scaled_of_any(t)
    end = where(size > 40.0, 40.0, size)  # beyond, the exponential is 0
    square = end * end
    part = _power(-0.5 * square, -0.5 * fma(end, end, -square), half)
    k, m, _ = split(half, DOUBLE)
    below, near = x < 0.0, (x > -0.35) & (x < 0.95)
    f = copysign(_near(t, DOUBLE), x)
    large = f > 0.41
    # 1 + f is the double of the function, or the function.
    f = where(near, where(large, 0.5 * (f - 1.0), f), where(below, m - 1.0, -part))
    k = where(near, where(large, 0.0 * t, -1.0), where(below, k, 0.0))
    result = log_of(k, f, 0.0, DOUBLE)
    return where(below & ~near, fma(size * -0.5, size, result), result)


erfc = in_double("erfc", _erfc)
erfcx = in_double("erfcx", _erfcx)
log_ndtr = in_double("log_ndtr", _log_ndtr)

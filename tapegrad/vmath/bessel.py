"""Modified Bessel functions of the first kind of orders 0, 1 and 2, and these scaled by exp(-|x|).

Up to 10 a polynomial in x**2 / 4, as the power series has it (DLMF 10.25.2), whose terms are all positive; beyond
exp(x) / sqrt(x) times a polynomial in 1 / x, as the asymptotic expansion has it (DLMF 10.40.1). Both are computed for
all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from tapegrad.vmath.exponential import EXP, exp_parts
from tapegrad.vmath.formats import DOUBLE, times_power_of_two
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, copysign, fma, narrow, polynomial, root, where, wide

__all__ = ["bessel_i2", "bessel_i2e", "i0", "i0e", "i1", "i1e"]

_END = 10.0  # of the first polynomial
_FIRST_LOW = -2.49232720227773e-17  # of all those first coefficients
_SHIFT, _GROWTH = 20.0, 485165195.4097903  # exp(x) overflows before the functions do; the second is exp of the first
# (n! (2 / x)**n I(x) - 1) / a in a = x**2 / 4, for orders n; relative error of I(x) 2**-56.5, -59.1, -61.4.
NEAR = (
    (
        0.9999999999999998, 0.25000000000000205, 0.027777777777772433, 0.0017361111111177249, 6.944444443977981e-05,
        1.9290123477469404e-06, 3.9367598278364557e-08, 6.151188592645139e-10, 7.594039731842446e-12,
        7.594259082295163e-14, 6.274506502347582e-16, 4.367400032650531e-18, 2.5419049254803028e-20,
        1.4215944076191632e-22, 3.873886412770882e-25, 4.375398025023863e-27,
    ),
    (
        0.49999999999999994, 0.08333333333333359, 0.006944444444443864, 0.0003472222222228706, 1.1574074073654936e-05,
        2.755731924122703e-07, 4.920949813525626e-09, 6.83465351987727e-11, 7.594045296757248e-13,
        6.9038243212946985e-15, 5.2290502614732186e-17, 3.3582283554036264e-19, 1.8197101785329526e-21,
        9.393811932298201e-24, 2.5231814268044668e-26, 2.5176792068885765e-28,
    ),
    (
        0.3333333333333333, 0.04166666666666671, 0.002777777777777685, 0.00011574074074083842, 3.3068783068183727e-06,
        6.889329808351204e-08, 1.093544407368458e-09, 1.3669306352798404e-11, 1.3807362876466806e-13,
        1.1506309589157022e-15, 8.045078368871169e-18, 4.7958056060229734e-20, 2.431301386914887e-22,
        1.164166115967758e-24, 3.0885729580765165e-27, 2.73275901525798e-29,
    ),
)  # fmt: skip
# sqrt(x) exp(-x) I(x) in 1 / x, relative error 2**-58.
FAR = (
    (
        0.3989422804014327, 0.04986778505017896, 0.02805062909596659, 0.0292194005789938, 0.04474402652453178,
        0.09020998729640856, 0.2830026371373653, -4.532416929980642, 361.97498461308606, -18363.85392170732,
        710934.6398146725, -21087884.542772748, 482705678.45597166, -8532449718.027939, 115887299748.01428,
        -1195214216427.4033, 9168306305990.03, -50539741921382.42, 188805411449294.38, -427326809976810.94,
        441953120288532.5,
    ),
    (
        0.3989422804014327, -0.14960335515053513, -0.046751048492440064, -0.040907161308832075, -0.057527906793063695,
        -0.1102761502700319, -0.33245698919990485, 5.08369149274059, -402.36474819009896, 20202.62505635613,
        -775642.0728264895, 22847922.501873486, -519912720.66957235, 9143369085.132961, -123631815048.86237,
        1270064416414.5513, -9708183121786.867, 53346135561316.23, -198716446620858.7, 448578756639931.4,
        -462816750211574.25,
    ),
    (
        0.3989422804014327, -0.7480167757526992, 0.3272573394111595, 0.12272149071762584, 0.12656019658519693,
        0.2049511656970144, 0.5400615593030492, -6.902998065275599, 539.1338374336843, -26354.294528506587,
        990234.9965528095, -28640907.895283435, 641566684.8536655, -11128904855.046728, 148661765235.62317,
        -1510686695052.363, 11434659014248.627, -62273751402538.664, 230077409927609.84, -515457962841084.94,
        528103954224363.8,
    ),
)  # fmt: skip


def _near(size: Lanes, order: int) -> Lanes:
    """Return I(x) up to 10; even and odd powers of the square are added apart, which halves the errors of rounding."""
    half = 0.5 * size
    square = half * half
    low, other = fma(half, half, -square), square * square
    coefficients = (1.0, *NEAR[order])
    result = fma(square, polynomial(other, coefficients[1::2]), polynomial(other, coefficients[::2]))
    # The logarithm of the series grows with the square by about 1 / (n + 1 + x / 2), and with its square by half of it.
    change = fma(fma(square, square, -other) / (1.0 + square), 0.5, low)
    change = change / (half + (order + 1.0))
    if order == 0:
        return fma(result, change, result)
    factor = half if order == 1 else 0.5 * square
    rest = factor * change if order == 1 else fma(factor, change, 0.5 * low)
    return fma(result, factor, result * rest)


def _far(size: Lanes, order: int) -> tuple[Lanes, Lanes]:
    """Return the high and low part of exp(-x) I(x) from 10 on."""
    first, *others = FAR[order]
    inverse, under = 1.0 / size, root(size)
    rest = fma(inverse, polynomial(inverse, others), _FIRST_LOW)
    high = rest + first
    low = rest - (high - first)
    under_low = fma(-under, under, size) * (under * inverse) * 0.5
    quotient = high / under
    return quotient, (fma(-quotient, under, high) + fma(-quotient, under_low, low)) / under


def _of_order(order: int, is_scaled: bool) -> Callable[[Lanes], Lanes]:
    def bessel(x: Lanes) -> Lanes:
        size = absolute(x)
        end = sys.float_info.max if is_scaled else 800.0  # beyond, the functions are infinite
        far, far_low = _far(where(size > end, end, size), order)
        near, is_near = _near(size, order), size < _END
        if is_scaled:
            n, high, low = exp_parts(-size, DOUBLE, EXP)
            near = times_power_of_two(fma(near, high, near * low), n, DOUBLE)
            far = where(size == math.inf, 0.0, far + far_low)
        else:
            over = size > 700.0
            n, high, low = exp_parts(where(over, size - _SHIFT, size), DOUBLE, EXP)
            far = times_power_of_two(fma(far, high, fma(far_low, high, far * low)), n, DOUBLE)
            far = where(over, far * _GROWTH, far)
        result = where(is_near, near, far)
        return copysign(result, x) if order == 1 else result

    return bessel


def _function(name: str, order: int, is_scaled: bool) -> object:
    double = _of_order(order, is_scaled)
    return function(name, double, lambda x: narrow(double(wide(x))))


i0, i0e = _function("i0", 0, False), _function("i0e", 0, True)
i1, i1e = _function("i1", 1, False), _function("i1e", 1, True)
bessel_i2, bessel_i2e = _function("bessel_i2", 2, False), _function("bessel_i2e", 2, True)

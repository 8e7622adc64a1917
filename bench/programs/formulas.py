"""Elementary functions for derivatives by hand: branch-free formulas, which LLVM vectorises in a loop.

They share nothing with tapegrad's own, and are right to 1e-15 of the larger of 1 and the result, which is enough to be
held against. Numba's `exp` is a call of a C library for each element, unless Intel's SVML is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic
from numpy import int64

LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: a number added to it is rounded, and stands in its last bits

# A product may be contracted with the sum that it stands in; nothing else is changed. Division by zero gives inf.
by_hand: Callable[..., Any] = njit(fastmath={"contract"}, error_model="numpy")
# Part of the loop that calls it, which is not vectorised otherwise.
formula: Callable[..., Any] = njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
# The order of a sum is free as well: it stands for several accumulators written by hand.
reduction: Callable[..., Any] = njit(fastmath={"contract", "reassoc"}, error_model="numpy")


@intrinsic
def bits(context: Any, number: Any) -> Any:
    """Return the bits of a double as an integer."""
    del context
    return types.int64(types.float64), lambda _, builder, signature, values: builder.bitcast(values[0], _int(builder))


@intrinsic
def double(context: Any, integer: Any) -> Any:
    """Return the double of these bits."""
    del context
    return types.float64(types.int64), lambda _, builder, signature, values: builder.bitcast(values[0], _float(builder))


def _int(builder: Any) -> Any:
    from llvmlite import ir

    return ir.IntType(64)


def _float(builder: Any) -> Any:
    from llvmlite import ir

    return ir.DoubleType()


@formula
def exp(x: float) -> float:
    x = min(max(x, -708.0), 709.0)
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r * r + r
    return (p + 1.0) * double((bits(rounded) + int64(1023)) << int64(52))


@formula
def log(x: float) -> float:
    """Of a positive normal number; the series is that of fdlibm's e_log.c."""
    b = bits(x)
    shifted = b + int64(0x95F6400000000)  # carries into the exponent from sqrt(2) on
    k = (shifted >> int64(52)) - int64(1023)
    f = double(b - (k << int64(52))) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    half = 0.5 * f * f
    n = float(k)
    return n * LN2_HIGH - ((half - (s * (half + p * z) + n * LN2_LOW)) - f)


@formula
def tanh(x: float) -> float:
    return 1.0 - 2.0 / (exp(2.0 * x) + 1.0)


@formula
def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + exp(-x))


@formula
def sincos(x: float) -> tuple[float, float]:
    """Of numbers up to 1e5: reduced by pi / 2 in three parts, then the two series of fdlibm's k_sin.c and k_cos.c."""
    rounded = x * 0.6366197723675814 + ROUND
    n = rounded - ROUND
    quadrant = bits(rounded)
    r = ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21
    z = r * r
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    sine = r + r * z * s
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    cosine = 1.0 - 0.5 * z + z * z * c
    odd = (quadrant & int64(1)) != 0
    first, second = (cosine, sine) if odd else (sine, cosine)
    first = -first if (quadrant & int64(2)) != 0 else first
    second = -second if ((quadrant + int64(1)) & int64(2)) != 0 else second
    return first, second


@formula
def normal(x: float) -> tuple[float, float]:
    """Return distribution function and density of the standard normal: a rational of `|x|` below 7, times exp(-x² / 2).

    J. F. Hart et al., Computer Approximations (1968), 5666; as in G. West, Better approximations to cumulative normal
    functions, Wilmott Magazine (2005).
    """
    t = abs(x)
    power = exp(-0.5 * t * t)
    a = 3.52624965998911e-02
    a = a * t + 0.700383064443688
    a = a * t + 6.37396220353165
    a = a * t + 33.912866078383
    a = a * t + 112.079291497871
    a = a * t + 221.213596169931
    a = a * t + 220.206867912376
    b = 8.83883476483184e-02
    b = b * t + 1.75566716318264
    b = b * t + 16.064177579207
    b = b * t + 86.7807322029461
    b = b * t + 296.564248779674
    b = b * t + 637.333633378831
    b = b * t + 793.826512519948
    b = b * t + 440.413735824752
    tail = power * a / b
    return (1.0 - tail if x > 0.0 else tail), power * 0.3989422804014327


@reduction
def total(values: Any) -> float:
    """Return the sum of an array."""
    result = 0.0
    for i in range(values.size):
        result += values[i]
    return result


@reduction
def dot(left: Any, right: Any) -> float:
    """Return the scalar product of two arrays."""
    result = 0.0
    for i in range(left.size):
        result += left[i] * right[i]
    return result


@by_hand
def largest(values: Any) -> float:
    """Return the largest element of an array: eight candidates, which a vector holds."""
    result = values[0]
    candidates = np.full(8, result)
    whole = values.size // 8 * 8
    for i in range(0, whole, 8):
        for lane in range(8):
            candidates[lane] = max(values[i + lane], candidates[lane])
    for i in range(8):
        result = max(result, candidates[i])
    for i in range(whole, values.size):
        result = max(result, values[i])
    return result

"""cbrt and hypot, scaled by powers of 2 so that nothing overflows. float32 numbers go through float64."""

from __future__ import annotations

import math

from tapegrad.vmath.formats import DOUBLE, power_of_two, split
from tapegrad.vmath.functions import in_double
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, polynomial, root, where

__all__ = ["cbrt", "hypot"]

# The cube root of m in [0.35, 2.84], relative error 2**-13.1 (tools/minimax.py).
CBRT = (
    0.3743726697052257, 1.3324185069297114, -1.494651083384517, 1.3425813572820544, -0.7816169271543428,
    0.2758728749230389, -0.05343168661570589, 0.004344512484128611,
)  # fmt: skip


def _cbrt(x: Lanes) -> Lanes:
    """Return 2**n times the root of m, where |x| = 2**(3 n) m: Halley's step from a polynomial, and Newton's."""
    size = absolute(x)
    tiny = size < DOUBLE.normal
    k, m, _ = split(where(tiny, size * 2.0**54, size), DOUBLE)
    shifted = fma(k, 1 / 3, DOUBLE.magic)
    n = shifted - DOUBLE.magic
    rest = fma(n, -3.0, k)
    m = m * where(rest > 0.0, 2.0, where(rest < 0.0, 0.5, n * 0.0 + 1.0))
    y = polynomial(m, CBRT)
    cube = y * y * y
    y = fma(y, (m - cube) / fma(cube, 2.0, m), y)
    square = y * y
    cube = square * y
    low = fma(y, fma(y, y, -square), fma(square, y, -cube))  # of the cube
    y = fma((m - cube) - low, 1.0 / (3.0 * square), y)
    y = y * power_of_two(bits(shifted), DOUBLE)
    y = copysign(where(tiny, y * 2.0**-18, y), x)
    return where((size > 0.0) & (size < math.inf), y, x)


def _hypot(x: Lanes, y: Lanes) -> Lanes:
    one, other = absolute(x), absolute(y)
    high = where(one > other, one, other)
    plain = one * 0.0 + 1.0
    up, down = where(high < 2.0**-500, 2.0**600, plain), where(high > 2.0**500, 2.0**-600, plain)
    a, b = one * up * down, other * up * down
    result = root(fma(a, a, b * b)) * where(high < 2.0**-500, 2.0**-600, where(high > 2.0**500, 2.0**600, plain))
    return where((one == math.inf) | (other == math.inf), math.inf, result)


cbrt = in_double("cbrt", _cbrt)
hypot = in_double("hypot", _hypot)

"""lgamma: up to 10 by a polynomial, beyond by Stirling's series (DLMF 5.11.1), with a logarithm of 65 bits."""

from __future__ import annotations

from tapegrad.vmath.formats import DOUBLE
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, fma, narrow, polynomial, where, wide
from tapegrad.vmath.powers import log_parts

__all__ = ["LOG_GAMMA", "STIRLING", "lgamma"]

# log(Gamma(z)) - (z - 1/2) log(z) + z - log(2 pi) / 2 is 1 / z times this in 1 / z**2: to 1e-17 from z = 10 on.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
# log(Gamma(1 + a)) / (a (a - 1)) for a up to 1, relative error 2**-56.9 (tools/minimax.py).
LOG_GAMMA = (
    0.5772156649015329, -0.24525136852257648, 0.15543426586337, -0.11514654252911688, 0.09223900736289364,
    -0.07731814703868489, 0.06673144710210725, -0.058775329339270994, 0.05253837776699687, -0.047449207922929004,
    0.04302804169145013, -0.03870620298145855, 0.033777162591335, -0.02764648888279003, 0.02035184899856688,
    -0.012869350374105195, 0.006657923799599368, -0.0026658065435488845, 0.0007670456960148038,
    -0.00014016901360969076, 1.2162472690936394e-05,
)  # fmt: skip
HALF_LOG_TWO_PI = 0.9189385332046728
FAR = 10.0


def _of_positive(x: Lanes) -> Lanes:
    """Return the logarithm of the gamma function of normal numbers above 0.

    It is the one of a number from 1 to 2, and the logarithm of a product: Gamma(x) = (x - 1) (x - 2) ... Gamma(1 + a).
    """
    is_far, is_low = x > FAR, x < 1.0
    one = x * 0.0 + 1.0
    y, product = where(is_far, one, where(is_low, x + 1.0, x)), one
    for _ in range(int(FAR) - 2):
        above = y > 2.0
        y = where(above, y - 1.0, y)
        product = where(above, product * y, product)
    high, low = log_parts(where(is_far | is_low, x, product))
    a = where(is_low, x, y - 1.0)
    near = a * (a - 1.0) * polynomial(a, LOG_GAMMA)
    near = near + where(is_low, -low, low) + where(is_low, -high, high)
    # (x - 1/2) log x - x, which cancels, in two parts
    t = x - 0.5
    first = t * high
    rest = fma(t, low, fma(t, high, -first))
    far = first - x
    lost = (first - far) - x
    inverse = one / x
    series = fma(inverse, polynomial(inverse * inverse, STIRLING), HALF_LOG_TWO_PI)
    return where(is_far, far + (lost + (rest + series)), near)


def _is_rare(x: Lanes) -> Lanes:
    return ~((x >= DOUBLE.normal) & (x < 1e300))


def _double(x: Lanes) -> tuple[Lanes, Lanes]:
    return _of_positive(x), _is_rare(x)


def _single(x: Lanes) -> tuple[Lanes, Lanes]:
    x = wide(x)
    return narrow(_of_positive(x)), _is_rare(x)


lgamma = function("lgamma", _double, _single, rare="lgamma")

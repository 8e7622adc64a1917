"""erfinv: x times a polynomial in w = -log(1 - x**2), of large w in its root (M. Giles, GPU Computing Gems 2)."""

from __future__ import annotations

import math

from tapegrad.vmath.formats import DOUBLE, split
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, narrow, polynomial, root, where, wide
from tapegrad.vmath.logarithm import log_of

__all__ = ["erfinv"]

# erfinv(x) / x in w - 1 for w up to 5, relative error 2**-60.
CENTRE = (
    1.1273743936892278, 0.2478328702862109, 0.004250709244824751, -0.0023763699555785786, 0.00010012177623065179,
    3.8201872485480506e-05, -4.27558571294989e-06, -5.652252244967496e-07, 1.2231714282115822e-07,
    6.040133649265559e-09, -3.0241700373120465e-09, 1.657832080084548e-11, 6.758569329800669e-11,
    -3.720883801903616e-12, -1.365451541605461e-12, 1.505180463409203e-13, 2.5608866282134165e-14,
    -4.944168006278326e-15, -5.201076668497938e-16, 2.522093734522973e-16, -3.4868347710987606e-17,
    2.3506722034637657e-18, -6.611625930495981e-20,
)  # fmt: skip
# In the root of w, less the middle of an interval: from 2.2 to 3.2, to 4.5 and to 6.02; 2**-57.9, -55.4 and -58.1.
TAILS = (
    (2.7, 3.2, (
        2.533586484664997, 0.9931642362730002, 0.020536191906534253, -0.01846038901237014, 0.012938989996451107,
        -0.005856553866288091, 0.0005799454540536358, 0.0012384209551732268, -0.0008246237487490239,
        8.356784851186012e-05, 0.0001744174934205267, -0.00010057643568688381, 1.5648915901424784e-06,
        2.3632984145424327e-05, -1.0473933673104972e-05, -1.1240992007283385e-06, 2.5864958172915056e-06,
        -6.547463197620757e-07,
    )),
    (3.85, 4.5, (
        3.6883912609643708, 1.0090519826410276, 0.0016986816714170635, -0.0010925077319175675, 0.0004327428628711623,
        -0.00018750658378703671, 0.0001044638113512483, -6.341699823692776e-05, 3.384811695684015e-05,
        -1.3609970419829725e-05, 3.01152651623048e-06, 6.171783269185162e-07, -9.471366997619041e-07,
        4.646256441438758e-07, -1.0121871915939242e-07, -3.1612177273510425e-08, 2.4942857903206152e-08,
    )),
    (5.26, 6.02, (
        5.112571690696451, 1.0101896460318265, -0.0002787911181860466, -0.0001478540139196411, 5.445222534023786e-05,
        -1.3837356693342096e-05, 3.0738508601895215e-06, -6.369772664101549e-07, 1.284069113413168e-07,
        -2.7381592567742744e-08, 7.522221933039591e-09, -3.0346398133309004e-09, 1.4353359036575576e-09,
        -7.472197799034408e-10, 4.4953856767908167e-10, -1.59082250657831e-10,
    )),
)  # fmt: skip


def _w(x: Lanes) -> Lanes:
    k, m, _ = split((1.0 - x) * (1.0 + x), DOUBLE)
    return -log_of(k, m - 1.0, 0.0, DOUBLE)


def _centre(x: Lanes) -> tuple[Lanes, Lanes]:
    w = _w(x)
    return x * polynomial(w - 1.0, CENTRE), ~((absolute(x) < 1.0) & (w < 5.0))


def _single(x: Lanes) -> tuple[Lanes, Lanes]:
    result, is_far = _centre(wide(x))
    return narrow(result), is_far


def _everywhere(x: Lanes) -> Lanes:
    if x.single:
        return narrow(_everywhere(wide(x)))
    w, (result, _) = _w(x), _centre(x)
    far = root(w)
    tail = far
    for middle, end, coefficients in TAILS[::-1]:
        tail = where(far < end, polynomial(far - middle, coefficients), tail)
    result = where(w < 5.0, result, x * tail)
    edge = where(absolute(x) == 1.0, x * math.inf, math.nan)
    return where(absolute(x) < 1.0, result, edge)


erfinv = function("erfinv", _centre, _single, rare=_everywhere, whole=True)

"""erf: x times a polynomial in x**2 up to 1, beyond 1 - exp(-q) with q a polynomial, both computed for all."""

from __future__ import annotations

from tapegrad.vmath.exponential import EXP, EXP_SINGLE, exp_of
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, copysign, fma, polynomial, where

__all__ = ["erf"]

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
# -log(erfc(1 + t)) for 1 + t up to 5.95 and 4, error of erf 2**-59.5 and 2**-29.9.
LARGE = (
    1.8496055099332482, 2.638967514234788, 0.843107256358677, 0.0415610980418055, -0.01003382537437712,
    0.0019779025677102284, -0.00023732248060732712, -2.627787761760463e-05, 2.7159117730254553e-05,
    -9.608909219345609e-06, 2.059782575179024e-06, -1.4288455157024318e-07, -9.754151147079302e-08,
    5.203512616315706e-08, -1.491051687404371e-08, 2.8638175470562964e-09, -3.6821284369489213e-10,
    2.8812246879430816e-11, -1.0389594465330055e-12,
)  # fmt: skip
LARGE_SINGLE = (
    1.8496055603027344, 2.6389667987823486, 0.8431183695793152, 0.04150058701634407, -0.009890720248222351,
    0.0018260357901453972, -0.00018554036796558648,
)  # fmt: skip


def _erf(x: Lanes, form: Format) -> Lanes:
    size = absolute(x)
    end = 5.95 if form == DOUBLE else 4.0  # beyond, erf is 1
    square = size * size
    small = fma(size, polynomial(square, SMALL if form == DOUBLE else SMALL_SINGLE), size)
    t = where(size > end, end, size) - 1.0
    q = polynomial(t, LARGE if form == DOUBLE else LARGE_SINGLE)
    large = 1.0 - exp_of(-q, form, EXP if form == DOUBLE else EXP_SINGLE)
    return copysign(where(size < 1.0, small, large), x)


erf = function("erf", lambda x: _erf(x, DOUBLE), lambda x: _erf(x, SINGLE))

"""erf: x times a polynomial in x**2 up to 1, beyond 1 - exp(-q) with q a polynomial, both computed for all.

erfc: 1 - erf up to 1/2, beyond exp(-x**2) / (1 + 2 x) times a polynomial in (x - K) / (x + K) (M. M. Shepherd and J. G.
Laframboise, Math. Comp. 36, 1981).
"""

from __future__ import annotations

from tapegrad.vmath.exponential import EXP, EXP_SINGLE, exp_of, exp_parts
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, quotient, times_power_of_two
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, copysign, fma, narrow, polynomial, where, wide

__all__ = ["erf", "erfc"]

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
# (1 + 2 x) exp(x**2) erfc(x) in (x - K) / (x + K) for x up to 27.5, relative error 2**-57.
COMPLEMENT = (
    1.2423492448711544, -0.1400091801376193, -0.010555596332215603, 0.09751909515324104, -0.11508959816035373,
    0.08798315382548533, -0.04882332582402044, 0.01909933093252422, -0.004215019956553907, -0.0003022677918983421,
    0.0005643847816298568, -0.00012151286212719632, -4.278394845283239e-05, 2.4262348052267717e-05,
    2.3335631913324964e-06, -3.81725011162007e-06, -5.4627129429077246e-08, 6.037136117168246e-07,
    4.876182160473241e-09, -9.549270674573981e-08, -8.37266555626165e-09, 1.113672181408276e-08,
    2.7044069639096343e-09,
)  # fmt: skip
K = 3.5


def _near(size: Lanes, form: Format) -> Lanes:
    return fma(size, polynomial(size * size, SMALL if form == DOUBLE else SMALL_SINGLE), size)


def _erf(x: Lanes, form: Format) -> Lanes:
    size = absolute(x)
    end = 5.95 if form == DOUBLE else 4.0  # beyond, erf is 1
    small = _near(size, form)
    t = where(size > end, end, size) - 1.0
    q = polynomial(t, LARGE if form == DOUBLE else LARGE_SINGLE)
    large = 1.0 - exp_of(-q, form, EXP if form == DOUBLE else EXP_SINGLE)
    return copysign(where(size < 1.0, small, large), x)


erf = function("erf", lambda x: _erf(x, DOUBLE), lambda x: _erf(x, SINGLE))


def _erfc(x: Lanes) -> Lanes:
    size = absolute(x)
    size = where(size > 27.5, 27.5, size)  # beyond, erfc is 0
    square = size * size
    n, power, rest = exp_parts(-square, DOUBLE, EXP, -fma(size, size, -square))
    under = fma(size, 2.0, 1.0)
    scaled = quotient(polynomial((size - K) / (size + K), COMPLEMENT), None, under, fma(size, 2.0, 1.0 - under))
    result = times_power_of_two(fma(power, scaled, rest * scaled), n, DOUBLE)
    result = where(x < 0.0, 2.0 - result, result)
    return where(size < 0.5, 1.0 - copysign(_near(size, DOUBLE), x), result)


erfc = function("erfc", _erfc, lambda x: narrow(_erfc(wide(x))))

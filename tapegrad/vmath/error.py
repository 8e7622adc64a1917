"""erf: x times a polynomial in x**2 up to 1, beyond 1 - exp(-x**2) times a polynomial, both computed for all.

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
# exp((1 + t)**2) erfc(1 + t) for 1 + t up to 5.95 and 4, error of erf 2**-56.5 and 2**-28.6.
LARGE = (
    0.427583576155807, -0.273212014783887, 0.154371561371103, -0.07922696891935052, 0.03757229590295429,
    -0.016661866415127104, 0.006970127301439849, -0.002769005586298517, 0.0010501007363569641,
    -0.00038159534336815306, 0.00013307860489315896, -4.440526860657215e-05, 1.4018098688873653e-05,
    -4.093163116298691e-06, 1.0686162413693061e-06, -2.391010881862154e-07, 4.367370181212631e-08,
    -6.15067587595442e-09, 6.189270172248498e-10, -3.926215980656057e-11, 1.172415946752318e-12,
)  # fmt: skip
LARGE_SINGLE = (
    0.42758357524871826, -0.2732110619544983, 0.15435054898262024, -0.07905328273773193, 0.03687480092048645,
    -0.015109865926206112, 0.004911037627607584, -0.001056951005011797, 0.00010682591528166085,
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
    # In a loop with erf's derivative, LLVM computes this exponential once.
    power = exp_of(-(x * x), form, EXP if form == DOUBLE else EXP_SINGLE)
    scaled = polynomial(where(size > end, end, size) - 1.0, LARGE if form == DOUBLE else LARGE_SINGLE)
    return copysign(where(size < 1.0, small, fma(-power, scaled, 1.0)), x)


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

"""Ops that SciPy's ufuncs reach: special functions of parameters, each with the derivative by its argument.

Formulas are those of the Digital Library of Mathematical Functions (DLMF). By parameters there is a derivative where
it is a function of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward.scipy import SciPy, scipy_function
from tapegrad.forward.voigt import voigt
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.op import NotYet, Sample, Vjp, xp
from tapegrad.ops.table.values import repeated
from tapegrad.tensor import Tensor

_PARAMETER: Final = NotYet("by a parameter; by the argument there is one")


def by_argument(
    name: str,
    operands: str,
    rules: dict[str, Vjp],
    domain: tuple[float, float] = (0.3, 0.8),
    forward: Callable[..., Any] | None = None,
    whole: int = 0,
) -> Callable[..., Tensor]:
    """Make the op of a ufunc of SciPy's, with a rule for each operand by which there is a derivative.

    The first `whole` operands are integers.
    """
    names = tuple(operands.split())
    values = (*[repeated(1.0, 2.0)] * whole, *[None] * (len(names) - whole))
    samples = (
        Sample(((3,),) * len(names), values=values),
        Sample(((2, 3), *[()] * (len(names) - 1)), values=values),
    )
    return elementwise(
        name, names, forward or SciPy(name), tuple([rules.get(operand, _PARAMETER) for operand in names]),
        doc=f"Special function `{name}`, as SciPy computes it.",
        to_float=True, real_only=True, domain=domain, samples=samples,
        oracle=lambda *values: (forward or scipy_function(name))(*values),
    )  # fmt: skip


def _result(name: str, number: int) -> Callable[..., Any]:
    """Return one of the results of SciPy's function."""
    return lambda *operands: scipy_function(name)(*operands)[number]


def _results(
    name: str, operands: str, rules: dict[str, Vjp], domain: tuple[float, float] = (0.3, 0.8)
) -> Callable[..., tuple[Tensor, ...]]:
    """Make an op of each result of a ufunc of one operand; return the function of all."""
    parts = [
        by_argument(own, operands, {operands.split()[-1]: rule}, domain, _result(name, number))
        for number, (own, rule) in enumerate(rules.items())
    ]
    return lambda *values: tuple(part(*values) for part in parts)


# Bessel and Struve functions (DLMF 10.29, 11.4) ----------------------------------------------------------------------

kve = by_argument(
    "kve", "v z", {"z": lambda ct, v, z, out: ct * (out - 0.5 * (xp.kve(v - 1.0, z) + xp.kve(v + 1.0, z)))}
)
struve = by_argument("struve", "v x", {"x": lambda ct, v, x, out: ct * (xp.struve(v - 1.0, x) - v / x * out)})
modstruve = by_argument("modstruve", "v x", {"x": lambda ct, v, x, out: ct * (xp.modstruve(v - 1.0, x) - v / x * out)})

# Kelvin functions: their second derivatives are given by the differential equation (DLMF 10.61.3) ---------------------

ber = by_argument("ber", "x", {"x": lambda ct, x: ct * xp.berp(x)})
bei = by_argument("bei", "x", {"x": lambda ct, x: ct * xp.beip(x)})
ker = by_argument("ker", "x", {"x": lambda ct, x: ct * xp.kerp(x)})
kei = by_argument("kei", "x", {"x": lambda ct, x: ct * xp.keip(x)})
berp = by_argument("berp", "x", {"x": lambda ct, x, out: -ct * (xp.bei(x) + out / x)})
beip = by_argument("beip", "x", {"x": lambda ct, x, out: ct * (xp.ber(x) - out / x)})
kerp = by_argument("kerp", "x", {"x": lambda ct, x, out: -ct * (xp.kei(x) + out / x)})
keip = by_argument("keip", "x", {"x": lambda ct, x, out: ct * (xp.ker(x) - out / x)})

# Scaled Airy functions, and parabolic cylinder functions with their slopes (DLMF 9.2, 12.2) ---------------------------


def _root(x: Any) -> Any:
    return xp.where(x > 0.0, xp.sqrt(xp.where(x > 0.0, x, 1.0)), 0.0)


airye = _results(
    "airye", "x",
    {
        "airye_ai": lambda ct, x, out: ct * (xp.airye_ai_prime(x) + _root(x) * out),
        "airye_ai_prime": lambda ct, x, out: ct * (x * xp.airye_ai(x) + _root(x) * out),
        "airye_bi": lambda ct, x, out: ct * (xp.airye_bi_prime(x) - _root(x) * out),
        "airye_bi_prime": lambda ct, x, out: ct * (x * xp.airye_bi(x) - _root(x) * out),
    },
)  # fmt: skip
pbwa = _results(
    "pbwa", "a x",
    {
        "pbwa_value": lambda ct, a, x: ct * xp.pbwa_slope(a, x),
        "pbwa_slope": lambda ct, a, x: ct * (a - 0.25 * x * x) * xp.pbwa_value(a, x),
    },
)  # fmt: skip


def _of_cylinder(name: str) -> Callable[..., tuple[Tensor, ...]]:
    """Make the ops of a solution of the equation of parabolic cylinders, and of its slope."""
    value, slope = f"{name}_value", f"{name}_slope"
    return _results(
        name, "v x",
        {
            value: lambda ct, v, x: ct * getattr(xp, slope)(v, x),
            slope: lambda ct, v, x: ct * (0.25 * x * x - v - 0.5) * getattr(xp, value)(v, x),
        },
    )  # fmt: skip


pbdv, pbvv = map(_of_cylinder, ("pbdv", "pbvv"))

# Integrals of such functions -----------------------------------------------------------------------------------------

itj0y0 = _results("itj0y0", "x", {"itj0": lambda ct, x: ct * xp.j0(x), "ity0": lambda ct, x: ct * xp.y0(x)})
iti0k0 = _results("iti0k0", "x", {"iti0": lambda ct, x: ct * xp.i0(x), "itk0": lambda ct, x: ct * xp.kv(0.0, x)})
it2j0y0 = _results(
    "it2j0y0", "x",
    {"it2j0": lambda ct, x: ct * (1.0 - xp.j0(x)) / x, "it2y0": lambda ct, x: -ct * xp.y0(x) / x},
)  # fmt: skip
it2i0k0 = _results(
    "it2i0k0", "x",
    {"it2i0": lambda ct, x: ct * (xp.i0(x) - 1.0) / x, "it2k0": lambda ct, x: -ct * xp.kv(0.0, x) / x},
)  # fmt: skip
itairy = _results(
    "itairy", "x",
    {
        "itairy_ai": lambda ct, x: ct * xp.airy_ai(x), "itairy_bi": lambda ct, x: ct * xp.airy_bi(x),
        "itairy_ai_left": lambda ct, x: ct * xp.airy_ai(-x), "itairy_bi_left": lambda ct, x: ct * xp.airy_bi(-x),
    },
    (0.02, 0.12),  # SciPy's error is 4e-14 at the upper end, but 2e-9 at 0.5, which finite differences see
)  # fmt: skip
itstruve0 = by_argument("itstruve0", "x", {"x": lambda ct, x: ct * xp.struve(0.0, x)})
it2struve0 = by_argument("it2struve0", "x", {"x": lambda ct, x: -ct * xp.struve(0.0, x) / x})
itmodstruve0 = by_argument("itmodstruve0", "x", {"x": lambda ct, x: ct * xp.modstruve(0.0, x)})

# Exponential integrals E_n (DLMF 8.19.12, 8.19.13) --------------------------------------------------------------------


def _expn(n: Any, x: Any) -> Any:
    """Return SciPy's function, which warns of orders that are no integers; nan there."""
    is_whole = (n == np.trunc(n)) & (abs(n) < 2**31)
    return np.where(is_whole, scipy_function("expn")(np.where(is_whole, n, 0.0), x), np.nan).astype(
        np.result_type(n, x)
    )


expn = by_argument(
    "expn", "n x",
    {
        "x": lambda ct, n, x, out: -ct * xp.where(
            n >= 1.0, xp.expn(xp.where(n >= 1.0, n - 1.0, 0.0), x), (xp.exp(-x) - (n - 1.0) * out) / x
        )
    },
    forward=_expn, whole=1,
)  # fmt: skip

# Elliptic integrals (DLMF 19.4) and the amplitude, the inverse of the first by its angle (DLMF 22.16) ---


def _delta(phi: Any, m: Any) -> Any:
    sine = xp.sin(phi)
    return xp.sqrt(1.0 - m * sine * sine)


def _first_by_m(phi: Any, m: Any, first: Any) -> Any:
    """Return the derivative of the integral of the first kind by the parameter, whose limit at 0 is simple."""
    twice = xp.sin(2.0 * phi)
    safe = xp.where(m == 0.0, 0.5, m)
    slope = (xp.ellipeinc(phi, safe) / (1.0 - safe) - first) / (2.0 * safe)
    return xp.where(m == 0.0, 0.25 * phi - 0.125 * twice, slope - twice / (4.0 * (1.0 - safe) * _delta(phi, safe)))


ellipkinc = by_argument(
    "ellipkinc", "phi m",
    {
        "phi": lambda ct, phi, m: ct / _delta(phi, m),
        "m": lambda ct, phi, m, out: ct * _first_by_m(phi, m, out),
    },
)  # fmt: skip
ellipeinc = by_argument(
    "ellipeinc", "phi m",
    {
        "phi": lambda ct, phi, m: ct * _delta(phi, m),
        "m": lambda ct, phi, m, out: ct * xp.where(
            m == 0.0, 0.125 * xp.sin(2.0 * phi) - 0.25 * phi,
            (out - xp.ellipkinc(phi, m)) / (2.0 * xp.where(m == 0.0, 1.0, m)),
        ),
    },
)  # fmt: skip
amplitude = by_argument(
    "jacobi_amplitude", "u m",
    {
        "u": lambda ct, m, out: ct * _delta(out, m),
        "m": lambda ct, u, m, out: -ct * _delta(out, m) * _first_by_m(out, m, u),
    },
    forward=_result("ellipj", 3),
)  # fmt: skip

# Polynomials and functions of Legendre's (DLMF 18.9, 14.10) ----------------------------------------------------------

eval_genlaguerre = by_argument(
    "eval_genlaguerre", "n alpha x",
    {
        "x": lambda ct, n, alpha, x: xp.where(
            n == 0.0, 0.0, -ct * xp.eval_genlaguerre(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, x)
        )
    },
)  # fmt: skip
eval_gegenbauer = by_argument(
    "eval_gegenbauer", "n alpha x",
    {
        "x": lambda ct, n, alpha, x: xp.where(
            n == 0.0, 0.0, 2.0 * ct * alpha * xp.eval_gegenbauer(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, x)
        )
    },
)  # fmt: skip
eval_jacobi = by_argument(
    "eval_jacobi", "n alpha beta x",
    {
        "x": lambda ct, n, alpha, beta, x: xp.where(
            n == 0.0, 0.0,
            0.5 * ct * (n + alpha + beta + 1.0)
            * xp.eval_jacobi(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, beta + 1.0, x),
        )
    },
)  # fmt: skip
lpmv = by_argument(
    "lpmv", "m v x",
    {"x": lambda ct, m, v, x, out: ct * (v * x * out - (v + m) * xp.lpmv(m, v - 1.0, x)) / (x * x - 1.0)},
    forward=lambda m, v, x: scipy_function("lpmv")(m, v, x), whole=2,
)  # fmt: skip

# Normal and other distributions --------------------------------------------------------------------------------------

owens_t = by_argument(
    "owens_t", "h a",
    {
        "h": lambda ct, h, a: ct * xp.exp(-0.5 * h * h) * xp.erf(math.sqrt(0.5) * a * h) * (-0.5 / math.sqrt(math.tau)),
        "a": lambda ct, h, a: ct * xp.exp(-0.5 * h * h * (1.0 + a * a)) / (math.tau * (1.0 + a * a)),
    },
)  # fmt: skip
wrightomega = by_argument("wrightomega", "z", {"z": lambda ct, out: ct * out / (1.0 + out)}, (-2.0, 2.0))


def _student_density(df: Any, t: Any) -> Any:
    half = 0.5 * (df + 1.0)
    scale = xp.lgamma(half) - xp.lgamma(0.5 * df) - 0.5 * xp.log(math.pi * df)
    return xp.exp(scale - half * xp.log1p(t * t / df))


stdtrit = by_argument("stdtrit", "df p", {"p": lambda ct, df, out: ct / _student_density(df, out)})


# Voigt's profile is the real part of a function that is analytic in x + i gamma, and solves the heat equation in sigma

voigt_profile = by_argument(
    "voigt_profile", "x sigma gamma",
    {
        "x": lambda ct, x, sigma, gamma: ct * xp.voigt_slope(1.0, x, sigma, gamma),
        "sigma": lambda ct, x, sigma, gamma: ct * sigma * xp.voigt_slope(2.0, x, sigma, gamma),
        "gamma": lambda ct, x, sigma, gamma: -ct * xp.voigt_dispersion(1.0, x, sigma, gamma),
    },
)  # fmt: skip
by_argument(
    "voigt_slope", "n x sigma gamma",
    {
        "x": lambda ct, n, x, sigma, gamma: ct * xp.voigt_slope(n + 1.0, x, sigma, gamma),
        "sigma": lambda ct, n, x, sigma, gamma: ct * sigma * xp.voigt_slope(n + 2.0, x, sigma, gamma),
        "gamma": lambda ct, n, x, sigma, gamma: -ct * xp.voigt_dispersion(n + 1.0, x, sigma, gamma),
    },
    forward=lambda *operands: voigt(*operands).real, whole=1,
)  # fmt: skip
by_argument(
    "voigt_dispersion", "n x sigma gamma",
    {
        "x": lambda ct, n, x, sigma, gamma: ct * xp.voigt_dispersion(n + 1.0, x, sigma, gamma),
        "sigma": lambda ct, n, x, sigma, gamma: ct * sigma * xp.voigt_dispersion(n + 2.0, x, sigma, gamma),
        "gamma": lambda ct, n, x, sigma, gamma: ct * xp.voigt_slope(n + 1.0, x, sigma, gamma),
    },
    forward=lambda *operands: voigt(*operands).imag, whole=1,
)  # fmt: skip

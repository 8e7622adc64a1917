"""Ops that SciPy's ufuncs reach: special functions of parameters, each with the derivative by its argument.

Formulas are those of the Digital Library of Mathematical Functions (DLMF). By parameters there is a derivative where
it is a function of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward.scipy import SciPy, scipy_function, scipy_result
from tapegrad.forward.voigt import voigt
from tapegrad.ops.casts import cast
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, NotYet, Sample, Vjp, xp
from tapegrad.ops.table.values import repeated
from tapegrad.tensor import Tensor

_PARAMETER: Final = NotYet("by a parameter; by the argument there is one")
#: Functions of ufuncs of SciPy's, by their names; other files of such ops add theirs.
UFUNCS: Final[dict[str, Callable[..., Any]]] = {}


def by_argument(
    name: str,
    operands: str,
    rules: dict[str, Vjp],
    domain: tuple[float, float] = (0.3, 0.8),
    forward: Callable[..., Any] | None = None,
    whole: int = 0,
) -> Callable[..., Tensor]:
    """Make the op of a ufunc of SciPy's, or of its result, with a rule for each operand by which there is a derivative.

    The first `whole` operands are integers.
    """
    names = tuple(operands.split())
    values = (*[repeated(1.0 + 2 * n, 2.0 + 2 * n) for n in range(whole)], *[None] * (len(names) - whole))
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


def ufunc(name: str, *description: Any, **options: Any) -> None:
    """Make the op of a ufunc of SciPy's, as `by_argument` does, and let tensors find it."""
    UFUNCS[name] = by_argument(name, *description, **options)


def _results(
    name: str,
    operands: str,
    rules: dict[str, Vjp],
    domain: tuple[float, float] = (0.3, 0.8),
    result: Callable[[str, int], Callable[..., Any]] = scipy_result,
) -> None:
    """Make an op of each result of a ufunc, and let tensors find the function of all."""
    parts = [
        by_argument(own, operands, {operands.split()[-1]: rule}, domain, result(name, number))
        for number, (own, rule) in enumerate(rules.items())
    ]
    UFUNCS[name] = lambda *values: tuple(part(*values) for part in parts)


# Kelvin functions: their second derivatives are given by the differential equation (DLMF 10.61.3) ---------------------

ufunc("ber", "x", {"x": lambda ct, x: ct * xp.berp(x)})
ufunc("bei", "x", {"x": lambda ct, x: ct * xp.beip(x)})
ufunc("ker", "x", {"x": lambda ct, x: ct * xp.kerp(x)})
ufunc("kei", "x", {"x": lambda ct, x: ct * xp.keip(x)})
ufunc("berp", "x", {"x": lambda ct, x, out: -ct * (xp.bei(x) + out / x)})
ufunc("beip", "x", {"x": lambda ct, x, out: ct * (xp.ber(x) - out / x)})
ufunc("kerp", "x", {"x": lambda ct, x, out: -ct * (xp.kei(x) + out / x)})
ufunc("keip", "x", {"x": lambda ct, x, out: ct * (xp.ker(x) - out / x)})

# Scaled Airy functions, and parabolic cylinder functions with their slopes (DLMF 9.2, 12.2) ---------------------------


def _root(x: Any) -> Any:
    return xp.where(x > 0.0, xp.sqrt(xp.where(x > 0.0, x, 1.0)), 0.0)


_results(
    "airye", "x",
    {
        "airye_ai": lambda ct, x, out: ct * (xp.airye_ai_prime(x) + _root(x) * out),
        "airye_ai_prime": lambda ct, x, out: ct * (x * xp.airye_ai(x) + _root(x) * out),
        "airye_bi": lambda ct, x, out: ct * (xp.airye_bi_prime(x) - _root(x) * out),
        "airye_bi_prime": lambda ct, x, out: ct * (x * xp.airye_bi(x) - _root(x) * out),
    },
)  # fmt: skip
_results(
    "pbwa", "a x",
    {
        "pbwa_value": lambda ct, a, x: ct * xp.pbwa_slope(a, x),
        "pbwa_slope": lambda ct, a, x: ct * (a - 0.25 * x * x) * xp.pbwa_value(a, x),
    },
)  # fmt: skip


def _cylinder(name: str, number: int) -> Callable[..., Any]:
    """Return a result of SciPy's function, which takes time and memory in proportion to orders: nan of huge ones."""

    def forward(v: Any, x: Any) -> Any:
        is_near = abs(v) < 1e6  # from 1e4 on SciPy's has no digits
        found = scipy_function(name)(np.where(is_near, v, 0.0), x)[number]
        return np.where(is_near, found, np.nan).astype(np.result_type(v, x))[()]

    return forward


def _of_cylinder(name: str) -> None:
    """Make the ops of a solution of the equation of parabolic cylinders, and of its slope."""
    value, slope = f"{name}_value", f"{name}_slope"
    _results(
        name, "v x",
        {
            value: lambda ct, v, x: ct * getattr(xp, slope)(v, x),
            slope: lambda ct, v, x: ct * (0.25 * x * x - v - 0.5) * getattr(xp, value)(v, x),
        },
        result=_cylinder,
    )  # fmt: skip


_of_cylinder("pbdv")
_of_cylinder("pbvv")

# Integrals of such functions -----------------------------------------------------------------------------------------

_results("itj0y0", "x", {"itj0": lambda ct, x: ct * xp.j0(x), "ity0": lambda ct, x: ct * xp.y0(x)})
_results("iti0k0", "x", {"iti0": lambda ct, x: ct * xp.i0(x), "itk0": lambda ct, x: ct * xp.kv(0.0, x)})
_results(
    "it2j0y0", "x",
    {"it2j0": lambda ct, x: ct * (1.0 - xp.j0(x)) / x, "it2y0": lambda ct, x: -ct * xp.y0(x) / x},
)  # fmt: skip
_results(
    "it2i0k0", "x",
    {"it2i0": lambda ct, x: ct * (xp.i0(x) - 1.0) / x, "it2k0": lambda ct, x: -ct * xp.kv(0.0, x) / x},
)  # fmt: skip
_results(
    "itairy", "x",
    {
        "itairy_ai": lambda ct, x: ct * xp.airy_ai(x), "itairy_bi": lambda ct, x: ct * xp.airy_bi(x),
        "itairy_ai_left": lambda ct, x: ct * xp.airy_ai(-x), "itairy_bi_left": lambda ct, x: ct * xp.airy_bi(-x),
    },
    (0.02, 0.12),  # SciPy's error is 4e-14 at the upper end, but 2e-9 at 0.5, which finite differences see
)  # fmt: skip
ufunc("itstruve0", "x", {"x": lambda ct, x: ct * xp.struve(0.0, x)})
ufunc("it2struve0", "x", {"x": lambda ct, x: -ct * xp.struve(0.0, x) / x})
ufunc("itmodstruve0", "x", {"x": lambda ct, x: ct * xp.modstruve(0.0, x)})

# Modified Fresnel integrals: K is Faddeeva's function on a diagonal (DLMF 7.5.10) ----------------------------------


def _modfresnel(name: str, is_imag: bool) -> Callable[..., Any]:
    """Return a part of F- or K-; SciPy's are wrong of negative numbers."""

    def forward(x: Any) -> Any:
        wide = np.asarray(x, np.float64)
        with np.errstate(all="ignore"):
            found = 0.5 * scipy_function("wofz")(math.sqrt(0.5) * (1j - 1.0) * wide)
            if name == "f":
                found = found * (math.sqrt(math.pi) * np.exp(-1j * (wide * wide + math.pi / 4)))
        return np.asarray(found.imag if is_imag else found.real, np.result_type(x))[()]

    return forward


for _name, _real_rule, _imag_rule in (
    ("f", lambda ct, x: -ct * xp.cos(x * x), lambda ct, x: ct * xp.sin(x * x)),
    (
        "k",
        lambda ct, x: -ct * (2.0 * x * xp.modfresnel_k_imag(x) + 1.0 / math.sqrt(math.tau)),
        lambda ct, x: ct * (2.0 * x * xp.modfresnel_k_real(x) - 1.0 / math.sqrt(math.tau)),
    ),
):
    by_argument(f"modfresnel_{_name}_real", "x", {"x": _real_rule}, (-2.0, 2.0), _modfresnel(_name, False))
    by_argument(f"modfresnel_{_name}_imag", "x", {"x": _imag_rule}, (-2.0, 2.0), _modfresnel(_name, True))

# Exponential integrals E_n (DLMF 8.19.12, 8.19.13) --------------------------------------------------------------------


def _expn(n: Any, x: Any) -> Any:
    """Return SciPy's function, which warns of orders that are no integers; nan there."""
    is_whole = (n == np.trunc(n)) & (abs(n) < 2**31)
    return np.where(is_whole, scipy_function("expn")(np.where(is_whole, n, 0.0), x), np.nan).astype(
        np.result_type(n, x)
    )


ufunc(
    "expn", "n x",
    {
        "x": lambda ct, n, x, out: -ct * xp.where(
            n >= 1.0, xp.expn(xp.where(n >= 1.0, n - 1.0, 0.0), x), (xp.exp(-x) - (n - 1.0) * out) / x
        )
    },
    forward=_expn, whole=1,
)  # fmt: skip

# Polynomials and functions of Legendre's (DLMF 18.9, 14.10) ----------------------------------------------------------

ufunc(
    "eval_genlaguerre", "n alpha x",
    {
        "x": lambda ct, n, alpha, x: xp.where(
            n == 0.0, 0.0, -ct * xp.eval_genlaguerre(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, x)
        )
    },
)  # fmt: skip
ufunc(
    "eval_gegenbauer", "n alpha x",
    {
        "x": lambda ct, n, alpha, x: xp.where(
            n == 0.0, 0.0, 2.0 * ct * alpha * xp.eval_gegenbauer(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, x)
        )
    },
)  # fmt: skip
ufunc(
    "eval_jacobi", "n alpha beta x",
    {
        "x": lambda ct, n, alpha, beta, x: xp.where(
            n == 0.0, 0.0,
            0.5 * ct * (n + alpha + beta + 1.0)
            * xp.eval_jacobi(xp.where(n == 0.0, 1.0, n) - 1.0, alpha + 1.0, beta + 1.0, x),
        )
    },
)  # fmt: skip
ufunc(
    "lpmv", "m v x",
    {"x": lambda ct, m, v, x, out: ct * (v * x * out - (v + m) * xp.lpmv(m, v - 1.0, x)) / (x * x - 1.0)},
    forward=lambda m, v, x: scipy_function("lpmv")(m, v, x), whole=2,
)  # fmt: skip

# Normal and other distributions --------------------------------------------------------------------------------------

ufunc(
    "owens_t", "h a",
    {
        "h": lambda ct, h, a: ct * xp.exp(-0.5 * h * h) * xp.erf(math.sqrt(0.5) * a * h) * (-0.5 / math.sqrt(math.tau)),
        "a": lambda ct, h, a: ct * xp.exp(-0.5 * h * h * (1.0 + a * a)) / (math.tau * (1.0 + a * a)),
    },
)  # fmt: skip
ufunc("wrightomega", "z", {"z": lambda ct, out: ct * out / (1.0 + out)}, (-2.0, 2.0))


def _lambertw(z: Any, k: Any, tol: Any) -> Any:
    """Return SciPy's function, which computes in double precision."""
    found = scipy_function("lambertw")(z, np.real(k).astype("l"), np.real(tol))
    return found.astype(np.result_type(z, np.complex64))[()]


_of_complex = elementwise(
    "lambertw", ("z", "k", "tol"), _lambertw,
    (
        lambda ct, out: ct * xp.conj(1.0 / (xp.exp(out) * (1.0 + out))),
        NOT_DIFFERENTIABLE, NOT_DIFFERENTIABLE,
    ),
    doc="Lambert's function W, the inverse of w exp(w), as SciPy computes it.", promoted=(0,), domain=(0.3, 0.8),
    samples=(
        Sample(((3,), (), ()), values=(None, repeated(0), repeated(1e-8))),
        Sample(((2, 3), (3,), ()), values=(None, repeated(0, 1, -1), repeated(1e-8))),
    ),
    oracle=lambda *values: _lambertw(*values),
)  # fmt: skip


def _lambertw_of_any(z: Any, k: Any = 0, tol: Any = 1e-8) -> Tensor:
    """Return the function of complex numbers, also of real ones."""
    operand = as_operand(z, "lambertw", "z", 1)
    return _of_complex(cast(operand, np.result_type(operand.dtype, np.complex64)), k, tol)


UFUNCS["lambertw"] = xp.lambertw = _lambertw_of_any


def _student_density(df: Any, t: Any) -> Any:
    half = 0.5 * (df + 1.0)
    scale = xp.lgamma(half) - xp.lgamma(0.5 * df) - 0.5 * xp.log(math.pi * df)
    return xp.exp(scale - half * xp.log1p(t * t / df))


ufunc("stdtrit", "df p", {"p": lambda ct, df, out: ct / _student_density(df, out)})


# Voigt's profile is the real part of a function that is analytic in x + i gamma, and solves the heat equation in sigma

ufunc(
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

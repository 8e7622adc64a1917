"""SciPy's ufuncs that are made of our functions, by their names: distributions, transformations, losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops import bessel_orders, counts, elliptic, hypergeometric  # noqa: F401  # they add to UFUNCS
from tapegrad.ops.airy import airy
from tapegrad.ops.complex_parts import complex as complex_of
from tapegrad.ops.incomplete import betaincinv, gammainccinv
from tapegrad.ops.numpy_ufuncs import without_numbers
from tapegrad.ops.special_integrals import fresnel, shichi, sici
from tapegrad.ops.special_of_parameters import UFUNCS
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table import public
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor

Function = Callable[..., Any]


def _special(name: str) -> Function:
    """Return a function of `tapegrad.special`, which is looked for when it is called."""

    def call(*args: Any) -> Tensor:
        one = public.find(public.SPECIAL, name)
        assert one is not None
        found: Tensor = one.function(*args)
        return found

    return call


_gammainc, _gammaincc, _betainc, _gamma = map(_special, ("gammainc", "gammaincc", "betainc", "gamma"))


def _in_degrees(function: Function) -> Function:
    return lambda x: function(ops.deg2rad(x))


def _of_degree(function: Function, before: Function = lambda x: x, factor: float = 1.0) -> Function:
    """Return a polynomial that takes the degree first, of another argument."""
    return lambda n, x: ops.mul(function(before(x), _whole(n)), factor)


def _of_order(name: str) -> Function:
    """Return a Bessel function of whole orders."""
    return lambda n, x: _special(name)(_whole(n), x)


def _whole(n: Any) -> Any:
    """Return degrees or orders as integers.

    Raises
    ------
    TypeError
        If one has a fraction.
    """
    values = np.asarray(getattr(n, "_data", n))
    if (values != np.floor(values)).any():
        raise TypeError("polynomials of tensors have whole degrees, kn and yn whole orders; kv and yv take others")
    return values.astype(np.int64)


def _gammasgn(x: Any) -> Tensor:
    """Return the sign of the gamma function: nan at its poles, that of x at 0."""
    x = ops.mul(x, 1.0)
    below = ops.where(ops.isfinite(x), ops.floor(x), math.nan)
    beside = ops.where(ops.eq(below, x), math.nan, ops.sub(1.0, ops.mul(ops.remainder(below, 2.0), 2.0)))
    return ops.where(ops.ge(x, 0.0), ops.copysign(1.0, x), beside)


def _boxcox(x: Any, lmbda: Any) -> Tensor:
    """Return (x ** lmbda - 1) / lmbda, and its limit log(x) where lmbda is 0."""
    return _boxcox1p(ops.sub(x, 1.0), lmbda)


def _boxcox1p(x: Any, lmbda: Any) -> Tensor:
    logs = ops.log1p(x)
    is_zero = ops.eq(lmbda, 0.0)
    safe = ops.where(is_zero, 1.0, lmbda)
    # Near 0 the series has the slope by lmbda, which the quotient has not.
    series = ops.mul(logs, ops.add(1.0, ops.mul(ops.mul(lmbda, logs), 0.5)))
    return ops.where(is_zero, series, ops.div(ops.expm1(ops.mul(safe, logs)), safe))


def _inv_boxcox1p(y: Any, lmbda: Any) -> Tensor:
    is_zero = ops.eq(lmbda, 0.0)
    safe = ops.where(is_zero, 1.0, lmbda)
    series = ops.sub(y, ops.mul(ops.mul(lmbda, ops.mul(y, y)), 0.5))
    return ops.expm1(ops.where(is_zero, series, ops.div(ops.log1p(ops.mul(safe, y)), safe)))


def _huber(delta: Any, r: Any) -> Tensor:
    size = ops.abs(r)
    return ops.where(
        ops.le(size, delta), ops.mul(ops.mul(r, r), 0.5), ops.mul(delta, ops.sub(size, ops.mul(delta, 0.5)))
    )


def _pseudo_huber(delta: Any, r: Any) -> Tensor:
    part = ops.div(r, delta)
    square = ops.mul(part, part)
    return ops.mul(ops.mul(delta, delta), ops.div(square, ops.add(ops.sqrt(ops.add(square, 1.0)), 1.0)))


def _poch(z: Any, m: Any) -> Tensor:
    return ops.div(_gamma(ops.add(z, m)), _gamma(z))


def _binom(n: Any, k: Any) -> Tensor:
    return ops.reciprocal(ops.mul(ops.add(n, 1.0), _special("beta")(ops.add(ops.sub(n, k), 1.0), ops.add(k, 1.0))))


def _stdtr(df: Any, t: Any) -> Tensor:
    """Student's distribution (DLMF 8.17): each tail by the incomplete beta function of the other variable."""
    tail = ops.mul(_betainc(ops.mul(df, 0.5), 0.5, ops.div(df, ops.add(df, ops.mul(t, t)))), 0.5)
    return ops.where(ops.lt(t, 0.0), tail, ops.sub(1.0, tail))


def _ratio(a: Any, b: Any, x: Any) -> Tensor:
    scaled = ops.mul(a, x)
    return ops.div(scaled, ops.add(scaled, b))


def _fdtri(a: Any, b: Any, p: Any) -> Tensor:
    part = betaincinv(*_halves(a, b), p)
    return ops.div(ops.mul(part, b), ops.mul(ops.sub(1.0, part), a))


def _hankel(sign: float, scaled: bool) -> Function:
    """Return a Hankel function of real numbers (DLMF 10.4.3), or the one scaled by the exponential of its argument."""

    def function(v: Any, z: Any) -> Tensor:
        found = complex_of(_special("jv")(v, z), ops.mul(_special("yv")(v, z), sign))
        return ops.mul(found, ops.exp(ops.mul(z, -1j * sign))) if scaled else found

    return function


def _modfresnel(sign: float) -> Function:
    """Return the integrals F and K; those of the positive exponent are conjugates of the others."""

    def function(x: Any) -> tuple[Tensor, ...]:
        pairs = ((xp.modfresnel_f_real, xp.modfresnel_f_imag), (xp.modfresnel_k_real, xp.modfresnel_k_imag))
        return tuple(complex_of(real(x), ops.mul(imag(x), sign)) for real, imag in pairs)

    return function


def _kelvin(x: Any) -> tuple[Tensor, ...]:
    pairs = ((xp.ber, xp.bei), (xp.ker, xp.kei), (xp.berp, xp.beip), (xp.kerp, xp.keip))
    return tuple(complex_of(real(x), imag(x)) for real, imag in pairs)


def _ellipj(u: Any, m: Any) -> tuple[Tensor, ...]:
    """Return Jacobi's functions, of the amplitude (DLMF 22.16.10)."""
    amplitude = xp.jacobi_amplitude(u, m)
    sine = ops.sin(amplitude)
    return sine, ops.cos(amplitude), ops.sqrt(ops.sub(1.0, ops.mul(m, ops.square(sine)))), amplitude


def _agm(a: Any, b: Any) -> Tensor:
    """Return the arithmetic-geometric mean by the complete elliptic integral (DLMF 19.8.5)."""
    total = ops.add(a, b)
    part = ops.div(ops.sub(a, b), total)
    return ops.div(ops.mul(total, math.pi / 4), _special("ellipk")(ops.mul(part, part)))


def _wofz(z: Any) -> Tensor:
    """Return Faddeeva's function of real numbers (DLMF 7.5.1)."""
    return complex_of(ops.exp(ops.neg(ops.square(z))), ops.mul(_special("dawsn")(z), 2 / math.sqrt(math.pi)))


def _sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Tensor:
    found = xp.eval_jacobi(n, ops.sub(p, q), ops.sub(q, 1.0), ops.sub(ops.mul(x, 2.0), 1.0))
    return ops.div(found, _binom(ops.sub(ops.add(p, ops.mul(n, 2)), 1.0), n))


def _halves(*values: Any) -> list[Tensor]:
    return [ops.mul(one, 0.5) for one in values]


def _with_numbers(function: Function) -> Function:
    """Return a function that takes Python numbers in any place, as SciPy's does; incomplete gamma functions do not."""
    return lambda *args: function(*without_numbers(list(args)))


# Distributions of incomplete gamma functions.
_GAMMA: Final[dict[str, Function]] = {
    "chdtr": lambda v, x: _gammainc(*_halves(v, x)), "chdtrc": lambda v, x: _gammaincc(*_halves(v, x)),
    "gdtr": lambda a, b, x: _gammainc(b, ops.mul(a, x)), "gdtrc": lambda a, b, x: _gammaincc(b, ops.mul(a, x)),
    "pdtr": lambda k, m: _gammaincc(ops.add(np.floor(k), 1.0), m),
    "pdtrc": lambda k, m: _gammainc(ops.add(np.floor(k), 1.0), m),
    "chdtri": lambda v, y: ops.mul(gammainccinv(ops.mul(v, 0.5), y), 2.0),
    "pdtri": lambda k, y: gammainccinv(ops.add(np.trunc(k), 1.0), y),
    "gdtria": lambda p, b, x: ops.div(_special("gammaincinv")(b, p), x),
    "gdtrix": lambda a, b, p: ops.div(_special("gammaincinv")(b, p), a),
}  # fmt: skip

#: What ufuncs compute, by their names.
SPECIAL: Final[dict[str, Function]] = {
    "airy": airy, "sici": sici, "shichi": shichi, "fresnel": fresnel,
    "exp10": lambda x: ops.exp(ops.mul(x, math.log(10))),
    "cosm1": lambda x: ops.mul(ops.square(ops.sin(ops.mul(x, 0.5))), -2.0),
    "powm1": lambda x, y: ops.expm1(ops.mul(y, ops.log(x))), "log_expit": lambda x: xp.logsigmoid(x),
    "sindg": _in_degrees(ops.sin), "cosdg": _in_degrees(ops.cos), "tandg": _in_degrees(ops.tan),
    "cotdg": lambda x: ops.reciprocal(ops.tan(ops.deg2rad(x))),
    "radian": lambda d, m, s: ops.deg2rad(ops.add(d, ops.div(ops.add(m, ops.div(s, 60.0)), 60.0))),
    "rel_entr": lambda x, y: ops.sub(ops.xlogy(x, x), ops.xlogy(x, y)),
    "kl_div": lambda x, y: ops.add(ops.sub(ops.xlogy(x, x), ops.xlogy(x, y)), ops.sub(y, x)),
    "huber": _huber, "pseudo_huber": _pseudo_huber, "boxcox": _boxcox, "boxcox1p": _boxcox1p,
    "inv_boxcox": lambda y, lmbda: ops.add(_inv_boxcox1p(y, lmbda), 1.0), "inv_boxcox1p": _inv_boxcox1p,
    "poch": _poch, "binom": _binom, "gammasgn": _gammasgn, "rgamma": lambda x: ops.reciprocal(_gamma(x)),
    "kn": _of_order("kv"), "yn": _of_order("yv"), "ellipkm1": lambda p: _special("ellipk")(ops.sub(1.0, p)),
    "ndtri_exp": lambda y: _special("ndtri")(ops.exp(y)), "betaincc": lambda a, b, x: _betainc(b, a, ops.sub(1.0, x)),
    # Distributions
    **{name: _with_numbers(function) for name, function in _GAMMA.items()},
    "fdtr": lambda a, b, x: _betainc(*_halves(a, b), _ratio(a, b, x)),
    "fdtrc": lambda a, b, x: _betainc(*_halves(b, a), ops.sub(1.0, _ratio(a, b, x))), "stdtr": _stdtr,
    "fdtri": _fdtri,
    "nrdtrimn": lambda p, std, x: ops.sub(x, ops.mul(std, _special("ndtri")(p))),
    "nrdtrisd": lambda mn, p, x: ops.div(ops.sub(x, mn), _special("ndtri")(p)),
    "gammainccinv": gammainccinv, "betaincinv": betaincinv,
    "betainccinv": lambda a, b, y: ops.sub(1.0, betaincinv(b, a, y)),
    "wofz": _wofz,
    "loggamma": lambda z: ops.where(ops.lt(z, 0.0), math.nan, ops.lgamma(z)),
    # Functions of parameters
    "jve": _special("jv"), "yve": _special("yv"), "kelvin": _kelvin, "ellipj": _ellipj, "agm": _agm,
    "hankel1": _hankel(1.0, False), "hankel1e": _hankel(1.0, True), "hankel2": _hankel(-1.0, False),
    "hankel2e": _hankel(-1.0, True), "modfresnelm": _modfresnel(1.0), "modfresnelp": _modfresnel(-1.0), **UFUNCS,
    # Orthogonal polynomials
    "eval_sh_jacobi": _sh_jacobi,
    **{
        f"eval_{short}": _of_degree(_special(name))
        for short, name in (
            ("chebyt", "chebyshev_polynomial_t"), ("chebyu", "chebyshev_polynomial_u"),
            ("sh_chebyt", "shifted_chebyshev_polynomial_t"), ("sh_chebyu", "shifted_chebyshev_polynomial_u"),
            ("hermite", "hermite_polynomial_h"), ("hermitenorm", "hermite_polynomial_he"),
            ("laguerre", "laguerre_polynomial_l"), ("legendre", "legendre_polynomial_p"),
        )
    },
    "eval_chebyc": _of_degree(_special("chebyshev_polynomial_t"), lambda x: ops.mul(x, 0.5), 2.0),
    "eval_chebys": _of_degree(_special("chebyshev_polynomial_u"), lambda x: ops.mul(x, 0.5)),
    "eval_sh_legendre": _of_degree(_special("legendre_polynomial_p"), lambda x: ops.sub(ops.mul(x, 2.0), 1.0)),
}  # fmt: skip

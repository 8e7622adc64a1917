"""Ops: the incomplete gamma and beta functions, as parts of the whole integrals (DLMF 8.2, 8.17).

They are integrals of a density, whose derivatives by its parameters are the density times a Bell polynomial. An op
each is the integral of such a derivative; its derivative by a parameter is the same op of the next order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.incomplete import bell, beta_derivative, gamma_derivative
from tapegrad.forward.scipy import SciPy, scipy_function
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.elementwise import binary, bind_operands, check_broadcast, elementwise
from tapegrad.ops.table.gateway import apply
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.public import SPECIAL, Names, public, publish, register
from tapegrad.tensor import Tensor
from tapegrad.vmath import incomplete as near

_ONLY = Names(namespaces=(SPECIAL,))


# The gamma distribution ----------------------------------------------------------------------------------------------


def _density_on_arrays(a: Any, x: Any) -> Any:
    """Return x**(a - 1) exp(-x) / Gamma(a) for parameters from -3 on, else nan."""
    with np.errstate(all="ignore"):
        gammaln = scipy_function("gammaln")(a)
        density = np.exp(scipy_function("xlogy")(np.subtract(a, 1.0), x) - x - gammaln)
        density = np.where(np.isinf(gammaln) | np.isinf(x), 0.0, density)
        density = np.where((np.less(a, 0)) & (np.floor(a) % 2 == 1), -density, density)
        return np.where(np.greater_equal(a, -3) & np.greater_equal(x, 0), density, math.nan)[()]


def _density_by_limit(ct: Any, a: Any, x: Any, out: Any) -> Any:
    """At 0 it is a power, whose derivatives are finite where those of the logarithm are not."""
    is_end = x == 0
    return ct * xp.where(is_end, xp.gamma_density(a - 1, x) - out, out * ((a - 1) / xp.where(is_end, 1.0, x) - 1))


binary(
    "gamma_density", Function("gamma_density", _density_on_arrays, formula=lambda a, x: xp.gamma_density(a, x)),
    (
        lambda ct, x, y, out: ct * (xp.xlogy(out, y) - out * xp.digamma(x)),
        lambda ct, x, y, out: _density_by_limit(ct, x, y, out),
    ),
    doc="Density of the gamma distribution of the shape `input`.", to_float=True, real_only=True, domain=(0.3, 4.0),
    oracle=_density_on_arrays, names=None,
)  # fmt: skip


def _gamma_slope(a: Any, x: Any, order: int) -> Any:
    """Return the derivative of the density by the parameter."""

    def slope(p: int, q: int) -> Any:
        return xp.log(x) - xp.digamma(a) if p == 1 else -xp.polygamma(a, p - 1)

    return xp.gamma_density(a, x) * bell(order, 0, slope)


def with_orders(
    name: str,
    operands: tuple[str, ...],
    attrs: tuple[str, ...],
    forward: Callable[..., Any],
    vjp: tuple[Callable[..., Any], ...],
    sample: Sample,
    others: tuple[Sample, ...],
    oracle: Callable[..., Any],
) -> None:
    """Make the op of the derivatives of a function by its operands, of the orders that are its attributes."""
    bind = bind_operands(name, operands)

    def call(*values: Any) -> Tensor:
        bound = bind(*values[: len(operands)])
        check_broadcast(name, bound.operands)
        return apply(op, Bound(bound.operands, dict(zip(attrs, values[len(operands) :], strict=True))))

    op = Op(
        name=name, operands=operands, forward=forward, vjp=vjp, family="special", attrs=attrs, real_only=True,
        domain=(0.3, 0.9), kinks=(), oracle=oracle, samples=(sample, *others),
        call=lambda *values, **orders: call(*values, *orders.values()),
        errors=(
            ErrorSample(lambda: call("x", *[0.5] * (len(operands) - 1), *[1] * len(attrs)), TypeError, name),
        ),
    )  # fmt: skip
    publish(call, op, f"Compute derivatives by operands: {', '.join(operands)}; {', '.join(attrs)}.")


def _by_difference(name: str, number: int, *operands: Any) -> Any:
    """Return the derivative of SciPy's function by an operand, as a difference quotient of order 8."""
    total, step, dtype = 0.0, 0.002, np.result_type(*operands, np.float32)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), 1):
        for sign in (1, -1):
            moved = [np.float64(own) + sign * k * step * (place == number) for place, own in enumerate(operands)]
            total = total + sign * weight / step * scipy_function(name)(*moved)
    return np.asarray(total, dtype)


with_orders(
    "gamma_derivative", ("a", "x"), ("order",), gamma_derivative,
    (
        lambda ct, a, x, order: ct * xp.gamma_derivative(a, x, order + 1),
        lambda ct, a, x, order: ct * _gamma_slope(a, x, order),
    ),
    Sample(((3,), (3,)), {"order": 1}),
    (Sample(((2, 3), (3,)), {"order": 1}), Sample(((), (0,)), {"order": 1})),
    lambda a, x, order: _by_difference("gammainc", 0, a, x),
)  # fmt: skip

gammainc = binary(
    "gammainc", SciPy("gammainc", lambda a, x: near.gammainc(a, x)),
    (lambda ct, x, y: ct * xp.gamma_derivative(x, y, 1), lambda ct, x, y: ct * xp.gamma_density(x, y)),
    doc="Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`.",
    derivative=":math:`x^{a-1} e^{-x}/\\Gamma(a)` by the limit (DLMF 8.8.13); by the parameter the integral of the "
    "derivative of the density, by quadrature, any order: 9 digits for parameters from 0.05 to 200 and limits from "
    "1e-6 to 400. PyTorch has none by the parameter.", real_only=True, domain=(0.3, 4.0),
    check_dtypes=only_floats("gammainc", "input", "other"), names=_ONLY,
)  # fmt: skip
register("igamma", gammainc, Names(method=True, inplace=True))

gammaincc = binary(
    "gammaincc", SciPy("gammaincc", lambda a, x: near.gammaincc(a, x)),
    (lambda ct, x, y: -ct * xp.gamma_derivative(x, y, 1), lambda ct, x, y: -ct * xp.gamma_density(x, y)),
    doc="Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`.",
    derivative=":math:`-x^{a-1} e^{-x}/\\Gamma(a)` by the limit (DLMF 8.8.14); by the parameter that of `gammainc`, "
    "negated.", real_only=True, domain=(0.3, 4.0),
    check_dtypes=only_floats("gammaincc", "input", "other"), names=_ONLY,
)  # fmt: skip
register("igammac", gammaincc, Names(method=True, inplace=True))

gammaincinv = binary(
    "gammaincinv", SciPy("gammaincinv"),
    (
        lambda ct, x, out: -ct * xp.gamma_derivative(x, out, 1) / xp.gamma_density(x, out),
        lambda ct, x, out: ct / xp.gamma_density(x, out),
    ),
    doc="Inverse of `gammainc` by its limit: the quantile of a gamma distribution of shape `input` at the probability "
    "`other`.",
    derivative=":math:`1/f` by the probability and :math:`-\\partial_a P(a, y)/f` by the shape, where "
    ":math:`P(a, y) = p`, with the density :math:`f = y^{a-1} e^{-y}/\\Gamma(a)`. PyTorch does not have it.",
    real_only=True, domain=(0.3, 0.9), check_dtypes=only_floats("gammaincinv", "input", "other"), names=_ONLY,
)  # fmt: skip

gammainccinv = binary(
    "gammainccinv", SciPy("gammainccinv"),
    (
        lambda ct, x, out: -ct * xp.gamma_derivative(x, out, 1) / xp.gamma_density(x, out),
        lambda ct, x, out: -ct / xp.gamma_density(x, out),
    ),
    doc="Inverse of `gammaincc` by its limit.", derivative="that of `gammaincinv`, negated by `other`.",
    real_only=True, domain=(0.3, 0.9), check_dtypes=only_floats("gammainccinv", "input", "other"), names=None,
)  # fmt: skip


# The beta distribution -----------------------------------------------------------------------------------------------


def _log_beta(a: Any, b: Any) -> Any:
    return xp.lgamma(a) + xp.lgamma(b) - xp.lgamma(a + b)


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of the incomplete beta function by its limit."""
    # Truth values, which may be parameters, have sums with numbers, not differences.
    return xp.exp(xp.xlogy(a + -1.0, x) + xp.xlog1py(b + -1.0, -x) - _log_beta(a, b))


def _beta_slope(a: Any, b: Any, x: Any, j: int, k: int) -> Any:
    """Return the derivative of the density by the parameters."""

    def slope(p: int, q: int) -> Any:
        found = xp.polygamma(a + b, p + q - 1)
        if not q:
            found = found - xp.polygamma(a, p - 1) + (xp.log(x) if p == 1 else 0.0)
        if not p:
            found = found - xp.polygamma(b, q - 1) + (xp.log1p(-x) if q == 1 else 0.0)
        return found

    return beta_density(a, b, x) * bell(j, k, slope)


with_orders(
    "beta_derivative", ("a", "b", "x"), ("j", "k"), beta_derivative,
    (
        lambda ct, a, b, x, j, k: ct * xp.beta_derivative(a, b, x, j + 1, k),
        lambda ct, a, b, x, j, k: ct * xp.beta_derivative(a, b, x, j, k + 1),
        lambda ct, a, b, x, j, k: ct * _beta_slope(a, b, x, j, k),
    ),
    Sample(((3,), (3,), (3,)), {"j": 1, "k": 0}),
    (Sample(((2, 3), (3,), ()), {"j": 0, "k": 1}), Sample(((), (0,), ()), {"j": 1, "k": 0})),
    lambda a, b, x, j, k: _by_difference("betainc", k, a, b, x),
)  # fmt: skip

_betainc = elementwise(
    "betainc", ("a", "b", "x"), SciPy("betainc"),
    (
        lambda ct, a, b, x: ct * xp.beta_derivative(a, b, x, 1, 0),
        lambda ct, a, b, x: ct * xp.beta_derivative(a, b, x, 0, 1),
        lambda ct, a, b, x: ct * beta_density(a, b, x),
    ),
    to_float=True, real_only=True, domain=(0.1, 0.9), special={(1.0, 1.0, 0.0): (0.0, 0.0, 1.0)},
    samples=(Sample(((3,), (3,), (3,))), Sample(((2, 3), (3,), ()))),
    # Of denormal parameters SciPy's function is 0, its complement 1/2.
    oracle=lambda a, b, x: np.where(
        b < 1e-300, scipy_function("betainc")(a, b, x), 1 - scipy_function("betaincc")(a, b, x)
    ),
    extra_errors=(ErrorSample(lambda: xp.betainc(1.0, "b", 0.5), TypeError, "argument 'b' (position 2) must be"),),
)  # fmt: skip


@public(namespaces=(SPECIAL,), of=_betainc)
def betainc(a: Any, b: Any, x: Any) -> Tensor:
    r"""Regularised incomplete beta function :math:`I_x(a, b)` (DLMF 8.17.2).

    Parameters
    ----------
    a, b : Tensor, array or number
        The parameters, positive.
    x : Tensor, array or number
        The limit, from 0 to 1.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Notes
    -----
    Derivative: :math:`x^{a-1} (1-x)^{b-1}/B(a, b)` by the limit; by the parameters the integral of the derivative of
    the density, by quadrature, any order: 9 digits for parameters from 0.05 to 200. PyTorch does not have it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.special.betainc(2.0, 1.0, tg.tensor([0.5, 1.0]))
    tensor([0.2500, 1.0000])
    """
    return _betainc(a, b, x)


betaincinv = elementwise(
    "betaincinv", ("a", "b", "y"), SciPy("betaincinv"),
    (
        lambda ct, a, b, out: -ct * xp.beta_derivative(a, b, out, 1, 0) / beta_density(a, b, out),
        lambda ct, a, b, out: -ct * xp.beta_derivative(a, b, out, 0, 1) / beta_density(a, b, out),
        lambda ct, a, b, out: ct / beta_density(a, b, out),
    ),
    doc="Inverse of `betainc` by its last argument.", to_float=True, real_only=True, domain=(0.3, 0.8),
    samples=(Sample(((3,), (3,), (3,))), Sample(((2, 3), (3,), ()))),
    oracle=lambda a, b, y: scipy_function("betaincinv")(a, b, y),
)  # fmt: skip

"""Ops: the incomplete gamma functions, as parts of the whole integral (DLMF 8.2)."""

from __future__ import annotations

from typing import Any

from tapegrad.forward.scipy import SciPy
from tapegrad.ops.table.elementwise import binary
from tapegrad.ops.table.op import NotYet, xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.public import SPECIAL, Names, register

_ONLY = Names(namespaces=(SPECIAL,))
_PARAMETER = NotYet("by the parameters of the integral; by its limit there is one")


def _gamma_density(a: Any, x: Any) -> Any:
    """Return the derivative of the lower function by its limit."""
    return xp.exp(xp.xlogy(a - 1, x) - x - xp.lgamma(a))


gammainc = binary(
    "gammainc", SciPy("gammainc"), (_PARAMETER, lambda ct, x, y: ct * _gamma_density(x, y)),
    doc="Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`.",
    derivative=":math:`x^{a-1} e^{-x}/\\Gamma(a)` by the limit (DLMF 8.8.13).", real_only=True, domain=(0.3, 4.0),
    check_dtypes=only_floats("gammainc", "input", "other"), names=_ONLY,
)  # fmt: skip
register("igamma", gammainc, Names(method=True, inplace=True))

gammaincc = binary(
    "gammaincc", SciPy("gammaincc"), (_PARAMETER, lambda ct, x, y: -ct * _gamma_density(x, y)),
    doc="Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`.",
    derivative=":math:`-x^{a-1} e^{-x}/\\Gamma(a)` by the limit (DLMF 8.8.14).", real_only=True, domain=(0.3, 4.0),
    check_dtypes=only_floats("gammaincc", "input", "other"), names=_ONLY,
)  # fmt: skip
register("igammac", gammaincc, Names(method=True, inplace=True))

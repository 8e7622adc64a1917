"""Ops that SciPy's ufuncs reach: binomial distributions, whose slopes by the probability are densities of beta ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.scipy import scipy_function
from tapegrad.ops.incomplete import beta_density
from tapegrad.ops.special_of_parameters import ufunc
from tapegrad.ops.table.op import Vjp, xp


def _by_scipy(name: str) -> Callable[..., Any]:
    """Return SciPy's function of whole counts: it warns of floats, whose fractions it leaves out."""

    def forward(k: Any, n: Any, p: Any) -> Any:
        is_count = (abs(k) < 2**31) & (abs(n) < 2**31)
        whole_k, whole_n = np.where(is_count, k, 0.0), np.where(is_count, n, 0.0).astype("l")
        whole_k = whole_k.astype("l") if name.startswith("n") else np.floor(whole_k).astype(np.float64)
        found = scipy_function(name)(whole_k, whole_n, np.asarray(p, np.float64))
        return np.where(is_count, found, np.nan).astype(np.result_type(k, n, p))[()]

    return forward


def _density(x: Any, a: Any, b: Any) -> Any:
    """Return the density of a beta distribution; 0 of one that is a point."""
    is_proper = (a > 0.0) & (b > 0.0)
    return xp.where(is_proper, beta_density(xp.where(is_proper, a, 1.0), xp.where(is_proper, b, 1.0), x), 0.0)


def _binomial(p: Any, k: Any, n: Any) -> Any:
    """Return the slope of the upper tail, of more than k of n (DLMF 8.17.5)."""
    below = xp.floor(k)
    return _density(p, below + 1.0, xp.trunc(n) - below)


def _negative_binomial(p: Any, k: Any, n: Any) -> Any:
    return _density(p, xp.trunc(n), xp.trunc(k) + 1.0)


_RULES: dict[str, Vjp] = {
    "bdtr": lambda ct, k, n, p: -ct * _binomial(p, k, n),
    "bdtrc": lambda ct, k, n, p: ct * _binomial(p, k, n),
    "bdtri": lambda ct, k, n, out: -ct / _binomial(out, k, n),
    "nbdtr": lambda ct, k, n, p: ct * _negative_binomial(p, k, n),
    "nbdtrc": lambda ct, k, n, p: -ct * _negative_binomial(p, k, n),
    "nbdtri": lambda ct, k, n, out: ct / _negative_binomial(out, k, n),
}
for _name, _rule in _RULES.items():
    _last = "y" if _name.endswith("i") else "p"
    ufunc(_name, f"k n {_last}", {_last: _rule}, forward=_by_scipy(_name), whole=2)

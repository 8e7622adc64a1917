"""Ops: Bessel functions of both kinds, ordinary and modified (DLMF, chapter 10).

The derivative of order 1 by those of order 0 divides by x. Orders 0 and 2 do not, so that functions that are smooth at
0 have all derivatives there (DLMF 10.6.1, 10.29.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.scipy import SciPy, scipy_function
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.elementwise import binary, unary
from tapegrad.ops.table.op import NotYet, xp
from tapegrad.ops.table.public import SPECIAL, TOP, Names, register

_ONLY = Names(namespaces=(SPECIAL,))
_ORDER = NotYet("by the order; by `other` there is one")


def _j2_by_scipy(x: Any) -> Any:
    """Return the function of order 2, of those of orders 0 and 1; near 0 by its power series (DLMF 10.2.2)."""

    def series(x: Any) -> Any:
        quarter = x * x / -4
        total: Any = 1.0
        for k in range(9, 0, -1):
            total = 1.0 + quarter * total / (k * (k + 2))
        return -quarter * total / 2

    def beyond(x: Any) -> Any:
        return 2 * scipy_function("j1")(x) / x - scipy_function("j0")(x)

    x = np.asarray(x)
    near = abs(x) < 1
    if near.all() or not near.any():
        return np.asarray(series(x) if near.all() else beyond(x), x.dtype)[()]
    out = np.empty_like(x)
    out[near], out[~near] = series(x[near]), beyond(x[~near])
    return out


def _by_iv(order: int) -> Callable[[Any], Any]:
    """Return the oracle of a modified function; SciPy's is nan of denormal numbers, and where it overflows."""

    def oracle(x: Any) -> Any:
        size = abs(x)
        inside = scipy_function("iv")(order, np.where(size < 1e-150, 0.0, np.where(size > 714, 714.0, size)))
        return np.where(size > 714, np.inf, inside) * (np.sign(x) if order == 1 else 1.0)

    return oracle


# The first kind ------------------------------------------------------------------------------------------------------

jv = binary(
    "jv", SciPy("jv"), (_ORDER, lambda ct, x, y: 0.5 * ct * (xp.jv(x - 1, y) - xp.jv(x + 1, y))),
    doc="Bessel function of the first kind, :math:`J_v(x)`, of the order `input`.",
    derivative=":math:`(J_{v-1}(x) - J_{v+1}(x))/2` by `other` (DLMF 10.6.1); none by the order.",
    to_float=True, real_only=True, domain=(0.3, 3.0), names=_ONLY,
)  # fmt: skip

_j2 = unary(
    "bessel_j2", _j2_by_scipy, lambda ct, x: 0.5 * ct * (xp.j1(x) - xp.jv(3.0, x)),
    doc="Bessel function of the first kind of order 2.", real_only=True, special={0.0: 0.0}, names=None,
    oracle=lambda x: scipy_function("jv")(2, x),
)  # fmt: skip

j1 = unary(
    "j1", SciPy("j1"), lambda ct, x: 0.5 * ct * (xp.j0(x) - xp.bessel_j2(x)),
    doc="Bessel function of the first kind of order 1.", derivative=":math:`(J_0(x) - J_2(x))/2`. PyTorch has none.",
    real_only=True, special={0.0: 0.5}, names=_ONLY,
)  # fmt: skip

j0 = unary(
    "j0", SciPy("j0"), lambda ct, x: -ct * xp.j1(x),
    doc="Bessel function of the first kind of order 0.", derivative=":math:`-J_1(x)`. PyTorch has none.",
    real_only=True, special={0.0: 0.0}, names=_ONLY,
)  # fmt: skip

# The second kind -----------------------------------------------------------------------------------------------------

yv = binary(
    "yv", SciPy("yv"), (_ORDER, lambda ct, x, y: 0.5 * ct * (xp.yv(x - 1, y) - xp.yv(x + 1, y))),
    doc="Bessel function of the second kind, :math:`Y_v(x)`, of the order `input`.",
    derivative=":math:`(Y_{v-1}(x) - Y_{v+1}(x))/2` by `other` (DLMF 10.6.1); none by the order.",
    to_float=True, real_only=True, domain=(0.3, 3.0), names=_ONLY,
)  # fmt: skip

y1 = unary(
    "y1", SciPy("y1"), lambda ct, x, out: ct * (xp.y0(x) - out / x),
    doc="Bessel function of the second kind of order 1.", derivative=":math:`Y_0(x) - Y_1(x)/x`. PyTorch has none.",
    real_only=True, domain=(0.3, 4.0), names=_ONLY,
)  # fmt: skip

y0 = unary(
    "y0", SciPy("y0"), lambda ct, x: -ct * xp.y1(x),
    doc="Bessel function of the second kind of order 0.", derivative=":math:`-Y_1(x)`. PyTorch has none.",
    real_only=True, domain=(0.3, 4.0), special={0.0: np.inf}, names=_ONLY,
)  # fmt: skip

# Modified, of the first kind -----------------------------------------------------------------------------------------

iv = binary(
    "iv", SciPy("iv"), (_ORDER, lambda ct, x, y: 0.5 * ct * (xp.iv(x - 1, y) + xp.iv(x + 1, y))),
    doc="Modified Bessel function of the first kind, :math:`I_v(x)`, of the order `input`.",
    derivative=":math:`(I_{v-1}(x) + I_{v+1}(x))/2` by `other` (DLMF 10.29.1); none by the order.",
    to_float=True, real_only=True, domain=(0.3, 3.0), names=_ONLY,
)  # fmt: skip

ive = binary(
    "ive", SciPy("ive"),
    (_ORDER, lambda ct, x, y, out: ct * (0.5 * (xp.ive(x - 1, y) + xp.ive(x + 1, y)) - xp.sgn(y) * out)),
    doc="Modified Bessel function `iv`, scaled by :math:`e^{-|x|}`.",
    derivative="that of `iv`, scaled, less the function with the sign of `other`; none by the order.",
    to_float=True, real_only=True, domain=(0.3, 3.0), names=_ONLY,
)  # fmt: skip


def _without_tiny(x: Any) -> Any:
    """Return 0 for numbers of which AMOS gives nan, as denormal ones."""
    return xp.where(abs(x) < 1e-150, 0.0, x)


def _i2e_rule(ct: Any, x: Any, out: Any) -> Any:
    far = abs(x) > 1e8  # by one order less (DLMF 10.29.2): from 1e9 on AMOS gives nan
    unscaled = 0.5 * (xp.i1e(x) + xp.ive(3.0, _without_tiny(xp.where(far, 0.0, x))))
    return ct * (xp.where(far, xp.i1e(x) - 2.0 * out / xp.where(far, x, 1.0), unscaled) - xp.sgn(x) * out)


_i2 = unary(
    "bessel_i2", Function("bessel_i2", lambda x: scipy_function("iv")(2, x)),
    lambda ct, x: 0.5 * ct * (xp.i1(x) + xp.iv(3.0, _without_tiny(x))),
    doc="Modified Bessel function of the first kind of order 2.", real_only=True, special={0.0: 0.0}, names=None,
    oracle=_by_iv(2),
)  # fmt: skip

_i2e = unary(
    "bessel_i2e", Function("bessel_i2e", lambda x: scipy_function("ive")(2, x)), _i2e_rule,
    doc="Modified Bessel function of the first kind of order 2, scaled.", real_only=True, special={0.0: 0.0},
    names=None,  # AMOS gives nan from 1e9 on
    oracle=lambda x: np.where(abs(x) > 1e8, scipy_function("i0e")(x), scipy_function("ive")(2, x)),
)  # fmt: skip

i1 = unary(
    "i1", Function("i1", SciPy("i1")), lambda ct, x: 0.5 * ct * (xp.i0(x) + xp.bessel_i2(x)),
    doc="Modified Bessel function of the first kind of order 1.",
    derivative=":math:`(I_0(x) + I_2(x))/2`, which is :math:`I_0(x) - I_1(x)/x`.", real_only=True, special={0.0: 0.5},
    names=_ONLY, oracle=_by_iv(1),
)  # fmt: skip

i0 = unary(
    "i0", Function("i0", SciPy("i0")), lambda ct, x: ct * xp.i1(x),
    doc="Modified Bessel function of the first kind of order 0.", derivative=":math:`I_1(x)`.", real_only=True,
    special={0.0: 0.0}, oracle=lambda x: np.where(np.isinf(x), np.inf, np.i0(x)),  # NumPy's is nan
    names=Names((), (TOP, SPECIAL), method=True, inplace=True, functions=("i0",)),
)  # fmt: skip

i1e = unary(
    "i1e", Function("i1e", SciPy("i1e")),
    lambda ct, x, out: ct * (0.5 * (xp.i0e(x) + xp.bessel_i2e(x)) - xp.sgn(x) * out),
    doc="Modified Bessel function of the first kind of order 1, scaled by :math:`e^{-|x|}`.",
    derivative="that of `i1`, scaled, less the function with the sign of the operand.", real_only=True,
    special={0.0: 0.5}, names=_ONLY,
)  # fmt: skip

i0e = unary(
    "i0e", Function("i0e", SciPy("i0e")), lambda ct, x, out: ct * (xp.i1e(x) - xp.sgn(x) * out),
    doc="Modified Bessel function of the first kind of order 0, scaled by :math:`e^{-|x|}`.",
    derivative="`i1e` less the function with the sign of the operand; 0 at 0.", real_only=True, special={0.0: 0.0},
    names=_ONLY,
)  # fmt: skip

# Modified, of the second kind ----------------------------------------------------------------------------------------

kv = binary(
    "kv", SciPy("kv"),
    (
        lambda ct, x, y: ct * xp.kv_slope(1.0, x, y),
        lambda ct, x, y: -0.5 * ct * (xp.kv(x - 1, y) + xp.kv(x + 1, y)),
    ),
    doc="Modified Bessel function of the second kind, :math:`K_v(x)`, of the order `input`.",
    derivative=":math:`-(K_{v-1}(x) + K_{v+1}(x))/2` by `other` (DLMF 10.29.1); an integral by the order (10.32.9).",
    to_float=True, real_only=True, domain=(0.3, 3.0), names=_ONLY,
)  # fmt: skip

k1 = unary(
    "k1", SciPy("k1"), lambda ct, x, out: -ct * (xp.k0(x) + out / x),
    doc="Modified Bessel function of the second kind of order 1.",
    derivative=":math:`-K_0(x) - K_1(x)/x`. PyTorch has none.", real_only=True, domain=(0.3, 4.0),
    special={0.0: -np.inf}, names=_ONLY,
)  # fmt: skip

k0 = unary(
    "k0", SciPy("k0"), lambda ct, x: -ct * xp.k1(x),
    doc="Modified Bessel function of the second kind of order 0.", derivative=":math:`-K_1(x)`. PyTorch has none.",
    real_only=True, domain=(0.3, 4.0), special={0.0: -np.inf}, names=_ONLY,
)  # fmt: skip

k1e = unary(
    "k1e", SciPy("k1e"), lambda ct, x, out: ct * (out - xp.k0e(x) - out / x),
    doc="Modified Bessel function of the second kind of order 1, scaled by :math:`e^x`.",
    derivative="that of `k1`, scaled, plus the function. PyTorch has none.", real_only=True, domain=(0.3, 4.0),
    names=_ONLY,
)  # fmt: skip

k0e = unary(
    "k0e", SciPy("k0e"), lambda ct, x, out: ct * (out - xp.k1e(x)),
    doc="Modified Bessel function of the second kind of order 0, scaled by :math:`e^x`.",
    derivative="the function less `k1e`. PyTorch has none.", real_only=True, domain=(0.3, 4.0), names=_ONLY,
)  # fmt: skip

for _name, _function in {
    "bessel_j0": j0, "bessel_j1": j1, "bessel_y0": y0, "bessel_y1": y1,
    "modified_bessel_i0": i0, "modified_bessel_i1": i1, "modified_bessel_k0": k0, "modified_bessel_k1": k1,
    "scaled_modified_bessel_k0": k0e, "scaled_modified_bessel_k1": k1e,
}.items():  # fmt: skip
    register(_name, _function, _ONLY)  # PyTorch's names

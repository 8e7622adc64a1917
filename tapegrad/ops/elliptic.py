"""Ops that SciPy's ufuncs reach: elliptic integrals, of Legendre's form and of Carlson's symmetric one.

Formulas are those of the Digital Library of Mathematical Functions (DLMF), chapters 19 and 22.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.forward.carlson import carlson
from tapegrad.forward.scipy import scipy_result
from tapegrad.ops.incomplete import with_orders
from tapegrad.ops.special_of_parameters import by_argument, ufunc
from tapegrad.ops.table.op import Sample, xp

# Legendre's integrals (DLMF 19.4) and the amplitude, the inverse of the first by its angle (DLMF 22.16) --------------


def _delta(phi: Any, m: Any) -> Any:
    sine = xp.sin(phi)
    return xp.sqrt(1.0 - m * sine * sine)


def _first_by_m(phi: Any, m: Any, first: Any) -> Any:
    """Return the derivative of the integral of the first kind by the parameter, whose limit at 0 is simple."""
    twice = xp.sin(2.0 * phi)
    safe = xp.where(m == 0.0, 0.5, m)
    slope = (xp.ellipeinc(phi, safe) / (1.0 - safe) - first) / (2.0 * safe)
    return xp.where(m == 0.0, 0.25 * phi - 0.125 * twice, slope - twice / (4.0 * (1.0 - safe) * _delta(phi, safe)))


ufunc(
    "ellipkinc", "phi m",
    {
        "phi": lambda ct, phi, m: ct / _delta(phi, m),
        "m": lambda ct, phi, m, out: ct * _first_by_m(phi, m, out),
    },
)  # fmt: skip
ufunc(
    "ellipeinc", "phi m",
    {
        "phi": lambda ct, phi, m: ct * _delta(phi, m),
        "m": lambda ct, phi, m, out: ct * xp.where(
            m == 0.0, 0.125 * xp.sin(2.0 * phi) - 0.25 * phi,
            (out - xp.ellipkinc(phi, m)) / (2.0 * xp.where(m == 0.0, 1.0, m)),
        ),
    },
)  # fmt: skip
by_argument(
    "jacobi_amplitude", "u m",
    {
        "u": lambda ct, m, out: ct * _delta(out, m),
        "m": lambda ct, u, m, out: -ct * _delta(out, m) * _first_by_m(out, m, u),
    },
    forward=scipy_result("ellipj", 3),
)  # fmt: skip

# Carlson's integrals, and their derivatives, which are integrals of the same kind (DLMF 19.18) -----------------------
# Of negative p, where the third one is a principal value, derivatives are nan.


def _carlson_by_gauss(x: Any, y: Any, z: Any, p: Any, s: int, i: int, j: int, k: int, n: int) -> Any:
    """Return the integral with t = (v / (1 - v)) ** 2, by which it is one of a smooth function over 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    v = 0.5 * (nodes + 1.0)
    t = (v / (1.0 - v)) ** 2
    values, at_zero = weights * t ** (s - 1) * (v / (1.0 - v) ** 3), float(s)
    for operand, power in ((x, i + 0.5), (y, j + 0.5), (z, k + 0.5), (p, n)):
        wide = np.where(np.less(operand, 0), np.nan, operand).astype(np.float64)
        values = values * (t + wide[..., None]) ** -power
        at_zero = at_zero - power * (wide == 0)
    return np.where(at_zero <= 0, np.inf, values.sum(-1)).astype(np.result_type(x, y, z, p))


with_orders(
    "carlson", ("x", "y", "z", "p"), ("s", "i", "j", "k", "n"), carlson,
    (
        lambda ct, x, y, z, p, s, i, j, k, n: -ct * (i + 0.5) * xp.carlson(x, y, z, p, s, i + 1, j, k, n),
        lambda ct, x, y, z, p, s, i, j, k, n: -ct * (j + 0.5) * xp.carlson(x, y, z, p, s, i, j + 1, k, n),
        lambda ct, x, y, z, p, s, i, j, k, n: -ct * (k + 0.5) * xp.carlson(x, y, z, p, s, i, j, k + 1, n),
        lambda ct, x, y, z, p, s, i, j, k, n: -ct * n * xp.carlson(x, y, z, p, s, i, j, k, n + 1),
    ),
    Sample(((3,),) * 4, {"s": 1, "i": 0, "j": 1, "k": 0, "n": 1}),
    (
        Sample(((2, 3), (3,), (), ()), {"s": 2, "i": 0, "j": 0, "k": 1, "n": 1}),
        Sample(((), (0,), (), ()), {"s": 1, "i": 1, "j": 0, "k": 0, "n": 2}),
    ),
    _carlson_by_gauss,
)  # fmt: skip

ufunc(
    "elliprf", "x y z",
    {
        "x": lambda ct, x, y, z: ct * xp.elliprd(y, z, x) / -6.0,
        "y": lambda ct, x, y, z: ct * xp.elliprd(z, x, y) / -6.0,
        "z": lambda ct, x, y, z: ct * xp.elliprd(x, y, z) / -6.0,
    },
)  # fmt: skip
ufunc(
    "elliprd", "x y z",
    {
        "x": lambda ct, x, y, z: -0.75 * ct * xp.carlson(x, y, z, 1.0, 1, 1, 0, 1, 0),
        "y": lambda ct, x, y, z: -0.75 * ct * xp.carlson(x, y, z, 1.0, 1, 0, 1, 1, 0),
        "z": lambda ct, x, y, z: -2.25 * ct * xp.carlson(x, y, z, 1.0, 1, 0, 0, 2, 0),
    },
)  # fmt: skip
ufunc(
    "elliprj", "x y z p",
    {
        "x": lambda ct, x, y, z, p: -0.75 * ct * xp.carlson(x, y, z, p, 1, 1, 0, 0, 1),
        "y": lambda ct, x, y, z, p: -0.75 * ct * xp.carlson(x, y, z, p, 1, 0, 1, 0, 1),
        "z": lambda ct, x, y, z, p: -0.75 * ct * xp.carlson(x, y, z, p, 1, 0, 0, 1, 1),
        "p": lambda ct, x, y, z, p: -1.5 * ct * xp.carlson(x, y, z, p, 1, 0, 0, 0, 2),
    },
)  # fmt: skip
ufunc(
    "elliprg", "x y z",
    {
        "x": lambda ct, x, y, z: 0.125 * ct * xp.carlson(x, y, z, 1.0, 2, 1, 0, 0, 0),
        "y": lambda ct, x, y, z: 0.125 * ct * xp.carlson(x, y, z, 1.0, 2, 0, 1, 0, 0),
        "z": lambda ct, x, y, z: 0.125 * ct * xp.carlson(x, y, z, 1.0, 2, 0, 0, 1, 0),
    },
)  # fmt: skip


def _rc_by_x(x: Any, y: Any, out: Any) -> Any:
    """Return the derivative of a principal value, of negative y: it has no limit at x = y."""
    return (1.0 / xp.sqrt(x) - out) / (2.0 * (x - y))


def _rc_slope(x: Any, y: Any, out: Any, by_y: bool) -> Any:
    is_negative = y < 0.0
    above, below = xp.where(is_negative, 1.0, y), xp.where(is_negative, y, -1.0)
    if by_y:
        slopes = -(0.5 * out + x * _rc_by_x(x, below, out)) / below, xp.elliprd(x, above, above) / -3.0
    else:
        slopes = _rc_by_x(x, below, out), xp.elliprd(above, above, x) / -6.0
    return xp.where(is_negative, *slopes)


ufunc(
    "elliprc", "x y",
    {
        "x": lambda ct, x, y, out: ct * _rc_slope(x, y, out, False),
        "y": lambda ct, x, y, out: ct * _rc_slope(x, y, out, True),
    },
)  # fmt: skip

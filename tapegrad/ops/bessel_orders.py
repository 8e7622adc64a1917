"""Ops: derivatives of Bessel functions by their order, and functions of an order that SciPy's ufuncs reach.

Formulas are those of the Digital Library of Mathematical Functions (DLMF), 10.29 and 11.4.
"""

from __future__ import annotations

import math
from functools import partial

from tapegrad.forward.macdonald import macdonald
from tapegrad.ops.special_of_parameters import by_argument, ufunc
from tapegrad.ops.table.op import xp

ufunc(
    "kve", "v z",
    {
        "v": lambda ct, v, z: ct * xp.kve_slope(1.0, v, z),
        "z": lambda ct, v, z, out: ct * (out - 0.5 * (xp.kve(v - 1.0, z) + xp.kve(v + 1.0, z))),
    },
)  # fmt: skip
by_argument(
    "kv_slope", "n v z",
    {
        "v": lambda ct, n, v, z: ct * xp.kv_slope(n + 1.0, v, z),
        "z": lambda ct, n, v, z: -0.5 * ct * (xp.kv_slope(n, v - 1.0, z) + xp.kv_slope(n, v + 1.0, z)),
    },
    forward=macdonald, whole=1,
)  # fmt: skip
by_argument(
    "kve_slope", "n v z",
    {
        "v": lambda ct, n, v, z: ct * xp.kve_slope(n + 1.0, v, z),
        "z": lambda ct, n, v, z, out: (
            ct * (out - 0.5 * (xp.kve_slope(n, v - 1.0, z) + xp.kve_slope(n, v + 1.0, z)))
        ),
    },
    forward=partial(macdonald, scaled=True), whole=1,
)  # fmt: skip
ufunc("struve", "v x", {"x": lambda ct, v, x, out: ct * (xp.struve(v - 1.0, x) - v / x * out)})
ufunc("modstruve", "v x", {"x": lambda ct, v, x, out: ct * (xp.modstruve(v - 1.0, x) - v / x * out)})
ufunc(
    "besselpoly", "a lmb nu",
    {
        "a": lambda ct, a, lmb, nu: ct * xp.where(
            (a == 0.0) & (nu > 0.0) & (nu < 1.0), math.inf,
            xp.besselpoly(a, lmb + 1.0, -1.0 + nu) - xp.besselpoly(a, lmb + 1.0, nu + 1.0),
        )
    },
)  # fmt: skip

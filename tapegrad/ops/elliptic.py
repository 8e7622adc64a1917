"""Ops that SciPy's ufuncs reach: elliptic integrals of Legendre's form.

Formulas are those of the Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

from typing import Any

from tapegrad.forward.scipy import scipy_result
from tapegrad.ops.special_of_parameters import by_argument, ufunc
from tapegrad.ops.table.op import xp

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

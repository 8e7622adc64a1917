"""Ops: Airy functions and their first derivatives (DLMF, chapter 9). The second ones are the functions times x."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.scipy import scipy_function, scipy_result
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import SPECIAL, Names
from tapegrad.tensor import Tensor

_part = functools.partial(scipy_result, "airy")  # one of the four results of SciPy's function


def _modified(number: int, factor: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return Airy functions of positive numbers by modified Bessel functions of 1/3 or 2/3 (DLMF 9.6), else SciPy's."""

    def oracle(x: Any) -> Any:
        wide = np.asarray(x, np.float64)
        between = (wide > 0.01) & (wide < 10)
        zeta, order = np.where(between, wide, 1.0) ** 1.5 * (2 / 3), (1 + number % 2) / 3
        own, other = (scipy_function("kv" if number < 2 else "iv")(sign * order, zeta) for sign in (1, -1))
        return np.asarray(np.where(between, factor(abs(wide)) * (own + other), _part(number)(wide)), x.dtype)[()]

    return oracle


airy_ai = unary(
    "airy_ai", _part(0), lambda ct, x: ct * xp.airy_ai_prime(x),
    doc="Airy function :math:`\\mathrm{Ai}(x)`.", derivative=":math:`\\mathrm{Ai}'(x)`. PyTorch has none.",
    real_only=True, domain=(0.1, 4.0), special={0.0: -0.25881940379280680}, names=Names(namespaces=(SPECIAL,)),
    oracle=_modified(0, lambda x: np.sqrt(x / 3) / (2 * np.pi)),
)  # fmt: skip

_airy_ai_prime = unary(
    "airy_ai_prime", _part(1), lambda ct, x: ct * x * xp.airy_ai(x), doc="Derivative of `airy_ai`.",
    real_only=True, domain=(0.1, 4.0), special={0.0: 0.0}, names=None,
    oracle=_modified(1, lambda x: -x / (2 * np.pi * np.sqrt(3))),
)  # fmt: skip

_airy_bi = unary(
    "airy_bi", _part(2), lambda ct, x: ct * xp.airy_bi_prime(x), doc="Airy function :math:`\\mathrm{Bi}(x)`.",
    real_only=True, domain=(0.1, 3.0), special={0.0: 0.44828835735382636}, names=None,
    oracle=_modified(2, lambda x: np.sqrt(x / 3)),
)  # fmt: skip

_airy_bi_prime = unary(
    "airy_bi_prime", _part(3), lambda ct, x: ct * x * xp.airy_bi(x), doc="Derivative of `airy_bi`.",
    real_only=True, domain=(0.1, 3.0), special={0.0: 0.0}, names=None,
    oracle=_modified(3, lambda x: x / np.sqrt(3)),
)  # fmt: skip


def airy(z: Any) -> tuple[Tensor, ...]:
    """Return what `scipy.special.airy` does: both functions, each with its derivative."""
    return airy_ai(z), _airy_ai_prime(z), _airy_bi(z), _airy_bi_prime(z)

"""Ops: integrals that have names: exponential, sine, Fresnel and elliptic integrals, Dawson's, the dilogarithm."""

from __future__ import annotations

import math
from typing import Any, Final

from tapegrad.forward.scipy import SciPy, scipy_result
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import SPECIAL, Names
from tapegrad.tensor import Tensor

_ONLY: Final = Names(namespaces=(SPECIAL,))
_ROOT_PI: Final = math.sqrt(math.pi)


erfi = unary(
    "erfi", SciPy("erfi"), lambda ct, x: ct * (xp.exp(x * x) * (2 / _ROOT_PI)),
    doc="Imaginary error function.", derivative=":math:`2 e^{x^2}/\\sqrt{\\pi}`.", real_only=True, names=_ONLY,
    special={0.0: 2 / _ROOT_PI},
    domain=(-2.0, 2.0),
)  # fmt: skip

dawsn = unary(
    "dawsn", SciPy("dawsn"), lambda ct, x, out: ct * (1 - 2 * x * out),
    doc="Dawson's integral (DLMF 7.2.5).", derivative=":math:`1 - 2 x D(x)`.", real_only=True, names=_ONLY,
    special={0.0: 1.0},
)  # fmt: skip

erfcinv = unary(
    "erfcinv", SciPy("erfcinv"), lambda ct, out: ct * (xp.exp(out * out) * (-_ROOT_PI / 2)),
    doc="Inverse of `erfc`.", derivative=":math:`-e^{y^2} \\sqrt{\\pi}/2` for the result y.", real_only=True,
    names=_ONLY, domain=(0.2, 1.8), special={1.0: -_ROOT_PI / 2},
)  # fmt: skip

expi = unary(
    "expi", SciPy("expi"), lambda ct, x: ct * xp.exp(x) / x,
    doc="Exponential integral :math:`\\mathrm{Ei}(x)` (DLMF 6.2.5).", derivative=":math:`e^x/x`.", real_only=True,
    names=_ONLY, domain=(0.3, 3.0), special={1.0: math.e},
)  # fmt: skip

exp1 = unary(
    "exp1", SciPy("exp1"), lambda ct, x: -ct * xp.exp(-x) / x,
    doc="Exponential integral :math:`E_1(x)` (DLMF 6.2.1).", derivative=":math:`-e^{-x}/x`.", real_only=True,
    names=_ONLY, domain=(0.3, 3.0), special={1.0: -1 / math.e},
)  # fmt: skip

_sine = unary(
    "sine_integral", scipy_result("sici", 0), lambda ct, x: ct * xp.sinc(x / math.pi),
    doc="Sine integral (DLMF 6.2.9).",
    real_only=True, names=None, special={0.0: 1.0}, oracle=scipy_result("sici", 0),
)  # fmt: skip

_cosine = unary(
    "cosine_integral", scipy_result("sici", 1), lambda ct, x: ct * xp.cos(x) / x, doc="Cosine integral (DLMF 6.2.11).",
    real_only=True, names=None, domain=(0.3, 3.0), special={1.0: math.cos(1)}, oracle=scipy_result("sici", 1),
)  # fmt: skip

_sinh = unary(
    "sinh_integral", scipy_result("shichi", 0), lambda ct, x: ct * xp.where(x == 0, 1.0, xp.sinh(x) / x),
    doc="Hyperbolic sine integral (DLMF 6.2.15).", real_only=True, names=None, domain=(0.3, 3.0),
    special={1.0: math.sinh(1)}, oracle=scipy_result("shichi", 0),
)  # fmt: skip

_cosh = unary(
    "cosh_integral", scipy_result("shichi", 1), lambda ct, x: ct * xp.cosh(x) / x,
    doc="Hyperbolic cosine integral (DLMF 6.2.16).", real_only=True, names=None, domain=(0.3, 3.0),
    special={1.0: math.cosh(1)}, oracle=scipy_result("shichi", 1),
)  # fmt: skip

_fresnel_s = unary(
    "fresnel_s", scipy_result("fresnel", 0), lambda ct, x: ct * xp.sin(x * x * (math.pi / 2)),
    doc="Fresnel integral S (DLMF 7.2.8).", real_only=True, names=None, special={0.0: 0.0},
    oracle=scipy_result("fresnel", 0),
)  # fmt: skip

_fresnel_c = unary(
    "fresnel_c", scipy_result("fresnel", 1), lambda ct, x: ct * xp.sin((1 - x * x) * (math.pi / 2)),
    doc="Fresnel integral C (DLMF 7.2.7).", real_only=True, names=None, special={0.0: 1.0},
    oracle=scipy_result("fresnel", 1),
)  # fmt: skip

spence = unary(
    "spence", SciPy("spence"), lambda ct, x: ct * xp.where(x == 1, -1.0, xp.log(x) / (1 - x)),
    doc="Dilogarithm :math:`\\mathrm{Li}_2(1 - x)` (DLMF 25.12.1).",
    derivative=":math:`\\log(x)/(1 - x)`; -1 at 1, where second derivatives are nan.", real_only=True, names=_ONLY,
    domain=(1.2, 3.0), special={1.0: -1.0},
)  # fmt: skip

ellipe = unary(
    "ellipe", SciPy("ellipe"),
    lambda ct, x, out: ct * xp.where(x == 0, -math.pi / 8, (out - xp.ellipk(x)) / (2 * x)),
    doc="Complete elliptic integral of the second kind, of the parameter m (DLMF 19.2.8).",
    derivative=":math:`(E(m) - K(m))/2m`; at 0 :math:`-\\pi/8`, where second derivatives are nan.", real_only=True,
    names=_ONLY, domain=(0.1, 0.9), special={0.0: -math.pi / 8},
)  # fmt: skip

ellipk = unary(
    "ellipk", SciPy("ellipk"),
    lambda ct, x, out: ct * xp.where(x == 0, math.pi / 8, (xp.ellipe(x) / (1 - x) - out) / (2 * x)),
    doc="Complete elliptic integral of the first kind, of the parameter m (DLMF 19.2.8).",
    derivative=":math:`(E(m)/(1 - m) - K(m))/2m`; at 0 :math:`\\pi/8`, where second derivatives are nan.",
    real_only=True, names=_ONLY, domain=(0.1, 0.9), special={0.0: math.pi / 8},
)  # fmt: skip


def sici(x: Any) -> tuple[Tensor, Tensor]:
    """Return what `scipy.special.sici` does."""
    return _sine(x), _cosine(x)


def shichi(x: Any) -> tuple[Tensor, Tensor]:
    """Return what `scipy.special.shichi` does."""
    return _sinh(x), _cosh(x)


def fresnel(z: Any) -> tuple[Tensor, Tensor]:
    """Return what `scipy.special.fresnel` does."""
    return _fresnel_s(z), _fresnel_c(z)

"""Activations that are smooth, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import abs as absolute
from tapegrad.ops.arithmetic import add, div
from tapegrad.ops.shaped import and_inplace, applied, only_floats, shaped
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.gateway import is_complex
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.tensor import Tensor

_elu = shaped(
    "elu", {"alpha": 1.5, "scale": 0.75}, lambda x, alpha, scale: xp.where(x <= 0, alpha * xp.expm1(x * scale), x),
    lambda ct, x, alpha, scale: xp.where(x <= 0, ct * (alpha * scale) * xp.exp(xp.where(x < 0, x, 0.0) * scale), ct),
    lambda x, alpha, scale: np.where(x <= 0, alpha * np.expm1(x * scale), x),
    special={0.0: 1.125, -np.inf: 0.0, np.inf: 1.0},
)  # fmt: skip


@and_inplace
@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_elu)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Return `input` where it is positive, and :math:`\alpha (e^x - 1)` elsewhere.

    Parameters
    ----------
    alpha : float

    Notes
    -----
    Derivative: 1 where positive, :math:`\alpha e^x` elsewhere. D.-A. Clevert et al., "Fast and accurate deep network
    learning by exponential linear units" (2015).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.elu(tg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return applied(inplace, _elu, input, alpha, 1.0)


@and_inplace
@public(namespaces=(TOP, FUNCTIONAL), common=docs.ACTIVATION, of=_elu)
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Return `input` where it is positive, and :math:`\alpha (e^{x/\alpha} - 1)` elsewhere.

    Parameters
    ----------
    alpha : float
        Not 0.

    Raises
    ------
    RuntimeError
        If `alpha` is 0.

    Notes
    -----
    Derivative: 1 where positive, :math:`e^{x/\alpha}` elsewhere. J. T. Barron, "Continuously differentiable exponential
    linear units" (2017).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.celu(tg.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU; celu() divides by it")
    return applied(inplace, _elu, input, alpha, 1.0 / alpha)


_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

_selu = unary(
    "selu", None,
    lambda ct, x: ct * xp.where(x <= 0, _ALPHA * _SCALE * xp.exp(xp.where(x < 0, x, 0.0)), _SCALE),
    doc="", fx=lambda x: xp.where(x <= 0, _ALPHA * _SCALE * xp.expm1(x), _SCALE * x), real_only=True,
    oracle=lambda x: np.where(x <= 0, _ALPHA * _SCALE * np.expm1(x), _SCALE * x).astype(np.result_type(x)),
    check_dtypes=only_floats("selu"), node_name="EluBackward0", names=None,
    special={0.0: _ALPHA * _SCALE, -np.inf: 0.0, np.inf: _SCALE},
)  # fmt: skip


@and_inplace
@public(namespaces=(TOP, FUNCTIONAL), common=docs.ACTIVATION, of=_selu)
def selu(input: Any, inplace: bool = False) -> Tensor:
    r"""Return :math:`s x` where `input` is positive, and :math:`s \alpha (e^x - 1)` elsewhere.

    The constants :math:`s = 1.0507` and :math:`\alpha = 1.6733` keep the mean 0 and the variance 1.

    Notes
    -----
    Derivative: :math:`s` where positive, :math:`s \alpha e^x` elsewhere. G. Klambauer et al., "Self-normalizing neural
    networks" (2017).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.selu(tg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return applied(inplace, _selu, input)


def _silu_rule(ct: Any, x: Any) -> Any:
    part = xp.sigmoid(x)  # 1 / (1 + exp(-x)) has no second derivative where exp overflows
    return ct * xp.conj(part * (1 + x * (1 - part)))


_silu = unary(
    "silu", None, _silu_rule, doc="", fx=lambda x: x / (1 + xp.exp(-x)), oracle=lambda x: x * (1 / (1 + np.exp(-x))),
    check_dtypes=only_floats("silu"), special={0.0: 0.5}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_silu)
def silu(input: Any, inplace: bool = False) -> Tensor:
    r"""Return `input` times its `sigmoid`, which is also called swish.

    Notes
    -----
    Derivative: :math:`\sigma(x) (1 + x (1 - \sigma(x)))`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.silu(tg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return applied(inplace, _silu, input)


# The hyperbolic tangent of log(1 + e) is n/(n + 2) for n = e(e + 2), which is 1 from e**20 on.
def _mish_of(x: Any) -> Any:
    power = xp.exp(xp.where(x > 20, 20.0, x))
    return x * (power * (power + 2) / (power * (power + 2) + 2))


def _mish_rule(ct: Any, x: Any) -> Any:
    power = xp.exp(xp.where(x > 20, 20.0, x))
    n = power * (power + 2)
    return ct * (n / (n + 2) + x * xp.where(x > 20, 0.0, 4 * power * (power + 1) / ((n + 2) * (n + 2))))


_mish = unary(
    "mish", None, _mish_rule, doc="", fx=_mish_of, real_only=True,
    oracle=lambda x: x * np.tanh(np.logaddexp(x, np.zeros_like(x))), check_dtypes=only_floats("mish"),
    special={0.0: 0.6}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_mish)
def mish(input: Any, inplace: bool = False) -> Tensor:
    r"""Return `input` times the hyperbolic tangent of its `softplus`.

    Notes
    -----
    Derivative: :math:`t + x \sigma(x) (1 - t^2)` with :math:`t = \tanh(\log(1 + e^x))`. D. Misra, "Mish: a self
    regularized non-monotonic activation function" (2019).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.mish(tg.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return applied(inplace, _mish, input)


_ROOT, _CUBIC = math.sqrt(2 / math.pi), 0.044715


def _gelu_tanh_rule(ct: Any, x: Any) -> Any:
    part = xp.tanh(_ROOT * (x + _CUBIC * x * x * x))
    return ct * (0.5 * (1 + part) + 0.5 * x * (1 - part * part) * _ROOT * (1 + 3 * _CUBIC * x * x))


_gelu = unary(
    "gelu", None,
    lambda ct, x: ct * (0.5 * (1 + xp.erf(x * math.sqrt(0.5))) + x * xp.exp(-0.5 * x * x) * (0.5 * _ROOT)),
    doc="", fx=lambda x: 0.5 * x * (1 + xp.erf(x * math.sqrt(0.5))), real_only=True, check_dtypes=only_floats("gelu"),
    oracle=lambda x: x * np.vectorize(lambda t: 0.5 + 0.5 * math.erf(t / math.sqrt(2)), otypes=[np.result_type(x)])(x),
    special={0.0: 0.5}, names=None,
)  # fmt: skip

_gelu_tanh = unary(
    "gelu_tanh", None, _gelu_tanh_rule,
    doc="", fx=lambda x: 0.5 * x * (1 + xp.tanh(_ROOT * (x + _CUBIC * x * x * x))), real_only=True,
    oracle=lambda x: x / 2 * (1 + np.tanh(_ROOT * x + _ROOT * _CUBIC * (x * x * x))),
    check_dtypes=only_floats("gelu"), special={0.0: 0.5}, node_name="GeluBackward0", names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY, of=_gelu)
def gelu(input: Any, approximate: str = "none") -> Tensor:
    r"""Return `input` times the probability :math:`\Phi(x)` that a normally distributed number is less.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        Compute :math:`\Phi(x)` as :math:`(1 + \tanh(\sqrt{2/\pi} (x + 0.044715 x^3)))/2`.

    Raises
    ------
    RuntimeError
        If `approximate` is something else.

    Notes
    -----
    Derivative: :math:`\Phi(x) + x \varphi(x)`. D. Hendrycks, K. Gimpel, "Gaussian error linear units" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.gelu(tg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, not {approximate!r}")
    result: Tensor = _gelu(input) if approximate == "none" else _gelu_tanh(input)
    return result


_softsign = unary(
    "softsign", None, lambda ct, x: ct / ((1 + abs(x)) * (1 + abs(x))), node_name="DivBackward0",
    doc="", fx=lambda x: x / (1 + abs(x)), real_only=True, oracle=lambda x: x * (1 / (1 + np.abs(x))),
    special={0.0: 1.0}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY)
@composite((Sample(((2, 3),)), Sample(((),))), lambda input: (input / (1 + np.abs(input))).astype(input.dtype))
def softsign(input: Any) -> Tensor:
    """Return :math:`x/(1 + |x|)`.

    Notes
    -----
    Derivative: :math:`1/(1 + |x|)^2`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softsign(tg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    if is_complex(input):
        return div(input, add(absolute(input), 1.0))
    result: Tensor = _softsign(input)
    return result


_logsigmoid = unary(
    "logsigmoid", None, lambda ct, x: ct * xp.sigmoid(-x),
    doc="", fx=lambda x: -xp.softplus(-x), real_only=True,
    oracle=lambda x: -np.logaddexp(np.zeros_like(x), -x), check_dtypes=only_floats("logsigmoid"),
    special={0.0: 0.5, -np.inf: 1.0, np.inf: 0.0}, node_name="LogSigmoidBackward0", names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY, of=_logsigmoid)
def logsigmoid(input: Any) -> Tensor:
    r"""Logarithm of the `sigmoid`, computed so that nothing overflows.

    Notes
    -----
    Derivative: :math:`\sigma(-x)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.logsigmoid(tg.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """
    result: Tensor = _logsigmoid(input)
    return result


def _tanhshrink_rule(ct: Any, x: Any) -> Any:
    part = xp.tanh(x)
    return ct * xp.conj(part * part)


_tanhshrink = unary(
    "tanhshrink", None, _tanhshrink_rule, node_name="SubBackward0",
    doc="", fx=lambda x: x - xp.tanh(x), oracle=lambda x: -np.tanh(x) + x,
    special={0.0: 0.0, np.inf: 1.0, -np.inf: 1.0}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY, of=_tanhshrink)
def tanhshrink(input: Any) -> Tensor:
    r"""Return `input` less its hyperbolic tangent.

    Notes
    -----
    Derivative: :math:`\tanh^2 x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.tanhshrink(tg.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    result: Tensor = _tanhshrink(input)
    return result

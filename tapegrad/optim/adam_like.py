"""Those that differ from Adam in how they divide by the size of gradients: NAdam, RAdam, Adamax."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.ops.table.op import xp
from tapegrad.optim.adam import moments
from tapegrad.optim.compiled import FormulaOptimizer, options
from tapegrad.optim.formula import Formula
from tapegrad.optim.optimizer import Params


def _momenta(
    step: float, mu_product: float, lr: float, beta1: float, beta2: float, eps: float, momentum_decay: float
) -> tuple[float, ...]:
    step += 1.0
    mu = beta1 * (1.0 - 0.5 * xp.pow(0.96, step * momentum_decay))
    mu_next = beta1 * (1.0 - 0.5 * xp.pow(0.96, (step + 1.0) * momentum_decay))
    mu_product *= mu
    of_grad, of_mean = lr * (1.0 - mu) / (1.0 - mu_product), lr * mu_next / (1.0 - mu_product * mu_next)
    return step, mu_product, beta1, beta2, of_grad, of_mean, 1.0 - xp.pow(beta2, step), eps


def _ahead(
    x: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any,
    beta1: float, beta2: float, of_grad: float, of_mean: float, weight: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
    return x - (of_grad * grad + of_mean * exp_avg) / (xp.sqrt(exp_avg_sq / weight) + eps), exp_avg, exp_avg_sq


class NAdam(FormulaOptimizer):
    """Adam that looks ahead, as Nesterov's momentum does (Dozat, "Incorporating Nesterov momentum into Adam", 2016).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr, betas, eps, weight_decay, decoupled_weight_decay, foreach, maximize, capturable, differentiable
        As in `Adam`.
    momentum_decay : float
        How fast the momentum grows to the first of `betas`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.4718], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "mu_product": 1.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}
    _formula = Formula(_momenta, _ahead)

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


def _rectified(step: float, lr: float, beta1: float, beta2: float, eps: float) -> tuple[float, ...]:
    step += 1.0
    left = xp.pow(beta2, step)
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * step * left / (1.0 - left)
    rect = 0.0
    if length > 5.0:  # shorter averages say nothing of the variance
        rect = xp.sqrt((length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length))
    return step, beta1, beta2, lr / (1.0 - xp.pow(beta1, step)), rect * xp.sqrt(1.0 - left), eps


def _by_root_if_known(
    x: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any,
    beta1: float, beta2: float, size: float, rect: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
    adapted = rect / (xp.sqrt(exp_avg_sq) + eps) if rect > 0.0 else 1.0
    return x - size * exp_avg * adapted, exp_avg, exp_avg_sq


class RAdam(FormulaOptimizer):
    """Adam that divides by the root only when its variance is known well enough (Liu et al., arXiv:1908.03265).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr, betas, eps, weight_decay, decoupled_weight_decay, foreach, maximize, capturable, differentiable
        As in `Adam`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.RAdam([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}
    _formula = Formula(_rectified, _by_root_if_known)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


def _corrected_first(step: float, lr: float, beta1: float, beta2: float, eps: float) -> tuple[float, ...]:
    step += 1.0
    return step, beta1, beta2, lr / (1.0 - xp.pow(beta1, step)), eps


def _by_largest(
    x: Any, grad: Any, exp_avg: Any, exp_inf: Any, beta1: float, beta2: float, size: float, eps: float
) -> tuple[Any, ...]:
    exp_avg += (1.0 - beta1) * (grad - exp_avg)
    exp_inf, height = beta2 * exp_inf, abs(grad) + eps
    exp_inf = xp.where((exp_inf > height) | (exp_inf != exp_inf), exp_inf, height)  # nan stays
    return x - size * exp_avg / exp_inf, exp_avg, exp_inf


class Adamax(FormulaOptimizer):
    """Adam with a running maximum in place of the root mean square (Kingma and Ba, arXiv:1412.6980, section 7).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr, betas, eps, weight_decay, foreach, maximize, differentiable, capturable
        As in `Adam`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.Adamax([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "exp_avg": 0.0, "exp_inf": 0.0}
    _formula = Formula(_corrected_first, _by_largest)

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

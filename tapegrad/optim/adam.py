"""Adam and AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.ops.table.op import xp
from tapegrad.optim.compiled import FormulaOptimizer, options
from tapegrad.optim.formula import Formula
from tapegrad.optim.optimizer import Group, Params
from tapegrad.tensor import Tensor


def moments(grad: Any, exp_avg: Any, exp_avg_sq: Any, beta1: float, beta2: float) -> tuple[Any, Any]:
    """Return the running means of the gradient and of its square."""
    return exp_avg + (1.0 - beta1) * (grad - exp_avg), beta2 * exp_avg_sq + (1.0 - beta2) * grad * grad


def _corrected(step: float, lr: float, beta1: float, beta2: float, eps: float) -> tuple[float, ...]:
    # Means that began at 0 are divided by the sum of their weights.
    step += 1.0
    size = lr / (1.0 - xp.pow(beta1, step))
    return step, beta1, beta2, size, xp.sqrt(1.0 - xp.pow(beta2, step)), eps


def _by_root(
    x: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any,
    beta1: float, beta2: float, size: float, root: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
    return x - size * exp_avg / (xp.sqrt(exp_avg_sq) / root + eps), exp_avg, exp_avg_sq


def _by_largest_root(
    x: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any,
    beta1: float, beta2: float, size: float, root: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
    max_exp_avg_sq = xp.where(max_exp_avg_sq > exp_avg_sq, max_exp_avg_sq, exp_avg_sq)
    return x - size * exp_avg / (xp.sqrt(max_exp_avg_sq) / root + eps), exp_avg, exp_avg_sq, max_exp_avg_sq


class Adam(FormulaOptimizer):
    """Adam: steps divided by a running root mean square of the gradient (Kingma and Ba, arXiv:1412.6980).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    betas : pair of float
        Decay rates of the running means of the gradient and of its square.
    eps : float
        Added to the root.
    weight_decay : float
        ``weight_decay`` times the parameter is added to the gradient.
    amsgrad : bool
        Divide by the largest root so far (Reddi et al., arXiv:1904.09237).
    foreach, fused : bool, optional
        Accepted without effect: every step is one compiled pass.
    maximize : bool
        Maximise the objective instead of minimising it.
    capturable, differentiable : bool
        Must be False.
    decoupled_weight_decay : bool
        Multiply parameters by ``1 - lr * weight_decay`` instead, as `AdamW` does.

    Raises
    ------
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0, "max_exp_avg_sq": 0.0}
    _plain = Formula(_corrected, _by_root)
    _amsgrad = Formula(_corrected, _by_largest_root)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        lr, betas = defaults["lr"], defaults["betas"]
        if [type(beta) for beta in betas] not in ([float] * 2, [Tensor] * 2):
            raise ValueError("betas must be either both floats or both Tensors")
        for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor) and defaults["foreach"] and not defaults["capturable"]:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(value, Tensor) and value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")

    def _choose(self, group: Group) -> Formula:
        return self._amsgrad if group["amsgrad"] else self._plain


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, arXiv:1711.05101).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr, betas, eps, amsgrad, maximize, foreach, capturable, differentiable, fused
        As in `Adam`.
    weight_decay : float
        At each step, parameters are multiplied by ``1 - lr * weight_decay``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.AdamW([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.4950], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # older states lack it
            group["decoupled_weight_decay"] = True

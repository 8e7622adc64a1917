"""Gradient descent: with momentum, and averaged."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.ops.table.op import xp
from tapegrad.optim.compiled import FormulaOptimizer, options
from tapegrad.optim.formula import Formula
from tapegrad.optim.optimizer import Group, Params


def _descend(x: Any, grad: Any, lr: float) -> tuple[Any, ...]:
    return (x - lr * grad,)


def _directions(lr: float, momentum: float, nesterov: float) -> tuple[float, ...]:
    return lr, momentum, 1.0, nesterov


def _damped(lr: float, momentum: float, dampening: float, nesterov: float, fresh: float) -> tuple[float, ...]:
    # The first direction is the gradient, whatever the dampening.
    return lr, momentum, 1.0 if fresh else 1.0 - dampening, nesterov


def _along(
    x: Any, grad: Any, momentum_buffer: Any, lr: float, momentum: float, weight: float, nesterov: float
) -> tuple[Any, ...]:
    momentum_buffer = momentum * momentum_buffer + weight * grad
    direction = grad + momentum * momentum_buffer if nesterov else momentum_buffer
    return x - lr * direction, momentum_buffer


class SGD(FormulaOptimizer):
    """Gradient descent, optionally with momentum.

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous direction in the next one.
    dampening : float
        The gradient is multiplied by ``1 - dampening`` before it is added to the direction.
    weight_decay : float
        ``weight_decay`` times the parameter is added to the gradient.
    nesterov : bool
        Use Nesterov momentum (Sutskever et al., "On the importance of initialization and momentum", 2013).
    maximize : bool
        Maximise the objective instead of minimising it.
    foreach, fused : bool, optional
        Accepted without effect: every step is one compiled pass.
    differentiable : bool
        Must be False.

    Raises
    ------
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tg.optim.SGD([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    _initial: ClassVar = {"momentum_buffer": 0.0}
    _plain = Formula(lambda lr: (lr,), _descend)
    _with_momentum = Formula(_directions, _along)
    _with_dampening = Formula(_damped, _along)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        if defaults["nesterov"] and (defaults["momentum"] <= 0 or defaults["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _choose(self, group: Group) -> Formula:
        if not group["momentum"]:
            return self._plain
        return self._with_dampening if group["dampening"] else self._with_momentum


def _shrinking(
    step: float, eta: float, mu: float, lr: float, lambd: float, alpha: float, t0: float
) -> tuple[float, ...]:
    step += 1.0
    next_eta = lr / xp.pow(1.0 + lambd * lr * step, alpha)
    return step, next_eta, 1.0 / max(1.0, step - t0), eta, mu, 1.0 - lambd * eta


def _averaged(x: Any, grad: Any, ax: Any, eta: float, mu: float, shrink: float) -> tuple[Any, ...]:
    x = shrink * x - eta * grad
    return x, x if mu == 1.0 else ax + mu * (x - ax)


class ASGD(FormulaOptimizer):
    """Averaged gradient descent (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    lambd : float
        Decay of the parameter.
    alpha : float
        Power with which the learning rate falls.
    t0 : float
        The step at which averaging begins; the averages are in the state, as ``ax``.
    weight_decay, maximize, foreach, differentiable
        As in `SGD`.
    capturable : bool
        Must be False.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.ASGD([x], lr=0.25, lambd=0.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "eta": "lr", "mu": 1.0, "ax": 0.0}
    _formula = Formula(_shrinking, _averaged)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

"""Optimizers with a step of its own for each element: Adagrad, Adadelta, RMSprop, Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.ops.table.op import xp
from tapegrad.optim.compiled import FormulaOptimizer, options
from tapegrad.optim.formula import Formula
from tapegrad.optim.optimizer import Group, Params


def _slower(step: float, lr: float, lr_decay: float, eps: float) -> tuple[float, ...]:
    return step + 1.0, lr / (1.0 + step * lr_decay), eps


def _by_sum(x: Any, grad: Any, sum: Any, size: float, eps: float) -> tuple[Any, ...]:
    sum += grad * grad
    return x - size * grad / (xp.sqrt(sum) + eps), sum


class Adagrad(FormulaOptimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al., JMLR 12, 2011).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    lr_decay : float
        The learning rate is divided by one plus this times the number of steps before.
    weight_decay, eps, foreach, maximize, differentiable, fused
        As in `Adam`.
    initial_accumulator_value : float
        With which the sums begin.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.Adagrad([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "sum": "initial_accumulator_value"}
    _formula = Formula(_slower, _by_sum)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals()))
        for number, group in enumerate(self.param_groups):
            for param in group["params"]:
                self._update(number, group).add_states(param, self.state[param], self.defaults)

    def share_memory(self) -> None:
        """Do nothing: threads share memory."""


def _deltas(step: float, lr: float, rho: float, eps: float) -> tuple[float, ...]:
    return step + 1.0, lr, rho, eps


def _by_both(x: Any, grad: Any, square_avg: Any, acc_delta: Any, lr: float, rho: float, eps: float) -> tuple[Any, ...]:
    square_avg = rho * square_avg + (1.0 - rho) * grad * grad
    delta = xp.sqrt(acc_delta + eps) / xp.sqrt(square_avg + eps) * grad
    return x - lr * delta, square_avg, rho * acc_delta + (1.0 - rho) * delta * delta


class Adadelta(FormulaOptimizer):
    """Steps scaled by the ratio of two running root mean squares: of steps, of gradients (Zeiler, arXiv:1212.5701).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        What steps are multiplied by.
    rho : float
        Decay rate of the means.
    eps : float
        Added inside the roots.
    weight_decay, foreach, capturable, maximize, differentiable
        As in `Adam`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.Adadelta([x], eps=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.1056], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "square_avg": 0.0, "acc_delta": 0.0}
    _formula = Formula(_deltas, _by_both)

    def __init__(
        self,
        params: Params,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        if not 0.0 <= defaults["rho"] <= 1.0:
            raise ValueError(f"Invalid rho value: {defaults['rho']}")


def _means(step: float, lr: float, alpha: float, eps: float, momentum: float) -> tuple[float, ...]:
    return step + 1.0, lr, alpha, eps, momentum


def _mean_square(grad: Any, square_avg: Any, alpha: float) -> Any:
    return alpha * square_avg + (1.0 - alpha) * grad * grad


def _by_mean(
    x: Any, grad: Any, square_avg: Any, lr: float, alpha: float, eps: float, momentum: float
) -> tuple[Any, ...]:
    square_avg = _mean_square(grad, square_avg, alpha)
    return x - lr * grad / (xp.sqrt(square_avg) + eps), square_avg


def _by_mean_along(
    x: Any, grad: Any, square_avg: Any, momentum_buffer: Any, lr: float, alpha: float, eps: float, momentum: float
) -> tuple[Any, ...]:
    square_avg = _mean_square(grad, square_avg, alpha)
    momentum_buffer = momentum * momentum_buffer + grad / (xp.sqrt(square_avg) + eps)
    return x - lr * momentum_buffer, square_avg, momentum_buffer


def _by_deviation(
    x: Any, grad: Any, square_avg: Any, grad_avg: Any, lr: float, alpha: float, eps: float, momentum: float
) -> tuple[Any, ...]:
    square_avg = _mean_square(grad, square_avg, alpha)
    grad_avg += (1.0 - alpha) * (grad - grad_avg)
    return x - lr * grad / (xp.sqrt(square_avg - grad_avg * grad_avg) + eps), square_avg, grad_avg


def _by_deviation_along(
    x: Any, grad: Any, square_avg: Any, momentum_buffer: Any, grad_avg: Any,
    lr: float, alpha: float, eps: float, momentum: float,
) -> tuple[Any, ...]:  # fmt: skip
    square_avg = _mean_square(grad, square_avg, alpha)
    grad_avg += (1.0 - alpha) * (grad - grad_avg)
    momentum_buffer = momentum * momentum_buffer + grad / (xp.sqrt(square_avg - grad_avg * grad_avg) + eps)
    return x - lr * momentum_buffer, square_avg, momentum_buffer, grad_avg


class RMSprop(FormulaOptimizer):
    """Steps divided by a running root mean square of the gradient (Tieleman and Hinton, Coursera lecture 6.5, 2012).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    alpha : float
        Decay rate of the means.
    eps : float
        Added to the root.
    weight_decay, capturable, foreach, maximize, differentiable
        As in `Adam`.
    momentum : float
        Factor of the previous direction in the next one.
    centered : bool
        Divide by the running standard deviation instead (Graves, arXiv:1308.0850).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.RMSprop([x], lr=0.25, alpha=0.75)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "square_avg": 0.0, "momentum_buffer": 0.0, "grad_avg": 0.0}
    #: By whether there is momentum, and whether it is centered.
    _formulas: ClassVar = {
        (False, False): Formula(_means, _by_mean), (True, False): Formula(_means, _by_mean_along),
        (False, True): Formula(_means, _by_deviation), (True, True): Formula(_means, _by_deviation_along),
    }  # fmt: skip

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        if not defaults["alpha"] >= 0.0:
            raise ValueError(f"Invalid alpha value: {defaults['alpha']}")

    def _choose(self, group: Group) -> Formula:
        return self._formulas[group["momentum"] > 0, bool(group["centered"])]


def _factors(step: float, eta_minus: float, eta_plus: float, least: float, largest: float) -> tuple[float, ...]:
    return step + 1.0, eta_minus, eta_plus, least, largest


def _by_signs(
    x: Any, grad: Any, prev: Any, step_size: Any, eta_minus: float, eta_plus: float, least: float, largest: float
) -> tuple[Any, ...]:
    agreement = grad * prev
    step_size = step_size * xp.where(agreement > 0.0, eta_plus, xp.where(agreement < 0.0, eta_minus, 1.0))
    step_size = xp.where(step_size < least, least, xp.where(step_size > largest, largest, step_size))
    grad = xp.where(agreement < 0.0, 0.0, grad)  # after a change of sign it stays where it is
    sign = xp.where(grad > 0.0, 1.0, xp.where(grad < 0.0, -1.0, 0.0))  # of nan too, as in PyTorch
    return x - sign * step_size, grad, step_size


class Rprop(FormulaOptimizer):
    """Steps by the signs of gradients: longer while a sign stays, shorter when it changes (Riedmiller and Braun, 1993).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        The first length of a step.
    etas : pair of float
        What the length is multiplied by when the sign changes, and when it stays.
    step_sizes : pair of float
        The shortest and the longest step.
    capturable, foreach, maximize, differentiable
        As in `Adam`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> optimizer = tg.optim.Rprop([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.7500], requires_grad=True)
    """

    _initial: ClassVar = {"step": 0.0, "prev": 0.0, "step_size": "lr"}
    _formula = Formula(_factors, _by_signs)

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        low, high = defaults["etas"]
        if not 0.0 < low < 1.0 < high:
            raise ValueError(f"Invalid eta values: {low}, {high}")

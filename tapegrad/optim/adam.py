"""Adam and AdamW."""

from __future__ import annotations

import math

import numpy as np

from tapegrad.optim.base import Group, Optimizer, Params
from tapegrad.tensor import Tensor


class Adam(Optimizer):
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
        This times the parameter is added to the gradient.
    amsgrad : bool
        Divide by the largest root so far (Reddi et al., arXiv:1904.09237).
    maximize : bool
        Go up instead of down.

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

    _decoupled = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )  # fmt: skip

    def _check(self, group: Group) -> None:
        super()._check(group)
        for place, beta in enumerate(group["betas"]):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")

    def _update(self, param: Tensor, data: np.ndarray, grad: np.ndarray, scratch: np.ndarray, group: Group) -> None:
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = np.zeros_like(data), np.zeros_like(data)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = np.zeros_like(data)
        state["step"] = step = state["step"] + 1
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if group["maximize"]:
            grad = -grad
        if decay:
            if self._decoupled:
                np.multiply(data, 1 - lr * decay, out=data)
            else:
                grad = grad + data * decay
        np.subtract(grad, mean, out=scratch)  # mean += (1 - beta1) * (grad - mean)
        np.multiply(scratch, 1 - beta1, out=scratch)
        np.add(mean, scratch, out=mean)
        np.multiply(square, beta2, out=square)
        np.multiply(grad, grad, out=scratch)
        np.multiply(scratch, 1 - beta2, out=scratch)
        np.add(square, scratch, out=square)
        if group["amsgrad"]:
            square = np.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
        np.sqrt(square, out=scratch)
        np.divide(scratch, math.sqrt(1 - beta2**step), out=scratch)
        np.add(scratch, group["eps"], out=scratch)
        np.divide(mean, scratch, out=scratch)
        np.multiply(scratch, lr / (1 - beta1**step), out=scratch)
        np.subtract(data, scratch, out=data)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, arXiv:1711.05101).

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr, betas, eps, amsgrad, maximize
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

    _decoupled = True

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

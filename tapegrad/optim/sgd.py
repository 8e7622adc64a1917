"""Gradient descent, with momentum."""

from __future__ import annotations

import numpy as np

from tapegrad.optim.base import Group, Optimizer, Params
from tapegrad.tensor import Tensor


class SGD(Optimizer):
    """Gradient descent, with momentum if wanted.

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        Learning rate.
    momentum : float
        The factor of the last direction in the next one.
    dampening : float
        The gradient enters the direction times one minus this.
    weight_decay : float
        This times the parameter is added to the gradient.
    nesterov : bool
        Look ahead along the direction (Sutskever et al., "On the importance of initialization and momentum", 2013).
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
    >>> optimizer = tg.optim.SGD([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                "nesterov": nesterov, "maximize": maximize,
            },
        )  # fmt: skip

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["momentum"] < 0.0:
            raise ValueError(f"Invalid momentum value: {group['momentum']}")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _update(self, param: Tensor, data: np.ndarray, grad: np.ndarray, scratch: np.ndarray, group: Group) -> None:
        lr, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
        if group["maximize"]:
            grad = -grad
        if decay:
            np.multiply(data, decay, out=scratch)
            grad = np.add(scratch, grad, out=scratch)
        if momentum:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = np.array(grad)
            else:
                np.multiply(buffer, momentum, out=buffer)
                if group["dampening"]:
                    np.add(buffer, grad * (1 - group["dampening"]), out=buffer)
                else:
                    np.add(buffer, grad, out=buffer)
            if group["nesterov"]:
                np.add(grad, buffer * momentum, out=scratch)
                grad = scratch
            else:
                grad = buffer
        np.multiply(grad, lr, out=scratch)
        np.subtract(data, scratch, out=data)

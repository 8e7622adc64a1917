"""Muon: steps along the nearest orthogonal matrix to an averaged gradient."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad.optim.optimizer import Group, Params
from tapegrad.optim.per_parameter import PerParameter
from tapegrad.tensor import Tensor

_SCALES: Final = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


def _orthogonal(matrix: np.ndarray, coefficients: tuple[float, float, float], steps: int, eps: float) -> np.ndarray:
    """Return about the nearest orthogonal matrix, by iterations of Newton and Schulz.

    The polynomial of these coefficients rises steeply at 0; singular values end between about 0.7 and 1.2.
    """
    a, b, c = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / max(np.linalg.norm(x), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    found: np.ndarray = x.T if is_tall else x
    return found


class Muon(PerParameter):
    """Momentum, made orthogonal: for the matrices of hidden layers.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        Matrices.
    lr : float
    weight_decay : float
        The parameter is made smaller by this times `lr`.
    momentum : float
    nesterov : bool
        Look ahead along the averaged gradient.
    ns_coefficients : tuple of 3 float
    eps : float
        At least what a gradient is divided by.
    ns_steps : int
        Iterations, less than 100.
    adjust_lr_fn : {"original", "match_rms_adamw"}, optional
        How `lr` depends on the shape.

    Raises
    ------
    ValueError
        If an option is out of range, or a parameter is no matrix.

    Notes
    -----
    K. Jordan, "Muon: an optimizer for hidden layers in neural networks" (2024). PyTorch iterates in half precision,
    this in that of the parameter, so that results differ by some hundredths of a step.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.eye(2, requires_grad=True)
    >>> optimizer = tg.optim.Muon([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x.diagonal() < 0.7).all())
    True
    """

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for holds, words in (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}"),
            (weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}"),
            (adjust_lr_fn in (None, *_SCALES), f"Adjust learning rate function {adjust_lr_fn} is not supported"),
        ):
            if not holds:
                raise ValueError(words)
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}"
                    )

    def _initial(self, grad: np.ndarray) -> dict[str, Any]:
        return {"momentum_buffer": np.zeros_like(grad)}

    def _change(self, x: np.ndarray, grad: np.ndarray, state: dict[str, np.ndarray], group: Group) -> None:
        lr, momentum, buffer = float(group["lr"]), group["momentum"], state["momentum_buffer"]
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        buffer += (1 - momentum) * (grad - buffer)
        ahead = grad + momentum * (buffer - grad) if group["nesterov"] else buffer
        update = _orthogonal(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
        x *= 1 - lr * group["weight_decay"]
        x -= lr * _SCALES[group["adjust_lr_fn"] or "original"](*x.shape) * update

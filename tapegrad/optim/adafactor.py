"""Adafactor: second moments of matrices by their rows and columns alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.optim.optimizer import Group, Params
from tapegrad.optim.per_parameter import PerParameter
from tapegrad.tensor import Tensor


class Adafactor(PerParameter):
    r"""Steps whose size follows that of the parameter, over root mean squares that a matrix keeps as two vectors.

    Parameters
    ----------
    params : iterable of Tensor or of dict
    lr : float
        The most that a step may be, relative to the parameter.
    beta2_decay : float
        The power of the number of steps with which a new square counts; at most 0.
    eps : pair of (float or None, float)
        At least what a root mean square is, default that of the dtype; and at least what the size of a parameter is
        taken for.
    d : float
        At most what the root mean square of an update is, at least 1.
    weight_decay : float
        The parameter is made smaller by this times `lr`.
    foreach : bool, optional
        Accepted, and without meaning.
    maximize : bool
        Maximise the objective instead of minimising it.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adafactor([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.2094, 1.2094], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for holds, words in (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if not holds:
                raise ValueError(words)
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        })  # fmt: skip

    def _initial(self, grad: np.ndarray) -> dict[str, Any]:
        zeros = np.zeros_like(grad)
        if grad.ndim < 2:
            return {"step": np.zeros((), np.float32), "variance": zeros}
        return {"step": np.zeros((), np.float32), "row_var": zeros[..., :1].copy(), "col_var": zeros[..., :1, :].copy()}

    def _change(self, x: np.ndarray, grad: np.ndarray, state: dict[str, np.ndarray], group: Group) -> None:
        lr, eps1 = float(group["lr"]), group["eps"][0]
        eps1 = np.finfo(x.dtype).eps if eps1 is None else eps1
        grad = -grad if group["maximize"] else grad
        state["step"] += 1
        step = float(state["step"])
        share = step ** group["beta2_decay"]
        size = max(group["eps"][1], _root_mean_square(x)) * min(lr, step**-0.5)
        if group["weight_decay"]:
            x *= 1 - lr * group["weight_decay"]
        if grad.ndim > 1:
            for name, axis in (("row_var", -1), ("col_var", -2)):
                state[name] += share * (np.square(grad).mean(axis, keepdims=True) - state[name])
            rows = state["row_var"]
            squares = rows @ state["col_var"] / np.maximum(rows.mean(-2, keepdims=True), eps1)
        else:
            state["variance"] += share * (np.square(grad) - state["variance"])
            squares = state["variance"]
        update = grad / np.sqrt(np.maximum(squares, eps1 * eps1))
        x -= size / max(1.0, _root_mean_square(update) / group["d"]) * update


def _root_mean_square(x: np.ndarray) -> float:
    return float(np.linalg.norm(x.reshape(-1))) / math.sqrt(x.size)

"""The namespace `F` that programs call, and what it is for tools that look like NumPy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numpy import arange

from bench.tools import InexpressibleError


class Functions(SimpleNamespace):
    """A tool's functions by name; one that is missing says so."""

    def __getattr__(self, name: str) -> Any:
        raise InexpressibleError(f"it has no {name}")


def like_numpy(np: Any, constant: Callable[[Any], Any] = lambda x: x, **own: Any) -> Functions:
    """Return the functions of a tool whose `np` has NumPy's; those that it has besides go before what is written here.

    `constant` takes a value out of what is differentiated: a shift that no derivative depends on.
    """

    def shifted(x: Any, axis: int) -> tuple[Any, Any]:
        largest = constant(x).max(axis, keepdims=True)
        return x - largest, largest

    def softmax(x: Any, axis: int) -> Any:
        powers = np.exp(shifted(x, axis)[0])
        return powers / powers.sum(axis, keepdims=True)

    def logsumexp(x: Any, axis: int) -> Any:
        z, largest = shifted(x, axis)
        return np.log(np.exp(z).sum(axis)) + largest.squeeze(axis)

    def cross_entropy(scores: Any, labels: Any) -> Any:
        z = shifted(scores, 1)[0]
        return (np.log(np.exp(z).sum(1)) - z[arange(len(labels)), labels]).mean()

    written = {
        "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "relu": lambda x: np.maximum(x, 0.0),
        "softmax": softmax,
        "logsumexp": logsumexp,
        "cross_entropy": cross_entropy,
    }
    same = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tanh", "einsum")}
    return Functions(**{**same, **written, **own})

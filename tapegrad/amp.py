"""Mixed precision, for programs that name it: there is no half precision, so all is computed as without it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Final

from tapegrad.devices import device as device_of

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class autocast:  # noqa: N801  # PyTorch's name
    """A context manager or decorator in which everything is computed as without it.

    Parameters
    ----------
    device_type : str
    dtype : dtype, optional
    enabled : bool
    cache_enabled : bool, optional

    Warns
    -----
    UserWarning
        If it is enabled: PyTorch would compute products of matrices in half precision, or, of a device that is not
        there, warn as well.

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.autocast("cpu", enabled=False):
    ...     (tg.ones(2, 2) @ tg.ones(2)).dtype
    dtype('float64')
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device, self._enabled = device_of(device_type).type, False
        if enabled:
            is_here = self.device == "cpu"
            why = "there is no half precision" if is_here else f"{self.device.upper()} is not available"
            warnings.warn(f"{why}. Disabling autocast.", UserWarning, stacklevel=2)

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` changes what is computed on a device: never.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.amp.is_autocast_available("cpu")
    False
    """
    device_of(device_type)
    return False


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Return the ``forward`` of an `autograd.Function` as it is."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Return the ``backward`` of an `autograd.Function` as it is."""
    return bwd if bwd is not None else lambda function: function


class GradScaler:
    """Multiply losses by a factor, and divide their gradients by it: what half precision needs lest they become 0.

    Parameters
    ----------
    device : str
        Of ``"cuda"``, which is not there, the scaler is not enabled.
    init_scale, growth_factor, backoff_factor : float
        The factor at first; by how much it grows, and shrinks after gradients that are not finite.
    growth_interval : int
        The number of steps in a row with finite gradients after which it grows.
    enabled : bool

    Warns
    -----
    UserWarning
        If it is enabled for a device that is not there.

    Examples
    --------
    >>> import tapegrad as tg
    >>> w = tg.ones(2, requires_grad=True)
    >>> optimizer, scaler = tg.optim.SGD([w], lr=0.5), tg.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(w.sum()).backward()
    >>> w.grad
    tensor([8., 8.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.5000, 0.5000], requires_grad=True)
    """

    _OPTIONS: Final = ("growth_factor", "backoff_factor", "growth_interval")

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._enabled = enabled and device_of(device).type == "cpu"
        if enabled and not self._enabled:
            warnings.warn(
                f"GradScaler is enabled, but {device.upper()} is not available. Disabling.", UserWarning, stacklevel=2
            )
        self._state: dict[str, Any] = {
            "scale": init_scale, "growth_factor": growth_factor, "backoff_factor": backoff_factor,
            "growth_interval": growth_interval, "_growth_tracker": 0,
        }  # fmt: skip
        self._finite: dict[int, bool] = {}  # of the optimizers whose gradients were divided since the last update

    def is_enabled(self) -> bool:
        """Return whether losses are multiplied."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the factor; 1 if the scaler is not enabled."""
        return float(self._state["scale"]) if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """Return a tensor times the factor, or a list or tuple of such."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        return outputs * self._state["scale"]

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor.

        Raises
        ------
        RuntimeError
            If that was done since the last update.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for grad in grads:
            grad.detach().mul_(1.0 / self._state["scale"])
        self._finite[id(optimizer)] = all(math.isfinite(grad.detach().abs().sum().item()) for grad in grads)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Let the optimizer do a step, unless a gradient is not finite; return what its step returns."""
        if self._enabled and id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._finite.get(id(optimizer), True) else None

    def update(self, new_scale: float | None = None) -> None:
        """Change the factor after a step, or set it."""
        if not self._enabled:
            return
        state = self._state
        if new_scale is not None:
            state["scale"] = float(new_scale)
        elif not self._finite:
            raise RuntimeError("No inf checks were recorded prior to update.")
        elif all(self._finite.values()):
            state["_growth_tracker"] += 1
            if state["_growth_tracker"] == state["growth_interval"]:
                state["scale"], state["_growth_tracker"] = state["scale"] * state["growth_factor"], 0
        else:
            state["scale"], state["_growth_tracker"] = state["scale"] * state["backoff_factor"], 0
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the factor, and how it changes; nothing if the scaler is not enabled."""
        return dict(self._state) if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned.

        Raises
        ------
        RuntimeError
            If there is nothing in it, and this scaler is enabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._state = {name: state_dict[name] for name in self._state}

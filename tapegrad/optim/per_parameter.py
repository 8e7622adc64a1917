"""The base of optimizers whose update of a parameter is more than a formula of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.optim.optimizer import Group, Optimizer
from tapegrad.tape import versions
from tapegrad.tensor import from_array


class PerParameter(Optimizer):
    """An optimizer that says what the state of a parameter is in the begin, and how one step changes both."""

    def _initial(self, grad: np.ndarray) -> dict[str, Any]:
        """Return the state in the begin, as arrays."""
        raise NotImplementedError

    def _change(self, x: np.ndarray, grad: np.ndarray, state: dict[str, np.ndarray], group: Group) -> None:
        """Write the next values to a parameter and to its state."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients before the update.

        Returns
        -------
        The result of `closure`.
        """
        loss = None if closure is None else self._loss_of(closure)
        for group in self.param_groups:
            for param in group["params"]:
                if param._grad is None:
                    continue
                if param.dtype.kind == "c":
                    raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                grad, state = param._grad._array(), self.state[param]
                if not state:
                    state.update({name: from_array(value) for name, value in self._initial(grad).items()})
                data = param._array()
                self._change(data, grad, {name: value._array() for name, value in state.items()}, group)
                versions.note(data)
        return loss

"""Schedules whose rate decays by one formula: exponential, polynomial, cosine."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.schedule import LRScheduler


class ExponentialLR(LRScheduler):
    """Multiply rates by `gamma` at each step.

    Parameters
    ----------
    optimizer : Optimizer
    gamma : float
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(optimizer.param_groups[0]["lr"])
    0.5
    0.25
    0.125
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, rate: Any, base: Any) -> Any:
        return rate if self._is_initial else rate * self.gamma

    def _closed(self, base: Any) -> Any:
        return base * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """Let rates fall to 0 as a power of the steps that are left.

    Parameters
    ----------
    optimizer : Optimizer
    total_iters : int
    power : float
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(optimizer.param_groups[0]["lr"])
    0.75
    0.5
    0.25
    0.0
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _left(self, epoch: int) -> float:
        return 1.0 - epoch / self.total_iters

    def _next(self, rate: Any, base: Any) -> Any:
        if self._is_initial or self.last_epoch > self.total_iters:
            return rate
        return rate * (self._left(self.last_epoch) / self._left(self.last_epoch - 1)) ** self.power

    def _closed(self, base: Any) -> Any:
        return base * self._left(min(self.total_iters, self.last_epoch)) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Let rates fall to `eta_min` along half a cosine, and rise again (Loshchilov and Hutter, arXiv:1608.03983).

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
        Steps of half a period.
    eta_min : float
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{optimizer.param_groups[0]['lr']:.4f}")
    0.8536
    0.5000
    0.1464
    0.0000
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next(self, rate: Any, base: Any) -> Any:
        if self._is_initial:
            return rate
        if self._step_count == 1 and self.last_epoch > 0:
            return self._closed(base)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the last height was 0
            return rate + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        return self._height(self.last_epoch) / self._height(self.last_epoch - 1) * (rate - self.eta_min) + self.eta_min

    def _closed(self, base: Any) -> Any:
        return self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2

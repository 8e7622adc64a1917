"""A schedule that looks at measurements."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.schedule import LRScheduler, check_optimizer, for_groups, set_value, warn_of_epoch


class ReduceLROnPlateau(LRScheduler):
    """Reduce rates when a measurement has not improved for some steps.

    Parameters
    ----------
    optimizer : Optimizer
    mode : "min" or "max"
        Whether less or more is better.
    factor : float
        What rates are multiplied by.
    patience : int
        Steps without improvement that are allowed.
    threshold : float
        Improvements of less do not count.
    threshold_mode : "rel" or "abs"
        Whether `threshold` is relative to the best measurement.
    cooldown : int
        Steps after a reduction that do not count.
    min_lr : float, or a list of one for each group
        No rate is reduced further.
    eps : float
        Reductions of less are left out.

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1)], lr=0.5)
    >>> scheduler = tg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._last_lr = self._of_groups("lr")
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self) -> bool:
        """Whether steps do not count, after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        limit = best * (1.0 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value > limit if self.mode == "max" else value < limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at a measurement, and reduce the rates if it is time.

        Parameters
        ----------
        metrics : float or Tensor
        epoch : int, optional
            Deprecated.
        """
        value = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._of_groups("lr")

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            rate = float(group["lr"])
            reduced = max(rate * self.factor, least)
            if rate - reduced > self.eps:
                set_value(group, "lr", reduced)

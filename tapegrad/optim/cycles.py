"""Schedules with cycles: of learning rates, and of momentum against them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.schedule import LRScheduler, check_optimizer, for_groups, set_value, state_of


class _WithMomentum(LRScheduler):
    """A schedule that may set momentum too: the first of `betas` where an optimizer has those."""

    def _begin_momentum(
        self, cycle_momentum: bool, base: Any, largest: Any, last_epoch: int
    ) -> tuple[list[Any], list[Any]]:
        """Set the first values, and return the lowest and the highest ones of the groups."""
        self.cycle_momentum = cycle_momentum
        if not cycle_momentum:
            return [], []
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        lows = for_groups("base_momentum", self.optimizer, base)
        highs = for_groups("max_momentum", self.optimizer, largest)
        if last_epoch == -1:
            self._set_momentum(highs)
            for group, high, low in zip(self.optimizer.param_groups, highs, lows, strict=True):
                group["max_momentum"], group["base_momentum"] = high, low
        return lows, highs

    def _set_momentum(self, values: list[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if self.use_beta1:
                group["betas"] = (value, *group["betas"][1:])
            else:
                group["momentum"] = value


_MODES: Final[dict[str, tuple[str, Callable[[float, float], float]]]] = {
    # Counted in cycles or iterations, and the height there.
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 1 / 2.0 ** (x - 1)),
    "exp_range": ("iterations", lambda gamma, x: gamma**x),
}


class CyclicLR(_WithMomentum):
    """Let rates rise and fall linearly, again and again (Smith, arXiv:1506.01186).

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : float, or a list of one for each group
        Lowest and highest rate.
    step_size_up, step_size_down : int
        Steps up, and down; by default the same.
    mode : "triangular", "triangular2" or "exp_range"
        Cycles of one height, each half as high as the last one, or `gamma` times lower at each step.
    gamma : float
    scale_fn : callable, optional
        The height, in place of a mode.
    scale_mode : "cycle" or "iterations"
        What `scale_fn` is a function of.
    cycle_momentum : bool
        Let momentum fall while rates rise.
    base_momentum, max_momentum : float, or a list of one for each group
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.CyclicLR(
    ...     optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2, cycle_momentum=False
    ... )
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(optimizer.param_groups[0]["lr"])
    0.5
    1.0
    0.5
    0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None; mode is {mode!r}, not one of {', '.join(_MODES)}")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _MODES[mode][0]
        momenta = self._begin_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        if cycle_momentum:
            self.base_momentums, self.max_momentums = momenta
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or in an iteration."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return _MODES[self.mode][1](self.gamma, x)

    def get_lr(self) -> list[Any]:
        """Compute the rates of the groups, and set momentum; `step` calls it."""
        self._check_call()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            self._set_momentum([high - (high - low) * part * height for low, high in pairs])
        return [low + (high - low) * part * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer; None for a plain function, of another its attributes."""
        return {**super().state_dict(), "_scale_fn_custom": state_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`; functions stay."""
        function = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = function
        if function is not None:
            vars(function).update(state_dict["_scale_fn_custom"] or {})


class OneCycleLR(_WithMomentum):
    """Let rates rise to `max_lr` and fall far below the first ones, once (Smith and Topin, arXiv:1708.07120).

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float, or a list of one for each group
    total_steps : int, optional
        By default ``epochs * steps_per_epoch``.
    epochs, steps_per_epoch : int, optional
    pct_start : float
        The part of all steps in which rates rise.
    anneal_strategy : "cos" or "linear"
    cycle_momentum : bool
        Let momentum fall while rates rise.
    base_momentum, max_momentum : float, or a list of one for each group
    div_factor : float
        The first rates are `max_lr` divided by this.
    final_div_factor : float
        The last rates are the first ones divided by this.
    three_phase : bool
        Return to the first rates before the last phase.
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1)], lr=0.5, momentum=0.9)
    >>> scheduler = tg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> f"{scheduler.get_last_lr()[0]:.3f}"
    '0.040'
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        counts = {"total_steps": total_steps}
        if total_steps is None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        self.total_steps = math.prod(count for count in counts.values() if count is not None)
        # Each phase: its last step, the rates at both ends, the momenta at both ends.
        last, up = self.total_steps - 1, pct_start * self.total_steps
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        phases = [(up - 1.0, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases.append((2 * up - 2.0, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append((last, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append((last, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(names, phase, strict=True)) for phase in phases]
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:  # type: ignore[redundant-expr]
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        for group, largest in zip(optimizer.param_groups, for_groups("max_lr", optimizer, max_lr), strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = largest / div_factor, largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self._begin_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        """Compute the rates of the groups, and set momentum; `step` calls it."""
        self._check_call()
        step, begin = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part, groups = (step - begin) / (phase["end_step"] - begin), self.optimizer.param_groups
        if self.cycle_momentum:
            ends = [(group[phase["start_momentum"]], group[phase["end_momentum"]]) for group in groups]
            self._set_momentum([self._between(start, end, part) for start, end in ends])
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Let rates fall along half a cosine and begin again, in ever longer cycles (Loshchilov and Hutter, 2017).

    Parameters
    ----------
    optimizer : Optimizer
    T_0 : int
        Steps of the first cycle.
    T_mult : int
        How many times longer each cycle is than the last one.
    eta_min : float
    last_epoch : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f}")
    0.50
    1.00
    0.50
    1.00
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:  # type: ignore[redundant-expr]
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:  # type: ignore[redundant-expr]
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next(self, rate: Any, base: Any) -> Any:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def step(self, epoch: float | None = None) -> None:
        """Set the next rates.

        Parameters
        ----------
        epoch : float, optional
            The step to go to, which may lie between two.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._switched("_get_lr_called_within_step"):
            self._set_rates(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        """Find the cycle of a step, and the place in it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            cycles = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycles - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycles

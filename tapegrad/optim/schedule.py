"""The base class of schedules of learning rates."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from tapegrad import modes
from tapegrad.optim.optimizer import Group, Optimizer
from tapegrad.tensor import Tensor


def check_optimizer(optimizer: object) -> None:
    """Raise TypeError if something is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def value_of(group: Group, name: str) -> Any:
    """Return an option of a group, which will not change with it."""
    value = group[name]
    return value.detach().clone() if isinstance(value, Tensor) else value


def set_value(group: Group, name: str, value: Any) -> None:
    """Set an option of a group; a tensor stays, and gets the value."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return one value for each group: those of a list, or the same one for all.

    Raises
    ------
    ValueError
        If a list has another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return list(value)


class LRScheduler:
    """Base class: sets the learning rate of each group when `step` is called, after the optimizer's.

    A subclass defines `get_lr`, which returns the rates for ``self.last_epoch``; those of this library define the next
    rate of a group from its last one, so that schedules can be chained.

    Parameters
    ----------
    optimizer : Optimizer
    last_epoch : int
        Of the steps before, where training is resumed.

    Attributes
    ----------
    base_lrs : list of float
        The rates of the groups before the first step.
    last_epoch : int
        How often `step` was called.

    Raises
    ------
    TypeError
        If it is no optimizer.
    KeyError
        If training is resumed and the optimizer does not know its initial rates.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Halved(tg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [0.5**self.last_epoch * lr for lr in self.base_lrs]
    >>> optimizer = tg.optim.SGD([tg.zeros(1)], lr=1.0)
    >>> schedule = Halved(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _step_count: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for place, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", value_of(group, "lr"))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{place}] when resuming scheduler with "
                    "last_epoch >= 0.\nLoad the state of the optimizer first, or leave last_epoch out."
                )
        self.base_lrs = self._of_groups("initial_lr")
        self.last_epoch = last_epoch
        optimizer._begin_schedule()
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._switched("_is_initial"):
            self.step()

    @contextlib.contextmanager
    def _switched(self, name: str) -> Iterator[None]:
        setattr(self, name, True)
        try:
            yield
        finally:
            setattr(self, name, False)

    def _of_groups(self, name: str) -> list[Any]:
        return [value_of(group, name) for group in self.optimizer.param_groups]

    def _set_rates(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = self._of_groups("lr")

    def get_last_lr(self) -> list[Any]:
        """Return the rates of the groups since the last step."""
        return self._last_lr

    def _check_call(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def get_lr(self) -> list[Any]:
        """Compute the rates of the groups; `step` calls it."""
        self._check_call()
        groups = self.optimizer.param_groups
        return [self._next(group["lr"], base) for group, base in zip(groups, self.base_lrs, strict=True)]

    def _next(self, rate: Any, base: Any) -> Any:
        """Return the rate of a group in `last_epoch`, from its last rate and the one in the begin."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def _closed(self, base: Any) -> Any:
        """Return the same from `last_epoch` alone; None if that is not known."""
        return None

    def step(self, epoch: int | None = None) -> None:
        """Set the next rates.

        Parameters
        ----------
        epoch : int, optional
            Deprecated: the step to go to.
        """
        modes.tell("unseen", "step() of a schedule")
        if self._step_count == 1:
            self.optimizer._check_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = [] if epoch is None else [self._closed(base) for base in self.base_lrs]
        with self._switched("_get_lr_called_within_step"):
            self._set_rates(closed if closed and None not in closed else self.get_lr())

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer; of functions, what objects that are called have."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        vars(self).update(state_dict)


def warn_of_epoch() -> None:
    """Warn of an argument `epoch`."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please "
        "use `scheduler.step()` to step the scheduler.",
        UserWarning,
        stacklevel=3,
    )


def state_of(function: Callable[..., Any] | None) -> dict[str, Any] | None:
    """Return the attributes of an object that is called; None for a plain function."""
    return None if function is None or isinstance(function, FunctionType) else dict(vars(function))

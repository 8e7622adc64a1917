"""Averages of the weights of a model over training, and the schedule that goes with them."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tapegrad.modes import no_grad
from tapegrad.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from tapegrad.nn.modules.module import Module
from tapegrad.ops.creation import tensor
from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.schedule import LRScheduler, for_groups
from tapegrad.tensor import Tensor

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function that averages with weights that fall exponentially with age.

    Parameters
    ----------
    decay : float
        What is left of the average after a step, 0 to 1.

    Raises
    ------
    ValueError
        If it is out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.optim.swa_utils.get_ema_avg_fn(0.75)(tg.tensor(4.0), tg.tensor(8.0), 1)
    tensor(5.)
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @no_grad()
    def average(mean: Tensor, current: Tensor, count: Any) -> Any:
        return decay * mean + (1 - decay) * current

    return average


def get_swa_avg_fn() -> Average:
    """Return the function that averages with equal weights.

    Examples
    --------
    >>> import tapegrad as tg
    >>> average = tg.optim.swa_utils.get_swa_avg_fn()
    >>> average(tg.tensor([1.0]), tg.tensor([4.0]), 2)  # the mean of two before, and a third
    tensor([2.])
    """

    @no_grad()
    def average(mean: Tensor, current: Tensor, count: Any) -> Any:
        return mean + (current - mean) / (count + 1)

    return average


def _for_all(average: Average) -> Averages:
    """Return a function that averages several tensors, in place."""

    @no_grad()
    def all_of_them(means: Sequence[Tensor], currents: Sequence[Tensor], count: Any) -> None:
        for mean, current in zip(means, currents, strict=True):
            mean.copy_(average(mean, current, count))

    return all_of_them


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return the function of `get_ema_avg_fn` for lists of tensors, in place.

    Examples
    --------
    >>> import tapegrad as tg
    >>> average = [tg.tensor([1.0])]
    >>> tg.optim.swa_utils.get_ema_multi_avg_fn(0.75)(average, [tg.tensor([3.0])], 1)
    >>> average
    [tensor([1.5000])]
    """
    return _for_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Return the function of `get_swa_avg_fn` for lists of tensors, in place.

    Examples
    --------
    >>> import tapegrad as tg
    >>> average = [tg.tensor([1.0])]
    >>> tg.optim.swa_utils.get_swa_multi_avg_fn()(average, [tg.tensor([4.0])], 2)
    >>> average
    [tensor([2.])]
    """
    return _for_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model had at each `update_parameters`.

    Parameters
    ----------
    model : Module
    device : device, optional
        Only the CPU.
    avg_fn : callable, optional
        ``avg_fn(average, current, count)`` returns the next average of a parameter; default that with equal weights.
    multi_avg_fn : callable, optional
        The same for lists of tensors, in place.
    use_buffers : bool
        Average the buffers as well; otherwise they are those of the model.

    Raises
    ------
    AssertionError
        If both functions are given.

    Notes
    -----
    P. Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).

    Examples
    --------
    >>> import tapegrad as tg
    >>> model = tg.nn.Linear(1, 1)
    >>> averaged = tg.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = tg.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Let the parameters of a model enter the averages; the first time they are copied."""
        means, currents = (
            [own.detach() for own in itertools.chain(one.parameters(), one.buffers() if self.use_buffers else ())]
            for one in (self.module, model)
        )
        count: Any = getattr(self, "n_averaged")  # noqa: B009  # a buffer
        if count == 0:
            for mean, current in zip(means, currents, strict=True):
                mean.copy_(current)
        else:
            one = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
            average = _for_all(one) if self.multi_avg_fn is None else self.multi_avg_fn
            average(means, currents, count)
        if not self.use_buffers:
            for own, current in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(current.detach())
        count += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running statistics of batch norms to the means over all batches.

    Parameters
    ----------
    loader : iterable
        Batches: tensors, or lists and tuples that begin with one.
    model : Module
    device : device, optional
        Only the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> net = tg.nn.BatchNorm1d(1)
    >>> tg.optim.swa_utils.update_bn([tg.tensor([[1.0], [3.0]]), tg.tensor([[5.0], [7.0]])], net)
    >>> net.running_mean
    tensor([4.])
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # each batch counts the same
    for batch in loader:
        first = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(first if device is None else first.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """A rate that goes to a fixed one, at which weights are averaged.

    Parameters
    ----------
    optimizer : Optimizer
    swa_lr : float, or list of float
        The rate to go to, for all groups or for each.
    anneal_epochs : int
        The steps until then.
    anneal_strategy : {"cos", "linear"}
    last_epoch : int

    Raises
    ------
    ValueError
        If `anneal_strategy` is something else, or `anneal_epochs` is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        count: Any = anneal_epochs
        if not isinstance(count, int) or count < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return how much of the way to the fixed rate is gone after a step."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[Any]:
        """Compute the rates of the groups; `step` calls it."""
        self._check_call()
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now, rates = self._share(step - 1), self._share(step), []
        for group in self.optimizer.param_groups:
            goal, lr = group["swa_lr"], group["lr"]
            first = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * now + first * (1 - now))
        return rates

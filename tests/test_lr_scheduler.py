"""Schedules of learning rates: the same rates as PyTorch's over 50 steps, states, warnings and errors."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tapegrad as tg

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


class Halving:
    """A function that is an object, with attributes."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, epoch: int) -> float:
        return self.base**epoch


Make = Callable[[Any, Any], Any]
#: Each makes a schedule, of the module of schedules and an optimizer.
SCHEDULES: dict[str, Make] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "LambdaLR of two": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.9**epoch, Halving(0.95)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9 + epoch / 1000),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 41], gamma=0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 9),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.9, 13),
    "LinearLR as it is": lambda s, o: s.LinearLR(o),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 30, 1.7),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 12, 0.01),
    "CosineAnnealingLR to 0": lambda s, o: s.CosineAnnealingLR(o, T_max=5),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.001),
    "CosineAnnealingWarmRestarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=5),
    "CyclicLR of two": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 4, 7, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "CyclicLR of a function": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, scale_fn=Halving(0.8), scale_mode="iterations"),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=60),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.2], epochs=6, steps_per_epoch=9, three_phase=True, anneal_strategy="linear", pct_start=0.25
    ),
    "OneCycleLR without momentum": lambda s, o: s.OneCycleLR(o, 0.5, 52, cycle_momentum=False, div_factor=7.0),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)], [5, 25]
    ),
    "SequentialLR of restarts": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.CosineAnnealingWarmRestarts(o, 6)], [4]
    ),
    "SequentialLR in another": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o), s.StepLR(o, 4)], [6]), s.ExponentialLR(o, 0.9)], milestones=[20]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 15)], optimizer=o
    ),
}  # fmt: skip


def _optimizer(lib: Any, name: str) -> Any:
    params = [lib.ones(1, requires_grad=True) for _ in range(2)]
    options = {"momentum": 0.7} if name == "SGD" else {}
    return getattr(lib.optim, name)([{"params": params[0]}, {"params": params[1], "lr": 0.3}], lr=0.1, **options)


def _options(optimizer: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


def _close(ours: Any, theirs: Any) -> None:
    """Compare nested containers, numbers up to rounding."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for name in theirs:
            _close(ours[name], theirs[name])
    elif isinstance(theirs, (list, tuple)):
        assert (type(ours), len(ours)) == (type(theirs), len(theirs))
        for one, other in zip(ours, theirs, strict=True):
            _close(one, other)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15)
    elif hasattr(theirs, "tolist"):
        assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-6)
    else:
        assert ours == theirs


def _both(make: Make, optimizer: str) -> list[tuple[Any, Any]]:
    optimizers = [_optimizer(lib, optimizer) for lib in (tg, torch)]
    return [(o, make(lib.optim.lr_scheduler, o)) for lib, o in zip((tg, torch), optimizers, strict=True)]


#: What PyTorch says too, of a schedule of schedules that begins anew.
early = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")


@early
@needs_torch
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_50_steps_as_torch(name: str, optimizer: str) -> None:
    both = _both(SCHEDULES[name], optimizer)
    for _ in range(50):
        _close(*[_options(o) for o, _ in both])
        _close(*[scheduler.get_last_lr() for _, scheduler in both])
        for o, scheduler in both:
            o.step()
            scheduler.step()
    ours, theirs = (scheduler.state_dict() for _, scheduler in both)
    theirs.pop("_wrapped_by_lr_sched", None)
    _close(ours, theirs)


@needs_torch
@pytest.mark.parametrize("name", ["LambdaLR", "StepLR", "ExponentialLR", "LinearLR", "CosineAnnealingLR"])
def test_a_rate_that_is_a_tensor_stays_one(name: str) -> None:
    optimizers = []
    for lib in (tg, torch):
        o = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=lib.tensor(0.5, dtype=lib.float64))
        optimizers.append((o, SCHEDULES[name](lib.optim.lr_scheduler, o), o.param_groups[0]["lr"]))
    for _ in range(8):
        for o, scheduler, rate in optimizers:
            o.step()
            scheduler.step()
            assert o.param_groups[0]["lr"] is rate
        assert optimizers[0][2].item() == pytest.approx(optimizers[1][2].item(), rel=1e-12)


@needs_torch
@pytest.mark.parametrize("options", [
    {}, {"mode": "max", "patience": 2}, {"factor": 0.5, "patience": 0, "cooldown": 2, "min_lr": [0.05, 0.01]},
    {"threshold": 0.3, "patience": 1, "threshold_mode": "abs"}, {"mode": "max", "threshold_mode": "abs", "patience": 1},
    {"min_lr": 0.02, "patience": 1, "eps": 0.01},
])  # fmt: skip
def test_plateau(options: dict[str, Any]) -> None:
    both = _both(lambda s, o: s.ReduceLROnPlateau(o, **options), "SGD")
    losses = [1.0, 0.9, 0.9, 0.85, 0.849999, 0.84, 1.2, float("nan"), 0.5, 0.6, 0.7, *[0.55] * 40]
    for loss in losses:
        for _, scheduler in both:
            scheduler.step(loss)
        _close(*[scheduler.get_last_lr() for _, scheduler in both])
    _close(*[scheduler.state_dict() for _, scheduler in both])
    both[0][1].step(tg.tensor(3.0))  # a loss without gradient


@needs_torch
@pytest.mark.parametrize("name", ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
                                  "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "LambdaLR"])  # fmt: skip
def test_an_epoch_is_gone_to(name: str) -> None:
    both = _both(SCHEDULES[name], "SGD")
    for epoch in (3, 20, 5):
        for o, scheduler in both:
            o.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(epoch)
        _close(*[scheduler.get_last_lr() for _, scheduler in both])


@needs_torch
@pytest.mark.parametrize("name", ["StepLR", "LinearLR", "CosineAnnealingLR", "CyclicLR", "OneCycleLR"])
def test_resumed(name: str) -> None:
    """As where only the optimizer was saved."""

    def make(s: Any, o: Any) -> Any:
        SCHEDULES[name](s, o)
        return {
            "StepLR": lambda: s.StepLR(o, 3, last_epoch=8),
            "LinearLR": lambda: s.LinearLR(o, last_epoch=2),
            "CosineAnnealingLR": lambda: s.CosineAnnealingLR(o, 12, last_epoch=7),
            "CyclicLR": lambda: s.CyclicLR(o, 0.01, 0.1, 5, last_epoch=7),
            "OneCycleLR": lambda: s.OneCycleLR(o, 0.5, 60, last_epoch=7),
        }[name]()

    both = _both(make, "SGD")
    for _ in range(10):
        _close(*[_options(o) for o, _ in both])
        for o, scheduler in both:
            o.step()
            scheduler.step()


@early
@pytest.mark.parametrize("name", [name for name in SCHEDULES if "LambdaLR" not in name])
def test_a_loaded_state_goes_on(name: str) -> None:
    def stepped(count: int, load: Any = None) -> tuple[Any, Any]:
        o = _optimizer(tg, "SGD")
        scheduler = SCHEDULES[name](tg.optim.lr_scheduler, o)
        if load is not None:
            scheduler.load_state_dict(load[0])
            o.load_state_dict(load[1])
        for _ in range(count):
            o.step()
            scheduler.step()
        return scheduler, o

    half, o = stepped(11)
    state = half.state_dict()
    if "function" not in name and "Multiplicative" not in name:
        state = pickle.loads(pickle.dumps(state))
    assert stepped(12, (state, o.state_dict()))[0].get_last_lr() == stepped(23)[0].get_last_lr()


def test_order_of_steps() -> None:
    def new() -> tuple[Any, Any]:
        o = _optimizer(tg, "SGD")
        o.step()  # before there is a schedule
        return o, tg.optim.lr_scheduler.StepLR(o, 2)

    o, scheduler = new()
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    o, scheduler = new()
    o.step = lambda: None
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden after learning rate scheduler"):
        scheduler.step()
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        scheduler.get_lr()
    with pytest.warns(UserWarning, match="The epoch parameter in"):
        scheduler.step(3)


def test_a_schedule_of_a_user() -> None:
    class Falling(tg.optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [base / (self.last_epoch + 1) for base in self.base_lrs]

    o = _optimizer(tg, "SGD")
    scheduler = Falling(o)
    for _ in range(3):
        o.step()
        scheduler.step()
    assert scheduler.get_last_lr() == [0.1 / 4, 0.3 / 4]
    with pytest.raises(NotImplementedError, match="must define get_lr"):
        tg.optim.lr_scheduler.LRScheduler(o)


#: What raises, of the module of schedules and an optimizer.
ERRORS: list[Make] = [
    lambda s, o: s.StepLR(SimpleNamespace(param_groups=[]), 3),
    lambda s, o: s.StepLR(o, 3, last_epoch=4),
    lambda s, o: s.LambdaLR(o, [abs]),
    lambda s, o: s.MultiplicativeLR(o, 0.5),
    lambda s, o: s.ConstantLR(o, 1.5),
    lambda s, o: s.LinearLR(o, 0.0),
    lambda s, o: s.LinearLR(o, 0.5, 1.5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 1, "0"),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3).step(-1),
    lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    lambda s, o: s.CyclicLR(object(), 0.1, 0.2),
    lambda s, o: s.OneCycleLR(o, 0.1),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-3),
    lambda s, o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="square"),
    lambda s, o: _run_out(s.OneCycleLR(o, 0.1, 3)),
    lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    lambda s, o: s.ReduceLROnPlateau(o, "low"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="low"),
    lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    lambda s, o: s.SequentialLR(o, [], []),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 2)], [3]),
    lambda s, o: s.SequentialLR(o, [object()], []),
    lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    lambda s, o: s.ChainedScheduler([]),
    lambda s, o: s.ChainedScheduler([s.StepLR(o, 2), s.ReduceLROnPlateau(o)]),
]  # fmt: skip


def _run_out(scheduler: Any) -> None:
    for _ in range(5):
        scheduler.step()


@early
@needs_torch
@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_as_torch(number: int) -> None:
    errors = []
    for lib in (tg, torch):
        optimizer = _optimizer(lib, "SGD")
        with pytest.raises(Exception) as info:  # noqa: PT011
            ERRORS[number](lib.optim.lr_scheduler, optimizer)
        errors.append(info.value)
    ours, theirs = errors
    assert type(ours) is type(theirs)
    assert str(theirs).split("\\n")[0].split(" at 0x")[0] in str(ours)

"""Programs that train, written once: the same losses with tapegrad and with PyTorch, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.utils.data

try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="torch is not installed")


def _train(lib: Any, optimizer: str, options: dict[str, Any], scheduler: Any, dtype: str, workers: int) -> list[float]:
    """A network of two layers on batches, with regularised weights in a group of their own; stopped and resumed."""
    device = lib.device("cuda" if lib.cuda.is_available() else "cpu")
    kind = getattr(lib, dtype)
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((40, 3)), rng.integers(0, 4, 40)
    dataset = lib.utils.data.TensorDataset(lib.tensor(x, dtype=kind, device=device), lib.tensor(y).to(device))
    train, rest = (lib.utils.data.Subset(dataset, part) for part in (range(32), range(32, 40)))
    loader = lib.utils.data.DataLoader(train, batch_size=8, num_workers=workers if lib is tg else 0)
    starts = [rng.standard_normal(shape) * 0.5 for shape in ((3, 8), (8,), (8, 4), (4,))]
    params = [lib.tensor(start, dtype=kind, requires_grad=True) for start in starts]

    def loss_of(inputs: Any, targets: Any) -> Any:
        hidden = lib.tanh(inputs @ params[0] + params[1])
        return lib.nn.functional.cross_entropy(hidden @ params[2] + params[3], targets)

    def new() -> tuple[Any, Any]:
        groups = [{"params": params[::2]}, {"params": params[1::2], "lr": options["lr"] / 2}]
        if optimizer == "LBFGS":
            groups = params
        made = getattr(lib.optim, optimizer)(groups, **options)
        return made, scheduler(lib.optim.lr_scheduler, made)

    losses = []

    def step(stepper: Any, inputs: Any, targets: Any) -> None:
        def closure() -> Any:
            stepper.zero_grad()
            loss = loss_of(inputs.to(device, non_blocking=True), targets)
            loss.backward()
            losses.append(loss.item())
            return loss

        stepper.step(closure)

    stepper, schedule = new()
    for epoch in range(4):
        if epoch == 2:
            states = stepper.state_dict(), schedule.state_dict()
            stepper, schedule = new()
            schedule.load_state_dict(states[1])
            stepper.load_state_dict(states[0])
        for inputs, targets in loader:
            step(stepper, inputs, targets)
        schedule.step()
        with lib.no_grad():
            losses += [loss_of(*batch).cpu().item() for batch in lib.utils.data.DataLoader(rest, batch_size=8)]
    return losses


@pytest.mark.parametrize(("dtype", "workers", "scheduler"), [
    ("float64", 0, lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.5, total_iters=2), s.ExponentialLR(o, 0.5)], [2])),
    ("float32", 2, lambda s, o: s.CosineAnnealingLR(o, T_max=4, eta_min=0.001)),
])  # fmt: skip
@pytest.mark.parametrize(("optimizer", "options"), [
    ("SGD", {"lr": 0.5, "momentum": 0.9, "nesterov": True}), ("Adam", {"lr": 0.05, "amsgrad": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}), ("NAdam", {"lr": 0.05}), ("RAdam", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05}), ("Adagrad", {"lr": 0.1}), ("Adadelta", {"lr": 1.0}),
    ("RMSprop", {"lr": 0.02, "momentum": 0.5, "centered": True}), ("Rprop", {"lr": 0.02}),
    ("ASGD", {"lr": 0.1, "t0": 3}),
    ("LBFGS", {"lr": 1.0, "max_iter": 3, "line_search_fn": "strong_wolfe"}),
])  # fmt: skip
def test_losses_agree(optimizer: str, options: dict[str, Any], dtype: str, workers: int, scheduler: Any) -> None:
    losses = [_train(lib, optimizer, options, scheduler, dtype, workers) for lib in (tg, torch)]
    assert min(losses[0]) < losses[0][0]
    shown = 30 if optimizer == "LBFGS" else None  # then rounding leads it to other points
    rtol = 5e-4 if dtype == "float32" else 1e-7
    np.testing.assert_allclose(losses[0][:shown], losses[1][:shown], rtol=rtol)

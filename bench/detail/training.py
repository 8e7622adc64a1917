"""Training steps of small networks, in eager and compiled, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.table import Table, ratio
from bench.timing import Run, interleaved
from bench.tools import installed
from tapegrad.data import load_digits

#: A network, its loss, its optimizer's name, and a batch.
Network = tuple[Any, Callable[..., Any], str, tuple[np.ndarray, ...]]
Step = Callable[[], Any]


def digits(lib: Any, rng: np.random.Generator, dtype: str) -> Network:
    """A hidden layer, for images of 8 x 8 digits."""
    nn, images, labels = lib.nn, *load_digits()
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return model, nn.functional.cross_entropy, "SGD", (images[:32].reshape(32, 64).astype(dtype), labels[:32])


def convolutions(lib: Any, rng: np.random.Generator, dtype: str) -> Network:
    """Convolution, batch norm, pooling and a linear layer, for the same images."""
    nn, images, labels = lib.nn, *load_digits()
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )
    return model, nn.functional.cross_entropy, "Adam", (images[:16].reshape(16, 1, 8, 8).astype(dtype), labels[:16])


def lstm(lib: Any, rng: np.random.Generator, dtype: str) -> Network:
    """An LSTM of 16 units over 20 steps, whose last state is read out."""
    nn = lib.nn

    class Last(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.out = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 1)

        def forward(self, x: Any) -> Any:
            return self.out(self.cells(x)[0][:, -1])

    arrays = rng.standard_normal((8, 20, 4)).astype(dtype), rng.standard_normal((8, 1)).astype(dtype)
    return Last(), nn.functional.mse_loss, "Adam", arrays


def transformer(lib: Any, rng: np.random.Generator, dtype: str) -> Network:
    """An embedding, a layer of attention with 2 heads, and a linear layer, for sequences of 10 of 20 tokens."""
    nn = lib.nn

    class Tagger(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 16)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
            self.out = nn.Linear(16, 20)

        def forward(self, x: Any) -> Any:
            return self.out(self.layer(self.embedding(x))).reshape(-1, 20)

    tokens = rng.integers(0, 20, (4, 10))
    return Tagger(), nn.functional.cross_entropy, "AdamW", (tokens, np.roll(tokens, -1, 1).reshape(-1))


NETWORKS: dict[str, Callable[[Any, np.random.Generator, str], Network]] = {
    own.__name__: own for own in (digits, convolutions, lstm, transformer)
}


def step_of(tool: str, name: str, dtype: str = "float32", is_compiled: bool = False) -> Step:
    """Return a training step of a network, which returns its loss; weights are the same for all tools."""
    lib: Any = __import__(tool)
    before = lib.get_default_dtype()
    lib.set_default_dtype(getattr(lib, dtype))
    try:
        rng = np.random.default_rng(0)
        model, loss_of, optimizer_name, arrays = NETWORKS[name](lib, rng, dtype)
        with lib.no_grad():
            for param in model.parameters():
                param.copy_(lib.tensor(0.2 * rng.standard_normal(tuple(param.shape))))
    finally:
        lib.set_default_dtype(before)
    inputs, targets = map(lib.tensor, arrays)
    optimizer = getattr(lib.optim, optimizer_name)(model.parameters(), lr=0.01)

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    call = lib.compile(step) if is_compiled else step
    return lambda: call(inputs, targets)


def tables(rounds: int, quick: bool) -> list[Table]:
    """A training step of each small network: forward, backward and update."""
    tools = [tool for tool in ("tapegrad", "torch") if installed(tool)]
    columns = ["eager / compiled", *["torch / compiled"] * (len(tools) == 2)]
    title = "training: µs a step of small networks in single precision, medians"
    table = Table(title, ("network", "compiled", "eager", *tools[1:], *columns))
    for name in list(NETWORKS)[:1] if quick else NETWORKS:
        runs: dict[str, Run] = {
            "compiled": step_of("tapegrad", name, is_compiled=True),
            "eager": step_of("tapegrad", name),
        }
        if "torch" in tools:
            runs["torch"] = step_of("torch", name)
        for run in runs.values():
            run()  # the first step of an optimizer makes its states
        times = interleaved(runs, rounds, at_least=0.001)
        cells = [f"{np.median(own) * 1e6:.1f}" for own in times.values()]
        cells += [ratio(float(np.median(times[other] / times["compiled"]))) for other in list(times)[1:]]
        table.rows.append((name, *cells))
    return [table]

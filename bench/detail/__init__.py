"""The figures of tapegrad's parts, beside PyTorch's where it is installed."""

from __future__ import annotations

from bench.detail import functions, memory, optimizers, recording, replay, scipy, startup, sweep, training, transforms

SECTIONS = {
    "recording": recording.tables,
    "sweep": sweep.tables,
    "functions": functions.tables,
    "transforms": transforms.tables,
    "optimizers": optimizers.tables,
    "training": training.tables,
    "replay": replay.tables,
    "scipy": scipy.tables,
    "startup": startup.tables,
    "memory": memory.tables,
}

"""Steps of optimizers, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.table import Table, ratio
from bench.timing import Run, interleaved
from bench.tools import installed

#: (parameters, their shape)
SIZES, QUICK_SIZES = ((10, (10, 10)), (10, (100, 100)), (1, (1000, 1000))), ((2, (3, 3)),)
NAMES = (
    "SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD",
)  # fmt: skip


def _step(tool: str, name: str, arrays: list[np.ndarray]) -> Run:
    lib: Any = __import__(tool)
    params = []
    for array in arrays:
        param = lib.tensor(array, requires_grad=True)
        param.grad = lib.tensor(array)
        params.append(param)
    step: Run = getattr(lib.optim, name)(params).step
    step()
    return step


def tables(rounds: int, quick: bool) -> list[Table]:
    """A step of each optimizer, with its default options."""
    tools = [tool for tool in ("tapegrad", "torch") if installed(tool)]
    found = []
    for count, shape in QUICK_SIZES if quick else SIZES:
        title = f"optimizers: µs a step over {count} x {list(shape)} in double precision, medians"
        table = Table(title, ("optimizer", *tools, *["torch / tapegrad"] * (len(tools) == 2)))
        arrays = list(np.random.default_rng(0).standard_normal((count, *shape)))
        for name in NAMES[:2] if quick else NAMES:
            times = interleaved({tool: _step(tool, name, arrays) for tool in tools}, rounds, at_least=0.001)
            cells = [f"{np.median(times[tool]) * 1e6:.1f}" for tool in tools]
            if len(tools) == 2:
                cells.append(ratio(float(np.median(times["torch"] / times["tapegrad"]))))
            table.rows.append((name, *cells))
        found.append(table)
    return found

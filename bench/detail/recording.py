"""Recording: what one small operation costs above NumPy's call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from bench.table import Table, ratio, seconds
from bench.timing import interleaved
from bench.tools import installed

SHAPES = {"0-d": (), "100 elements": (100,)}


def _operands(tool: str, shape: tuple[int, ...]) -> list[Any]:
    """Return two operands, results of operations as most are, that want a gradient where a tool gives one."""
    arrays = [np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape)) for seed in (0, 1)]
    if tool == "numpy":
        return [array[()] for array in arrays]
    if tool == "torch":
        import torch

        return [torch.from_numpy(array).requires_grad_() * 1.0 for array in arrays]
    if tool == "torch, no_grad":
        import torch

        return [torch.from_numpy(array) for array in arrays]
    import tapegrad as tg

    return [tg.tensor(array, requires_grad=True) * 1.0 for array in arrays]


def _mul(x: Any, y: Any, count: int) -> None:
    for _ in repeat(None, count):
        x * y


def _add(x: Any, y: Any, count: int) -> None:
    for _ in repeat(None, count):
        x + y


def _mul_number(x: Any, y: Any, count: int) -> None:
    for _ in repeat(None, count):
        x * 1.5


def _neg(x: Any, y: Any, count: int) -> None:
    for _ in repeat(None, count):
        -x  # noqa: B018 - its time is wanted


LOOPS: dict[str, Callable[[Any, Any, int], None]] = {
    "x * y": _mul,
    "x + y": _add,
    "x * 1.5": _mul_number,
    "-x": _neg,
}


def tables(rounds: int, quick: bool) -> list[Table]:
    """One operation recorded, above NumPy's bare call."""
    count = 20 if quick else 1000
    tools = ["numpy", "tapegrad"]
    if installed("torch"):
        tools += ["torch", "torch, no_grad"]
    columns = ("operation", *tools, "tapegrad - numpy", "torch - numpy", "torch / tapegrad")
    table = Table("recording: one operation, float64; medians, and minima in brackets", columns)
    for shape_name, shape in SHAPES.items():
        operands = {tool: _operands(tool, shape) for tool in tools}
        for name, loop in LOOPS.items():
            runs = {tool: _partial(loop, operands[tool], count) for tool in tools}
            times = {tool: own / count for tool, own in interleaved(runs, rounds, 0.001).items()}
            row = [f"{name}, {shape_name}", *(_both(own) for own in times.values())]
            row.append(_both(times["tapegrad"], times["numpy"]))
            if "torch" in times:
                row.append(_both(times["torch"], times["numpy"]))
                row.append(ratio(float(np.median(times["torch"] / times["tapegrad"]))))
            else:
                row += ["-", "-"]
            table.rows.append(row)
    table.notes.append("Each result dies at once. All times hold 10 ns of the loop. NumPy's 0-d operands are scalars.")
    return [table]


def _partial(loop: Callable[[Any, Any, int], None], operands: list[Any], count: int) -> Callable[[], None]:
    x, y = operands
    return lambda: loop(x, y, count)


def _both(own: np.ndarray, bare: np.ndarray | None = None) -> str:
    if bare is None:
        return f"{seconds(float(np.median(own)))} ({seconds(own.min())})"
    return f"{seconds(float(np.median(own - bare)))} ({seconds(own.min() - bare.min())})"

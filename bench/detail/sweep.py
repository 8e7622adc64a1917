"""The sweep: what an entry costs forward, backward and when it dies, from chains of two lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from bench.detail.recording import SHAPES
from bench.table import Table, ratio, seconds
from bench.timing import quiet_collector
from bench.tools import installed

PARTS = ("find", "run", "close")  # methods of `tapegrad.sweep.sweep.Sweep`; close frees the handles
PHASES = ("forward", "backward", "drop")


def _with_constant(x: Any, c: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * c
    return y


def _with_leaf(x: Any, c: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return y


CHAINS: dict[str, Callable[[Any, Any, int], Any]] = {"y = y * c": _with_constant, "y = y * x": _with_leaf}


def _operands(tool: str, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return a leaf, a constant, and the seed of a result."""
    ones = [np.ones(shape) for _ in range(3)]
    if tool == "torch":
        import torch

        make: Callable[[np.ndarray], Any] = torch.from_numpy
    else:
        import tapegrad as tg

        make = tg.tensor
    x, c, seed = map(make, ones)
    return x.requires_grad_(), c, seed


def _times(chain: Callable[[Any, Any, int], Any], operands: tuple[Any, Any, Any], length: int) -> list[float]:
    """Return the seconds of forward, of backward, and of dropping the result."""
    x, c, seed = operands
    x.grad = None
    start = perf_counter()
    y = chain(x, c, length)
    computed = perf_counter()
    y.backward(seed)
    swept = perf_counter()
    del y
    return [computed - start, swept - computed, perf_counter() - swept]


def _drop(chain: Callable[[Any, Any, int], Any], operands: tuple[Any, Any, Any], length: int) -> float:
    """Return the seconds of dropping a result that no backward pass went through."""
    y = chain(*operands[:2], length)
    start = perf_counter()
    del y
    return perf_counter() - start


@contextmanager
def _parts_timed() -> Iterator[dict[str, float]]:
    """Add up the seconds that tapegrad spends in each part of a sweep."""
    from tapegrad.sweep.sweep import Sweep

    spent = dict.fromkeys(PARTS, 0.0)
    originals = {part: getattr(Sweep, part) for part in PARTS}

    def timed(part: str) -> Callable[..., Any]:
        original = originals[part]

        def call(*arguments: Any) -> Any:
            start = perf_counter()
            try:
                return original(*arguments)
            finally:
                spent[part] += perf_counter() - start

        return call

    for part in PARTS:
        setattr(Sweep, part, timed(part))
    try:
        yield spent
    finally:
        for part, original in originals.items():
            setattr(Sweep, part, original)


def _measure(
    tools: list[str],
    chain: Callable[[Any, Any, int], Any],
    shape: tuple[int, ...],
    lengths: tuple[int, int],
    rounds: int,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return each tool's seconds, (rounds, lengths, phases and a drop without backward), and the parts'."""
    operands = {tool: _operands(tool, shape) for tool in tools}
    times = {tool: np.empty((rounds, 2, len(PHASES) + 1)) for tool in tools}
    parts = np.empty((rounds, 2, len(PARTS)))
    for tool in tools:
        _times(chain, operands[tool], lengths[1])  # whatever is loaded, compiled or made larger the first time
    with quiet_collector():
        for number in range(rounds):
            for which, length in enumerate(lengths):
                for tool in tools if number % 2 else reversed(tools):
                    times[tool][number, which, :-1] = _times(chain, operands[tool], length)
                    times[tool][number, which, -1] = _drop(chain, operands[tool], length)
                with _parts_timed() as spent:
                    _times(chain, operands["tapegrad"], length)
                parts[number, which] = list(spent.values())
    return times, parts


def _slopes(times: np.ndarray, lengths: tuple[int, int]) -> list[str]:
    """Write the seconds that one more entry costs: by the medians, and by the minima in brackets."""
    more = lengths[1] - lengths[0]
    medians = np.median(times[:, 1] - times[:, 0], axis=0) / more
    minima = (times[:, 1].min(axis=0) - times[:, 0].min(axis=0)) / more
    return [f"{seconds(m)} ({seconds(n)})" for m, n in zip(medians, minima, strict=True)]


def tables(rounds: int, quick: bool) -> list[Table]:
    """An entry's share of forward, backward and drop, and what a backward pass costs however short."""
    tools = ["tapegrad", "torch"] if installed("torch") else ["tapegrad"]
    lengths = (20, 60) if quick else (2000, 6000)
    slopes = Table(
        f"sweep: what one more entry costs, float64, from {lengths[0]} and {lengths[1]}; medians (minima)",
        ("chain", "tool", *PHASES, "drop, no backward", "backward, ratio"),
    )
    split = Table("sweep: the parts of tapegrad's backward, for one more entry; medians (minima)", ("chain", *PARTS))
    fixed = Table(
        "sweep: backward() over a single entry, y.backward(seed); medians (minima)",
        ("chain", *tools, *(f"tapegrad: {part}" for part in PARTS)),
    )
    for chain_name, chain in CHAINS.items():
        for shape_name, shape in SHAPES.items():
            name = f"{chain_name}, {shape_name}"
            times, parts = _measure(tools, chain, shape, lengths, rounds)
            reference = np.median(times["tapegrad"][:, 1, 1] - times["tapegrad"][:, 0, 1])
            for tool in tools:
                own = np.median(times[tool][:, 1, 1] - times[tool][:, 0, 1])
                against = ratio(float(own / reference)) if reference > 0 else "-"
                slopes.rows.append((name, tool, *_slopes(times[tool], lengths), against))
            split.rows.append((name, *_slopes(parts, lengths)))
            times, parts = _measure(tools, chain, shape, (1, 1), 20 * rounds)
            cells = [times[tool][:, :, 1] for tool in tools] + [parts[:, :, number] for number in range(len(PARTS))]
            fixed.rows.append((name, *(f"{seconds(float(np.median(one)))} ({seconds(one.min())})" for one in cells)))
    slopes.notes.append("drop: of the result, after backward and without it. A user pays forward + backward + drop.")
    split.notes.append("Measured in runs of their own, with a clock around each part.")
    return [slopes, split, fixed]

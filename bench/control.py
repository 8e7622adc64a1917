"""The control: a fixed piece of work that takes its turn with the tools, so that a noisy run is recognised.

It is Python alone, NumPy on little, and NumPy on more than a core's caches hold. Nothing of any tool is in it. If its
time varies, the machine was busy with something else, or changed its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

NAME = "control"
SPREAD = 0.10  # of the quartiles, relative to the median
DRIFT = 0.15  # of the median, relative to the least median of the run


def make() -> Callable[[], Any]:
    """Return the work, about 1 ms of it."""
    small, large, out = np.linspace(0.0, 1.0, 100), np.ones(500_000), np.empty(500_000)

    def run() -> Any:
        total = 0
        for number in range(10_000):
            total += number & 7
        x = small
        for _ in range(500):
            x = x * small
        np.add(large, 1.0, out=out)
        return total, x

    return run


def noise(times: dict[str, float], least: float) -> str | None:
    """Return what is wrong with the control's times of a problem; `least` is its least median of all problems."""
    spread = (times["high"] - times["low"]) / times["median"]
    drift = times["median"] / least - 1.0
    found = []
    if spread > SPREAD:
        found.append(f"its quartiles are {spread:.0%} apart")
    if drift > DRIFT:
        found.append(f"it took {drift:.0%} longer than at best in this run")
    return " and ".join(found) or None


def verdict(controls: Iterable[tuple[str, dict[str, float]]]) -> tuple[bool, str]:
    """Return whether a run was quiet, and a sentence on it, from the control's times beside each problem."""
    beside = dict(controls)
    least = min(times["median"] for times in beside.values())
    noisy = {name: found for name, times in beside.items() if (found := noise(times, least))}
    if not noisy:
        return True, f"quiet: the control varied by less than {SPREAD:.0%} within and {DRIFT:.0%} between problems"
    name, found = next(iter(noisy.items()))
    return False, (
        f"NOISY beside {len(noisy)} of {len(beside)} problems: {', '.join(noisy)}. Beside {name}, the control says: "
        f"{found}. Repeat these on an idle machine"
    )

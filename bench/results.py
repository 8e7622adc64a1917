"""The results of a run, as they stand in its JSON file, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import numpy as np

from bench import control
from bench.speed import REFERENCE, Record

AGAINST = "torch"


@dataclass
class Speed:
    """What was found with a number of threads: the records of `bench.speed`, one a problem."""

    threads: int
    problems: list[Record] = field(default_factory=list)

    def ratios(self, tool: str) -> dict[str, Record]:
        """Return a tool's time over tapegrad's, by problem."""
        found = {own["problem"]: own["tools"].get(tool, {}).get("ratio") for own in self.problems}
        return {problem: ratio for problem, ratio in found.items() if ratio is not None}

    def mean_ratio(self, tool: str) -> float | None:
        """Return the geometric mean of a tool's time over tapegrad's, over the problems that both have."""
        medians = [ratio["median"] for ratio in self.ratios(tool).values()]
        return float(np.exp(np.mean(np.log(medians)))) if medians else None

    def tools(self) -> list[str]:
        """Return the tools that were timed on some problem, in the order of `bench.tools.TOOLS`."""
        from bench.tools import TOOLS

        return [name for name in TOOLS if any(name in own["tools"] for own in self.problems)]

    def controls(self) -> tuple[bool, str]:
        """Return whether the machine was quiet, and a sentence on it."""
        return control.verdict((own["problem"], own["control"]) for own in self.problems)


@dataclass
class Results:
    """All that a run found."""

    facts: dict[str, str]
    speed: list[Speed] = field(default_factory=list)
    memory: list[Record] = field(default_factory=list)  # `bench.memory`: problem, tool, peak
    start: list[Record] = field(default_factory=list)  # `bench.start`: tool, cold, warm, imported
    not_installed: list[str] = field(default_factory=list)

    def reasons(self, kind: str) -> Iterator[tuple[str, str, str]]:
        """Yield problem, tool and reason of what was `left_out` or `wrong`, once for all numbers of threads."""
        seen = set()
        for one in self.speed:
            for own in one.problems:
                for tool, reason in own[kind].items():
                    if (own["problem"], tool) not in seen:
                        seen.add((own["problem"], tool))
                        yield own["problem"], tool, reason

    def as_dict(self) -> Record:
        """Return what the JSON file holds: these fields, and the geometric means."""
        found = asdict(self)
        for own, one in zip(found["speed"], self.speed, strict=True):
            own["geometric_means"] = {tool: one.mean_ratio(tool) for tool in one.tools() if tool != REFERENCE}
            own["quiet"], own["verdict"] = one.controls()
        return found

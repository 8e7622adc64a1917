"""The problems, the same for every tool: each is described once, in the file of its kind."""

from __future__ import annotations

from bench.problems import (
    attention,
    chains,
    convolution,
    elementwise,
    matrices,
    networks,
    recurrent,
    rosenbrock,
    statistics,
)
from bench.problems.problem import Arrays, Data, Problem

__all__ = ["PROBLEMS", "Arrays", "Data", "Problem"]

# From what a tool's overhead decides to what arithmetic decides.
_FILES = (chains, networks, rosenbrock, recurrent, statistics, attention, convolution, elementwise, matrices)
PROBLEMS = {problem.name: problem for file in _FILES for problem in file.PROBLEMS}

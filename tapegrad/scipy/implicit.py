"""Derivatives of what a solver has found, by the implicit function theorem: see `tapegrad.func.custom_root`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.func import custom_root, jacrev
from tapegrad.linalg import solve
from tapegrad.ops.creation import as_tensor
from tapegrad.scipy.problem import Problem
from tapegrad.tensor import Tensor

__all__ = ["solution"]


def solution(problem: Problem, condition: Callable[..., Any], x: np.ndarray, free: np.ndarray | None = None) -> Tensor:
    """Return a solution as a tensor that depends on the further arguments of a problem.

    Parameters
    ----------
    problem : Problem
    condition : callable
        Of the vector and the arguments: tensors that are zero at the solution, as many as there are unknowns.
    x : numpy.ndarray
        The solution.
    free : numpy.ndarray, optional
        Which unknowns depend on the arguments; default all.
    """
    places = np.arange(x.size) if free is None else np.flatnonzero(free)
    found = as_tensor(x)

    def whole(unknowns: Tensor) -> Tensor:
        filled: Tensor = unknowns if free is None else found.index_put((as_tensor(places),), unknowns)
        return filled

    def equations(unknowns: Tensor) -> Tensor:
        result: Tensor = condition(whole(unknowns), *problem.tensors)[places]
        return result

    def solved(linear: Callable[..., Any], y: Tensor) -> Tensor:
        return solve(jacrev(linear)(y), y)

    return whole(custom_root(equations, found[places], lambda _, guess: guess, solved))

"""Derivatives of what a solver has found, by the implicit function theorem.

If g(x, p) = 0 says that x is the solution for p, then dx = -(dg/dx)^-1 (dg/dp) dp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.autograd.function import Function
from tapegrad.func import jacrev
from tapegrad.linalg import solve
from tapegrad.modes import enable_grad, is_grad_enabled
from tapegrad.ops.creation import as_tensor
from tapegrad.scipy.problem import Problem
from tapegrad.tensor import Tensor

__all__ = ["solution"]

Condition = Callable[..., Any]


def solution(problem: Problem, condition: Condition, x: np.ndarray, free: np.ndarray | None = None) -> Tensor:
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
    free = np.arange(x.size) if free is None else np.flatnonzero(free)
    places = [place for place, own in enumerate(problem.tensors) if isinstance(own, Tensor) and own.requires_grad]

    def of_wanted(x: Any, *wanted: Tensor) -> Any:
        values = list(problem.tensors)
        for place, value in zip(places, wanted, strict=True):
            values[place] = value
        return condition(x, *values)

    found: Tensor = _Solution.apply(of_wanted, free, x, *[problem.tensors[place] for place in places])
    return found


class _Solution(Function):
    """A solution; its derivatives are differentiable, as it is itself an operand of them."""

    @staticmethod
    def forward(ctx: Any, condition: Condition, free: np.ndarray, x: np.ndarray, *wanted: Tensor) -> Tensor:
        found = as_tensor(x.copy())
        ctx.condition, ctx.free = condition, free
        ctx.save_for_backward(found, *wanted)
        return found

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Any, ...]:
        x, *wanted = ctx.saved_tensors
        free = ctx.free
        if not is_grad_enabled():  # then nobody goes back through the solution again
            x, wanted = x.detach(), [own.detach().requires_grad_() for own in wanted]
        with enable_grad():
            wanted = [own.view_as(own) for own in wanted]
            slopes = jacrev(ctx.condition)(x, *wanted)[free][:, free]
            weights = solve(slopes.mT, ct[free])
            residual = ctx.condition(x, *wanted)
            if not residual.requires_grad:
                return (None, None, None, *[None] * len(wanted))
            found = grad(residual[free], wanted, -weights, create_graph=True, allow_unused=True)
        return (None, None, None, *found)

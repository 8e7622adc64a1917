"""Constraints of `minimize`, with exact Jacobians, and Hessians for the method that uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy.optimize import BFGS, HessianUpdateStrategy, NonlinearConstraint

from tapegrad.func import hessian
from tapegrad.scipy.packing import Packing
from tapegrad.scipy.problem import Problem, as_tuple

__all__ = ["converted"]

_API: Final = "minimize()"
_UPPER: Final = {"eq": 0.0, "ineq": np.inf}


def converted(constraint: Any, packing: Packing, is_exact: bool) -> Any:
    """Return a constraint on the vector of unknowns, with derivatives.

    Parameters
    ----------
    constraint : dict, scipy.optimize.NonlinearConstraint, or other
        Others need no derivatives.
    packing : Packing
    is_exact : bool
        Whether the method uses Hessians.
    """
    if isinstance(constraint, dict) and "fun" in constraint:
        problem = Problem(_API, constraint["fun"], packing, as_tuple(constraint.get("args", ())))
        function, jacobian = problem.results(), _jacobian(problem, constraint.get("jac"))
        if is_exact and str(constraint.get("type")).lower() in _UPPER:
            upper = _UPPER[str(constraint["type"]).lower()]
            values = problem.values
            slope = (lambda x: jacobian(x, *values)) if callable(jacobian) else jacobian
            return NonlinearConstraint(lambda x: function(x, *values), 0.0, upper, slope, _hessian(problem))
        return {**constraint, "fun": function, "jac": jacobian, "args": problem.values}
    if not isinstance(constraint, NonlinearConstraint):
        return constraint
    problem = Problem(_API, constraint.fun, packing)
    hess = constraint.hess
    if is_exact and (hess is None or (isinstance(hess, BFGS) and vars(hess) == vars(BFGS()))):  # SciPy's default
        hess = _hessian(problem)
    elif callable(hess) and not isinstance(hess, HessianUpdateStrategy):
        user = hess
        hess = lambda x, v: user(packing.unpack(x), v)  # noqa: E731
    return NonlinearConstraint(
        problem.results(), constraint.lb, constraint.ub, _jacobian(problem, constraint.jac), hess,
        constraint.keep_feasible, constraint.finite_diff_rel_step, constraint.finite_diff_jac_sparsity,
    )  # fmt: skip


def _jacobian(problem: Problem, jac: Any) -> Any:
    """Return the Jacobian that SciPy is given: the user's, if there is one."""
    if callable(jac):
        return problem.given(jac)
    return problem.jacobian() if jac in (None, "2-point") else jac


def _hessian(problem: Problem) -> Callable[..., Any]:
    """Return the Hessian of a weighted sum of the results: of x and the weights."""

    def of_sum(x: Any, v: Any, *values: Any) -> Any:
        return hessian(lambda x: (problem.vector(x, *values) * v).sum())(x)

    compiled, values = problem.derivative("hessian of a sum", of_sum, 2), problem.values
    return lambda x, v: compiled(x, np.asarray(v, np.float64), *values)

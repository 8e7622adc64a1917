"""`minimize`: SciPy's minimisers, with the derivatives that each method uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.optimize

from tapegrad.func import grad
from tapegrad.scipy.constraints import converted
from tapegrad.scipy.implicit import solution
from tapegrad.scipy.packing import Packing
from tapegrad.scipy.problem import Problem, as_tuple

__all__ = ["minimize"]

#: What a method uses besides values: gradients, unless it is none of these.
_VALUES: Final = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
_PRODUCTS: Final = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
_HESSIANS: Final = frozenset(("dogleg", "trust-exact"))


def minimize(
    fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None, callback: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Minimise a function of one or more unknowns: `scipy.optimize.minimize` with exact, compiled derivatives.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a number, computed by tapegrad's or NumPy's functions.
    x0 : array_like, or nested dicts, lists and tuples of arrays
        The starting point. The function gets unknowns of this structure, in float64.
    args : tuple
        Further arguments. If one of them is a tensor that requires grad, `x` and `fun` of the result are tensors
        that depend on it.
    method : str or callable, optional
        One of SciPy's methods.
    jac, hess, hessp : optional
        As for SciPy. They are used in place of the derivatives that are computed here; so are the names of finite
        differences, ``"2-point"``, ``"3-point"`` and ``"cs"``.
    bounds : optional
        As for SciPy; for unknowns in a container also a pair of containers like `x0`, in which numbers stand for all
        elements of an array, or one such container with a pair for each array.
    constraints : optional
        SciPy's `LinearConstraint`, `NonlinearConstraint` and dicts. They get exact derivatives as well, where ``jac``
        is missing or ``"2-point"``, and ``hess`` is missing.
    tol, callback, options : optional
        As for SciPy; a callback gets unknowns of the structure of `x0`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's. `x` and a gradient `jac` have the structure of `x0`; matrices belong to the vector of all unknowns.

    Raises
    ------
    ValueError
        If `fun` returns no number, or looks at the unknowns and returns one of Python's; and as SciPy does.
    TypeError
        If `x0` has complex numbers, or `fun` returns one.

    Warns
    -----
    UserWarning
        If `fun` cannot be compiled. The derivatives are exact all the same, but take longer.

    Notes
    -----
    BFGS, L-BFGS-B, CG, TNC and SLSQP get value and gradient by one call; Newton-CG, trust-ncg, trust-krylov and
    trust-constr also products with the Hessian; dogleg and trust-exact the Hessian; other methods values.
    Derivatives of `x` with respect to `args` are those of the implicit function theorem at the minimum: the Hessian
    must be regular there; an unknown at a bound stays there. There are none with constraints.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> def rosenbrock(x):
    ...     return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    >>> result = tg.scipy.minimize(rosenbrock, np.zeros(3), method="BFGS")
    >>> result.success, bool(np.allclose(result.x, 1.0))
    (True, True)
    """
    packing, args = Packing(x0, "minimize()"), as_tuple(args)
    problem = Problem("minimize()", fun, packing, args)
    if not isinstance(constraints, (list, tuple)):
        constraints = (constraints,)
    if constraints and problem.wants_gradients():
        raise NotImplementedError(
            "minimize() with constraints has no derivative with respect to args; detach the tensors that require grad"
        )
    if method is None:
        method = "SLSQP" if constraints else "BFGS" if bounds is None else "L-BFGS-B"  # as SciPy chooses
    name = method.lower() if isinstance(method, str) else ""
    constraints = [converted(own, packing, is_exact=name == "trust-constr") for own in constraints]

    if jac is None or jac is False:
        function = problem.value() if name in _VALUES else problem.value_and_grad()
        jac = None if name in _VALUES else True
    elif callable(jac):
        function, jac = problem.value(), problem.given(jac, "the gradient")
    elif jac is True:
        function = _pairs(problem)
        problem = Problem("minimize()", lambda *args, **kwargs: fun(*args, **kwargs)[0], packing, args)
    else:
        function = problem.value()
    if hessp is not None:
        hessp = problem.given(hessp, "the product with the Hessian", 2)
    elif hess is None and name in _PRODUCTS:
        hessp = problem.hvp()
    if callable(hess) and not isinstance(hess, scipy.optimize.HessianUpdateStrategy):
        hess = problem.given(hess)
    elif hess is None and name in _HESSIANS:
        hess = problem.hessian()

    result = scipy.optimize.minimize(
        function, packing.vector, args=problem.values, method=method, jac=jac, hess=hess, hessp=hessp,
        bounds=packing.bounds(bounds), constraints=constraints, tol=tol, callback=packing.callback(callback),
        options=options,
    )  # fmt: skip
    if problem.wants_gradients():
        free = _free(result.x, packing.bounds(bounds))
        result.x = solution(problem, grad(problem.scalar), result.x, free)
        result.fun = problem.scalar(result.x, *problem.tensors)
    return packing.result(result)


def _pairs(problem: Problem) -> Callable[..., Any]:
    """Return a function that returns value and gradient itself, as SciPy calls it."""
    call = problem.given(problem.function)

    def both(x: Any, *_: Any) -> Any:
        value, gradient = call(x)
        return float(value), problem.packing.pack(gradient, "the gradient")

    return both


def _free(x: np.ndarray, bounds: Any) -> np.ndarray:
    """Return which unknowns stand at no bound."""
    free = np.ones(x.shape, bool)
    if bounds is not None:
        if not isinstance(bounds, scipy.optimize.Bounds):
            lower, upper = zip(*[[None, None] if own is None else own for own in bounds], strict=True)
            bounds = scipy.optimize.Bounds(
                [-np.inf if own is None else own for own in lower], [np.inf if own is None else own for own in upper]
            )
        free = (x > bounds.lb) & (x < bounds.ub)
    return free

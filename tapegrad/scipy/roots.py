"""`root`: SciPy's solvers of systems of equations, with exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import scipy.optimize

from tapegrad.scipy.implicit import solution
from tapegrad.scipy.packing import Packing
from tapegrad.scipy.problem import Problem, as_tuple

__all__ = ["root"]

_JACOBIANS: Final = frozenset(("hybr", "lm"))


def root(
    fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: float | None = None,
    callback: Any = None, options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Solve a system of equations: `scipy.optimize.root` with an exact, compiled Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns as many numbers as there are unknowns, in an array or in a container of arrays.
    x0 : array_like, or nested dicts, lists and tuples of arrays
        The starting point. The function gets unknowns of this structure, in float64.
    args : tuple
        Further arguments. If one of them is a tensor that requires grad, `x` of the result is a tensor that depends on
        it, by the implicit function theorem.
    method : str
        One of SciPy's. ``"hybr"`` and ``"lm"`` use the Jacobian; the others take values, from the compiled function.
    jac : bool or callable, optional
        As for SciPy: the user's own Jacobian.
    tol, callback, options : optional
        As for SciPy; a callback gets the vector of unknowns in the structure of `x0`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's. `x` has the structure of `x0`.

    Raises
    ------
    TypeError
        If `x0` has complex numbers, or `fun` returns one; and as SciPy does.

    Warns
    -----
    UserWarning
        If `fun` cannot be compiled. The derivatives are exact all the same, but take longer.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> def equations(x):
    ...     return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]]
    >>> tg.scipy.root(equations, np.zeros(2)).x.round(6)
    array([0.841164, 0.158836])
    """
    packing, args = Packing(x0, "root()"), as_tuple(args)
    problem = Problem("root()", fun, packing, args)
    function: Callable[..., Any] = problem.results()
    if jac is True:
        call = problem.given(fun)

        def function(x: Any, *_: Any) -> Any:
            value, slopes = call(x)
            return packing.pack(value, "the result"), slopes

        problem = Problem("root()", lambda *args, **kwargs: fun(*args, **kwargs)[0], packing, args)
    elif callable(jac):
        jac = problem.given(jac)
    elif method in _JACOBIANS:
        jac = problem.jacobian()
    result = scipy.optimize.root(
        function, packing.vector, args=problem.values, method=method, jac=jac or None, tol=tol,
        callback=packing.callback(callback), options=options,
    )  # fmt: skip
    if problem.wants_gradients():
        result.x = solution(problem, problem.vector, result.x)
    return packing.result(result)

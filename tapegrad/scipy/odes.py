"""`solve_ivp`: SciPy's solvers of differential equations, with the Jacobian that implicit methods use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.integrate

from tapegrad.func import jacrev
from tapegrad.scipy.packing import Packing
from tapegrad.scipy.problem import Problem, as_tuple
from tapegrad.tensor import Tensor

__all__ = ["solve_ivp"]

_IMPLICIT: Final = frozenset(("Radau", "BDF", "LSODA"))


def solve_ivp(
    fun: Callable[..., Any], t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Solve an initial value problem: `scipy.integrate.solve_ivp` with a compiled function and its exact Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` returns the derivative of `y`: an array, or a container of arrays and numbers.
    t_span, t_eval, dense_output, **options : optional
        As for SciPy.
    y0 : array_like, or nested dicts, lists and tuples of arrays
        The state at the beginning. The functions get states of this structure, in float64 or complex128.
    method : str or scipy.integrate.OdeSolver
        ``"Radau"``, ``"BDF"`` and ``"LSODA"`` use the Jacobian, unless there is one among the options, or a band. With
        ``jac_sparsity`` it is sparse, with the structure that the function has. Of a complex state it is SciPy's, by
        finite differences.
    events : callable, or list of callables, optional
        As for SciPy; they are called as they are.
    vectorized : bool
        As for SciPy: whether `fun` takes states as columns of a matrix.
    args : tuple, optional
        Further arguments.

    Returns
    -------
    bunch
        SciPy's. If `y0` is no vector, then `y` and `y_events` have its structure, with the times along the last
        dimension of `y`; `sol` returns vectors.

    Raises
    ------
    NotImplementedError
        If `y0` or `args` require grad. Write the steps of a method as a loop, and differentiate that.
    TypeError
        If `y0` has no numbers, or `fun` returns complex ones where `y0` has none; and as SciPy does.

    Warns
    -----
    UserWarning
        If `fun` cannot be compiled. The derivatives are exact all the same, but take longer.

    Examples
    --------
    >>> import tapegrad as tg
    >>> def van_der_pol(t, y, mu):
    ...     return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]
    >>> solution = tg.scipy.solve_ivp(van_der_pol, (0.0, 100.0), [2.0, 0.0], method="Radau", args=(50.0,))
    >>> solution.success, solution.y.shape[0]
    (True, 2)
    """
    packing, user = Packing(y0, "solve_ivp()", "y0", "fiubc"), fun
    if vectorized:
        fun = lambda t, y, *args: user(t, y.reshape(-1, 1), *args)  # noqa: E731
    problem = Problem("solve_ivp()", fun, packing, () if args is None else as_tuple(args))
    if problem.wants_gradients() or any(
        isinstance(own, Tensor) and own.requires_grad for own in (y0 if isinstance(y0, (list, tuple)) else [y0])
    ):
        raise NotImplementedError(
            "solve_ivp() has no derivatives with respect to y0 and args; write the steps of a method, e.g. of "
            "Runge-Kutta, as a loop and differentiate that (tapegrad.compile finds the loop), or detach them"
        )

    def slope(t: Any, y: Any, *values: Any) -> Any:
        return problem.vector(y, *values, before=(t,))

    has_band = options.get("lband") is not None or options.get("uband") is not None
    if callable(options.get("jac")):
        options["jac"] = _user(problem, options["jac"])
    elif method in _IMPLICIT and options.get("jac") is None and not has_band and packing.vector.dtype.kind != "c":

        def jacobian(t: Any, y: Any, *values: Any) -> Any:
            return jacrev(lambda y: slope(t, y, *values))(y)

        options["jac"] = problem.derivative("jacobian", jacobian, 2)
        if options.pop("jac_sparsity", None) is not None:
            options["jac"] = problem.sparse(slope, options["jac"], 1)
    if events is not None:
        events = [_event(problem, own) for own in ([events] if callable(events) else events)]
    result = scipy.integrate.solve_ivp(
        problem.derivative("slope", slope, 2), t_span, packing.vector, method=method, t_eval=t_eval,
        dense_output=dense_output, events=events, args=problem.values or None, **options,
    )  # fmt: skip
    if not packing.is_plain:
        result.y = packing.unpack(result.y)
        if result.y_events is not None:
            result.y_events = [packing.unpack(own.T) if own.size else own for own in map(np.asarray, result.y_events)]
    return result


def _user(problem: Problem, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function of time and state, as SciPy calls it."""
    args = problem.others
    return lambda t, y, *_: function(t, problem.packing.unpack(y), *args)


def _event(problem: Problem, event: Callable[..., Any]) -> Callable[..., Any]:
    """Return an event of the state as users have it, with its attributes."""
    call = _user(problem, event)
    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(call, name, getattr(event, name))
    return call

"""`least_squares` and `curve_fit`: SciPy's fits, with exact Jacobians of the residuals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize

from tapegrad.func import grad
from tapegrad.ops.table import functions as ops
from tapegrad.scipy.implicit import solution
from tapegrad.scipy.packing import Packing, array_like
from tapegrad.scipy.problem import Problem, as_tuple
from tapegrad.tensor import Tensor

__all__ = ["curve_fit", "least_squares"]


def least_squares(
    fun: Callable[..., Any], x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), method: str = "trf",
    ftol: float | None = 1e-8, xtol: float | None = 1e-8, gtol: float | None = 1e-8, x_scale: Any = None,
    loss: Any = "linear", f_scale: float = 1.0, diff_step: Any = None, tr_solver: Any = None, tr_options: Any = None,
    jac_sparsity: Any = None, max_nfev: int | None = None, verbose: int = 0, args: Any = (),
    kwargs: Mapping[str, Any] | None = None, *, sparse: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Minimise a sum of squares: `scipy.optimize.least_squares` with an exact, compiled Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` returns the residuals: an array, or a container of arrays and numbers.
    x0 : array_like, or nested dicts, lists and tuples of arrays
        The starting point. The function gets unknowns of this structure, in float64.
    jac : callable or str, optional
        As for SciPy: a function for the Jacobian, or the name of a finite-difference scheme. Default: the exact
        Jacobian.
    bounds, x_scale : optional
        As for SciPy; for unknowns in a container also containers like `x0`, in which numbers stand for all elements
        of an array.
    method, ftol, xtol, gtol, loss, f_scale, diff_step, tr_solver, tr_options, max_nfev, verbose : optional
        As for SciPy.
    jac_sparsity : optional
        If it is given, the Jacobian is sparse, as with `sparse`. The structure itself is found from the function.
    args, kwargs : tuple and dict
        Further arguments. If one of them is a tensor that requires grad, `x` of the result is a tensor that depends on
        it, by the implicit function theorem; `loss` must be ``"linear"`` then.
    sparse : bool
        Whether the Jacobian is a sparse matrix, as by `tapegrad.func.sparse_jacobian`; not with ``method="lm"``.
    **options
        Further options of newer versions of SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's. `x` has the structure of `x0`; `jac` belongs to the vector of all unknowns.

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
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> y = 3.0 * np.exp(-2.0 * t)
    >>> result = tg.scipy.least_squares(lambda p: p["a"] * tg.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0})
    >>> {name: round(float(value), 6) for name, value in result.x.items()}
    {'a': 3.0, 'k': 2.0}
    """
    packing = Packing(x0, "least_squares()")
    problem = Problem("least_squares()", fun, packing, as_tuple(args), kwargs)
    if problem.wants_gradients() and loss != "linear":
        raise NotImplementedError(
            f"least_squares() with loss={loss!r} has no derivative with respect to args; detach the tensors that "
            "require grad, or minimise the sum of the losses by minimize()"
        )
    if callable(jac):
        jac = problem.given(jac)
    elif jac is None:
        jac = problem.jacobian()
        if sparse or jac_sparsity is not None:
            jac, jac_sparsity = problem.sparse(problem.vector, jac), None
    if x_scale is not None and not isinstance(x_scale, str):
        options["x_scale"] = packing.spread(x_scale, "x_scale")
    elif x_scale is not None:
        options["x_scale"] = x_scale
    if options.get("callback") is not None:
        options["callback"] = packing.callback(options["callback"])
    result = scipy.optimize.least_squares(
        problem.results(), packing.vector, jac=jac, bounds=packing.bounds(bounds), method=method, ftol=ftol, xtol=xtol,
        gtol=gtol, loss=loss, f_scale=f_scale, diff_step=diff_step, tr_solver=tr_solver, tr_options=tr_options or {},
        jac_sparsity=jac_sparsity, max_nfev=max_nfev, verbose=verbose, args=problem.values, **options,
    )  # fmt: skip
    if problem.wants_gradients():
        slope = grad(lambda x, *values: (problem.vector(x, *values) ** 2).sum())
        result.x = solution(problem, slope, result.x, result.active_mask == 0)
    return packing.result(result)


def curve_fit(
    f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False,
    check_finite: bool | None = None, bounds: Any = (-np.inf, np.inf), method: str | None = None, jac: Any = None, *,
    full_output: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Fit a function to data: `scipy.optimize.curve_fit` with an exact, compiled Jacobian.

    Parameters
    ----------
    f : callable
        ``f(xdata, *parameters)`` returns the model at `xdata`.
    xdata, ydata : array_like
        As for SciPy.
    p0 : array_like, optional
        The starting point; default ones.
    sigma, absolute_sigma, check_finite, bounds, method, full_output, **kwargs : optional
        As for SciPy.
    jac : callable or str, optional
        As for SciPy: a function for the Jacobian, or the name of a finite-difference scheme. Default: the exact
        Jacobian.

    Returns
    -------
    tuple
        As from SciPy: the parameters, their covariance, and more with `full_output`.

    Raises
    ------
    NotImplementedError
        If the data require grad: `least_squares` has derivatives with respect to its arguments.
    RuntimeError
        If no minimum is found.

    Warns
    -----
    UserWarning
        If `f` cannot be compiled. The derivatives are exact all the same, but take longer.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> x = np.linspace(0.0, 4.0, 50)
    >>> popt, pcov = tg.scipy.curve_fit(lambda x, a, b: a * tg.exp(-b * x), x, 2.5 * np.exp(-1.3 * x))
    >>> popt.round(6), pcov.shape
    (array([2.5, 1.3]), (2, 2))
    """
    data = {"xdata": xdata, "ydata": ydata, "p0": p0, "sigma": sigma}
    for name, own in data.items():
        if isinstance(own, Tensor):
            if own.requires_grad:
                raise NotImplementedError(
                    f"curve_fit() has no derivative with respect to {name}; use tapegrad.scipy.least_squares(), whose "
                    "solution depends on its args, or detach it"
                )
            data[name] = array_like(own)
    model = _Model(f)
    if jac is None:
        jac = model.jacobian
    return scipy.optimize.curve_fit(
        functools.wraps(f)(lambda x, *parameters: model.values(x, *parameters)), **data, absolute_sigma=absolute_sigma,
        check_finite=check_finite, bounds=bounds, method=method, jac=jac, full_output=full_output, **kwargs,
    )  # fmt: skip


class _Model:
    """A function of data and parameters, for the data that SciPy makes of the user's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._x: Any = self  # no data yet

    def values(self, x: Any, *parameters: float) -> Any:
        """Return the model."""
        self._prepare(x, parameters)
        return self._values(np.array(parameters), *self._rest)

    def jacobian(self, x: Any, *parameters: float) -> Any:
        """Return the model's Jacobian with respect to the parameters."""
        self._prepare(x, parameters)
        return self._jacobian(np.array(parameters), *self._rest)

    def _prepare(self, x: Any, parameters: tuple[float, ...]) -> None:
        if x is not self._x:
            self._x = x
            packing = Packing(np.array(parameters), "curve_fit()")
            problem = Problem("curve_fit()", functools.partial(_of_vector, self._function), packing, (x,))
            self._values, self._jacobian, self._rest = problem.results(), problem.jacobian(), problem.values


def _of_vector(function: Callable[..., Any], parameters: Tensor, x: Any) -> Any:
    """Return the model for parameters that stand in a vector."""
    return function(x, *ops.unbind(parameters))

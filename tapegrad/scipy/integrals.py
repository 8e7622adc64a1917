"""`quad`: SciPy's integral of a function of one variable, which QUADPACK calls as machine code, and its derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.integrate

from tapegrad.autograd.function import Function
from tapegrad.func import grad
from tapegrad.modes import is_grad_enabled
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table import functions as ops
from tapegrad.scipy.low_level import low_level
from tapegrad.scipy.packing import Packing, array_like
from tapegrad.scipy.problem import Problem, as_tuple
from tapegrad.tensor import Tensor

__all__ = ["quad"]


def quad(func: Any, a: Any, b: Any, args: Any = (), full_output: int = 0, **options: Any) -> Any:
    """Integrate a function from a to b: `scipy.integrate.quad` of a compiled integrand.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a number. What SciPy can call at once, as `scipy.LowLevelCallable`, it gets as it is.
    a, b : float or Tensor
        The limits, which may be infinite.
    args : tuple
        Further arguments: numbers, and arrays as well.
    full_output, **options : optional
        As for SciPy: ``epsabs``, ``epsrel``, ``limit``, ``points``, ``weight`` and others.

    Returns
    -------
    tuple
        As from SciPy: the integral, an estimate of its error, and more with `full_output`. The integral is a tensor if
        a limit or one of the arguments requires grad.

    Raises
    ------
    TypeError
        If `func` returns complex numbers: integrate their real and imaginary parts.
    ValueError
        If `func` returns no number.
    NotImplementedError
        If a limit requires grad, and there is a `weight`.

    Warns
    -----
    UserWarning
        If `func` cannot be compiled.

    Notes
    -----
    The derivative with respect to an argument is the integral of the derivative, one for each of its elements, with the
    same options; with respect to a limit it is the integrand there (Leibniz' rule). Both can be differentiated again.

    Examples
    --------
    >>> import tapegrad as tg
    >>> rate = tg.tensor(2.0, requires_grad=True)
    >>> integral, error = tg.scipy.quad(lambda x, rate: tg.exp(-rate * x), 0.0, tg.inf, args=(rate,))
    >>> integral.backward()
    >>> round(integral.item(), 9), round(rate.grad.item(), 9)
    (0.5, -0.25)
    """
    if not callable(func) or isinstance(func, scipy.LowLevelCallable):
        return scipy.integrate.quad(func, a, b, args, full_output, **options)
    if options.get("complex_func"):
        raise TypeError("quad(): complex numbers are not compiled; integrate the real and the imaginary part")
    args = as_tuple(args)
    problem = Problem("quad()", func, Packing(0.0, "quad()"), args)
    limits = [own for own in (a, b) if isinstance(own, Tensor) and own.requires_grad and is_grad_enabled()]
    if limits and options.get("weight") is not None:
        raise NotImplementedError("quad() with a weight has no derivative with respect to limits; detach them")
    integral = _Integral(problem, options)
    if not limits and not problem.wants_gradients():
        return integral.computed(float(array_like(a)), float(array_like(b)), problem.values, full_output)
    rest: list[Any] = []
    value = _Quad.apply(integral, full_output, rest, a, b, *problem.tensors)
    return (value, *rest)


class _Integral:
    """An integrand that is compiled once, and how it is integrated.

    Parameters
    ----------
    problem : Problem
    options : dict
        SciPy's.
    """

    def __init__(self, problem: Problem, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.compiled = problem.value()

    def computed(self, a: float, b: float, values: Sequence[Any], full_output: int = 0) -> tuple[Any, ...]:
        """Return what SciPy returns."""
        arrays = [np.ascontiguousarray(own) if np.ndim(own) else np.float64(own) for own in map(array_like, values)]
        inside = a if not math.isinf(a) else b if not math.isinf(b) else 0.0
        inside += 1.0 if math.isinf(b) and not math.isinf(a) else -1.0 if math.isinf(a) and not math.isinf(b) else 0.0
        if not math.isinf(a) and not math.isinf(b):
            inside = a + 0.5 * (b - a)
        self.compiled(np.float64(inside), *arrays)  # it is traced
        with low_level(self.compiled, arrays) as function:
            if function is not None:
                return tuple(scipy.integrate.quad(function, a, b, (), full_output, **self.options))
            in_python = lambda x, *rest: self.compiled(np.float64(x), *rest)  # noqa: E731
            return tuple(scipy.integrate.quad(in_python, a, b, tuple(arrays), full_output, **self.options))

    def slope(self, place: int) -> _Integral:
        """Return the integral of the derivative with respect to a further argument, times weights of its elements.

        The weights are one more argument.
        """
        problem = self.problem

        def function(x: Any, weights: Any, *values: Any) -> Any:
            def of_one(own: Any) -> Any:
                return problem.scalar(x, *values[:place], own, *values[place + 1 :])

            return (grad(of_one)(as_tensor(values[place])) * weights).sum()

        tensors = problem.tensors
        weights = np.zeros(np.shape(array_like(tensors[place])))
        return _Integral(Problem("quad()", function, problem.packing, (weights, *tensors)), self.options)


class _Quad(Function):
    """An integral, of limits and arguments."""

    @staticmethod
    def forward(
        ctx: Any, integral: _Integral, full_output: int, rest: list[Any], a: Any, b: Any, *values: Any
    ) -> Tensor:
        ctx.integral = integral
        ctx.others = [None if isinstance(own, Tensor) else own for own in (a, b, *values)]
        ctx.save_for_backward(*[own for own in (a, b, *values) if isinstance(own, Tensor)])
        found, *rest[:] = integral.computed(float(array_like(a)), float(array_like(b)), values, full_output)
        result: Tensor = as_tensor(found)
        return result

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        a, b, *values = [next(tensors) if own is None else own for own in ctx.others]
        integral, wanted = ctx.integral, ctx.needs_input_grad[3:]
        found: list[Any] = [None] * len(wanted)
        for place, (limit, sign) in enumerate(((a, -1.0), (b, 1.0))):
            if wanted[place]:
                found[place] = ct * sign * integral.problem.scalar(limit, *values)
        for place, value in enumerate(values):
            if wanted[2 + place]:
                found[2 + place] = ct * _slope(integral.slope(place), a, b, value, values)
        return (None, None, None, *found)


def _slope(integral: _Integral, a: Any, b: Any, value: Tensor, values: Sequence[Any]) -> Tensor:
    """Return the integral of the derivative with respect to a value, element by element."""
    parts, shape = [], tuple(value.shape)
    for place in range(value.numel()):
        weights = np.zeros(value.numel())
        weights[place] = 1.0
        parts.append(_Quad.apply(integral, 0, [], a, b, weights.reshape(shape), *values))
    return ops.stack(parts).reshape(shape)

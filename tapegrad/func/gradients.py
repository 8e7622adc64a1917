"""`grad`, `grad_and_value`, `value_and_grad`, from a function to one that returns gradients; `functionalize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.func.level import Argnums, Level, named_after, of_compiled
from tapegrad.tensor import Tensor, from_array

_API = "grad_and_value(f)(*args)"


def _gradients(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Return gradients, value and what the function returned besides."""
    level = Level(args, argnums)
    output, aux = level.call_with_aux(func, kwargs, has_aux, _API)
    if isinstance(output, np.generic):  # of a loop of 0 turns that begins with a number
        output = from_array(np.asarray(output))
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{_API}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output._layout.ndim:
        raise RuntimeError(
            f"{_API}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. Maybe you "
            f"wanted to use the vjp or jacrev APIs instead?"
        )
    gradients, value = level.gradients(output)
    return level.as_arguments(gradients), level.result(value), aux


@of_compiled
def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes gradients of a function.

    Parameters
    ----------
    func : callable
        A function that returns a scalar: a tensor without dimensions.
    argnums : int or tuple of int
        The arguments to differentiate. Each is a tensor, a NumPy array, a floating number, or a dict, list, tuple or
        named tuple of these.
    has_aux : bool
        Whether the function returns a pair ``(output, aux)``, of which `aux` is returned but not differentiated.

    Returns
    -------
    callable
        Takes the arguments of `func`, and returns the gradient, which has the structure of the argument; for several
        arguments, a tuple of gradients. With `has_aux` it returns a pair: the gradients and `aux`. Gradients of tensors
        are tensors, those of arrays are arrays. No tensor's `grad` changes.

    Raises
    ------
    RuntimeError
        From the function that is returned: if `func` returns no scalar, or an argument is neither floating nor complex.
    ValueError
        If an argument is neither a tensor nor an array nor a number.

    Notes
    -----
    The gradient can be differentiated again: by another `grad` around, or by ``backward()`` if an argument, or a tensor
    that `func` uses, requires grad.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> tg.func.grad(lambda x: (x**3).sum())(tg.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> tg.func.grad(lambda x: np.sum(np.sin(x)))(np.zeros(2))
    array([1., 1.])
    >>> cube = lambda x: x**3
    >>> float(tg.func.grad(tg.func.grad(cube))(2.0))
    12.0
    """

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradients, _, aux = _gradients(func, argnums, has_aux, args, kwargs)
        return (gradients, aux) if has_aux else gradients

    return wrapper


@of_compiled
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes gradients of a function, and its value.

    Parameters
    ----------
    func, argnums, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Returns the gradients and the value. With `has_aux` it returns the gradients and the pair ``(value, aux)``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.grad_and_value(lambda x: (x**3).sum())(tg.tensor([1.0, 2.0]))
    (tensor([ 3., 12.]), tensor(9.))
    """

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradients, value, aux = _gradients(func, argnums, has_aux, args, kwargs)
        return gradients, ((value, aux) if has_aux else value)

    return wrapper


@of_compiled
def value_and_grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes a function's value, and its gradients: `grad_and_value` in the other order.

    Parameters
    ----------
    func, argnums, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Returns the value and the gradients; with `has_aux` the value stands in a pair with what the function returned
        besides.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.value_and_grad(lambda x: (x**3).sum())(tg.tensor([1.0, 2.0]))
    (tensor(9.), tensor([ 3., 12.]))
    """

    @named_after(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradients, value, aux = _gradients(func, argnums, has_aux, args, kwargs)
        return ((value, aux) if has_aux else value), gradients

    return wrapper


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function as it is: writes in place may stay, as the transforms follow them.

    Parameters
    ----------
    func : callable
    remove : str
        Has no effect.

    Returns
    -------
    callable

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.func.functionalize(lambda x: x.clone().mul_(2))(tg.ones(2))
    tensor([2., 2.])
    """
    return func

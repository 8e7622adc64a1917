"""Gradients made smaller, in place."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import GeneratorType
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.modes import no_grad
from tapegrad.ops.concat import stack
from tapegrad.ops.creation import made
from tapegrad.ops.fill import zeros
from tapegrad.ops.norms import vector_norm
from tapegrad.ops.numbers import isfinite
from tapegrad.tensor import Tensor

Tensors = Tensor | Iterable[Tensor]


def _grads(parameters: Tensors) -> list[Tensor]:
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if isinstance(parameters, GeneratorType) and not several:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", UserWarning, stacklevel=3)
    return [param.grad for param in several if param.grad is not None]


def _norm(array: Any, order: float) -> Any:
    """Return the norm of the elements, as `linalg.vector_norm` has it."""
    if order == 2:  # a fifth of the time
        flat = np.ravel(array)
        return np.sqrt(np.vdot(flat, flat).real)
    return np.linalg.vector_norm(array, ord=order)


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all elements of tensors together.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
    norm_type : float
        The order; "inf" for the largest absolute value.
    error_if_nonfinite : bool
    foreach : bool, optional
        Accepted, and without meaning.

    Returns
    -------
    Tensor, ()

    Raises
    ------
    RuntimeError
        If it is infinite or nan and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.utils.get_total_norm([tg.tensor([3.0]), tg.tensor([4.0])])
    tensor(5.)
    """
    several, order = [tensors] if isinstance(tensors, Tensor) else list(tensors), float(norm_type)
    if not several:
        return zeros(())
    if modes.is_traced():  # in a function that is traced operations are written down
        total: Tensor = vector_norm(stack([vector_norm(own, order) for own in several]), order)
    else:
        norms = [_norm(own._data, order) for own in several]
        total = made(np.asarray(_norm(np.array(norms, norms[0].dtype), order)))
    if error_if_nonfinite and not isfinite(total):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def _scale(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(scale)


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients in place by ``max_norm / (total_norm + 1e-6)`` if that is less than 1.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
    max_norm : float
    total_norm : Tensor
    foreach : bool, optional
        Accepted, and without meaning.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(1, requires_grad=True)
    >>> x.grad = tg.tensor([4.0])
    >>> tg.nn.utils.clip_grads_with_norm_(x, 1.0, tg.tensor(4.0))
    >>> x.grad
    tensor([1.0000])
    """
    _scale(_grads(parameters), max_norm, total_norm)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters in place so that their norm, of all together, is at most a number.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
    max_norm : float
    norm_type, error_if_nonfinite, foreach
        As in `get_total_norm`.

    Returns
    -------
    Tensor, ()
        The norm before.

    Raises
    ------
    RuntimeError
        If it is infinite or nan and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> (x * tg.tensor([3.0, 4.0])).sum().backward()
    >>> tg.nn.utils.clip_grad_norm_(x, 1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    grads = _grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _scale(grads, max_norm, total)
    return total


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients of parameters, in place, to a range around 0.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
    clip_value : float
        The largest absolute value.
    foreach : bool, optional
        Accepted, and without meaning.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> (x * tg.tensor([3.0, -0.5])).sum().backward()
    >>> tg.nn.utils.clip_grad_value_([x], 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    for grad in _grads(parameters):
        grad.clamp_(-float(clip_value), float(clip_value))


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`clip_grad_norm_`, by its older name.

    Warns
    -----
    FutureWarning

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.zeros(2, requires_grad=True)
    >>> x.grad = tg.tensor([3.0, 4.0])
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     norm = tg.nn.utils.clip_grad_norm(x, 1.0)
    >>> norm, x.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)

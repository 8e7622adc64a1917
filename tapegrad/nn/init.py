"""Initial values of parameters: functions that fill a tensor in place, not recorded, and return it."""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

from tapegrad.modes import no_grad
from tapegrad.nn.init_matrices import FILLED, WITH_GENERATOR, dirac_, eye_, orthogonal_, sparse_
from tapegrad.ops.generators import Generator
from tapegrad.ops.table.docs import documented
from tapegrad.tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

_OF_MATRIX = WITH_GENERATOR._replace(
    parameters=f"{FILLED.parameters}\n    Of at least 2 dimensions, (outputs, inputs, ...).",
    raises="ValueError\n    If it has fewer dimensions.",
)
_KAIMING = _OF_MATRIX._replace(
    options=f"""\
a : float
    Slope of ``leaky_relu`` for negative numbers.
mode : {{"fan_in", "fan_out"}}
    Whether the variance is kept forwards or backwards.
nonlinearity : str
    As in `calculate_gain`.
{WITH_GENERATOR.options}""",
    raises="ValueError\n    If it has fewer dimensions, or a name is unknown.",
)
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that makes up for the shrinking of values by a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
    param : float, optional
        Slope of ``leaky_relu`` for negative numbers.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.calculate_gain("linear")
    1.0
    """
    if nonlinearity in ("linear", "sigmoid") or re.fullmatch("conv(_transpose)?[123]d", nonlinearity):
        return 1.0
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"Unsupported nonlinearity {nonlinearity}; known are linear, sigmoid, leaky_relu, {', '.join(_GAINS)}"
        )
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs an output has, and how many outputs an input has."""
    if tensor.ndim < 2:
        raise ValueError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; it has shape "
            f"{list(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


@no_grad()
@documented(WITH_GENERATOR)
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers drawn uniformly from `a` to `b`.

    Parameters
    ----------
    a, b : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((tg.nn.init.uniform_(tg.empty(3), 1, 2) >= 1).all())
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
@documented(WITH_GENERATOR)
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers.

    Parameters
    ----------
    mean, std : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.normal_(tg.empty(2), 5.0, 0.0)
    tensor([5., 5.])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
@documented(WITH_GENERATOR)
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normally distributed numbers that lie from `a` to `b`.

    Parameters
    ----------
    mean, std : float
        Of the distribution before it is cut.
    a, b : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((abs(tg.nn.init.trunc_normal_(tg.empty(9), a=-1, b=1)) <= 1).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            UserWarning,
            stacklevel=2,
        )
    low, high = (math.erf((end - mean) / (std * math.sqrt(2.0))) for end in (a, b))
    tensor.uniform_(low, high, generator=generator).erfinv_().mul_(std * math.sqrt(2.0)).add_(mean)
    return tensor.clamp_(a, b)


@no_grad()
@documented(FILLED)
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number.

    Parameters
    ----------
    val : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.constant_(tg.empty(2), 3.0)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


@documented(FILLED)
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.zeros_(tg.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@documented(FILLED)
def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.ones_(tg.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


@documented(_OF_MATRIX)
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers of variance ``2 gain² / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    Parameters
    ----------
    gain : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((abs(tg.nn.init.xavier_uniform_(tg.empty(3, 3))) <= 1).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@documented(_OF_MATRIX)
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of variance ``2 gain² / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    Parameters
    ----------
    gain : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.xavier_normal_(tg.empty(3, 2)).shape
    (3, 2)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return the standard deviation, None if there is nothing to fill."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


@documented(_KAIMING)
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform numbers of variance ``gain² / fan`` (He et al., arXiv:1502.01852).

    Examples
    --------
    >>> import tapegrad as tg
    >>> bool((abs(tg.nn.init.kaiming_uniform_(tg.empty(3, 6))) <= 1).all())
    True
    """
    std = _kaiming(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@documented(_KAIMING)
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of variance ``gain² / fan`` (He et al., arXiv:1502.01852).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.kaiming_normal_(tg.empty(3, 2)).shape
    (3, 2)
    """
    std = _kaiming(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


# Older names ---------------------------------------------------------------------------------------------------------


def _older(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function under its older name, without the underscore, which warns."""
    new = function.__name__

    @functools.wraps(function)
    def older(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    older.__name__, older.__doc__ = new[:-1], f"`{new}`, by its older name, which PyTorch has deprecated."
    return older


constant, dirac, eye = _older(constant_), _older(dirac_), _older(eye_)
kaiming_normal, kaiming_uniform = _older(kaiming_normal_), _older(kaiming_uniform_)
normal, uniform, orthogonal, sparse = _older(normal_), _older(uniform_), _older(orthogonal_), _older(sparse_)
xavier_normal, xavier_uniform = _older(xavier_normal_), _older(xavier_uniform_)

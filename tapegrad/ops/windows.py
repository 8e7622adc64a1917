"""Creation: windows, which `stft` weighs frames with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapegrad.devices import DeviceLike
from tapegrad.dtypes import TORCH_NAMES, DTypeLike
from tapegrad.ops.creation import dtype_or_default, made
from tapegrad.ops.table import docs
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_WINDOW = docs.Common(
    "window_length : int\nperiodic : bool\n    Leave the last value away of a symmetric window that is longer by one.",
    docs.NEW_TENSOR.options,
    "Tensor, (window_length,)",
    "RuntimeError\n    If the length is negative, or the dtype is not floating.",
)


def _window(
    call: str,
    length: int,
    periodic: bool,
    values: Callable[[np.ndarray], np.ndarray],
    dtype: DTypeLike | None,
    requires_grad: bool,
    device: DeviceLike,
) -> Tensor:
    """Return the values of a function of places from 0 to 1."""
    kind = dtype_or_default(dtype)
    if length < 0:
        raise RuntimeError(f"{call} requires non-negative window_length, got window_length={length}")
    if kind.kind != "f":
        raise RuntimeError(f"{call} expects floating point dtypes, got: {TORCH_NAMES[kind.name]}")
    if length == 1:
        return made(np.ones(1, kind), requires_grad, device)
    return made(values(np.arange(length) / max(length - (not periodic), 1)).astype(kind), requires_grad, device)


def _hamming(alpha: float, beta: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: alpha - beta * np.cos(2 * np.pi * x)


@public(common=_WINDOW)
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Hann window :math:`\sin^2(\pi n/N)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, _hamming(0.5, 0.5), dtype, requires_grad, device)


@public(common=_WINDOW)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Hamming window :math:`\alpha - \beta\cos(2\pi n/N)`.

    Parameters
    ----------
    alpha, beta : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", window_length, periodic, _hamming(alpha, beta), dtype, requires_grad, device)


@public(common=_WINDOW)
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Blackman window :math:`0.42 - 0.5\cos(2\pi n/N) + 0.08\cos(4\pi n/N)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """

    def values(x: np.ndarray) -> np.ndarray:
        return 0.42 - 0.5 * np.cos(2 * np.pi * x) + 0.08 * np.cos(4 * np.pi * x)

    return _window("blackman_window", window_length, periodic, values, dtype, requires_grad, device)


@public(common=_WINDOW)
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Bartlett window, a triangle from 0 to 1 and back.

    Formula: :math:`y_i = 1 - \left|2i/(n-1) - 1\right|` of n elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window", window_length, periodic, lambda x: 1 - np.abs(2 * x - 1), dtype, requires_grad, device
    )


@public(common=_WINDOW)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Kaiser window :math:`I_0(\beta\sqrt{1 - (2n/N - 1)^2}) / I_0(\beta)`.

    Parameters
    ----------
    beta : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """

    def values(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.i0(beta * np.sqrt(1 - (2 * x - 1) ** 2)) / np.i0(beta))

    return _window("kaiser_window", window_length, periodic, values, dtype, requires_grad, device)

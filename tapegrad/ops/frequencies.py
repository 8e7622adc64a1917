"""Frequencies that the elements of Fourier transforms belong to."""

from __future__ import annotations

import numpy as np

from tapegrad.devices import DeviceLike
from tapegrad.dtypes import DTypeLike, default_dtype
from tapegrad.ops.creation import made
from tapegrad.ops.table import docs
from tapegrad.ops.table.public import FFT, public
from tapegrad.tensor import Tensor


@public(namespaces=(FFT,), common=docs.NEW_TENSOR)
def fftfreq(
    n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    r"""Frequencies of the elements of what `fft` returns.

    Formula: :math:`f_k = ((k + \lfloor n/2 \rfloor) \bmod n - \lfloor n/2 \rfloor)/(n d)`.

    Parameters
    ----------
    n : int
        How many.
    d : float
        The distance between samples.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    first = np.arange(n, dtype=dtype or default_dtype())
    return made(np.where(first >= (n + 1) // 2, first - n, first) / (n * d), requires_grad, device)


@public(namespaces=(FFT,), common=docs.NEW_TENSOR)
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Frequencies of the elements of what `rfft` returns.

    Formula: :math:`f_k = k/(n d)`.

    Parameters
    ----------
    n : int
        How many elements `rfft` took.
    d : float
        The distance between samples.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return made(np.arange(n // 2 + 1, dtype=dtype or default_dtype()) / (n * d), requires_grad, device)

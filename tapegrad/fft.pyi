"""Discrete Fourier transforms, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import DTypeLike

from tapegrad.devices import DeviceLike
from tapegrad.tensor import Tensor

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]  # fmt: skip

def fft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Discrete Fourier transform, of one dimension."""

def fft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Discrete Fourier transform, of two dimensions."""

def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Frequencies of the elements of what `fft` returns."""

def fftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Discrete Fourier transform, of several dimensions."""

def fftshift(
    input: Any, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = ..., out: Any = ...
) -> Tensor:
    """Swap the halves of a spectrum, so that frequency 0 stands in the middle."""

def hfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Fourier transform, which is real, of half of a Hermitian signal, of one dimension."""

def hfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Fourier transform, which is real, of half of a Hermitian signal, of two dimensions."""

def hfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Fourier transform, which is real, of half of a Hermitian signal, of several dimensions."""

def ifft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Inverse discrete Fourier transform, of one dimension."""

def ifft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse discrete Fourier transform, of two dimensions."""

def ifftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse discrete Fourier transform, of several dimensions."""

def ifftshift(
    input: Any, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = ..., out: Any = ...
) -> Tensor:
    """Swap the halves of a spectrum back: the inverse of `fftshift`."""

def ihfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Inverse of `hfft`: half of the signal of a real spectrum, of one dimension."""

def ihfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse of `hfft2`: half of the signal of a real spectrum, of two dimensions."""

def ihfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse of `hfftn`: half of the signal of a real spectrum, of several dimensions."""

def irfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Inverse of `rfft`: real numbers from half of their Fourier transform, of one dimension."""

def irfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse of `rfft2`: real numbers from half of their Fourier transform, of two dimensions."""

def irfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Inverse of `rfftn`: real numbers from half of their Fourier transform, of several dimensions."""

def rfft(
    input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Half of the Fourier transform of real numbers: the rest is its conjugate, of one dimension."""

def rfft2(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = ...,
    norm: str | None = None,
    *,
    axis: Sequence[int] = ...,
    out: Any = ...,
) -> Tensor:
    """Half of the Fourier transform of real numbers: the rest is its conjugate, of two dimensions."""

def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Frequencies of the elements of what `rfft` returns."""

def rfftn(
    input: Any,
    s: Sequence[int] | None = None,
    dim: Sequence[int] | None = None,
    norm: str | None = None,
    *,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Half of the Fourier transform of real numbers: the rest is its conjugate, of several dimensions."""

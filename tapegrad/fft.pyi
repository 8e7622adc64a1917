"""Discrete Fourier transforms, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Sequence
from typing import Any

from tapegrad.tensor import Tensor

__all__ = ["fftshift", "ifftshift"]  # fmt: skip

def fftshift(input: Any, dim: int | Sequence[int] | None = None) -> Tensor:
    """Swap the halves of a spectrum, so that frequency 0 stands in the middle."""

def ifftshift(input: Any, dim: int | Sequence[int] | None = None) -> Tensor:
    """Swap the halves of a spectrum back: the inverse of `fftshift`."""

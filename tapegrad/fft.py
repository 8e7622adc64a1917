"""Discrete Fourier transforms, with PyTorch's names."""

from tapegrad.ops.table import public as _public

__getattr__, __dir__ = _public.contents(_public.FFT)
__all__ = list(__dir__())

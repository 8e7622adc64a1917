"""Discrete Fourier transforms, with PyTorch's names."""

from tapegrad.ops.table import public as _public

_functions = _public.contents(_public.FFT)
__all__ = list(_functions)
globals().update(_functions)

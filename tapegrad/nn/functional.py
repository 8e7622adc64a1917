"""Functions of neural networks, with PyTorch's names."""

from tapegrad.ops.table import public as _public

__all__ = list(_public.contents(_public.FUNCTIONAL))
globals().update(_public.contents(_public.FUNCTIONAL))

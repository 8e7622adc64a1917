"""Functions of neural networks, with PyTorch's names."""

from tapegrad.ops.table import public as _public

_functions = _public.contents(_public.FUNCTIONAL)
__all__ = list(_functions)
globals().update(_functions)

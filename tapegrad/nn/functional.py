"""Functions of neural networks, with PyTorch's names."""

from tapegrad.ops.table import public as _public

__getattr__, __dir__ = _public.contents(_public.FUNCTIONAL)
__all__ = list(__dir__())

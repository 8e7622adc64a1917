"""Functions of neural networks, with PyTorch's names."""

from tapegrad.ops.table import public as _public
from tapegrad.ops.table import scope as _scope

__getattr__, __dir__ = _scope.contents(_public.FUNCTIONAL)
__all__ = list(__dir__())

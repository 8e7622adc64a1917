"""Special functions, with PyTorch's and SciPy's names."""

from tapegrad.ops.table import public as _public

__getattr__, __dir__ = _public.contents(_public.SPECIAL)
__all__ = list(__dir__())

"""Special functions, with PyTorch's and SciPy's names."""

from tapegrad.ops.table import public as _public

_functions = _public.contents(_public.SPECIAL)
__all__ = list(_functions)
globals().update(_functions)

"""Linear algebra, with PyTorch's names."""

from tapegrad.errors import LinAlgError
from tapegrad.ops.table import public as _public

_functions = _public.contents(_public.LINALG)
__all__ = ["LinAlgError"]
__all__ += list(_functions)
globals().update(_functions)

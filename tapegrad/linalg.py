"""Linear algebra, with PyTorch's names."""

from tapegrad.errors import LinAlgError
from tapegrad.ops.table import public as _public

__all__ = ["LinAlgError"]
__all__ += list(_public.contents(_public.LINALG))
globals().update(_public.contents(_public.LINALG))

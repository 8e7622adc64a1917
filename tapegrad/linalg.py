"""Linear algebra, with PyTorch's names."""

from tapegrad.errors import LinAlgError
from tapegrad.ops.table import public as _public

__getattr__, _names = _public.contents(_public.LINALG)
__all__ = ["LinAlgError"]
__all__ += list(_names())


def __dir__() -> list[str]:
    return __all__

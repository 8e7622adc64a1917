"""Linear algebra, with PyTorch's names."""

from typing import TYPE_CHECKING

from tapegrad.errors import LinAlgError
from tapegrad.ops.table import public as _public
from tapegrad.ops.table import scope as _scope

_functions = _public.contents(_public.LINALG)
__all__ = ["LinAlgError"]
__all__ += list(_functions)
globals().update(_functions)
if not TYPE_CHECKING:  # for type checkers there is nothing else
    __getattr__ = _scope.module_getattr(_public.LINALG)

"""Linear algebra, with PyTorch's names."""

from tapegrad.errors import LinAlgError
from tapegrad.ops.matrices import eigh, inv, solve

__all__ = ["LinAlgError", "eigh", "inv", "solve"]

for _function in (eigh, inv, solve):
    _function.__module__ = __name__  # where they are found

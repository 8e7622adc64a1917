"""Linear algebra, with PyTorch's names."""

from tapegrad.errors import LinAlgError
from tapegrad.ops.matrices import eigh, inv, solve

__all__ = ["LinAlgError", "eigh", "inv", "solve"]

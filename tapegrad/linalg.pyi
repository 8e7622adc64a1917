"""Linear algebra, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from typing import Any

from tapegrad.errors import LinAlgError as LinAlgError
from tapegrad.ops.eigen import Eigh
from tapegrad.tensor import Tensor

__all__ = ["LinAlgError", "inv", "solve", "eigh"]  # fmt: skip

def inv(A: Any) -> Tensor:
    """Inverses of square matrices."""

def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """Solutions of systems of linear equations with square matrices, :math:`A X = B`."""

def eigh(A: Any, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""

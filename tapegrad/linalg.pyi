"""Linear algebra, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import DTypeLike

from tapegrad.errors import LinAlgError as LinAlgError
from tapegrad.ops.cholesky import CholeskyEx
from tapegrad.ops.determinants import LinalgSlogdet
from tapegrad.ops.eigen import Eigh
from tapegrad.ops.eigenvalues import Eig
from tapegrad.ops.inverses import InvEx, SolveEx
from tapegrad.ops.ldl import LDLFactors, LDLFactorsEx
from tapegrad.ops.lu import LU, LUFactors, LUFactorsEx
from tapegrad.ops.pseudoinverses import Lstsq
from tapegrad.ops.qr import QR
from tapegrad.ops.svd import LinalgSVD
from tapegrad.tensor import Tensor

__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_sylvester", "solve_triangular", "sqrtm", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]  # fmt: skip

def cholesky(A: Any = ..., upper: bool = False, *, input: Any = ..., out: Any = ...) -> Tensor:
    """Cholesky factors of symmetric or Hermitian positive-definite matrices, :math:`A = L L^H`."""

def cholesky_ex(
    A: Any = ..., *, upper: bool = False, check_errors: bool = False, input: Any = ..., out: Any = ...
) -> CholeskyEx:
    """Cholesky factors, as by `cholesky`, and whether there are any."""

def cond(A: Any = ..., p: float | str | None = None, *, input: Any = ..., out: Any = ...) -> Tensor:
    """Condition numbers of matrices: the norm, times that of the inverse."""

def cross(input: Any, other: Any, *, dim: int = -1, axis: int = ..., out: Any = ...) -> Tensor:
    """Cross products of vectors of three elements."""

def det(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Return the determinants of square matrices."""

def diagonal(
    A: Any = ..., *, offset: int = 0, dim1: int = -2, dim2: int = -1, input: Any = ..., out: Any = ...
) -> Tensor:
    """Diagonals of matrices, as views; see `tapegrad.diagonal`."""

def eig(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Eig:
    """Eigenvalues and eigenvectors of square matrices."""

def eigh(A: Any = ..., UPLO: str = "L", *, input: Any = ..., out: Any = ...) -> Eigh:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""

def eigvals(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Eigenvalues of square matrices; see `eig`."""

def eigvalsh(A: Any = ..., UPLO: str = "L", *, input: Any = ..., out: Any = ...) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order; see `eigh`."""

def expm(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Exponentials of square matrices."""

def householder_product(A: Any = ..., tau: Any = ..., *, input: Any = ..., input2: Any = ..., out: Any = ...) -> Tensor:
    """First columns of a product of Householder reflections :math:`I - \\tau_k v_k v_k^H`."""

def inv(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Inverses of square matrices."""

def inv_ex(A: Any = ..., *, check_errors: bool = False, input: Any = ..., out: Any = ...) -> InvEx:
    """Inverses of square matrices, and whether there are any."""

def ldl_factor(A: Any = ..., *, hermitian: bool = False, input: Any = ..., out: Any = ...) -> LDLFactors:
    """Factors L and D of symmetric or Hermitian matrices, in one matrix; see `ldl_factor_ex`."""

def ldl_factor_ex(
    A: Any = ..., *, hermitian: bool = False, check_errors: bool = False, input: Any = ..., out: Any = ...
) -> LDLFactorsEx:
    """Factors L and D of symmetric or Hermitian matrices, in one matrix; and whether one is singular."""

def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = ...) -> Tensor:
    """Solutions of :math:`A X = B` with the factors of :math:`A` by `ldl_factor`."""

def lstsq(
    A: Any = ...,
    B: Any = ...,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    input: Any = ...,
    out: Any = ...,
) -> Lstsq:
    """Solutions of least squares: the X of smallest norm that minimises :math:`\\lVert A X - B \\rVert`."""

def lu(A: Any = ..., *, pivot: bool = True, input: Any = ..., out: Any = ...) -> LU:
    """LU decomposition: :math:`A = P L U` with a permutation P, and triangles L and U."""

def lu_factor(A: Any = ..., *, pivot: bool = True, input: Any = ..., out: Any = ...) -> LUFactors:
    """LU factors with exchanges of rows, in one matrix; see `lu_factor_ex`."""

def lu_factor_ex(
    A: Any = ..., *, pivot: bool = True, check_errors: bool = False, input: Any = ..., out: Any = ...
) -> LUFactorsEx:
    """LU factors with exchanges of rows, in one matrix; and whether a matrix is singular."""

def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = ...) -> Tensor:
    """Solutions of :math:`A X = B` with the factors of :math:`A` by `lu_factor`."""

def matmul(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

def matrix_exp(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Exponentials of square matrices."""

def matrix_norm(
    A: Any = ...,
    ord: float | str = "fro",
    dim: tuple[int, ...] = ...,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    input: Any = ...,
    axis: tuple[int, ...] = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Norms of matrices."""

def matrix_power(A: Any = ..., n: int = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Powers of square matrices, by products of squares."""

def matrix_rank(
    A: Any = ...,
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    input: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Ranks of matrices: how many singular values are larger than a tolerance. There is no gradient."""

def multi_dot(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Product of several matrices, in the order that takes the fewest multiplications; see `matmul`."""

def norm(
    A: Any = ...,
    ord: float | str | None = None,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    input: Any = ...,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Norms of vectors or matrices, by the number of dimensions: see `vector_norm` and `matrix_norm`."""

def pinv(
    A: Any = ...,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
    input: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Pseudoinverses of matrices, after Moore and Penrose."""

def qr(A: Any = ..., mode: str = "reduced", *, input: Any = ..., out: Any = ...) -> QR:
    """QR decomposition: :math:`A = Q R` with orthonormal columns of Q and an upper triangle R."""

def slogdet(A: Any = ..., *, input: Any = ..., out: Any = ...) -> LinalgSlogdet:
    """Signs of determinants, and logarithms of their absolute values."""

def solve(A: Any = ..., B: Any = ..., *, left: bool = True, input: Any = ..., out: Any = ...) -> Tensor:
    """Solutions of systems of linear equations with square matrices, :math:`A X = B`."""

def solve_ex(
    A: Any = ..., B: Any = ..., *, left: bool = True, check_errors: bool = False, input: Any = ..., out: Any = ...
) -> SolveEx:
    """Solutions of systems of linear equations, as by `solve`, and whether there are any."""

def solve_sylvester(A: Any = ..., B: Any = ..., Q: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Solutions of Sylvester's equation :math:`A X + X B = Q`."""

def solve_triangular(
    A: Any = ...,
    B: Any = ...,
    *,
    upper: bool = ...,
    left: bool = True,
    unitriangular: bool = False,
    input: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Solutions of systems of linear equations with triangular matrices, :math:`A X = B`."""

def sqrtm(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Principal square roots of square matrices: :math:`X X = A`."""

def svd(
    A: Any = ..., full_matrices: bool = True, *, driver: str | None = None, input: Any = ..., out: Any = ...
) -> LinalgSVD:
    """Singular values and vectors: :math:`A = U \\Sigma V^H`."""

def svdvals(A: Any = ..., *, driver: str | None = None, input: Any = ..., out: Any = ...) -> Tensor:
    """Singular values of matrices, in descending order; see `svd`."""

def tensorinv(A: Any = ..., ind: int = 2, *, input: Any = ..., out: Any = ...) -> Tensor:
    """Inverse of a tensor as a function of tensors by `tensordot`."""

def tensorsolve(
    A: Any = ...,
    B: Any = ...,
    dims: Sequence[int] | None = None,
    *,
    input: Any = ...,
    axis: Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Solution of ``tensordot(A, X, X.ndim) = B``."""

def vander(x: Any, N: int | None = None, *, out: Any = ...) -> Tensor:
    """Vandermonde's matrices: the powers 0 to N - 1 of each element, in a row."""

def vecdot(x: Any, y: Any, *, dim: int = -1, axis: int = ..., out: Any = ...) -> Tensor:
    """Products of vectors along a dimension; those of `x` are conjugated, as in `vdot`."""

def vector_norm(
    x: Any,
    ord: float = 2,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Norms of vectors: :math:`(\\sum |x|^p)^{1/p}`, computed without overflow."""

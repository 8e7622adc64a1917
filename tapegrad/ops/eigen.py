"""Op: eigenvalues and eigenvectors of Hermitian matrices, by LAPACK.

Its rule is that of Giles, "An extended collection of matrix derivative results" (2008), made of ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.forward import spectra
from tapegrad.forward.matrices import have_kernels
from tapegrad.ops.lapack import are_apart, diagonal_mask, seen, untouched
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import computed
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import distinct, graded
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class Eigh(NamedTuple):
    """The results of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _eigh_forward(x: Any, uplo: Any) -> Any:
    try:
        if have_kernels(x):
            return spectra.eigh(x, uplo == "U")
        return computed("eigh_lo" if uplo == "L" else "eigh_up", x, lambda: np.linalg.eigh(x, uplo))
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.eigh: The algorithm failed to converge ({error})") from None


def _eigh_rule(ct: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = ct
    conjugates = adjoint(eigenvectors)
    if untouched(of_vectors):
        return (xp.matmul(eigenvectors * xp.unsqueeze(of_values, -2), conjugates),)
    turns = xp.matmul(conjugates, of_vectors)
    back = adjoint(turns)
    gaps = xp.unsqueeze(eigenvalues, -2) - xp.unsqueeze(eigenvalues, -1)
    still = diagonal = diagonal_mask(eigenvalues.shape[-1])
    if not are_apart(eigenvalues):
        # Equal eigenvalues whose vectors have no cotangent contribute 0; otherwise the derivative does not exist.
        one, other, distances = seen(turns, back, gaps)
        still = diagonal | ((distances == 0) & (one == 0) & (other == 0))
    slopes = 0.5 * (turns - back) / xp.where(still, 1.0, gaps)
    slopes = xp.where(diagonal, xp.unsqueeze(of_values, -2), slopes)
    return (xp.matmul(xp.matmul(eigenvectors, slopes), conjugates),)


def _of_hermitian(x: Any, **attrs: Any) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, and a matrix that does not depend on the phases of eigenvectors: samples can be compared."""
    x = square_matrices("linalg.eigh", "A", x, 1)
    values, vectors = eigh((x + adjoint(x)) * 0.5, **attrs)
    weights = np.arange(1.0, x.shape[-1] + 1).astype(values.dtype)
    return values, xp.matmul(vectors * weights, adjoint(vectors))


def _eigh_oracle(x: Any, **attrs: Any) -> Any:
    values, vectors = np.linalg.eig((x + x.conj().swapaxes(-1, -2)) * 0.5)
    order = np.argsort(values.real, -1)
    rank = np.argsort(order, -1) + 1.0
    found = (vectors * rank[..., None, :]) @ np.linalg.inv(vectors)
    found = found if np.iscomplexobj(x) else found.real  # NumPy 2.5 finds complex eigenvectors of real matrices, too
    return np.concatenate([np.take_along_axis(values.real, order, -1).ravel(), found.ravel()]).astype(x.dtype)


@public(namespaces=(LINALG,), functions=("linalg.eigh",))
@operation(
    "eigh",
    forward=_eigh_forward,
    vjp=_eigh_rule,
    family="linalg",
    kinks=(graded,),
    attrs=("uplo",),
    results=("eigenvalues", "eigenvectors"),
    result_type=return_type(Eigh, "linalg_eigh"),
    node_name="LinalgEighBackward0",
    call=_of_hermitian,
    oracle=_eigh_oracle,
    samples=tuple(
        Sample((shape,), attrs, values=(distinct,))
        for shape, attrs in (((1, 1), {}), ((3, 3), {}), ((3, 3), {"UPLO": "U"}), ((2, 3, 3), {}), ((0, 2, 2), {}))
    ),
    errors=(
        ErrorSample(lambda: xp.eigh(np.ones((2, 3))), RuntimeError, f"linalg.eigh: {TWO_BY_THREE}"),
        ErrorSample(
            lambda: xp.eigh(np.eye(2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"
        ),
    ),
)  # fmt: skip
def eigh(A: Any, UPLO: str = "L") -> Bound:  # PyTorch's names
    r"""Eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.
    UPLO : {"L", "U"}
        Which triangle is read.

    Returns
    -------
    named tuple of Tensor
        ``eigenvalues``, (..., n), real and in ascending order, and ``eigenvectors``, (..., n, n): column j belongs to
        eigenvalue j.

    Raises
    ------
    LinAlgError
        If LAPACK does not converge.
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`A = V \Lambda V^H` and the part of :math:`V^H \bar V` that is skew-Hermitian,
    :math:`S = (V^H \bar V - \bar V^H V)/2`, :math:`\bar A = V (\bar\Lambda + F \circ S) V^H`,
    :math:`F_{ij} = 1/(\lambda_j - \lambda_i)` (Giles 2008, 3.1). It is Hermitian, as if both triangles were read. Signs
    and phases of eigenvectors are arbitrary, so a function of them has a derivative only if it does not depend on them.

    Where eigenvalues are equal, their eigenvectors have no derivative: what depends on these makes it nan or infinite,
    as in PyTorch. Of eigenvalues, and of the eigenvectors of the others, it stays finite (PyTorch: nan); it is right
    for functions that treat equal eigenvalues alike, e.g. a sum over all of them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[2.0, 1.0], [1.0, 2.0]], requires_grad=True)
    >>> values, vectors = tg.linalg.eigh(x)
    >>> values.tolist()
    [1.0, 3.0]
    >>> values[1].backward()
    >>> x.grad
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    x = square_matrices("linalg.eigh", "A", A, 1)
    chosen = str(UPLO).upper()
    if chosen not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}; see linalg.eigh()")
    return Bound((x,), {"uplo": chosen})

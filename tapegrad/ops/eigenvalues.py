"""Op: eigenvalues and eigenvectors of any square matrices, by LAPACK; eigenvalues alone.

The rule is that of Giles, "An extended collection of matrix derivative results" (2008), for eigenvectors of length 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.forward import spectra
from tapegrad.forward.matrices import have_kernels
from tapegrad.ops.eigen import eigh
from tapegrad.ops.lapack import decomposition, diagonal_mask, not_converged, not_matrices, untouched
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import distinct
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class Eig(NamedTuple):
    """The results of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _forward(x: Any) -> Any:
    if have_kernels(x):
        return spectra.eig(x)
    values, vectors = np.linalg.eig(x)
    dtype = np.result_type(x.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _rule(ct: Any, eigenvalues: Any, eigenvectors: Any) -> tuple[Any]:
    of_values, of_vectors = ct
    conjugates = adjoint(eigenvectors)
    if untouched(of_vectors):
        return (xp.solve(conjugates, xp.unsqueeze(of_values, -1) * conjugates),)
    turns = xp.matmul(conjugates, of_vectors)
    eye = diagonal_mask(eigenvalues.shape[-1])
    # Vectors have length 1: what is along one of them has no effect.
    turns = turns - xp.matmul(
        conjugates, eigenvectors * xp.unsqueeze(xp.sum(xp.where(eye, xp.real(turns), 0.0), -2), -2)
    )
    gaps = xp.conj(xp.unsqueeze(eigenvalues, -2) - xp.unsqueeze(eigenvalues, -1))
    still = xp.logical_or(eye, xp.logical_and(gaps == 0, turns == 0))  # as in `eigh`
    slopes = xp.where(eye, xp.unsqueeze(of_values, -2), turns / xp.where(still, 1.0, gaps))
    return (xp.solve(conjugates, xp.matmul(slopes, conjugates)),)


def _phase_free(values: Any, vectors: Any) -> tuple[Any, ...]:
    """Return what does not depend on the order of eigenvalues, and on phases of vectors."""
    turned = xp.matmul(adjoint(vectors), vectors)
    cubes = xp.sum(values * values * values, -1)
    return xp.real(cubes), xp.imag(cubes), xp.sum(xp.real(turned * xp.conj(turned)), (-2, -1))


def _oracle(x: Any) -> Any:
    import scipy.linalg

    cubes = np.trace(x @ x @ x, axis1=-2, axis2=-1)
    lengths = []
    for own in x.reshape(int(np.prod(x.shape[:-2])), *x.shape[-2:]):
        vectors = scipy.linalg.eig(own.astype(complex))[1]
        lengths.append((abs(vectors.conj().T @ vectors) ** 2).sum())
    return np.concatenate([np.ravel(cubes.real), np.ravel(cubes.imag), lengths]).astype(x.real.dtype)


@decomposition(
    "eig",
    ("linalg.eig",),
    forward=not_converged("linalg.eig", _forward),
    vjp=_rule,
    results=("eigenvalues", "eigenvectors"),
    result_type=return_type(Eig, "linalg_eig"),
    kinks=(distinct,),
    node_name="LinalgEigBackward0",
    call=lambda x: _phase_free(*xp.eig(x)),
    oracle=_oracle,
    samples=tuple(Sample((shape,), {}, values=(distinct,)) for shape in ((1, 1), (3, 3), (2, 3, 3), (0, 2, 2))),
    errors=(
        ErrorSample(lambda: xp.eig(np.ones((2, 3))), RuntimeError, f"linalg.eig: {TWO_BY_THREE}"),
        *not_matrices(lambda x: xp.eig(x), "linalg.eig"),
    ),
)
def eig(A: Any) -> Bound:
    r"""Eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    named tuple of Tensor
        ``eigenvalues``, (..., n), and ``eigenvectors``, (..., n, n), both complex: column j is of length 1 and belongs
        to eigenvalue j.

    Raises
    ------
    LinAlgError
        If LAPACK does not converge.
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`A = V \Lambda V^{-1}`,
    :math:`\bar A = V^{-H} (\bar\Lambda + (V^H \bar V - V^H V\, \mathrm{Re\,diag}(V^H \bar V)) / E) V^H`,
    :math:`E_{ij} = (\lambda_j - \lambda_i)^*` (Giles 2008, 3.1). Phases of eigenvectors are arbitrary, so a function of
    them has a derivative only if it does not depend on them. Where eigenvalues are equal, their vectors have none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.eig(tg.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return Bound((square_matrices("linalg.eig", "A", A, 1),))


@public(namespaces=(LINALG,), functions=("linalg.eigvals",))
@composite(
    (Sample(((3, 3),), values=(distinct,)), Sample(((2, 3, 3),), values=(distinct,))),
    lambda A: np.trace(A @ A @ A, axis1=-2, axis2=-1).astype(np.result_type(A.dtype, np.complex64)),
    call=lambda function, A: (function(A) ** 3).sum(-1),
    kinks=(distinct,),
)
def eigvals(A: Any) -> Tensor:
    """Eigenvalues of square matrices; see `eig`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)

    Returns
    -------
    Tensor, (..., n)
        Complex.

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.eigvals(tg.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    values: Tensor = eig(square_matrices("linalg.eigvals", "A", A, 1))[0]
    return values


@public(namespaces=(LINALG,), functions=("linalg.eigvalsh",))
@composite(
    tuple(Sample((shape,), attrs, values=(distinct,)) for shape, attrs in (((3, 3), {}), ((2, 3, 3), {"UPLO": "U"}))),
    lambda A, UPLO="L": np.linalg.eigvalsh((A + A.conj().swapaxes(-1, -2)) / 2, UPLO),
    call=lambda function, A, **attrs: function((A + A.conj().swapaxes(-1, -2)) * 0.5, **attrs),
    kinks=(distinct,),
)
def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    r"""Eigenvalues of symmetric or Hermitian matrices, in ascending order; see `eigh`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    UPLO : {"L", "U"}
        Which triangle is read.

    Returns
    -------
    Tensor, (..., n)
        Real.

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`A = V \Lambda V^H`, :math:`\bar A = V \bar\Lambda V^H`, also of equal eigenvalues.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.eigvalsh(tg.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    values: Tensor = eigh(square_matrices("linalg.eigvalsh", "A", A, 1), UPLO)[0]
    return values

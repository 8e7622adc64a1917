"""Ops: exponentials and square roots of matrices, by Padé approximants and Schur forms; Sylvester's equation; powers.

The derivative of a function of matrices in a direction is a block of its value at a triangle of blocks (R. Mathias, "A
Chain Rule for Matrix Functions and Applications", 1996; N. J. Higham, "Functions of Matrices", 2008, section 3.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.lapack import check_alike, decomposition, matrices, not_matrices, triangle
from tapegrad.ops.lapack import identity as eye_of
from tapegrad.ops.linalg import matmul
from tapegrad.ops.matrices import TWO_BY_THREE, inv, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import as_list
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, TOP, public
from tapegrad.ops.table.structural import integer
from tapegrad.ops.table.values import invertible, positive_definite
from tapegrad.tensor import Tensor


def _expm(x: Any) -> Any:
    import scipy.linalg  # at the first call: it takes long to import

    return np.ascontiguousarray(scipy.linalg.expm(x)) if x.size else np.empty(x.shape, x.dtype)


def _expm_rule(ct: Any, x: Any) -> Any:
    n, a = x.shape[-1], adjoint(x)
    zeros = np.zeros(x.shape, x.dtype)
    blocks = xp.cat([xp.cat([a, ct], -1), xp.cat([zeros, a], -1)], -2)
    return xp.matrix_exp(blocks)[..., :n, n:]


def _by_series(x: Any) -> Any:
    """Return exponentials by Taylor's series of what is scaled by a power of 2."""
    term = total = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for k in range(1, 25):
        term = term @ (x / 64) / k
        total = total + term
    for _ in range(6):
        total = total @ total
    return total


@decomposition(
    "matrix_exp",
    (),
    {"namespaces": (LINALG, TOP), "method": True},
    forward=_expm,
    vjp=(_expm_rule,),
    node_name="LinalgMatrixExpBackward0",
    oracle=_by_series,
    samples=tuple(Sample((shape,)) for shape in ((3, 3), (2, 2, 2), (0, 0), (0, 2, 2))),
    errors=(
        ErrorSample(lambda: xp.matrix_exp(np.ones((2, 3))), RuntimeError, f"linalg.matrix_exp: {TWO_BY_THREE}"),
        *not_matrices(lambda x: xp.matrix_exp(x), "linalg.matrix_exp"),
    ),
)
def matrix_exp(A: Any) -> Bound:
    r"""Exponentials of square matrices.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    By scaling and squaring of a Padé approximant (A. H. Al-Mohy and N. J. Higham, "A New Scaling and Squaring Algorithm
    for the Matrix Exponential", 2009). Derivative: the upper right block of
    :math:`\exp\begin{pmatrix} A^H & \bar X \\ 0 & A^H \end{pmatrix}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return Bound((square_matrices("linalg.matrix_exp", "A", A, 1),))


# Square roots and Sylvester's equation -----------------------------------------------------------------------------


def _sylvester_forward(a: Any, b: Any, q: Any) -> Any:
    import scipy.linalg

    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], q.shape[:-2])
    out = np.empty((*batch, *q.shape[-2:]), q.dtype)
    if out.size:
        flat = out.reshape(-1, *q.shape[-2:])
        for place, own in enumerate(zip(as_list(a, batch), as_list(b, batch), as_list(q, batch), strict=True)):
            flat[place] = scipy.linalg.solve_sylvester(*own)
    return out


def _sylvester_rule(ct: Any, a: Any, b: Any, out: Any, wanted: tuple[bool, bool, bool]) -> tuple[Any, Any, Any]:
    of_q = xp.solve_sylvester(adjoint(a), adjoint(b), ct)
    of_a = -xp.matmul(of_q, adjoint(out)) if wanted[0] else None
    return of_a, -xp.matmul(adjoint(out), of_q) if wanted[1] else None, of_q


def _by_kronecker(a: Any, b: Any, q: Any) -> Any:
    m, n = q.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], q.shape[:-2])
    out = np.empty((*batch, m, n), q.dtype)
    for own, *factors in zip(out.reshape(-1, m, n), *(as_list(x, batch) for x in (a, b, q)), strict=True):
        matrix = np.kron(factors[0], np.eye(n)) + np.kron(np.eye(m), factors[1].T)
        own[...] = np.linalg.solve(matrix, factors[2].ravel()).reshape(m, n)
    return out


@decomposition(
    "solve_sylvester",
    operands=("a", "b", "q"),
    forward=_sylvester_forward,
    vjp=_sylvester_rule,
    oracle=_by_kronecker,
    samples=tuple(
        Sample(tuple(shapes), values=(positive_definite, positive_definite, None))
        for shapes in (((3, 3), (2, 2), (3, 2)), ((2, 3, 3), (3, 3), (2, 3, 3)), ((2, 2), (2, 2), (0, 2, 2)))
    ),
    errors=(
        ErrorSample(
            lambda: xp.solve_sylvester(np.eye(2), np.eye(3), np.ones((3, 2))), RuntimeError,
            "linalg.solve_sylvester: Incompatible shapes of A, B and Q for the equation AX + XB = Q",
        ),
    ),
)  # fmt: skip
def solve_sylvester(A: Any, B: Any, Q: Any) -> Bound:
    r"""Solutions of Sylvester's equation :math:`A X + X B = Q`.

    Parameters
    ----------
    A : Tensor or array, (..., m, m)
        Of a floating point or complex dtype.
    B : Tensor or array, (..., n, n)
    Q : Tensor or array, (..., m, n)
        All of the same dtype, with batches that broadcast.

    Returns
    -------
    Tensor, (..., m, n)

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Notes
    -----
    By Schur forms (R. H. Bartels and G. W. Stewart, 1972). It has one solution if no eigenvalue of A is one of -B.
    Derivatives: :math:`A^H \bar Q + \bar Q B^H = \bar X`, :math:`\bar A = -\bar Q X^H`, :math:`\bar B = -X^H \bar Q`.
    PyTorch has no such function; SciPy's is `scipy.linalg.solve_sylvester`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.solve_sylvester(tg.eye(2), tg.eye(2), tg.ones(2, 2))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    a, b = square_matrices("linalg.solve_sylvester", "A", A, 1), square_matrices("linalg.solve_sylvester", "B", B, 2)
    q = matrices("linalg.solve_sylvester", "Q", Q, 3)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise RuntimeError(
            f"linalg.solve_sylvester: Incompatible shapes of A, B and Q for the equation AX + XB = Q: "
            f"{list(a.shape)}, {list(b.shape)} and {list(q.shape)}"
        )
    for one, other, names in ((a, b, "A and B"), (a, q, "A and Q"), (b, q, "B and Q")):
        check_alike("linalg.solve_sylvester", one, other, names)
    return Bound((a, b, q))


def _sqrtm(x: Any) -> Any:
    import scipy.linalg

    if not x.size:
        return np.empty(x.shape, x.dtype)
    roots = np.stack([scipy.linalg.sqrtm(own) for own in as_list(x)]).reshape(x.shape)
    if x.dtype.kind != "c" and roots.dtype.kind == "c":
        return np.full(x.shape, np.nan, x.dtype)
    return roots.astype(x.dtype, copy=False)


def _sqrtm_rule(ct: Any, out: Any) -> Any:
    root = adjoint(out)
    return xp.solve_sylvester(root, root, ct)


def _newton(x: Any) -> Any:
    """Return square roots by the iteration of E. Denman and A. Beavers (1976)."""
    y, z = x, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for _ in range(30):
        y, z = (y + np.linalg.inv(z)) / 2, (z + np.linalg.inv(y)) / 2
    return y


@decomposition(
    "sqrtm",
    forward=_sqrtm,
    vjp=(_sqrtm_rule,),
    oracle=_newton,
    samples=tuple(Sample((shape,), values=(positive_definite,)) for shape in ((1, 1), (3, 3), (2, 3, 3), (0, 2, 2))),
    errors=(
        ErrorSample(lambda: xp.sqrtm(np.ones((2, 3))), RuntimeError, f"linalg.sqrtm: {TWO_BY_THREE}"),
        *not_matrices(lambda x: xp.sqrtm(x), "linalg.sqrtm"),
    ),
)
def sqrtm(A: Any) -> Bound:
    r"""Principal square roots of square matrices: :math:`X X = A`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype, without negative eigenvalues if it is real: such a root is complex, and
        the results are nan.

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    By Schur forms (N. J. Higham, "Functions of Matrices", 2008, chapter 6). Derivative: the solution of Sylvester's
    equation :math:`X^H \bar A + \bar A X^H = \bar X`. PyTorch has no such function; SciPy's is `scipy.linalg.sqrtm`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.sqrtm(tg.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    return Bound((square_matrices("linalg.sqrtm", "A", A, 1),))


# Powers ------------------------------------------------------------------------------------------------------------


def _power_as_numpy(a: Any, n: int) -> Any:
    return matrix_power(a, n)


@public(namespaces=(LINALG, TOP), method=True, functions=("linalg.matrix_power",),
        adapter=_power_as_numpy)  # fmt: skip
@composite(
    tuple(Sample(((3, 3),), {"n": n}, values=(invertible,)) for n in (0, 1, 2, 3, 6, -1, -2)),
    np.linalg.matrix_power,
    kinks=(invertible,),
)
def matrix_power(A: Any, n: int) -> Tensor:
    r"""Powers of square matrices, by products of squares.

    Formula: :math:`Y = A A \cdots A` with n factors; for negative n of the inverse. Derivative: as of `matmul`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    n : int
        Negative powers are those of the inverse.

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    LinAlgError
        If `n` is negative and a matrix is singular.
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.matrix_power(tg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    x, power = square_matrices("linalg.matrix_power", "A", A, 1), integer("linalg.matrix_power", "n", n)
    if power == 0:
        size = x.shape[-1]
        return xp.where(triangle(size, size, True, size), x, eye_of(size, x.dtype))  # type: ignore[no-any-return]
    if power < 0:
        x, power = inv(x), -power
    result: Any = None
    while True:
        if power & 1:
            result = x if result is None else matmul(result, x)
        power >>= 1
        if not power:
            return result if n != 1 else xp.clone(result)  # type: ignore[no-any-return]
        x = matmul(x, x)

"""Composites: PyTorch's older functions of linear algebra, which have other arguments than those of the same names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.dtypes import DTypeLike
from tapegrad.ops.crosses import cross as linalg_cross
from tapegrad.ops.crosses import powers_of
from tapegrad.ops.lu_solve import lu_solve as linalg_lu_solve
from tapegrad.ops.lu_solve import solve_with_factors, without_pivots
from tapegrad.ops.matrix_norms import matrix_norm
from tapegrad.ops.norms import norm_by_numpy, vector_norm
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.qr import QR
from tapegrad.ops.qr import qr as linalg_qr
from tapegrad.ops.svd import svd as linalg_svd
from tapegrad.ops.table.callers import into
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.values import KINKS, full_rank, identity, triangular
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


def warn_of_older(name: str, newer: str) -> None:
    """Warn as PyTorch does of functions that it will remove."""
    errors.warn(f"tapegrad.{name} is deprecated in favor of tapegrad.linalg.{newer}")


class SVD(NamedTuple):
    """The results of `tapegrad.svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


_qr, _svd = return_type(QR, "qr"), return_type(SVD, "svd")


@public(method=True)
@composite(
    (Sample(((3, 3),), values=(full_rank,)), Sample(((3, 2),), values=(full_rank,))),
    lambda input, some=True: abs(np.linalg.qr(input)[0]),
    call=lambda function, x, **attrs: abs(function(x, **attrs)[0]),
    kinks=(full_rank,),
    name="top.qr",
)
def qr(input: Any, some: bool = True) -> QR:
    """QR decomposition; see `tapegrad.linalg.qr`.

    Parameters
    ----------
    input : Tensor or array, (..., m, n)
    some : bool
        Whether it is reduced.

    Returns
    -------
    named tuple of Tensor
        ``Q`` and ``R``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.qr(tg.eye(3)).R.shape
    (3, 3)
    """
    warn_of_older("qr", "qr")
    return _qr(*linalg_qr(input, "reduced" if some else "complete"))


@public(method=True)
@composite(
    (Sample(((3, 3),), values=(full_rank,)),),
    lambda input, some=True: np.sqrt(np.linalg.eigvalsh(input.conj().swapaxes(-1, -2) @ input))[..., ::-1],
    call=lambda function, x, **attrs: function(x, **attrs)[1],
    kinks=(full_rank,),
    name="top.svd",
)
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> SVD:
    """Singular values and vectors; see `tapegrad.linalg.svd`.

    Parameters
    ----------
    input : Tensor or array, (..., m, n)
    some : bool
        Whether matrices are not full.
    compute_uv : bool
        If False, singular vectors are zeros.

    Returns
    -------
    named tuple of Tensor
        ``U``, ``S`` and ``V``, which is not transposed.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.svd(tg.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    u, s, vh = linalg_svd(input, compute_uv and not some)
    if compute_uv:
        return _svd(u, s, adjoint(vh))
    left, right = (from_array(np.zeros((*s.shape[:-1], n, n), u.dtype)) for n in (u.shape[-2], vh.shape[-1]))
    return _svd(left, s, right)


@public(method=True)
@composite(
    (Sample(((3, 2), (3, 3)), values=(None, triangular)),),
    lambda b, LU_data: solve_with_factors(LU_data, b),
    call=lambda function, b, packed: without_pivots(lambda packed, pivots, b: function(b, packed, pivots), packed, b),
    kinks=(identity,),
)
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """Solutions of linear systems with the factors by `tapegrad.linalg.lu_factor`; see `tapegrad.linalg.lu_solve`.

    Parameters
    ----------
    input : Tensor or array, (..., n, k)
        The right-hand sides.
    LU_data : Tensor or array, (..., n, n)
    LU_pivots : Tensor or array, (..., n)

    Examples
    --------
    >>> import tapegrad as tg
    >>> factors = tg.linalg.lu_factor(tg.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> tg.lu_solve(tg.tensor([[2.0], [4.0]]), *factors)
    tensor([[1.],
            [1.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, input)


@public(method=True)
@composite(
    (Sample(((2, 3),)), Sample(((2, 3),), {"p": 1, "dim": 0}), Sample(((2, 3),), {"p": np.inf, "keepdim": True})),
    lambda input, p="fro", dim=None, keepdim=False: norm_by_numpy(input, 2 if p == "fro" else p, dim, keepdim),
    kinks=KINKS[2:4],
)
def norm(
    input: Any,
    p: float | str | None = "fro",
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Norms of vectors; see `tapegrad.linalg.vector_norm`.

    Parameters
    ----------
    input : Tensor or array
        Of a floating point or complex dtype.
    p : number, "fro" or "nuc"
        The order; "fro" is 2. Only "nuc" is a norm of matrices.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all.
    keepdim : bool
        Keep them, with length 1.
    out : Tensor, optional
        What the result is written to.
    dtype : dtype, optional
        To compute in.

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.
    RuntimeError
        If the dtype is one of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.norm(tg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if out is not None:
        return into(out, "norm", norm, (input, p, dim, keepdim, None, dtype))  # type: ignore[no-any-return]
    if p == "nuc":
        x = as_operand(input, "norm", "input", 1)
        return matrix_norm(x, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim, dtype=dtype)  # type: ignore[arg-type]
    if p is None or p == "fro":
        p = 2
    elif isinstance(p, str):
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found: {p}; see norm()")
    if dtype is None:  # a name costs 30 ns
        return vector_norm(input, p, dim, keepdim)  # type: ignore[no-any-return]
    return vector_norm(input, p, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


@public(method=True)
@composite(
    (Sample(((2, 3), (2, 3)), {"dim": 1}), Sample(((3, 3), (3, 3)), {"dim": 0})),
    lambda input, other, dim: np.cross(input, other, axis=dim),
    name="top.cross",
)
def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """Cross products of vectors of three elements; see `tapegrad.linalg.cross`.

    Parameters
    ----------
    input, other : Tensor or array
        Of as many dimensions, which broadcast.
    dim : int, optional
        The dimension of the vectors; default the first of length 3, as in PyTorch, which advises to name it.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    x = as_operand(input, "cross", "input", 1)
    if dim is None:
        if 3 not in x.shape:
            raise RuntimeError(f"no dimension of size 3 in input; cross() got a tensor of shape {list(x.shape)}")
        errors.warn(
            "Using tapegrad.cross without specifying the dim arg is deprecated: it takes the first dimension of length "
            "3. Pass dim, or call tapegrad.linalg.cross, which takes the last."
        )
        dim = x.shape.index(3)
    return linalg_cross(x, other, dim=dim)  # type: ignore[no-any-return]


@public(functions=("vander",))
@composite(
    (Sample(((3,),)), Sample(((3,),), {"N": 2, "increasing": True})),
    lambda x, **attrs: np.vander(x, **attrs).astype(x.dtype),
    kinks=KINKS[2:4],  # as of `linalg.vander`
)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde's matrix: powers of each element in a row, from N - 1 down to 0.

    Formula: :math:`Y_{ij} = x_i^{N-1-j}`. Derivative: as of `pow`.

    Parameters
    ----------
    x : Tensor or array, (n,)
    N : int, optional
        Default n.
    increasing : bool
        Whether powers go from 0 up.

    Returns
    -------
    Tensor, (n, N)

    Raises
    ------
    RuntimeError
        If `x` is no vector.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.vander(tg.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    vector = as_operand(x, "vander", "x", 1)
    if vector.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor; vander() got {vector.ndim} dimensions")
    powers = powers_of(vector, N, "vander")
    return powers if increasing else xp.flip(powers, (-1,))

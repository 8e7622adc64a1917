"""Composites: the leading singular values and vectors of matrices, found in a random subspace.

N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness", arXiv:0909.4061, algorithm 5.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import sub
from tapegrad.ops.broadcasting import broadcast_to
from tapegrad.ops.generators import numpy_generator
from tapegrad.ops.lapack import matrices
from tapegrad.ops.linalg import matmul
from tapegrad.ops.older import SVD
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.qr import qr
from tapegrad.ops.reductions import mean
from tapegrad.ops.svd import svd
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.values import full_rank
from tapegrad.tensor import Tensor, from_array


def _values_of(function: Any, x: Any, **attrs: Any) -> Any:
    return function(x, **attrs)[1]


def _by_numpy(x: Any, q: int = 6, niter: int = 2, center: bool = False) -> Any:
    x = x - x.mean(-2, keepdims=True) if center else x
    return np.linalg.svd(x, compute_uv=False)[..., :q]


def _in_subspace(a: Tensor, q: int, niter: int) -> SVD:
    """Return the decomposition of what matrices map a random subspace to, after some iterations."""
    if a.shape[-2] < a.shape[-1]:
        u, s, v = _in_subspace(adjoint(a), q, niter)
        return SVD(v, s, u)
    start = numpy_generator(None).standard_normal((a.shape[-1], q)).astype(a.dtype)
    basis = qr(matmul(a, from_array(start))).Q
    for _ in range(niter):
        basis = qr(matmul(a, qr(matmul(adjoint(a), basis)).Q)).Q
    u, s, vh = svd(matmul(adjoint(basis), a), False)
    return SVD(matmul(basis, u), s, adjoint(vh))


@public()
@composite(
    (Sample(((4, 3),), {"q": 3}, (full_rank,)), Sample(((2, 3, 4),), {"q": 3, "niter": 1}, (full_rank,))),
    _by_numpy, call=_values_of, kinks=(full_rank,),
)  # fmt: skip
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> SVD:
    """Leading singular values and vectors of matrices, of about a rank.

    Derivative: as of `tapegrad.linalg.svd`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    q : int, optional
        How many, somewhat more than the rank.
    niter : int, optional
        How many iterations make the subspace better.
    M : Tensor or array, (..., m, n), optional
        Is subtracted, e.g. a mean.

    Returns
    -------
    named tuple of Tensor
        ``U``, ``S`` and ``V``, which is not transposed. Random numbers are drawn for them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.svd_lowrank(tg.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), q=2).S.round(decimals=6)
    tensor([4., 3.])
    """
    a = matrices("svd_lowrank", "A", A, 1)
    if M is not None:
        a = sub(a, broadcast_to(as_operand(M, "svd_lowrank", "M", 4), a.shape))
    return _in_subspace(a, 6 if q is None else q, 2 if niter is None else niter)


@public()
@composite(
    (Sample(((4, 3),), {"q": 3}, (full_rank,)), Sample(((4, 2),), {"q": 2, "center": False}, (full_rank,))),
    lambda A, q, center=True: _by_numpy(A, q, 2, center), call=_values_of, kinks=(full_rank,),
)  # fmt: skip
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """Principal components of rows, by `svd_lowrank`.

    Derivative: as of `tapegrad.linalg.svd`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        m samples of n numbers.
    q : int, optional
        How many components; default 6, or all if there are fewer.
    center : bool
        Whether the mean of the rows is subtracted.
    niter : int
        As of `svd_lowrank`.

    Returns
    -------
    named tuple of Tensor
        ``U``, ``S`` and ``V``, whose columns are the directions.

    Raises
    ------
    ValueError
        If there are not as many components, or `niter` is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.pca_lowrank(tg.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]), q=1).S
    tensor([1.4142])
    """
    a = matrices("pca_lowrank", "A", A, 1)
    least = min(a.shape[-2:])
    if q is None:
        q = min(6, least)
    elif not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _in_subspace(sub(a, mean(a, -2, True)) if center else a, q, niter)

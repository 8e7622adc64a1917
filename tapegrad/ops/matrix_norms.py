"""Composites: norms of matrices, and of differences; condition numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.ops.arithmetic import div, sub
from tapegrad.ops.casts import cast
from tapegrad.ops.creation import made
from tapegrad.ops.extrema import amax, amin
from tapegrad.ops.norms import vector_norm
from tapegrad.ops.permutations import movedim
from tapegrad.ops.reductions import kept_shape, sum
from tapegrad.ops.svd import svdvals
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import all_dims
from tapegrad.ops.table.values import KINKS, full_rank
from tapegrad.tensor import Tensor


def _matrix_norm_by_numpy(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return np.linalg.norm(A, ord, dim, keepdim)


def _largest(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the largest elements along dimensions; of none 0, without a gradient, as PyTorch does."""
    if all(x.shape[dim] for dim in dims):
        return amax(x, dims, keepdim)
    return made(np.asarray(np.sum(x._data, dims, keepdims=keepdim)), False)


def _matrix_norm_as_numpy(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return matrix_norm(x, ord, keepdim=keepdims)


@public(namespaces=(LINALG,), functions=("linalg.matrix_norm",),
        adapter=_matrix_norm_as_numpy)  # fmt: skip
@composite(
    tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (
            ((2, 3), {}), ((2, 3, 3), {"ord": "nuc"}), ((3, 2), {"ord": 2}), ((2, 3), {"ord": -2, "keepdim": True}),
            ((2, 3), {"ord": 1}), ((2, 3, 4), {"ord": -np.inf, "dim": (0, 2)}), ((3, 3), {"ord": np.inf}),
        )
    ),
    _matrix_norm_by_numpy,
    kinks=(full_rank,),
)  # fmt: skip
def matrix_norm(
    A: Any,
    ord: float | str = "fro",
    dim: tuple[int, ...] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Norms of matrices.

    Formula: :math:`y = \sqrt{\mathrm{tr}\, A^H A}` for "fro", the sum of the singular values for "nuc", the largest or
    smallest one for 2 and -2, the largest or smallest sum of :math:`|A_{ij}|` over a column for 1 and -1, over a row
    for inf and -inf.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    ord : {"fro", "nuc", inf, -inf, 1, -1, 2, -2}
        The root of the sum of squares; the sum of the singular values; the largest or smallest sum of absolute values
        of a row, or (1, -1) of a column; the largest or smallest singular value.
    dim : tuple of int
        The two dimensions of the matrices.
    keepdim : bool
        Keep them, with length 1.
    dtype : dtype, optional
        To compute in.

    Raises
    ------
    RuntimeError
        If there is no such norm, or the dtype is one of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.matrix_norm(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    x = as_operand(A, "linalg.matrix_norm", "A", 1)
    if x.ndim < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions; got {list(x.shape)}."
        )
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {x.dtype}; convert it first"
        )
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dim)}")
    first, last = all_dims("linalg.matrix_norm", x.ndim, dim)
    if dtype is not None:
        x = cast(x, dtype)
    if ord == "fro":
        return vector_norm(x, 2, (first, last), keepdim)  # type: ignore[no-any-return]
    if ord in ("nuc", 2, -2):
        values = svdvals(movedim(x, (first, last), (-2, -1)))
        found = sum(values, -1) if ord == "nuc" else _largest(values, (-1,), False) if ord == 2 else amin(values, -1)
        return found if not keepdim else xp.reshape(found, kept_shape(x.shape, (first, last)))
    if isinstance(ord, str) or abs(ord) not in (1, np.inf):
        raise RuntimeError(
            f"linalg.matrix_norm: Order {ord} not supported; use 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        )
    sums = vector_norm(x, 1, first if abs(ord) == 1 else last, True)
    return (_largest if ord > 0 else amin)(sums, (first, last), keepdim)


def _norm_by_numpy(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    return np.linalg.norm(A, ord, dim, keepdim)


def _norm_as_numpy(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return norm(x, ord, axis, keepdims)


@public(namespaces=(LINALG,), functions=("linalg.norm",),
        adapter=_norm_as_numpy)  # fmt: skip
@composite(
    (
        Sample(((2, 3),)), Sample(((3,),), {"ord": 3}), Sample(((2, 3),), {"ord": 1}),
        Sample(((2, 3, 4),), {"ord": "fro", "dim": (0, 2)}), Sample(((2, 3),), {"ord": np.inf, "dim": 1}),
    ),
    _norm_by_numpy, kinks=KINKS[2:4], name="linalg.norm",
)  # fmt: skip
def norm(
    A: Any,
    ord: float | str | None = None,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Norms of vectors or matrices, by the number of dimensions: see `vector_norm` and `matrix_norm`.

    Parameters
    ----------
    A : Tensor or array
        Of a floating point or complex dtype.
    ord : number, "fro" or "nuc", optional
        Default the root of the sum of squares.
    dim : int or tuple of int, optional
        Two are those of matrices, if there is an order.
    keepdim : bool
        Keep them, with length 1.
    dtype : dtype, optional
        To compute in.

    Raises
    ------
    IndexError
        If `A` does not have such a dimension.
    RuntimeError
        If there is no such norm, or the dtype is one of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    x = as_operand(A, "linalg.norm", "A", 1)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]
    dims = tuple(range(x.ndim)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if dim is None and x.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {x.ndim}D."
        )
    if len(dims) > 2:
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if len(dims) == 2:
        return matrix_norm(x, ord, tuple(dims), keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dims)}; order {ord!r} is of matrices")
    return vector_norm(x, ord, tuple(dims), keepdim, dtype=dtype)  # type: ignore[no-any-return]


@public(method=True)
@composite(
    (Sample(((2, 3), (3,))), Sample(((3,), (3,)), {"p": 3})),
    lambda input, other, p=2: np.linalg.vector_norm(input - other, ord=p),
    kinks=KINKS[2:4],
)
def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    r"""Norm of the difference of two tensors.

    Derivative: with :math:`y = (\sum_i \left|x_i - z_i\right|^{p})^{1/p}`,
    :math:`\bar x_i = \bar y \operatorname{sgn}(x_i - z_i) \left|x_i - z_i\right|^{p-1} y^{1-p}`.

    Parameters
    ----------
    input, other : Tensor or array
        They broadcast.
    p : number
        The order, as of `tapegrad.linalg.vector_norm`.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.dist(tg.tensor([3.0, 4.0]), tg.tensor([0.0, 0.0]))
    tensor(5.)
    """
    return vector_norm(sub(input, other), p)  # type: ignore[no-any-return]


def _condition(A: Any, p: Any = None) -> Any:
    return np.linalg.cond(A, p)


@public(namespaces=(LINALG,), functions=("linalg.cond",))
@composite(
    tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (
            ((3, 3), {}), ((2, 3), {}), ((2, 3, 3), {"p": 1}), ((3, 3), {"p": "fro"}), ((2, 2), {"p": -2}),
        )
    ),
    _condition, kinks=(),
)  # fmt: skip
def cond(A: Any, p: float | str | None = None) -> Tensor:
    r"""Condition numbers of matrices: the norm, times that of the inverse.

    Formula: :math:`y = \|A\|\, \|A^{-1}\|`. Derivative: as of `matrix_norm` and `inv`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype; square, except for ``p=2``, ``p=-2``.
    p : number, "fro" or "nuc", optional
        The norm, as of `matrix_norm`; default 2, the ratio of the largest and the smallest singular value.

    Raises
    ------
    LinAlgError
        If a matrix is singular, except for ``p=2``, ``p=-2``.
    RuntimeError
        If the norm needs square matrices and there are others.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.cond(tg.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor(4.)
    """
    x = as_operand(A, "linalg.cond", "A", 1)
    if x.ndim >= 2 and not x.numel():
        return made(np.zeros(x.shape[:-2], x.real.dtype), False)
    if p is None or p in (2, -2):
        values = svdvals(x)
        first, last = values[..., 0], values[..., -1]
        return div(first, last) if p != -2 else div(last, first)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"linalg.cond: A must be batches of square matrices for p={p}; got shape {list(x.shape)}")
    return matrix_norm(x, p) * matrix_norm(xp.inv(x), p)

"""Composites: further products of vectors, matrices and tensors."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import mul
from tapegrad.ops.complex import conj
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.linalg import dot, matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import permute, transpose
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.promotion import check_same
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import all_dims, one_dim
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


def _vdot_as_numpy(a: Any, b: Any) -> Any:
    return vdot(reshape(a, (-1,)), reshape(b, (-1,)))


@public(method=True, functions=("vdot",), adapter=_vdot_as_numpy)
@composite((Sample(((3,), (3,))),), np.vdot)
def vdot(input: Any, other: Any) -> Tensor:
    r"""Product of two vectors, of which the first is conjugated.

    Parameters
    ----------
    input, other : Tensor or array, (n,)

    Raises
    ------
    RuntimeError
        If one is no vector, the lengths or the dtypes differ.

    Notes
    -----
    Derivative: with :math:`z = x^H y`, :math:`\bar x = \bar z^* y` and :math:`\bar y = \bar z x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.vdot(tg.tensor([1 + 1j, 2.0]), tg.tensor([1j, 1.0 + 0j])).item()
    (3+1j)
    """
    return dot(conj(as_operand(input, "vdot", "input", 1)), as_operand(other, "vdot", "other", 2))


@public(method=True, functions=("inner",))
@composite((Sample(((2, 3), (4, 3))), Sample(((3,), (2, 2, 3))), Sample(((), (2, 3)))), np.inner)
def inner(input: Any, other: Any) -> Tensor:
    """Products of each vector along the last dimension of one tensor with each of another; see `matmul`.

    Parameters
    ----------
    input : Tensor or array, (..., n)
    other : Tensor or array, (..., n)

    Returns
    -------
    Tensor
        Of the dimensions of `input` but its last, followed by those of `other`. A tensor without dimensions multiplies
        all elements.

    Raises
    ------
    RuntimeError
        If the last dimensions or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.inner(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    x, y = as_operand(input, "inner", "input", 1), as_operand(other, "inner", "other", 2)
    if not x.ndim or not y.ndim:
        return mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(x.shape)} and "
            f"{list(y.shape)}"
        )
    if y.ndim < 3:
        return matmul(x, transpose(y, 0, 1) if y.ndim == 2 else y)
    columns = transpose(reshape(y, (-1, y.shape[-1])), 0, 1)
    return reshape(matmul(x, columns), (*x.shape[:-1], *y.shape[:-1]))


@public(method=True, functions=("kron",))
@composite((Sample(((2, 3), (3, 2))), Sample(((2,), (2, 2))), Sample(((), (3,)))), np.kron)
def kron(input: Any, other: Any) -> Tensor:
    r"""Kronecker product: :math:`Z_{ij} = X_{\lfloor i/p \rfloor, \lfloor j/q \rfloor} Y_{i \bmod p, j \bmod q}`.

    Parameters
    ----------
    input, other : Tensor or array
        The one with fewer dimensions gets further ones of length 1 in front.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.kron(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    tensor([ 1., 10.,  2., 20.])
    """
    x, y = as_operand(input, "kron", "input", 1), as_operand(other, "kron", "other", 2)
    ndim = max(x.ndim, y.ndim)
    a, b = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - y.ndim) + y.shape
    outer = builtins.sum(((n, 1) for n in a), ())  # (n1, 1, n2, 1, ...) and (1, m1, 1, m2, ...)
    inner = builtins.sum(((1, m) for m in b), ())
    return reshape(mul(reshape(x, outer), reshape(y, inner)), tuple(n * m for n, m in zip(a, b, strict=True)))


def _tensordot_as_numpy(a: Any, b: Any, axes: Any = 2) -> Any:
    return tensordot(a, b, axes)


@public(functions=("tensordot",), adapter=_tensordot_as_numpy)
@composite(
    (
        Sample(((2, 3), (3, 4)), {"dims": 1}),
        Sample(((2, 3, 4), (3, 4, 2))),
        Sample(((2, 3, 4), (4, 5, 2)), {"dims": ([0, -1], [2, 0])}),
        Sample(((2,), (3,)), {"dims": 0}),
    ),
    lambda a, b, dims=2: np.tensordot(a, b, dims),
)
def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """Sum products of elements over pairs of dimensions; see `einsum`.

    Parameters
    ----------
    a, b : Tensor or array
    dims : int or pair of sequences of int
        How many of the last dimensions of `a` go with the first of `b`; or the dimensions of each.

    Returns
    -------
    Tensor
        Of the other dimensions of `a`, followed by those of `b`.

    Raises
    ------
    RuntimeError
        If the lengths of dimensions or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensordot(tg.ones(2, 3, 4), tg.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
    (2, 5)
    """
    x, y = as_operand(a, "tensordot", "a", 1), as_operand(b, "tensordot", "b", 2)
    left, right = _contracted(x, y, dims)
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            if 1 not in (x.shape[i], y.shape[j]):
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {x.shape[i]} in dim {i} and second has "
                    f"size {y.shape[j]} in dim {j}; tensordot() got shapes {list(x.shape)} and {list(y.shape)}"
                )
            x, y = (sum(x, i, True, dtype=x.dtype), y) if y.shape[j] == 1 else (x, sum(y, j, True, dtype=y.dtype))
    rows = tuple(dim for dim in range(x.ndim) if dim not in left)
    columns = tuple(dim for dim in range(y.ndim) if dim not in right)
    inner = prod(x.shape[dim] for dim in left)
    shape = (*(x.shape[dim] for dim in rows), *(y.shape[dim] for dim in columns))
    one = reshape(permute(x, (*rows, *left)), (prod(x.shape[dim] for dim in rows), inner))
    other = reshape(permute(y, (*right, *columns)), (inner, prod(y.shape[dim] for dim in columns)))
    return reshape(matmul(one, other), shape)


def _contracted(x: Tensor, y: Tensor, dims: Any) -> tuple[Shape, Shape]:
    """Return the dimensions of each operand over which `tensordot` sums."""
    if isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = ((own,) if isinstance(own, int) else tuple(own) for own in dims)
        if len(left) != len(right):
            raise RuntimeError(
                f"both dimension lists should have same length; tensordot() got {list(left)} and {list(right)}"
            )
    else:
        count = int(dims if not isinstance(dims, (tuple, list)) else dims[0])
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > builtins.min(x.ndim, y.ndim):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={count} for {x.ndim}-D and {y.ndim}-D tensors"
            )
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    return all_dims("tensordot", x.ndim, left), all_dims("tensordot", y.ndim, right)


def _trace_as_numpy(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return sum(diagonal(a, offset, axis1, axis2), -1)


@public(method=True, functions=("trace",), adapter=_trace_as_numpy)  # fmt: skip
@composite((Sample(((3, 3),)), Sample(((2, 4),))), np.trace)
def trace(input: Any) -> Tensor:
    r"""Sum of the diagonal of a matrix.

    Parameters
    ----------
    input : Tensor or array, (n, m)

    Raises
    ------
    RuntimeError
        If `input` is no matrix.

    Notes
    -----
    Derivative: :math:`\bar X = \bar y I`, with ones on the diagonal.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.trace(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    x = as_operand(input, "trace", "input", 1)
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}; use diagonal() and sum()")
    return sum(diagonal(x))


def _vecdot_as_numpy(x1: Any, x2: Any, axis: int = -1) -> Any:
    return vecdot(x1, x2, dim=axis)


@public(namespaces=(LINALG,), functions=("linalg.vecdot",),
        adapter=_vecdot_as_numpy)  # fmt: skip
@composite(
    (Sample(((2, 3), (2, 3))), Sample(((3, 2), (3, 1)), {"dim": 0})),
    lambda x, y, dim=-1: np.sum(x.conj() * y, axis=dim),
)
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Tensor:
    """Products of vectors along a dimension; those of `x` are conjugated, as in `vdot`.

    Parameters
    ----------
    x, y : Tensor or array
        Batches of vectors, which broadcast.
    dim : int

    Raises
    ------
    RuntimeError
        If the lengths of the vectors differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.vecdot(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    a, b = as_operand(x, "linalg.vecdot", "x", 1), as_operand(y, "linalg.vecdot", "y", 2)
    words = "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead"
    check_same(words, a.dtype, b.dtype)
    n, m = (own.shape[one_dim("linalg.vecdot", own.ndim, dim)] if own.ndim else 1 for own in (a, b))
    if n != m:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same length in dim {dim}, but got {n} and {m}")
    return sum(mul(conj(a), b), dim)


@public(namespaces=(LINALG,), functions=("linalg.multi_dot",))
@composite(
    (Sample(((2, 3), (3, 4), (4, 2))), Sample(((3,), (3, 4), (4,))), Sample(((5, 2), (2, 6), (6, 1), (1, 3)))),
    lambda *tensors: np.linalg.multi_dot(tensors) if len(tensors) > 1 else tensors[0],
    call=lambda function, *tensors: function(tensors),
)
def multi_dot(tensors: Sequence[Any]) -> Tensor:
    """Product of several matrices, in the order that takes the fewest multiplications; see `matmul`.

    Parameters
    ----------
    tensors : sequence of Tensor or array
        Matrices; the first may be a row and the last a column.

    Raises
    ------
    RuntimeError
        If there are fewer than two, or the shapes do not fit.

    Notes
    -----
    The order is found by dynamic programming (T. H. Cormen et al., "Introduction to Algorithms", 15.2).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.multi_dot([tg.ones(2, 3), tg.ones(3, 4), tg.ones(4)])
    tensor([12., 12.])
    """
    factors = [as_operand(own, "linalg.multi_dot", "tensors", 1) for own in tensors]
    n = len(factors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for place, own in enumerate(factors):
        if own.ndim != 2 and not (own.ndim == 1 and place in (0, n - 1)):
            kind = "1D or 2D" if place in (0, n - 1) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {place} must be {kind} but got {own.ndim}D")
    if n == 2:
        return matmul(*factors)
    lengths = [1 if factors[0].ndim == 1 else factors[0].shape[0]]
    lengths += [own.shape[0] for own in factors[1:]]
    lengths.append(1 if factors[-1].ndim == 1 else factors[-1].shape[1])

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return factors[first]
        cut = split[first, last]
        return matmul(product(first, cut), product(cut + 1, last))

    split = _cheapest_splits(tuple(lengths))
    return product(0, n - 1)


def _cheapest_splits(lengths: Shape) -> dict[tuple[int, int], int]:
    """Return, for each part of a chain of matrices, after which of them it is split.

    >>> _cheapest_splits((2, 3, 4, 2))[0, 2]
    0
    """
    n = len(lengths) - 1
    cost, split = {(k, k): 0 for k in range(n)}, {}
    for size in range(1, n):
        for first in range(n - size):
            last = first + size
            cost[first, last], split[first, last] = builtins.min(
                (
                    cost[first, cut] + cost[cut + 1, last] + lengths[first] * lengths[cut + 1] * lengths[last + 1],
                    cut,
                )
                for cut in range(first, last)
            )
    return split

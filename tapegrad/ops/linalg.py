"""Ops and composites: products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.forward.products import product_forward, product_step
from tapegrad.ops.arithmetic import mul
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect, connect_as
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, op_table, xp
from tapegrad.ops.table.promotion import check_same, promote
from tapegrad.ops.table.public import public, publish
from tapegrad.tape.layout import broadcast_shape
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


def _as_matrices(x: Shape, y: Shape) -> tuple[Shape, Shape, Shape]:
    """Return the shapes of a product with vectors as matrices: a row on the left, a column on the right.

    >>> _as_matrices((3,), (2, 3, 4))
    ((1, 3), (2, 3, 4), (2, 1, 4))
    """
    left = x if len(x) > 1 else (1, *x)
    right = y if len(y) > 1 else (*y, 1)
    return left, right, (*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])


def _left(ct: Any, y: Any, x_shape: Shape) -> Any:
    if y.ndim == 2 or (len(x_shape) > 1 and y.ndim > 1):
        return xp.matmul(ct, adjoint(y))  # whoever calls rules sums over batches that were broadcast
    if y.ndim == 1:  # an outer product
        return xp.mul(xp.unsqueeze(ct, -1), xp.conj(y))
    left, right, result = _as_matrices(x_shape, y.shape)
    of_left = xp.matmul(xp.reshape(ct, result), adjoint(xp.reshape(y, right)))
    return xp.reshape(xp.sum_to_size(of_left, left), x_shape)


def _right(ct: Any, x: Any, y_shape: Shape) -> Any:
    if x.ndim == 2 or (x.ndim > 1 and len(y_shape) > 1):
        return xp.matmul(adjoint(x), ct)
    left, right, result = _as_matrices(x.shape, y_shape)
    of_right = xp.matmul(adjoint(xp.reshape(x, left)), xp.reshape(ct, result))
    return xp.reshape(xp.sum_to_size(of_right, right), y_shape)


_matmul = Op(
    name="matmul",
    operands=("x", "y"),
    forward=np.matmul,
    vjp=(_left, _right),
    family="linalg",
    step=product_step,
    prepare_forward=product_forward,
    bind=lambda input, other: _bind(input, other),  # which stands below, as it calls `matmul`
    check=lambda bound: _check(*bound.operands),
    node_name="MmBackward0",
    oracle=lambda x, y: np.tensordot(x, y, 1) if np.ndim(y) < 3 else np.einsum("...ij,...jk->...ik", x, y),
    bilinear=True,
    samples=(
        Sample(((3,), (3,))),
        Sample(((2, 3), (3,))),
        Sample(((3,), (3, 4))),
        Sample(((2, 3), (3, 4))),
        Sample(((2, 3), (3, 4)), values=(np.arange(6.0).reshape(3, 2).T, np.arange(12.0).reshape(4, 3).T)),
        Sample(((2, 6), (3, 4)), values=(np.arange(12.0).reshape(2, 6)[:, ::2], np.arange(12.0).reshape(3, 4)[::-1])),
        Sample(((5, 2, 3), (3,))),
        Sample(((5, 2, 3), (3, 4))),
        Sample(((2, 3), (5, 3, 4))),
        Sample(((5, 2, 3), (5, 3, 4))),
        Sample(((5, 1, 2, 3), (4, 3, 1))),
        Sample(((2, 0), (0, 3))),
        Sample(((0, 3), (3, 2))),
    ),
    errors=(
        ErrorSample(
            lambda: xp.matmul(np.ones((2, 2)), np.ones((1, 3))), RuntimeError,
            "mat1 and mat2 shapes cannot be multiplied (2x2 and 1x3)",
        ),
        ErrorSample(
            lambda: xp.matmul(np.ones((2, 2), np.float32), np.ones((2, 2))), RuntimeError,
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
        ErrorSample(
            lambda: xp.matmul(np.ones((2, 3)), np.ones(2)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec"
        ),
        ErrorSample(lambda: xp.matmul(np.ones(()), np.ones(2)), RuntimeError, "be at least 1D, but they are 0D and 1D"),
        ErrorSample(lambda: xp.matmul(2.0, np.ones(2)), TypeError, "unsupported operand type(s) for @: 'float' and 'T"),
        ErrorSample(
            lambda: xp.matmul(np.ones((2, 3, 4)), np.ones((2, 5, 4))), RuntimeError,
            "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]",
        ),
        ErrorSample(
            lambda: xp.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 5))), RuntimeError,
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        ),
    ),
)  # fmt: skip


@public(method=True, of=_matmul)
def matmul(input: Any, other: Any) -> Tensor:
    r"""Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast.

    Parameters
    ----------
    input : Tensor or array
        Of shape (..., n, k), or (k,) for a row.
    other : Tensor or array
        Of shape (..., k, m), or (k,) for a column; of the dtype of `input`.

    Returns
    -------
    Tensor
        Of shape (..., n, m), without n or m where there was a vector.

    Raises
    ------
    RuntimeError
        If the shapes do not fit or the dtypes differ.

    Notes
    -----
    Derivative: with :math:`Z = X Y` and its cotangent :math:`\bar Z`, :math:`\bar X = \bar Z Y^H` and
    :math:`\bar Y = X^H \bar Z`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> a = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> tg.matmul(a, tg.tensor([1.0, 1.0])).sum().backward()
    >>> a.grad.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    result: Tensor = _matmul.plans.call(input, other)
    return result


connect(_matmul)
publish(matmul, _matmul, matmul.__doc__ or "")
_of_batches = connect_as("BmmBackward0", op_table["matmul"])


def _bind(input: Any, other: Any) -> Any:
    x, y = as_operand(input, "matmul", "input", 1), as_operand(other, "matmul", "other", 2)
    if x._layout.dtype != y._layout.dtype and isinstance(input, np.ndarray) != isinstance(other, np.ndarray):
        dtype = promote([x._layout, y._layout])  # beside an array of NumPy the product is NumPy's
        return matmul(x.to(dtype), y.to(dtype))
    return Bound((x, y))


def _check(x: Tensor, y: Tensor) -> None:
    """Raise PyTorch's errors unless two tensors can be multiplied."""
    if x._layout.weak or y._layout.weak:
        kinds = [repr(type(own._data).__name__) if own._layout.weak else "'Tensor'" for own in (x, y)]
        raise TypeError(f"unsupported operand type(s) for @: {' and '.join(kinds)}; multiply by a number with *")
    if not x.ndim or not y.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {x.ndim}D and {y.ndim}D")
    if x.dtype != y.dtype:
        if x.ndim == y.ndim == 1:
            check_same("dot : expected both vectors to have same dtype, but found {} and {}", x.dtype, y.dtype)
        names = [TORCH_NAMES.get(own.dtype.name, own.dtype.name).lower() for own in (x, y)]
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}; a matrix product does not "
            f"promote: convert one, e.g. with .to({y.dtype.name!r}), or call set_default_dtype(tapegrad.float32) first"
        )
    shapes = f"; got shapes {list(x.shape)} and {list(y.shape)}"
    inner, outer = x.shape[-1], y.shape[-2] if y.ndim > 1 else y.shape[0]
    if inner != outer:
        if x.ndim == y.ndim == 1:
            message = (
                f"inconsistent tensor size, expected tensor [{inner}] and src [{outer}] to have the same number of "
                f"elements, but got {inner} and {outer} elements respectively"
            )
        elif y.ndim == 1:
            rows = x._layout.size // inner if inner else 0
            message = f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({outer})" + shapes
        elif y.ndim == 2:
            rows = x._layout.size // inner if inner else 0
            message = f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and {outer}x{y.shape[-1]})" + shapes
        else:
            batch = int(np.prod(np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), dtype=np.int64))
            message = (
                f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {inner}] but got: [{batch}, "
                f"{outer}]" + shapes
            )
        raise RuntimeError(message)
    try:
        broadcast_shape(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise errors.broadcast_mismatch("matmul", x.shape[:-2], y.shape[:-2]) from None


@public(method=True)
@composite((Sample(((2, 3), (3, 4))),), np.matmul)
def mm(input: Any, mat2: Any) -> Tensor:
    """Product of two matrices; see `matmul`.

    Parameters
    ----------
    input : Tensor or array, (n, k)
    mat2 : Tensor or array, (k, m)

    Raises
    ------
    RuntimeError
        If one is no matrix, the shapes do not fit or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.mm(tg.ones(2, 3), tg.ones(3, 4)).shape
    (2, 4)
    """
    x, y = as_operand(input, "mm", "input", 1), as_operand(mat2, "mm", "mat2", 2)
    for name, operand in (("self", x), ("mat2", y)):
        if operand.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix; mm() got shapes {list(x.shape)} and {list(y.shape)}")
    return matmul(x, y)


@public(method=True)
@composite((Sample(((2, 2, 3), (2, 3, 4))),), np.matmul)
def bmm(input: Any, mat2: Any) -> Tensor:
    """Products of two batches of matrices, which do not broadcast; see `matmul`.

    Parameters
    ----------
    input : Tensor or array, (batch, n, k)
    mat2 : Tensor or array, (batch, k, m)

    Raises
    ------
    RuntimeError
        If one has other than three dimensions, the shapes do not fit or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bmm(tg.ones(5, 2, 3), tg.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    x, y = as_operand(input, "bmm", "input", 1), as_operand(mat2, "bmm", "mat2", 2)
    for name, operand in (("batch1", x), ("batch2", y)):
        if operand.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor; bmm() got shapes {list(x.shape)} and {list(y.shape)}")
    sizes, expected = list(y.shape[:2]), [x.shape[0], x.shape[2]]
    if sizes != expected:
        first = f"Expected size for first two dimensions of batch2 tensor to be: {expected}"
        raise RuntimeError(f"{first} but got: {sizes}.")
    return _of_batches(x, y)


@public(method=True)
@composite((Sample(((2, 3), (3,))),), np.matmul)
def mv(input: Any, vec: Any) -> Tensor:
    """Product of a matrix and a vector; see `matmul`.

    Parameters
    ----------
    input : Tensor or array, (n, k)
    vec : Tensor or array, (k,)

    Raises
    ------
    RuntimeError
        If they are not that, the shapes do not fit or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.mv(tg.ones(2, 3), tg.ones(3)).tolist()
    [3.0, 3.0]
    """
    x, y = as_operand(input, "mv", "input", 1), as_operand(vec, "mv", "vec", 2)
    if (x.ndim, y.ndim) != (2, 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}; see mv()")
    return matmul(x, y)


@public(method=True)
@composite((Sample(((3,), (3,))),), np.dot)
def dot(input: Any, tensor: Any) -> Tensor:
    r"""Product of two vectors, without conjugation.

    Parameters
    ----------
    input, tensor : Tensor or array, (n,)

    Raises
    ------
    RuntimeError
        If one is no vector, the lengths or the dtypes differ.

    Notes
    -----
    Derivative: with :math:`z = x^T y`, :math:`\bar x = \bar z y^*` and :math:`\bar y = \bar z x^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.dot(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])).item()
    11.0
    """
    x, y = as_operand(input, "dot", "input", 1), as_operand(tensor, "dot", "tensor", 2)
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors; dot() does not batch: use matmul()"
        )
    return matmul(x, y)


@public(method=True)
@composite((Sample(((2,), (3,))),), np.outer)
def outer(input: Any, vec2: Any) -> Tensor:
    r"""Products of each element of one vector with each of another.

    Parameters
    ----------
    input : Tensor or array, (n,)
    vec2 : Tensor or array, (m,)

    Raises
    ------
    RuntimeError
        If one is no vector.

    Notes
    -----
    Derivative: with :math:`Z = x y^T`, :math:`\bar x = \bar Z y^*` and :math:`\bar y = \bar Z^T x^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.outer(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    x, y = as_operand(input, "outer", "input", 1), as_operand(vec2, "outer", "vec2", 2)
    for name, operand in (("self", x), ("vec2", y)):
        if operand.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {operand.ndim}-D")
    return mul(unsqueeze(x, 1), y)

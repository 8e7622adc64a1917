"""Ops and composites: the dimensions of a tensor in another order, as views; the properties T, mT, H, mH."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.ops.movement import STRIDED, same_view
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import Names, public, register
from tapegrad.ops.table.results import with_nodes_named
from tapegrad.ops.table.structural import all_dims, movement, one_dim, sizes
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.tensor import Tensor


@public(method=True)
@movement(
    "permute", lambda x, dims: x.transpose(dims), lambda ct, dims: xp.permute(ct, tuple(map(int, np.argsort(dims)))),
    same_view,
    common=docs.MOVEMENT_OF_DIMS, attrs=("dims",),
    prepare_forward=lambda layouts, attrs: operator.methodcaller("transpose", attrs["dims"]),
    oracle=lambda x, dims: np.transpose(x, dims),
    samples=(
        Sample(((),), {"dims": ()}),
        Sample(((2, 3),), {"dims": (1, 0)}),
        Sample(((2, 3, 4),), {"dims": (2, 0, -2)}),
        Sample(((2, 0, 3),), {"dims": (1, 2, 0)}),
        Sample(((2, 3),), {"dims": (-1, 0)}, values=(STRIDED,)),
    ),
    errors=(
        ErrorSample(lambda: xp.permute(np.ones((2, 3)), (0, 0)), RuntimeError, "appears multiple times"),
        ErrorSample(lambda: xp.permute(np.ones((2, 3)), (0,)), RuntimeError, "number of dimensions in the tensor"),
    ),
)  # fmt: skip
def permute(input: Tensor, dims: int | Sequence[int], *rest: int) -> dict[str, Any]:
    r"""Put the dimensions into another order, as a view.

    Derivative: with :math:`Y_{jki} = X_{ijk}`, as for ``dims=(1, 2, 0)``, :math:`\bar X_{ijk} = \bar Y_{jki}`.

    Parameters
    ----------
    dims : tuple of int, or several int
        For each dimension of the result, that of `input`.

    Raises
    ------
    RuntimeError
        If a dimension is missing or named twice.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.permute(tg.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = sizes(dims, rest)
    if len(order) != input.ndim:
        raise RuntimeError(
            "permute: number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}"
        )
    return {"dims": all_dims("permute", input.ndim, order)}


def _transpose_method(input: Any, dim0: Any = None, dim1: int | None = None, *rest: int) -> Tensor:
    """Swap two dimensions, as a view; or, as of NumPy's arrays, reverse all, or put all into an order."""
    if dim1 is not None and not rest:
        return _call_transpose(input, dim0, dim1)  # type: ignore[no-any-return]
    if dim0 is None:
        return permute(input, tuple(range(input.ndim - 1, -1, -1)))
    return permute(input, dim0, *(() if dim1 is None else (dim1, *rest)))


@public(aliases=("swapdims",), method=_transpose_method, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 3, 4),), {"dim0": 0, "dim1": -1}),),
    lambda input, dim0, dim1: np.swapaxes(input, dim0, dim1),
)
def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    r"""Swap two dimensions, as a view.

    Derivative: with :math:`Y_{ij} = X_{ji}`, :math:`\bar X_{ij} = \bar Y_{ji}`.

    Parameters
    ----------
    dim0, dim1 : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.transpose(tg.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    result: Tensor = _call_transpose(input, dim0, dim1)
    return result


def _bind_transpose(input: Any, dim0: int, dim1: int) -> Bound:
    x = as_operand(input, "transpose", "input", 1)
    x._array()
    first, second = one_dim("transpose", x.ndim, dim0), one_dim("transpose", x.ndim, dim1)
    dims = list(range(x.ndim))
    if dims:
        dims[first], dims[second] = second, first
    return Bound((x,), {"dims": tuple(dims)})


@public(
    method=True, functions=("swapaxes",), adapter={"a": "input", "axis1": "axis0", "axis2": "axis1"},
    common=docs.MOVEMENT_OF_DIMS, of=op_table["permute"],
)  # fmt: skip
def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions, as a view; see `transpose`.

    Parameters
    ----------
    axis0, axis1 : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.swapaxes(tg.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    result: Tensor = _call_transpose(input, axis0, axis1)
    return result


_call_transpose = connect(
    with_nodes_named(op_table["permute"], "TransposeBackward0"),
    2,
    MAKES_VIEWS,
    name="transpose",
    bind=_bind_transpose,
)


@public(method=True, common=docs.MOVEMENT)
@composite((Sample(((3,),)), Sample(((2, 3),))), np.transpose)
def t(input: Any) -> Tensor:
    """Transpose a matrix, as a view; fewer dimensions stay as they are.

    Derivative: as of `transpose`.

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.t(tg.zeros(2, 3)).shape
    (3, 2)
    """
    result: Tensor = _call_t(input)
    return result


def _bind_t(input: Any) -> Bound:
    x = as_operand(input, "t", "input", 1)
    x._array()
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D; use mT or transpose()")
    return Bound((x,), {"dims": tuple(reversed(range(x.ndim)))})


_call_t = connect(with_nodes_named(op_table["permute"], "TBackward0"), 0, MAKES_VIEWS, name="t", bind=_bind_t)


def _bind_movedim(input: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Bound:
    x = as_operand(input, "movedim", "input", 1)
    x._array()
    origin, goal = sizes(source, ()), sizes(destination, ())
    if len(origin) != len(goal):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(origin)} dims) should contain the same number "
            f"of dims as destination ({list(goal)} dims)"
        )
    for name, given in (("source", origin), ("destination", goal)):
        if len({one_dim("movedim", x.ndim, dim) for dim in given}) < len(given):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    origin, goal = all_dims("movedim", x.ndim, origin), all_dims("movedim", x.ndim, goal)
    placed = dict(zip(goal, origin, strict=True))
    rest = iter(dim for dim in range(x.ndim) if dim not in origin)
    return Bound((x,), {"dims": tuple(placed[dim] if dim in placed else next(rest) for dim in range(x.ndim))})


_call_movedim = connect(op_table["permute"], 2, MAKES_VIEWS, name="movedim", bind=_bind_movedim)


@public(aliases=("moveaxis",), method=True, functions=("moveaxis",), common=docs.MOVEMENT_OF_DIMS)
@composite(
    (
        Sample(((2, 3, 4),), {"source": 0, "destination": -1}),
        Sample(((2, 3),), {"source": (0, 1), "destination": (1, 0)}),
    ),
    np.moveaxis,
)
def movedim(input: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move dimensions to other positions, as a view; the others keep their order.

    Derivative: as of `permute`.

    Parameters
    ----------
    source, destination : int or tuple of int

    Raises
    ------
    RuntimeError
        If a dimension is named twice, or there are not as many sources as destinations.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.movedim(tg.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    result: Tensor = _call_movedim(input, source, destination)
    return result


xp.transpose = transpose


# Matrices ----------------------------------------------------------------------------------------------------------


def adjoint(x: Any) -> Tensor:
    """Return the conjugates of matrices, transposed: for rules, and so of tensors or arrays.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.adjoint(tg.tensor([[1 + 2j, 3.0]]))
    tensor([[1.-2.j],
            [3.-0.j]])
    """
    turned: Tensor = transpose(x, -2, -1)
    return turned if turned.dtype.kind != "c" else xp.conj(turned)


_NO_DIMENSION = "Tensor.{} is deprecated on 0-D tensors. This function is the identity in these cases."
_NO_MATRIX = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: `x.mT` transposes "
    "batches of matrices, and `x.permute(*range(x.ndim - 1, -1, -1))` reverses the dimensions."
)
_IN_REVERSE = [tuple(range(ndim - 1, -1, -1)) for ndim in range(65)]


def _without_matrices(name: str, x: Any, which: str, repair: str = "unsqueeze()") -> Tensor:
    """Return a tensor without dimensions, which has nothing to transpose.

    Raises
    ------
    RuntimeError
        If the tensor has dimensions.
    """
    if x.ndim:
        raise RuntimeError(f"tensor.{name} is only supported on {which}. Got {x.ndim}-D tensor; use {repair}")
    errors.warn(_NO_DIMENSION.format(name))
    result: Tensor = xp.conj(x) if "H" in name else x
    return result


_BATCHES = "matrices or batches of matrices"
_MATRIX_SAMPLES = (Sample(((2, 3),)), Sample(((3, 3),)))
_BATCH_SAMPLES = (*_MATRIX_SAMPLES, Sample(((4, 2, 3),)))


@public(namespaces=(), attribute=True)
@composite(_MATRIX_SAMPLES, np.transpose)
def T(input: Any) -> Tensor:
    """Dimensions in reverse order, as a view; with a warning unless there are two, as in PyTorch.

    Derivative: as of `transpose`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).T.shape
    (3, 2)
    """
    if input.ndim != 2:
        errors.warn(_NO_MATRIX if input.ndim else _NO_DIMENSION.format("T"))
    return permute(input, _IN_REVERSE[input.ndim])


@public(namespaces=(), attribute=True)
@composite(_BATCH_SAMPLES, lambda input: np.swapaxes(input, -2, -1))
def mT(input: Any) -> Tensor:
    """Matrices, transposed, as a view.

    Derivative: as of `transpose`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(4, 2, 3).mT.shape
    (4, 3, 2)
    """
    return transpose(input, -2, -1) if input.ndim > 1 else _without_matrices("mT", input, _BATCHES)


@public(namespaces=(), attribute=True)
@composite(_MATRIX_SAMPLES, lambda input: input.conj().T)
def H(input: Any) -> Tensor:
    """Conjugate of a matrix, transposed.

    Derivative: as of `adjoint`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([[1 + 2j, 3.0]]).H
    tensor([[1.-2.j],
            [3.-0.j]])
    """
    if input.ndim == 2:
        return adjoint(input)
    return _without_matrices("H", input, "matrices (2-D tensors)", "unsqueeze()" if input.ndim < 2 else "mH")


@public(namespaces=(), attribute=True)
@composite(_BATCH_SAMPLES, lambda input: np.swapaxes(input.conj(), -2, -1))
def mH(input: Any) -> Tensor:
    r"""Conjugates of matrices, transposed.

    Derivative: with :math:`Y_{ij} = X_{ji}^*`, :math:`\bar X_{ij} = \bar Y_{ji}^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(4, 2, 3).mH.shape
    (4, 3, 2)
    """
    x = as_operand(input, "adjoint", "input", 1)
    return adjoint(x) if x.ndim > 1 else _without_matrices("mH", x, _BATCHES)


register("adjoint", mH, Names(method=True))

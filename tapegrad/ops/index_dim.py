"""Composites: elements at a vector of indices along one dimension, chosen, replaced, added to and combined."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import check_range
from tapegrad.ops.arithmetic import add, mul, where
from tapegrad.ops.broadcasting import contiguous, expand
from tapegrad.ops.casts import cast
from tapegrad.ops.gather import indices_of, out_of_bounds
from tapegrad.ops.index_arrays import added_up, selected, written
from tapegrad.ops.movement import reshape
from tapegrad.ops.scatter import scatter_reduce
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.index_values import are_within, from_front
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor

_SLICES: Final = Common(
    "input : Tensor or array\ndim : int\nindex : Tensor or array of int, (n,)",
    raises="IndexError\n    If `input` does not have the dimension, or an index is out of range.\n"
    "RuntimeError\n    If a shape or dtype does not fit.",
)
_AT: Final = np.array([2, 0, 2])
_ONCE: Final = np.array([2, 0])


def _bound(
    call: str, input: Any, dim: int, index: Any, error: type[Exception], words: str = "", wraps: bool = False
) -> tuple[Tensor, int, Tensor]:
    """Return the operand, with a dimension, the dimension counted from the front, and the indices."""
    x, given = as_operand(input, call, "input", 1), indices_of(call, index)
    place = one_dim(call, x.ndim, dim)
    if given.ndim > 1:
        raise IndexError(f"{call}(): Index is supposed to be a vector; it has shape {list(given.shape)}")
    x = reshape(x, (1,)) if not x.ndim else x
    given, length = given if given.ndim else reshape(given, (1,)), x.shape[place]
    if wraps and not are_within(given, 0, length):
        given = from_front(given, length)
    if are_within(given, 0, length):
        return x, place, given
    indices = np.asarray(given._data)
    found = out_of_bounds(indices, length, f"dimension {place}")
    if call == "index_select" and place == 1:  # PyTorch finds them in two places
        error, words = RuntimeError, "INDICES element is out of DATA bounds"
    raise error(f"{call}(): {words or found} (index {indices.tolist()[:20]}, size {length})")


def _source(call: str, x: Tensor, place: int, indices: Tensor, source: Any, error: type[Exception]) -> Tensor:
    """Return what is written to slices, with as many dimensions as the operand, after a look at its shape."""
    given = as_operand(source, call, "source", 4)
    if given.dtype != x.dtype:
        raise RuntimeError(
            f"{call}_(): self ({x.dtype}) and source ({given.dtype}) must have the same scalar type, expected to have "
            f"the same dtype; convert one with to()"
        )
    count = given.shape[place] if given.ndim > place else 1
    if count != indices._layout.size:
        raise error(
            f"{call}_(): Number of indices ({indices._layout.size}) should be equal to source.size(dim) ({count}), for "
            f"dim: {place}"
        )
    if not given.ndim:
        return reshape(given, (1,) * x.ndim)
    if (*given.shape[:place], *given.shape[place + 1 :]) != (*x.shape[:place], *x.shape[place + 1 :]):
        raise RuntimeError(
            f"{call}_(): source tensor shape must match self tensor shape, excluding the specified dimension; "
            f"Source/destination tensor must have same slice shapes. Got self.shape = {list(x.shape)} source.shape = "
            f"{list(given.shape)}"
        )
    return given


def _as_given(result: Tensor, input: Any) -> Tensor:
    """Return a result without the dimension that an operand without dimensions got."""
    is_tensor = input.__class__ is Tensor and input._layout.ndim
    return reshape(result, ()) if not is_tensor and len(shape_of(input)) == 0 else result


def _along(x: Any, dim: int) -> Any:
    return (slice(None),) * (dim % np.ndim(x))


@public(method=True, common=_SLICES)
@composite(
    (Sample(((4, 3),), {"dim": 0, "index": _AT}), Sample(((2, 3),), {"dim": -1, "index": _AT})),
    lambda input, dim, index: np.take(input, index, dim),
)
def index_select(input: Any, dim: int, index: Any) -> Tensor:
    r"""Slices at indices along a dimension.

    Notes
    -----
    Derivative: with :math:`y_i = x_{p_i}` and the indices p, :math:`\bar x_j = \sum_i [p_i = j] \bar y_i`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_select(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, tg.tensor([1, 0]))
    tensor([[2., 1.],
            [4., 3.]])
    """
    x, place, indices = _bound("index_select", input, dim, index, IndexError, "index out of range in self")
    if x is not input and indices._layout.size != 1 and len(shape_of(input)) == 0:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {indices._layout.size} value(s)"
        )
    return _as_given(selected(x, place, indices), input)


def _added(input: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> Any:
    out = np.array(input)
    np.add.at(out, (*_along(input, dim), index), alpha * source)
    return out


@public(method=True, inplace=True, common=_SLICES)
@composite(
    (
        Sample(((4, 3), (3, 3)), {"dim": 0, "index": _AT}),
        Sample(((2, 3), (2, 3)), {"dim": -1, "index": _AT, "alpha": 2.0}),
    ),
    lambda x, source, dim, index, **more: _added(x, dim, index, source, **more),
    call=lambda function, x, source, dim, index, **more: function(x, dim, index, source, **more),
)
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Tensor:
    r"""Copy to which slices of `source` are added at indices along a dimension; several may go to one place.

    Parameters
    ----------
    source : Tensor or array
        With a slice for each index.
    alpha : number
        Factor of `source`.

    Notes
    -----
    Derivative: with :math:`y_j = x_j + a \sum_i [p_i = j] s_i`, where a is `alpha`, :math:`\bar x_j = \bar y_j` and
    :math:`\bar s_i = a \bar y_{p_i}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_add(tg.zeros(3), 0, tg.tensor([2, 2]), tg.tensor([1.0, 5.0]))
    tensor([0., 0., 6.])
    """
    # PyTorch finds indices out of bounds in two places, and says two things.
    error = (RuntimeError,) if len(shape_of(input)) > 1 else (IndexError, "index out of range in self")
    x, place, indices = _bound("index_add", input, dim, index, *error)
    values = _source("index_add", x, place, indices, source, RuntimeError)
    if alpha != 1:
        check_range(alpha, x.dtype)
        values = mul(values, alpha)
    return _as_given(add(x, added_up(values, place, indices, x.shape)), input)


def _replaced(input: Any, dim: int, index: Any, source: Any) -> Any:
    out = np.array(input)
    out[(*_along(input, dim), index)] = source
    return out


@public(method=True, inplace=True, common=_SLICES)
@composite(
    (Sample(((4, 3), (2, 3)), {"dim": 0, "index": _ONCE}), Sample(((2, 3), (2, 2)), {"dim": -1, "index": _ONCE})),
    lambda x, source, dim, index: _replaced(x, dim, index, source),
    call=lambda function, x, source, dim, index: function(x, dim, index, source),
)
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:
    """Copy in which slices of `source` replace those at indices along a dimension.

    Parameters
    ----------
    source : Tensor or array
        With a slice for each index. Of several for one place, the last remains.

    Notes
    -----
    Derivative: as of `scatter`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_copy(tg.zeros(3), 0, tg.tensor([2, 0]), tg.tensor([1.0, 5.0]))
    tensor([5., 0., 1.])
    """
    x, place, indices = _bound("index_copy", input, dim, index, IndexError)
    values = _source("index_copy", x, place, indices, source, IndexError)
    return _as_given(written(x, values, place, indices), input)


@public(method=True, inplace=True, common=_SLICES)
@composite(
    (
        Sample(((4, 3), ()), {"dim": 0, "index": _ONCE}),
        Sample(((2, 3), ()), {"dim": -1, "index": np.array([-1])}, (None, 2.0)),
    ),
    lambda x, value, dim, index: _replaced(x, dim, index, value),
    call=lambda function, x, value, dim, index: function(x, dim, index, value),
)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Tensor:
    r"""Copy in which a number replaces the slices at indices along a dimension.

    Parameters
    ----------
    value : number, or Tensor of one

    Notes
    -----
    Derivative: with :math:`y_j = x_j \prod_i [p_i \ne j] + c (1 - \prod_i [p_i \ne j])` and the number c,
    :math:`\bar x_j = \bar y_j \prod_i [p_i \ne j]`; that of `value` is the sum over the elements that it replaces.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_fill(tg.zeros(3), 0, tg.tensor([2, 0]), 7)
    tensor([7., 0., 7.])
    """
    x, place, indices = _bound("index_fill", input, dim, index, IndexError, wraps=True)
    number, length = one_number("index_fill", x, value), x.shape[place]
    mask: Any = np.zeros(length, np.bool_)
    if not modes.is_traced():
        mask[indices._data] = True
    else:  # a program gets other indices
        mask = added_up(np.ones(indices.shape), 0, indices, (length,)) > 0
    return _as_given(where(mask.reshape(-1, *[1] * (x.ndim - place - 1)), number, x), input)


def one_number(call: str, x: Tensor, value: Any, position: int = 4) -> Tensor:
    """Return a number, or a tensor of one, in the dtype of an operand that it is written to."""
    given = as_operand(value, call, "value", position)
    if given.ndim:
        raise RuntimeError(
            f"{call}_ only supports a 0-dimensional value tensor, but got tensor with {given.ndim} dimension(s)."
        )
    if given.dtype.kind == "c" and x.dtype.kind != "c":
        if call != "index_fill":
            check_range(np.asarray(given._data).item(), x.dtype)
        raise RuntimeError(f"{call}_(): Converting complex Scalar to non-complex type is not supported; x is {x.dtype}")
    if given.dtype == x.dtype:
        return given
    check_range(np.asarray(given._data).item(), x.dtype)
    return cast(given, x.dtype)


def _combined(input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    x, s = np.moveaxis(np.array(input), dim, 0), np.moveaxis(source, dim, 0)
    function: Any = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    out = np.array(x)
    for place in set(index.tolist()):
        terms = [s[k] for k in np.flatnonzero(index == place)] + ([x[place]] if include_self else [])
        out[place] = function(np.stack(terms), 0)
    return np.moveaxis(out, 0, dim)


@public(method=True, inplace=True, common=_SLICES)
@composite(
    (
        Sample(((4, 3), (3, 3)), {"dim": 0, "index": _AT, "reduce": "amin"}),
        Sample(((2, 3), (2, 3)), {"dim": -1, "index": _AT, "reduce": "amax", "include_self": False}),
        Sample(((2, 3), (2, 3)), {"dim": 1, "index": _AT, "reduce": "mean"}),
    ),
    lambda x, source, dim, index, reduce, **more: _combined(x, dim, index, source, reduce, **more),
    call=lambda function, x, source, dim, index, reduce, **more: function(x, dim, index, source, reduce, **more),
    real_only=True,
)
def index_reduce(input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """Copy in which slices of `source` are combined with those at indices along a dimension.

    Parameters
    ----------
    source : Tensor or array
        With a slice for each index.
    reduce : {"prod", "mean", "amax", "amin"}
    include_self : bool
        Whether the elements that are there count.

    Notes
    -----
    Derivative: as of `scatter_reduce`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_reduce(tg.ones(2), 0, tg.tensor([0, 0]), tg.tensor([4.0, 2.0]), "prod")
    tensor([8., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x, place, indices = _bound("index_reduce", input, dim, index, IndexError, "index out of range in self")
    values = _source("index_reduce", x, place, indices, source, RuntimeError)
    shape = tuple(-1 if at == place else 1 for at in range(x.ndim))
    places = contiguous(expand(reshape(indices, shape), values.shape))
    return _as_given(scatter_reduce(x, place, places, values, reduce, include_self=include_self), input)

"""Quantiles: composites of a sort, and of the two elements between which a quantile lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import add, mul, sub, where
from tapegrad.ops.casts import cast
from tapegrad.ops.gather import gather
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.ordering import sort
from tapegrad.ops.permutations import movedim
from tapegrad.ops.reductions import sum
from tapegrad.ops.rounding import ceil, floor
from tapegrad.ops.scaled import lerp
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


class Way(NamedTuple):
    """A way to find the quantile q of n elements in order: at the rank q (n + 1 - a - b) + a - 1, counted from 0."""

    a: float
    b: float
    below: Callable[[Any], Any]  # from the rank to an element's, which is the quantile if there is none above
    above: Callable[[Any], Any] | None = None
    weight: float | None = None  # of the element above; None: the fraction of the rank
    is_mean: bool = False  # of both, also of infinite ones: between these, no fraction is right


def _between(a: float, b: float, weight: float | None = None) -> Way:
    return Way(a, b, np.floor, np.ceil, weight)


#: PyTorch's ways.
INTERPOLATIONS: Final[dict[str, Way]] = {
    "linear": _between(1, 1), "lower": Way(1, 1, np.floor), "higher": Way(1, 1, np.ceil),
    "midpoint": _between(1, 1, 0.5), "nearest": Way(1, 1, np.rint),
}  # fmt: skip
#: NumPy's ways: also those of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), but 7, "linear".
METHODS: Final[dict[str, Way]] = INTERPOLATIONS | {
    "inverted_cdf": Way(0, 1, np.ceil),
    "averaged_inverted_cdf": Way(0, 1, np.ceil, lambda rank: np.floor(rank) + 1, 0.5),
    "closest_observation": Way(0, 1, lambda rank: np.rint(rank + 1) - 1),  # halves to the even, counted from 1
    "interpolated_inverted_cdf": _between(0, 1), "hazen": _between(0.5, 0.5), "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3, 1 / 3), "normal_unbiased": _between(3 / 8, 3 / 8),
}  # fmt: skip
# Ours of the usual ways: by NumPy's protocol each takes half a microsecond more.
_OF_TENSORS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {np.floor: floor, np.ceil: ceil}
#: The way of NumPy's medians.
MEDIAN: Final[dict[str, Way]] = {"median": Way(1, 1, np.floor, np.ceil, is_mean=True)}
_SAMPLES: Final = (
    Sample(((5,),), {"q": 0.3}),
    Sample(((2, 4),), {"q": np.array([0.25, 0.75]), "dim": 1}),
    Sample(((3, 2),), {"q": 0.5, "dim": 0, "keepdim": True, "interpolation": "midpoint"}),
    Sample(((2, 3),), {"q": 1.0, "interpolation": "nearest"}),
)


def _arguments(call: str, input: Any, q: Any, interpolation: str, ways: Mapping[str, Way]) -> tuple[Tensor, Tensor]:
    x, at = as_operand(input, call, "input", 1), as_operand(q, call, "q", 2)
    if not x.numel():
        raise RuntimeError(f"{call}() input tensor must be non-empty; its shape is {list(x.shape)}")
    if at.ndim > 1:
        raise RuntimeError(f"{call}() q must be a scalar or 1D tensor; its shape is {list(at.shape)}")
    if x.dtype.kind != "f":
        raise RuntimeError(f"{call}() input tensor must be either float or double dtype; it is {x.dtype}")
    if isinstance(q, Tensor) and at.dtype != x.dtype:
        raise RuntimeError(f"{call}() q tensor must be same dtype as the input tensor, {x.dtype}; it is {at.dtype}")
    if ways is not INTERPOLATIONS:
        return x, at  # the rest was checked, with NumPy's words
    if interpolation not in ways:
        raise RuntimeError(
            f"{call}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    values = np.asarray(at._data, x.dtype)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"{call}() q values must be in the range [0, 1]; they are {values.ravel().tolist()[:20]}")
    return x, at


def quantile_by(
    call: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignores_nan: bool,
    ways: Mapping[str, Way] = INTERPOLATIONS,
) -> Tensor:  # fmt: skip
    """Return quantiles as `quantile` does, or as `nanquantile`, found in one of several ways."""
    x, at = _arguments(call, input, q, interpolation, ways)
    way = ways[interpolation]
    shape = x.shape
    place = 0 if dim is None else one_dim(call, x.ndim, dim)
    lines = reshape(x, (-1,)) if dim is None or not x.ndim else x if place == x.ndim - 1 else movedim(x, place, -1)
    ordered, last = sort(lines, -1).values, lines.ndim - 1  # nan stand last
    count = lines.shape[-1]
    if not isinstance(q, Tensor):
        at = from_array(np.asarray(at._data, x.dtype))
    if ignores_nan:
        counts = sum(cast(ordered == ordered, x.dtype), -1, True)
        end = where(counts < 1, 0.0, counts - 1.0)
        ranks = _ranks(way, reshape(at, (-1,)), end)  # (..., q)
        result = _elements(way, ranks, ranks, end, lambda index: gather(ordered, last, cast(index, np.int64)))
    else:
        ranks = _ranks(way, reshape(at, (-1,)), float(count - 1))
        array = np.asarray(ranks.detach()._data)
        before = (slice(None),) * last
        result = _elements(
            way, ranks, array, count - 1, lambda index: getitem(ordered, (*before, index.astype(np.int64)))
        )
        largest = getitem(ordered, (*before, slice(count - 1, count)))
        result = where(largest != largest, largest, result)
    # The quantiles of one line stand first, if there are several.
    if at.ndim:
        result = movedim(result, -1, 0) if result.ndim > 1 else result
    rest = (1,) * len(shape) if dim is None else (*shape[:place], 1, *shape[place + 1 :]) if shape else ()
    if not keepdim:
        rest = () if dim is None else (*shape[:place], *shape[place + 1 :])
    return reshape(result, (*at.shape, *rest))


def _ranks(way: Way, q: Tensor, end: Any) -> Tensor:
    """Return the ranks of quantiles between 0 and the last, `end`, or beyond them."""
    return mul(q, end) if way.a == 1 else add(mul(q, end + (2 - way.a - way.b)), way.a - 1)


def _elements(way: Way, ranks: Tensor, values: Any, end: Any, element: Callable[[Any], Tensor]) -> Tensor:
    """Return the elements at ranks, whose values are given as an array or a tensor."""

    def index_of(function: Callable[[Any], Any]) -> Any:
        index = (_OF_TENSORS.get(function, function) if values is ranks else function)(values)
        return index if way.a == 1 else np.minimum(np.maximum(index, 0), end)

    below = index_of(way.below)
    first = element(below)
    if way.above is None:
        return first
    second = element(index_of(way.above))
    if way.is_mean:
        return add(mul(first, 0.5), mul(second, 0.5))
    return lerp(first, second, sub(ranks, below) if way.weight is None else way.weight)


@public(method=True)
@composite(
    _SAMPLES,
    lambda input, q, dim=None, keepdim=False, interpolation="linear": np.asarray(
        np.quantile(input, q, axis=dim, keepdims=keepdim, method=interpolation), input.dtype
    ),
    real_only=True,
)
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    r"""Quantiles of the elements, interpolated between neighbours in order; nan if an element is.

    Parameters
    ----------
    input : Tensor or array
    q : float, or Tensor or array, (n,)
        From 0 to 1; of several quantiles the result has a first dimension.
    dim : int, optional
        Default all.
    keepdim : bool
        Keep the dimension, with length 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If `input` is empty or not of a real floating dtype, or `q` is out of range.

    Notes
    -----
    Derivative: with m elements, of which j and k are the neighbours below and above the rank :math:`q (m - 1)`, and
    w its fraction, :math:`\bar x_i = ((1 - w) [i = j] + w [i = k]) \bar y` and
    :math:`\bar q = (m - 1) (x_k - x_j) \bar y`. This is for "linear".

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.quantile(tg.tensor([0.0, 10.0, 20.0]), 0.25)
    tensor(5.)
    """
    return quantile_by("quantile", input, q, dim, keepdim, interpolation, False)


@public(method=True)
@composite(
    (*_SAMPLES, Sample(((4,),), {"q": 0.5}, (np.array([1.0, np.nan, 3.0, 2.0]),))),
    lambda input, q, dim=None, keepdim=False, interpolation="linear": np.asarray(
        np.nanquantile(input, q, axis=dim, keepdims=keepdim, method=interpolation), input.dtype
    ),
    real_only=True,
)
def nanquantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    r"""Quantiles of the elements that are not nan; nan if all are.

    Parameters
    ----------
    input : Tensor or array
    q : float, or Tensor or array, (n,)
    dim : int, optional
    keepdim : bool
    interpolation : str
        As of `quantile`.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If `input` is empty or not of a real floating dtype, or `q` is out of range.

    Notes
    -----
    Derivative: with m elements that are not nan, of which j and k are the neighbours below and above the
    rank :math:`q (m - 1)`, and w its fraction, :math:`\bar x_i = ((1 - w) [i = j] + w [i = k]) \bar y` and
    :math:`\bar q = (m - 1) (x_k - x_j) \bar y`. This is for "linear".

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nanquantile(tg.tensor([0.0, tg.nan, 20.0]), 0.5)
    tensor(10.)
    """
    return quantile_by("nanquantile", input, q, dim, keepdim, interpolation, True)

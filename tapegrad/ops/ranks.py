"""Ops that choose elements along a dimension by their rank: k-th values, medians, modes, the k largest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad.forward.selection import ranked
from tapegrad.kernels.extrema import extremum_step
from tapegrad.kernels.selection import MEDIAN, MODE, NANMEDIAN, RANK
from tapegrad.ops.ordering import ValuesIndices, chosen_rule, chosen_step, stable_order
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, one_dim, operation, out_of_range
from tapegrad.ops.table.values import KINKS, different
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.return_types import return_type
from tapegrad.tape.layout import Layout

Positions = Callable[..., np.ndarray]
VALUES: Final = docs.Common(
    "input : Tensor or array\ndim : int",
    "keepdim : bool\n    Keep the dimension, with length 1.",
    "named tuple of Tensor\n    ``values``, and ``indices`` (int64), their positions in `input`.",
    "IndexError\n    If `input` does not have such a dimension, or there is nothing to choose from.",
)
_SAMPLES: Final = (
    Sample(((),), {"dim": 0}),
    Sample(((5,),), {"dim": 0}),
    Sample(((2, 4),), {"dim": -1, "keepdim": True}),
    Sample(((2, 3, 4),), {"dim": 1}),
)


def forward_at(positions: Positions, keeps: bool = False) -> Callable[..., Any]:
    """Return the forward that takes the elements at these positions, which is given the dimension as an integer."""

    def forward(x: Any, dim: tuple[int, ...], keepdim: bool = keeps, **attrs: Any) -> tuple[Any, Any]:
        if not dim:
            return np.array(x), np.zeros((), np.int64)
        indices = positions(x, dim[0], **attrs)
        values = np.take_along_axis(x, indices, dim[0])
        if not keepdim:
            values, indices = values.squeeze(dim[0]), indices.squeeze(dim[0])
        return np.ascontiguousarray(values).reshape(values.shape), np.ascontiguousarray(indices).reshape(indices.shape)

    return forward


def _prepared(
    by_numpy: Callable[..., Any], way: int
) -> Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]]:
    """Return what prepares the forward that chooses one element of each line, or of all where `dim` is no attribute."""

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        x, dims = layouts[0], attrs["dim"]
        shape = tuple([1 if at in dims else n for at, n in enumerate(x.shape) if at not in dims or attrs["keepdim"]])
        otherwise = partial(by_numpy, **attrs)
        return ranked(x, dims, shape, way, attrs.get("k", 1) - 1, otherwise) if dims else otherwise

    return prepare


def _bound(call: str, input: Any, dim: int, keepdim: bool, **attrs: Any) -> Bound:
    x = as_operand(input, call, "input", 1)
    x._array()
    place = one_dim(call, x.ndim, dim)
    if 0 in x.shape[place : place + 1]:
        raise IndexError(
            f"{call}(): Expected reduction dim {place} to have non-zero size; it got shape {list(x.shape)}"
        )
    return Bound((x,), {"dim": (place,) if x.ndim else (), "keepdim": bool(keepdim), **attrs})


def _chooses(
    name: str, positions: Positions, oracle: Any, attrs: tuple[str, ...] = (), way: int | None = None, **fields: Any
) -> Callable[[Callable[..., Bound]], Callable[..., Any]]:
    """Return the decorator `operation` of a function that chooses one element of each line."""
    return operation(
        name,
        **{
            "forward": forward_at(positions),
            "prepare_forward": None if way is None else _prepared(forward_at(positions), way),
            "vjp": (chosen_rule,), "family": "ranks", "step": chosen_step,
            "attrs": ("dim", "keepdim", *attrs), "results": ("values", "indices"),
            "result_type": return_type(ValuesIndices, name.partition("_")[0]), "oracle": oracle, "samples": _SAMPLES,
            "errors": (out_of_range(name),), "real_only": True,
            "kinks": (different,),  # of equal elements PyTorch returns the index of any
            **fields,
        },
    )  # fmt: skip


def _line(function: Callable[..., float]) -> Callable[..., Any]:
    """Return the oracle that calls a function with the sorted elements of each line."""

    def oracle(x: Any, dim: int, keepdim: bool = False, **rest: Any) -> Any:
        lines = np.moveaxis(np.atleast_1d(x), dim if np.ndim(x) else 0, -1)
        found = np.array(
            [
                function(sorted(line, key=lambda value: (value != value, value)), **rest)
                for line in lines.reshape(-1, lines.shape[-1]).tolist()
            ]
        )
        found = found.reshape(lines.shape[:-1]).astype(np.asarray(x).dtype)
        return found.reshape(()) if not np.ndim(x) else np.expand_dims(found, dim) if keepdim else found

    return oracle


# One of each line --------------------------------------------------------------------------------------------------


def part_of(order: np.ndarray, axis: int, first: int, last: int) -> np.ndarray:
    """Return what stands from `first` up to `last` along an axis."""
    return order[(*[slice(None)] * axis, slice(first, last))]


def _first_of_equal(x: Any, indices: np.ndarray, axis: int) -> np.ndarray:
    """Return the first places of elements that are equal to those at these indices, as the kernel does."""
    values = np.take_along_axis(x, indices, axis)
    return np.asarray(np.argmax((x == values) | ((x != x) & (values != values)), axis, keepdims=True))


def _kth(x: Any, axis: int, k: int) -> np.ndarray:
    return _first_of_equal(x, part_of(np.argpartition(x, k - 1, axis), axis, k - 1, k), axis)


@public(method=True)
@_chooses(
    "kthvalue", _kth, _line(lambda line, k: line[k - 1]), ("k",), RANK,
    samples=tuple(one._replace(attrs={"k": 1 + (len(one.shapes[0]) > 1), **one.attrs}) for one in _SAMPLES),
    errors=(
        ErrorSample(lambda: xp.kthvalue(np.ones(3), 4), RuntimeError, "selected number k out of range for dimension 0"),
        ErrorSample(lambda: xp.kthvalue(np.ones(3), 1, 1), IndexError, "Dimension out of range"),
    ),
    common=VALUES._replace(parameters="input : Tensor or array\nk : int\n    From 1.\ndim : int"),
)  # fmt: skip
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Bound:
    r"""Choose the `k`-th smallest elements along a dimension, and their indices; nan counts as the largest.

    Notes
    -----
    Derivative: 1 at the index p returned, :math:`\bar x_i = [i = p] \bar y`. Of equal elements it is any.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.kthvalue(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    k = integer("kthvalue", "k", k)
    bound = _bound("kthvalue", input, dim, keepdim, k=k)
    (x,) = bound.operands
    place = bound.attrs["dim"]
    if not 1 <= k <= (x.shape[place[0]] if place else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {place[0] if place else 0}; k is {k} and the "
            f"shape {list(x.shape)}"
        )
    return bound


def _middle(x: Any, axis: int, ignores_nan: bool) -> np.ndarray:
    if x.dtype.kind != "f" or not np.isnan(x).any():
        return _kth(x, axis, (x.shape[axis] + 1) // 2)
    order = stable_order(x, axis)
    counts = x.shape[axis] - np.isnan(x).sum(axis, keepdims=True)  # nan stand last
    middle = np.maximum(counts - 1, 0) // 2
    if not ignores_nan:
        middle = np.where(counts < x.shape[axis], counts, middle)
    return _first_of_equal(x, np.take_along_axis(order, middle, axis), axis)


def _middle_of(ignores_nan: bool, line: list[float]) -> float:
    numbers = [value for value in line if value == value]
    is_nan = not numbers or (len(numbers) < len(line) and not ignores_nan)
    return np.nan if is_nan else numbers[(len(numbers) - 1) // 2]


def _along(name: str, ignores_nan: bool, doc: str) -> Callable[..., ValuesIndices]:
    @_chooses(
        name, lambda x, axis: _middle(x, axis, ignores_nan), _line(partial(_middle_of, ignores_nan)), doc=doc,
        node_name=f"{name.partition('_')[0].title()}Backward1", way=NANMEDIAN if ignores_nan else MEDIAN,
    )  # fmt: skip
    def bind(input: Any, dim: int, keepdim: bool = False) -> Bound:
        return _bound(name.partition("_")[0], input, dim, keepdim)

    return bind


median_along = _along("median_along", False, "Return the medians along a dimension, and their indices.")
nanmedian_along = _along("nanmedian_along", True, "Return the medians of all but nan along a dimension.")


def _whole_by_numpy(x: Any, ignores_nan: bool) -> Any:
    flat = np.asarray(x).reshape(-1)
    if not flat.size:
        return flat.dtype.type(np.nan) if flat.dtype.kind == "f" else flat.dtype.type(0)
    if flat.dtype.kind == "f":
        missing = np.isnan(flat)
        if missing.any():
            flat = flat[~missing] if ignores_nan and not missing.all() else flat[missing]
    return np.partition(flat, (flat.size - 1) // 2)[(flat.size - 1) // 2]


def _prepare_whole(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    x, ignores_nan = layouts[0], attrs["ignores_nan"]

    def by_numpy(x: Any) -> Any:
        return _whole_by_numpy(x, ignores_nan)

    if not x.shape:
        return by_numpy
    found = ranked(x, range(len(x.shape)), (), NANMEDIAN if ignores_nan else MEDIAN, 0, by_numpy)
    return found if found is by_numpy else lambda x: found(x)[0]


def _whole_rule(ct: Any, x: Any, out: Any) -> Any:
    chosen = (x == out) | ((x != x) & (out != out))
    return xp.where(chosen, ct / xp.sum(chosen), 0.0)


def _whole_step(plan: Plan) -> Step | None:
    """Return the step that shares the cotangent; its kernel lets nan have a part, which `nanmedian` does not."""
    return None if plan.attrs["ignores_nan"] else extremum_step(plan, tuple(range(plan.layouts[0].ndim)))


@operation(
    "median_of_all",
    forward=_whole_by_numpy,
    prepare_forward=_prepare_whole,
    vjp=(_whole_rule,),
    family="ranks",
    step=lambda plan, operand: _whole_step(plan),
    attrs=("ignores_nan",),
    oracle=lambda x, ignores_nan: np.sort(np.ravel(x))[(np.size(x) - 1) // 2],
    samples=(Sample(((),), {"ignores_nan": False}), Sample(((2, 3),), {"ignores_nan": True})),
    errors=(ErrorSample(lambda: xp.median_of_all(np.ones(2) * 1j, True), RuntimeError, "complex"),),
    real_only=True,
    node_name="MedianBackward0",
)
def median_of_all(input: Any, ignores_nan: bool) -> Bound:
    """Return the median of all elements; elements that are equal to it share its cotangent evenly."""
    x = as_operand(input, "median", "input", 1)
    x._array()
    return Bound((x,), {"ignores_nan": ignores_nan})


@public(method=True, of=median_along)
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    r"""Median of the elements; along a dimension, with its index. Of an even number, the lower middle one.

    Parameters
    ----------
    input : Tensor or array
    dim : int, optional
        Default all, in any order.
    keepdim : bool
        Keep the dimension, with length 1.

    Returns
    -------
    Tensor, or a named tuple of values and indices

    Raises
    ------
    IndexError
        If `input` does not have the dimension, or there is nothing to choose from along it.

    Notes
    -----
    nan if an element is. Derivative: 1 at the index returned; without `dim`, elements equal to the median share evenly,
    :math:`\bar x_i = \bar y [x_i = y] / \sum_j [x_j = y]`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.median(tg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """
    return median_of_all(input, False) if dim is None else median_along(input, dim, keepdim)


@public(method=True, of=nanmedian_along)
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Median of the elements that are not nan; along a dimension, with its index.

    Arguments, result, errors and derivative are those of `median`; nan if all elements are.

    Derivative: as of `median`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nanmedian(tg.tensor([4.0, tg.nan, 3.0]))
    tensor(3.)
    """
    return median_of_all(input, True) if dim is None else nanmedian_along(input, dim, keepdim)


def _most_frequent(x: Any, axis: int) -> np.ndarray:
    order = np.moveaxis(stable_order(x, axis), axis, -1)
    values = np.take_along_axis(np.moveaxis(x, axis, -1), order, -1)
    begins = np.ones(values.shape, bool)
    begins[..., 1:] = values[..., 1:] != values[..., :-1]
    places = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    lengths = places - np.maximum.accumulate(np.where(begins, places, 0), -1)
    last = np.argmax(lengths, -1)[..., None]  # the first of the longest stretches, and its last element
    return np.moveaxis(np.take_along_axis(order, last, -1), -1, axis)


@public(method=True)
@_chooses(
    "mode", _most_frequent, _line(lambda line: max(line, key=lambda value: (line.count(value), -value))), way=MODE,
    kinks=KINKS,
    common=VALUES,
)  # fmt: skip
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Bound:
    r"""Choose the most frequent elements along a dimension, and the last index of each; of several, the smallest.

    Notes
    -----
    Derivative: 1 at the index p returned, :math:`\bar x_i = [i = p] \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> values, indices = tg.mode(tg.tensor([3.0, 1.0, 3.0]))
    >>> values.item(), indices.item()
    (3.0, 2)
    """
    return _bound("mode", input, dim, keepdim)

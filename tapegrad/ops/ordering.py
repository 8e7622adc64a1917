"""Ops that choose along a dimension: by index, by order (sort), the largest and smallest with their indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward.results import finished, is_draft
from tapegrad.forward.rowwise import extrema
from tapegrad.kernels.chosen import step_by_indices
from tapegrad.kernels.structural import copy_step
from tapegrad.ops.reductions import kept_shape
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import public, publish
from tapegrad.ops.table.structural import one_dim, operation, out_of_range
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

_INDICES: Final = np.array([[0, 2, 0], [1, 1, 0]])
_LONG: Final = 2048  # elements that are sorted


class ValuesIndices(NamedTuple):
    """The results of ops that choose along a dimension."""

    values: Tensor
    indices: Tensor


# Chosen by index ---------------------------------------------------------------------------------------------------


def _put_along(x: np.ndarray, indices: np.ndarray, dim: int, length: int) -> np.ndarray:
    out = np.zeros((*x.shape[:dim], length, *x.shape[dim + 1 :]), x.dtype)
    if x.ndim:
        places: list[Any] = list(np.indices(x.shape, sparse=True))
        places[dim] = indices
        np.add.at(out, tuple(places), x)
    return out


_take_along = Op(
    name="take_along",
    operands=("x", "indices"),
    forward=lambda x, indices, dim: np.take_along_axis(x, indices, dim),
    vjp=(lambda ct, indices, x_shape, dim: put_along(ct, indices, dim, x_shape[dim]), NOT_DIFFERENTIABLE),
    family="along",
    linear=True,
    step=lambda plan, operand: step_by_indices(plan, plan.attrs["dim"], "indices", "scatter"),
    attrs=("dim",),
    oracle=lambda x, indices, dim: np.take_along_axis(x, indices, dim),
    samples=(
        Sample(((4, 3), (2, 3)), {"dim": 0}, values=(None, _INDICES)),
        Sample(((2, 5), (2, 3)), {"dim": 1}, values=(None, _INDICES)),
    ),
    errors=(ErrorSample(lambda: take_along(np.ones(2), np.array([2]), 0), IndexError, "out of bounds"),),
)

_put_along_op = Op(
    name="put_along",
    operands=("x", "indices"),
    forward=_put_along,
    vjp=(lambda ct, indices, dim: take_along(ct, indices, dim), NOT_DIFFERENTIABLE),
    family="along",
    linear=True,
    step=lambda plan, operand: step_by_indices(plan, plan.attrs["dim"], "indices", "gather"),
    attrs=("dim", "length"),
    oracle=lambda x, indices, dim, length: _put_along(x, indices, dim, length),
    samples=(
        Sample(((2, 3), (2, 3)), {"dim": 0, "length": 4}, values=(None, _INDICES)),
        Sample(((2, 3), (2, 3)), {"dim": 1, "length": 3}, values=(None, _INDICES)),
    ),
    errors=(ErrorSample(lambda: put_along(np.ones(2), np.array([0, 2]), 0, 2), IndexError, "out of bounds"),),
)


def take_along(input: Any, indices: Any, dim: int) -> Tensor:
    """Return the elements at these indices along a dimension, as `numpy.take_along_axis` does."""
    x, chosen = as_operand(input, "take_along", "input", 1), as_operand(indices, "take_along", "indices", 2)
    return apply(_take_along, Bound((x, chosen), {"dim": dim}))


def put_along(input: Any, indices: Any, dim: int, length: int) -> Tensor:
    """Return zeros, `length` of them along a dimension, to which elements are added: the adjoint of `take_along`."""
    x, chosen = as_operand(input, "put_along", "input", 1), as_operand(indices, "put_along", "indices", 2)
    return apply(_put_along_op, Bound((x, chosen), {"dim": dim, "length": length}))


publish(take_along, _take_along, take_along.__doc__ or "")
publish(put_along, _put_along_op, put_along.__doc__ or "")


# Chosen by order ---------------------------------------------------------------------------------------------------


def chosen_rule(ct: Any, indices: Any, x_shape: tuple[int, ...], dim: tuple[int, ...]) -> Any:
    """Return the cotangent of chosen elements, put back to their indices."""
    if not dim:
        return ct
    kept = ct.shape if len(ct.shape) == len(x_shape) else kept_shape(x_shape, dim)
    return put_along(xp.reshape(ct, kept), xp.reshape(indices, kept), dim[0], x_shape[dim[0]])


def chosen_step(plan: Plan, operand: int) -> Step | None:
    """Return the step that adds the cotangent of chosen elements at their indices; of a number, the copy."""
    dim = plan.attrs["dim"]
    return step_by_indices(plan, dim[0], "indices", "scatter") if dim else copy_step(plan)


def _extremum_forward(largest: bool) -> Callable[..., Callable[..., Any]]:
    function, position = (np.maximum, np.ndarray.argmax) if largest else (np.minimum, np.ndarray.argmin)

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        dim, keepdim = attrs["dim"], attrs["keepdim"]
        if not dim:
            return lambda x: (np.array(x), np.zeros((), np.int64))
        values: Any = extrema(function, layouts[0], dim, keepdim)
        found: Any = _Extrema(values, position, dim[0], keepdim)
        return found if is_draft(values) else found.made()  # type: ignore[no-any-return]

    return prepare


class _Extrema(NamedTuple):
    """A forward that finds the extrema and their indices, of which the former may be a draft for all lengths."""

    values: Any
    position: Callable[..., Any]
    dim: int
    keepdim: bool

    def made(self) -> Callable[..., Any]:
        """Return the forward."""
        values, position, dim, keepdim = self
        values = finished(values)
        return lambda x: (values(x), np.asarray(position(x, dim, keepdims=keepdim)))


def _extremum(name: str, largest: bool) -> Callable[..., ValuesIndices]:
    choose, position = (np.max, np.argmax) if largest else (np.min, np.argmin)
    call = name.removesuffix("_along")

    @operation(
        name,
        forward=lambda x, dim, keepdim: (choose(x, axis=dim, keepdims=keepdim), position(x, axis=dim)),
        vjp=(chosen_rule,),
        family="along",
        step=chosen_step,
        attrs=("dim", "keepdim"),
        prepare_forward=_extremum_forward(largest),
        results=("values", "indices"),
        result_type=return_type(ValuesIndices, call),
        oracle=lambda x, dim, keepdim=False: choose(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
        samples=(
            Sample(((),), {"dim": 0}),
            Sample(((3,),), {"dim": 0}),
            Sample(((2, 3),), {"dim": -1, "keepdim": True}),
            Sample(((2, 3, 4),), {"dim": 1}),
        ),
        errors=(out_of_range(name),),
        real_only=True,
        node_name=f"{call.title()}Backward0",
        doc=f"Return the {'largest' if largest else 'smallest'} elements along a dimension, and their indices.",
    )
    def bind(input: Any, dim: int, keepdim: bool = False) -> Bound:
        x = as_operand(input, call, "input", 1)
        x._array()
        place = one_dim(call, x.ndim, dim)
        if 0 in x.shape[place : place + 1]:
            raise IndexError(
                f"{call}(): Expected reduction dim {place} to have non-zero size; it got shape {list(x.shape)}"
            )
        return Bound((x,), {"dim": (place,) if x.ndim else (), "keepdim": bool(keepdim)})

    return bind


max_along = _extremum("max_along", True)
min_along = _extremum("min_along", False)


def _sort_forward(x: Any, dim: tuple[int, ...], descending: bool, stable: bool) -> tuple[Any, Any]:
    sort: Callable[[Any], tuple[Any, Any]] = _sorter(x.shape, dim, descending)
    return sort(x)


def stable_order(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the indices that sort an array; elements that are equal keep their order."""
    if x.shape[axis] >= _LONG and x.dtype.kind == "f":
        # NumPy's unstable sort is more than twice as fast; afterwards the indices of equal elements are sorted.
        order = np.ascontiguousarray(np.moveaxis(x.argsort(axis), axis, -1))
        values = np.take_along_axis(np.moveaxis(x, axis, -1), order, -1)
        if not np.isnan(values[..., -1]).any() and _sort_ties(order, values):
            return np.moveaxis(order, -1, axis)
    return x.argsort(axis, "stable")


def _sort_ties(order: np.ndarray, values: np.ndarray) -> bool:
    """Sort the indices of neighbours that are equal, along the last dimension; False if there are many of them."""
    length = order.shape[-1]
    begins = np.ones(order.shape, bool)  # a stretch of equal values
    np.not_equal(values[..., 1:], values[..., :-1], out=begins[..., 1:])
    tied = ~begins
    tied[..., :-1] |= tied[..., 1:]
    places = np.flatnonzero(tied)
    if places.size > order.size // 8:
        return False
    if places.size:
        indices = order.reshape(-1)
        stretches = np.cumsum(begins)[places] * length + indices[places]
        stretches.sort()
        indices[places] = stretches % length
    return True


def _sorter(shape: tuple[int, ...], dim: tuple[int, ...], descending: bool) -> Callable[..., Any]:
    """Return what sorts arrays of a shape, and gives the indices."""
    if not dim:
        return lambda x: (np.array(x), np.zeros((), np.int64))
    axis, last = dim[0], shape[dim[0]] - 1
    # The order along one dimension, and all indices along the others.
    index: list[Any] = list(np.indices(shape, sparse=True))
    # In descending order nan stands first and ties keep their order: as in the reverse of the reversed array.
    reverse = (*[slice(None)] * axis, slice(None, None, -1))

    def sort(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = stable_order(x[reverse] if descending else x, axis)
        if descending:
            order = last - order[reverse]
        if not order.flags.c_contiguous:
            order = np.ascontiguousarray(order)
        return x[(*index[:axis], order, *index[axis + 1 :])], order

    def sort_line(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = stable_order(x, 0)
        return x[order], order

    return sort_line if len(shape) == 1 and not descending else sort


@public(method=True)
@operation(
    "sort",
    forward=_sort_forward,
    vjp=(chosen_rule,),
    family="along",
    step=chosen_step,
    attrs=("dim", "descending", "stable"),
    prepare_forward=lambda layouts, attrs: _sorter(layouts[0].shape, attrs["dim"], attrs["descending"]),
    results=("values", "indices"),
    result_type=return_type(ValuesIndices, "sort"),
    oracle=lambda x, dim=-1, descending=False: (
        np.asarray(x) if not np.ndim(x) else np.flip(np.sort(x, axis=dim), dim) if descending else np.sort(x, axis=dim)
    ),
    samples=(
        Sample(((),)),
        Sample(((5,),)),
        Sample(((2, 3),), {"dim": 0}),
        Sample(((2, 3, 4),), {"dim": 1, "descending": True}),
        Sample(((2, 0),)),
    ),
    errors=(out_of_range("sort"),),
    real_only=True,
    common=docs.ALONG,
)
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Bound:
    r"""Sort the elements, of a real dtype, along a dimension; nan counts as the largest.

    Parameters
    ----------
    descending : bool
        The largest first.
    stable : bool
        Accepted for PyTorch's sake: equal elements always keep their order.

    Returns
    -------
    named tuple of Tensor
        ``values``, and ``indices`` (int64), their positions in `input`.

    Notes
    -----
    Derivative: the cotangent of each value goes to its position in `input`; with the indices p,
    :math:`\bar x_i = \sum_j [p_j = i] \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> values, indices = tg.sort(tg.tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    x = as_operand(input, "sort", "input", 1)
    x._array()
    place = one_dim("sort", x.ndim, dim)
    return Bound((x,), {"dim": (place,) if x.ndim else (), "descending": bool(descending), "stable": bool(stable)})

"""Ops along a dimension, each result from those before: products, extrema, logarithms of sums; recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad.kernels.scans  # noqa: F401  # it fills the table of lines
from tapegrad.dtypes import DTypeLike
from tapegrad.forward.scipy import log1p_complex
from tapegrad.kernels.along import has_kernel, step_along
from tapegrad.ops.along import SAMPLES, Dims, along, same_shape
from tapegrad.ops.casts import cast
from tapegrad.ops.ordering import ValuesIndices, chosen_rule, chosen_step
from tapegrad.ops.reductions import accumulator
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import public, publish
from tapegrad.ops.table.structural import one_dim, operation, out_of_range
from tapegrad.ops.table.values import with_zeros
from tapegrad.return_types import return_type
from tapegrad.runtime import pool
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor

WHOLE = (None, None, None)


def later(x: Any, dim: int, first: float) -> Any:
    """Return the elements along a dimension, each one place later, behind a number."""
    start = np.full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), first, x.dtype)
    return xp.cat([start, xp.index_gather(x, (), (*[WHOLE] * dim, (None, -1, None)))], dim)


# Recurrences -------------------------------------------------------------------------------------------------------


def _recurrence_by_numpy(factors: Any, terms: Any, dim: Dims) -> np.ndarray:
    factors, terms = np.broadcast_arrays(factors, terms)
    out, axis = np.array(terms, np.result_type(factors, terms)), dim[0]
    lines, parts = np.moveaxis(out, axis, 0), np.moveaxis(factors, axis, 0)
    for k in range(1, len(lines)):  # a step for all lines at once
        lines[k] += parts[k] * lines[k - 1]
    return out


def _prepare_recurrence(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    alike = layouts[0].shape == layouts[1].shape and layouts[0].dtype == layouts[1].dtype
    if alike and all(map(has_kernel, layouts)):
        found: Callable[..., Any] = along("recurrence", same_shape, _recurrence_by_numpy)(layouts, attrs)
        return found
    return lambda factors, terms: _recurrence_by_numpy(factors, terms, **attrs)


def _recurrence_rule(ct: Any, factors: Any, out: Any, dim: Dims) -> Any:
    by_terms = sums_of_later(ct, factors, dim)
    return by_terms * xp.conj(later(out, dim[0], 0.0)), by_terms


_recurrence = Op(
    name="recurrence",
    operands=("factors", "terms"),
    forward=_recurrence_by_numpy,
    prepare_forward=_prepare_recurrence,
    vjp=_recurrence_rule,
    family="along",
    attrs=("dim",),
    oracle=lambda factors, terms, dim: np.stack(
        [
            sum(np.prod(np.moveaxis(factors, dim[0], 0)[j + 1 : k + 1], 0) * term for j, term in enumerate(part))
            for k in range(terms.shape[dim[0]]) for part in [np.moveaxis(terms, dim[0], 0)[: k + 1]]
        ], dim[0]
    ),
    samples=(Sample(((4,), (4,)), {"dim": (0,)}), Sample(((2, 3), (2, 3)), {"dim": (1,)})),
    errors=(ErrorSample(lambda: recurrence("x", 1.0, (0,)), TypeError, "recurrence"),),
)  # fmt: skip


def recurrence(factors: Any, terms: Any, dim: Dims) -> Tensor:
    """Return ``y[k] = factors[k] * y[k-1] + terms[k]`` along a dimension, given as a tuple of one."""
    operands = as_operand(factors, "recurrence", "factors", 1), as_operand(terms, "recurrence", "terms", 2)
    if not all(own._layout.floating for own in operands):
        raise TypeError(f"recurrence() takes floating dtypes, not {operands[0].dtype} and {operands[1].dtype}")
    return apply(_recurrence, Bound(operands, {"dim": dim}))


publish(recurrence, _recurrence, recurrence.__doc__ or "")


def sums_of_later(ct: Any, factors: Any, dim: Dims) -> Any:
    """Return ``z[k] = ct[k] + conj(factors[k+1]) * z[k+1]``: the adjoint of a recurrence."""
    backwards = later(xp.flip(xp.conj(factors), dim), dim[0], 0.0)
    return xp.flip(xp.recurrence(backwards, xp.flip(ct, dim), dim), dim)


# Cumulative --------------------------------------------------------------------------------------------------------


def _cumprod_by_numpy(x: Any, dim: Dims) -> Any:
    return np.cumprod(x, axis=dim[0]) if dim else x


def _cumprod_rule(ct: Any, x: Any, out: Any, dim: Dims) -> Any:
    """Return what comes before an element, times a sum over what follows; zeros need no special case."""
    return xp.conj(later(out, dim[0], 1.0)) * sums_of_later(ct, x, dim) if dim and x.shape[dim[0]] else ct


def _cumprod_of_numpy(a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None) -> Tensor:
    if out is not None:
        raise TypeError("np.cumprod does not work on tensors with out=; leave it away")
    x = as_operand(a, "cumprod", "input", 1)
    return cumprod(xp.reshape(x, (-1,)) if axis is None else x, axis or 0, dtype=dtype)  # type: ignore[no-any-return]


@public(method=True, inplace=True, accumulates="multiply", functions=("cumprod",), adapter=_cumprod_of_numpy)
@operation(
    "cumprod",
    forward=_cumprod_by_numpy,
    vjp=(_cumprod_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x", "out")),
    attrs=("dim",),
    prepare_forward=along("cumprod", same_shape, _cumprod_by_numpy),
    oracle=lambda x, dim: np.asarray(x) if not np.ndim(x) else np.multiply.accumulate(x, axis=dim),
    samples=(*SAMPLES, *(Sample(((2, 4),), {"dim": 1}, (with_zeros(count),)) for count in (1, 2))),
    errors=(out_of_range("cumprod"),),
    common=docs.ALONG,
)
def cumprod(input: Any, dim: int, *, dtype: DTypeLike | None = None) -> Bound:
    r"""Cumulative products along a dimension: of each element and those before it.

    Parameters
    ----------
    dtype : dtype, optional
        To multiply in; default that of `input`, and int64 for integers and bool.

    Notes
    -----
    Derivative: :math:`\bar x_i = \sum_{j \ge i} \bar y_j \prod_{k \le j, k \ne i} x_k`, by a recurrence without
    divisions; it is right where elements are zero.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cumprod(tg.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    x = as_operand(input, "cumprod", "input", 1)
    place = one_dim("cumprod", x.ndim, dim)
    wanted = accumulator(x, dtype)
    if wanted is not None and x.dtype != wanted:
        x = cast(x, wanted)
    x._array()
    return Bound((x,), {"dim": (place,) if x.ndim else ()})


def _logcumsumexp_by_numpy(x: Any, dim: Dims) -> Any:
    if not dim or not x.size:
        return x
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim[0], dtype=np.float64)
    out = np.array(x)
    lines = np.moveaxis(out, dim[0], 0)
    for k in range(1, len(lines)):  # a step for all lines at once
        less, more = np.where(lines[k].real < lines[k - 1].real, lines[k - 1 : k + 1][::-1], lines[k - 1 : k + 1])
        lines[k] = np.where(np.isinf(more.real), more, more + log1p_complex(np.exp(less - more)))
    return out


def _logcumsumexp_rule(ct: Any, x: Any, out: Any, dim: Dims) -> Any:
    finite = xp.where(out == -np.inf, 0.0, out)
    if not dim or not x.shape[dim[0]]:
        return ct * xp.conj(xp.exp(x - finite))
    factors = xp.exp(later(out, dim[0], -np.inf) - finite)  # not above 1; the first, of nothing, is 0
    return sums_of_later(ct, factors, dim) * xp.conj(xp.exp(x - finite))


@public(method=True, accumulates="logaddexp")
@operation(
    "logcumsumexp",
    forward=_logcumsumexp_by_numpy,
    vjp=(_logcumsumexp_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x", "out")),
    attrs=("dim",),
    prepare_forward=along("logcumsumexp", same_shape, _logcumsumexp_by_numpy),
    oracle=lambda x, dim: np.asarray(x) if not np.ndim(x) else np.log(np.cumsum(np.exp(x), axis=dim)),
    samples=SAMPLES,
    errors=(out_of_range("logcumsumexp"),),
    common=docs.ALONG,
)
def logcumsumexp(input: Any, dim: int) -> Bound:
    r"""Logarithms of the cumulative sums of exponentials along a dimension, computed so that nothing overflows.

    Notes
    -----
    Derivative: :math:`\bar x_i = e^{x_i} \sum_{j \ge i} \bar y_j e^{-y_j}`, by a recurrence whose factors are at most
    1.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logcumsumexp(tg.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6931])
    """
    x = as_operand(input, "logcumsumexp", "input", 1)
    if x.dtype.kind not in "fc":
        raise NotImplementedError(
            f"logcumsumexp not implemented for '{x.dtype}'; convert its dtype first, e.g. with .double()"
        )
    x._array()
    place = one_dim("logcumsumexp", x.ndim, dim)
    return Bound((x,), {"dim": (place,) if x.ndim else ()})


def _extremes(name: str, accumulate: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Return what prepares cumulative extrema: of equal ones the index of the last; nan, once met, remains."""

    def by_numpy(x: Any, dim: Dims) -> tuple[np.ndarray, np.ndarray]:
        if not dim:
            return np.array(x), np.zeros((), np.int64)
        places = np.arange(x.shape[dim[0]]).reshape([-1 if at == dim[0] else 1 for at in range(x.ndim)])
        values = np.asarray(accumulate(x, axis=dim[0]), order="C")
        is_new = (x == values) | (x != x)
        return values, np.maximum.accumulate(np.where(is_new, places, 0), axis=dim[0])

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        x, dim = layouts[0], attrs["dim"]
        if not dim or not has_kernel(x) or not x.size:
            return lambda x: by_numpy(x, dim)
        places = along(name, same_shape, lambda x, values, dim: by_numpy(x, dim)[1], np.dtype(np.int64))(layouts, attrs)
        shape, dtype = x.shape, x.dtype

        def forward(x: Any) -> tuple[np.ndarray, np.ndarray]:
            values = pool.empty(shape, dtype)
            return values, places(x, values)  # which writes both

        return forward

    return prepare


def _cumulative(name: str, function: np.ufunc, which: str) -> Callable[..., ValuesIndices]:
    @public(method=True, accumulates=function.__name__)
    @operation(
        name,
        forward=lambda x, dim: _extremes(name, function.accumulate)((layout_of(x),), {"dim": dim})(x),
        prepare_forward=_extremes(name, function.accumulate),
        vjp=(chosen_rule,),
        family="ranks",
        step=chosen_step,
        attrs=("dim",),
        results=("values", "indices"),
        result_type=return_type(ValuesIndices, name),
        oracle=lambda x, dim: (
            np.stack([function.reduce(np.take(x, range(k + 1), dim), dim) for k in range(np.shape(x)[dim])], dim)
            if np.size(x) and np.ndim(x) else np.asarray(x)
        ),
        samples=SAMPLES,
        errors=(out_of_range(name),),
        real_only=True,
        doc=f"""The {which} elements so far along a dimension, and the indices of the last of each.

    Returns
    -------
    named tuple of Tensor
        ``values``, and ``indices`` (int64).

    Notes
    -----
    Derivative: the cotangent of each value goes to the index returned; with the indices p,
    :math:`\\bar x_i = \\sum_j [p_j = i] \\bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> values, indices = tg.{name}(tg.tensor([2.0, 1.0, 2.0, 3.0]), 0)
    >>> indices.tolist()
    {[0, 0, 2, 3] if name == "cummax" else [0, 1, 1, 1]}
    """,
        common=docs.ALONG,
    )  # fmt: skip
    def bind(input: Any, dim: int) -> Bound:
        x = as_operand(input, name, "input", 1)
        x._array()
        place = one_dim(name, x.ndim, dim)
        return Bound((x,), {"dim": (place,) if x.ndim else ()})

    return bind


cummax = _cumulative("cummax", np.maximum, "largest")
cummin = _cumulative("cummin", np.minimum, "smallest")

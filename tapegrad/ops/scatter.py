"""Ops: writing elements, adding them and combining them where indices say along one dimension (scatter and its kin)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad import dtypes
from tapegrad.forward import chosen
from tapegrad.kernels.chosen import FIRST, scatter_step
from tapegrad.kernels.reduced import scatter_reduce_step
from tapegrad.ops.arithmetic import div
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.gather import INDEX, PICK, check_range, check_shapes, indices_of, narrowed
from tapegrad.ops.table.gateway import as_operand, connect, constant
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import public, publish
from tapegrad.ops.table.structural import one_dim
from tapegrad.ops.table.values import KINKS
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor

_ACCUMULATED: Final = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_WAYS: Final = {"add": "sum", "multiply": "prod", "max": "amax", "min": "amin"}  # other names of reductions


def _places(shape: tuple[int, ...], indices: np.ndarray, dim: int) -> np.ndarray:
    """Return where in a flat array of a shape stands what indices choose."""
    if len(shape) < 2:
        return indices.reshape(-1)
    places, stride = indices * 0, 1
    for place in range(len(shape) - 1, -1, -1):
        if place == dim:
            places = places + indices * stride
        else:
            numbers = np.arange(indices.shape[place]).reshape([-1 if at == place else 1 for at in range(len(shape))])
            places = places + numbers * stride
        stride *= shape[place]
    return places.reshape(-1)


def _scatter_by_numpy(
    x: Any, indices: Any, source: Any, dim: int, reduce: str, include_self: bool = True
) -> np.ndarray:
    x, indices = np.asarray(x), np.asarray(indices)
    out = np.array(x, order="C")
    if not indices.size:
        return out
    check_range(indices, x.shape, dim)
    places, flat = _places(x.shape, indices, dim), out.reshape(-1)
    values = np.broadcast_to(np.asarray(source), indices.shape).reshape(-1)
    if not include_self:
        first = FIRST[reduce] > 0 if x.dtype.kind == "b" else FIRST[reduce]
        limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        flat[places] = first if limits is None or np.isfinite(first) else limits.min if first < 0 else limits.max
    if reduce == "replace":
        flat[places] = values
    else:
        _ACCUMULATED[reduce].at(flat, places, values.astype(x.dtype))
    return out


def _bind_scatter(call: str) -> Callable[..., Bound]:
    def bind(*args: Any) -> Bound:
        input, index, src, dim, *reduce = args
        x, indices = as_operand(input, call, "input", 1), indices_of(call, index)
        x._array()
        place = one_dim(call, x.ndim, dim)
        check_shapes(call, x, indices, place)
        source = as_operand(src, call, "src", 4)
        if source._layout.weak:
            if call != "scatter":
                raise TypeError(f"{call}(): argument 'src' (position 4) must be Tensor, not {type(src).__name__}")
            dtypes.check_range(source._data, x.dtype)
            value = np.asarray(source._data).astype(x.dtype)
            source = constant(value, layout_of(value))
        else:
            _check_source(call, x, indices, source, place)
            source = narrowed(source, indices.shape)
        attrs = dict(zip(("dim", "reduce", "include_self"), (place, *reduce), strict=False))
        return Bound((x, indices, source), attrs)

    return bind


def _check_source(call: str, x: Tensor, index: Tensor, source: Tensor, dim: int) -> None:
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype; {call}() got {x.dtype} and {source.dtype}"
        )
    if not index.numel():
        return
    if max(source.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as src tensor; {call}() got {index.ndim} and "
            f"{source.ndim}"
        )
    if any(a > b for a, b in zip(index.shape, source.shape, strict=False)):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {dim} "
            f"and to be no larger size than src {list(source.shape)}"
        )


def _prepare_scatter(way: str) -> Callable[..., Callable[..., Any]]:
    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        dim, own, includes = attrs["dim"], attrs.get("reduce", way), attrs.get("include_self", True)
        return chosen.scatter(
            layouts, dim, own, includes,
            lambda x, indices, source: _scatter_by_numpy(x, indices, source, dim, own, includes),
        )  # fmt: skip

    return prepare


def _oracle(way: str) -> Callable[..., Any]:
    def oracle(x: Any, indices: Any, source: Any, dim: int, reduce: str = "", include_self: bool = True) -> Any:
        out = np.array(x)
        combine: Any = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "sum": np.add}.get(reduce or way)
        new = set()
        for at in np.ndindex(np.shape(indices)):
            place = (*at[: dim % x.ndim], int(indices[at]), *at[dim % x.ndim + 1 :])
            value = source[at] if np.ndim(source) else source
            fresh = combine is None or (not include_self and place not in new)
            out[place] = value if fresh else combine(out[place], value)
            new.add(place)
        return out

    return oracle


_SCATTER_SAMPLES: Final = (
    Sample(((4, 3), (2, 3), (2, 3)), {"dim": 0}, values=(None, INDEX, None)),
    Sample(((2, 3), (2, 3), (2, 3)), {"dim": -1}, values=(None, INDEX, None)),
    Sample(((4, 3), (1, 2), (2, 3)), {"dim": 0}, values=(None, np.array([[3, 0]]), None)),
)
_UNIQUE: Final = np.array([[0, 2, 1], [1, 0, 3]])  # writing twice to an element has no gradient in PyTorch


def _errors_of(call: str) -> tuple[ErrorSample, ...]:
    def calling(x: Any, index: Any, source: Any, *rest: Any) -> Callable[[], Any]:
        more = ("amax",) if call == "scatter_reduce" else ()
        return lambda: getattr(xp, call)(x, 0, np.asarray(index), source, *more)

    ones = np.ones(2)
    return (
        ErrorSample(calling(ones, [0, 2], ones), RuntimeError, "index 2 is out of bounds for dimension 0 with size 2"),
        ErrorSample(calling(ones, [0, -1], ones), RuntimeError, "index -1 is out of bounds"),
        ErrorSample(calling(ones, [0, 1], np.ones(1)), RuntimeError, "to be no larger size than src [1]"),
        ErrorSample(calling(ones, [0], ones.astype("float32")), RuntimeError, "Expected self.dtype to be equal"),
        ErrorSample(calling(ones, [[0]], ones), RuntimeError, "must have the same number of dimensions as input"),
    )


def _scattering(
    name: str, way: str, vjp: Any, samples: tuple[Sample, ...], attrs: tuple[str, ...] = (), **fields: Any
) -> Op:
    """Return the op of a function that writes at indices."""
    op = Op(
        name=name, operands=("x", "indices", "source"),
        forward=_scatter_by_numpy if attrs else partial(_scatter_by_numpy, reduce=way),
        prepare_forward=_prepare_scatter(way),
        vjp=vjp,
        family="indexing",
        attrs=("dim", *attrs),
        bind=_bind_scatter(name),
        call=lambda x, indices, source, dim, *rest, **more: getattr(xp, name)(x, dim, indices, source, *rest, **more),
        oracle=_oracle(way),
        samples=samples,
        errors=_errors_of(name),
        **fields,
    )  # fmt: skip
    connect(op, 1 + len(attrs))
    return op


_scatter = _scattering(
    "scatter", "replace",
    (
        lambda ct, indices, dim: xp.scatter(ct, dim, indices, 0.0), NOT_DIFFERENTIABLE,
        lambda ct, indices, dim: xp.gather(ct, dim, indices),
    ),
    (
        Sample(((4, 3), (2, 3), (2, 3)), {"dim": 0}, values=(None, _UNIQUE, None)),
        Sample(((2, 4), (2, 3), (2, 3)), {"dim": -1}, values=(None, _UNIQUE, None)),
        Sample(((2, 4), (2, 3), ()), {"dim": -1}, values=(None, _UNIQUE, 2.0)),
    ),
    linear=True, step=scatter_step,
)  # fmt: skip
_scatter_add = _scattering(
    "scatter_add", "sum",
    (lambda ct: ct, NOT_DIFFERENTIABLE, lambda ct, indices, dim: xp.gather(ct, dim, indices)),
    _SCATTER_SAMPLES, linear=True, step=scatter_step,
)  # fmt: skip


def _reduced_rule(
    ct: Any, x: Any, indices: Any, source: Any, out: Any, dim: int, reduce: str, include_self: bool, wanted: Any
) -> Any:
    """Return the rule of scatter_reduce.

    A product is divided by its factor; where this is 0, the slope is the product of the others if these are not 0. With
    two zeros in one product, its second derivative by both is not found. Elements that tie share the cotangent evenly.
    """
    if reduce == "prod":
        nonzero = xp.where(source == 0, 1.0, source)
        start = xp.where(x == 0, 1.0, x)
        others = xp.scatter_reduce(start, dim, indices, nonzero, "prod", include_self=include_self)
        first = xp.cast(x == 0, x.dtype)
        first = first if include_self else xp.scatter(first, dim, indices, 0.0)
        zeros = xp.scatter_add(first, dim, indices, xp.cast(source == 0, x.dtype))
        slope = xp.conj(others)
        by_x = ct * xp.where(x == 0, xp.where(zeros == 1, slope, 0.0), xp.conj(out / start))
        at, count = xp.gather(ct * slope, dim, indices), xp.gather(zeros, dim, indices)
        product = xp.gather(ct * xp.conj(out), dim, indices)
        by_source = xp.where(source == 0, xp.where(count == 1, at, 0.0), product / xp.conj(nonzero))
    else:
        own = (x == out) | ((x != x) & (out != out))
        value = xp.gather(out, dim, indices)
        chosen = xp.cast((source == value) | ((source != source) & (value != value)), ct.dtype)
        first = xp.cast(own, ct.dtype)
        if not include_self:
            first = xp.scatter(first, dim, indices, 0.0)
        total = xp.scatter_add(first, dim, indices, chosen)
        share = ct / total
        by_x, by_source = xp.where(first != 0, share, 0.0), xp.where(chosen != 0, xp.gather(share, dim, indices), 0.0)
    if not include_self:
        by_x = xp.scatter(by_x if reduce != "prod" else ct, dim, indices, 0.0) if wanted[0] else None
    return by_x, None, by_source


_scatter_reduce = _scattering(
    "scatter_reduce", "", _reduced_rule,
    tuple(
        Sample(one.shapes, {**one.attrs, "reduce": way, "include_self": includes}, one.values)
        for way in ("amax", "prod", "amin") for includes in (True, False)
        for one in _SCATTER_SAMPLES[: 3 if way == "prod" else 2]
    ), ("reduce", "include_self"), kinks=(KINKS[0], *KINKS[3:]), step=scatter_reduce_step,
)  # fmt: skip


@public(method=True, inplace=True, common=PICK, of=_scatter)
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, value: Any = None, *, reduce: str | None = None
) -> Tensor:
    r"""Copy with elements of `src` written where indices say along a dimension.

    Parameters
    ----------
    src : Tensor, array or number
        At least as long as `index` in each dimension.
    value : number, optional
        PyTorch's name of a `src` that is a number.
    reduce : {"add", "multiply"}, optional
        What to do with the elements that are there; default replace them, the last one wins.

    Notes
    -----
    Derivative: with different indices p and `src` s, :math:`\bar x_j = \bar y_j \prod_i [p_i \ne j]` and
    :math:`\bar s_i = \bar y_{p_i}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.scatter(tg.zeros(3), 0, tg.tensor([2, 0]), tg.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    source = value if src is None else src
    if reduce is None:
        return _scatter.plans.call(input, index, source, dim)
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply.; it is {reduce!r}")
    if not isinstance(source, (Tensor, np.ndarray)):
        source = expand(_filled(input, source), tuple(index.shape))
    return scatter_reduce(input, dim, index, source, _WAYS[reduce])


def _filled(input: Any, number: Any) -> Tensor:
    value = np.asarray(number, as_operand(input, "scatter", "input", 1).dtype)
    return constant(value, layout_of(value))


@public(method=True, inplace=True, common=PICK, of=_scatter_add)
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    r"""Copy to which elements of `src` are added where indices say along a dimension; several may go to one place.

    Parameters
    ----------
    src : Tensor or array
        At least as long as `index` in each dimension.

    Notes
    -----
    Derivative: 1 for each element of either; with the indices p, :math:`\bar x_i = \bar y_i` and, for `src`,
    :math:`\bar s_j = \bar y_{p_j}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.scatter_add(tg.zeros(3), 0, tg.tensor([2, 0, 2]), tg.tensor([1.0, 2.0, 3.0]))
    tensor([2., 0., 4.])
    """
    return _scatter_add.plans.call(input, index, src, dim)


@public(method=True, inplace=True, common=PICK, of=_scatter_reduce)
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """Copy in which elements of `src` are combined with those where indices say along a dimension.

    Parameters
    ----------
    src : Tensor or array
        At least as long as `index` in each dimension.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool
        Whether the elements that are there count.

    Notes
    -----
    Derivative: of "sum" as of `scatter_add`, of others as of `prod` and `amax`; equal extrema share it evenly.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.scatter_reduce(tg.ones(2), 0, tg.tensor([0, 0, 1]), tg.tensor([4.0, 2.0, 3.0]), "amax")
    tensor([4., 3.])
    """
    if reduce in ("prod", "amax", "amin", "max", "min"):
        return _scatter_reduce.plans.call(input, index, src, dim, _WAYS.get(reduce, reduce), include_self)
    if reduce not in ("sum", "mean"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    start = input if include_self else scatter(input, dim, index, 0)
    total = scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    array = np.asarray(index._looked_at() if isinstance(index, Tensor) else index)
    counts = np.full(total.shape, float(include_self))
    counts = _scatter_by_numpy(counts, array, 1.0, one_dim("scatter_reduce", total.ndim, dim), "sum")
    counts = np.maximum(counts, 1).astype(total.dtype)
    return total // counts if total.dtype.kind in "iu" else div(total, counts)


publish(scatter, _scatter, scatter.__doc__ or "")
publish(scatter_add, _scatter_add, scatter_add.__doc__ or "")
publish(scatter_reduce, _scatter_reduce, scatter_reduce.__doc__ or "")

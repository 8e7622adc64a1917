"""Ops along dimensions that are more than a reduction: softmax and its kin, and the variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.dtypes import TORCH_NAMES, default_dtype
from tapegrad.forward.computed import computed
from tapegrad.kernels.along import geometry_along, has_kernel, kernel_along, step_along
from tapegrad.ops.arithmetic import abs, div, mul, sub
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import real
from tapegrad.ops.extrema import amax
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import attributes, kept_shape, mean, sum, total_shape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public, publish
from tapegrad.ops.table.structural import all_dims, one_dim
from tapegrad.ops.transcendental import exp, log
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

Dims = tuple[int, ...]


def floating(call: str, input: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return an operand as a tensor of a real floating dtype, converted to the given one.

    Raises
    ------
    NotImplementedError
        If it is of another dtype and none is given.
    """
    x = as_operand(input, call, "input", 1)
    if dtype is not None:
        return cast(x, dtype)
    if x._layout.dtype.kind != "f":
        name = TORCH_NAMES.get(x.dtype.name, x.dtype.name)
        raise NotImplementedError(f"{call} not implemented for '{name}'; it got dtype {x.dtype}: convert it first")
    return x


def along(name: str, result_shape: Callable[[Layout, dict[str, Any]], tuple[int, ...]], by_numpy: Any) -> Any:
    """Return `Op.prepare_forward` of an op that has a kernel of its name; others are computed by NumPy, in silence."""

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        own, dtype, values = layouts[0], layouts[0].dtype, dict(**attrs)
        geometry = geometry_along(own.shape, values["dim"])

        def otherwise(x: Any, *index_arrays: Any) -> Any:
            with np.errstate(all="ignore"):
                return np.asarray(by_numpy(np.asarray(x), *index_arrays, **values), dtype=dtype, order="C")[()]

        if geometry is None or not has_kernel(own) or not own.size:
            return otherwise
        shape = result_shape(own, values)
        return computed(kernel_along(name, dtype.name), geometry, shape, dtype, otherwise, by_status=True)

    return prepare


def _shifted(x: Any, dim: Dims) -> Any:
    """Return x less its largest element along dimensions, so that no exponential is infinite."""
    return x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)


def _softmax_by_numpy(x: Any, dim: Dims) -> Any:
    powers = np.exp(_shifted(x, dim))
    return powers / powers.sum(axis=dim, keepdims=True)


def _log_softmax_by_numpy(x: Any, dim: Dims) -> Any:
    shifted = _shifted(x, dim)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _logsumexp_by_numpy(x: Any, dim: Dims, keepdim: bool) -> Any:
    top = np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top)  # of an infinite one the sum is what it is
    found = np.log(np.exp(x - top).sum(axis=dim, keepdims=True)) + top
    return found if keepdim else found.reshape(total_shape(x.shape, dim, False))


def _deviations_by_numpy(x: Any, dim: Dims, keepdim: bool) -> Any:
    return np.sum((x - np.mean(x, axis=dim, keepdims=True)) ** 2, axis=dim, keepdims=keepdim)


def same_shape(layout: Layout, attrs: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of a result that is as long as its operand."""
    return layout.shape


def _reduced(layout: Layout, attrs: dict[str, Any]) -> tuple[int, ...]:
    return total_shape(layout.shape, attrs["dim"], attrs["keepdim"])


_SAMPLES = (
    Sample(((),), {"dim": 0}),
    Sample(((3,),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1}),
    Sample(((2, 3, 4),), {"dim": 1}),
    Sample(((3, 2),), {"dim": 1}, values=(np.arange(6.0).reshape(2, 3).T / 4,)),
    Sample(((0, 3),), {"dim": 1}),
)


def _bind_along(name: str) -> Callable[..., Bound]:
    def bind(input: Any, dim: int, dtype: DTypeLike | None = None) -> Bound:
        x = floating(name, input, dtype)
        place = one_dim(name, x._layout.ndim, dim)
        return Bound((x,), {"dim": (place,) if x._layout.ndim else ()})

    return bind


def _out_of_range(call: Callable[[], Any]) -> ErrorSample:
    words = "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
    return ErrorSample(call, IndexError, words)


_softmax = Op(
    name="softmax",
    operands=("x",),
    forward=_softmax_by_numpy,
    vjp=(lambda ct, out, dim: out * (ct - xp.sum(ct * out, dim, True)),),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("out",)),
    attrs=("dim",),
    bind=_bind_along("softmax"),
    prepare_forward=along("softmax", same_shape, _softmax_by_numpy),
    oracle=lambda x, dim: np.exp(
        _shifted(x, dim if np.ndim(x) else ())
        - np.log(np.exp(_shifted(x, dim if np.ndim(x) else ())).sum(dim if np.ndim(x) else None, keepdims=True))
    ),
    samples=_SAMPLES,
    errors=(_out_of_range(lambda: xp.softmax(np.ones(3), 1)),),
    real_only=True,
)


@public(method=True, namespaces=(TOP, FUNCTIONAL))
def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum.

    Parameters
    ----------
    input : Tensor or array
    dim : int
        Along which the results sum to 1.
    dtype : dtype, optional
        To compute in.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.softmax(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return _softmax.plans.call(input, dim) if dtype is None else _softmax.plans.call(input, dim, dtype)


_log_softmax = Op(
    name="log_softmax",
    operands=("x",),
    forward=_log_softmax_by_numpy,
    vjp=(lambda ct, out, dim: ct - xp.exp(out) * xp.sum(ct, dim, True),),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("out",)),
    attrs=("dim",),
    bind=_bind_along("log_softmax"),
    prepare_forward=along("log_softmax", same_shape, _log_softmax_by_numpy),
    oracle=lambda x, dim: (
        _shifted(x, dim if np.ndim(x) else ())
        - np.log(np.exp(_shifted(x, dim if np.ndim(x) else ())).sum(dim if np.ndim(x) else None, keepdims=True))
    ),
    samples=_SAMPLES,
    errors=(_out_of_range(lambda: xp.log_softmax(np.ones(3), 1)),),
    real_only=True,
)


@public(method=True, namespaces=(TOP, FUNCTIONAL))
def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels.

    Parameters
    ----------
    input : Tensor or array
    dim : int
    dtype : dtype, optional
        To compute in.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.log_softmax(tg.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    return _log_softmax.plans.call(input, dim) if dtype is None else _log_softmax.plans.call(input, dim, dtype)


def _logsumexp_rule(ct: Any, x: Any, out: Any, dim: Dims) -> Any:
    kept = kept_shape(x.shape, dim)
    shift = xp.where(out == -np.inf, 0.0, out)  # of nothing finite the slope is 0
    return xp.reshape(ct, kept) * xp.exp(x - xp.reshape(shift, kept))


def _bind_logsumexp(input: Any, dim: int | Sequence[int], keepdim: bool = False) -> Bound:
    x = as_operand(input, "logsumexp", "input", 1)
    if x._layout.dtype.kind != "f":
        x = cast(x, default_dtype())
    dims = all_dims("logsumexp", x._layout.ndim, dim if isinstance(dim, (tuple, list)) else (dim,))
    return Bound((x,), {"dim": tuple(sorted(dims)) if x._layout.ndim else (), "keepdim": bool(keepdim)})


_logsumexp = Op(
    name="logsumexp",
    operands=("x",),
    forward=_logsumexp_by_numpy,
    vjp=(_logsumexp_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x", "out")),
    attrs=("dim", "keepdim"),
    bind=_bind_logsumexp,
    prepare_forward=along("logsumexp", _reduced, _logsumexp_by_numpy),
    oracle=lambda x, dim, keepdim=False: np.log(np.exp(x).sum(axis=dim if np.ndim(x) else None, keepdims=keepdim)),
    samples=(
        *_SAMPLES[:-1],
        Sample(((2, 3, 4),), {"dim": (0, 2)}),
        Sample(((2, 3, 4),), {"dim": (1, 2), "keepdim": True}),
    ),
    errors=(_out_of_range(lambda: xp.logsumexp(np.ones(3), 1)),),
)


@public(method=True, reduces="logaddexp")
def logsumexp(input: Any, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int
    keepdim : bool
        Keep the dimensions, with length 1.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Notes
    -----
    Derivative: the softmax; 0 where all elements are -inf, of which PyTorch makes nan.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logsumexp(tg.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6931)
    """
    if np.iscomplexobj(getattr(input, "_data", input)):
        parts = real(input).detach()
        top = amax(parts, dim, True) if parts.numel() else 0.0  # a constant, whose size the sum needs not know
        found = log(sum(exp(sub(input, top)), dim, True)) + top
        return found if keepdim else reshape(found, sum(parts, dim).shape)
    return _logsumexp.plans.call(input, dim, keepdim)


def _deviations_rule(ct: Any, x: Any, dim: Dims) -> Any:
    return 2.0 * xp.reshape(ct, kept_shape(x.shape, dim)) * (x - xp.mean(x, dim, True))


def _bind_deviations(input: Any, dim: Any = None, keepdim: bool = False) -> Bound:
    x = floating("var", input)
    return Bound((x,), attributes("var", x, dim, keepdim, None, None))


_deviations = Op(
    name="deviations",
    operands=("x",),
    forward=_deviations_by_numpy,
    vjp=(_deviations_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x",)),
    attrs=("dim", "keepdim"),
    bind=_bind_deviations,
    prepare_forward=along("deviations", _reduced, _deviations_by_numpy),
    oracle=lambda x, dim=None, keepdim=False: (
        np.square(x).sum(axis=dim if np.ndim(x) else None, keepdims=keepdim)
        - np.square(x.sum(axis=dim if np.ndim(x) else None, keepdims=keepdim))
        / (1 if not np.ndim(x) else x.size if dim is None else math.prod(np.take(x.shape, dim).ravel().tolist()))
    ),
    samples=(*_SAMPLES[:-1], Sample(((2, 3),)), Sample(((2, 3, 4),), {"dim": (0, 2)})),
    errors=(_out_of_range(lambda: xp.deviations(np.ones(3), 1)),),
    real_only=True,
)


def deviations(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the sum of the squared deviations from the mean, over all dimensions or over some."""
    return _deviations.plans.call(input, dim, keepdim)


@public(method=True, functions=("var",), adapter="moment")
@composite(
    (Sample(((4,),)), Sample(((2, 3),), {"dim": 1, "keepdim": True}), Sample(((2, 3),), {"dim": 0, "correction": 0})),
    lambda input, dim=None, correction=1, keepdim=False: np.var(input, axis=dim, ddof=correction, keepdims=keepdim),
)
def var(
    input: Any, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False
) -> Tensor:
    """Variance, over all dimensions or over some.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int, optional
        Default all.
    correction : number
        The sum of squares is divided by the number of elements less this; 1 makes it unbiased, 0 a mean.
    keepdim : bool
        Keep the dimensions, with length 1.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.var(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    x = as_operand(input, "var", "input", 1)
    layout = x._layout
    if layout.dtype.kind in "biu":
        raise RuntimeError(
            f"var(): std and var only support floating point and complex dtypes, not {layout.dtype}; convert it first"
        )
    if layout.dtype.kind == "f":
        total = deviations(x, dim, keepdim)
    else:
        size = abs(sub(x, mean(x, dim, True)))
        total = sum(mul(size, size), dim, keepdim)
    count = layout.size // (total._layout.size or 1)
    return div(total, float(max(count - correction, 0)))


for _op, _function in (
    (_softmax, softmax), (_log_softmax, log_softmax), (_logsumexp, logsumexp), (_deviations, deviations)
):  # fmt: skip
    connect(_op, n_arguments=3)
    publish(_function, _op, _function.__doc__ or "")

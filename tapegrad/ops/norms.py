"""Op: norms of vectors, of all orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, DTypeLike
from tapegrad.kernels.along import step_along
from tapegrad.kernels.norms import ORDERS
from tapegrad.ops.along import along, in_numpy, reduced_shape
from tapegrad.ops.casts import cast
from tapegrad.ops.reductions import kept_shape
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import operation, reduced_dims
from tapegrad.ops.table.values import KINKS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout

Dims = tuple[int, ...]


def _forward(x: Any, ord: float, dim: Dims, keepdim: bool) -> Any:
    sizes: Any = np.abs(x)
    over: dict[str, Any] = {"axis": dim, "keepdims": keepdim}
    if ord == np.inf:
        return np.max(sizes, **over, **_without_elements(sizes, dim))
    if ord == -np.inf:
        return np.min(sizes, **over)
    if ord == 0:
        return np.asarray(np.count_nonzero(sizes, **over)).astype(sizes.dtype)[()]
    if ord == 1:
        return np.sum(sizes, **over)
    with np.errstate(all="ignore"):
        total = np.sum(sizes * sizes if ord == 2 else sizes**ord, **over)
        out = np.sqrt(total) if ord == 2 else total ** sizes.dtype.type(1 / ord)
        if np.all((total > _TINY) & (total < _HUGE)) or not sizes.size:
            return out
        # Powers that are not finite, or not normal numbers: those of elements relative to the largest are.
        top = np.max(sizes, axis=dim, keepdims=True)
        top = np.where((top == 0) | ~np.isfinite(top), 1, top).astype(sizes.dtype)
        total = np.sum((sizes / top) ** ord, **over)
        return total ** sizes.dtype.type(1 / ord) * top.reshape(np.shape(total))


_TINY, _HUGE = 1e-30, 1e30  # sums of powers between these, in single precision too, have lost nothing


def _without_elements(sizes: Any, dim: Dims) -> dict[str, Any]:
    return {"initial": 0} if not sizes.size else {}


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    """Return the forward: a kernel, or NumPy for other orders, dtypes and dimensions."""
    dtype = layouts[0].dtype
    if attrs["ord"] not in ORDERS or dtype.kind != "f":
        return in_numpy(_forward, np.empty(0, dtype).real.dtype, dict(attrs))
    prepared: Callable[..., Any] = along(ORDERS[attrs["ord"]][0], reduced_shape, _forward)(layouts, attrs)
    return prepared


def _step(plan: Plan, operand: int) -> Step | None:
    if plan.attrs["ord"] not in ORDERS:
        return None
    name, sources = ORDERS[plan.attrs["ord"]]
    return step_along(plan, plan.attrs["dim"], sources, name)


def _rule(ct: Any, x: Any, out: Any, ord: float, dim: Dims) -> Any:
    kept = kept_shape(x.shape, dim)
    if out.shape and out.shape != kept:
        ct, out = xp.reshape(ct, kept), xp.reshape(out, kept)
    if ord == 0:
        return ct * 0.0 * xp.sgn(x)
    if ord == 1:
        return ct * xp.sgn(x)
    if abs(ord) == np.inf:
        sizes = xp.abs(x)  # of complex numbers, other functions may round them otherwise than the forward does
        chosen = sizes == (xp.amax if ord > 0 else xp.amin)(sizes, dim, True)
        count = xp.sum(chosen, dim, True)
        return xp.where(chosen, ct / xp.where(count == 0, 1, count), 0.0) * xp.sgn(x)
    is_zero = out == 0
    size = xp.where(is_zero, np.inf, out)  # so that the slope is 0 where the norm is, as is what is computed of it
    if ord == 2:
        return (x / size) * ct
    if ord > 2:
        ratio = xp.abs(x) / xp.where(is_zero, 1.0, out)
        return (x / size) * (ct * ratio ** (ord - 2))
    none = x == 0
    ratio = xp.where(none, 1.0, xp.abs(x)) / xp.where(is_zero, 1.0, out)
    return xp.where(none, 0.0, xp.sgn(x) * ratio ** (ord - 1)) * xp.where(is_zero, 0.0, ct)


_SAMPLES = (
    Sample(((),)),
    Sample(((3,),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"ord": 1, "dim": -1, "keepdim": True}),
    Sample(((2, 3, 4),), {"ord": 3, "dim": (0, -1)}),
    Sample(((2, 3),), {"ord": np.inf}),
    Sample(((2, 3),), {"ord": -np.inf, "dim": 1}),
    Sample(((2, 3),), {"ord": 0.5}),
    Sample(((2, 3),), {"ord": 1.5, "dim": 0}),
    Sample(((2, 3),), {"ord": -2}),
    Sample(((2, 3),), {"ord": 0, "dim": 0}),
    Sample(((0,),)),
)


def norm_by_numpy(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """Return norms of vectors: the oracle."""
    over: Any = dim if np.ndim(x) else None
    return np.linalg.vector_norm(x, ord=ord, axis=over, keepdims=keepdim)


def _as_numpy(x: Any, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    return vector_norm(x, ord, axis, keepdims)


def _check_dtype(own: np.dtype, dtype: np.dtype) -> None:
    """Raise PyTorch's error if a norm of numbers of a dtype is not computed in another one."""
    name = TORCH_NAMES.get(dtype.name, dtype.name)
    if dtype.kind not in "fc":
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {name}")
    if own.kind != dtype.kind:
        kind = "real" if own.kind == "f" else "complex"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {name}")
    if dtype.itemsize < own.itemsize:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({TORCH_NAMES[own.name]}) should be convertible without "
            f"narrowing to the specified dtype ({name})"
        )


@public(namespaces=(LINALG,), functions=("linalg.vector_norm",),
        adapter=_as_numpy)  # fmt: skip
@operation(
    "vector_norm",
    family="reduction",
    forward=_forward,
    prepare_forward=_prepare,
    step=_step,
    vjp=(_rule,),
    attrs=("ord", "dim", "keepdim"),
    node_name="LinalgVectorNormBackward0",
    oracle=norm_by_numpy,
    kinks=KINKS[3:4],
    samples=_SAMPLES,
    errors=(
        ErrorSample(
            lambda: xp.vector_norm(np.ones(2, int)), RuntimeError,
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got",
        ),
        ErrorSample(
            lambda: xp.vector_norm(np.ones((0, 3)), np.inf, 0), RuntimeError,
            "linalg.vector_norm cannot compute the infinity norm on an empty dimension because the operation does not",
        ),
        ErrorSample(lambda: xp.vector_norm(np.ones(3), 2, 1), IndexError, "Dimension out of range"),
    ),
)  # fmt: skip
def vector_norm(
    x: Any,
    ord: float = 2,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Bound:
    r"""Norms of vectors: :math:`(\sum |x|^p)^{1/p}`, computed without overflow.

    Parameters
    ----------
    x : Tensor or array
        Of a floating point or complex dtype.
    ord : number
        The order p. Infinity gives the largest absolute value, minus infinity the smallest, 0 the number of elements
        that are not zero.
    dim : int or tuple of int, optional
        Dimensions to reduce; default all.
    keepdim : bool
        Keep them, with length 1.
    dtype : dtype, optional
        To compute in.

    Returns
    -------
    Tensor
        Real.

    Raises
    ------
    IndexError
        If `x` does not have such a dimension.
    RuntimeError
        If the dtype is one of integers, or there is no element and the order has no norm for that.

    Notes
    -----
    Derivative: :math:`\bar x_i = \bar y\, x_i \left|x_i\right|^{p - 2} / y^{p - 1}`; 0 where the norm is 0, and for
    elements that are 0. Of the largest absolute value it is shared by all elements that have it. As in PyTorch.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
    >>> y = tg.linalg.vector_norm(x)
    >>> y.backward()
    >>> y.item(), x.grad
    (5.0, tensor([0.6000, 0.8000]))
    """
    vectors = as_operand(x, "linalg.vector_norm", "x", 1)
    if vectors.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"dtype {vectors.dtype}; convert it first"
        )
    if dtype is not None:
        _check_dtype(vectors.dtype, np.dtype(dtype))
        vectors = cast(vectors, dtype)
    order, dims = float(ord), reduced_dims("linalg.vector_norm", vectors.ndim, dim)
    if (order < 0 or order == np.inf) and 0 in [vectors.shape[own] for own in dims]:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {'infinity' if order == np.inf else order} norm on an empty "
            f"{'tensor' if dim is None else 'dimension'} because the operation does not have an identity; got shape "
            f"{list(vectors.shape)}"
        )
    return Bound((vectors,), {"ord": order, "dim": dims, "keepdim": bool(keepdim)})

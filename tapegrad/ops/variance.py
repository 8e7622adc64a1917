"""The variance, and its op: the sum of squared deviations from the mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.kernels.along import step_along
from tapegrad.ops.along import SAMPLES, Dims, along, floating, reduced_shape
from tapegrad.ops.arithmetic import add, div
from tapegrad.ops.complex import imag, real
from tapegrad.ops.reductions import kept_shape
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import operation, out_of_range, reduced_dims
from tapegrad.tensor import Tensor


def _deviations_by_numpy(x: Any, dim: Dims, keepdim: bool) -> Any:
    return np.sum((x - np.mean(x, axis=dim, keepdims=True)) ** 2, axis=dim, keepdims=keepdim)


def _deviations_rule(ct: Any, x: Any, dim: Dims) -> Any:
    return 2.0 * xp.reshape(ct, kept_shape(x.shape, dim)) * (x - xp.mean(x, dim, True))


@operation(
    "deviations",
    forward=_deviations_by_numpy,
    vjp=(_deviations_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x",)),
    attrs=("dim", "keepdim"),
    prepare_forward=along("deviations", reduced_shape, _deviations_by_numpy),
    oracle=lambda x, dim=None, keepdim=False: (
        np.square(x).sum(axis=dim if np.ndim(x) else None, keepdims=keepdim)
        - np.square(x.sum(axis=dim if np.ndim(x) else None, keepdims=keepdim))
        / (1 if not np.ndim(x) else x.size if dim is None else math.prod(np.take(x.shape, dim).ravel().tolist()))
    ),
    samples=(*SAMPLES[:-1], Sample(((2, 3),)), Sample(((2, 3, 4),), {"dim": (0, 2)})),
    errors=(out_of_range("deviations"),),
    real_only=True,
)
def deviations(input: Any, dim: Any = None, keepdim: bool = False) -> Bound:
    """Return the sum of the squared deviations from the mean, over all dimensions or over some."""
    x = floating("var", input)
    return Bound((x,), {"dim": reduced_dims("var", x._layout.ndim, dim), "keepdim": bool(keepdim)})


@public(method=True, functions=("var",), adapter="moment", common=docs.MOMENT)
@composite(
    (Sample(((4,),)), Sample(((2, 3),), {"dim": 1, "keepdim": True}), Sample(((2, 3),), {"dim": 0, "correction": 0})),
    lambda input, dim=None, correction=1, keepdim=False: np.var(input, axis=dim, ddof=correction, keepdims=keepdim),
)
def var(
    input: Any, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False
) -> Tensor:
    r"""Variance of the elements.

    Parameters
    ----------
    correction : number
        The sum of squares is divided by the number of elements minus this; 1 gives the unbiased estimate, 0 the mean.

    Notes
    -----
    Derivative: :math:`2(x - \bar x)/(n - c)` for the correction :math:`c`.

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
    parts = (x,) if layout.dtype.kind == "f" else (real(x), imag(x))
    totals = [deviations(part, dim, keepdim) for part in parts]
    count = layout.size // (totals[0]._layout.size or 1)
    means = [div(total, float(max(count - correction, 0))) for total in totals]
    return means[0] if len(means) == 1 else add(*means)

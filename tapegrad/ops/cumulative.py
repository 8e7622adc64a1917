"""Ops: products over dimensions, and cumulative sums along one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.kernels.along import step_along
from tapegrad.kernels.lines import LONGEST_PRODUCT
from tapegrad.ops.along import SAMPLES, along, same_shape
from tapegrad.ops.casts import cast
from tapegrad.ops.reductions import EMPTY_SAMPLES, accumulator, count_of, kept_shape
from tapegrad.ops.scans import later
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, Sample, xp
from tapegrad.ops.table.public import Names, public
from tapegrad.ops.table.structural import REDUCTION_SAMPLES, one_dim, operation, out_of_range, reduction
from tapegrad.ops.table.values import with_zeros
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step

Dims = tuple[int, ...]
_LONG = 128  # elements of a line, which would become as many lines of a program


# Products ----------------------------------------------------------------------------------------------------------


def products_of_others(x: Any) -> Any:
    """Return, for each element along the last dimension, the product of all others.

    There is no division, so zeros need no special case, and derivatives are right to any order. Neighbours are
    multiplied in pairs; this function gives, for each pair, the product of all other pairs; times the partner, that is
    the product for an element. In long lines it is that of those before the element, times that of those behind.
    """
    n = x.shape[-1]
    if n < 2:
        return np.ones(x.shape, x.dtype)
    if n > _LONG:
        last = x.ndim - 1
        before, behind = (xp.cumprod(later(own, last, 1.0), last) for own in (x, xp.flip(x, (last,))))
        return before * xp.flip(behind, (last,))
    even, odd = x[..., 0 : n - 1 : 2], x[..., 1:n:2]
    pairs = even * odd
    if n % 2:
        pairs = xp.cat([pairs, x[..., n - 1 :]], -1)
    others = products_of_others(pairs)
    half = others[..., : n // 2]
    both = xp.cat([xp.unsqueeze(half * odd, -1), xp.unsqueeze(half * even, -1)], -1)
    both = xp.reshape(both, (*x.shape[:-1], n - n % 2))
    return xp.cat([both, others[..., n // 2 :]], -1) if n % 2 else both


def _prod_rule(ct: Any, x: Any, dim: Dims) -> Any:
    shape, x = x.shape, x if ct.dtype.kind == "c" else xp.real(x)  # the product may be of the real parts
    order = (*(place for place in range(len(shape)) if place not in dim), *dim)
    lengths = tuple(shape[place] for place in order)
    kept = lengths[: len(shape) - len(dim)]
    lines = xp.reshape(xp.permute(x, order), (*kept, count_of(shape, dim)))
    slopes = xp.permute(xp.reshape(products_of_others(xp.conj(lines)), lengths), tuple(np.argsort(order).tolist()))
    return xp.reshape(ct, kept_shape(shape, dim)) * slopes


def _prod_step(plan: Plan, operand: int) -> Step | None:
    dim, dtype, x = plan.attrs["dim"], plan.attrs["dtype"], plan.layouts[0]
    is_other = dtype is not None and dtype != x.dtype  # NumPy's dtypes that are float64 equal None
    return None if is_other or count_of(x.shape, dim) > LONGEST_PRODUCT else step_along(plan, dim, ("x",))


prod = reduction(
    "prod", lambda x, dim, keepdim, dtype: np.multiply.reduce(x, axis=dim, keepdims=keepdim, dtype=dtype),
    lambda ct, x, dim: _prod_rule(ct, x, dim), _prod_step,
    doc="""Product of the elements; 1 if there is none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([2.0, 0.0, 5.0], requires_grad=True)
    >>> tg.prod(x).backward()
    >>> x.grad.tolist()
    [0.0, 10.0, 0.0]
    """,
    derivative=r""":math:`\bar x_i = \bar y \prod_{j \ne i} x_j`, the product of the others, without a division: it is
    right where elements are zero.""",
    dtype_of=accumulator,
    samples=(
        *REDUCTION_SAMPLES, *EMPTY_SAMPLES, Sample(((2, 5),), {"dim": 0}),
        *(Sample(((2, 5),), {"dim": 1}, values=(with_zeros(count),)) for count in (1, 2, 3)),
    ),
    names=Names(method=True, reduces="multiply", functions=("prod",), adapter="reduction"),
)  # fmt: skip


# Cumulative sums ---------------------------------------------------------------------------------------------------


def _cumsum_by_numpy(x: Any, dim: Dims) -> Any:
    if not dim:
        return x
    wide = {"float32": np.float64, "complex64": np.complex128}.get(x.dtype.name)  # partial sums keep their precision
    return np.cumsum(x, axis=dim[0], dtype=wide)


def _cumsum_rule(ct: Any, dim: Dims) -> Any:
    return xp.flip(xp.cumsum(xp.flip(ct, dim), dim[0]), dim) if dim else ct


@public(method=True, inplace=True, accumulates="add")
@operation(
    "cumsum",
    forward=_cumsum_by_numpy,
    vjp=(_cumsum_rule,),
    family="along",
    linear=True,
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ()),
    attrs=("dim",),
    prepare_forward=along("cumsum", same_shape, _cumsum_by_numpy),
    oracle=lambda x, dim: np.asarray(x) if not np.ndim(x) else np.add.accumulate(x, axis=dim),
    samples=SAMPLES,
    errors=(out_of_range("cumsum"),),
    common=docs.ALONG,
)
def cumsum(input: Any, dim: int, *, dtype: DTypeLike | None = None) -> Bound:
    r"""Cumulative sums along a dimension: of each element and those before it.

    Parameters
    ----------
    dtype : dtype, optional
        To sum in; default that of `input`, and int64 for integers and bool. Sums in single precision are kept in
        double precision and rounded as they are written.

    Notes
    -----
    Derivative: cumulative sums of the cotangent, from the end, :math:`\bar x_i = \sum_{j \ge i} \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cumsum(tg.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    x = as_operand(input, "cumsum", "input", 1)
    place = one_dim("cumsum", x.ndim, dim)
    chosen = accumulator(x, dtype)
    if chosen is not None and x.dtype != chosen:
        x = cast(x, chosen)
    x._array()
    return Bound((x,), {"dim": (place,) if x.ndim else ()})

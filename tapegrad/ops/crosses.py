"""Op: cross products of vectors in space; Vandermonde's matrices, and diagonals, as `tapegrad.linalg` has them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.forward.computed import OfCopy, computed
from tapegrad.forward.results import is_draft
from tapegrad.kernels.along import geometry_along, has_kernel, kernel_along
from tapegrad.kernels.cross import CROSS
from tapegrad.ops.broadcasting import expand, unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.concat import cat
from tapegrad.ops.diagonals import diagonal as _diagonal
from tapegrad.ops.fill import ones
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import movedim
from tapegrad.ops.scans import cumprod
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import check_same
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import integer, one_dim, operation
from tapegrad.ops.table.values import KINKS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _forward(x: Any, y: Any, dim: int) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, y))
    before: Any = (slice(None),) * dim
    for k, i, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[(*before, k)] = x[(*before, i)] * y[(*before, j)] - x[(*before, j)] * y[(*before, i)]
    return out


def _as_numpy(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    x = movedim(as_operand(a, "cross", "a", 1), axisa, -1)
    y = movedim(as_operand(b, "cross", "b", 2), axisb, -1)
    dtype, ndim = np.result_type(x.dtype, y.dtype), max(x.ndim, y.ndim)
    x, y = (cast(reshape(own, (1,) * (ndim - own.ndim) + own.shape), dtype) for own in (x, y))
    return movedim(cross(x, y, dim=-1), -1, axisc)


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    """Return the kernel for operands of one contiguous layout, or NumPy's way."""
    x, y = layouts
    by_numpy = functools.partial(_forward, **attrs)
    geometry = geometry_along(x.shape, (attrs["dim"],))
    if x.shape != y.shape or x.dtype != y.dtype or x.dtype.char not in "fd" or not x.size or not geometry:
        return by_numpy
    forward = computed(kernel_along(CROSS, x.dtype.name), geometry, x.shape, x.dtype, by_numpy, by_status=True)
    if has_kernel(x) and has_kernel(y):
        return forward
    return OfCopy(forward) if is_draft(forward) else OfCopy(forward).made()


def _step(plan: Plan, operand: int) -> Step | None:
    """Return the step of operands of one shape: a product of the other one and the cotangent is by the same kernel."""
    (x, y), other = plan.layouts, plan.layouts[1 - operand]
    geometry = geometry_along(x.shape, (plan.attrs["dim"],))
    if x.shape != y.shape or x.dtype != y.dtype or not has_kernel(other) or not geometry:
        return None
    sources = [plan.source(plan.op.operands[1 - operand]), plan.source("ct")]
    return Step(functools.partial(kernel_along, CROSS, x.dtype.name), geometry, sources[:: -1 if operand else 1])


@public(namespaces=(LINALG,), functions=("cross", "linalg.cross"),
        adapter=_as_numpy)  # fmt: skip
@operation(
    "cross",
    operands=("x", "y"),
    family="linalg",
    forward=_forward,
    prepare_forward=_prepare,
    vjp=(
        lambda ct, y, dim: xp.cross(xp.conj(y), ct, dim=dim),
        lambda ct, x, dim: xp.cross(ct, xp.conj(x), dim=dim),
    ),
    attrs=("dim",),
    bilinear=True,
    step=_step,
    call=lambda x, y, **attrs: xp.cross(x, y, **attrs),
    node_name="LinalgCrossBackward0",
    oracle=lambda x, y, dim=-1: np.cross(x, y, axis=dim),
    samples=(
        Sample(((3,), (3,))), Sample(((2, 3), (2, 3))), Sample(((2, 3), (1, 3))), Sample(((3, 2), (3, 2)), {"dim": 0}),
        Sample(((0, 3), (0, 3))),
    ),
    errors=(
        ErrorSample(
            lambda: xp.cross(np.ones((2, 2)), np.ones((2, 2))), RuntimeError,
            "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2",
        ),
        ErrorSample(
            lambda: xp.cross(np.ones(3), np.ones((2, 3))), RuntimeError,
            "linalg.cross: inputs must have the same number of dimensions.",
        ),
    ),
)  # fmt: skip
def cross(input: Any, other: Any, *, dim: int = -1) -> Bound:
    r"""Cross products of vectors of three elements.

    Parameters
    ----------
    input, other : Tensor or array
        Of as many dimensions, which broadcast.
    dim : int
        The dimension of the vectors, of length 3.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    Derivatives of :math:`z = x \times y`: :math:`\bar x = y^* \times \bar z`, :math:`\bar y = \bar z \times x^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    x, y = as_operand(input, "linalg.cross", "input", 1), as_operand(other, "linalg.cross", "other", 2)
    check_same("expected scalar type {} but found {} in linalg.cross()", x.dtype, y.dtype)
    return Bound((x, y), {"dim": _checked_dim(x, y, dim)})


def _checked_dim(x: Tensor, y: Tensor, dim: int) -> int:
    if x.ndim != y.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions. Got {x.ndim} and {y.ndim}; use unsqueeze()"
        )
    place = one_dim("linalg.cross", x.ndim, dim)
    lengths = [own.shape[place] if own.ndim else 1 for own in (x, y)]
    if lengths != [3, 3]:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {lengths[0]} and {lengths[1]}"
        )
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise errors.broadcast_mismatch("linalg.cross", x.shape, y.shape) from None
    return place


def powers_of(x: Tensor, N: int | None, call: str) -> Tensor:  # PyTorch's name
    """Return powers of each element along a new last dimension, in ascending order."""
    x = x if x.ndim else unsqueeze(x, 0)
    count = x.shape[-1] if N is None else integer("vander", "N", N)
    if count < 0 or (count < 2 and call == "linalg.vander"):
        raise RuntimeError(f"{call}: N must be greater than {1 if call == 'linalg.vander' else -1}; got {count}")
    x = x.to("int64") if x.dtype.kind in "biu" else x
    first = ones((*x.shape, min(count, 1)), dtype=x.dtype)
    factors = expand(unsqueeze(x, -1), (*x.shape, max(count - 1, 0)))
    found: Tensor = cumprod(cat((first, factors), -1), -1)
    return found


@public(namespaces=(LINALG,))
@composite(
    (Sample(((3,),)), Sample(((2, 3),), {"N": 2})),
    lambda x, N=None: np.stack([x**k for k in range(x.shape[-1] if N is None else N)], -1),
    name="linalg.vander",
    kinks=KINKS[2:4],
)
def vander(x: Any, N: int | None = None) -> Tensor:  # PyTorch's name
    """Vandermonde's matrices: the powers 0 to N - 1 of each element, in a row.

    Formula: :math:`Y_{ij} = x_i^{j}`. Derivative: as of `pow`.

    Parameters
    ----------
    x : Tensor or array, (..., n)
    N : int, optional
        At least 2; default n.

    Returns
    -------
    Tensor, (..., n, N)

    Raises
    ------
    RuntimeError
        If N is less than 2.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.vander(tg.tensor([2.0, 3.0]), 3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    return powers_of(as_operand(x, "linalg.vander", "x", 1), N, "linalg.vander")


def _diagonal_as_numpy(x: Any, *, offset: int = 0) -> Any:
    return _diagonal(x, offset, -2, -1)


@public(namespaces=(LINALG,), functions=("linalg.diagonal",),
        adapter=_diagonal_as_numpy)  # fmt: skip
@composite(
    (Sample(((2, 3),)), Sample(((2, 3, 3),), {"offset": 1})),
    lambda A, offset=0: np.diagonal(A, offset, -2, -1),
    name="linalg.diagonal",
)
def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonals of matrices, as views; see `tapegrad.diagonal`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    offset : int
        The column of the first element; below the main diagonal if negative.
    dim1, dim2 : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.diagonal(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return _diagonal(A, offset, dim1, dim2)

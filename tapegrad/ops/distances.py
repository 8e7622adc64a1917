"""Ops and composites: distances between vectors, norms that are bounded."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.indexed import ARRAY
from tapegrad.kernels.pairs import FEW, distances_address, slopes_address, slopes_of_one_address
from tapegrad.ops.arithmetic import mul, sub, where
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.lapack import triangle
from tapegrad.ops.norms import vector_norm
from tapegrad.ops.routines import as_list
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import check_same
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.table.structural import one_dim, operation
from tapegrad.ops.table.values import KINKS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

_LEAST = 1e-145  # distances of which the squares have all digits
_FEW = 8192  # elements of the differences of all points, up to which a trace gets the arithmetic itself


def _euclidean(x: Any, y: Any) -> Any:
    from scipy.spatial.distance import cdist  # at the first call: it takes long to import

    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    shape = (*batch, x.shape[-2], y.shape[-2])
    if not (x.size and y.size):
        return np.zeros(shape, x.dtype)
    distances = []
    for a, b in zip(as_list(x, batch), as_list(y, batch), strict=True):
        own = cdist(a, b)
        first, second = np.nonzero((own < _LEAST) | np.isinf(own))  # where squares are too small or too large
        own[first, second] = np.hypot.reduce(a[first].astype(np.float64) - b[second], -1)
        distances.append(own)
    return np.asarray(distances, x.dtype).reshape(shape)


def _geometry(x: Layout, y: Layout) -> list[int] | None:
    """Return the geometry of the kernels for points of these layouts; None if they do not take them."""
    if x.dtype != y.dtype or x.shape[:-2] != y.shape[:-2] or not (has_kernel(x) and has_kernel(y)):
        return None
    return [0, math.prod(x.shape[:-2]), x.shape[-2], *y.shape[-2:]] if x.size and y.size else None


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    x, y = layouts
    geometry, shape = _geometry(x, y), (*x.shape[:-1], y.shape[-2])
    if geometry is None:
        return _euclidean
    return computed(distances_address(x.dtype.name, False), geometry, shape, x.dtype, _euclidean, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    x, y = plan.layouts
    geometry = _geometry(x, y)
    if geometry is None or x.shape[-1] > FEW:
        return None
    sources = [plan.source(name) for name in ("ct", "x", "y", "out")]
    return Step(functools.partial(slopes_address, x.dtype.name, bool(operand)), geometry, sources)


def _euclidean_rule(ct: Any, x: Any, y: Any, out: Any, wanted: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the sums of unit vectors, by products of matrices; distances do not change if the origin does."""
    zero = out == 0
    weights = xp.where(zero, 0.0, ct) / xp.where(zero, 1.0, out)
    if y.shape[-2]:
        centre = xp.mean(y, -2, True)
        x, y = x - centre, y - centre
    of_x = x * xp.sum(weights, -1, True) - xp.matmul(weights, y) if wanted[0] else None
    if not wanted[1]:
        return of_x, None
    weights = xp.transpose(weights, -1, -2)
    return of_x, y * xp.sum(weights, -1, True) - xp.matmul(weights, x)


@operation(
    "euclidean_distances",
    operands=("x", "y"),
    family="linalg",
    forward=_euclidean,
    prepare_forward=_prepare,
    vjp=_euclidean_rule,
    step=_step,
    real_only=True,
    kinks=(),
    node_name="CdistBackward0",
    oracle=lambda x, y: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], axis=-1),
    samples=tuple(Sample(tuple(shapes)) for shapes in (((3, 2), (4, 2)), ((2, 3, 2), (1, 2)), ((0, 2), (3, 2)))),
    errors=(
        ErrorSample(
            lambda: xp.euclidean_distances(np.ones((2, 3)), np.ones((2, 2))), RuntimeError,
            "X1 and X2 must have the same number of columns. X1: 3 X2: 2",
        ),
    ),
)  # fmt: skip
def euclidean_distances(x1: Any, x2: Any) -> Bound:
    """Distances between each row of a matrix and each of another."""
    return Bound(_points(x1, x2))


_MODES: Final = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _points(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    x, y = as_operand(x1, "cdist", "x1", 1), as_operand(x2, "cdist", "x2", 2)
    for name, own in (("X1", x), ("X2", y)):
        if own.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {own.ndim}D; use unsqueeze(0)")
        if own.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {own.dtype}; convert it first")
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}; cdist() got shapes "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    return x, y


@public()
@composite(
    (Sample(((3, 2), (4, 2))), Sample(((2, 3, 2), (4, 2)), {"p": 1.0}), Sample(((3, 2), (2, 2)), {"p": np.inf})),
    lambda x1, x2, p=2.0: np.linalg.norm(x1[..., :, None, :] - x2[..., None, :, :], ord=p, axis=-1),
    real_only=True,
    kinks=(),
)
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    r"""Distances between each row of a matrix and each of another.

    Parameters
    ----------
    x1 : Tensor or array, (..., n, k)
        Of a real floating dtype.
    x2 : Tensor or array, (..., m, k)
    p : number
        The order of the norm, as of `tapegrad.linalg.vector_norm`.
    compute_mode : str
        PyTorch's choice of how to compute. Here distances are always computed of differences, which is exact.

    Returns
    -------
    Tensor, (..., n, m)

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtype is another.

    Notes
    -----
    Formula: :math:`Z_{ij} = \|X_i - Y_j\|_p`. Derivative: as of `vector_norm`; 0 for points that are the same, as in
    PyTorch.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cdist(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    x, y = _points(x1, x2)
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values; got p={p}")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode; cdist() takes one of {_MODES}")
    check_same("expected scalar type {} but found {} in cdist()", x.dtype, y.dtype)
    if p == 2:
        return euclidean_distances(x, y)  # type: ignore[no-any-return]
    order = p if x.shape[-1] else 1.0  # points without coordinates have distance 0 in any norm
    return vector_norm(sub(unsqueeze(x, -2), unsqueeze(y, -3)), order, -1)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of each two of n rows."""
    first, second = map(np.ascontiguousarray, np.nonzero(triangle(n, n, True, 1)))  # compiled code reads them as such
    return first, second


def _pairs_by_numpy(x: Any) -> Any:
    first, second = _pairs(len(x))
    return np.ascontiguousarray(_euclidean(x, x)[first, second])


def _prepare_pairs(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    (x,) = layouts
    geometry, count = _geometry(x, x), x.shape[0] * (x.shape[0] - 1) // 2
    if geometry is None or not count:
        return _pairs_by_numpy
    kernel = distances_address(x.dtype.name, True)
    return computed(kernel, geometry, (count,), x.dtype, _pairs_by_numpy, by_status=True)


def _step_of_pairs(plan: Plan, operand: int) -> Step | None:
    (x,) = plan.layouts
    geometry = _geometry(x, x)
    if geometry is None or x.shape[0] < 2:
        return None
    sources = [plan.source(name) for name in ("ct", "x", "out")]
    return Step(functools.partial(slopes_of_one_address, x.dtype.name), geometry, sources)


def _rule_of_pairs(ct: Any, x: Any, out: Any) -> Any:
    """Return the sums of unit vectors from the others to each point."""
    first, second = _pairs(x.shape[0])
    zero = out == 0
    weights = xp.where(zero, 0.0, ct) / xp.where(zero, 1.0, out)
    slopes = xp.unsqueeze(weights, -1) * (
        xp.index_gather(x, (first,), (ARRAY,)) - xp.index_gather(x, (second,), (ARRAY,))
    )
    of_first, of_second = (xp.index_scatter_add(slopes, (own,), (ARRAY,), x.shape) for own in (first, second))
    return of_first - of_second


@operation(
    "distances_of_pairs",
    family="linalg",
    forward=_pairs_by_numpy,
    prepare_forward=_prepare_pairs,
    vjp=(_rule_of_pairs,),
    step=_step_of_pairs,
    real_only=True,
    kinks=(),
    node_name="PdistBackward0",
    oracle=lambda x: np.linalg.norm(x[:, None] - x, axis=-1)[np.triu_indices(len(x), 1)],
    samples=tuple(Sample((shape,)) for shape in ((4, 2), (3, 1), (70, 20), (1, 3))),
    errors=(ErrorSample(lambda: xp.distances_of_pairs("x"), TypeError, "pdist"),),
)  # fmt: skip
def distances_of_pairs(x: Any) -> Bound:
    """Distances between each two rows of a matrix."""
    points = as_operand(x, "pdist", "input", 1)
    if points.dtype.kind != "f":
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {points.dtype}; convert it first")
    return Bound((points,))


@public(namespaces=(FUNCTIONAL, TOP))
@composite(
    (Sample(((4, 2),)), Sample(((3, 2),), {"p": 1.0})),
    lambda input, p=2.0: np.linalg.norm(input[:, None] - input, ord=p, axis=-1)[np.triu_indices(len(input), 1)],
    real_only=True,
    kinks=(),
)
def pdist(input: Any, p: float = 2.0) -> Tensor:
    r"""Distances between each two rows of a matrix.

    Formula: :math:`y_{(i,j)} = \|X_i - X_j\|_p` for i < j. Derivative: as of `vector_norm`.

    Parameters
    ----------
    input : Tensor or array, (n, k)
        Of a real floating dtype.
    p : number
        The order of the norm, as of `tapegrad.linalg.vector_norm`.

    Returns
    -------
    Tensor, (n (n - 1) / 2,)
        In the order (0, 1), (0, 2), ..., (1, 2), ...

    Raises
    ------
    RuntimeError
        If `input` is no matrix.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.pdist(tg.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    x = as_operand(input, "pdist", "input", 1)
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    n, width = x.shape
    if p == 2 and x.dtype.kind == "f" and not (x.is_traced and n * n * width <= _FEW):
        distances: Tensor = distances_of_pairs(x)
        return distances
    first, second = _pairs(n)
    return vector_norm(sub(x[first], x[second]), p, -1)  # type: ignore[no-any-return]


@public(method=True, inplace=True)
@composite(
    (
        Sample(((2, 3),), {"p": 2.0, "dim": 0, "maxnorm": 2.0}),
        Sample(((2, 3, 2),), {"p": 1.0, "dim": -1, "maxnorm": 4.0}),
    ),
    lambda input, p, dim, maxnorm: input * np.minimum(
        maxnorm / (np.linalg.vector_norm(input, ord=p, keepdims=True, axis=tuple(
            own for own in range(input.ndim) if own != dim % input.ndim
        )) + 1e-7), 1
    ).astype(abs(input).dtype),
    kinks=KINKS[2:4],
)  # fmt: skip
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    r"""Scale parts of a tensor, one for each index of a dimension, so that their norms are not above a bound.

    Formula: :math:`Y_i = X_i \min(1, m/\|X_i\|_p)` with `maxnorm` m.

    Parameters
    ----------
    input : Tensor or array
        Of at least two dimensions.
    p : number
        The order of the norm, above 0.
    dim : int
    maxnorm : number

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.
    RuntimeError
        If it has one dimension only, or a number is out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.renorm(tg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = as_operand(input, "renorm", "input", 1)
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive norm not supported; got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    place = one_dim("renorm", x.ndim, dim)
    dims = tuple(own for own in range(x.ndim) if own != place)
    is_long = vector_norm(x, p, dims, True) > maxnorm
    norms = vector_norm(where(is_long, x, 0.0), p, dims, True)  # of what stays, which may be nan, they have no slope
    return mul(x, where(is_long, maxnorm / (norms + 1e-7), 1.0))

"""Ops: averages and interpolation along each of several dimensions, which are products with a matrix each.

A matrix is described by a tuple, which is an attribute: first which of `_ROWS` makes its rows, then the length of the
dimension, its length in the result, and numbers; None stands for a dimension that stays. The rule is the same op with
transposed matrices.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.resampling import Rows, geometry_of_rows, resampling_address
from tapegrad.ops.along import in_numpy
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

# Which row, then its first column that is not 0, and numbers from there on.
Row = tuple[int, list[float]]
Key = tuple[Any, ...] | None
Shape = tuple[int, ...]

_DENSE: Final = 1 << 13  # elements of a matrix, up to which BLAS is faster than sparse matrices


def _pool_rows(n: int, count: int, kernel: int, stride: int, padding: int, divisor: int | None) -> Iterator[Row]:
    """Yield the rows of averages: the divisor 0 counts the padding, None does not, another replaces the count."""
    for j in range(count):
        first = j * stride - padding
        last = min(first + kernel, n + padding)
        size, first, last = last - first, max(first, 0), min(last, n)
        yield first, [1 / (last - first if divisor is None else divisor or size)] * (last - first)


def adaptive_range(j: int, n: int, count: int) -> tuple[int, int]:
    """Return where the window of an element of an adaptive pool begins and ends."""
    return j * n // count, -(-(j + 1) * n // count)


def _adaptive_rows(n: int, count: int) -> Iterator[Row]:
    for j in range(count):
        first, last = adaptive_range(j, n, count)
        yield first, [1 / (last - first)] * (last - first)


def _nearest_rows(n: int, count: int, scale: float, shift: float) -> Iterator[Row]:
    step = np.float32(scale)  # as PyTorch computes positions, whatever the dtype
    for j in range(count):
        yield min(int(np.floor(np.float32(j + shift) * step)), n - 1), [1.0]


def _linear(t: float) -> float:
    return max(1 - abs(t), 0.0)


def _cubic(t: float, a: float) -> float:
    """Return the weight at a distance (Keys 1981, equation 15)."""
    t = abs(t)
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0


def _smooth_rows(n: int, count: int, degree: int, scale: float, align: bool) -> Iterator[Row]:
    """Yield the rows of linear (degree 1) and cubic (3) interpolation, which repeats elements at the ends."""
    for j in range(count):
        at = j * scale if align else (j + 0.5) * scale - 0.5
        at = max(at, 0.0) if degree == 1 else at
        row: dict[int, float] = {}
        low = math.floor(at)
        for k in range(low - degree // 2, low + degree // 2 + 2):
            inside = min(max(k, 0), n - 1)
            row[inside] = row.get(inside, 0.0) + (_linear(k - at) if degree == 1 else _cubic(k - at, -0.75))
        yield min(row), [row[k] for k in range(min(row), max(row) + 1)]


def _antialiased_rows(n: int, count: int, degree: int, scale: float, align: bool) -> Iterator[Row]:
    wide = max(scale, 1.0)
    support = (degree + 1) / 2 * wide
    for j in range(count):
        middle = scale * (j + 0.5)
        first, last = max(int(middle - support + 0.5), 0), min(int(middle + support + 0.5), n)
        places = [(k - middle + 0.5) / wide for k in range(first, last)]
        weights = [_linear(t) if degree == 1 else _cubic(t, -0.5) for t in places]
        total = sum(weights)
        yield first, [weight / total for weight in weights]


_ROWS: Final[dict[str, Callable[..., Iterator[Row]]]] = {
    "pool": _pool_rows,
    "adaptive": _adaptive_rows,
    "nearest": _nearest_rows,
    "smooth": _smooth_rows,
    "antialiased": _antialiased_rows,
}


@functools.lru_cache(maxsize=256)
def _matrix(key: tuple[Any, ...], dtype: np.dtype, transposed: bool, sparse: bool) -> Any:
    """Return a matrix, (count, n) unless it is transposed."""
    name, n, count, *numbers = key
    rows = list(_ROWS[name](n, count, *numbers))
    if sparse:
        from scipy.sparse import csr_array  # at call time: SciPy would double the time of `import tapegrad`

        columns = [first + k for first, weights in rows for k in range(len(weights))]
        ends = np.cumsum([0] + [len(weights) for _, weights in rows])
        values = np.array([weight for _, weights in rows for weight in weights], dtype)
        found = csr_array((values, columns, ends), shape=(count, n))
        return found.T.tocsr() if transposed else found
    dense = np.zeros((count, n), dtype)
    for own, (first, weights) in zip(dense, rows, strict=True):
        own[first : first + len(weights)] = weights
    return np.ascontiguousarray(dense.T) if transposed else dense


@functools.lru_cache(maxsize=256)
def _rows_of(key: tuple[Any, ...], transposed: bool) -> Rows:
    """Return the rows of a matrix, or of its transpose."""
    name, n, count, *numbers = key
    rows = list(_ROWS[name](n, count, *numbers))
    if not transposed:
        return rows
    columns: list[tuple[int, list[float]]] = [(0, []) for _ in range(n)]
    for j, (first, weights) in enumerate(rows):
        for place, weight in enumerate(weights, first):
            if not columns[place][1]:
                columns[place] = (j, [])
            columns[place][1].append(weight)
    return columns


def _geometry(shape: Shape, keys: tuple[Key, ...], transposed: bool) -> list[int] | None:
    """Return the geometry of the kernel that multiplies an operand of a shape; None where there is none."""
    if len(keys) > 3:
        return None
    space = shape[len(shape) - len(keys) :]
    rows = [[(k, [1.0]) for k in range(n)] if key is None else _rows_of(key, transposed)
            for n, key in zip(space, keys, strict=True)]  # fmt: skip
    missing = 3 - len(keys)
    return geometry_of_rows(
        math.prod(shape[: len(shape) - len(keys)]), (*(1,) * missing, *space), [*([(0, [1.0])],) * missing, *rows]
    )


def _result_shape(shape: Shape, keys: tuple[Key, ...], transposed: bool) -> Shape:
    first = len(shape) - len(keys)
    lengths = [n if key is None else key[1] if transposed else key[2]
               for n, key in zip(shape[first:], keys, strict=True)]  # fmt: skip
    return (*shape[:first], *lengths)


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    layout, keys, transposed = layouts[0], attrs["keys"], attrs["transposed"]
    by_numpy = in_numpy(_forward, layout.dtype, attrs)
    geometry = _geometry(layout.shape, keys, transposed) if has_kernel(layout) else None
    if geometry is None:
        return by_numpy
    shape = _result_shape(layout.shape, keys, transposed)
    return computed(resampling_address(layout.dtype.name), geometry, shape, layout.dtype, by_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    layout, keys, transposed = plan.layouts[0], plan.attrs["keys"], plan.attrs["transposed"]
    geometry = None
    if has_kernel(layout):
        geometry = _geometry(_result_shape(layout.shape, keys, transposed), keys, not transposed)
    if geometry is None:
        return None
    return Step(functools.partial(resampling_address, layout.dtype.name), geometry, [(CT, 0)])


def _forward(x: np.ndarray, keys: tuple[Key, ...], transposed: bool) -> Any:
    """Return the products, the last dimension first, which makes results smaller sooner or larger later."""
    # A product with 0 would make an infinite element nan everywhere.
    finite = bool(np.isfinite(np.add.reduce(x, None)))
    first = x.ndim - len(keys)
    for place, key in enumerate(keys):
        if key is None:
            continue
        n, count = key[2:0:-1] if transposed else key[1:3]
        dim = first + place
        before, after = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
        shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
        sparse = not finite or n * count > _DENSE
        matrix = _matrix(key, x.dtype, transposed, sparse)
        lines = np.ascontiguousarray(x).reshape(before, n, after)
        if sparse:
            columns = lines.transpose(1, 0, 2).reshape(n, before * after)
            x = (matrix @ columns).reshape(count, before, after).transpose(1, 0, 2).reshape(shape)
        elif after == 1:
            x = (lines.reshape(before, n) @ matrix.T).reshape(shape)
        else:
            x = (matrix @ lines).reshape(shape)
    return np.ascontiguousarray(x)


def _oracle(x: Any, keys: tuple[Key, ...], transposed: bool = False) -> Any:
    """Return the products, one element of a matrix that is not 0 after the other."""
    for place, key in enumerate(keys, x.ndim - len(keys)):
        if key is None:
            continue
        name, n, count, *numbers = key
        lines = np.moveaxis(x, place, 0)
        out = np.zeros((n if transposed else count, *lines.shape[1:]), x.dtype)
        for row, (first, weights) in enumerate(_ROWS[name](n, count, *numbers)):
            for column, weight in enumerate(weights, first):
                source, target = (row, column) if transposed else (column, row)
                out[target] += weight * lines[source]
        x = np.moveaxis(out, 0, place)
    return x


_SAMPLES: Final[tuple[tuple[Shape, tuple[Key, ...]], ...]] = (
    ((2, 5), (("pool", 5, 3, 3, 2, 1, 0),)),
    ((1, 4, 3), (("adaptive", 4, 3), ("smooth", 3, 5, 3, 0.6, False))),
    ((1, 3, 4), (("nearest", 3, 5, 0.6, 0.5), ("smooth", 4, 7, 1, 0.5, True))),
    ((4, 3), (("pool", 4, 4, 2, 1, 1, 2), None)),
)


def times_matrices(x: Tensor, keys: tuple[Key, ...], transposed: bool = False) -> Bound:
    """Return the call of `resampled`: what functions bind that are nothing else."""
    return Bound((x,), {"keys": keys, "transposed": transposed})


@operation(
    "resampled",
    forward=_forward,
    prepare_forward=_prepare,
    step=_step,
    vjp=(lambda ct, keys, transposed: xp.resampled(ct, keys, not transposed),),
    family="resampling",
    linear=True,
    real_only=True,
    check_dtypes=only_floats("resampled"),
    attrs=("keys", "transposed"),
    oracle=_oracle,
    samples=(
        *(Sample((shape,), {"keys": keys}) for shape, keys in _SAMPLES),
        Sample(((2, 3),), {"keys": _SAMPLES[0][1], "transposed": True}),
    ),
    errors=(ErrorSample(lambda: xp.resampled(None, ()), TypeError, "resampled"),),
)
def resampled(input: Any, keys: tuple[Key, ...], transposed: bool = False) -> Bound:
    """Return a tensor whose last dimensions are multiplied by matrices, one each."""
    return times_matrices(as_operand(input, "resampled", "input", 1), keys, transposed)

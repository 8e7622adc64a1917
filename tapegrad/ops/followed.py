"""Places, counts and comparisons as operations: in a function that is traced, NumPy's own would look at the values."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.table.index_values import index_values
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor, from_array

_MOST: Final = 1 << 22  # comparisons
_INT: Final = np.dtype(np.int64)


def is_followed(*tensors: Any, count: int = 1) -> bool:
    """Whether one of some operands is traced, and so many comparisons are few enough."""
    for own in tensors:
        if isinstance(own, Tensor) and own.is_traced:
            return count <= _MOST
    return False


def n_pairs(one: Tensor, two: Tensor) -> int:
    """Return how many pairs of elements two tensors have, or of the last dimension of each line."""
    return one.numel() * two.numel() // max(1, math.prod(one.shape[:-1]) if one.ndim > 1 else 1)


def places(sequence: Tensor, values: Tensor, is_right: bool) -> Tensor:
    """Return where values stand in sorted lines: how many elements are less, or at most as large."""
    line, own = sequence.detach(), xp.unsqueeze(values.detach(), -1)
    line = xp.unsqueeze(line, -2) if line.ndim > 1 else line
    before = line <= own if is_right else line < own
    if own.dtype.kind in "fc":  # nan is larger than all numbers
        before = xp.logical_or(before, own != own if is_right else xp.logical_and(own != own, line == line))
    found: Tensor = xp.sum(xp.cast(before, _INT), -1)
    return found


def is_close(x: Tensor, y: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    """Return which elements are close to each other; see `numpy.isclose`."""
    x, y = x.detach(), y.detach()
    if y.dtype.kind in "biu":  # as in NumPy: differences of truth values are none, and of unsigned integers wrap around
        x, y = (xp.cast(own, np.dtype(np.float64)) for own in (x, y))
    within = xp.logical_and(abs(x - y) <= atol + rtol * abs(y), xp.isfinite(y))
    near: Tensor = xp.logical_or(within, x == y)
    return xp.logical_or(near, xp.logical_and(x != x, y != y)) if equal_nan else near


def is_among(x: Tensor, others: Tensor, invert: bool) -> Tensor:
    """Return which elements are among others."""
    found: Tensor = xp.any(xp.unsqueeze(x.detach(), -1) == xp.reshape(others.detach(), (-1,)), -1)
    return xp.logical_not(found) if invert else found


def counts(x: Tensor, weights: Tensor, length: int) -> Tensor:
    """Return the sums of the weights of equal integers, which are less than the length."""
    found: Tensor = xp.index_scatter_add(weights.detach(), (index_values(xp.cast(x, _INT)),), (ARRAY,), (length,))
    return found


def corrections(x: Tensor, jump: float, axis: int, period: float) -> Tensor:
    """Return what is added to angles so that they have no jumps; see `numpy.unwrap`."""
    from tapegrad.ops.splitting import index_at  # an import of tapegrad loads this file, and does without that

    own = x.detach()
    step = own[index_at(axis, slice(1, None))] - own[index_at(axis, slice(None, -1))]
    rest = xp.remainder(step + period / 2, period) - period / 2
    rest = xp.where(xp.logical_and(rest == -period / 2, step > 0), period / 2, rest)
    added = xp.where(abs(step) < jump, 0.0, rest - step)
    shape = list(own.shape)
    shape[axis] = 1
    total = xp.cat([from_array(np.zeros(shape, own.dtype)), xp.cumsum(added, axis)], axis)
    found: Tensor = xp.round(total / period) * period
    return found

"""Operands of the op table's samples: numbers of an op's domain, away from kinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.table.composites import Composite
from tapegrad.ops.table.op import Op, Sample

__all__ = ["draw", "operands_of"]


def draw(shape: tuple[int, ...], domain: tuple[float, float], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers of a domain, far from each other and from multiples of 1/2, where functions have kinks."""
    low, high = domain
    size = int(np.prod(shape, dtype=np.int64))
    values: Any = low + (high - low) * (rng.permutation(size) + rng.uniform(0.3, 0.7, size)) / max(size, 1)
    halves = np.floor(2 * values) / 2
    inside = halves + 0.05 + 0.8 * (values - halves)
    values = np.where((inside > low) & (inside < high), inside, values)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * draw((size,), domain, np.float64, rng)
    return np.asarray(values.reshape(shape).astype(dtype))


def operands_of(op: Op | Composite, sample: Sample, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return data for a sample's operands; what it gives in a floating dtype is converted, the rest is not."""
    values = sample.values or (None,) * len(sample.shapes)
    operands = []
    for shape, value in zip(sample.shapes, values, strict=True):
        if value is None:
            operands.append(draw(shape, op.domain, dtype, rng))
        elif callable(value):
            operands.append(value(shape, dtype, rng))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            # Of float64, the strides stay as they are.
            operands.append(value.astype(dtype, order="K", copy=False))
        else:
            operands.append(value)
    return tuple(operands)

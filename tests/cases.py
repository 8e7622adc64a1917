"""Cases: each op of the op table with each of its samples, and the operands to call it with."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, NotYet, Op, Sample
from tests.checks import Problem


def _index_scatter_add(x: np.ndarray, *index_arrays: np.ndarray, key: Any, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, x.dtype)
    places = np.arange(out.size).reshape(shape)[numpy_key(key, index_arrays)]
    for place, value in zip(places.ravel(), x.ravel(), strict=True):
        out.flat[place] += value
    return out


def _set_at(x: np.ndarray, value: Any, *index_arrays: np.ndarray, key: Any) -> np.ndarray:
    chosen = np.zeros(x.shape, bool)
    chosen[numpy_key(key, index_arrays)] = True
    values = np.zeros_like(x)
    values[numpy_key(key, index_arrays)] = value
    return np.where(chosen, values, x)


def _strided_put(x: np.ndarray, value: Any, part: Any) -> np.ndarray:
    steps = [stride * np.arange(length) for stride, length in zip(part.strides, part.shape, strict=True)]
    places = part.offset + sum(np.meshgrid(*steps, indexing="ij"), np.zeros(part.shape, np.int64))
    return _set_at(x.ravel(), value, places, key=("array",)).reshape(x.shape)


# Rows that would otherwise be compared with their own forward.
ORACLES: dict[str, Callable[..., Any]] = {
    "index_scatter_add": _index_scatter_add,
    "index_replace": _set_at,
    "strided_put": _strided_put,
    "cast": lambda x, source, dtype: (x.real if dtype.kind == "f" else x).astype(dtype),
}


def numpy_key(key: tuple[Any, ...], index_arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Return NumPy's index of a key in the hashable form of `tapegrad.ops.index_keys`."""
    arrays = iter(index_arrays)
    parts = {str: lambda _: next(arrays), tuple: lambda item: slice(*item)}
    return tuple(parts.get(type(item), lambda item: item)(item) for item in key)


def oracle_of(op: Op) -> Callable[..., Any] | None:
    """Return what computes an op's forward by other means."""
    named = getattr(np, op.name, None) or getattr(scipy.special, op.name, None)
    return ORACLES.get(op.name) or op.oracle or named


def oracle(op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Compute an op's forward by other means."""
    function = oracle_of(op)
    assert function is not None, f"op {op.name} has no oracle, and neither NumPy nor SciPy a function of its name"
    attrs = dict(attrs)
    index_arrays = attrs.pop("index_arrays", ())
    return function(list(operands), **attrs) if op.variadic else function(*operands, *index_arrays, **attrs)


def draw(shape: tuple[int, ...], domain: tuple[float, float], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers of a domain, far from each other and from multiples of 1/2, where functions have kinks."""
    low, high = domain
    size = int(np.prod(shape, dtype=np.int64))
    values = low + (high - low) * (rng.permutation(size) + rng.uniform(0.3, 0.7, size)) / max(size, 1)
    halves = np.floor(2 * values) / 2
    inside = halves + 0.05 + 0.8 * (values - halves)
    values = np.where((inside > low) & (inside < high), inside, values)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * draw((size,), domain, np.float64, rng)
    return values.reshape(shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """An op with one of its samples."""

    op: Op
    number: int

    @property
    def sample(self) -> Sample:
        return self.op.samples[self.number]

    def __str__(self) -> str:
        return f"{self.op.name}-{self.number}"

    @property
    def constrained(self) -> bool:
        """Whether operands must be what any numbers are not, e.g. invertible."""
        return any(map(callable, self.sample.values or ()))

    def attrs(self) -> dict[str, Any]:
        return dict(self.sample.attrs)

    def operands(self, dtype: Any) -> tuple[Any, ...]:
        """Return data for the operands; what the sample gives in a floating dtype is converted, the rest is not."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        given = self.sample.values or (None,) * len(self.sample.shapes)
        operands = []
        for shape, value in zip(self.sample.shapes, given, strict=True):
            if value is None:
                operands.append(draw(shape, self.op.domain, dtype, rng))
            elif callable(value):
                operands.append(value(shape, dtype, rng))
            elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
                # Of float64, the strides stay as they are.
                operands.append(value.astype(dtype, order="K", copy=False))
            else:
                operands.append(value)
        return tuple(operands)

    def problem(self, dtype: Any, operands: Sequence[Any] | None = None) -> Problem:
        """Return the op's function at operands, by default those of this case."""
        operands = self.operands(dtype) if operands is None else tuple(operands)
        wanted = tuple(
            number for number, value in enumerate(operands)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and has_rule(self.op, number)
        )  # fmt: skip
        return Problem(lambda *tensors: self.op.called(tensors, self.attrs()), operands, wanted)

    def is_complex(self) -> bool:
        """Whether the function is defined for complex numbers, going by the oracle."""
        if self.op.real_only:
            return False
        try:
            oracle(self.op, self.operands(np.complex128), self.attrs())
        except TypeError:
            return False
        return True


def has_rule(op: Op, operand: int) -> bool:
    """Whether the op is differentiable in an operand."""
    rule = op.rule(operand)
    return rule is not NOT_DIFFERENTIABLE and not isinstance(rule, NotYet)


def cases(*chosen: Op) -> list[Case]:
    """Return the cases of op_table."""
    return [Case(op, number) for op in chosen for number in range(len(op.samples))]

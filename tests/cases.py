"""Cases: each op of the op table with each of its samples, and the operands to call it with."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special

from tapegrad.ops.table.op import Op, Sample
from tapegrad.testing.operands import operands_of
from tests.checks import Problem
from tests.tiers import mostly_full

#: Ops of distributions of counts, which have neither a kernel nor a formula.
OF_COUNTS = ("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri")


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
        """Return data for the operands."""
        return operands_of(self.op, self.sample, dtype, np.random.default_rng(zlib.crc32(str(self).encode())))

    def problem(self, dtype: Any, operands: Sequence[Any] | None = None) -> Problem:
        """Return the op's function at operands, by default those of this case."""
        operands = self.operands(dtype) if operands is None else tuple(operands)
        wanted = tuple(
            number for number, value in enumerate(operands)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and callable(self.op.rule(number))
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


def cases(*chosen: Op) -> list[Case]:
    """Return the cases of op_table."""
    return [Case(op, number) for op in chosen for number in range(len(op.samples))]


def grouped(chosen: Iterable[tuple[Case, str]], quick: int = 1) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on cases with dtypes; the samples of an op, in a dtype, are one test.

    Thousands of tests take longer to be handed out than to run. A note says which sample failed. One of so many tests
    is quick, the others run in the full tier only.
    """
    groups: dict[tuple[str, str], list[Case]] = {}
    for case, dtype in chosen:
        groups.setdefault((case.op.name, dtype), []).append(case)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(case: list[Case], **arguments: Any) -> None:
            skipped = []
            for own in case:
                try:
                    test(case=own, **arguments)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except Exception as error:
                    error.add_note(f"sample {own}")
                    raise
            if len(skipped) == len(case):
                raise skipped[0]

        values = [(group, dtype) for (_, dtype), group in groups.items()]
        ids = [f"{name}-{dtype}" for name, dtype in groups]
        return pytest.mark.parametrize(("case", "dtype"), mostly_full(values, quick), ids=ids)(run)

    return decorate

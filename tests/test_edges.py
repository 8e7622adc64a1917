"""Compiled functions of special numbers: zeros, infinities, nan, large and subnormal ones give what eager gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.elementwise import elementwise_step
from tapegrad.ops.table.loading import load_all
from tapegrad.ops.table.op import Op, op_table, xp
from tests.tiers import mostly_full

NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, np.inf, -np.inf, np.nan, 1e-30, 1e-310, -1e-310, 1e5, -1e5, 1.5,
    -2.5, 80.0, -80.0,
)  # fmt: skip
FEW = (0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-310)

load_all()
ELEMENTWISE = [op for op in op_table.values() if op.step is elementwise_step and op.samples]


def arrays(value: Any) -> list[np.ndarray]:
    """Return the results of an operation."""
    return [own.numpy() for own in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.full)])
@pytest.mark.parametrize("op", mostly_full(ELEMENTWISE, 5), ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore")
def test_compiled_operations_give_what_eager_gives(op: Op, dtype: str) -> None:
    if (op.name, dtype) == ("binary_cross_entropy", "float32"):
        pytest.skip("differences of large numbers lose digits, by the order of the sums")
    sample = op.samples[0]
    numbers = NUMBERS if len(sample.shapes) < 3 else FEW
    grid = np.array([*itertools.product(numbers, repeat=len(sample.shapes))]).T.astype(dtype)
    operands = [tg.tensor(own) for own in grid]

    def function(*operands: Any) -> Any:
        return getattr(xp, op.name)(*operands, *sample.attrs.values())

    for own, right in zip(arrays(tg.compile(function)(*operands)), arrays(function(*operands)), strict=True):
        np.testing.assert_allclose(own, right, rtol=3e-5 if dtype == "float32" else 1e-9, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_closeness_is_that_of_eager(dtype: str) -> None:
    x, y = (tg.tensor(np.array(own).astype(dtype)) for own in ([0, 1, 1, 200], [1, 1, 0, 201]))
    for function in (lambda x, y: tg.isclose(x, y, rtol=0.01), tg.allclose):
        assert np.array_equal(tg.compile(function)(x, y), function(x, y))

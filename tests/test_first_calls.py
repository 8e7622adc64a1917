"""First calls of compiled functions: traces compute by NumPy alone, and what Python looks at has ordinary bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import Bound, Op, op_table
from tapegrad.ops.table.plain import by_numpy
from tapegrad.tape.layout import layout_of
from tapegrad.testing.operands import operands_of

PROGRAM = """
import sys
import numpy as np
import tapegrad as tg

def loss(w, x):
    z = tg.tanh(x @ w + tg.exp(-w).sum())
    return (tg.softmax(z, 0) * tg.log1p(z * z)).sum() + (x[:, :1] - x).mean() + tg.sqrt(abs(w)).sum()

arrays = np.linspace(0.1, 1.0, 5), np.linspace(-1.0, 1.0, 35).reshape(7, 5)
value, gradient = tg.compile(tg.func.value_and_grad(loss))(*arrays)
assert np.isfinite(gradient).all()
print("numba" in sys.modules)
"""


def test_a_trace_compiles_no_kernels(tmp_path: Path) -> None:
    """Numba, which takes a third of a second a kernel, is not even imported."""
    variables = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, check=True, capture_output=True, text=True, timeout=120
    )
    assert found.stdout == "False\n"


@pytest.mark.parametrize("name", sorted(op_table))
def test_by_numpy(name: str) -> None:
    """Forwards without kernels give results of the same layout and value, for all operations of all samples."""
    op = op_table[name]

    def compare(op: Op, bound: Bound) -> object:
        layouts = tuple([own._layout.plain for own in bound.operands])
        plan, out, _ = gateway.forward(op, bound, layouts)
        function = by_numpy(op, layouts, bound.attrs)
        if function is not None:
            other = function(*map(raw_data, bound.operands), *bound.index_arrays)
            one, two = layout_of(other), layout_of(out)
            assert (one.shape, one.dtype, one.strides) == (two.shape, two.dtype, two.strides)
            eps = np.finfo(out.dtype).eps if out.dtype.kind == "f" else 0.0
            np.testing.assert_allclose(other, out, rtol=60 * eps, atol=eps, equal_nan=True)
        if plan.pack is not None:
            return plan.pack(plan, out, *bound.operands)
        return gateway.compiled.finish(plan, out, *bound.operands, *bound.index_arrays)

    for sample in op.samples:
        for dtype in (np.float64, np.float32):
            operands = operands_of(op, sample, dtype, np.random.default_rng(1))
            with modes.intercept(compare), np.errstate(all="ignore"):
                op.called(list(operands), sample.attrs)


def test_what_python_looks_at_has_ordinary_bits() -> None:
    x = np.linspace(0.3, 2.0, 9)

    def function(x: tg.Tensor) -> tg.Tensor:
        total = (tg.exp(x) * tg.sin(x))[4]
        seen.append(float(total))
        y = tg.log(total * x)
        for k in range(3):
            seen.append(y[k].item())
            y = tg.tanh(y)
        return y

    seen: list[float] = []
    tg.compile(function)(x)
    traced, seen = seen[:4], []
    function(tg.tensor(x))
    assert traced == seen

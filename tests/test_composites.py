"""Each composite with each of its samples: forward, gradient and second order, as for ops; the same in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.composites import composite, composites
from tapegrad.ops.table.op import Sample, op_table
from tests import checks
from tests.cases import Case

CASES: list[Case] = [Case(one, number) for one in composites.values() for number in range(len(one.samples))]  # type: ignore[arg-type]
SMOOTH = [(case, dtype) for case in CASES for dtype in ("float64", "complex128")
          if dtype == "float64" or not case.op.real_only]  # fmt: skip
each_case = pytest.mark.parametrize(("case", "dtype"), SMOOTH, ids=[f"{case}-{dtype}" for case, dtype in SMOOTH])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case: Case, dtype: str) -> None:
    if case.op.real_only and dtype.startswith("complex"):
        pytest.skip("a function of real numbers")
    operands = case.operands(dtype)
    assert case.op.oracle is not None
    expected = np.asarray(case.op.oracle(*operands, **case.attrs()))
    problem = case.problem(dtype)
    for out in (case.op.called(operands, case.attrs()), problem(problem.tensors())):
        checks.check_layout(out)
        assert out.dtype == expected.dtype
        checks.assert_close([out.detach().numpy()], [expected], dtype=dtype)
    assert out.requires_grad


@each_case
def test_gradient(case: Case, dtype: str) -> None:
    checks.check_gradient(case.problem(dtype))


@each_case
def test_second_order(case: Case, dtype: str) -> None:
    checks.check_second(case.problem(dtype))


def test_no_composite_is_an_op() -> None:
    public: dict[str, Any] = {**vars(tg), **vars(tg.nn.functional)}
    for name, one in composites.items():
        assert public[name] is one.function
        assert getattr(op_table.get(name), "call", None) is None


def test_a_composite_needs_samples() -> None:
    for samples in ((), (Sample(((3,),)),)):
        with pytest.raises(ValueError, match="composite square: the name is taken, or there is no sample"):
            composite(samples, np.square)(tg.square)

"""Fast paths are taken: results would be the same without them, so only these tests see that one is lost."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward.products import _gemm_kernel_address
from tapegrad.ops.table.op import op_table
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.tape.entries import PLAN_OBJECT
from tapegrad.tape.plan import JOINT, Plan
from tests.cases import cases

# Samples for which a sweep calls rules in Python, and of which operands. A new op without a kernel belongs here.
WITHOUT_KERNEL = {
    "amax": {5: (0,), 6: (0,)},  # dimensions that are not next to each other
    "amin": {5: (0,), 6: (0,)},
    "cast": {1: (0,), 3: (0,), 5: (0,), 7: (0,)},  # from real numbers to complex ones
    "deviations": {4: (0,), 6: (0,)},  # not contiguous; dimensions apart
    "getitem": {9: (0,), 10: (0,)},  # by a truth value
    "index_gather": {5: (0,), 6: (0,)},  # arrays with a slice between them
    "index_put": {1: (1,)},  # a value that is broadcast
    "log_softmax": {4: (0,)},  # not contiguous
    "logsumexp": {4: (0,), 5: (0,)},
    "matmul": {5: (0, 1), 11: (0, 1), 12: (1,)},  # strides that BLAS does not take; no element
    "max_along": {0: (0,)},  # no dimension
    "min_along": {0: (0,)},
    "softmax": {4: (0,)},
    "sort": {0: (0,)},
    "prod": {5: (0,), 6: (0,)},
    "cumsum": {4: (0,)},
    "inv": {0: (0,), 1: (0,), 2: (0,), 3: (0,), 4: (0,), 5: (0,)},
    "strided_put": {1: (1,)},
    "solve": {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (0, 1), 4: (0, 1), 5: (0, 1), 6: (0, 1), 9: (0, 1)},
}
# Ops of two operands whose cotangents one kernel computes.
FUSED = {"atan2", "div", "hypot", "logaddexp", "maximum", "minimum", "mul", "pow"}


def plan_of(tensor: tg.Tensor) -> Plan:
    """The plan of the entry of a result, with its steps."""
    node = tensor._node
    assert isinstance(node, list)
    plan: Plan = node[PLAN_OBJECT]
    plan.prepare()
    return plan


def is_fused(plan: Plan) -> bool:
    return bool(plan._words[JOINT])


def leaf(*shape: int) -> tg.Tensor:
    return tg.tensor(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), requires_grad=True)


def test_ops_with_kernels_and_fused_kernels() -> None:
    without: dict[str, dict[int, tuple[int, ...]]] = {}
    fused = set()
    for case in cases(*op_table.values()):
        problem = case.problem(np.float64)
        out = problem(problem.tensors())
        if isinstance(out._node, list):  # it may have no element, or be an integer
            plan = plan_of(out)
            if plan.python_operands:
                without.setdefault(case.op.name, {})[case.number] = plan.python_operands
            if is_fused(plan):
                fused.add(case.op.name)
    assert without == WITHOUT_KERNEL
    assert fused == FUSED


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((4, 3), (3, 5)),
        ((3000, 4), (4, 2)),
        ((2, 4000), (4000, 3)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
    ],
    ids=str,
)
def test_products_of_matrices_are_those_of_blas(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    plan = plan_of(leaf(*x) @ leaf(*y))
    assert plan.python_operands == ()
    assert [kernel for kernel, _, _ in plan._steps] == [_gemm_kernel_address, _gemm_kernel_address]


def test_products_of_transposed_matrices_are_those_of_blas() -> None:
    plan = plan_of(leaf(4, 3).T @ leaf(5, 4).T)
    assert [kernel for kernel, _, _ in plan._steps] == [_gemm_kernel_address, _gemm_kernel_address]


@pytest.mark.parametrize(
    ("call", "fused"),
    [
        (lambda: leaf(4, 3) * leaf(4, 3), True),
        (lambda: leaf(4, 3) * leaf(4, 1), True),  # one number a row: the kernel sums it
        (lambda: leaf(4, 3) * leaf(3), False),
        (lambda: leaf(4, 3) / leaf(4, 3), True),
        (lambda: leaf(4, 3) + leaf(4, 3), False),  # cotangents that are the result's
        (lambda: leaf(3) * 2.0, False),
    ],
)
def test_one_kernel_for_both_operands(call: Callable[[], tg.Tensor], fused: bool) -> None:
    assert is_fused(plan_of(call())) is fused


SMALL: dict[str, Callable[[], Any]] = {
    "add": lambda: leaf(4, 3) + leaf(4, 3),
    "row": lambda: leaf(4, 3) * leaf(3),
    "column": lambda: leaf(4, 3) * leaf(4, 1),
    "exp": lambda: tg.exp(leaf(4, 3)),
    "pow": lambda: leaf(4, 3) ** 2,
    "sum": lambda: leaf(4, 3).sum(),
    "sum of rows": lambda: leaf(4, 3).sum(1),
    "amax": lambda: tg.amax(leaf(4, 3), 1),
    "matmul": lambda: leaf(4, 3) @ leaf(3, 5),
    "bmm": lambda: leaf(2, 3, 4) @ leaf(2, 4, 5),
    "cat": lambda: tg.cat([leaf(4, 3), leaf(2, 3)]),
    "stack": lambda: tg.stack([leaf(4, 3), leaf(4, 3)]),
    "softmax": lambda: tg.softmax(leaf(4, 3), 1),
}


@pytest.mark.skipif(INTERPRETS, reason="forwards are interpreted too")
@pytest.mark.parametrize("name", SMALL)
def test_small_forwards_are_compiled(name: str) -> None:
    forward = plan_of(SMALL[name]()).forward
    assert isinstance(forward, BuiltinFunctionType), f"{forward} is Python's or a ufunc"

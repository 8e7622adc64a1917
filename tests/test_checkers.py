"""Tests of the tests: rules, kernels and layouts that are wrong on purpose must make the checkers fail."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies

import tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.compiler.elements import as_pointer, load, load_at, store_at
from tapegrad.kernels.elementwise import elementwise_step, loop_step
from tapegrad.kernels.structural import view_step
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import Op, op_table, xp
from tapegrad.recording.plan import Plan, alive
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import contiguous_strides, intern
from tapegrad.testing.operands import draw
from tests import checks, reference, test_programs, torch_programs
from tests.cases import Case
from tests.checks import Problem
from tests.strategies import Program, Ref
from tests.tiers import mostly_full

ROWS = [op for op in op_table.values() if any(callable(op.rule(number)) for number in range(len(op.operands)))]
POINT = draw((2, 3), (-2.0, 2.0), np.float64, np.random.default_rng(0))
FIRST_ORDER = [checks.check_gradient, checks.check_transpose]


def _sin(ct: Any, x: Any) -> Any:
    return ct * xp.cos(x)


@pytest.fixture
def row_of() -> Iterator[Callable[..., Problem]]:
    """Make an op of a function of one operand, and return the problem of checking it."""

    def make(rule: Callable[..., Any], step: Any = elementwise_step, forward: Any = np.sin) -> Problem:
        function = unary("wrong", forward, rule, doc="", names=None)
        object.__setattr__(op_table["wrong"], "step", step)
        return Problem(function, (POINT,), (0,))

    yield make
    del op_table["wrong"], xp.wrong


def fails(check: Callable[[Problem], None], problem: Any) -> bool:
    try:
        check(problem)
    except AssertionError:
        return True
    return False


def test_right_row_passes(row_of: Callable[..., Problem]) -> None:
    problem = row_of(_sin)
    for check in (*FIRST_ORDER, checks.check_rule, checks.check_second, checks.check_accumulation,
                  checks.check_layouts, checks.check_stretched):  # fmt: skip
        check(problem)


WRONG_RULES = {
    "sign": lambda ct, x: -ct * xp.cos(x),
    "factor": lambda ct, x: ct * xp.cos(x) * 1.0001,
    "residual": lambda ct, out: ct * xp.cos(out),
    "no cotangent": lambda ct, x: xp.cos(x) + ct * 0.0,
    "one element": lambda ct, x: xp.where(x > 1.5, 0.0, ct * xp.cos(x)),
}


@pytest.mark.parametrize("wrong", WRONG_RULES)
@pytest.mark.parametrize("check", FIRST_ORDER, ids=lambda check: check.__name__)
def test_wrong_rule(row_of: Callable[..., Problem], wrong: str, check: Any) -> None:
    assert fails(check, row_of(WRONG_RULES[wrong]))


def test_wrong_kernel(row_of: Callable[..., Problem]) -> None:
    problem = row_of(_sin, lambda plan, operand: view_step(plan, lambda x: x))
    for check in (*FIRST_ORDER, checks.check_rule):
        assert fails(check, problem)


def test_wrong_second_order(row_of: Callable[..., Problem]) -> None:
    problem = row_of(lambda ct, x: ct * xp.cos(x.detach()), lambda plan, operand: None)
    checks.check_gradient(problem)
    checks.check_rule(problem)
    assert fails(checks.check_second, problem)


def test_wrong_third_order(row_of: Callable[..., Problem]) -> None:
    checks.check_third(row_of(_sin))
    slope = lambda x: xp.cos(x.detach()) - (x - x.detach()) * xp.sin(x.detach())  # noqa: E731
    problem = row_of(lambda ct, x: ct * slope(x), lambda plan, operand: None)
    checks.check_second(problem)
    assert fails(checks.check_third, problem)


def test_gradient_of_another_dtype_or_shape(row_of: Callable[..., Problem]) -> None:
    problem = row_of(_sin)
    tensor = checks.leaf(POINT)
    tensor._grad = tg.tensor(POINT.astype(np.float32))
    with pytest.raises(AssertionError, match="its tensor's layout"):
        checks.gradients_of([tensor])
    assert fails(lambda own: checks.assert_close(checks.by_kernel(own, own.cotangent()), [POINT[0]]), problem)


def _overwriting(args: int, dims: int, accumulate: int) -> int:
    table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
    for i in range(load(block, 1)):
        store_at(load(table, 1), 8 * i, load_at(load(table, 0), 8 * i, "float64"), "float64")
    return 0


def test_kernel_that_overwrites(row_of: Callable[..., Problem]) -> None:
    def step(plan: Plan, operand: int) -> Step:
        dims = np.array([0, plan.result.size], np.int64)
        return Step(lambda: cache.address_of("overwriting", _overwriting), dims, [(CT, 0)])

    problem = row_of(lambda ct: ct, step, np.positive)
    checks.check_gradient(problem)
    checks.check_rule(problem)
    assert fails(checks.check_accumulation, problem)


def _square(ct: Any, x: Any) -> Any:
    return ct * x


def test_kernel_that_ignores_strides(row_of: Callable[..., Problem]) -> None:
    def step(plan: Plan, operand: int) -> Step:
        shape = plan.result.shape
        strides = contiguous_strides(shape, 8)
        operands = [((CT, 0), "float64", strides), (plan.source("x"), "float64", strides)]
        return loop_step("flat", _square, shape, operands, ("float64", strides))

    problem = row_of(_square, step, lambda x: x * x / 2)
    checks.check_gradient(problem)
    assert fails(checks.check_layouts, problem)


def test_layout_that_lies() -> None:
    tensor = tg.tensor(POINT)
    for shape, strides, dtype in (((3, 2), (16, 8), "f8"), ((2, 3), (8, 16), "f8"), ((2, 3), (24, 8), "i8")):
        tensor._layout = intern(shape, strides, np.dtype(dtype))
        with pytest.raises(AssertionError):
            checks.check_layout(tensor)


# Each op of the table, with one rule a little wrong ------------------------------------------------------------


def _a_little_wrong(right: Any, number: int) -> Any:
    """Return rules of which that for an operand, or that part of the rule for all, is wrong."""

    def moved(value: Any) -> Any:
        return value if value is None else xp.add(xp.mul(value, 1.001), 1e-3)

    if callable(right):
        return functools.wraps(right)(
            lambda *given: tuple(moved(own) if place == number else own for place, own in enumerate(right(*given)))
        )
    wrong = functools.wraps(right[number])(lambda *given: moved(right[number](*given)))
    return (*right[:number], wrong, *right[number + 1 :])


def replace_rules(op: Op, rules: Any) -> None:
    """Give an op other rules, and its plans too, which know how rules are called."""
    object.__setattr__(op, "vjp", rules)
    for plan in alive():
        plan.rule_calls = ()


@pytest.mark.parametrize("op", mostly_full(ROWS[::2], 2), ids=lambda op: op.name)
def test_each_rule_is_needed(op: Op) -> None:
    """Whatever rule of the table is off by a thousandth, a test of the table fails."""
    # Of real numbers, conj and real are no operations.
    dtype = np.complex128 if op.name in ("conj", "real", "imag") else np.float64
    problems = [Case(op, number).problem(dtype) for number in range(len(op.samples))]
    for problem in problems:
        checks.check_rule(problem)  # kernels of the right rules are made, and stay
    right = op.vjp
    try:
        for number in range(len(op.operands)):
            if callable(op.rule(number)):
                replace_rules(op, _a_little_wrong(right, number))
                checked = [own for own in problems if number in own.wanted]
                if not checked and callable(right):
                    continue  # one rule for all operands, of which this one is no number
                found = [fails(check, own) for own in checked for check in (checks.check_rule, checks.check_gradient)]
                assert any(found), f"the rule for operand {number} can be wrong"
    finally:
        replace_rules(op, right)


# Finite differences and programs --------------------------------------------------------------------------------


def test_finite_differences() -> None:
    exact = {np.sin: np.cos, np.exp: np.exp, np.arctan: lambda x: 1 / (1 + x * x)}
    for function, derivative in exact.items():
        x = np.array([0.7])
        value, error = checks.slope(lambda moved, f=function: f(moved[0]).item(), [x], [np.ones(1)], x)
        assert abs(value - derivative(0.7)) <= error < 1e-9


def test_finite_differences_notice_a_kink() -> None:
    for x in (1e-5, 3e-4):
        problem = Problem(tg.abs, (np.array([x]),), (0,))
        with pytest.raises(AssertionError, match="do not converge"):
            checks.check_gradient(problem)


def test_missing_conjugate(row_of: Callable[..., Problem]) -> None:
    problem = row_of(lambda ct, x: 2 * ct * x, forward=np.square)
    for check in FIRST_ORDER:
        check(problem)
        assert fails(check, Problem(problem.function, (POINT + 1j * POINT[::-1],), (0,)))


PROGRAM = Program([POINT], [("sin", (Ref(0),), {}), ("mul", (Ref(1), Ref(0)), {})], result=2)


def run(test: Any) -> None:
    settings(database=None, max_examples=1)(given(strategies.just(PROGRAM))(test.hypothesis.inner_test))()


def test_wrong_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    run(test_programs.test_reference)
    for wrong in (lambda x: reference.elementwise("cos", x) * 1.0001, lambda x: np.cos(x.value)):
        with monkeypatch.context() as patch:  # the first is wrong, the second right but a constant
            patch.setitem(reference.FUNCTIONS, "sin", (np.sin, wrong))
            with pytest.raises(AssertionError):
                run(test_programs.test_reference)


@test_programs.needs_torch
def test_wrong_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    run(test_programs.test_torch)
    monkeypatch.setitem(torch_programs.FUNCTIONS, "sin", lambda x: x.detach().sin())
    with pytest.raises(AssertionError):
        run(test_programs.test_torch)


@pytest.mark.parametrize("name", ["finite_differences", "second_order_by_differences", "reference"])
def test_wrong_rule_in_a_program(name: str) -> None:
    op, test = op_table["sin"], getattr(test_programs, f"test_{name}")
    run(test)
    right, step = op.vjp, op.step
    plans = op.plans
    try:  # the rule is called in Python, so that nothing is compiled
        object.__setattr__(op, "vjp", (lambda ct, x: ct * xp.cos(x) * 1.0001,))
        object.__setattr__(op, "step", lambda plan, operand: None)
        plans.clear()
        with pytest.raises(AssertionError):
            run(test)
    finally:
        object.__setattr__(op, "vjp", right)
        object.__setattr__(op, "step", step)
        plans.clear()

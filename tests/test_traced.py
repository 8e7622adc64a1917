"""Functions as users write them, traced: no value leaves a program unseen, and no constant in it is an argument's."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program.replay import replay
from tapegrad.program.trace import TracingError, trace
from tapegrad.tensor import Tensor
from tests.program_cases import CASES, ERROR, GUARD, PROGRAM, Case
from tests.tiers import mostly_full

# What is not as it shall be yet, and why. Take off what you mend.
OPEN_EVERYWHERE: dict[str, str] = {}
OPEN_TRACED = OPEN_EVERYWHERE
OPEN_COMPILED = OPEN_EVERYWHERE
OPEN_GRADIENTS = OPEN_EVERYWHERE
OPEN_ERRORS: dict[str, str] = {}


def marked(kinds: Sequence[str], reasons: dict[str, str]) -> list[Any]:
    """Return the cases of some kinds as parameters; those that are not as they shall be are expected to fail."""
    return [
        pytest.param(
            own, id=own.name,
            marks=[pytest.mark.xfail(strict=True, reason=reasons[own.name])] if own.name in reasons else [],
        )
        for own in CASES
        if own.kind in kinds
    ]  # fmt: skip


def results(case: Case, inputs: tuple[np.ndarray, ...]) -> list[Tensor]:
    found = case.function(*map(tg.tensor, inputs))
    return [found] if isinstance(found, Tensor) else list(found)


def several(case: Case) -> Any:
    """Return a case's function with a sequence of results."""

    def function(*tensors: Any) -> list[Any]:
        found = case.function(*tensors)
        return [found] if isinstance(found, Tensor) else list(found)

    return function


def assert_same(found: Any, expected: Any) -> None:
    for own, right in zip(found, expected, strict=True):
        own, right = (np.asarray(each.detach()) for each in (own, right))
        assert own.dtype == right.dtype
        np.testing.assert_allclose(own, right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", marked((PROGRAM, GUARD), OPEN_TRACED))
def test_a_program_holds_for_other_inputs(case: Case) -> None:
    program, captured = trace(several(case), case.inputs)
    if case.kind == GUARD:
        assert program.guards
    else:  # that indices are within bounds, and nothing else
        assert all(guard.outcome.shape == () and guard.outcome == np.True_ for guard in program.guards)
    missed = False
    for inputs in (case.inputs, *case.others):
        with tg.no_grad():
            try:
                found, values = replay(program, [*map(tg.tensor, inputs), *captured])
            except Exception:
                assert case.kind == GUARD, "a shape of another branch; its guard stands before"
                continue
        if all(np.array_equal(value, guard.outcome) for value, guard in zip(values, program.guards, strict=True)):
            assert_same(found, results(case, inputs))
        else:
            assert inputs is not case.inputs
            missed = True
    assert missed or case.kind == PROGRAM or case.name == "refuses_what_is_not_finite"


@pytest.mark.parametrize("case", marked((PROGRAM, GUARD), OPEN_COMPILED))
def test_compiled_is_eager(case: Case) -> None:
    compiled = tg.compile(several(case))
    for inputs in (case.inputs, *case.others, case.inputs, *case.others):
        assert_same(compiled(*map(tg.tensor, inputs)), results(case, inputs))


@pytest.mark.parametrize("case", marked((ERROR,), OPEN_ERRORS))
def test_what_cannot_be_traced_names_the_line(case: Case) -> None:
    with pytest.raises(TracingError) as caught:
        trace(several(case), case.inputs)
    message = str(caught.value)
    assert case.message in message
    assert "program_cases" in message
    code = case.function.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno : code.co_firstlineno + 8]
    assert any(line.strip() and line.strip() in message for line in lines), message


@pytest.mark.parametrize("case", marked((GUARD,), OPEN_EVERYWHERE))
def test_a_guard_names_the_line(case: Case) -> None:
    program, _ = trace(several(case), case.inputs)
    assert all("program_cases" in guard.where for guard in program.guards)


def gradients(function: Any, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray | None]:
    """Return the gradients of the sum of all results, weighted, by the inputs that can have one."""
    tensors = [tg.tensor(own, requires_grad=own.dtype.kind == "f") for own in inputs]
    results = [own for own in function(*tensors) if own.requires_grad]
    if results:
        sum((own * own).sum() for own in results).backward()
    return [None if own.grad is None else own.grad.numpy() for own in tensors]


@pytest.mark.filterwarnings("ignore:Converting a tensor", "ignore:To copy construct")
@pytest.mark.parametrize("case", mostly_full(marked((PROGRAM, GUARD), OPEN_GRADIENTS), 3))
def test_gradient_of_compiled_is_eager(case: Case) -> None:
    compiled = tg.compile(several(case))
    for inputs in (case.inputs, *case.others):
        for own, right in zip(gradients(compiled, inputs), gradients(several(case), inputs), strict=True):
            assert (own is None or not np.any(own)) if right is None else own is not None
            if right is not None:
                np.testing.assert_allclose(own, right, rtol=1e-10, atol=1e-13)

"""Programs that are refused before they are lowered: only those that would be refused after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.ops.table.op import op_table
from tapegrad.program import fuse as fusing
from tapegrad.program.fuse import Refused, fuse
from tapegrad.program.fuse.estimates import fewest_scalars
from tapegrad.program.fuse.flat import flat
from tapegrad.program.fuse.lowering import lower, moves
from tapegrad.program.fuse.schedule import arrange, plan
from tapegrad.program.fuse.vectors import on_vectors
from tapegrad.program.program import Program
from tapegrad.program.trace import TracingError, trace
from tapegrad.testing.operands import operands_of
from tests.test_fuse import value_and_gradient
from tests.tiers import mostly_full

_LONG = 1 << 30  # no dimension is an axis


def scalars_of_code(program: Program) -> int:
    """Return how many scalars its straight code has."""
    lowered = lower(flat(program), _LONG, 10**6)
    phases = plan(lowered.graph, [(array, ("out", k)) for k, array in enumerate(lowered.outputs)])
    arrange(lowered.graph, phases)
    return sum(len(phase.uniform) + len(phase.stores) for phase in phases)


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 4))
def test_estimates_are_no_larger_than_code(name: str) -> None:
    """A value and gradient of each op has at least as many scalars as is said before it is lowered."""
    op = op_table[name]
    for sample in op.samples:
        operands = operands_of(op, sample, np.float64, np.random.default_rng(5))
        function, arrays = value_and_gradient(op, sample, operands)
        try:
            program = on_vectors(trace(function, arrays)[0])
            count = scalars_of_code(program)
        except (TracingError, RuntimeError, ValueError, TypeError, NotImplementedError, Refused):
            continue
        assert fewest_scalars(program, _LONG, moves(flat(program))) <= count


@pytest.mark.parametrize(
    ("function", "fewest"),
    [
        (lambda x: x.sin().sum(), 1200 + 1),
        (lambda x: x.permute(1, 0).reshape(60, 20).sum(0), 1200 + 20),
        (lambda x: (x * 2)[0], 30),  # the others are not computed
        (lambda x: x * tg.func.grad(lambda y: (y[0] ** 2).sum())(x), 1200),  # a product with terms that are absent
    ],
)
def test_what_is_needed(function: Callable[..., Any], fewest: int) -> None:
    """Inputs count of which each element is needed for the result."""
    program, _ = trace(lambda x: [function(x)], [np.ones((40, 30))])
    estimate = fewest_scalars(program, 64, moves(flat(program)))
    assert estimate == fewest
    assert estimate <= scalars_of_code(program)


def test_long_code_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of 40 x 50 x 60 elements is refused by its size: none of its choices of axes is lowered."""
    program, _ = trace(lambda x: [x.sin().sum()], [np.ones((40, 50, 60))])
    monkeypatch.setattr(fusing, "lower", None)
    monkeypatch.setattr(fusing, "_ROLES", ((64, 300),))
    with pytest.raises(Refused, match=r"120001 scalars|more than 100000 scalars"):
        fuse(program)


def test_the_same_choice_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused along one axis is not lowered again because more scalars would be allowed."""
    program, _ = trace(lambda x: [x.reshape(20, 130)[:, ::2].cumsum(1)], [np.ones(2600)])
    tried: list[object] = []

    def refuse(flattened: Any, long: int, limit: int, roles: Any) -> None:
        tried.append((frozenset(own for shape in ((2600,), (20, 130)) for own in shape if own > long), id(roles)))
        raise Refused("a test")

    monkeypatch.setattr(fusing, "lower", refuse)
    with pytest.raises(Refused, match="a test"):
        fuse(program)
    assert len(tried) == len(set(tried))


def test_many_calls_of_functions_are_loops_and_no_straight_code() -> None:
    """Each of them would take LLVM 2 ms."""
    compiled = tg.compile(func.value_and_grad(lambda x, y: tg.outer(x, y).sin().sum(), argnums=(0, 1)))
    x, y = np.linspace(-1, 1, 30), np.linspace(0, 2, 30)
    value, (slope, _) = compiled(x, y)
    np.testing.assert_allclose(np.asarray(value), np.sin(np.outer(x, y)).sum(), atol=1e-12)
    np.testing.assert_allclose(np.asarray(slope), np.cos(np.outer(x, y)) @ y, atol=1e-12)
    assert compiled.source().count("sin(") == 1

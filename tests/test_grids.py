"""Slices of inputs along several dimensions in fused code: neighbours on a grid are loads of one memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.fuse import fuse
from tapegrad.program.trace import trace
from tests.test_fuse import assert_near, call, check, eager


def laplace(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]


def variation(u: Any) -> Any:
    down, right = u[1:, :-1] - u[:-1, :-1], u[:-1, 1:] - u[:-1, :-1]
    return tg.sqrt(down * down + right * right + 1e-3)


def box(u: Any) -> Any:
    """Three dimensions; one is short, and another one is cut."""
    return tg.sin(u[:, 1:, 2:]) * u[:, :-1, :-2] + u[:, 1:, 1:-1]


def far(u: Any) -> Any:
    """Every second row, slices of a slice, and one from the end."""
    own = u[::2, 3:]
    return own[:12, :-2] * own[-12:, 2:]


CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "laplace": (laplace, (40, 41)), "laplace, wide": (laplace, (3, 300)), "laplace, high": (laplace, (300, 4)),
    "variation": (variation, (33, 65)), "box": (box, (3, 24, 30)), "far": (far, (30, 40)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: str) -> None:
    function, shape = CASES[name]
    u = np.random.default_rng(0).uniform(1, 2, shape).astype(dtype)
    check(lambda u: [function(u), function(u).sum()], [u])


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    function, shape = CASES[name]
    u = np.random.default_rng(1).uniform(1, 2, shape)

    def loss(u: Any) -> Any:
        return (function(u) ** 2).sum()

    compare(loss, u)


def test_neighbours_are_loaded_where_they_stand() -> None:
    """No copy is made: the loop reads the input at five places."""
    program, _ = trace(lambda u: [laplace(u)], [np.ones((50, 60))])
    fused = fuse(program)
    places = set(re.findall(r"in0\[[^]]*\]", fused.source()))
    assert len(places) == 5
    assert fused.scratch_bytes == 0


def test_memory_that_is_not_finite_stays_apart() -> None:
    """What is not in a slice is not read."""
    u = np.full((20, 40), np.nan)
    u[3:17, 5:33] = 2.0
    program, _ = trace(lambda u: [u[3:17, 5:33] * u[3:17, 5:33]], [u])
    (result,) = call(program, fuse(program), [u])
    np.testing.assert_array_equal(result, np.full((14, 28), 4.0))


def test_time_steps() -> None:
    """Slices of what is computed are others than those of inputs."""

    def steps(u: Any) -> Any:
        for _ in range(4):
            inner = u[1:-1, 1:-1] + 0.1 * laplace(u)
            u = tg.cat([u[:1], tg.cat([u[1:-1, :1], inner, u[1:-1, -1:]], 1), u[-1:]], 0)
        return (u * u).sum()

    for shape in ((20, 24), (70, 80)):
        compare(steps, np.random.default_rng(2).normal(size=shape))


def compare(loss: Callable[..., Any], u: np.ndarray) -> None:
    value, slope = tg.compile(func.value_and_grad(loss))(u)
    expected, right = eager(lambda u: list(func.value_and_grad(loss)(u)), [u])
    assert_near([np.asarray(value), np.asarray(slope)], [expected, right], 300)


def test_round_the_end() -> None:
    """Elements that are rolled, along one dimension and along several as one, and a view of them."""

    def loss(u: Any) -> Any:
        around = tg.roll(u, 1, 0) + tg.roll(u, -1, 0) + tg.roll(u, 2, 1) + tg.roll(u, -1, 1) + tg.roll(u, 5)
        return ((around - 5.0 * u) ** 2 * tg.roll(u.T, 3, 1).T).sum()

    for shape in ((16, 20), (128, 130)):
        compare(loss, np.random.default_rng(3).normal(size=shape))
    compiled = tg.compile(func.grad(loss))
    compiled(np.ones((128, 130)))
    assert " called" not in compiled.programs[0].explain()


def test_joined() -> None:
    """Arrays behind each other along each dimension, of which one has no elements."""

    def loss(u: Any) -> Any:
        both = tg.cat([u[:, :50], tg.sin(u), tg.zeros(0, dtype=u.dtype)], 1)
        return (tg.cat([both, both[::-1] * 2.0]) ** 2).sum()

    compare(loss, np.random.default_rng(4).normal(size=(150, 140)))

"""Long code of one axis as nests of loops: fewer lines, and the same bits as written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import fuse as fusing
from tapegrad.program.fuse import fuse
from tapegrad.program.trace import trace
from tests.test_fuse import assert_near, call, eager
from tests.tiers import mostly_full


def gates(x: Any) -> list[Any]:
    """Compute the gates of a recurrent layer, as slices of what all of them take."""
    return [x[..., :64].sigmoid(), x[..., 64:128].tanh(), (x[..., 128:] * x[..., :128]).exp()[..., ::2]]


def neighbours(x: Any) -> list[Any]:
    """Compute differences between rows, which the first and the last one take from one side only."""
    inner = (x[2:] - 2 * x[1:-1] + x[:-2]).tanh() * x[1:-1].sin()
    return [tg.cat([x[:1].exp(), inner, -x[-1:].cos()])]


def unlike(x: Any) -> list[Any]:
    """Compute other functions of every other row, and one that each row is multiplied with."""
    return [tg.cat([x[::2].sin() * x[0].exp(), x[1::2].cos()])]


def by_row(x: Any) -> list[Any]:
    """Multiply rows with numbers of their own."""
    return [(x * x[:, :1]).exp() + x[:, 3:4].sin()]


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (gates, (6, 20, 256)),
        (neighbours, (60, 300)),
        (unlike, (62, 77)),
        (by_row, (60, 129)),
    ],
)
@pytest.mark.parametrize("dtype", mostly_full([np.float64, np.float32], [np.float64]))
def test_same_bits_as_written_out(
    function: Callable[[Any], list[Any]], shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of a loop compute what scalars of their own do, in much less code."""
    arrays = [np.random.default_rng(3).standard_normal(shape).astype(dtype)]
    program, _ = trace(function, arrays)
    monkeypatch.setattr(fusing, "is_long", lambda graph, stores: True)
    short = fuse(program)
    monkeypatch.setattr(fusing, "is_long", lambda graph, stores: False)
    long = fuse(program)
    assert len(short.ir) < 0.6 * len(long.ir)
    assert any(note.startswith("a nest of") for note in short.explain())
    found, expected = call(program, short, arrays), call(program, long, arrays)
    for one, two in zip(found, expected, strict=True):
        assert one.tobytes() == two.tobytes()
    assert_near(found, eager(function, arrays))


def test_gates_are_long() -> None:
    """What a network takes of a recurrent layer in 120 places is a few loops, without being asked to."""
    program, _ = trace(gates, [np.ones((6, 20, 256))])
    assert any(note.startswith("a nest of") for note in fuse(program).explain())


def test_sums_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions along the axis stay as they are: another order would give other bits."""
    monkeypatch.setattr(fusing, "is_long", lambda graph, stores: True)
    program, _ = trace(lambda x: [x.sin().exp().tanh().sum(1), x.cos()], [np.ones((60, 300))])
    assert not any(note.startswith("a nest of") for note in fuse(program).explain())


def test_steps_that_change_are_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in no order stay scalars: their places follow no line."""
    monkeypatch.setattr(fusing, "is_long", lambda graph, stores: True)
    order = np.random.default_rng(0).permutation(50)
    program, _ = trace(lambda x: [x[order].tanh().exp().sin()], [np.ones((50, 300))])
    code = fuse(program)
    arrays = [np.random.default_rng(1).standard_normal((50, 300))]
    assert_near(call(program, code, arrays), [np.sin(np.exp(np.tanh(arrays[0][order])))])

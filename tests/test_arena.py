"""The arena of a call: values share its memory if they are never alive at the same time, and only then."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import Program
from tapegrad.program.loops.arena import _first_fit, _moves
from tapegrad.program.loops.rings import Use, _ring


@pytest.mark.parametrize("seed", range(20))
def test_blocks_that_are_alive_together_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    lengths = 64 * rng.integers(1, 20, count)
    begin = rng.integers(0, 30, count)
    end = begin + rng.integers(0, 10, count)
    end[rng.random(count) < 0.1] = -1  # that nobody uses
    offsets, nbytes = _first_fit(lengths, begin, end)
    used = end >= 0
    most = 0
    for stage in range(45):
        alive = np.flatnonzero(used & (begin <= stage) & (stage <= end))
        alive = alive[np.argsort(offsets[alive])]
        ends = offsets[alive] + lengths[alive]
        assert (ends[:-1] <= offsets[alive][1:]).all()
        assert (ends <= nbytes).all()
        most = max(most, int(lengths[alive].sum()))
    assert most <= nbytes <= lengths[used].sum()


def test_what_one_access_goes_over_keeps_its_distances():
    starts = [0, 64, 128, 192]
    accesses = [Use(0, 0, 64), Use(1, 0, 64), Use(2, 64, 136), Use(5, 192, 8)]
    moves, nbytes = _moves(starts, 256, accesses)
    assert len(set(moves[1:].tolist())) == 1  # 64 to 200 is one block
    assert nbytes == 192  # the first stage's is free by then


def matrices(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, n)) + n * np.eye(n)


def chain(x):
    """Operations that are called, each of another size, so that memory of equal size never becomes free."""
    for k in range(12):
        n = 24 - k
        x = tg.linalg.lstsq(x[:n, :n], x[:n, : n - 1] + 0.1 * tg.sin(x[:n, : n - 1])).solution
        x = tg.cat([x, tg.ones(n - 1 - x.shape[0], n - 1)]) if x.shape[0] < n - 1 else x[: n - 1]
        x = x + 3 * tg.eye(n - 1)
    return x.sum()


def test_stages_of_different_sizes_share_memory():
    x = matrices(24)
    program = Program.trace(chain, x)
    assert program.run.code is not None
    np.testing.assert_allclose(program(x), chain(tg.tensor(x)).item(), rtol=1e-10)
    between = sum(program.layouts[own].nbytes for entry in program.entries for own in entry.results)
    assert 0 < program.memory().arena < between / 3


def test_loops_one_after_the_other_share_memory():
    def run(x):
        for _ in range(3):
            for _ in range(50):
                x = x + 0.1 * tg.sin(x)
            x = tg.fft.ifft(tg.fft.fft(x)).real  # no loop goes over it
        return x

    x = np.linspace(0, 1, 40)
    program = Program.trace(run, x)
    np.testing.assert_allclose(program(x), run(tg.tensor(x)).numpy(), rtol=1e-12)
    assert program.memory().arena < 2 * 51 * x.nbytes


def test_the_sweep_of_a_loop_still_finds_what_the_loop_kept():
    def loss(x, w):
        for _ in range(30):
            x = tg.tanh(x @ w)
        y = tg.linalg.pinv(x)
        for _ in range(20):
            y = tg.tanh(w @ y) + y
        return (y * y).sum()

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 4)) / 2
    slope = tg.func.value_and_grad(loss, (0, 1))
    fast = tg.compile(slope)
    for scale in (1.0, 0.9):
        value, grads = fast(scale * x, w)
        expected, own = slope(tg.tensor(scale * x), tg.tensor(w))
        np.testing.assert_allclose(value, expected.item(), rtol=1e-9)
        for one, two in zip(grads, own, strict=True):
            np.testing.assert_allclose(one, two.numpy(), rtol=1e-7, atol=1e-12)


def rod(u, conductivity):
    """A heat equation: each turn reads the one before."""
    for _ in range(60):
        inner = u[1:-1] + conductivity * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = tg.cat([u[:1], inner, u[-1:]])
    return u


def test_what_only_the_next_turn_reads_stands_in_a_ring():
    rng = np.random.default_rng(1)
    u, conductivity = rng.standard_normal(50), rng.uniform(0.1, 0.4, 48)
    program = Program.trace(rod, u, conductivity)
    np.testing.assert_allclose(program(u, conductivity), rod(tg.tensor(u), conductivity).numpy(), rtol=1e-12)
    assert program.memory().arena < 6 * u.nbytes
    slope = tg.func.value_and_grad(lambda *own: (rod(*own) ** 3).sum(), (0, 1))
    program = Program.trace(slope, u, conductivity)
    expected, own = slope(tg.tensor(u), tg.tensor(conductivity))
    value, grads = program(u, conductivity)
    np.testing.assert_allclose(value, expected.item(), rtol=1e-12)
    for one, two in zip(grads, own, strict=True):
        np.testing.assert_allclose(one, two.numpy(), rtol=1e-9, atol=1e-12)
    assert program.memory().arena < 75 * u.nbytes  # the second differences of 60 turns, no temperatures


def test_turns_that_are_read_later_stand_in_a_stack():
    def run(x, w):
        turns = [x, 2 * x]
        for _ in range(40):
            turns.append(tg.sin(turns[-1] + 0.1 * turns[-2]) * w)
        return turns[-1] + turns[-3] + turns[-4], turns[10].sum(), tg.stack(turns)[::7]

    x, w = np.linspace(0, 1, 30), np.linspace(1, 2, 30)
    for found, expected in zip(tg.compile(run)(x, w), run(tg.tensor(x), w), strict=True):
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12)


RESULT = Use(3, 128, 64, 64, 100, is_result=True)  # of a loop with two earlier turns


@pytest.mark.parametrize(
    ("uses", "ring"),
    [
        ([Use(3, 64, 64, 64, 100)], (64, 4)),  # the turn before
        ([Use(2, 0, 128)], None),  # an access to two rows
        ([Use(2, 0, 64), Use(3, 64, 64, is_start=True)], (64, 4)),  # the earlier turns are written
        ([Use(3, 128, 64, is_start=True)], None),
        ([Use(5, 64 * 98, 64)], (64, 4)),  # the fourth turn from the end
        ([Use(5, 64 * 97, 64)], (64, 8)),
        ([Use(5, 64 * 30, 64)], None),  # a turn in the middle: hardly anything is saved
        ([Use(5, 0, 64, 64, 100)], None),  # another loop goes over it
        ([Use(3, 0, 64, 128, 100)], None),
        ([Use(3, 0, 64, 0, 100)], None),  # the first in all turns
    ],
)
def test_rings(uses, ring):
    assert _ring([RESULT, *uses]) == ring

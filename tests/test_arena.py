"""The arena of a call: values share its memory if they are never alive at the same time, and only then."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import Program
from tapegrad.program.loops.arena import _Access, _first_fit, _moves


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
    accesses = [_Access(0, 64, 0), _Access(0, 64, 1), _Access(64, 200, 2), _Access(192, 200, 5)]
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

"""Long programs in stages: values are those of one function, and bits do not depend on who computes which block."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program.fuse import blocks

N = 1003


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def chain(x):
    for _ in range(3):
        x = tg.sin(x) * tg.exp(-x * x) + tg.tanh(x)
    return x.sum()


def centred(x):
    """A sum that needs another one, and a scalar that three stages use."""
    scale = tg.exp(x[0]) + x[5]
    middle = (x * scale).sum() / scale
    return ((x - middle) ** 2).sum() * scale + middle


def branch(x):
    total = x.sum()
    return (x * total).sum() if total > 0 else (x / total).sum()


FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "extrema": lambda x: x.max() * x.min(),
    "log-sum-exp": lambda x: tg.logsumexp(x, 0),
    "softmax": lambda x: (tg.softmax(x, 0) * x).sum(),
    "Rosenbrock": rosenbrock,
    "chain": chain,
    "centred": centred,
    "branch": branch,
    "mean and std": lambda x: x.mean() / x.std(),
    "three lengths": lambda x: x.sum() * x[: N // 2].sum() + (x[: N // 7] * x[N // 3 :][: N // 7]).sum(),
    "two lengths": lambda x: (x[: N // 2] ** 2).sum() + (x[N // 3 :] ** 3).sum(),
}


@pytest.fixture
def in_stages(monkeypatch):
    """Let short programs have stages, of small blocks."""
    monkeypatch.setattr(blocks, "_MANY_CYCLES", 0)
    monkeypatch.setattr(blocks, "_BLOCKS", (32, 64))


def stages_of(compiled):
    return [version.run.fused.stages for versions in compiled._versions.values() for version in versions]


def both(function, x):
    """Return a value and a gradient as eager code computes them, as one function does, and in stages."""
    wanted = tg.func.value_and_grad(function)
    compiled = tg.compile(wanted)
    out = compiled(x)
    assert stages_of(compiled)
    assert len(stages_of(compiled)[0]) > 1
    return wanted(x), out, compiled


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_gradients(name, dtype, in_stages):
    x = (np.random.default_rng(3).standard_normal(N) / 4).astype(dtype)
    eager, out, _ = both(FUNCTIONS[name], x)
    tolerance = {"rtol": 1e-10, "atol": 1e-12} if dtype == "float64" else {"rtol": 3e-4, "atol": 3e-4}
    for one, other in zip(out, eager, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, **tolerance)


@pytest.mark.parametrize("n", [65, 96, 127, 128, 129, 640, 1000])
def test_every_length_of_the_last_block(n, in_stages):
    x = np.random.default_rng(n).standard_normal(n)
    compiled = tg.compile(lambda x: (x.sum(), (x > 0).all(), (x < -9).any(), x * 2, (1 + x / 99).prod()))
    total, every, some, twice, product = compiled(tg.from_numpy(x))
    assert len(stages_of(compiled)[0]) > 1
    assert total.item() == pytest.approx(x.sum())
    assert (every.item(), some.item()) == ((x > 0).all(), (x < -9).any())
    assert product.item() == pytest.approx((1 + x / 99).prod())
    np.testing.assert_array_equal(twice.numpy(), 2 * x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_the_number_of_threads(name, in_stages):
    x = np.random.default_rng(3).standard_normal(N) / 4
    _, first, compiled = both(FUNCTIONS[name], x)
    before = tg.get_num_threads()
    try:
        for threads in (1, 2, 4):
            tg.set_num_threads(threads)
            for _ in range(3):
                for one, other in zip(compiled(x), first, strict=True):
                    assert one.tobytes() == other.tobytes()
    finally:
        tg.set_num_threads(before)


def test_the_other_branch_is_another_program(in_stages):
    x = np.random.default_rng(3).standard_normal(N)
    compiled = tg.compile(branch)
    for data in (x + 1, x - 1, x + 1):
        np.testing.assert_allclose(compiled(data), branch(tg.from_numpy(data)).item(), rtol=1e-11)
    assert len(stages_of(compiled)) == 2


def test_only_long_programs_have_stages():
    short, long = tg.compile(rosenbrock), tg.compile(chain)
    short(np.ones(100))
    long(np.ones(100_000))
    assert stages_of(short) == [()]
    (stages,) = stages_of(long)
    assert stages[0] == stages[2] == 1
    assert stages[1] > 10


def test_sums_of_many_terms_are_accurate():
    """The parts of a sum are those of blocks."""
    x = np.random.default_rng(0).random(1 << 20, dtype=np.float32)
    assert abs(tg.compile(lambda x: (x * x).sum())(x) / (x.astype(float) ** 2).sum() - 1) < 3e-6

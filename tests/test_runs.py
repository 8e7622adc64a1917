"""Runs on large arrays, block by block: the same bits as one entry after the other, and less memory."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import autograd
from tapegrad.recording import steps
from tapegrad.runtime import blocking
from tapegrad.sweep import sweep, workspace
from tests.checks import by_kernel
from tests.strategies import Program
from tests.test_programs import each_program


@pytest.fixture(autouse=True, scope="module")
def _division():
    before = blocking.division
    yield
    blocking.set_block_size(before.block)
    blocking.division = before


def in_blocks(size, work, threads=1):
    """Return what `work` returns with blocks of this size; without blocks for 0."""
    blocking.set_block_size(size)
    tg.set_num_threads(threads)
    return work()


def assert_same_bits(work, sizes=(2, 4), threads=(1, 2)):
    expected = in_blocks(0, work)
    for size in sizes:
        for count in threads:
            found = in_blocks(size, work, count)
            for own, other in zip(expected, found, strict=True):
                np.testing.assert_array_equal(own, other, err_msg=f"blocks of {size}, {count} threads")


@each_program(150)
def test_programs(program: Program):
    problem = program.problem()
    ct = problem.cotangent()
    before, workspace.SHARED_WORK = workspace.SHARED_WORK, 1
    try:
        assert_same_bits(lambda: by_kernel(problem, ct))
    finally:
        workspace.SHARED_WORK = before


def leaves_of(rng, *shapes, dtype=np.float64):
    return [tg.tensor(np.asarray(rng.random(shape) + 0.5, dtype=dtype), requires_grad=True) for shape in shapes]


def gradients(make, *shapes, dtype=np.float64, passes=1):
    """Return the gradients of `make` by leaves of these shapes, which several passes add to."""
    leaves = leaves_of(np.random.default_rng(0), *shapes, dtype=dtype)
    for _ in range(passes):
        make(*leaves).backward()
    return [leaf.grad.numpy() for leaf in leaves]


N = 50_001  # the last block is a part of one
CASES = {
    "chain": (lambda x, y: ((x * y).tanh() * x - y / x).sum(), (N,), (N,)),
    "same operand twice": (lambda x: ((x * x) * (x * x) + x).sum(), (N,)),
    "used by many": (lambda x: (lambda y: (y * x + y.sin() + y * y * x).sum())(x.exp()), (N,)),
    "number": (lambda x, s: ((x * s - s) / s + x**2).sum(), (N,), ()),
    "one element": (lambda x, s: (x * s).sum(), (N,), (1, 1)),
    "rows": (lambda x, s, b: ((x * s + b).sin() * b).mean(), (300, 100), (100,), (1, 100)),
    "rows of different lengths": (lambda x, s, b: (x * s * b).sum(), (20, 15, 40), (40,), (15, 40)),
    "columns": (lambda x, s: (x * s).sum(), (300, 100), (300, 1)),
    "transposed": (lambda x, y: ((x.T * y).exp() * y).sum(), (100, 300), (300, 100)),
    "sums on the way": (lambda x: ((x * x).sum(dim=1) ** 2).sum() + (x.exp().sum(dim=0) ** 2).sum(), (300, 100)),
    "mean of itself": (lambda x: ((x - x.sin().mean(dim=0)) ** 2 / x.mean()).sum(), (300, 100)),
    "views on the way": (lambda x: ((x * x).reshape(100, 300) * 2.0)[1:].sin().sum(), (300, 100)),
    "long": (lambda x: _many(x).sum(), (N,)),
    "add": (lambda x, y, s: (x + y + s - y).mean(), (N,), (N,), ()),
    # The cotangent of a sum's operand has the same elements in each block, until something is added.
    "after a sum": (lambda x: x.sin().sin().sin().sin().sum(), (N,)),
    "sum first": (lambda x: (lambda y: _sum((y * y).sum(), y.sum()))(x.exp()), (N,)),
    "sum last": (lambda x: (lambda y: _sum(y.sum(), (y * y).sum()))(x.exp()), (N,)),
    "sums of one": (lambda x: (lambda y: _sum((y * y).sum(), (y + 1.0).sum(), y.mean()))(x.exp()), (N,)),
    "sum of two": (lambda x, y: (x.exp() + y.exp() + x.exp()).sum(), (N,), (N,)),
    # It gets memory that an instruction before it writes to in each block.
    "sum after a sum of rows": (lambda x: x.sin().sum() + (x * x).sum(dim=1).mean(), (300, 100)),
    "sum after a product": (lambda x: x.sin().sum() + (x.exp() * x.cos()).mean(), (N,)),
}


def _sum(*values):
    """Add up values that were computed before: the sweep meets the last of them first."""
    return values[0] + _sum(*values[1:]) if len(values) > 1 else values[0]


def _many(x):
    y = x
    for _ in range(25):  # more entries than a run has
        y = (y + x).sin() * x
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("name", CASES)
def test_cases(name, dtype, monkeypatch):
    monkeypatch.setattr(workspace, "SHARED_WORK", 1)
    make, *shapes = CASES[name]

    def work():
        value = make if dtype != np.complex128 else lambda *own: tg.real(make(*own))
        return gradients(value, *shapes, dtype=dtype, passes=2)

    assert_same_bits(work, (512, 4096, blocking.MAX_BLOCK))


STEPS = (lambda v, w: v * w, lambda v, w: v + w, lambda v, w: v.sin(), lambda v, w: v * v, lambda v, w: v - v.mean())
TERMS = (
    lambda v: v.sum(),
    lambda v: v.mean(),
    lambda v: v.sum(dim=1).mean(),
    lambda v: (v.sum(dim=0) ** 2).sum(),
    lambda v: v.amax(1).sum(),
)


@pytest.mark.parametrize("seed", range(60))
def test_losses_of_random_terms(seed, monkeypatch):
    """Terms that are each reduced before the next is computed, as losses have them."""
    monkeypatch.setattr(workspace, "SHARED_WORK", 1)

    def loss(x):
        rng = np.random.default_rng(seed)
        values, terms = [x, x.detach() + 1.0], []
        for _ in range(rng.integers(2, 7)):
            v, w = (values[number] for number in rng.integers(len(values), size=2))
            values.append(STEPS[rng.integers(len(STEPS))](v, w))
            if values[-1].requires_grad and rng.random() < 0.6:
                terms.append(TERMS[rng.integers(len(TERMS))](values[-1]))
        return sum(terms[1:], terms[0]) if terms else x.sum()

    assert_same_bits(lambda: gradients(loss, (12, 10)), (8, 40))


@pytest.mark.parametrize("order", [1, -1])
def test_copies_past_the_cache_and_what_is_added_after_them(order, monkeypatch):
    monkeypatch.setattr(blocking, "_last_level", lambda: 0)
    size = (1 << 19) + 1
    x = tg.tensor(np.arange(size) / size, requires_grad=True)
    for times in (1, 2):
        parts = [x * 2.0, x + 3.0, x - 1.0][::order]
        (parts[0] * parts[1] + parts[2] * parts[0]).sum().backward()
        a, b, c = [(2.0 * x.detach().numpy(), 2.0), (x.detach().numpy() + 3.0, 1.0), (x.detach().numpy() - 1.0, 1.0)][
            ::order
        ]
        expected = a[1] * (b[0] + c[0]) + a[0] * (b[1] + c[1])
        np.testing.assert_allclose(x.grad.numpy(), times * expected, rtol=1e-12, atol=1e-14)


def test_mixed_precision():
    def work():
        rng = np.random.default_rng(0)
        (x,), (y,) = leaves_of(rng, (N,), dtype=np.float32), leaves_of(rng, (N,))
        ((x * y).exp() + x).sum().backward()
        return [x.grad.numpy(), y.grad.numpy()]

    assert_same_bits(work, (1024,))


def test_special_values_survive():
    def work():
        x = np.linspace(-2, 2, N)
        x[::1000], x[1::1000], x[2::1000] = np.nan, np.inf, 0.0
        leaf, s = tg.tensor(x, requires_grad=True), tg.tensor(2.0, requires_grad=True)
        with np.errstate(all="ignore"):
            ((leaf * s) / leaf + leaf * leaf).sum().backward()
        return [leaf.grad.numpy(), s.grad.numpy()]

    assert_same_bits(work, (4096,))


def test_captured_results_are_no_memory_for_blocks():
    (x,) = leaves_of(np.random.default_rng(0), (N,))
    blocking.set_block_size(4096)
    middle = x * 2.0
    (found,) = autograd.grad((middle.sin() * 3.0).sum(), middle)
    np.testing.assert_allclose(found.numpy(), 3 * np.cos(2 * x.detach().numpy()), rtol=1e-12)


def test_nothing_but_the_cotangent_of_a_dead_leaf():
    """The one instruction of this group writes to memory for a block, which is smaller than the array."""
    blocking.set_block_size(4096)
    leaf = tg.tensor(np.ones(workspace.THREAD_BYTES // 8 + 1), requires_grad=True)
    total = leaf.sin().sum()
    del leaf
    total.backward()
    assert gradients(lambda x: (x * 2.0).sum(), (N,))[0].sum() == 2 * N


def test_hooks_and_results_as_inputs():
    def work():
        x, y = leaves_of(np.random.default_rng(0), (N,), (N,))
        a = x * y
        b = a.sin()
        b.register_hook(lambda ct: ct * 2.0)
        c = b * x
        c.retain_grad()
        (c + a).sum().backward(retain_graph=True)
        first = [own.grad.numpy().copy() for own in (x, y, c)]
        found = autograd.grad((c + a).sum(), [a, x])
        return [*first, *(own.numpy() for own in found)]

    assert_same_bits(work, (4096,))


def chain(x):
    y = x
    for _ in range(6):
        y = (y * x).tanh()
    return y.sum()


def memory_of_a_sweep(size, monkeypatch, make=chain, shape=(200_000,)):
    """Return the bytes of large cotangents that one pass asks for, and how many records its last run had."""
    blocking.set_block_size(size)
    (x,) = leaves_of(np.random.default_rng(0), shape)
    y = make(x)
    asked = []
    original = workspace.Workspace.add_chunk
    monkeypatch.setattr(
        workspace.Workspace, "add_chunk", lambda own: (asked.append(own.state[workspace.NEED]), original(own))
    )
    sweep._idle.clear()
    y.backward()
    monkeypatch.undo()
    (idle,) = sweep._idle
    assert not idle.workspace.buffers, "they have gone back"
    return sum(asked), idle.workspace.state[workspace.N_INSTRUCTIONS]


def test_cotangents_within_a_run_need_no_memory(monkeypatch):
    tg.set_num_threads(1)
    # The class rounds a size up in a process that has met hundreds of sizes.
    number = steps.buffer_class(200_000 * 8)
    nbytes = list(steps.size_classes)[number]
    assert memory_of_a_sweep(0, monkeypatch) == (2 * nbytes, 0)
    # Six times a product for both factors at once and tanh, and the sum.
    assert memory_of_a_sweep(4096, monkeypatch) == (0, 13)


@pytest.mark.parametrize("shape", [(500,), (400, 1)])
def test_memory_to_sum_over_what_was_broadcast_is_used_again(shape, monkeypatch):
    (scale,) = leaves_of(np.random.default_rng(1), shape)

    def make(count):
        def divided(x):
            for _ in range(count):
                x = (x / scale) ** scale
            return x.sum()

        return divided

    asked = [memory_of_a_sweep(0, monkeypatch, make(count), (400, 500))[0] for count in (2, 6)]
    assert asked[0] == asked[1]


def test_small_arrays_are_no_runs():
    blocking.set_block_size(4096)
    (x,) = leaves_of(np.random.default_rng(0), (16_000,))
    sweep._idle.clear()
    chain(x).backward()
    assert sweep._idle[0].workspace.state[workspace.N_INSTRUCTIONS] == 0


def _with_sums(x, y, see):
    """Return a loss in which cotangents go unchanged to operands that nothing, or something else, needs too."""
    a, b = see(x * y), see(tg.sin(x))
    c = see(a + b)  # whose cotangent may go to one of them
    d = see(c + c)
    e = see((d - a).reshape(-1) + 1.0)
    f = see(e - see(b * 2.0).reshape(-1))
    g = see(f + see(f + y[0].sum()))
    return (g * see(see(g + 0.5) + see(f.reshape(1, -1) - 0.25).reshape(-1))).sum() + c.sum()


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (16, 12)])
def test_cotangents_pass_on_only_where_nobody_else_needs_them(shape):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(2, *shape))

    def gradients(see, again=1):
        x, y = (tg.tensor(own.copy(), requires_grad=True) for own in start)
        loss = _with_sums(x, y.reshape(1) if not shape else y, see)
        for turn in range(again):
            loss.backward(retain_graph=turn + 1 < again)
        return x.grad.numpy() / again, y.grad.numpy() / again

    def plain(own):
        return own

    def hooked(own):  # a hook gets a copy
        own.register_hook(lambda ct: None)
        return own

    def retained(own):
        own.retain_grad()
        return own

    def work():
        return [own for see in (plain, hooked, retained) for own in gradients(see)] + list(gradients(plain, 2))

    found = in_blocks(0, work)
    for place, own in enumerate(found[:6]):
        np.testing.assert_array_equal(own, found[2 + place % 2])
    for own, once in zip(found[6:], found, strict=False):
        np.testing.assert_allclose(own, once, rtol=1e-14)  # each term was added to the sum of the first turn
    assert_same_bits(work)


@pytest.mark.parametrize(("last_level", "least"), [(0, 1 << 22), (32 << 20, 1 << 22), (480 << 20, 30 << 20)])
def test_arrays_are_written_past_the_cache_if_few_fit_into_it(last_level, least, monkeypatch):
    monkeypatch.setattr(blocking, "_last_level", lambda: last_level)
    assert blocking.is_streamed(least)
    assert not blocking.is_streamed(least - 1)

"""Nests of loops: along which axis vectors lie, how many lanes stand in memory at once, and what is left to stages."""

from __future__ import annotations

import itertools
import re
import threading
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.compiler import ahead
from tapegrad.program import apart, fuse
from tapegrad.program.fuse import nest_emit
from tapegrad.program.fuse.module import Module
from tapegrad.program.fuse.text import Text
from tapegrad.program.loops.driver import linked
from tapegrad.program.machine_code import SYMBOL
from tests.tiers import mostly_full

RNG = np.random.default_rng(11)


def network(p: Any, x: Any) -> Any:
    return tg.tanh(tg.tanh(x @ p[0] + p[1]) @ p[2] + p[3]) @ p[4] + p[5]


def parameters(*sizes: int) -> list[np.ndarray]:
    return [own for a, b in itertools.pairwise(sizes) for own in (RNG.normal(size=(a, b)) / a**0.5, RNG.normal(size=b))]


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-11)


def test_few_lanes_at_once_if_much_stands_between_nests() -> None:
    p, x = parameters(4, 16, 16, 1), RNG.normal(size=(100, 4))

    def hessian(x: Any) -> Any:
        return func.hessian(lambda x: network(p, x).sum())(x)

    compiled = tg.compile(func.vmap(hessian))
    assert_close(compiled(x), [hessian(own) for own in x])
    (nbytes,) = re.findall(r"(\d+) bytes of scratch", compiled.explain())
    assert int(nbytes) < 1 << 16  # all 100 lanes would take 300,000


def test_items_with_much_between_nests_go_one_by_one() -> None:
    def misfit(p: Any, x: Any, y: Any) -> Any:
        return ((network(p, x[:, None])[:, 0] - y) ** 2).mean()

    def task(p: Any, x: Any, y: Any) -> Any:
        steps = func.grad(misfit)(p, x[:10], y[:10])
        return misfit([own - 0.05 * step for own, step in zip(p, steps, strict=True)], x[10:], y[10:])

    def loss(p: Any, x: Any, y: Any) -> Any:
        return func.vmap(lambda x, y: task(p, x, y))(x, y).mean()

    p, x, y = parameters(1, 48, 48, 1), RNG.normal(size=(25, 20)), RNG.normal(size=(25, 20))
    compiled = tg.compile(func.grad(loss))
    expected = func.grad(lambda p: sum(task(p, own, other) for own, other in zip(x, y, strict=True)) / 25)(p)
    for own, other in zip(compiled(p, x, y), expected, strict=True):
        assert_close(own, other)
    assert "vmap is called: 25 items have too many nests of loops" in compiled.explain()


def test_python_looks_at_what_a_batch_computes_in_a_trace() -> None:
    def f(x: Any) -> Any:
        y, z = func.vmap(lambda x: (tg.tanh(x @ x) * x, np.exp(x)))(x)
        return y * 2 if y.sum() > 0 else z - y

    compiled = tg.compile(f)
    for x in (RNG.uniform(1, 2, (5, 3)), -RNG.uniform(1, 2, (5, 3)), RNG.uniform(2, 3, (5, 3))):
        assert_close(compiled(x), f(x))


SHAPES = ((1000, 130), (130, 1000), (70, 90, 16), (90, 40, 30), (5000, 20), (20, 5000))


@pytest.mark.parametrize("number", mostly_full(range(len(SHAPES)), [0, 2]))
def test_large_arrays_reduced_along_each_dimension(number: int) -> None:
    def f(x: Any) -> Any:
        centred = x - x.mean(0)
        return (tg.softmax(centred, -1) * centred / (1 + x.std(-1, keepdim=True))).pow(2).sum()

    x = RNG.normal(size=SHAPES[number])
    value, slope = tg.compile(func.value_and_grad(f))(x)
    expected, right = func.value_and_grad(f)(x)
    assert_close(value, expected)
    assert_close(slope, right)


def test_lanes_are_neighbours_in_memory() -> None:
    compiled = tg.compile(func.grad(lambda x: tg.log(((x - x.mean(0)) ** 2).mean(0)).sum()))
    compiled(RNG.normal(size=(900, 800)))
    assert "out0[800 * j + i]" in compiled.source()


def test_lanes_are_neighbours_in_memory_though_all_elements_are_added_up() -> None:
    compiled = tg.compile(func.value_and_grad(lambda x, b: tg.tanh(x + b).sum(), argnums=(0, 1)))
    compiled(RNG.normal(size=(16, 64, 64)), RNG.normal(size=64))
    assert "4096 * k + 64 * j + i" in compiled.source()
    assert "64 * i" not in compiled.source()


@pytest.mark.parametrize("shape", [(70, 100), (20, 30, 40)])
def test_what_several_stages_need_of_a_function_is_computed_once(shape: tuple[int, ...]) -> None:
    f = func.value_and_grad(lambda x: (tg.softmax(x * x, -1) ** 2).sum())
    compiled, x = tg.compile(f), RNG.normal(size=shape)
    for own, other in zip(compiled(x), f(x), strict=True):
        assert_close(own, other)
    assert compiled.source().count("exp(") == 1


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_of_nan_and_zeros(name: str) -> None:
    rows = RNG.choice(
        [-0.0, 0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], size=(200, 90), p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.09, 0.01]
    )
    rows[:50] = np.where(np.isnan(rows[:50]), 0.0, rows[:50])
    for dim in (0, 1):
        found = np.asarray(tg.compile(lambda x, dim=dim: getattr(tg, name)(x * 1.0, dim))(rows))
        np.testing.assert_array_equal(found, getattr(rows, name[1:])(dim))


@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("shape", [(300, 5), (5, 300), (130, 140), (4, 3)])
def test_losses_of_classes_that_are_known_are_fused(loss: str, shape: tuple[int, int]) -> None:
    target = tg.tensor(RNG.integers(shape[1], size=shape[0]))

    def f(x: Any) -> Any:
        return getattr(tg.nn.functional, loss)(x * x, target)

    x = RNG.normal(size=shape)
    for plain in (f, func.grad(f)):
        compiled = tg.compile(plain)
        assert_close(compiled(x), plain(x))
        assert "called" not in compiled.explain()


def test_sums_are_not_computed_again_along_other_axes() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            apart = x[:, None] - x
            x = x + (apart / (1 + (apart * apart).sum(-1))[:, :, None]).sum(1)
        return (x * x).sum()

    x = RNG.normal(size=(80, 3))
    compiled = tg.compile(func.value_and_grad(f))
    (value, slope), (expected, right) = compiled(x), func.value_and_grad(f)(x)
    assert_close(value, expected)
    assert_close(slope, right)
    assert "bytes between the stages" in compiled.explain()


def test_long_convolutions_are_not_unrolled() -> None:
    def f(x: Any, w: Any) -> Any:
        return tg.relu(tg.nn.functional.conv2d(x, w, padding=1)).pow(2).mean()

    x, w = RNG.normal(size=(4, 3, 20, 20)), RNG.normal(size=(5, 3, 3, 3))
    compiled = tg.compile(func.value_and_grad(f, argnums=(0, 1)))
    (value, slopes), (expected, right) = compiled(x, w), func.value_and_grad(f, argnums=(0, 1))(x, w)
    assert_close(value, expected)
    for own, other in zip(slopes, right, strict=True):
        assert_close(own, other)
    for name in ("conv2d", "conv2d_transposed", "conv2d_kernels"):
        assert f"{name} is called" in compiled.explain()


def test_slices_of_images_are_copied_by_machine_code_and_not_unrolled() -> None:
    def f(u: Any) -> Any:
        inside = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * u[1:-1, 1:-1]
        return (inside * inside).sum()

    u = RNG.normal(size=(90, 100))
    compiled = tg.compile(func.value_and_grad(f))
    (value, slope), (expected, right) = compiled(u), func.value_and_grad(f)(u)
    assert_close(value, expected)
    assert_close(slope, right)
    assert "called" not in compiled.explain()
    assert len(compiled.source()) < 20_000  # 8624 scalars a slice were 200,000 lines of code, for which LLVM took 100 s


def test_programs_without_operations_return_large_constants() -> None:
    whole = RNG.normal(size=(100, 90))
    compiled = tg.compile(lambda x: (tg.tensor(whole), x.sum(), tg.zeros(100, 100)))
    found = compiled(np.ones((2, 3)))
    assert_close(found[0], whole)
    assert_close(found[2], np.zeros((100, 100)))
    assert_close(tg.compile(lambda x: tg.zeros(100, 100))(np.ones((300, 300))), np.zeros((100, 100)))


def test_rows_of_many_operations_are_loops_and_no_straight_code() -> None:
    """Forty rows in 60 operations took 28 s to compile."""

    def f(x: Any) -> Any:
        for _ in range(3):
            x = tg.softmax(x - x.mean(0, keepdim=True), 0) * tg.tanh(x)
        return (x * x).mean()

    compiled, x = tg.compile(func.grad(f)), RNG.normal(size=(40, 100))
    assert_close(compiled(x), func.grad(f)(x))
    assert "a nest of 40 x 100" in compiled.explain()


@pytest.mark.parametrize("count", mostly_full((16, 50, 100), 2))
def test_diagonals_from_elsewhere_are_chosen_by_their_positions(count: int) -> None:
    matrix, weights = RNG.normal(size=(2, count, count))

    def value_and_grad(x: Any) -> Any:
        def written(x: Any) -> Any:
            y = (x * x).clone()
            y.diagonal().copy_(x.sin().sum(0))
            z = x.exp().clone()
            z.diagonal().zero_()
            return ((y - z) * weights).sum()

        return func.value_and_grad(written)(x)

    compiled = tg.compile(value_and_grad)
    assert_close_all(compiled(tg.tensor(matrix)), value_and_grad(tg.tensor(matrix)))
    assert "stop" not in compiled.explain()


def assert_close_all(found: Any, expected: Any) -> None:
    for one, two in zip(found, expected, strict=True):
        assert_close(one, two)


def test_what_is_written_twice_in_a_block_is_one_instruction() -> None:
    text = Text()
    address = text.op("mul i64 %at, 10")
    assert text.op("mul i64 %at, 10") == address
    assert text.op("load double, ptr %x, align 8") != text.op("load double, ptr %x, align 8")
    text.start("next")
    assert text.op("mul i64 %at, 10") != address


def test_long_nests_are_several_functions_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points, means, roots = rng.normal(size=(40, 5)), rng.normal(size=(6, 5)), rng.normal(size=(6, 5, 5))

    def function(means: Any, roots: Any) -> Any:
        centred = points[:, None, :] - means
        z = tg.einsum("kij,nkj->nki", tg.tril(roots), centred)
        return tg.logsumexp(-0.5 * (z * z).sum(-1) + means.sum(-1), 1).sum() + tg.exp(means).sum()

    def called() -> Any:
        return tg.compile(tg.func.value_and_grad(function, argnums=(0, 1)))(tg.tensor(means), tg.tensor(roots))

    expected, modules = called(), list[Any]()
    module_of = fuse.module_of
    monkeypatch.setattr(nest_emit, "_PIECE", 40)
    monkeypatch.setattr(apart, "LONG", 100)
    monkeypatch.setattr(fuse, "module_of", lambda *args: modules.append(module_of(*args)) or modules[-1])
    for n_threads in (0, 1):
        monkeypatch.setattr(ahead, "_turns", [threading.RLock() for _ in range(n_threads)])
        value, grads = called()
        for own, other in zip((value, *grads), (expected[0], *expected[1]), strict=True):
            np.testing.assert_array_equal(own.numpy(), other.numpy())
    assert max(len(own.pieces) for own in modules) > 2


def test_pieces_of_a_stage_are_called_by_their_names() -> None:
    """LLVM drops what it takes for its own number behind a name: a function called itself, without end."""
    count, arguments = 4, "ptr %inputs, ptr %outputs, ptr %scratch"
    pieces = [f"define internal void @fused{k}(ptr noalias %in0) nounwind {{\n  ret void\n}}" for k in range(count)]
    calls = [f"  call void @fused{k}(ptr %inputs)" for k in range(count)]
    main = "\n".join([f"define void @{SYMBOL}({arguments}) {{", *calls, "  ret void", "}"])
    code = fuse.Fused(Module("", tuple(pieces), main), 0, str, [])
    name = apart.name_of(code)
    stage = f"void @{name}({arguments})"
    driver = f"declare void @{name}(ptr, ptr, ptr)\ndefine void @{SYMBOL}({arguments}) {{\n  call {stage}\n"
    driver += "  ret void\n}"
    names = [apart.piece_of(name, k) for k in range(count)]
    text = linked(driver, [code], names)
    assert [text.count(f"call void @{own}(ptr %inputs)") for own in names] == [1] * count

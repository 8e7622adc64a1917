"""What fused code does otherwise than it is written: reciprocals, shares of sums, what is kept between loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.compiler import cpu
from tapegrad.program.fuse import fuse, straight
from tapegrad.program.fuse.packs import pack
from tapegrad.program.trace import trace
from tests.test_fuse import call
from tests.tiers import mostly_full

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -3, 5e-324, -3e-310, 1.7e308, 1e-300, 2.0**-1022])


def quotients(kind: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    if kind == "special":
        return [rng.choice(SPECIAL, 20_000) for _ in range(3)]
    if kind == "ones":  # the divisor whose reciprocal is hardest to round
        return [*rng.uniform(1, 2, (2, 20_000)), np.full(20_000, np.nextafter(2.0, 0.0))]
    return [rng.uniform(1, 2, 20_000) * np.exp2(rng.integers(-900, 900, 20_000)) for _ in range(3)]


@pytest.mark.parametrize("quickly", [False, True])  # whether the CPU divides so quickly that no reciprocal pays
@pytest.mark.parametrize("kind", ["special", "ones", "all sizes"])
def test_quotients_by_one_number_are_rounded_as_by_numpy(
    kind: str, quickly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "divides_quickly", lambda: quickly)
    x, y, divisor = quotients(kind)

    def divided(x: Any, y: Any, divisor: Any) -> Any:
        return x / divisor, y / divisor, x * (2.0 + quickly)  # the number, as machine code is kept for each program

    with np.errstate(all="ignore"):
        found = tg.compile(divided)(x, y, divisor)
        for own, right in zip(found, divided(x, y, divisor), strict=True):
            np.testing.assert_array_equal(own.view("i8")[right == right], right.view("i8")[right == right])
            assert np.isnan(own[right != right]).all()


def test_quotients_by_a_scalar_are_rounded_as_by_numpy() -> None:
    x = np.random.default_rng(0).normal(size=1003)
    divide = tg.compile(lambda x: x / x[0])
    for scale in (1.0, 1e-310, 1e308):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(divide(x * scale), x * scale / (x[0] * scale))


def by_hand(x: Any) -> Any:
    powers = tg.exp(x - x.max())
    return powers / powers.sum()


SOFTMAX: dict[str, Callable[..., Any]] = {
    "by hand": by_hand,
    "softmax": lambda x: tg.softmax(x, 0),
    "logsumexp": tg.func.grad(lambda x: tg.logsumexp(x, 0)),
    "log_softmax": lambda x: tg.exp(tg.log_softmax(x, 0)),
}


@pytest.mark.parametrize("size", [100, 1001, 70_000])
@pytest.mark.parametrize("name", SOFTMAX)
def test_an_exponential_is_computed_once_and_kept_until_its_sum_is_known(name: str, size: int) -> None:
    x = 3 * np.random.default_rng(1).normal(size=size)
    f = tg.compile(SOFTMAX[name])
    found = f(x)
    expected = np.exp(x - x.max())
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=2e-15)
    assert f.source().count("exp(") == 1, f.source()


@pytest.mark.parametrize("size", [5, 300])
def test_shares_of_sums_of_nothing_and_of_infinities(size: int) -> None:
    slope = tg.func.grad(lambda x: tg.logsumexp(x, 0))
    x = np.random.default_rng(1).normal(size=size)
    points = [np.full(size, -np.inf), np.where(x > 0, x, -np.inf), x + 700, x - 800, np.where(x == x[1], np.nan, x)]
    f = tg.compile(slope)
    for point in points:
        np.testing.assert_allclose(f(point), slope(tg.tensor(point)).numpy(), rtol=1e-12)


def test_what_is_kept_is_of_the_same_range_and_dtype() -> None:
    def f(x: Any) -> Any:  # the exponential of all but the last is needed twice, and no output is of that length
        powers = tg.exp(x[:-1])
        return powers / powers.sum(), tg.sin(x), (powers * x[1:]).to(tg.float32) / powers.sum()

    x = np.random.default_rng(1).normal(size=501)
    powers = np.exp(x[:-1])
    first, second, third = tg.compile(lambda x: tuple(f(x)))(x)
    np.testing.assert_allclose(first, powers / powers.sum(), rtol=1e-14)
    np.testing.assert_allclose(second, np.sin(x), rtol=1e-15)
    np.testing.assert_allclose(third, powers * x[1:] / powers.sum(), rtol=1e-6)


def filtered(x: Any, P: Any, move: Any) -> Any:
    P = move @ P @ move.T + 0.5
    gain = P[:, :2] @ tg.linalg.inv(P[:2, :2])
    return x + gain @ (x[:2] - x[2:]), P - gain @ P[:2]


#: Functions of (4,), (4, 4), (4, 4) that are straight code.
STRAIGHT: dict[str, Callable[..., Any]] = {
    "products": lambda x, P, move: P @ move @ move.T,
    "functions": lambda x, P, move: (tg.sin(P) / move, tg.where(move < P, tg.exp(x), P), -tg.sqrt(abs(P))),
    "moved": lambda x, P, move: (P.T + move[::-1], x[[3, 1, 2, 0]] * P, tg.cat((x, x[1:], P[0])) * 2.0),
    "constants": lambda x, P, move: (P * np.eye(4) + 1.0, tg.cat((x * 0.0 + 1.0, tg.zeros(5))), P / 3.0),
    "truth": lambda x, P, move: (move < P, (P > 0) & (move > 0), x == P),
    "filter": filtered,
    "slopes": tg.func.grad(lambda x, P, move: sum(own.sum() for own in filtered(x, P, move)), (0, 1, 2)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", STRAIGHT)
def test_packs_change_no_bit(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    root, move = rng.normal(size=(2, 4, 4))
    arrays = [own.astype(dtype) for own in (rng.normal(size=4), root @ root.T, move)]
    packed = tg.compile(lambda *own: STRAIGHT[name](*own))
    first = packed(*arrays)
    found: list[int] = []
    monkeypatch.setattr(straight, "pack", lambda *own: found.append(len(pack(*own))) or {})
    second = tg.compile(lambda *own: STRAIGHT[name](*own))(*arrays)
    assert found[-1] > 0, "there are packs"
    for one, two in zip(*(own if isinstance(own, tuple) else (own,) for own in (first, second)), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("has_packs", [True, False])
def test_long_straight_code_has_blocks(has_packs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's code generator takes time by the square of a block's length; the results are the same bits."""
    from tapegrad.program.fuse import text

    if not has_packs:
        monkeypatch.setattr(straight, "pack", lambda *own: {})

    def function(w: Any, C: Any) -> Any:
        x = tg.softmax(w, 0)
        return x.sum() / tg.sqrt(x @ (C @ x))

    arrays = [np.linspace(-1, 1, 30), np.eye(30) + 0.1]
    program, _ = trace(func.value_and_grad(function), arrays)
    fused = fuse(program)
    blocks = fused.ir.count("load volatile i8, ptr @going")
    assert blocks == fused.ir.count("call void @llvm.trap()") > 0
    found = call(program, fused, arrays)
    monkeypatch.setattr(text, "_BLOCK", 10**9)
    whole = fuse(program)
    assert "@going" not in whole.ir
    for one, two in zip(found, call(program, whole, arrays), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("size", [1000, 8000, 17_001, 70_001])
def test_sums_of_float32_of_several_lengths(size: int) -> None:
    """A loop ends where the shortest sum ends, and another one goes on with the others."""
    x = np.random.default_rng(0).random(size, np.float32)
    parts = x, x[::2], x[1::3], x[size // 5 :], x[: size // 7]
    found = tg.compile(lambda x: (x.sum(), x[::2].sum(), x[1::3].sum(), x[size // 5 :].sum(), x[: size // 7].sum()))(x)
    np.testing.assert_allclose(found, [part.sum(dtype=np.float64) for part in parts], rtol=1e-6)


@pytest.mark.parametrize("size", [1000, 70_001, 1_000_000])
@pytest.mark.parametrize("wide", [1, 5])
def test_sums_of_float32_keep_their_digits(size: int, wide: int) -> None:
    x = np.full((size, wide), 0.1, np.float32)
    w = np.ones((wide, 33), np.float32)
    first, second, third = tg.compile(lambda x, w: (x.mean(), x.sum(0), (x @ w).sum(0)))(x, w)
    exact = float(np.float32(0.1))
    assert first.dtype == second.dtype == np.float32
    for found, right in ((first, exact), (second, exact * size), (third, exact * wide * size)):
        np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize("dtype", mostly_full(["float64", "float32"], ["float64"]))
def test_widths_change_no_bit(dtype: str) -> None:
    def f(X: Any, W: Any) -> list[Any]:
        hidden = tg.tanh(X @ W)
        return [hidden.sum(0), (hidden * hidden).sum(), tg.amax(tg.exp(hidden), 1)]

    rng = np.random.default_rng(4)
    for shape in ((77, 6, 40), (3, 900, 20)):
        arrays = [rng.normal(size=own).astype(dtype) for own in (shape[:2], shape[1:])]
        program, _ = trace(f, arrays)
        texts = [fuse(program, width=width) for width in (None, 1, 4, 8)]
        results = [call(program, own, arrays) for own in texts]
        for other in results[1:]:
            for one, two in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n", [2, 9, 100])
@pytest.mark.parametrize(
    "ends", [(np.inf, 800.0), (np.nan, 1.0), (-np.inf, -np.inf), (np.inf, -np.inf), (np.inf, np.inf), (-np.inf, 3.0)]
)
def test_slopes_of_logsumexp_at_infinities(ends: tuple[float, float], n: int) -> None:
    x = np.ones(n)
    x[:2] = ends
    compiled = tg.compile(func.grad(lambda x: tg.logsumexp(x, 0)))
    compiled(np.ones(n))
    leaf = tg.tensor(x, requires_grad=True)
    tg.logsumexp(leaf, 0).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(compiled(x), leaf.grad.numpy(), rtol=1e-12)


SPECIAL = np.array([1.23456, -2.5, np.nan, np.inf, -np.inf, 0.5, 1.5, 1e30, -0.0, 123456.789] * 4)
REPLACING: dict[str, Any] = {
    "nan_to_num": lambda x: tg.nan_to_num(x) * 1.0,
    "nan_to_num, given": lambda x: tg.nan_to_num(x, 3.0, 1.0, -1.0) + x * 0.0,
    "round": lambda x: tg.round(x) + 0.0,
    "round, digits": lambda x: tg.round(x, decimals=2) * 1.0,
    "round, tens": lambda x: tg.round(x, decimals=-1) * 1.0,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REPLACING)
def test_replaced_elements(name: str, dtype: Any) -> None:
    x = SPECIAL.astype(dtype)
    compiled = tg.compile(REPLACING[name])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x), REPLACING[name](tg.tensor(x)).numpy())
    assert "called" not in compiled.explain()


def test_straight_code_of_many_formulas_calls_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each call would be a copy of the formula, LLVM takes seconds for thousands of them."""
    from tapegrad.program.fuse import module

    rng = np.random.default_rng(0)
    order, pairs = rng.integers(0, 3, 300), rng.integers(0, 8, (300, 2))

    def function(x: Any) -> Any:
        values = [x[k] for k in range(8)]
        for kind, (i, j) in zip(order, pairs, strict=True):
            a, b = values[i], values[j]
            values[i] = tg.sin(a + 0.3 * b) if kind == 0 else tg.tanh(a * b) if kind == 1 else a - 0.5 * b
        return tg.stack(values)

    x = np.linspace(0.1, 1.0, 8)
    expected = tg.compile(function)(x)
    monkeypatch.setattr(module, "_MOST_INLINED", 50)
    compiled = tg.compile(lambda x: function(x) * 1.0)
    np.testing.assert_array_equal(compiled(x), expected)  # the same bits
    np.testing.assert_allclose(expected, function(tg.tensor(x)), rtol=1e-12)


@pytest.mark.parametrize("size", [7, 1003, 150_000])
def test_a_condition_of_all_elements_chooses_between_two_loops(size: int) -> None:
    def chosen(flag: Any, x: Any, y: Any) -> Any:
        return tg.where(flag > 0, tg.exp(x) * flag, 3.0 * y), tg.where(flag > 0, x, flag * 2.0)

    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, size))
    compiled = tg.compile(chosen)
    for flag in (1.0, -1.0):
        for own, right in zip(compiled(np.array(flag), x, y), chosen(tg.tensor(flag), x, y), strict=True):
            np.testing.assert_array_equal(own, right.numpy())


def test_a_slope_of_logsumexp_reads_its_numbers_only_if_they_are_infinite() -> None:
    program, _ = trace(lambda x: (func.grad(lambda x: tg.logsumexp(x, 0))(x),), [np.ones(1024)])
    assert fuse(program).ir.count("phi i64") == 4  # the maximum, the sum, and two loops of which one reads powers alone

"""Fused programs against eager: each op's samples with gradients, forced widths and lengths around them, nests."""

from __future__ import annotations

import ctypes
import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tapegrad as tg
from tapegrad import autograd, func
from tapegrad.ops.table.op import Op, Sample, op_table
from tapegrad.program.fuse import Fused, Refused, fuse
from tapegrad.program.fuse.moves import courses
from tapegrad.program.program import Program
from tapegrad.program.trace import TracingError, trace
from tapegrad.testing.operands import operands_of
from tests.strategies import Program as RandomProgram
from tests.strategies import programs
from tests.tiers import mostly_full

# A correct result may differ from the eager one by the order of sums, and by 2 ulp for each function.
ULPS = 60


def call(program: Program, fused: Fused, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run machine code on arrays, with guards of known bytes around what it writes."""
    numbers = (*program.outputs, *[guard.value for guard in program.guards])
    layouts = [program.layouts[number] for number in numbers]
    memory = [np.full(64 + int(np.prod(own.shape)) * own.dtype.itemsize + 64, 0xA5, np.uint8) for own in layouts]
    scratch = np.empty(fused.scratch_bytes + 64, np.uint8)
    table = ctypes.c_void_p * max(1, len(arrays), len(memory))
    given = [np.ascontiguousarray(own) for own in arrays]
    inputs = table(*[own.ctypes.data for own in given])
    outputs = table(*[own.ctypes.data + 64 for own in memory])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(fused.address())
    function(ctypes.addressof(inputs), ctypes.addressof(outputs), (scratch.ctypes.data + 63) // 64 * 64)
    for own in memory:
        assert (own[:64] == 0xA5).all(), "it writes before its outputs"
        assert (own[-64:] == 0xA5).all(), "it writes behind its outputs"
    results = [
        own[64:-64].view(layout.dtype).reshape(layout.shape) for own, layout in zip(memory, layouts, strict=True)
    ]
    for guard, value in zip(program.guards, results[len(program.outputs) :], strict=True):
        np.testing.assert_allclose(value, guard.outcome)
    return results[: len(program.outputs)]


def eager(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(own.detach().numpy()) for own in function(*[tg.tensor(own) for own in arrays])]


def assert_near(
    actual: Sequence[np.ndarray], expected: Sequence[np.ndarray], ulps: float = ULPS, least: float = 0.0
) -> None:
    assert len(actual) == len(expected)
    for one, two in zip(actual, expected, strict=True):
        assert one.shape == two.shape
        assert one.dtype == two.dtype
        if two.dtype.kind != "f":
            np.testing.assert_array_equal(one, two)
            continue
        finite = np.abs(two[np.isfinite(two)])
        eps = ulps * np.finfo(two.dtype).eps
        np.testing.assert_allclose(one, two, rtol=eps, atol=eps * float(finite.max(initial=least)), equal_nan=True)


def value_and_gradient(
    op: Op, sample: Sample, operands: Sequence[Any]
) -> tuple[Callable[..., list[tg.Tensor]], list[np.ndarray]]:
    """Return the function of the floating operands that computes the value and the gradient, and these operands."""
    which = [
        k
        for k, own in enumerate(operands)
        if isinstance(own, float) or getattr(own, "dtype", np.dtype(int)).kind in "fc"
    ]

    def function(*tensors: tg.Tensor) -> list[tg.Tensor]:
        full, leaves = list(operands), []
        for k, own in zip(which, tensors, strict=True):
            full[k] = own.detach().requires_grad_()
            leaves.append(full[k])
        out = op.called(full, sample.attrs)
        results = [out]
        if leaves and out.requires_grad:
            weights = np.linspace(0.5, 1.5, out.numel()).reshape(out.shape).astype(out.dtype)
            loss = (out * tg.tensor(weights)).sum()
            found = autograd.grad(loss.real if loss.is_complex() else loss, leaves, allow_unused=True)
            results += [own for own in found if own is not None]
        return [own.detach() for own in results]

    return function, [np.array(operands[k]) for k in which]


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 5))
def test_samples(name: str, record_property: Callable[..., None]) -> None:
    """Each op's samples, with gradient, are fused or refused with a reason."""
    op = op_table[name]
    fused_count, reasons = 0, set()
    for sample in op.samples:
        for dtype in (np.float64, np.float32):
            operands = operands_of(op, sample, dtype, np.random.default_rng(5))
            function, arrays = value_and_gradient(op, sample, operands)
            try:
                program, _ = trace(function, arrays)
            except (TracingError, RuntimeError, ValueError, TypeError, NotImplementedError) as error:
                reasons.add(f"trace: {error}")
                continue
            try:
                code = fuse(program)
            except Refused as error:
                reasons.add(str(error))
                continue
            with np.errstate(all="ignore"):
                assert_near(call(program, code, arrays), eager(function, arrays))
            fused_count += 1
    for reason in reasons:  # sentences, without the errors that forwards raise
        assert reason.startswith("trace: ") or re.fullmatch(r"(\w+: )?(?!.*Error)\w[\w' .,\[\]()]+", reason)
    record_property("fused", fused_count)
    record_property("refused", "; ".join(sorted(reasons)))
    if not fused_count:
        pytest.skip("; ".join(sorted(reasons))[:200])


def of_value_and_gradient(function: Callable[..., Any]) -> Callable[..., list[tg.Tensor]]:
    def both(*args: tg.Tensor) -> list[tg.Tensor]:
        gradients, value = func.grad_and_value(function, argnums=tuple(range(len(args))))(*args)
        return [value, *gradients]

    return both


def rosenbrock(x: tg.Tensor) -> tg.Tensor:
    a, b = x[1:], x[:-1]
    return (100.0 * (a - b * b) ** 2 + (1 - b) ** 2).sum()


def logistic(w: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
    z = x @ w
    return (tg.log1p(tg.exp(-abs(z))) + tg.maximum(z, tg.zeros_like(z))).sum() + 0.5 * (w * w).sum()


def softmax_twice(x: tg.Tensor) -> tg.Tensor:
    return (tg.softmax(tg.sin(x), 0) * x).sum() + tg.logsumexp(x, 0)


def joined(x: tg.Tensor) -> tg.Tensor:
    y = tg.cat([x[2:], x[:2], -x])
    return (y * y.flip(0)).sum()


LENGTHS = (0, 1, 2, 7, 8, 9, 31, 32, 33, 65, 66, 72, 96, 97, 127, 128, 129, 1000)


@pytest.mark.parametrize("width", mostly_full([None, 1, 2, 8, 32], [None]))
def test_widths_and_lengths(width: int | None) -> None:
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        if width and 8 * width + 1 < length < 1000:  # two turns of a loop of four vectors, and one element more
            continue
        for function in (rosenbrock, joined) if length > 1 else (rosenbrock,) if length else ():
            check(of_value_and_gradient(function), [rng.normal(size=length)], width)
        check(of_value_and_gradient(logistic), [rng.normal(size=3), rng.normal(size=(length, 3))], width)
        check(lambda x: [tg.sin(x) * 2 > 1, x.sum(), tg.exp(x).astype("float32")], [rng.normal(size=length)], width)
        if length:
            check(of_value_and_gradient(softmax_twice), [rng.normal(size=length).astype(np.float32)], width)


def check(function: Callable[..., Any], arrays: Sequence[np.ndarray], width: int | None = None) -> None:
    program, _ = trace(function, arrays)
    assert_near(call(program, fuse(program, width=width), arrays), eager(function, arrays), 200)


def test_same_bits_for_all_widths_and_addresses() -> None:
    """Partial results belong to elements, not to vectors; no loop begins at an aligned address."""
    x = np.random.default_rng(1).normal(size=1003)
    program, _ = trace(of_value_and_gradient(rosenbrock), [x])
    results = [call(program, fuse(program, width=width), [x]) for width in (None, 1, 2, 4, 8)]
    shifted = np.empty(1100)
    for start in (1, 2, 3, 5):
        shifted[start : start + 1003] = x
        results.append(call(program, fuse(program), [shifted[start : start + 1003]]))
    for own in results[1:]:
        for one, two in zip(own, results[0], strict=True):
            assert one.tobytes() == two.tobytes()


def test_nan_and_inf_survive() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324] * 20)
    for function in (
        lambda x: [x * 0.0, x - x, tg.log(x), tg.exp(x), x / x, tg.sqrt(x)],
        lambda x: [tg.amax(x), x.sum(), tg.maximum(x, -x), tg.where(x > 0, x, 1.0), -x],
    ):
        with np.errstate(all="ignore"):
            check(function, [values])


def test_quotients_by_known_numbers() -> None:
    """They are products, and rounded as quotients are."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=100_000) * 10.0 ** rng.integers(-100, 100, 100_000)
    x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    divisors = [
        2**0.5,
        3.0,
        5.0,
        7.0,
        10.0,
        25.0,
        0.1,
        -1.7,
        128.0,
        1000.0,
        math.pi,
        1e-5,
        *rng.normal(size=20).tolist(),
    ]
    for start in range(0, len(divisors), 8):
        part = divisors[start : start + 8]
        program, _ = trace(lambda x, part=part: [x / own for own in part], [x])
        for own, result in zip(part, call(program, fuse(program), [x]), strict=True):
            assert result.tobytes() == (x / own).tobytes(), own


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 8, 9, 12, 16, 17])
def test_rows_of_structs(columns: int, dtype: str) -> None:
    """Columns of an array of rows are loaded and stored by transposition."""

    def function(x: tg.Tensor) -> list[tg.Tensor]:
        parts = [x[:, k] * (k + 1.0) for k in range(columns)]
        return [tg.stack(parts[::-1], 1), sum(parts[1:], parts[0])]

    for length in (65, 72, 200):
        check(function, [np.random.default_rng(2).normal(size=(length, columns)).astype(dtype)])


def network(x: tg.Tensor, w: tg.Tensor, b: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
    h = tg.tanh(x @ w + b)
    return ((tg.tanh(h @ w.T @ w) @ v) ** 2).mean()


def mixture(x: tg.Tensor, alpha: tg.Tensor, mu: tg.Tensor, factor: tg.Tensor) -> tg.Tensor:
    z = tg.einsum("kij,nkj->nki", factor, x[:, None, :] - mu[None])
    logs = alpha - 0.5 * (z * z).sum(-1) + tg.log(tg.diagonal(factor, 0, -2, -1)).sum(-1)
    return tg.logsumexp(logs, 1).sum()


def classes(w: tg.Tensor, x: tg.Tensor, which: np.ndarray) -> tg.Tensor:
    return tg.nn.functional.cross_entropy(x @ w, which)


@pytest.mark.parametrize("width", mostly_full([None, 1, 16], [None]))
@pytest.mark.parametrize("length", mostly_full([65, 128, 600], [128]))
def test_nests(length: int, width: int | None) -> None:
    """Programs of several axes: what is reduced along lanes and what inside, chunks that are not whole."""
    rng = np.random.default_rng(length)
    check(
        of_value_and_gradient(network),
        [rng.normal(size=own) for own in ((length, 5), (5, 32), (32,), (32, 1))], width,
    )  # fmt: skip
    for dims in (4, 6):  # sums over lanes of 6 x 6 elements and more are more than registers hold
        factor = np.tril(rng.normal(size=(5, dims, dims)) * 0.1) + np.eye(dims)
        check(
            of_value_and_gradient(mixture),
            [rng.normal(size=(length, dims)), rng.normal(size=5), rng.normal(size=(5, dims)), factor],
            width,
        )

    def loss(w: tg.Tensor, x: tg.Tensor, which: tg.Tensor) -> list[tg.Tensor]:
        gradient, value = func.grad_and_value(classes)(w, x, which)
        return [value, gradient]

    check(loss, [rng.normal(size=(30, 7)), rng.normal(size=(length, 30)), rng.integers(0, 7, length)], width)


def test_computed_indices() -> None:
    """Elements of an input that an input of integers chooses, negative ones too, and the gradient."""

    def function(x: tg.Tensor, table: tg.Tensor, which: tg.Tensor) -> list[tg.Tensor]:
        def loss(table: tg.Tensor) -> tg.Tensor:
            chosen = table[:, which]  # (6, 4, 3)
            return (tg.exp(x[:, None, :] * chosen[:, :, 0].sum(1)) * chosen[:, 1, 2].sum()).sum()

        gradient, value = func.grad_and_value(loss)(table)
        return [value, gradient, table[:, which]]

    rng = np.random.default_rng(6)
    which = rng.integers(-9, 9, (4, 3))
    check(function, [rng.normal(size=(100, 6)), rng.normal(size=(6, 9)) / 4, which])


def test_long_matrices() -> None:
    """Both dimensions are long."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(70, 90)), rng.normal(size=90)
    check(lambda x, y: [x @ y, x.sum(0), x.sum(1), (x * y).T, tg.softmax(x, 1), tg.exp(x - y)], [x, y])
    check(of_value_and_gradient(lambda x, y: (tg.sin(x @ y) ** 2).sum()), [x, y])
    check(lambda x: [x @ x, x @ x.T], [rng.normal(size=(70, 70))])


def test_source_and_explanation() -> None:
    code = fuse(trace(of_value_and_gradient(rosenbrock), [np.ones(100)])[0])
    assert "for i in range(1, 99)" in code.source()
    assert any("elements 1 to 99" in line for line in code.explain())
    code = fuse(trace(of_value_and_gradient(network), [np.ones(own) for own in ((128, 5), (5, 32), (32,), (32, 1))])[0])
    assert "for j in range(128)" in code.source()
    assert any("reducing 128 inside" in line for line in code.explain())


def test_refusals_name_the_operation() -> None:
    program, _ = trace(lambda x: [tg.sort(x)[0]], [np.ones(3)])
    with pytest.raises(Refused, match="sort"):
        fuse(program)


# Random programs -----------------------------------------------------------------------------------------------------

FAMILIES = "unary", "binary", "elementwise", "movement", "reduction"
FUSED = [
    name
    for name, op in op_table.items()
    if op.family in FAMILIES and "bitwise" not in name and name not in ("gcd", "lcm")  # of integers only
]


@settings(max_examples=40)
@given(programs(FUSED))
def test_random_programs(program: RandomProgram) -> None:
    """Values and gradients of programs drawn at random are those of eager, or the program is refused."""
    problem = program.problem(np.float64)

    def function(*tensors: tg.Tensor) -> list[tg.Tensor]:
        leaves = [own.detach().requires_grad_() for own in tensors]
        out = problem.function(*leaves)
        found = autograd.grad(out.sum(), leaves, allow_unused=True) if out.requires_grad else ()
        return [out.detach(), *[own.detach() for own in found if own is not None]]

    arrays = [np.asarray(own) for own in problem.point]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = eager(function, arrays)
        assume(all(np.abs(own).max(initial=0.0) < 1e6 and np.isfinite(own).all() for own in expected))
        try:
            traced, _ = trace(function, arrays)
            code = fuse(traced)
        except (TracingError, Refused, RuntimeError):
            return
        assert_near(call(traced, code, arrays), expected, 1e6, least=1.0)  # terms may cancel


def test_movements_without_elements():
    """Where elements go on was asked of none."""

    def function(x):
        return tg.sin(x.reshape(-1)[:6].reshape(3, 2).repeat(0, 2)).sum() + x.sum()

    value, slope = tg.compile(func.value_and_grad(function))(np.ones((4, 3)))
    assert value == 12.0
    np.testing.assert_array_equal(slope, np.ones((4, 3)))
    assert courses(np.zeros((2, 0, 3), np.int64), [(4,), (0,)]) == [[[], []]] * 3


@pytest.mark.parametrize("turns", [4, 7])
def test_sums_of_what_indices_that_repeat_put_into_long_rows(turns):
    """Two of the indices are the same, so the gradient's elements are added, one by one; their sum was taken twice."""
    scores = np.random.default_rng(0).normal(size=(turns, 28))

    def chain(x):
        s = tg.log_softmax(x, 1)[:, np.array([0, 5, 0])]
        o = s[0]
        for k in range(1, turns):
            o = tg.logaddexp(o, o.flip(-1)) + s[k]
        return o[2]

    def second(f):
        return tg.func.grad(lambda x: (tg.func.grad(f)(x) ** 2).sum())(tg.tensor(scores)).numpy()

    np.testing.assert_allclose(second(tg.compile(chain)), second(chain), rtol=1e-9, atol=1e-15)

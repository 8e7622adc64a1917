"""`scan`, `while_loop`, `fori_loop`: values and derivatives of the first two orders, against JAX and PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program import Program
from tapegrad.program.replay import Replay
from tests.tiers import mostly_full
from tests.torch_programs import torch

RNG = np.random.default_rng(5)
XS, W, V = RNG.normal(size=(9, 3)), RNG.normal(size=(4, 4)) / 3, RNG.normal(size=(4, 3)) / 2
H = RNG.normal(size=4)

OURS = SimpleNamespace(
    scan=func.scan, while_loop=func.while_loop, fori_loop=func.fori_loop, xp=tg, asarray=tg.as_tensor
)


def _unrolled() -> SimpleNamespace:
    """PyTorch, with loops of Python."""

    def scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> Any:
        leaves = [] if xs is None else (list(xs) if isinstance(xs, (tuple, list)) else [xs])
        count, carry, ys = length if xs is None else len(leaves[0]), init, {}
        for t in reversed(range(count)) if reverse else range(count):
            row = None if xs is None else type(xs)(own[t] for own in xs) if isinstance(xs, (tuple, list)) else xs[t]
            carry, ys[t] = f(carry, row)
        stacked = None if ys[0] is None else torch.stack([ys[t] for t in range(count)])
        return carry, stacked

    def while_loop(cond: Any, body: Any, value: Any) -> Any:
        while cond(value):
            value = body(value)
        return value

    def fori_loop(lower: Any, upper: Any, body: Any, value: Any) -> Any:
        for i in range(int(lower), int(upper)):
            value = body(i, value)
        return value

    return SimpleNamespace(scan=scan, while_loop=while_loop, fori_loop=fori_loop, xp=torch, asarray=torch.as_tensor)


def _jax() -> SimpleNamespace:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    lax = jax.lax
    return SimpleNamespace(
        scan=lax.scan, while_loop=lax.while_loop, fori_loop=lax.fori_loop, xp=jax.numpy, asarray=jax.numpy.asarray
    )


# Each takes a library and vectors, and returns a number.


def rnn(L: Any, w: Any, v: Any, h: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        state = L.xp.tanh(w @ state + v @ x)
        return state, state * state[0]

    last, states = L.scan(step, h, L.asarray(XS))
    return (last * last).sum() + (states * 0.3).sum()


def backwards(L: Any, w: Any, v: Any, h: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        return (state[0] * L.xp.cos(state[1]), state[1] + 0.1 * (v @ x).sum()), state[0] * state[1] * w.sum()

    (a, b), rows = L.scan(step, (h[0], h[1]), L.asarray(XS), reverse=True)
    return a * b + (rows * rows[0]).sum()


def rows_of_two(L: Any, w: Any, v: Any, h: Any) -> Any:
    steps = L.asarray(np.linspace(0.1, 0.5, 9))

    def step(state: Any, row: Any) -> Any:
        x, dt = row
        return {"x": state["x"] + dt * 0.3 * L.xp.sin(w @ state["x"]), "n": state["n"] + 1}, (state["x"] * x[0]).sum()

    last, rows = L.scan(step, {"x": h, "n": L.asarray(0)}, (L.asarray(XS), steps))
    return (last["x"] * h).sum() * last["n"] + (rows**2).sum()


def mapped_rows(L: Any, w: Any, v: Any, h: Any) -> Any:
    """The rows depend on what is differentiated."""
    _, rows = L.scan(lambda c, x: (c * 0.9 + (x * x).sum(), c * x), h.sum(), (w @ v).reshape(6, 2) * 2.0)
    return (rows * rows).sum()


def without_rows(L: Any, w: Any, v: Any, h: Any) -> Any:
    last, _ = L.scan(lambda x, _: (w @ x / (1 + (x * x).sum()), None), h, None, length=12)
    return last.sum()


def nested(L: Any, w: Any, v: Any, h: Any) -> Any:
    def outer(state: Any, x: Any) -> Any:
        inner, _ = L.scan(lambda s, _: (L.xp.sin(w @ s) + x[0], None), state, None, length=6)
        return inner, (inner * x[1]).sum()

    last, rows = L.scan(outer, h, L.asarray(XS))
    return (last**2).sum() + (rows**2).sum()


def counted(L: Any, w: Any, v: Any, h: Any) -> Any:
    return L.fori_loop(2, 11, lambda i, x: x * L.xp.cos(w @ x) + 0.1 * i, h).sum()


def entries(L: Any, w: Any, v: Any, h: Any) -> Any:
    """Rows are chosen by the turn's number."""
    xs = L.asarray(XS)
    return L.fori_loop(0, 9, lambda i, x: L.xp.tanh(v @ xs[i] + w @ x), h).sum()


def newton(L: Any, w: Any, v: Any, h: Any) -> Any:
    a = (h * h).sum() + 1.0
    root = L.while_loop(lambda x: abs(x * x - a) > 1e-11, lambda x: 0.5 * (x + a / x), a)
    return root * (w * w).sum()


def of_two(L: Any, w: Any, v: Any, h: Any) -> Any:
    """A condition on one of two values, with a constant of its own."""
    limit = (v * v).sum()

    def turn(state: Any) -> Any:
        x, total = state
        return L.xp.sin(w @ x) + 0.5, total + (x * x).sum()

    x, total = L.while_loop(lambda state: state[1] < 3 * limit, turn, (h, (h * h).sum() * 0.0))
    return x.sum() * total


PROGRAMS = [rnn, backwards, rows_of_two, mapped_rows, without_rows, nested, counted, entries]
OPEN = [newton, of_two]  # the number of turns depends on data
POINTS = [(W, V, H), (W * 1.1 + 0.02, V - 0.1, H + 0.2)]


def second(gradient: Callable[..., Any], sin: Callable[[Any], Any]) -> Callable[..., Any]:
    """A number that depends on the gradient: its gradient is a second derivative."""
    return lambda *args: sum((sin(own) * own).sum() for own in gradient(*args))


@functools.cache
def expected(program: Callable[..., Any], point: int) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """Value, gradient, and second derivatives by PyTorch, unrolled."""
    library = _unrolled()
    inputs = [torch.tensor(own, requires_grad=True) for own in POINTS[point]]
    value = program(library, *inputs)
    first = torch.autograd.grad(value, inputs, create_graph=True, allow_unused=True, materialize_grads=True)
    total = second(lambda *_: first, torch.sin)(*inputs)
    then = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    return value.item(), [own.detach().numpy() for own in first], [own.numpy() for own in then]


def gradients(program: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The program, its gradient, and its second derivatives, as functions of the three inputs."""
    one = functools.partial(program, OURS)
    first = func.grad(one, argnums=(0, 1, 2))
    return [one, first, func.grad(second(first, tg.sin), argnums=(0, 1, 2))]


def check(found: Any, wanted: Any) -> None:
    if isinstance(found, tuple):
        for pair in zip(found, wanted, strict=True):
            check(*pair)
        return
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-7, atol=1e-9 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("program", PROGRAMS + OPEN)
@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_derivatives_as_pytorch(program: Callable[..., Any], order: int, how: str) -> None:
    f = gradients(program)[order]
    if how == "compiled":
        f = tg.compile(f)
    for point, inputs in enumerate(POINTS):
        check(f(*inputs), expected(program, point)[order])
    if how == "compiled":
        assert f.programs[0].run.fused is not None
        assert any(entry.op.name == "scan" for entry in f.programs[0].entries)


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients_as_jax(program: Callable[..., Any]) -> None:
    library = _jax()
    jax = pytest.importorskip("jax")
    theirs = jax.value_and_grad(functools.partial(program, library), argnums=(0, 1, 2))
    ours = tg.compile(func.value_and_grad(functools.partial(program, OURS), argnums=(0, 1, 2)))
    for inputs in POINTS:
        value, found = theirs(*inputs)
        check(ours(*inputs), (np.asarray(value), tuple(map(np.asarray, found))))


@pytest.mark.parametrize("program", OPEN)
def test_values_as_jax(program: Callable[..., Any]) -> None:
    """JAX has no gradient of such loops by reverse mode, but tangents."""
    library, jax = _jax(), pytest.importorskip("jax")
    ones = tuple(np.ones_like(own) for own in POINTS[0])
    for inputs in POINTS:
        value, tangent = jax.jvp(functools.partial(program, library), inputs, ones)
        one = functools.partial(program, OURS)
        check(tuple(func.jvp(one, inputs, ones)), (np.asarray(value), np.asarray(tangent)))
        check(tg.compile(lambda *own: func.jvp(one, own, ones))(*inputs), (np.asarray(value), np.asarray(tangent)))  # noqa: B023


@pytest.mark.parametrize("program", PROGRAMS + OPEN)
@pytest.mark.parametrize("order", mostly_full(range(3), [1]))
def test_batches(program: Callable[..., Any], order: int) -> None:
    """`vmap` of loops is the loop for each item, also where items take different numbers of turns."""
    f = gradients(program)[order]
    items = [H * (1 + 0.2 * k) for k in range(12)]
    found = tg.compile(func.vmap(f, in_dims=(None, None, 0)))(W, V, np.stack(items))
    each = [f(W, V, own) for own in items]
    wanted = np.stack(each) if order == 0 else tuple(np.stack(own) for own in zip(*each, strict=True))
    check(found, wanted)


@pytest.mark.parametrize("program", PROGRAMS + OPEN)
def test_recorded_calls(program: Callable[..., Any]) -> None:
    """Tensors that require grad: a call of a compiled function is one entry, and its rule is a program."""
    f = tg.compile(functools.partial(program, OURS))
    inputs = [tg.tensor(own, requires_grad=True) for own in POINTS[0]]
    first = tg.autograd.grad(f(*inputs), inputs, create_graph=True, allow_unused=True, materialize_grads=True)
    wanted = gradients(program)[1](*POINTS[0])
    check(tuple(own.detach().numpy() for own in first), wanted)
    total = second(lambda *_: first, tg.sin)(*inputs)
    then = tg.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    check(tuple(own.numpy() for own in then), gradients(program)[2](*POINTS[0]))


# Turns that look at values --------------------------------------------------------------------------------------------


def branching(x: Any) -> Any:
    """Neither way can be differentiated where the other one is taken: a square root, a logarithm."""

    def step(c: Any, t: Any) -> Any:
        c = c * 0.7 - 0.2 if c > 0.5 else tg.sqrt(0.6 - c) * 1.1 + tg.log(1.7 - c)
        return c, c * t

    last, rows = func.scan(step, x, np.arange(20.0))
    return last + (rows * rows).sum()


def halving(x: Any) -> Any:
    return func.while_loop(lambda s: s[1] > 0.1, lambda s: (s[0] + 1, s[1] * 0.5 if s[1] > 3 else s[1] - 0.3), (0, x))[
        1
    ]


def chosen(x: Any) -> Any:
    """The number of a row, which is checked, depends on the value."""
    table = tg.as_tensor(XS)
    return func.fori_loop(0, 8, lambda i, c: tg.sin(c + table[i, (c > 0).long() + 1] * c), x)


@pytest.mark.parametrize("program", [branching, halving, chosen])
@pytest.mark.parametrize("order", range(3))
def test_branches_in_turns(program: Callable[..., Any], order: int) -> None:
    f = program
    for _ in range(order):
        f = func.grad(f)
    compiled = tg.compile(f)
    for x in (0.3, 0.45, 7.1, -0.2):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-9, atol=1e-9)
    assert len(compiled.programs) <= 3
    assert all(any(entry.op.name == "scan" for entry in own.entries) for own in compiled.programs)


@pytest.mark.full
def test_turns_of_too_many_ways() -> None:
    """They are traced one by one, and the function is called as it is where that does not serve."""

    def f(x: Any) -> Any:
        return func.scan(lambda c, _: (c * float(c > 0) + int(c * 1000) * 1e-3, None), x, None, length=8)[0]

    compiled, xs = tg.compile(f), np.linspace(0.1, 0.7, 20)
    with pytest.warns(UserWarning, match="takes another way"):
        found = [compiled(x) for x in xs]
    np.testing.assert_allclose(found, [f(x) for x in xs])


def test_more_turns_than_there_is_room_for() -> None:
    """A gradient keeps what each turn was given: a call of more turns is traced again."""
    f = func.grad(lambda x, n: func.fori_loop(0, n, lambda i, c: c * 0.999 + tg.sin(c) / (i + 2), x))
    compiled = tg.compile(f)
    for n in (3, 64, 65, 1000, 0, 129, -2):
        x = tg.tensor(0.7)
        np.testing.assert_allclose(float(compiled(x, tg.tensor(n))), float(f(x, tg.tensor(n))), rtol=1e-9)
    assert len(compiled.programs) == 3  # 64, 128, 1024


def test_many_turns_are_traced_once() -> None:
    calls = []

    def turn(c: Any, _: Any) -> Any:
        calls.append(0)
        return tg.sin(c) + 0.5, None

    f = tg.compile(func.value_and_grad(lambda x: func.scan(turn, x, None, length=100_000)[0]))
    value, slope = f(0.3)
    assert len(calls) == 1
    x = 0.3
    for _ in range(100_000):
        x = np.sin(x) + 0.5
    np.testing.assert_allclose([value, slope], [x, 0.0], atol=1e-12)


def until_in_scan(x: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        a = c * c + 1
        root = func.while_loop(lambda y: abs(y * y - a) > 1e-11, lambda y: 0.5 * (y + a / y), a)
        return root * 0.7 + t * x, root

    last, rows = func.scan(step, x, np.linspace(0.0, 1.0, 9))
    return last + rows.sum()


def batch_in_scan(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        new = func.vmap(lambda u: func.scan(lambda s, _: (tg.sin(s) * x + u, None), u, length=6)[0])(c)
        return new, new.sum()

    last, rows = func.scan(step, tg.linspace(0, 1, 12) * x, length=7)
    return last.sum() + rows.sum()


@pytest.mark.parametrize("program", [until_in_scan, batch_in_scan])
@pytest.mark.parametrize("order", range(3))
def test_loops_in_loops(program: Callable[..., Any], order: int) -> None:
    f = program
    for _ in range(order):
        f = func.grad(f)
    compiled = tg.compile(f)
    for x in (0.5, 0.8):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-9)
    assert compiled.programs[0].run.fused is not None
    assert any(entry.op.name == "scan" for entry in compiled.programs[0].entries)


@pytest.mark.full
def test_few_columns_of_few_rows_of_a_stack() -> None:
    """Blocks of columns are read while eight are within memory, which ends before the last column does."""

    def f(x: Any) -> Any:
        states = func.scan(lambda u, _: (u * x, u), np.ones(40), length=200)[1]
        return (states[::10, np.array([3, 11, 19, 27, 35])] ** 2).sum()

    x = np.linspace(0.99, 1.01, 40)
    np.testing.assert_allclose(tg.compile(tg.func.grad(f))(x), tg.func.grad(f)(x), rtol=1e-10)


def test_many_values() -> None:
    """More than an entry of the tape has residuals for: they are packed."""
    scales = {f"w{k}": 0.1 * k + 0.1 for k in range(12)}

    def f(scales: Any, init: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            new = [tg.sin(own * s) + row[0] for own, s in zip(state, scales.values(), strict=True)]
            return [*new[1:], new[0]], sum(new) * row[1]

        last, rows = func.scan(step, init, (XS[:, 0], XS[:, 1]))
        return sum(last) + (rows**2).sum()

    init = [0.1 * k for k in range(20)]
    scales |= {f"v{k}": 0.05 * k for k in range(8)}
    for order in (1, 2):
        g = func.grad(f)
        if order == 2:
            g = func.grad(lambda *args: sum(tg.sin(own) for own in func.grad(f)(*args).values()))
        found, wanted = tg.compile(g)(scales, init), g(scales, init)
        assert found.keys() == wanted.keys()
        check(tuple(found.values()), tuple(wanted.values()))


# Containers, and errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_containers(compiled: bool) -> None:
    def f(init: Any, xs: Any) -> Any:
        return func.scan(lambda c, x: ({"a": (c["a"][0] + x["u"], None)}, [x["v"], None]), init, xs)

    g = tg.compile(f) if compiled else f
    carry, ys = g({"a": (np.zeros(2), None)}, {"u": np.ones((6, 2)), "v": np.arange(6.0)})
    assert carry.keys() == {"a"}
    assert carry["a"][1] is None
    assert ys[1] is None
    assert isinstance(carry["a"][0], np.ndarray)
    assert isinstance(ys[0], np.ndarray)
    np.testing.assert_array_equal(carry["a"][0], [6.0, 6.0])
    np.testing.assert_array_equal(ys[0], np.arange(6.0))
    carry, ys = g({"a": (tg.zeros(2), None)}, {"u": np.ones((6, 2)), "v": np.arange(6.0)})
    assert isinstance(carry["a"][0], tg.Tensor)
    assert isinstance(ys[0], tg.Tensor)


@pytest.mark.parametrize("length", [0, 1, 3, 7])
@pytest.mark.parametrize("compiled", [False, True])
def test_lengths(length: int, compiled: bool) -> None:
    def f(x: Any, xs: Any) -> Any:
        return func.scan(lambda c, x: (c + x.sum(), (x * 2, c)), x, xs)

    carry, (ys, cs) = (tg.compile(f) if compiled else f)(np.array(1.5), np.ones((length, 3)))
    assert float(carry) == 1.5 + 3 * length
    assert ys.shape == (length, 3)
    assert cs.shape == (length,)


def test_a_number_takes_the_dtype_of_the_first_turn() -> None:
    xs = np.ones((8, 2), np.float32)
    for f in (func.scan, tg.compile(lambda *args: func.scan(*args))):
        last, rows = f(lambda c, x: (c + x.sum(), c), 0, xs)
        assert last.dtype == np.float32
        assert rows.dtype == np.float32
        assert last == 16.0


ERRORS = [
    (lambda: func.scan(lambda c, x: (c, x), 0.0, (np.ones(3), np.ones(4))), ValueError, "xs[0] has 3, xs[1] has 4"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, np.ones(3), length=4), ValueError, "length is 4, and xs has 3 rows"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0), ValueError, "neither an array in xs nor a length"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, length=-1), ValueError, "must not be negative, got -1"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, length=2.0), TypeError, "length must be an integer, got float"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, np.float64(3)), ValueError, "xs is a number, and has no rows"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, ["a"]), TypeError, "xs[0] must be a tensor"),
    (lambda: func.scan(lambda c, x: c, 0.0, np.ones(6)), TypeError, "f must return a pair"),
    (
        lambda: func.scan(lambda c, x: ((c[0], c[1].sum()), x), (0.0, np.ones(2)), np.ones(6)), TypeError,
        "init[1] is float64[2], and the next value is float64[]: their shapes differ",
    ),
    (
        lambda: func.scan(lambda c, x: ({"n": c["n"] * 0.5}, x), {"n": np.array(1)}, np.ones(6)), TypeError,
        "init['n'] is int64[], and the next value is float64[]: their dtypes differ",
    ),
    (lambda: func.scan(lambda c, x: (list(c), x), (0.0, 1.0), np.ones(6)), TypeError, "init, (*, *), got [*, *]"),
    (lambda: func.scan(lambda c, x: ((c[0], 1.0), x), (0.0, None), np.ones(6)), TypeError, "init[1] is None"),
    (lambda: func.while_loop(lambda c: c > 0, lambda c: c - 1, np.ones(2)), TypeError, "cond_fun must return a truth"),
    (lambda: func.while_loop(lambda c: c, lambda c: c - 1, 1.0), TypeError, "cond_fun must return a truth value"),
    (lambda: func.while_loop(lambda c: (c > 0,), lambda c: c - 1, 1.0), TypeError, "tuple of structure (*,)"),
    (lambda: func.while_loop(lambda c: c.sum() > 0, lambda c: c[:1] - 1, np.ones(2)), TypeError, "their shapes differ"),
    (lambda: func.fori_loop(0, 2.5, lambda i, c: c, 0.0), TypeError, "upper must be an integer"),
    (lambda: func.fori_loop(np.arange(2), 3, lambda i, c: c, 0.0), TypeError, "lower must be an integer"),
    (lambda: func.fori_loop(0, 9, lambda i, c: c.long(), np.zeros(2)), TypeError, "init_val is float64[2]"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
@pytest.mark.parametrize("compiled", [False, True])
def test_errors(number: int, compiled: bool) -> None:
    call, kind, words = ERRORS[number]
    with pytest.raises(kind) as caught:
        (tg.compile(lambda x: (call(), x)[1]))(np.ones(2)) if compiled else call()
    assert words in str(caught.value)


def test_turns_that_do_more_than_to_compute() -> None:
    """They are traced one by one: random numbers are drawn anew in each turn, and writes outside happen."""
    total = tg.zeros(3)

    def step(c: Any, _: Any) -> Any:
        total.add_(c.detach())
        return c * 0.5 + tg.randn(3), None

    def f(x: Any) -> Any:
        return func.scan(step, x, length=7)[0]

    found = []
    for call in (f, tg.compile(f)):
        for seed in range(2):
            total.zero_()
            tg.manual_seed(seed)
            found.append((call(tg.ones(3)).numpy(), total.numpy().copy()))
    for one, two in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_a_program_says_for_how_many_turns_it_has_room() -> None:
    slope = tg.func.grad(lambda x, n: tg.func.fori_loop(0, n, lambda i, y: y * x + i, 1.0))
    program = Program.trace(slope, 1.1, np.array(3))
    assert float(program(1.01, np.array(60))) == pytest.approx(float(slope(tg.tensor(1.01), tg.tensor(60))))
    with pytest.raises(ValueError, match="room for 64 turns; trace it with as many as there may be"):
        program(1.01, np.array(500))
    large = Program.trace(slope, 1.1, np.array(500))
    assert float(large(1.01, np.array(500))) == pytest.approx(float(slope(tg.tensor(1.01), tg.tensor(500))))


def test_loops_of_no_turns_that_begin_with_a_number() -> None:
    functions = {
        "fori_loop": lambda x: tg.func.fori_loop(0, 0, lambda i, y: y * x, 1.0),
        "while_loop": lambda x: tg.func.while_loop(lambda y: y < 0.0, lambda y: y * x, 1.0),
        "scan": lambda x: tg.func.scan(lambda y, _: (y * x, None), 1.0, length=0)[0],
    }
    for function in functions.values():
        for own in (tg.func.grad(function), tg.compile(tg.func.grad(function))):
            assert float(own(tg.tensor(1.5))) == 0.0
        assert float(tg.compile(function)(1.5)) == float(function(1.5)) == 1.0


def test_replay_of_arrays_with_other_strides() -> None:
    """The first turn of a loop back may take a number that is stretched: forwards were found for strides of 0."""
    rng = np.random.default_rng(0)
    matrix, whole = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    program = Program.trace(lambda a, b: ((a @ b).mean(0), a.T @ b), matrix, whole)
    number = np.broadcast_to(np.array(0.1), (3, 3))
    for first in (number, whole.T, whole):
        for _ in range(3):  # forwards are prepared when they are met again
            run = Replay(program)
            for a, b in ((matrix, first), (matrix, whole), (matrix.T, number), (whole, matrix.T)):
                for found, wanted in zip(run(a, b), ((a @ b).mean(0), a.T @ b), strict=True):
                    np.testing.assert_allclose(found, wanted, rtol=1e-12)

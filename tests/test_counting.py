"""Compiled functions that change numbers outside and look at them: each call is as in eager mode."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.program import Program

COUNT = 0


class Steps:
    """An object that counts its calls."""

    def __init__(self) -> None:
        self.n, self.mean = 0, tg.zeros(())

    def __call__(self, x: Any) -> Any:
        self.n += 1
        decay = min(0.9, (1 + self.n) / (10 + self.n))  # the warm-up of a moving average
        self.mean.mul_(decay).add_((1 - decay) * x.detach())
        return x * self.mean


class Slots:
    """The same in a slot."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Any) -> Any:
        self.n += 2
        return x**self.n


class Net(nn.Module):
    """A module that does something else in each third call."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, x: Any) -> Any:
        self.n += 1
        return x * 10 if self.n % 3 == 0 else x * self.n


class Lazy(nn.Module):
    """A module that makes its weights in the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ready = False

    def forward(self, x: Any) -> Any:
        if not self.is_ready:
            self.weight, self.is_ready = tg.tensor(3.0), True
        return x * self.weight


class Cached(nn.Module):
    """A module that makes a tensor again where its length is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def forward(self, x: Any) -> Any:
        if self.length != len(x):
            self.places, self.length = tg.arange(len(x)) * 1.0, len(x)
        return x * self.places


def of_global() -> Any:
    global COUNT
    COUNT = 0

    def function(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x / COUNT

    return function


def of_cell() -> Any:
    count = 5

    def function(x: Any) -> Any:
        nonlocal count
        before = count
        count -= 1
        return x * before + count

    return function


def of_dict() -> Any:
    state = {"n": 1}

    def function(x: Any) -> Any:
        if state["n"] > 4:
            state["n"] = 1
        state["n"] += 1
        return x * state["n"]

    return function


def of_list() -> Any:
    state = [0, 7]

    def function(x: Any) -> Any:
        state[0] += 1
        return (x * tg.arange(20.0)[state[0]]).sum()

    return function


def of_default() -> Any:
    def function(x: Any, cache: dict[str, int] = {"n": 1}) -> Any:  # noqa: B006  # what it is for
        cache["n"] = 3 * cache["n"] % 100
        return x * cache["n"]

    return function


def of_attribute() -> Any:
    def function(x: Any) -> Any:
        function.n = function.n + 1  # type: ignore[attr-defined]
        return x * function.n  # type: ignore[attr-defined]

    function.n = 0  # type: ignore[attr-defined]
    return function


def large() -> Any:
    state = {"n": 1 << 29}

    def function(x: Any) -> Any:
        state["n"] *= 8
        return x * (state["n"] % 1000)

    return function


COUNTERS = [Steps, Slots, Net, of_global, of_cell, of_dict, of_list, of_default, of_attribute, large]
OTHERS = [Lazy]


def calls(make: Callable[[], Any], *, is_compiled: bool, length: int = 9) -> Iterator[tuple[float, float]]:
    own = make()
    function = tg.compile(own) if is_compiled else own
    for k in range(length):
        x = tg.tensor(1.0 + k, requires_grad=True)
        y = function(x)
        y.backward()
        yield y.item(), x.grad.item()


@pytest.mark.parametrize("make", [*COUNTERS, *OTHERS])
def test_each_call_is_as_in_eager_mode(make: Callable[[], Any]) -> None:
    if make is of_default:  # whose default is the same object
        expected = [(3.0**n % 100 * n, 3.0**n % 100) for n in range(1, 10)]
    else:
        expected = list(calls(make, is_compiled=False))
    np.testing.assert_allclose(list(calls(make, is_compiled=True)), expected, rtol=1e-12)


def test_it_is_compiled() -> None:
    """A few programs serve all numbers."""
    counted = Steps()
    compiled = tg.compile(counted)
    for _ in range(100):
        compiled(tg.ones(()))
    assert counted.n == 100
    assert 0 < len(compiled.programs) <= 4


def test_numbers_that_others_set() -> None:
    net = Net()
    compiled = tg.compile(net)
    assert [compiled(tg.ones(())).item() for _ in range(4)] == [1.0, 2.0, 10.0, 4.0]
    net.n = 7
    assert [compiled(tg.ones(())).item() for _ in range(3)] == [8.0, 10.0, 10.0 * 1.0]
    assert net.n == 10


def test_what_is_kept_beside_a_number() -> None:
    compiled, expected = tg.compile(Cached()), Cached()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for length in (3, 3, 5, 5, 3, 5, 5, 3, 3, 3, 5):
            assert compiled(tg.ones(length)).tolist() == expected(tg.ones(length)).tolist()
    compiled = tg.compile(Cached())
    for _ in range(3):
        assert compiled(tg.ones(3)).tolist() == [0.0, 1.0, 2.0]
    assert len(compiled.programs) == 1


def test_what_nothing_depends_on_counts_calls() -> None:
    count = [0]

    def function(x: Any) -> Any:
        count[0] += 1
        return x * 2.0

    compiled = tg.compile(function)
    for _ in range(5):
        compiled(np.ones(3))
    assert count == [5]
    assert len(compiled.programs) == 1
    compiled(np.ones(4))
    assert count == [6]


def test_what_is_only_stored_may_be_another_number() -> None:
    class Timed:
        def __init__(self) -> None:
            self.last, self.scale = 0.0, 2.0

        def __call__(self, x: Any) -> Any:
            self.last = time.perf_counter()
            return x * self.scale

    timed = Timed()
    compiled = tg.compile(timed)
    for _ in range(6):
        assert compiled(1.0) == 2.0
    assert len(compiled.programs) == 1
    timed.scale = 3.0
    assert compiled(1.0) == 3.0


def test_a_toggle_is_not_compiled_and_says_so() -> None:
    class Toggle:
        is_on = False

        def __init__(self) -> None:
            self.is_on = False

        def __call__(self, x: Any) -> Any:
            self.is_on = not self.is_on
            return x * 2.0 if self.is_on else x * 3.0

    compiled = tg.compile(Toggle())
    with pytest.warns(UserWarning, match=r"is not compiled, because it changes what it looks at .* \('is_on'\)"):
        found = [compiled(1.0) for _ in range(6)]
    assert found == [2.0, 3.0] * 3


def test_elements_of_arrays() -> None:
    state = np.zeros(2)

    def function(x: Any) -> Any:
        state[0] += 0.5
        return x * state[0]

    compiled = tg.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(2.0) for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_an_error_leaves_the_numbers_of_eager_mode() -> None:
    state = {"n": 0}

    def function(x: Any) -> Any:
        state["n"] += 1
        if state["n"] == 4:
            raise ValueError("enough")
        return x * state["n"]

    compiled = tg.compile(function)
    assert [float(compiled(1.0)) for _ in range(3)] == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="enough"):
        compiled(1.0)


def test_numbers_that_python_looks_at_in_each_call() -> None:
    state = {"n": 0}

    def function(x: Any) -> Any:
        state["n"] += 1
        return sum((x for _ in range(state["n"])), 0.0 * x)

    compiled = tg.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [float(compiled(1.0)) for _ in range(50)] == list(range(1, 51))


def test_a_compiled_function_inside_of_another_one() -> None:
    def outer(own: Any) -> Any:
        inner = tg.compile(own)
        return lambda x: inner(x) + inner(x)

    expected, found = Net(), Net()
    eager, compiled = (lambda x: expected(x) + expected(x)), tg.compile(outer(found))
    for _ in range(4):
        assert compiled(tg.ones(())).item() == eager(tg.ones(())).item()


def test_a_traced_program_has_constants() -> None:
    program = Program.trace(of_cell(), 2.0)
    assert [float(program(2.0)) for _ in range(2)] == [14.0, 14.0]


@pytest.mark.parametrize("number", [2.0, 3])
def test_numbers_are_not_written_to(number: Any) -> None:
    """`a *= 2` of a number gives the name another one."""

    def function(x: Any, a: Any) -> Any:
        before = a
        a *= 2
        c = a - 1
        d = c
        c += before
        return x * before, x * a, x * c, x * d

    compiled = tg.compile(function)
    for scale in (1, 2, 3):
        assert [float(own) for own in compiled(1.5, number * scale)] == list(function(1.5, number * scale))


def test_tensors_are_written_to() -> None:
    def function(x: Any, n: Any) -> Any:
        y = tg.sin(x)
        z = y
        y += n
        return z * x

    compiled = tg.compile(function)
    for x, n in itertools.product((tg.tensor(0.3), tg.tensor([1.0, 2.0])), (1, 2.5)):
        np.testing.assert_allclose(compiled(x, n).numpy(), function(x, n).numpy(), rtol=1e-14)

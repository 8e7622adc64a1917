"""Numbers that a compiled function takes out by `item()` and returns at once: outputs, and no guards."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import Program
from tapegrad.program.returned import Number

X = np.linspace(0.1, 1.0, 5)


def loss(x: Any) -> Any:
    return (x * x).sum().item()


def in_containers(x: Any) -> Any:
    return {"loss": (x * x).sum().item(), "count": ((x > 0.5).sum().item(), [x.mean().item()]), "y": x + 1.0}


def one_of_two(x: Any) -> Any:
    if x.sum() > 3.0:
        return x.sum().item()
    return x.prod().item()


def behind_others(x: Any) -> Any:
    return x.sum().item(), tg.sin(x)[0] * 2.0, x.reshape(5, 1)[:1].item()


@tg.no_grad()
def decorated(x: Any) -> Any:
    return (x * x).sum().item()


class Module(tg.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sum().item()


def of_integers(x: Any) -> Any:
    return (x > 0.5).sum().item(), (x.sum() > 2.0).item()


RETURNED: tuple[Callable[..., Any], ...] = (
    loss, in_containers, one_of_two, behind_others, decorated, Module(), of_integers,
)  # fmt: skip


def helped(x: Any) -> Any:
    return loss(x) * 2.0


def by_a_function(x: Any) -> Any:
    return sum(map(tg.Tensor.item, [x.sum(), x.prod()]))


def in_a_variable(x: Any) -> Any:
    value = x.sum().item()
    return value if value > 0 else -value


def in_a_comprehension(x: Any) -> Any:
    return [own.item() * 2 for own in (x[0], x[1])]


def in_a_call(x: Any) -> Any:
    return max(x[0].item(), x[1].item(), 0.5)


def as_text(x: Any) -> Any:
    return f"{x[0].item():.3f}"


def as_a_key(x: Any) -> Any:
    return {x[0].item(): 1, (x[1].item(), 2): 3}


def negative(x: Any) -> Any:
    return -x[0].item(), x[1].item() or 2.0


USED = (helped, by_a_function, in_a_variable, in_a_comprehension, in_a_call, as_text, as_a_key, negative)


def same(one: Any, other: Any) -> None:
    leaves = [tg.func.trees.flatten(own) for own in (one, other)]
    assert tg.func.trees.structure(one) == tg.func.trees.structure(other)
    for own, expected in zip(*leaves, strict=True):
        assert type(own) is type(expected)
        np.testing.assert_allclose(np.asarray(own), np.asarray(expected), rtol=1e-13)


@pytest.mark.parametrize("function", RETURNED, ids=lambda own: getattr(own, "__name__", "module"))
def test_they_are_outputs(function: Callable[..., Any]) -> None:
    compiled = tg.compile(function)
    for factor in np.linspace(0.5, 3, 25):
        same(compiled(tg.tensor(X * factor)), function(tg.tensor(X * factor)))
    assert len(compiled.programs) == 1 + (function is one_of_two)
    assert all(len(program.guards) == (function is one_of_two) for program in compiled.programs)


@pytest.mark.filterwarnings("ignore:.* takes another way")
@pytest.mark.parametrize("function", USED, ids=lambda own: own.__name__)
def test_what_python_uses_has_a_guard(function: Callable[..., Any]) -> None:
    compiled = tg.compile(function)
    for factor in np.linspace(-1, 3, 25):
        x = tg.tensor(X * factor)
        assert compiled(x) == function(x)


def test_of_arrays() -> None:
    compiled = tg.compile(loss)
    for factor in (1.0, 2.0):
        found = compiled(X * factor)
        assert type(found) is float
        assert found == pytest.approx(((X * factor) ** 2).sum())


def test_training_steps_are_compiled() -> None:
    def made() -> tuple[Any, Any]:
        tg.manual_seed(0)
        model = tg.nn.Linear(5, 1).double()
        optimizer = tg.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        return step, model

    (step, model), (eager, other) = made(), made()
    compiled = tg.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(25):
            x, y = tg.tensor(X[None] * k), tg.tensor([[1.0 + k]])
            assert compiled(x, y) == pytest.approx(eager(x, y), rel=1e-10)
    np.testing.assert_allclose(model.weight.detach(), other.weight.detach(), rtol=1e-10)


def test_they_have_no_graph() -> None:
    x = tg.tensor(X, requires_grad=True)
    value, y = tg.compile(lambda x: (x.sum().item(), (x * x).sum()))(x)
    y.backward()
    assert type(value) is float
    np.testing.assert_allclose(x.grad, 2 * X)


@dataclasses.dataclass
class Result:
    loss: float
    y: Any


def test_in_dataclasses() -> None:
    """The call of the class uses the number: Python may do there what it likes."""
    compiled = tg.compile(lambda x: Result(x.sum().item(), x + 1))
    with pytest.warns(UserWarning, match="takes another way"):
        found = [compiled(tg.tensor(X * k)) for k in range(1, 40)]
    assert found[-1].loss == pytest.approx(39 * X.sum())


def test_programs_with_them_come_back() -> None:
    compiled = tg.compile(in_containers)
    expected = compiled(tg.tensor(X))
    (program,) = compiled.programs
    again = Program.parse(program.text())
    assert again == program
    same(again(tg.tensor(X)), expected)
    same(program(tg.tensor(2 * X)), in_containers(tg.tensor(2 * X)))


def test_a_number_is_an_output() -> None:
    text = tg.compile(loss)
    text(tg.tensor(X))
    broken = text.programs[0].text().replace("number(<0>)", "number(3)")
    with pytest.raises(ValueError, match="a number is an output"):
        Program.parse(broken)


def test_in_code_of_numba() -> None:
    numba = pytest.importorskip("numba")
    compiled = tg.compile(lambda x: ((x * x).sum().item(), x * 2.0))
    compiled(X)
    both = compiled.njit
    value, y = numba.njit(lambda x: both(x))(X)
    assert value == pytest.approx((X * X).sum())
    np.testing.assert_allclose(y, 2 * X)


def test_made_of_a_value_it_is_the_number() -> None:
    assert Number._make([np.float64(2.0)]) == 2.0
    assert type(Number._make([None])) is Number

"""Programs: each operation, its gradient and the gradient's gradient, traced at one point and run at another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import autograd, func
from tapegrad.ops.table import gateway
from tapegrad.program import calls
from tapegrad.program.calls import Calls
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.trace import TracingError, trace
from tests import checks
from tests.test_table import CASES, each_case

# Their rules choose by values: how singular a matrix is, and in which order its rows stand.
LOOKING = ("det", "lu_factor_ex", "ldl_factor_ex")


def derivatives(problem: checks.Problem, tensors: list[tg.Tensor]) -> list[tg.Tensor]:
    """Return the value, the gradient of a product with it, and the gradient of the gradient's squares."""
    leaves = [own.detach().requires_grad_() for own in tensors]
    value = problem(leaves)
    if not value.requires_grad:
        return [value]
    total = (value * checks.random_like(np.ones(value.shape), "ct")).sum()
    total = total.real if total.is_complex() else total
    first = autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True)
    squares = sum((own.abs() ** 2).sum() for own in first)
    if not squares.requires_grad:
        return [value, *first]
    second = autograd.grad(squares, leaves, allow_unused=True, materialize_grads=True)
    return [value, *first, *second]


def elsewhere(problem: checks.Problem) -> list[np.ndarray]:
    """Return the operands moved a little, so that no choice between elements changes."""
    return [own * own.dtype.type(1 + 1e-4) for own in problem.point]


def run(program: Program, arrays: list[Any]) -> list[np.ndarray]:
    outputs, _ = replay(program, [tg.tensor(own) for own in arrays])
    return [own.detach().numpy() for own in outputs]


@each_case(CASES, ["float64", "complex128"], quick=3)
def test_a_trace_computes_what_the_function_does(case: Any, dtype: str) -> None:
    problem = case.problem(dtype)
    program, captured = trace(lambda *tensors: derivatives(problem, list(tensors)), problem.point)
    assert not program.guards or case.op.name in LOOKING, "an operation looks at values"
    for point in (problem.point, elsewhere(problem)):
        expected = [own.detach().numpy() for own in derivatives(problem, [tg.tensor(own) for own in point])]
        for own, other in zip(run(program, [*point, *captured]), expected, strict=True):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def test_a_trace_with_a_constant_baked_in_is_noticed() -> None:
    problem = checks.Problem(lambda x: x * float(np.asarray(x.detach()._data).sum()), (np.ones(3),), (0,))
    program, _ = trace(lambda x: [problem([x])], problem.point)
    assert len(program.guards) == 1


def test_equal_operations_stand_once() -> None:
    program, _ = trace(lambda x: [tg.sin(x) * tg.sin(x), tg.sin(x) + 1.0], [np.ones(3)])
    assert [entry.op.name for entry in program.entries] == ["sin", "mul", "add"]


def test_what_nothing_depends_on_is_left_out() -> None:
    program, _ = trace(lambda x: [tg.exp(x), tg.sin(x)][1:], [np.ones(3)])
    assert [entry.op.name for entry in program.entries] == ["sin"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.numpy(), "numpy()"),
        (lambda x: np.asarray(x), "numpy()"),
        (lambda x: x.unsqueeze_(0), "unsqueeze_()"),
        (lambda x: x + tg.rand(3), "random numbers"),
    ],
)
def test_what_leaves_the_trace_is_an_error_with_its_line(function: Any, words: str) -> None:
    with pytest.raises(TracingError, match=r"test_trace\.py") as error:
        trace(lambda x: [function(x)], [np.ones(3)])
    assert words in str(error.value)


# Program.trace -----------------------------------------------------------------------------------------------------


def scaled(x: Any, options: Any) -> Any:
    y = x * options["by"]
    return {"y": y, "slope": func.grad(lambda z: (z * z).sum())(y)} if y.sum() > 0 else y


def test_an_explicit_program_is_called_like_its_function() -> None:
    program = Program.trace(scaled, np.ones(3), {"by": 2.0})
    found = program(np.arange(1.0, 4.0), {"by": 3.0})
    np.testing.assert_array_equal(found["y"], [3.0, 6.0, 9.0])
    np.testing.assert_array_equal(found["slope"], [6.0, 12.0, 18.0])
    assert "guard" in str(program)
    assert "out0[0] = " in program.source()
    assert program.explain().startswith(f"{len(program.entries)} operations are fused")


def test_an_explicit_program_has_gradients() -> None:
    program = Program.trace(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0], requires_grad=True))
    x = tg.tensor([2.0, 3.0], requires_grad=True)
    program(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [12.0, 27.0])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones(4), {"by": 2.0}), r"but got float64\[4\], float64\[\]; trace another"),
        ((np.ones(3, np.float32), {"by": 2.0}), r"but got float32\[3\]"),
        ((np.ones(3), 2.0), r"containers .* but got float64\[3\], float64\[\]"),
        ((tg.ones(3, requires_grad=True), {"by": 2.0}), r"float64\[3\] that requires grad"),
        ((-np.ones(3), {"by": 2.0}), r"(?s)a value that Python looked at is another .*in scaled"),
    ],
)
def test_an_explicit_program_refuses_other_arguments(args: Any, message: str) -> None:
    program = Program.trace(scaled, np.ones(3), {"by": 2.0})
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            program(*args)
        assert program(np.ones(3), {"by": 1.0})["y"].sum() == 3.0


def test_a_program_of_a_compiled_function_is_called_if_it_is_all_of_it() -> None:
    function = tg.compile(lambda x: x * 2.0)
    function(np.ones(3))
    program = function.programs[0]
    assert (program(np.ones(3)) == 2.0).all()
    with pytest.raises(TypeError, match="part of a compiled function"):
        program.cleaned()(np.ones(3))


def _many_calls(x):
    y = x * 2.0 + 1 - 0.0  # a float; an integer that becomes one; 0, which compiled code leaves to Python
    for k in range(12):
        y = y * x + k % 3 / 3 - x * x  # what is computed twice
        y = y[...] if k % 2 else tg.exp(-y)  # a view; a residual that is the result
    with tg.no_grad():
        z = tg.tanh(y) * 2
        z = tg.tanh(y) * 2 + z
    n = (x > 0.5) & (y == y)  # truth values
    return [y.sum() + z.sum(), tg.where(n, y, float("nan")), (x.detach() * 3.0).sum()]


def _many_views(x):
    y = x
    for k in range(12):
        row, part, item = y[1], y[0:2], x[-1, 2]  # what is looked at twice; of a new value
        y = y * item + row + part[:, None].sum(1)[0] - y.T[1, 0] * y[:, 1:2][k % 2]
    y = y.clone()
    y[0] = 2.0 * x[1]  # from now on operands may be stale
    for _ in range(3):
        y = y * y[0] + x[0]
    return [y.sum(), y[0, 1:3]]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("function", "shape"),
    [(_many_calls, ()), (_many_calls, (3,)), (_many_calls, (2, 5)), (_many_views, (3, 4))],
)
def test_compiled_code_writes_down_what_python_does(monkeypatch, function, shape, requires_grad):
    given = [np.linspace(0.1, 1.0, int(np.prod(shape))).reshape(shape)]
    served = []
    serve = Calls.let_serve

    def counted(self):
        serve(self)
        compiled = self.call_traced

        def call(*args):
            result = compiled(*args)
            served.append(result is not None)
            return result

        self.call_traced = None if compiled is None else call

    def left_to_python(self):
        self.call_traced = None

    monkeypatch.setattr(calls, "FEW", 0)
    monkeypatch.setattr(Calls, "let_serve", counted)
    found = trace(function, given, [requires_grad])[0]
    monkeypatch.setattr(Calls, "let_serve", left_to_python)
    expected = trace(function, given, [requires_grad])[0]
    assert served.count(True) > 30
    assert str(found) == str(expected)
    assert [own.records for own in found.entries] == [own.records for own in expected.entries]
    assert [own.shape for own in found.layouts] == [own.shape for own in expected.layouts]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_rows_that_are_like_another_one(requires_grad):
    x = tg.tensor(np.arange(24.0).reshape(4, 6)[:, ::2], requires_grad=requires_grad)

    def chosen(x):
        rows = [x[k] * float(k + 2) for k in (0, 2, -1, 1, -4)]
        columns = [x[:, k] * float(k + 1) for k in (1, 0, -1, 2)]
        parts = [x[1:, k] for k in (0, 2)] + [x[k, 1] for k in (3, -2)] + [x[None, k] for k in (1, 3)]
        return sum((own**2).sum() for own in (*rows, *columns, *parts))

    for _ in range(2):
        found, expected = tg.compile(chosen)(x), chosen(x)
        assert found.item() == pytest.approx(expected.item(), rel=1e-14)
        if requires_grad:
            (own,), (other,) = tg.autograd.grad(found, x), tg.autograd.grad(expected, x)
            np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-14)
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        tg.compile(lambda x: x[1] + x[0] + x[4])(x)


def test_writes_through_rows_that_are_like_another_one():
    def written(x):
        y = x * 1.0
        rows = [y[k] for k in range(4)]
        for k, row in enumerate(rows):
            row *= float(k)
        return y * y

    x = np.arange(1.0, 13.0).reshape(4, 3)
    np.testing.assert_allclose(tg.compile(written)(tg.tensor(x)).numpy(), (x * np.arange(4.0)[:, None]) ** 2)


def test_what_a_forward_raises_ends_a_trace_of_compiled_calls():
    def f(x):
        y = x * 2.0
        for _ in range(3):
            y = y * x
        return [y * tg.ones(7)]

    with pytest.raises(RuntimeError, match="broadcast"):
        trace(f, [np.ones(3)])
    assert len(trace(lambda x: [x * 2.0], [np.ones(3)])[0].entries) == 1


def chain(x: Any) -> Any:
    for _ in range(3):
        x = tg.tanh(tg.exp(-tg.sin(x)) + x[::1] * 2.0)
    return x.sum() + (x * x).mean()


def test_large_values_that_nobody_looks_at_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).normal(size=10_000)
    computed: list[str] = []
    forward = gateway.forward

    def noting(op: Any, bound: Any, layouts: Any, **options: Any) -> Any:
        computed.extend([op.name] if options.get("show") is None else [])
        return forward(op, bound, layouts, **options)

    monkeypatch.setattr(gateway, "forward", noting)
    program, _ = trace(lambda x: (tg.func.grad(chain)(x),), [x])
    assert not {"sin", "cos", "exp", "tanh", "sum"} & set(computed)
    monkeypatch.undo()
    found = replay(program, [tg.tensor(x)])[0][0].numpy()
    np.testing.assert_allclose(found, tg.func.grad(chain)(tg.tensor(x)).numpy(), rtol=1e-12, atol=1e-14)


def test_large_values_are_computed_when_python_looks_at_them() -> None:
    def f(x: Any) -> Any:
        y = tg.exp(x).reshape(2, -1)
        part, turned = y[0], y.T
        total = turned.sum() + part.detach().sum()
        if part.max() > 2.0:
            return total * 2.0 + part[5]
        return total / 3.0 - float(turned[0, 1].detach())

    compiled = tg.compile(tg.func.value_and_grad(f))
    for scale in (0.1, 5.0, 0.2, 4.0):
        x = scale * np.random.default_rng(1).uniform(size=10_000)
        for own, right in zip(compiled(x), tg.func.value_and_grad(f)(tg.tensor(x)), strict=True):
            np.testing.assert_allclose(own, right.numpy(), rtol=1e-12)

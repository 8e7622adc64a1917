"""Programs with effects as pure functions: for Numba, C, and files, where there are no tensors to write to."""

import pickle

import numba
import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.program import Program

X = np.random.default_rng(0).standard_normal((4, 3))
Y = np.ones((4, 2))


def training_step(optimizer):
    tg.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = optimizer(model.parameters(), lr=0.1)

    @tg.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(tg.tensor(X), tg.tensor(Y))
    return step, model


@pytest.mark.parametrize("optimizer", [tg.optim.SGD, tg.optim.Adam])
def test_training_steps_run_without_python_as_in_eager_code(optimizer):
    step, model = training_step(optimizer)
    (program,), state = step.programs, step.state()
    ways = [program.functional(), Program.parse(program.text()), pickle.loads(pickle.dumps(program))]
    alone = step.njit

    @numba.njit
    def train(x, y, state, turns):
        loss, state, grads = alone(x, y, state)
        for _ in range(turns - 1):
            loss, state, grads = alone(x, y, state)
        return loss, state, grads

    results = [train(X, Y, state, 5)]
    for way in ways:
        own = state
        for _ in range(5):
            loss, own, grads = way(X, Y, own)
        results.append((loss, own, grads))
    before = [own.copy() for own in state]
    for _ in range(5):
        loss = step(tg.tensor(X), tg.tensor(Y))
    for one, two in zip(before, state, strict=True):
        np.testing.assert_array_equal(one, two)  # the pure ones have changed nothing
    for value, own, grads in results:
        assert value == loss.item()
        for one, two in zip(own, step.state(), strict=True):
            np.testing.assert_array_equal(one, two)
        for one, parameter in zip(grads, model.parameters(), strict=True):
            np.testing.assert_array_equal(one, parameter.grad.numpy())


def test_what_is_only_written_to_and_arguments_with_names():
    last, total = tg.zeros(2), tg.zeros(())

    def note(x, *, scale):
        last.copy_(x * scale)
        total.add_(x.sum())
        return {"y": x - scale}

    compiled = tg.compile(note)
    compiled(np.ones(2), scale=2.0)
    (program,) = compiled.programs
    result, state, grads = program.functional()(np.array([1.0, 4.0]), program.state(), scale=3.0)
    np.testing.assert_array_equal(result["y"], [-2.0, 1.0])
    assert grads == ()
    found = sorted([np.asarray(own).tolist() for own in state], key=str)
    assert found == sorted([7.0, [3.0, 12.0]], key=str)
    assert (last.tolist(), total.item()) == ([2.0, 2.0], 2.0)


def test_a_program_without_effects_is_its_own_form():
    program = Program.trace(lambda x: x * x, 2.0)
    assert program.functional() is program
    assert program.state() == ()


def test_what_has_no_pure_form_says_why():
    def doubled(x):
        x.mul_(2.0)
        return x.sum()

    def noisy(x):
        return x + tg.rand(3)

    for function, words in ((doubled, "doubled .* writes to its arguments"), (noisy, "noisy .* draws random numbers")):
        compiled = tg.compile(function)
        compiled(tg.ones(3))
        program = compiled.programs[0]
        for refused in (program.functional, program.text, lambda c=compiled: c.njit, lambda p=program: p.c("there")):
            with pytest.raises(TypeError, match=words):
                refused()


def cube_root(a):
    return tg.func.custom_root(
        lambda x: x**3 - a, 1.5, lambda f, x: tg.exp(tg.log(a) / 3), lambda g, y: y / g(tg.ones(()))
    )


def test_roots_in_files_have_values_and_no_derivative():
    for function in (tg.func.grad(cube_root), cube_root):
        program = Program.trace(function, 8.0)
        same = Program.parse(program.text())
        assert same(8.0) == program(8.0)
        assert same(27.0) == program(27.0)
    x = tg.tensor(8.0, requires_grad=True)
    program = Program.trace(cube_root, x)
    with pytest.raises(NotImplementedError, match="save the program of the derivative"):
        Program.parse(program.text())(x).backward()


def sines(x):
    return tg.func.scan(lambda c, r: (1.1 * r * tg.sin(c), c), x, tg.linspace(0.9, 1, 100))[1].sum()


@pytest.mark.parametrize("function", [sines, tg.func.value_and_grad(sines)])
def test_loops_back_from_checkpoints_come_back_from_files(function):
    compiled = tg.compile(function, memory=80)
    compiled(0.3)
    (program,) = compiled.programs
    same = Program.parse(program.text())
    assert same == program
    assert same.memory() == program.memory()
    assert same(0.4) == compiled(0.4)
    if function is not sines:
        text = program.text()
        assert "back(" in text
        start = text.index("checkpoints=back(")
        for old, new in ((", True, ", ", False, "), ("(0,)", "(7,)"), (", 100,", ", 90,")):
            broken = text[:start] + text[start:].replace(old, new, 1)
            if broken != text:
                with pytest.raises(ValueError, match="line"):
                    Program.parse(broken)


def test_a_recorded_loop_of_which_turns_are_computed_again_comes_back():
    compiled = tg.compile(sines, memory=80)
    x = tg.tensor(0.3, requires_grad=True)
    compiled(x)
    (program,) = compiled.programs
    same = Program.parse(program.text())
    assert same == program
    same(x).backward()
    assert x.grad.item() == pytest.approx(tg.func.grad(sines)(0.3).item(), rel=1e-12)

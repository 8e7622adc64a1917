"""What programs written for other versions of PyTorch, or with arguments by name, ask for; found by running some."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


def shapes_by_name(T: Any) -> Any:
    x = T.ones(2)
    made = [getattr(T, name)(size=(2, 3)) for name in ("zeros", "ones", "empty", "rand", "randn")]
    made += [getattr(x, name)(size=[2]) for name in ("new_zeros", "new_ones", "new_empty")]
    return [tuple(own.shape) for own in made], [own.tolist() for own in T.zeros(size=(4,)).split(split_size=3)]


def sequences_that_are_no_lists(T: Any) -> Any:
    class Squares:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, place: int) -> int:
            if place >= 3:
                raise IndexError
            return place * place

    given = deque([1.5, 2.0]), range(3), Squares(), [deque([1, 2]), [3, 4]], deque()
    return [T.tensor(own).tolist() for own in given], T.as_tensor(deque([2])).tolist()


def numbers_in_texts(T: Any) -> Any:
    x = T.tensor(1.5, requires_grad=True)
    return f"{x} {x * 2} {x:.2f} {T.tensor(3):03d} {T.tensor(True)} {T.tensor([1.5])} {T.nn.Parameter(T.tensor(2.0))}"


def a_gradient_penalty(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    (slope,) = T.autograd.grad(
        outputs=(x**3).sum(),
        inputs=x,
        grad_outputs=T.ones((), dtype=T.float64),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )
    (slope.sum() - 1).square().backward()
    with pytest.warns(FutureWarning, match="only_inputs"):
        T.autograd.grad((x * x).sum(), x, None, None, False, False)
    return x.grad.tolist(), T.autograd.grad(x.sum(), [x], None, False, False, True, True)[0].tolist()


def older_names_of_gradients(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_variables"):
        T.autograd.backward([x * 3], grad_variables=[T.ones(2)])
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
        T.autograd.backward([x * 3], [T.ones(2)], grad_variables=[T.ones(2)])
    return x.grad.tolist()


def variables(T: Any) -> Any:
    Variable = T.autograd.Variable
    x = T.ones(2, requires_grad=True)
    y = Variable(x * 2)
    shared = T.zeros(2)
    Variable(shared).add_(1)
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(x, volatile=True)
    for wrong in ([1.0], 3.0):
        with pytest.raises(TypeError, match="Variable data has to be a tensor, but got"):
            Variable(wrong)
    with pytest.raises(RuntimeError, match="can require gradients"):
        Variable(T.tensor([1]), requires_grad=True)
    own = Variable(x.data, requires_grad=True)
    (own * own).sum().backward()
    return (
        isinstance(x, Variable), isinstance(3, Variable), y.requires_grad, y.is_leaf, y.grad_fn, shared.tolist(),
        own.grad.tolist(), Variable().tolist(), T.autograd.variable.Variable is Variable,
    )  # fmt: skip


@pytest.mark.parametrize(
    "program",
    [shapes_by_name, sequences_that_are_no_lists, numbers_in_texts, a_gradient_penalty, older_names_of_gradients,
     variables],
)  # fmt: skip
def test_on_both(program: Callable[[Any], Any]) -> None:
    assert program(tg) == program(torch)


def test_a_text_of_several_numbers_takes_no_format() -> None:
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{tg.ones(2):.2f}"


def test_a_shape_is_given_once() -> None:
    with pytest.raises(TypeError, match="must be tuple of ints"):
        tg.zeros(2, size=(3,))


def test_graph_attention_as_it_is_written() -> None:
    """A program that shapes by name broke."""
    found = []
    for T in (tg, torch):
        T.set_default_dtype(T.float64)
        try:
            weight, a = (T.nn.Parameter(T.zeros(size=size)) for size in ((3, 2), (4, 1)))
            for param in (weight, a):
                param.data = T.tensor(np.cos(np.arange(param.numel())).reshape(tuple(param.shape)))
            nodes = T.tensor(np.sin(np.arange(12.0)).reshape(4, 3))
            adjacency = T.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
            values = T.mm(nodes, weight)
            scores = T.nn.functional.leaky_relu(values @ a[:2] + (values @ a[2:]).T, 0.2)
            shares = T.softmax(T.where(adjacency > 0, scores, -9e15 * T.ones_like(scores)), dim=1)
            T.nn.functional.elu(shares @ values).square().sum().backward()
            found.append([weight.grad.numpy(), a.grad.numpy()])
        finally:
            T.set_default_dtype(T.float64 if T is tg else T.float32)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)

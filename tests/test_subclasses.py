"""Subclasses of Tensor are tensors: they get gradients, and results of operations on them are plain tensors."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg


class Parameter(tg.Tensor):
    """A leaf with a name of its own."""

    def __init__(self, data, name=""):
        super().__init__(data)
        self.requires_grad_()
        self.name = name


@pytest.fixture
def p():
    return Parameter([1.0, 2.0, 3.0], "p")


PROGRAMS = {
    "method": lambda p: (p * p).sum(),
    "number": lambda p: (2.0 * p - p / 3 + p**2).sum(),
    "array": lambda p: (np.ones(3) * p + np.sin(p)).sum(),
    "function": lambda p: tg.sin(p).sum() + tg.exp(input=p)[1],
    "index": lambda p: (p[1:] * p[:-1]).sum() + p[tg.tensor([0, 0])].sum() + p[0],
    "sequence": lambda p: (tg.cat([p, p]) * tg.stack((p, p)).reshape(-1)).sum(),
    "product": lambda p: p @ p + tg.einsum("i,i->", p, p),
    "structure": lambda p: (tg.flip(p.reshape(3, 1).expand(3, 2), (0,)) * p.unsqueeze(1)).sum() + p.mean(),
    "composite": lambda p: p.softmax(0)[0] + p.var() + tg.nn.functional.mse_loss(p, tg.zeros(3)),
    "choice": lambda p: tg.where(p > 1.5, p, p * 2).sum() + p.max() + p.clamp(0, 2).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(p, name):
    program, x = PROGRAMS[name], tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(2):
        y = program(p)
        assert type(y) is tg.Tensor
        y.backward()
        program(x).backward()
    np.testing.assert_array_equal(p.grad.numpy(), x.grad.numpy())
    assert type(p.grad) is tg.Tensor
    (slope,) = tg.autograd.grad(program(p), p, create_graph=True)
    (expected,) = tg.autograd.grad(program(x), x, create_graph=True)
    np.testing.assert_array_equal(slope.detach().numpy(), expected.detach().numpy())
    for own, other in ((slope, p), (expected, x)):
        if own.requires_grad:
            own.sum().backward(inputs=[other])
    np.testing.assert_array_equal(p.grad.numpy(), x.grad.numpy())


def test_autograd_entry_points(p):
    p.backward(Parameter([1.0, 2.0, 3.0]))
    assert p.grad.tolist() == [1, 2, 3]
    (p * 2).backward(Parameter([1.0, 1.0, 1.0]), inputs=p)
    assert p.grad.tolist() == [3, 4, 5]
    y = p * 2
    z = y * 3
    assert tg.autograd.grad([z], {"y": y, "p": p}, [Parameter([1.0, 1.0, 1.0])])["p"].tolist() == [6, 6, 6]
    rows = tg.autograd.grad(p * 2, p, Parameter(np.eye(3).tolist()), is_grads_batched=True)[0]
    assert rows.tolist() == (2 * np.eye(3)).tolist()
    p.grad = Parameter([0.0, 0.0, 0.0]).requires_grad_(False)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2, 2]
    assert (p.is_leaf, p.grad_fn) == (True, None)
    assert (p * p).grad_fn.next_functions[0][0].variable is p


def test_hooks(p):
    seen = []
    p.register_hook(lambda g: seen.append(type(g)) or Parameter((g * 2).tolist()).detach())
    p.register_post_accumulate_grad_hook(lambda t: seen.append(t is p))
    y = p * p
    y.retain_grad()
    y.register_hook(lambda g: Parameter((g * 5).tolist()))
    y.sum().backward()
    assert seen == [tg.Tensor, True]
    assert p.grad.tolist() == [20, 40, 60]
    assert y.grad.tolist() == [5, 5, 5]
    seeds = []
    z = p * 2
    z.register_hook(lambda g: seeds.append(type(g)))
    tg.autograd.grad(z, p, Parameter([1.0, 1.0, 1.0]), create_graph=True)
    assert seeds == [tg.Tensor]


def test_writes_in_place(p):
    with tg.no_grad():
        p -= 1
        p.mul_(2)
    assert type(p) is Parameter
    assert p.tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        p += 1
    q = Parameter([0.0, 0.0, 0.0]).requires_grad_(False)
    q[0] = p[1] * 2
    q += p
    assert type(q) is Parameter
    q.sum().backward()
    assert p.grad.tolist() == [1, 3, 1]
    y = (p * p).sum()
    with tg.no_grad():
        p += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_view_of_one_is_noticed(p):
    q = Parameter([0.0, 0.0, 0.0]).requires_grad_(False)
    view = q[1:]
    q += p * 2
    assert view.requires_grad
    (view * tg.tensor([1.0, 10.0])).sum().backward()
    assert p.grad.tolist() == [0, 2, 20]


def test_no_grad(p):
    with tg.no_grad():
        assert not (p * p).requires_grad
    assert not p.detach().requires_grad


def test_an_optimizer(p):
    optimizer = tg.optim.SGD([p], lr=0.5)
    (p * p).sum().backward()
    optimizer.step()
    assert p.tolist() == [0, 0, 0]


def test_copies(p):
    p.grad = tg.ones(3)
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)), copy.copy(p)):
        assert type(twin) is Parameter
        assert (twin.tolist(), twin.name, twin.requires_grad) == ([1, 2, 3], "p", True)
        (twin * 2).sum().backward()
    assert copy.deepcopy(p).grad.tolist() == [1, 1, 1]
    assert p.grad.tolist() == [1, 1, 1]


def test_their_plans_are_found_by_compiled_code(monkeypatch):
    from tapegrad.ops.table import gateway

    q, calls, compute = Parameter([0.0] * 23), [], gateway.compute
    monkeypatch.setattr(gateway, "compute", lambda *args, **kw: calls.append(args) or compute(*args, **kw))
    for _ in range(5):
        (q * 2.0 + q).sum()
    assert 3 <= len(calls) <= 6  # each op twice: a plan that is new does not stand in the table

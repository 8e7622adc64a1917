"""`kernel_op` and `testing.check_op`: operations of users whose derivatives are compiled."""

import itertools
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.testing import GradcheckError, check_op

names = (f"op_of_test_{number}" for number in itertools.count())


@pytest.fixture
def name():
    """A name of an op, which does not stay in the table."""
    before = dict(op_table)
    yield next(names)
    for own in set(op_table) - set(before):
        del op_table[own]


def bump(x):
    return math.exp(-x * x) if x > -1 else x + 2


def bump_vjp(ct, x, out):
    return -2 * x * out * ct if x > -1 else ct


def pair(x, y):
    return x * math.log(y) if y > 1 else x * y - x


def pair_vjp(ct, x, y):
    if y > 1:
        return ct * math.log(y), ct * x / y
    return ct * (y - 1), ct * x


def test_no_python_runs_in_the_pass(name):
    op = tg.kernel_op(bump, bump_vjp, name=name)
    x = tg.tensor([0.5, -2.0, 1.0], requires_grad=True)
    y = op(x)
    assert np.allclose(y.tolist(), [math.exp(-0.25), 0, math.exp(-1)])
    y.sum().backward()
    assert np.allclose(x.grad.tolist(), [-math.exp(-0.25), 1, -2 * math.exp(-1)])
    assert y._node[2].python_operands == ()
    assert y.grad_fn.name().startswith("OpOfTest")


@pytest.mark.parametrize(("forward", "vjp"), [(bump, bump_vjp), (pair, pair_vjp)])
def test_checks_of_ops(name, forward, vjp):
    check_op(tg.kernel_op(forward, vjp, name=name, domain=(0.1, 3.0)))
    check_op(name)
    check_op(op_table[name])


def test_four_operands_and_compiled_functions(name):
    numba = pytest.importorskip("numba")

    @numba.njit
    def helped(x):
        return x * x

    @numba.njit
    def forward(a, b, c, d):
        return helped(a) * b + math.sin(c) * d

    @numba.njit
    def vjp(ct, a, b, c, d):
        return 2 * a * b * ct, helped(a) * ct, math.cos(c) * d * ct, math.sin(c) * ct

    op = tg.kernel_op(forward, vjp, name=name)
    check_op(op)
    x = tg.tensor([[1.0], [2.0]], requires_grad=True)
    op(x, 2.0, np.array([3.0, 4.0]), tg.ones(2)).sum().backward()
    assert x.grad.tolist() == [[8], [16]]


def test_operands_of_other_dtypes(name):
    op = tg.kernel_op(bump, bump_vjp, name=name)
    assert op(tg.tensor([1, 2])).dtype == np.float64
    assert op(2).item() == math.exp(-4)
    with pytest.raises(RuntimeError, match="not implemented for complex tensors"):
        op(tg.tensor([1j]))


def test_a_second_derivative_is_refused(name):
    op = tg.kernel_op(bump, bump_vjp, name=name)
    x = tg.tensor([0.5, 1.0], requires_grad=True)
    (slope,) = tg.autograd.grad(op(x).sum(), x, create_graph=True)
    assert np.allclose(slope.tolist(), [-math.exp(-0.25), -2 * math.exp(-1)])
    with pytest.raises(RuntimeError, match=r"^trying to differentiate twice an operation of kernel_op"):
        slope.sum().backward()


def test_wrong_functions_are_found(name):
    wrong = tg.kernel_op(bump, lambda ct, x, out: -x * out * ct, name=name, domain=(0.0, 1.0))
    with pytest.raises(GradcheckError):
        check_op(wrong)
    wrong = tg.kernel_op(bump, bump_vjp, name=next(names), oracle=np.cos)
    with pytest.raises(AssertionError, match="the value is not the oracle's"):
        check_op(wrong)
    with pytest.raises(ValueError, match="vjp takes ct and of"):
        tg.kernel_op(bump, lambda ct, z: ct * z, name=next(names))
    with pytest.raises(ValueError, match="vjp takes ct and of"):
        tg.kernel_op(bump, lambda x: x, name=next(names))
    with pytest.raises(ValueError, match="is taken"):
        tg.kernel_op(bump, bump_vjp, name="exp")
    with pytest.raises(ValueError, match="there is no op"):
        check_op(len)


def test_samples_of_the_users(name):
    shapes = []

    def oracle(x):
        shapes.append(x.shape)
        return np.where(x > -1, np.exp(-x * x), x + 2)

    check_op(tg.kernel_op(bump, bump_vjp, name=name, samples=[Sample(((5, 1),))], oracle=oracle))
    assert shapes == [(5, 1)]

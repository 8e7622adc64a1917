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
    """A name of an op."""
    return next(names)


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


def test_a_vjp_that_is_an_op_gives_second_derivatives(name):
    slope = tg.kernel_op(
        lambda g, x: 3 * g * x * x, lambda ct, g, x: (3 * x * x * ct, 6 * g * x * ct), name=next(names)
    )
    cube = tg.kernel_op(lambda x: x * x * x, slope, name=name)
    check_op(slope)
    check_op(cube)
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = cube(x)
    assert y._node[2].python_operands == ()
    (first,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), x)
    assert first.tolist() == [3, 12]
    assert second.tolist() == [6, 12]
    assert tg.func.jvp(cube, (x.detach(),), (tg.ones(2),))[1].tolist() == [3, 12]


def scan(x, decay, out):
    total = 0.0
    for i in range(len(x)):
        total = decay * total + x[i]
        out[i] = total


def scan_x(ct, decay, grad):
    total = 0.0
    for i in range(len(ct) - 1, -1, -1):
        total = decay * total + ct[i]
        grad[i] += total


def scan_decay(ct, decay, out, grad):
    total = 0.0
    for i in range(len(ct) - 1, 0, -1):
        total = decay * total + ct[i]
        grad[()] += total * out[i - 1]


SCAN = {
    "shape": lambda x, decay: x,
    "samples": [Sample(((5,), ())), Sample(((1,), ())), Sample(((0,), ()))],
    "domain": (0.2, 0.9),
}


def test_functions_of_arrays(name):
    op = tg.kernel_op(scan, (scan_x, scan_decay), name=name, **SCAN)
    check_op(op)
    x, decay = tg.tensor([1.0, 2.0, 4.0], requires_grad=True), tg.tensor(0.5, requires_grad=True)
    y = op(x, decay)
    assert y._node[2].python_operands == ()
    assert y.tolist() == [1, 2.5, 5.25]
    y.sum().backward()
    assert x.grad.tolist() == [1.75, 1.5, 1]
    assert decay.grad.item() == 4  # of decay + 2, and of decay**2 + 2 decay + 4
    assert op(np.array([1, 2]), 0.5).dtype == np.float64
    (slope,) = tg.autograd.grad(op(x, decay).sum(), decay, create_graph=True)
    with pytest.raises(RuntimeError, match=r"^trying to differentiate twice"):
        slope.backward()
    with pytest.raises(TypeError, match="takes 2 operands, x, decay, and got 1"):
        op(x)


def test_second_derivatives_of_functions_of_arrays(name):
    def squares(x, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i] += x[i, j] * x[i, j]

    def slope(g, x, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] += 2 * g[i] * x[i, j]

    def slope_g(ct, x, grad):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                grad[i] += 2 * ct[i, j] * x[i, j]

    def slope_x(ct, g, grad):
        for i in range(ct.shape[0]):
            for j in range(ct.shape[1]):
                grad[i, j] += 2 * g[i] * ct[i, j]

    slopes = tg.kernel_op(
        slope, (slope_g, slope_x), name=next(names), shape=lambda g, x: x, samples=[Sample(((2,), (2, 3)))]
    )
    op = tg.kernel_op(squares, slopes, name=name, shape=lambda x: x[:1], samples=[Sample(((2, 3),))])
    check_op(slopes)
    check_op(op)
    x = tg.rand(2, 3)
    hessian = tg.autograd.functional.hessian(lambda x: op(x).sum(), x)
    assert hessian.reshape(6, 6).tolist() == (2 * np.eye(6)).tolist()
    assert np.allclose(tg.func.jvp(op, (x,), (tg.ones(2, 3),))[1], 2 * x.sum(1))


def test_an_array_operand_without_gradient_keeps_its_dtype(name):
    def chosen(x, places, out):
        for i in range(len(places)):
            out[i] = x[places[i]]

    def back(ct, places, grad):
        for i in range(len(places)):
            grad[places[i]] += ct[i]

    op = tg.kernel_op(chosen, (back, None), name=name, shape=lambda x, places: places)
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True, dtype=tg.float32)
    y = op(x, np.array([2, 0, 2]))
    assert y.dtype == tg.float32
    assert y.tolist() == [3, 1, 3]
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="has no samples"):
        check_op(op)


def test_wrong_functions_of_arrays_are_found(name):
    def assigns(ct, decay, grad):
        total = 0.0
        for i in range(len(ct) - 1, -1, -1):
            total = decay * total + ct[i]
            grad[i] = total

    wrong = tg.kernel_op(scan, (assigns, scan_decay), name=name, **SCAN)
    with pytest.raises(AssertionError, match="which is used elsewhere too, is no sum"):
        check_op(wrong)
    with pytest.raises(ValueError, match="vjp is a function for each of"):
        tg.kernel_op(scan, scan_x, name=next(names), shape=lambda x, decay: x)
    with pytest.raises(ValueError, match="1 functions in vjp for operands"):
        tg.kernel_op(scan, (scan_x,), name=next(names), shape=lambda x, decay: x)

    def doubled(x, out):
        y = x + x
        for i in range(len(x)):
            out[i] = y[i]

    op = tg.kernel_op(doubled, (None,), name=next(names), shape=lambda x: x)
    with pytest.raises(TypeError, match=r"doubled\(float64\[:\], float64\[:\]\) cannot be compiled"):
        op(np.ones(2))


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


def test_a_derivative_of_more_operands_than_an_entry_keeps_is_an_error() -> None:
    def product(a, b, c, d, e, f, g, h, i):  # type: ignore[no-untyped-def]
        return a * b * c * d * e * f * g * h * i

    def slopes(ct, a, b, c, d, e, f, g, h, i, out):  # type: ignore[no-untyped-def]
        return tuple([ct * out / own for own in (a, b, c, d, e, f, g, h, i)])

    tensors = [tg.tensor([2.0], requires_grad=True) for _ in range(9)]
    with pytest.raises(ValueError, match="derivatives can take the first 8 operands"):
        tg.kernel_op(product, slopes)(*tensors)


def test_what_our_front_end_does_not_know_numba_compiles():
    def sawtooth(x, width):
        y = 0.0
        for k in (1.0, 2.0, 3.0):  # a loop over a tuple
            y += (x * k) % width
        return y

    def back(ct, x, width):
        return ct * (6.0 if round(x) != 100 else 0.0), ct * 0.0

    x = tg.tensor(np.linspace(-2, 2, 7), requires_grad=True)
    y = tg.kernel_op(sawtooth, back, name="sawtooth_by_numba")(x, 1.5)
    y.sum().backward()
    expected = sum((x.detach().numpy() * k) % 1.5 for k in (1.0, 2.0, 3.0))
    np.testing.assert_allclose(y.detach().numpy(), expected)
    assert x.grad.tolist() == [6.0] * 7

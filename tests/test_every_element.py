"""Every element counts once: at each place of a line, for lengths on both sides of whatever loops are unrolled by."""

import numpy as np
import pytest

import tapegrad as tg

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 64, 65, 129]

# Of an array, along its dimension 1; each with what NumPy says.
OPS = {
    "sum": (lambda x: tg.sum(x, 1), lambda x: x.sum(1)),
    "mean": (lambda x: tg.mean(x, 1), lambda x: x.mean(1)),
    "prod": (lambda x: tg.prod(x, 1), lambda x: x.prod(1)),
    "amax": (lambda x: tg.amax(x, 1), lambda x: x.max(1)),
    "amin": (lambda x: tg.amin(x, 1), lambda x: x.min(1)),
    "max": (lambda x: tg.max(x, 1).values, lambda x: x.max(1)),
    "min": (lambda x: tg.min(x, 1).values, lambda x: x.min(1)),
    "argmax": (lambda x: tg.argmax(x, 1), lambda x: x.argmax(1)),
    "argmin": (lambda x: tg.argmin(x, 1), lambda x: x.argmin(1)),
    "var": (lambda x: tg.var(x, 1, correction=0), lambda x: x.var(1)),
    "logsumexp": (lambda x: tg.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1))),
    "softmax": (lambda x: tg.softmax(x, 1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "log_softmax": (lambda x: tg.log_softmax(x, 1), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "cumsum": (lambda x: tg.cumsum(x, 1), lambda x: x.cumsum(1)),
    "sort": (lambda x: tg.sort(x, 1).values, lambda x: np.sort(x, 1)),
    "matmul": (lambda x: x @ tg.arange(1.0, x.shape[1] + 1).to(x.dtype), lambda x: x @ np.arange(1.0, x.shape[1] + 1)),
}


def lines(n, dtype, sign):
    """Return n lines of n distinct elements, of which each has its largest at another place."""
    return (sign * (np.linspace(0.9, 1.1, n * n).reshape(n, n) + 3 * np.eye(n))).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OPS)
def test_along_lines(name, dtype):
    op, oracle = OPS[name]
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    for n in LENGTHS:
        for sign in (1, -1):
            if name == "prod" and n > 40:
                continue
            for array in (lines(n, dtype, sign), lines(n, dtype, sign).T):
                found = op(tg.tensor(array)).numpy()
                np.testing.assert_allclose(found, oracle(array.astype(np.float64)), rtol=tolerance, atol=tolerance)


def gradient(op, array, weights):
    x = tg.tensor(array, requires_grad=True)
    out = op(x)
    (out * tg.tensor(weights[: out.numel()].reshape(out.shape))).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("name", [name for name in OPS if not name.startswith("arg")])
def test_gradients_along_lines(name):
    op, oracle = OPS[name]
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 8, 9, 17):
        array, weights = lines(n, np.float64, 1), rng.random(n * n)
        found = gradient(op, array, weights)
        step = 1e-6
        expected = np.empty((n, n))
        for place in np.ndindex(n, n):
            sides = []
            for way in (step, -step):
                moved = array.copy()
                moved[place] += way
                out = oracle(moved)
                sides.append((out * weights[: out.size].reshape(out.shape)).sum())
            expected[place] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "sigmoid", "neg"])
def test_elementwise(name, dtype):
    function = getattr(tg, name)
    for n in (1, 3, 4, 7, 8, 9, 17, 33):
        values = np.linspace(0.5, 1.5, n).astype(dtype)
        x = tg.tensor(values, requires_grad=True)
        out = function(x)
        out.sum().backward()
        for place in range(n):
            one = tg.tensor(values[place], requires_grad=True)
            alone = function(one)
            alone.backward()
            assert out[place].item() == pytest.approx(alone.item(), rel=1e-6)
            assert x.grad[place].item() == pytest.approx(one.grad.item(), rel=1e-6)

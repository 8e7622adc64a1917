"""NumPy's functions on tensors: the values are NumPy's, and what has a gradient is recorded."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tests import checks

A = np.array([[1.0, 2.0], [3.0, 5.0]])
RECORDED = [
    "np.sin(t)", "a * t", "t * a", "np.add(t, 1)", "np.float64(2) * t", "t * np.float64(2)", "np.float64(2) - t",
    "np.int64(2) - t", "a - t", "a / t", "a @ t", "t @ a", "np.add.reduce(t, axis=0)", "np.add.reduce(t, axis=None)",
    "np.maximum.reduce(t)", "np.sum(t)", "np.sum(t, axis=1, keepdims=True)", "np.sum(t, axis=(0, 1))", "np.mean(t, 0)",
    "np.mean(t, axis=0, dtype='f4')", "np.reshape(t, (4,))", "np.transpose(t)", "np.concatenate([t, a])",
    "np.concatenate([t, t], axis=1)", "np.stack([t, t])", "np.where(a > 1, t, 0)", "np.clip(t, 2, 3)", "np.max(t)",
    "np.amax(t, axis=0)", "np.amin(t)", "np.dot(t, t)", "np.matmul(t, t)", "np.squeeze(t[None])",
    "np.expand_dims(t, 0)",
    "np.expand_dims(t, (0, -1))", "np.broadcast_to(t, (3, 2, 2))", "np.ravel(t)", "np.swapaxes(t, 0, 1)",
    "np.moveaxis(t, 0, 1)", "np.exp(t)", "np.absolute(t)", "np.square(t)", "np.power(t, 2)", "np.var(t)",
    "np.outer(t[0], t[1])", "np.flip(t, 0)", "np.copy(t)", "np.maximum(t, 2)", "np.true_divide(1, t)", "np.positive(t)",
    "np.conjugate(t)",
    "np.add.accumulate(t)", "np.multiply.accumulate(t, axis=1)", "np.maximum.accumulate(t, axis=-1)",
    "np.minimum.accumulate(t)", "np.logaddexp.accumulate(t, axis=1)", "np.add.outer(t, a)", "np.multiply.outer(a, t)",
    "np.subtract.outer(t[0], a)", "np.logaddexp.outer(t, t)", "np.power.outer(t, a[0])",
    "np.sum(t, where=a > 2)", "np.sum(t, axis=0, where=a > 2, initial=5)", "np.prod(t, where=a > 2)",
    "np.mean(t, where=a > 2)", "np.mean(t, axis=0, keepdims=True, where=a > 1)", "np.max(t, initial=2.5)",
    "np.max(t, axis=1, where=a > 2, initial=-1)", "np.min(t, where=a > 2, initial=9.0)", "np.prod(t, initial=3.0)",
    "np.add.reduce(t, axis=1, where=a > 2)", "np.logaddexp.reduce(t, axis=None, where=a < 3)",
    "np.maximum.reduce(t, axis=0, initial=2.0)",
]  # fmt: skip
COMPOSED = [  # of functions that PyTorch has not, or with other arguments
    "np.astype(t, 'f4')", "t.astype('f8')", "np.full_like(t, t[1, 0])",
    "np.full_like(t, t[0], dtype='f4')",
    "np.lib.stride_tricks.sliding_window_view(t, 2, axis=1)", "np.lib.stride_tricks.sliding_window_view(t, (1, 2))",
    "np.lib.stride_tricks.sliding_window_view(t, (2, 1), axis=(-1, 0))",
    "np.block([[t, a], [np.ones((1, 2)), t[:1]]])", "np.block([t[0], 1.0])", "np.block(t)", "np.delete(t, 1)",
    "np.delete(t, slice(0, 1), axis=1)", "np.resize(t, (3, 2))", "np.matrix_transpose(t)", "np.round(t / 3, 1)",
    "np.linalg.matrix_transpose(t)", "np.linalg.outer(t[0], a[0])", "np.linalg.matmul(a, t)", "np.around(t)",
    "np.fix(-t / 2)", "np.nan_to_num(t * np.array([np.nan, np.inf]), nan=5)", "np.nanmin(t, axis=1, keepdims=True)",
    "np.nanmax(np.where(a == 2, np.nan, t), axis=0)", "np.cumulative_sum(t, axis=1)", "np.polyval(t[0], a)",
    "np.cumulative_sum(t[1], include_initial=True)", "np.cumulative_prod(t, axis=-2, include_initial=True)",
    "np.polyval([1.0, 2.0, 3.0], t * a)", "np.convolve(t[0], a.ravel())", "np.convolve(t.ravel(), t[1], 'same')",
    "np.convolve(a.ravel(), t.ravel()[:3], mode='same')", "np.convolve(t.ravel(), t[1], 'valid')",
    "np.linspace(t[0, 0], t[1, 1], 5)", "np.linspace(t, 9, 3, axis=-1)", "np.linspace(0, t[0], 4, endpoint=False)",
    "np.maximum.accumulate(t, 1)", "np.hypot.outer(a, t)",
    "np.add.outer([1.0, 2.0], t * a)", "np.degrees(t)", "np.radians(t)", "np.dot([1.0, 2.0], t * a)",
    "np.concatenate([t[0], [1.0]])", "np.sum(t, axis=())", "np.prod(t, axis=(), keepdims=True)",
    "np.add.reduce(t, axis=())", "np.mean(t, axis=(), where=a < 99)", "np.max(t, axis=(), initial=2)",
    "np.var(t, axis=())", "np.ravel(t, order='F')", "np.reshape(np.stack([t, a]), (2, -1), order='F')",
    "np.reshape(t, -1, order='F')", "(a > 1) @ t", "t @ a.astype('f4')", "np.dot(a.astype(int), t)",
    "np.matmul(t, a > 2)", "np.inner(a.astype('f4'), t)", "np.einsum('ij,kj->ik', a.astype(int), t)",
    "np.vdot(t, a.astype(int))", "np.tensordot(a > 1, t, 1)", "np.convolve(t[0], [True, False])",
    "np.linalg.solve(a.astype(int), t + 1)", "np.inner(t, [1.0, 2.0])", "np.outer([1.0, 2.0], t)",
    "np.kron([1.0, 2.0], t)", "np.dot(t, [t[0, 0], t[0, 1] * 2])",
    "np.tensordot(t, [1.0, 2.0], 1)", "np.vdot([[1.0, 2.0], [3.0, 4.0]], t)", "np.where(a > 1, t, [5, 6])",
    "np.einsum('ij,j', t, [1.0, 2.0])", "np.clip(t, [1.5, 2], a_max=[3, 4])", "np.append(t, [1.0])",
    "np.vstack([t, [1.0, 2.0]])", "np.hstack([t[0], [1.0, 2.0]])", "np.column_stack([t[0], [1.0, 2.0]])",
    "np.dstack([t, [[1.0, 2.0], [3.0, 4.0]]])", "np.stack([t[0], [1.0, t[1, 0]]])",
    "np.average(t, axis=0, weights=[1.0, 3.0])",
    "np.trapezoid([1.0, 4.0], t[0])", "np.trapezoid(t[0], x=[1.0, 4.0])", "np.polyval(t[0], [1.0, 2.0])",
    "np.cov(t[0], [1.0, 4.0])", "np.meshgrid(t[0], [1, 2])[0]",
    "np.cross(np.append(t[0], 1), [1, 2, 3])", "np.cross(np.eye(3), np.append(t[0], [1]))",
    "np.cross(np.ones((3, 2)), np.append(t, [[3, 4]], axis=0).T, axisa=0, axisc=0)",
    "np.linalg.cross(np.append(t, t[:1], 0), np.eye(3)[:, :2] * 2, axis=0)", "np.correlate(a.astype('f4')[0], t[1])",
    "np.bincount([0, 1, 1], weights=t.ravel()[:3].astype('f8'))",
]  # fmt: skip
PLAIN = [
    "np.argmax(t)", "np.argmin(t, axis=0)", "np.zeros_like(t)", "np.ones_like(t, dtype='i8')", "np.full_like(t, 3)",
    "np.zeros_like(t, shape=(3,))", "np.shape(t)", "np.ndim(t)", "np.size(t)", "np.allclose(t, a)",
    "np.array_equal(t, a)", "a > t", "t > a", "a == t", "np.isclose(t, a)", "np.count_nonzero(t)", "np.any(t > 1)",
    "t.astype(int)", "np.astype(t, 'i4')", "np.argwhere(t > 1)", "np.flatnonzero(t > 1)", "np.isin(t, [1.0, 4.0])",
    "np.triu_indices_from(t)", "np.tril_indices_from(t)", "np.diag_indices_from(t)", "np.argpartition(t[0], 1)",
]  # fmt: skip


@pytest.mark.parametrize("code", RECORDED + COMPOSED + PLAIN)
def test_values(code: str) -> None:
    t = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = eval(code, {"np": np, "a": A, "t": t})
    expected = eval(code, {"np": np, "a": A, "t": t.detach().numpy()})
    values = found.detach().numpy() if isinstance(found, tg.Tensor) else found
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert np.shape(values) == np.shape(expected)
    assert bool(getattr(found, "requires_grad", False)) == (code in RECORDED + COMPOSED)


SINGLE = [code for code in RECORDED + COMPOSED + PLAIN if not re.search(r"\ba\b|np\.float64|np\.int64|dtype", code)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "code", [*SINGLE, "np.full_like(t, 3, dtype='f8')", "np.empty_like(t, dtype='f8')", "np.empty_like(t)"]
)
def test_dtypes(code: str, dtype: str) -> None:
    t = tg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    found, expected = (eval(code, {"np": np, "t": values}) for values in (t, t.numpy()))
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.shape(found) == np.shape(expected)


def test_ufunc_at() -> None:
    """Additions to chosen elements, of which one may be chosen twice, are recorded."""
    t = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out, expected = t * 1, np.array([1.0, 2.0, 3.0])
    for add, key in ((np.add, [0, 0, 2]), (np.subtract, (np.array([1, 0, 1]),))):
        add.at(out, key, t)
        add.at(expected, key, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(out.detach().numpy(), expected)
    (out * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert t.grad is not None
    assert t.grad.tolist() == [1 + 1 - 10, 10 + 1 - 1, 100 + 100 - 10]


def test_masked_extremes_need_a_beginning() -> None:
    with pytest.raises(ValueError, match="does not have an identity, so to use a where mask"):
        np.max(tg.tensor(A), where=A > 1)


def test_slopes_of_what_a_mask_leaves_out_are_zero() -> None:
    t = tg.tensor(A, requires_grad=True)
    (np.sum(t * t, where=A > 2) + np.mean(t, where=A > 2) + np.max(t, where=A < 4, initial=0.0)).backward()
    assert t.grad is not None
    assert t.grad.tolist() == [[0.0, 0.0], [6.0 + 0.5 + 1.0, 10.0 + 0.5]]


def test_a_number_of_a_tensor_that_requires_grad_warns() -> None:
    """As in PyTorch: the number is not recorded, nor is what an array takes."""
    t, out = tg.tensor(2.0, requires_grad=True), np.zeros(3)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar may lead"):
        assert float(t) == 2.0
    with pytest.warns(UserWarning, match="Consider using tensor.detach"):
        out[0] = t
    assert out[0] == float(t.detach()) == t.item() == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [float(own) for own in (t, t * 2)] == [2.0, 4.0]


def test_an_array_of_tensors_that_require_grad_says_what_joins_them() -> None:
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    for several in ([t, t], [t[0], t[1]]):
        with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad.*np.stack"):
            np.array(several)
    assert np.stack([t, t]).requires_grad


@pytest.mark.parametrize("code", [code for code in COMPOSED if "f4" not in code and "np.inf" not in code])
def test_gradients(code: str) -> None:
    problem = checks.Problem(
        lambda t: eval(code, {"np": np, "a": A, "t": t}), (np.array([[1.1, 2.2], [3.1, 4.3]]),), (0,)
    )
    checks.check_gradient(problem)
    checks.check_second(problem)


def test_what_was_nan_has_no_gradient() -> None:
    t = tg.tensor([np.nan, np.inf, 2.0], requires_grad=True)
    np.sum(np.nan_to_num(t)).backward()
    assert t.grad is not None
    assert t.grad.tolist() == [0.0, 0.0, 1.0]


def test_astype_is_a_copy() -> None:
    t = tg.tensor([1.0, 2.0])
    t.astype(float)[0] = 5.0
    assert t.tolist() == [1.0, 2.0]
    assert t.astype(float, copy=False) is t


def test_gradient() -> None:
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    np.sum(np.array([3.0, 4.0]) * np.square(t)).backward()
    assert t.grad is not None
    assert t.grad.tolist() == [6.0, 16.0]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("np.add.at(a.copy(), [0], t[:1])", r"np\.add\.at does not work on tensors of an array"),
        ("np.add(t, 1, where=a > 1)", r"np\.add does not work on tensors with where="),
        ("np.spacing(t)", r"np\.spacing"),
        ("np.linspace(t, 2, dtype='f4')", r"np\.linspace does not work on tensors with dtype="),
    ],
)
def test_unsupported(code: str, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}.*; use"):
        eval(code, {"np": np, "a": A, "t": tg.tensor(A)})


def test_out() -> None:
    out: Any = np.zeros((2, 2))
    out += tg.tensor(A)
    np.testing.assert_array_equal(out, A)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        out += tg.tensor(A, requires_grad=True)


@pytest.mark.parametrize(
    "code",
    [
        "np.sum(t, axis=0, out=o[0])", "np.mean(t, 1, out=o[1])", "np.clip(t, 2, 3, out=o)", "np.round(t, out=o)",
        "np.cumsum(t, axis=1, out=o)", "np.concatenate([t[:1], t[1:]], out=o)", "np.median(t, axis=0, out=o[0])",
        "np.take(t, [1, 0], axis=1, out=o)", "np.choose([0, 1], [t[0], t[1]], out=o[0])", "np.ptp(t, axis=0, out=o[1])",
        "np.dot(t, t, out=o)", "np.argmax(t, axis=1, out=i)", "np.std(t, out=np.ravel(o)[0:1].reshape(()))",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_tensor", [False, True])
def test_out_of_functions(code: str, is_tensor: bool) -> None:
    """The result is written to an array or a tensor of its shape, which is returned, where no gradient is wanted."""
    outs = [{"o": np.zeros((2, 2)), "i": np.zeros(2, int)} for _ in range(2)]
    expected = eval(code, {"np": np, "t": A, **outs[0]})
    given = {name: tg.from_numpy(own) if is_tensor else own for name, own in outs[1].items()}
    found = eval(code, {"np": np, "t": tg.tensor(A), **given})
    assert isinstance(found, tg.Tensor) == is_tensor
    np.testing.assert_array_equal(found, expected)
    for name, out in outs[0].items():
        np.testing.assert_array_equal(outs[1][name], out)
    with pytest.raises(RuntimeError, match=r"np\.\w+\(\): functions with out=... arguments don't support automatic"):
        eval(code, {"np": np, "t": tg.tensor(A, requires_grad=True), **given})


def test_what_out_must_be() -> None:
    t = tg.tensor(A)
    for out in (np.zeros(3), tg.zeros(3), tg.zeros(2, 2)):
        with pytest.raises(ValueError, match=r"np\.sum\(\): out has the wrong shape"):
            np.sum(t, axis=0, out=out)
    with pytest.raises(TypeError, match="Cannot cast array data from"):
        np.sum(t, axis=0, out=np.zeros(2, int))
    out = tg.ones(2, requires_grad=True) * 1
    square = out * out
    with pytest.raises(RuntimeError, match="don't support automatic"):
        np.sum(t, axis=0, out=out)
    array = np.ones(2)
    square = tg.from_numpy(array).requires_grad_() ** 2
    np.sum(t, axis=0, out=array)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_functions_of_scipy_in_python_say_what_to_call() -> None:
    x = tg.tensor([0.5, 0.25], requires_grad=True)
    for function in (scipy.special.softmax, scipy.special.log_softmax, scipy.special.logsumexp):
        with pytest.raises(RuntimeError, match=r"SciPy's functions in Python, .* call tapegrad's"):
            function(x)
        name = function.__name__
        np.testing.assert_allclose(getattr(tg, name)(x, 0).detach().numpy(), function(x.detach()))


class Meters:
    """A class that knows tensors, as those of units and of lazy arrays do."""

    def __radd__(self, other: Any) -> str:
        return f"{other.tolist()} + meters"

    __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = __radd__
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __radd__


@pytest.mark.parametrize("operator", [*"+-*/%@&|^", "//", "**", "<<", ">>", "+=", "-=", "*="])
def test_operators_of_other_classes(T: Any, operator: str) -> None:
    for _ in range(2):  # before the op's code is loaded, and after
        names = {"x": T.tensor([1, 2]), "y": Meters()}
        exec(f"x {operator} y" if "=" in operator else f"x = x {operator} y", names)
        assert names["x"] == "[1, 2] + meters"
        T.tensor([1, 2]) + T.tensor([3, 4])


def test_what_python_asks_of_sequences(T: Any) -> None:
    x = T.tensor([1.0, 2.0, 3.0])
    assert reversed(x).tolist() == [3.0, 2.0, 1.0]
    assert reversed(T.tensor(2.0)).tolist() == 2.0
    assert (2 in x, 5.0 in x, T.tensor(3.0) in x) == (True, False, True)


def test_functions_that_change_nothing_return_their_argument(T: Any) -> None:
    x, y = T.tensor([1.0, 2.0], requires_grad=True), T.ones(2, 3)
    for _ in range(2):
        assert x.flatten() is x
        assert T.flatten(y, 1) is y
        first, second = T.broadcast_tensors(x, T.tensor(1.0))
        assert first is x
        assert second.tolist() == [1.0, 1.0]
        assert x.ravel() is not x
        assert x.flatten().is_leaf
    assert T.tensor(1.0).flatten().shape == (1,)


def test_products_and_weights_of_other_dtypes() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = tg.tensor(x, requires_grad=True)
    whole = np.ones((3, 2), np.int64)
    for found, expected in (
        (np.linalg.multi_dot([t, whole, np.eye(2)]), np.linalg.multi_dot([x, whole, np.eye(2)])),
        (np.cov(t, aweights=[1, 2, 3]), np.cov(x, aweights=[1, 2, 3])),
        (np.cross(t, whole.T.repeat(2, 1)[:, :3].astype(np.float32)), np.cross(x, np.ones((2, 3)))),
    ):
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)

"""NumPy's and SciPy's functions in the forms in which programs of HIPS autograd and MyGrad call them, on tensors.

Each is a call, with random arrays x and y of the shapes above it: its value is NumPy's, and its gradients are
those of finite differences.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.testing import gradcheck

special = pytest.importorskip("scipy.special")

_CONDITION = np.array([True, False, True])
_TABLE = np.linspace(-1.0, 1.0, 24).reshape(4, 6)
_WEIGHTS = np.linspace(0.5, 2.0, 12).reshape(3, 4)


def _parts(value: Any) -> Any:
    """Return a real number for each complex one."""
    return np.real(value) ** 2 + 2 * np.imag(value)


def _symmetric(x: Any) -> Any:
    return (x + np.swapaxes(x, -1, -2)) / 2


def _positive(x: Any) -> Any:
    return np.matmul(x, np.swapaxes(x, -1, -2)) + 3 * np.eye(x.shape[-1])


_NAMES: Final = {
    "np": np, "sp": special, "op": operator, "W": _WEIGHTS, "C": _CONDITION, "T": _TABLE,
    "parts": _parts, "sym": _symmetric, "psd": _positive, "window": np.lib.stride_tricks.sliding_window_view,
}  # fmt: skip

_REDUCTIONS: Final = """
    sum prod mean var std max min amax amin median average nansum nanmean nanmax nanmin nanprod nanvar nanstd ptp
    nanmedian
"""
_AXES: Final = ("", "axis=0", "axis=-1", "axis=(0, 1)", "axis=0, keepdims=True", "axis=None, keepdims=True")
_UNARY: Final = """
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2 expm1 log log2 log10 log1p sqrt square
    abs absolute fabs deg2rad rad2deg degrees radians real imag conj conjugate real_if_close angle reciprocal
    negative positive cbrt sinc i0 nan_to_num sign floor ceil rint trunc fix around
"""
_WITHOUT_SLOPE: Final = {"floor", "ceil", "rint", "trunc", "fix", "around", "sign", "imag", "angle"}
_BINARY: Final = """
    add subtract multiply divide true_divide power float_power logaddexp logaddexp2 remainder mod fmod maximum
    minimum fmax fmin arctan2 hypot copysign
"""
_OPERATORS: Final = ("add", "sub", "mul", "truediv", "pow", "mod")
_SPECIAL: Final = """
    psi digamma gamma gammaln rgamma j0 j1 y0 y1 i0 i1 erf erfc erfinv erfcinv logit expit ndtr log_ndtr ndtri entr
"""

# Shapes of x and y, and calls.
_CALLS: Final = """
(3, 4):
    np.var(x, ddof=1); np.var(x, ddof=2, axis=1, keepdims=True); x.std(axis=1, ddof=1); x.sum(axis=1, keepdims=True);
    np.average(x, axis=1, weights=W); np.cumsum(x); np.cumsum(x, axis=1); np.cumprod(x, axis=0); np.nancumsum(x);
    np.diff(x); np.diff(x, n=2, axis=0); np.gradient(x, 2.0, axis=0); np.stack(np.gradient(x));
    np.trapezoid(x, dx=0.5); np.add.reduce(x, axis=0); np.maximum.reduce(x, axis=1); np.multiply.accumulate(x);
    np.percentile(x, 30); np.quantile(x, [0.2, 0.7], axis=1); np.sort(x); np.sort(x, axis=None); np.partition(x, 2);
    np.ediff1d(x); parts(np.fft.fft(x, n=5, axis=0)); parts(np.fft.fft2(x)); parts(np.fft.ifftn(x));
    parts(np.fft.rfftn(x)); np.fft.ifftshift(x, axes=1); np.fft.irfft2(np.fft.rfft2(x));
    np.fft.irfftn(np.fft.rfftn(x)); parts(np.fft.fftn(x, axes=(0,))); np.fft.hfft(x); parts(np.fft.ihfft(x))
(2, 3, 4):
    np.transpose(x); np.transpose(x, (2, 0, 1)); np.transpose(x, axes=[-1, 0, 1]); x.transpose((1, 0, 2)); x.T;
    x.transpose(2, 0, 1); np.moveaxis(x, (0, 1), (1, 0)); np.swapaxes(x, 0, 2); np.rollaxis(x, 2, 1); np.flip(x);
    np.flip(x, axis=(0, 2)); np.rot90(x, k=-1, axes=(1, 2)); np.roll(x, 2); np.roll(x, (1, 2), axis=(0, 1));
    np.reshape(x, (6, 4)); np.reshape(x, -1); x.reshape(6, -1); np.ravel(x); x.ravel(); x.flatten(); np.fliplr(x);
    np.expand_dims(x, (0, 3)); np.repeat(x, 2); np.repeat(x, [1, 0, 2], axis=1); np.tile(x, (2, 1, 1, 3));
    np.tril(x, k=1); np.triu(x, k=-1); np.diagonal(x, axis1=-1, axis2=-2); np.trace(x, offset=1, axis1=1, axis2=2);
    np.take(x, [0, 1, 0], axis=1); np.take(x, [3, 5]); np.delete(x, 1, axis=1); np.insert(x, 1, 2.0, axis=1);
    np.compress(C, x, axis=1); np.resize(x, (3, 5)); np.broadcast_to(x, (2, 2, 3, 4));
    np.clip(x, a_min=0.3, a_max=0.7); np.pad(x, 1); np.pad(x, ((1, 2), (0, 1), (2, 0)), mode="constant");
    np.pad(x, 1, mode="reflect"); np.flipud(x); x[1, 0, 2]; x[::-1, 1:, :]; x[[0, 1, 0]]; x[1, 1:, [1, 3]]; x[..., 1];
    x[:, None, 2]; x[x > 0.5]; x[-1]
():
    np.atleast_1d(x); np.atleast_2d(x); np.atleast_3d(x); np.stack([x, 1.0, x * 2]); np.full_like(np.ones(3), 1.0) * x
(3,):
    np.atleast_2d(x); np.atleast_3d(x); np.diag(x, k=1); np.diagflat(x); np.vander(x, 3); x.dot(x); x.copy();
    x[[0, 0]]; np.interp(x, [0.0, 0.5, 1.0], [1.0, 4.0, 2.0]);
    np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]); np.select([x > 0.5], [x * 2], default=0.0);
    np.where(x > 0.5, x, 0.0); np.extract(C, x); np.append([1.0, 2.0], x)
(2, 1, 3):
    np.squeeze(x); np.squeeze(x, axis=1); x.squeeze(); x.astype(np.float64); x.mean(0); x.prod(); x.cumsum(axis=2)
(4, 4):
    np.diag(x); np.diag(x, k=1); np.vsplit(x, 2)[0]; np.hsplit(x, [1, 3])[1]; x.trace(); x.diagonal();
    np.diag(np.diag(x))
(7,):
    np.split(x, [2, 5])[1]; np.array_split(x, 3)[0]; window(x, 3); np.interp([0.2, 5.5], np.arange(7.0), x);
    divmod(x, 0.7)[1]
(4, 5):
    window(x, (2, 2)); np.cov(x); np.cov(x, rowvar=False, ddof=0); np.corrcoef(x);
    np.apply_along_axis(lambda v: v * v, 0, x)
(2, 3) (2, 3):
    np.concatenate((x, y, x)); np.concatenate([x, y], 1); np.concatenate([x, y], axis=None);
    np.stack([x, y], axis=-1); np.vstack([x, y]); np.hstack([x, y]); np.dstack([x, y]); np.column_stack([x, y]);
    np.append(x, y, axis=1); sum([x, y]); np.inner(x, y); np.vdot(x, y); np.cross(x, y); np.tensordot(x, y);
    np.kron(x, y); np.einsum("...,...->...", x, y)
(2, 2) (2, 2):
    np.block([[x, np.eye(2)], [y, x]]); np.where(T[:2, :2] > 0, x, y); np.divmod(x, y)[1]; np.add.outer(x, y)
(3,) (2,):
    np.stack(np.meshgrid(x, y)); np.stack(np.meshgrid(x, y, indexing="ij")); np.outer(x, y); np.append(x, y);
    np.kron(x, y)
(3, 1) (2,):
    np.broadcast_arrays(x, y)[0] * y; np.subtract.outer(x, y)
() ():
    np.linspace(x, y, 5); np.logspace(x, y, 4); np.dot(x, y); np.geomspace(x, y + 2, 4); np.append(x, y)
(5,) (3,):
    np.convolve(x, y); np.convolve(x, y, mode="same"); np.convolve(x, y, "valid"); np.correlate(x, y, "full")
() (3, 4):
    np.dot(x, y); np.dot(y, x)
(3,) (3, 4):
    np.dot(x, y); np.matmul(x, y); np.tensordot(x, y, axes=[(0,), (0,)]); np.polyval(x, y)
(2, 3) (3, 4):
    np.dot(x, y); np.matmul(x, y); x @ y; np.tensordot(x, y, 1); np.tensordot(x, y, axes=(1, 0));
    np.einsum("ij,jk->ik", x, y); np.einsum(x, [0, 1], y, [1, 2], [0, 2]); np.linalg.multi_dot([x, y])
(2, 3, 4) (2, 4, 3):
    np.dot(x, y); np.matmul(x, y); np.einsum("...jk,...kl->...jl", x, y)
(2, 3, 4) (2, 2, 3):
    np.tensordot(x, y, axes=[(1, 0), (2, 1)])
(3, 4, 4) (4, 4, 3):
    np.einsum("ijk,lji->lki", x, y); np.einsum("ijk,lji,lli->lki", x, y, y); np.einsum("ij,jk", x[0], y[0])
(3, 3):
    np.einsum("ii", x); np.einsum("ii->i", x); np.einsum("ij->", x); np.linalg.inv(psd(x)); np.linalg.det(x);
    np.linalg.pinv(psd(x)); np.linalg.eigh(sym(x), "U")[0]; np.linalg.eigvalsh(sym(x)); np.linalg.matrix_power(x, 3);
    np.linalg.cond(psd(x)); np.linalg.norm(x, ord=1); np.linalg.norm(x, ord=-np.inf); np.linalg.norm(x, ord=2);
    np.linalg.norm(x, ord="nuc")
(2, 3, 3):
    np.linalg.cholesky(psd(x)); np.linalg.slogdet(psd(x))[1]; np.linalg.inv(psd(x)); np.linalg.eigh(psd(x))[0]
(5, 3):
    np.linalg.svd(x, full_matrices=False)[1]; np.linalg.svd(x, compute_uv=False);
    np.linalg.svd(x, full_matrices=False)[0] ** 2; np.linalg.qr(x)[1]; np.linalg.norm(x); np.linalg.norm(x, axis=1);
    np.linalg.qr(x, "r"); np.std(x, axis=1, where=T[:1, :3] < -0.85); np.var(x, where=T[:3, :1].T < 0.5, ddof=1);
    np.std(x, axis=1, keepdims=True, where=C); np.var(x, axis=1, where=C, mean=np.full((5, 1), 0.25));
    np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)); np.var(x * (1 + 2j), axis=1, where=C, correction=1);
    np.linalg.norm(x, ord=4, axis=0, keepdims=True)
(6,):
    np.linalg.norm(x, ord=3); np.linalg.norm(x, ord=np.inf); np.linalg.norm(x, 1);
    np.polyfit([0, 1, 2, 3, 4, 5], x, 2); parts(np.fft.fft(x)); parts(np.fft.ifft(x, norm="ortho"));
    parts(np.fft.rfft(x)); np.fft.irfft(np.fft.rfft(x) * 2); np.fft.fftshift(x)
(3, 4, 2):
    np.linalg.norm(x, axis=(0, 1)); np.linalg.norm(x, ord="nuc", axis=(0, 1));
    np.linalg.norm(x, ord="fro", axis=(0, 1))
(3, 3) (3, 2):
    np.linalg.solve(psd(x), y); np.linalg.lstsq(psd(x), y, rcond=None)[0]
(2, 3, 3) (3,):
    np.linalg.solve(psd(x), y); np.linalg.tensorsolve(psd(x[0]), [1.0, 2.0, 3.0]) * y
(4,):
    sp.jn(2, x); sp.yn(2, x); sp.jv(1.5, x); sp.iv(3.2, x); sp.ive(3.2, x); sp.kv(1.2, x); sp.gammainc(1.0, x);
    sp.gammaincc(1, x)
(4,) (4,):
    sp.beta(x, y); sp.betaln(x, y); sp.betainc(1.5, 2.5, x); sp.xlogy(x, y); sp.gammainc(x, y)
"""
# Results without a slope.
_CONSTANT: Final = (
    "sp.gammasgn(x)",
    "np.floor_divide(x, 0.3)",
    "np.heaviside(x, 0.5)",
    "np.divmod(x, 0.3)[0]",
    "np.signbit(x)",
)


def _calls() -> Iterator[tuple[str, tuple[tuple[int, ...], ...]]]:
    for shapes, calls in re.findall(r"^(\(.*):\n((?:    .*\n)+)", _CALLS, re.MULTILINE):
        of = eval(f"({shapes.replace(') (', '), (')},)")
        yield from ((call.strip(), of) for call in calls.split(";"))
    for name in _REDUCTIONS.split():
        yield from ((f"np.{name}(x, {axes})", ((3, 4),)) for axes in _AXES)
    for shape in ((), (2, 3)):
        yield from ((f"np.{name}(x)", (shape,)) for name in _UNARY.split())
        yield from ((f"sp.{name}(x)", (shape,)) for name in _SPECIAL.split())
    for shapes in (((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (3,))):
        yield from ((f"np.{name}(x, y)", shapes) for name in _BINARY.split())
        yield from ((f"op.{name}(x, y)", shapes) for name in _OPERATORS)
    for name in _OPERATORS:
        yield from ((f"op.{name}({pair})", ((3,),)) for pair in ("x, 2.5", "2.5, x", "np.array([1.5, 2.0, 3.0]), x"))


_ALL: Final = list(dict.fromkeys(_calls()))


@pytest.mark.filterwarnings("ignore:The use of `x.T` on tensors:UserWarning")
@pytest.mark.parametrize("part", range(12))
def test_value_and_gradient(part: int) -> None:
    """A twelfth of the calls: as tests of their own they would take longer to be handed out than to run."""
    for number, (call, shapes) in enumerate(_ALL[part::12]):
        rng = np.random.default_rng(number)
        arrays = [np.asarray(rng.uniform(0.2, 0.9, shape)) for shape in shapes]

        def function(*values: Any, call: str = call) -> Any:
            return eval(call, _NAMES | dict(zip("xy", values, strict=False)))

        tensors = [tg.tensor(array, requires_grad=True) for array in arrays]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", (DeprecationWarning, np.exceptions.ComplexWarning))
                value, expected = function(*tensors), function(*arrays)
                assert isinstance(value, tg.Tensor)
                np.testing.assert_allclose(value.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
                if not any(f".{name}(" in call for name in _WITHOUT_SLOPE):
                    assert value.requires_grad
                    assert gradcheck(function, tensors, eps=1e-4, atol=1e-4, fast_mode=True)
        except Exception as error:
            error.add_note(f"{call} with shapes {shapes}")
            raise


@pytest.mark.parametrize("call", _CONSTANT)
def test_constant(call: str) -> None:
    x = tg.tensor([0.25, -0.5, 1.75], requires_grad=True)
    value = eval(call, _NAMES | {"x": x})
    np.testing.assert_array_equal(value.detach(), eval(call, _NAMES | {"x": x.detach().numpy()}))
    if value.requires_grad:
        assert tg.autograd.grad(value.sum(), x, materialize_grads=True)[0].tolist() == [0, 0, 0]


def test_signs_of_the_gamma_function() -> None:
    points = np.array([0.0, -0.0, -1.0, -2.5, np.inf, -np.inf, np.nan, -1e300])
    np.testing.assert_array_equal(special.gammasgn(tg.tensor(points)), special.gammasgn(points))


@pytest.mark.parametrize("function", [np.median, np.nanmedian, np.quantile, np.percentile])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_quantiles_of_nothing(function: Any, axis: Any) -> None:
    """Medians of nothing are nan; of no lines nothing is left. Quantiles of nothing raise, in NumPy an IndexError."""
    values, q = np.zeros((0, 3)), () if "median" in function.__name__ else (0.5,)
    x = tg.tensor(values, requires_grad=True)
    if q and axis != 1:
        with pytest.raises(RuntimeError, match="input tensor must be non-empty"):
            function(x, *q, axis=axis)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found, expected = function(x, *q, axis=axis), function(values, *q, axis=axis)
    np.testing.assert_array_equal(found.detach(), expected)
    assert found.requires_grad


def test_wrong_axes() -> None:
    x = tg.ones(3, 4)
    with pytest.raises(ValueError, match="axis to squeeze out which has size not equal to one"):
        np.squeeze(x, axis=0)
    assert np.squeeze(tg.ones(3, 1, 1), axis=(1, -1)).shape == (3,)
    for axis in (3, -4, (0, 9)):
        with pytest.raises(IndexError, match="Dimension out of range"):
            np.expand_dims(x, axis)
    with pytest.raises(RuntimeError, match="multiple times"):
        np.expand_dims(x, (0, 0))
    with pytest.raises(RuntimeError, match="at least one-dimensional"):
        np.diff(tg.tensor(1.0))
    with pytest.raises(IndexError, match="Dimension out of range"):
        np.diff(x, axis=2, prepend=0)


def test_add_at_takes_lists() -> None:
    start, added = tg.zeros(3, requires_grad=True), tg.ones(2, requires_grad=True)
    y = start * 2
    np.add.at(y, [0, 0, 1], [1.0, 2.0, 3.0])
    np.subtract.at(y, [2, 2], added)
    np.subtract.at(y, [1, 2], [0.5, 1])
    assert y.tolist() == [3.0, 2.5, -3.0]
    y.sum().backward()
    assert (start.grad.tolist(), added.grad.tolist()) == ([2.0, 2.0, 2.0], [-1.0, -1.0])
    with pytest.raises(TypeError, match=r"np\.spacing\.at does not work on tensors; use"):
        np.spacing.at(y, [0])

"""Linear algebra, products and convolution beside PyTorch: values, gradients, second gradients; and what is special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.values import distinct, invertible, numbers, with_zeros
from tests.checks import assert_close
from tests.torch_programs import torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def derivatives(module: Any, function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return a value, its gradients and the gradients of a function of these, by tapegrad or by PyTorch."""
    leaves = [module.tensor(array).requires_grad_() for array in arrays]
    out = function(module, *leaves)
    loss = (out * out.conj()).real.sum() if out.is_complex() else (out * out).sum()
    first = module.autograd.grad(loss, leaves, create_graph=True)
    size = sum((own * own.conj()).real.sum() if own.is_complex() else (own * own).sum() for own in first)
    second = module.autograd.grad(size, leaves)
    return [value.detach().resolve_conj().numpy() if module is torch else value.detach().numpy()
            for value in (out, *first, *second)]  # fmt: skip


def spectral(module: Any, x: Any, part: str) -> Any:
    values, vectors = module.linalg.eigh((x + x.mH) / 2)
    return values if part == "values" else (vectors * values.exp()) @ vectors.mH


MATRICES = {
    "inv": (lambda m, x: m.linalg.inv(x), [(invertible, (3, 3))]),
    "inv of a batch": (lambda m, x: m.linalg.inv(x), [(invertible, (2, 3, 3))]),
    "solve": (lambda m, a, b: m.linalg.solve(a, b), [(invertible, (3, 3)), (numbers, (3, 2))]),
    "solve of vectors": (lambda m, a, b: m.linalg.solve(a, b), [(invertible, (2, 3, 3)), (numbers, (2, 3))]),
    "solve of one vector": (lambda m, a, b: m.linalg.solve(a, b), [(invertible, (2, 3, 3)), (numbers, (3,))]),
    "solve with batches": (lambda m, a, b: m.linalg.solve(a, b), [(invertible, (2, 1, 3, 3)), (numbers, (4, 3, 2))]),
    "solve from the right": (
        lambda m, a, b: m.linalg.solve(a, b, left=False), [(invertible, (2, 3, 3)), (numbers, (4, 3))]
    ),
    "eigenvalues": (lambda m, x: spectral(m, x, "values"), [(distinct, (2, 3, 3))]),
    "exponential": (lambda m, x: spectral(m, x, "both"), [(distinct, (3, 3))]),
    "cumsum": (lambda m, x: m.cumsum(x, 1), [(numbers, (2, 4))]),
    "prod": (lambda m, x: m.prod(x, 0), [(numbers, (4, 3))]),
    **{f"prod with {n} zeros": (lambda m, x: m.prod(x, 1), [(with_zeros(n), (2, 5))]) for n in range(4)},
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", MATRICES)
def test_as_torch(name: str, dtype: Any) -> None:
    function, operands = MATRICES[name]
    rng = np.random.default_rng(3)
    arrays = [draw(shape, dtype, rng) for draw, shape in operands]
    assert_close(derivatives(tg, function, arrays), derivatives(torch, function, arrays), 1e-10)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = [
    ((2, 3, 5, 6), (4, 3, 3, 3), True, {}),
    ((3, 5, 6), (4, 3, 2, 3), False, {"padding": "same"}),
    ((2, 3, 5, 6), (2, 3, 3, 2), True, {"stride": 2, "padding": 1}),
    ((2, 3, 7, 6), (2, 3, 3, 2), False, {"stride": (1, 2), "padding": (0, 2), "dilation": (2, 1)}),
    ((2, 4, 5, 5), (6, 2, 3, 3), True, {"groups": 2, "padding": "valid"}),
    ((1, 3, 4, 4), (3, 1, 1, 1), True, {"groups": 3}),
    # On shifted images: of several groups, blocks of channels, blocks of rows, and columns that are not joined.
    ((2, 8, 5, 6), (9, 8, 3, 3), True, {"padding": 1}),
    ((8, 5, 6), (8, 8, 1, 1), False, {}),
    ((2, 16, 7, 6), (20, 8, 2, 3), True, {"padding": (1, 2), "dilation": (1, 2), "groups": 2}),
    ((2, 70, 4, 5), (9, 70, 3, 2), True, {"padding": "same"}),
    ((1, 8, 70, 80), (8, 8, 3, 3), True, {}),
    ((1, 33, 40, 36), (32, 33, 3, 3), False, {"padding": 1}),
]


@needs_torch
@pytest.mark.parametrize(("image", "kernel", "bias", "options"), CONVOLUTIONS)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_convolution(image: Any, kernel: Any, bias: bool, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    arrays = [numbers(shape, float, rng) for shape in (image, kernel, *([kernel[:1]] if bias else []))]

    def function(module: Any, *operands: Any) -> Any:
        return module.nn.functional.conv2d(*operands, **options)

    assert_close(derivatives(tg, function, arrays), derivatives(torch, function, arrays), 1e-9)


@needs_torch
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_convolution_of_what_is_not_finite(which: int, value: float) -> None:
    """An infinite number meets no zeros but those around images."""
    rng = np.random.default_rng(4)
    arrays = [numbers((2, 8, 5, 6), float, rng), numbers((8, 8, 2, 2), float, rng)]
    arrays[which][1, 2, -1, -1] = value

    def function(module: Any, x: Any, w: Any) -> Any:
        return module.nn.functional.conv2d(x, w) + 2 * module.nn.functional.conv2d(x, w)  # gradients are added to

    found = []
    for module, make in ((tg, tg.from_numpy), (torch, torch.from_numpy)):
        x, w = (make(array).requires_grad_() for array in arrays)
        function(module, x, w).backward(make(np.ones((2, 8, 4, 5))))
        found.append((x.grad.numpy(), w.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@needs_torch
@pytest.mark.parametrize(
    ("image", "kernel", "options"),
    [
        ((1, 3, 4, 5), (2, 2, 2, 2), {}),
        ((1, 3, 4, 5), (2, 3, 0, 2), {"padding": 1}),
        ((1, 3, 4, 5), (2, 3, 5, 5), {}),
        ((1, 4, 4, 5), (3, 2, 1, 1), {"groups": 2}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"bias": [1.0, 1.0, 1.0]}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"stride": 0}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"stride": (1, 1, 1)}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"padding": -1}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"dilation": 0}),
        ((1, 3, 4, 5), (2, 3, 2, 2), {"padding": "same", "stride": 2}),
    ],
)
def test_convolution_refused(image: Any, kernel: Any, options: dict[str, Any]) -> None:
    """What PyTorch refuses raises, with the beginning of its message."""
    words = []
    for module in (torch, tg):
        given = {name: module.tensor(own) if name == "bias" else own for name, own in options.items()}
        with pytest.raises(RuntimeError) as error:
            module.nn.functional.conv2d(module.ones(image), module.ones(kernel), **given)
        words.append(str(error.value))
    assert words[1][:25] == words[0][:25]


VIEWS = {
    "whole": lambda x: x,
    "turned": lambda x: x.swapaxes(-1, -2),
    "rows apart": lambda x: x[..., ::2, :],
    "columns apart": lambda x: x[..., ::2],
    "reversed": lambda x: x[..., ::-1],
    "one row": lambda x: x[..., :1, :],
    "one column": lambda x: x[..., :1],
    "first": lambda x: x[0],
}
VECTORS = {
    "whole": lambda x: x[:6],
    "apart": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "one number": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("matrix", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_products_with_vectors(matrix: str, vector: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = VIEWS[matrix](rng.normal(size=(3, 4, 6)).astype(dtype))
    if dtype == "complex128":
        x = x * (1 + 0.5j)
    for column in (True, False):
        v = VECTORS[vector](np.linspace(-1, 2, 12, dtype=dtype))[: x.shape[-1 if column else -2]]
        product = np.einsum("...ij,j->...i" if column else "...ij,i->...j", x, v)
        a, b = tg.from_numpy(x).requires_grad_(), tg.from_numpy(v).requires_grad_()
        ct = rng.normal(size=product.shape).astype(dtype)
        for grads in (1, 2):  # the second is added to the first
            out = a @ b if column else b @ a
            assert_close(out.detach().numpy(), product)
            out.backward(tg.from_numpy(ct))
            spread = np.expand_dims(ct, -1 if column else -2)
            outer = spread * np.expand_dims(v.conj(), -2 if column else -1)
            inner = (spread * x.conj()).sum(-2 if column else -1)
            inner = inner.reshape(-1, v.size).sum(0)
            assert_close(a.grad.numpy(), grads * outer)
            assert_close(b.grad.numpy(), grads * inner)


def test_equal_eigenvalues() -> None:
    """Of eigenvalues gradients are finite; of vectors that are not determined they are not."""
    x = tg.tensor(np.diag([1.0, 1.0, 3.0]), requires_grad=True)
    values, vectors = tg.linalg.eigh(x)
    (gradient,) = tg.autograd.grad((values**2).sum(), x, retain_graph=True)
    assert_close([gradient.numpy()], [np.diag([2.0, 2.0, 6.0])])
    (gradient,) = tg.autograd.grad(vectors[0, 2], x, retain_graph=True)
    expected = np.zeros((3, 3))
    expected[0, 2] = expected[2, 0] = 0.25 * np.sign(vectors[2, 2].item())
    assert_close([gradient.numpy()], [expected])
    (gradient,) = tg.autograd.grad(vectors[1, 0], x)
    assert not np.isfinite(gradient.numpy()).all()


def test_triangles() -> None:
    x = np.array([[1.0, 5.0], [2.0, 3.0]])
    for uplo in ("L", "U", "l"):
        found = tg.linalg.eigh(tg.tensor(x), UPLO=uplo)
        assert_close([found.eigenvalues.numpy()], [np.linalg.eigh(x, uplo).eigenvalues])


def test_by_numpys_names() -> None:
    rng = np.random.default_rng(5)
    a, b = invertible((2, 3, 3), float, rng), numbers((3, 2), float, rng)
    x = tg.tensor(a, requires_grad=True)
    assert_close([np.linalg.inv(x).detach().numpy()], [np.linalg.inv(a)])
    for other in (b, b[:, 0], numbers((2, 3), float, rng).T):
        assert_close([np.linalg.solve(x, other).detach().numpy()], [np.linalg.solve(a, other)])
    assert_close([np.linalg.eigh(x).eigenvalues.detach().numpy()], [np.linalg.eigh(a).eigenvalues])
    for axis in (None, 0, -1):
        assert_close([np.cumsum(x, axis=axis).detach().numpy()], [np.cumsum(a, axis=axis)])
        assert_close([np.prod(x, axis=axis).detach().numpy()], [np.prod(a, axis=axis)])


def test_logit_by_scipys_name() -> None:
    special = pytest.importorskip("scipy.special")
    x = tg.tensor([0.25, 0.5], requires_grad=True)
    assert_close([special.logit(x).detach().numpy()], [special.logit(x.detach().numpy())])
    x.logit(eps=0.3).sum().backward()
    assert_close([x.grad.numpy()], [np.array([0.0, 4.0])])  # type: ignore[union-attr]


@pytest.mark.parametrize("error", [RuntimeError, np.linalg.LinAlgError, tg.linalg.LinAlgError])
def test_singular(error: type[Exception]) -> None:
    x = tg.tensor(np.eye(2))
    tg.linalg.inv(x)
    tg.linalg.solve(x, x)
    for _ in range(2):  # a plan is known
        with pytest.raises(error, match="singular"):
            tg.linalg.inv(x * 0)
        with pytest.raises(error, match="singular"):
            tg.linalg.solve(x * 0, x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matrices_of_samples_are_what_they_say(dtype: str) -> None:
    rng = np.random.default_rng(0)
    drawn = numbers((100,), dtype, rng)
    for part in (drawn.real, drawn.imag) if dtype == "complex128" else (drawn,):
        assert -1.0 <= part.min() < -0.8
        assert 0.8 < part.max() <= 1.0
    for _ in range(5):
        sizes = np.linalg.svd(invertible((4, 4), dtype, rng), compute_uv=False)
        np.testing.assert_allclose(sizes, [1.75, 1.5, 1.25, 1.0])
        matrix = distinct((4, 4), dtype, rng)
        np.testing.assert_allclose(matrix, matrix.conj().T, atol=1e-12)
        assert np.diff(np.linalg.eigvalsh(matrix)).min() > 0.6


def large(kind: str, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = numbers(shape, dtype, rng)
    x = x + shape[-1] * np.eye(*shape[-2:], dtype=dtype) if kind == "square" else x
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if kind == "columns" else x


@needs_torch
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["solve", "few", "batch", "columns", "inv", "det", "qr", "wide qr", "lstsq", "wide"])
def test_large_matrices_as_torch(name: str, dtype: Any) -> None:
    """From 24 rows on LAPACK is called for each matrix, stored by rows or by columns."""
    a, b = large("square", dtype, (30, 30)), numbers((30, 9), dtype, np.random.default_rng(6))
    wide = large("", dtype, (26, 40))
    function, arrays = {
        "solve": (lambda m, a, b: m.linalg.solve(a, b), [a, b]),
        "few": (lambda m, a, b: m.linalg.solve(a, b[:, 0]), [a, b]),
        "batch": (lambda m, a, b: m.linalg.solve(a, b), [a[[3, 0, *range(1, 3), *range(4, 30)]], np.stack([b, 2 * b])]),
        "columns": (lambda m, a, b: m.linalg.solve(a.mT, b), [a, b]),
        "inv": (lambda m, a: m.linalg.inv(a) + m.linalg.inv(a.mT), [a]),
        "det": (lambda m, a: m.linalg.det(a / 30), [a]),
        "qr": (lambda m, a: m.linalg.qr(a)[1].abs(), [a]),
        "wide qr": (lambda m, a: m.linalg.qr(a)[1].abs(), [wide]),
        "lstsq": (lambda m, a, b: m.linalg.lstsq(a, b)[0], [wide.T.copy(), large("", dtype, (40, 3))]),
        "wide": (lambda m, a, b: m.linalg.lstsq(a, b)[0], [wide, b[:26]]),
    }[name]  # fmt: skip
    tolerance = 2e-2 if np.finfo(dtype).bits == 32 else 1e-7
    for own, other in zip(derivatives(tg, function, arrays), derivatives(torch, function, arrays), strict=True):
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=tolerance * abs(other).max())


@needs_torch
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("n", [5, 30])
def test_determinants_and_factors_of_any_size_as_torch(n: int, dtype: Any) -> None:
    """Also of a singular matrix, and of a batch, whose rows are exchanged each in its own order."""
    a, b = numbers((n, n), dtype, np.random.default_rng(7)), numbers((3, n, n), dtype, np.random.default_rng(8))
    b = b + np.eye(n, dtype=dtype)
    tolerance = 1e-2 if np.finfo(dtype).bits == 32 else 1e-7
    for name in ("det", "slogdet"):
        for own in (a, a.T, np.zeros_like(a), b):
            ours, theirs = getattr(tg.linalg, name)(own), getattr(torch.linalg, name)(torch.tensor(own))
            for x, y in zip(ours, theirs, strict=True) if name == "slogdet" else [(ours, theirs)]:
                np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=tolerance)
    functions = {
        "slogdet": lambda m, a: m.linalg.slogdet(a)[1],
        "lu": lambda m, a: m.linalg.lu(a)[1] * 2 + m.linalg.lu(a)[2],
        "solve": lambda m, a: m.linalg.lu_solve(*m.linalg.lu_factor(a), a + 1),
        "adjoint": lambda m, a: m.linalg.lu_solve(*m.linalg.lu_factor(a), a + 1, adjoint=True),
        "left": lambda m, a: m.linalg.lu_solve(*m.linalg.lu_factor(a), a + 1, left=False),
    }
    for function in functions.values():
        for own in (a + n * np.eye(n, dtype=dtype)[::-1], b + n * np.eye(n, dtype=dtype)[::-1]):
            for x, y in zip(derivatives(tg, function, [own]), derivatives(torch, function, [own]), strict=True):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * abs(y).max())


@pytest.mark.parametrize("pivot", [0, -1, 4, 2**31 - 1])
def test_pivots_are_rows(pivot: int) -> None:
    """LAPACK would write anywhere."""
    factors = tg.tensor(np.eye(3))
    pivots = tg.tensor(np.array([1, pivot, 3], np.int32))
    for call in (lambda: tg.lu_unpack(factors, pivots), lambda: tg.linalg.lu_solve(factors, pivots, factors)):
        with pytest.raises(RuntimeError, match="LU_pivots should be at most 3 numbers from 1 to 3"):
            call()


def test_large_singular_matrices_are_errors() -> None:
    a, b = np.ones((2, 30, 30)), np.ones((30, 9))
    for call in (lambda: tg.linalg.inv(a), lambda: tg.linalg.solve(a, b), lambda: tg.linalg.solve(a[0], b[:, 0])):
        with pytest.raises(tg.linalg.LinAlgError, match="singular"):
            call()


@needs_torch
def test_least_squares_of_low_rank() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(9, 3)) @ rng.normal(size=(3, 6)), rng.normal(size=(9, 2))
    own, other = tg.linalg.lstsq(tg.tensor(a), tg.tensor(b)), torch.linalg.lstsq(torch.tensor(a), torch.tensor(b))
    assert own.rank.item() == other.rank.item() == 3
    np.testing.assert_allclose(own.solution, other.solution.numpy(), rtol=1e-8)


@needs_torch
@pytest.mark.parametrize("driver", [None, "gelsd"])
@pytest.mark.parametrize(
    "shapes", [((1, 3, 2), (3, 1)), ((1, 2, 3), (2, 1)), ((3, 3, 2), (3, 1)), ((1, 1, 3, 2), (1, 3, 1))]
)
def test_least_squares_of_a_matrix_that_might_be_vectors(shapes: Any, driver: str | None) -> None:
    """The batch is that of vectors, as in PyTorch: a matrix of three rows has three solutions, which are the same."""
    a, b = (np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(shapes))
    results = []
    for m in (tg, torch):
        operands = [m.from_numpy(own.copy()).requires_grad_() for own in (a, b)]
        found = m.linalg.lstsq(*operands, driver=driver)
        found.solution.sum().backward()
        results.append([*(own.detach().numpy() for own in found), *(own.grad.numpy() for own in operands)])
    for own, other in zip(*results, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("function", [tg.linalg.svdvals, tg.linalg.eigvalsh, lambda x: tg.linalg.eigvals(x).real])
def test_values_alone_have_all_derivatives(function: Callable[..., Any]) -> None:
    """Rules leave out what vectors without a cotangent would add: not where that is zero only at a point."""
    x = tg.tensor(invertible((4, 4), np.float64, np.random.default_rng(9)), requires_grad=True)
    symmetric = lambda x: function(x + x.mT)  # noqa: E731
    assert tg.autograd.gradcheck(symmetric, x)
    assert tg.autograd.gradgradcheck(symmetric, x)
    assert tg.testing.jvpcheck(symmetric, (x,))
    zero = tg.zeros((), requires_grad=True)
    values, vectors = tg.linalg.eigh(x + x.mT)
    (slope,) = tg.autograd.grad(values.sum() + (zero * vectors[:, 0].abs()).sum(), x, create_graph=True)
    (crossed,) = tg.autograd.grad(slope[0, 1], zero)
    (expected,) = tg.autograd.grad(tg.linalg.eigh(x + x.mT)[1][:, 0].abs().sum(), x)
    np.testing.assert_allclose(crossed.item(), expected[0, 1].item(), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 1), (1, 1)), ((64, 3), (63, 3)), ((65, 16), (130, 16)), ((3, 40), (70, 40)), ((2, 70, 17), (2, 5, 17)),
    ],
)  # fmt: skip
def test_distances_in_blocks_of_points(shapes: Any, dtype: Any) -> None:
    rng = np.random.default_rng(10)
    x, y = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    y[..., 0, :] = x[..., 0, :]  # the same point twice
    ct = rng.normal(size=(*x.shape[:-1], y.shape[-2])).astype(dtype)
    a, b = (tg.tensor(own, requires_grad=True) for own in (x, y))
    out = tg.cdist(a, b)
    apart = x[..., :, None, :].astype(float) - y[..., None, :, :]
    expected = np.sqrt((apart * apart).sum(-1))
    np.testing.assert_allclose(out.detach(), expected, rtol=20 * np.finfo(dtype).eps)
    out.backward(tg.tensor(ct), retain_graph=True)
    slopes = ct[..., None] * apart / np.where(expected == 0, 1, expected)[..., None]
    tolerance = {"rtol": 1e-6 if dtype is np.float64 else 1e-3, "atol": 1e-12 if dtype is np.float64 else 1e-4}
    for leaf, own in ((a, slopes.sum(-2)), (b, -slopes.sum(-3))):
        np.testing.assert_allclose(leaf.grad, own, **tolerance)
    out.backward(tg.tensor(ct))
    np.testing.assert_allclose(a.grad, 2 * slopes.sum(-2), **tolerance)
    both = tg.cdist(a, a)  # of one leaf, to which both kernels add
    (slope,) = tg.autograd.grad(both.sum(), a)
    apart = x[..., :, None, :].astype(float) - x[..., None, :, :]
    sizes = np.sqrt((apart * apart).sum(-1, keepdims=True))
    np.testing.assert_allclose(slope, 2 * (apart / np.where(sizes == 0, 1, sizes)).sum(-2), **tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [(64,), (64, 48), (64, 1)])
@pytest.mark.parametrize("batch", [(20, 16), (3, 4, 50), (5, 0), (300, 1), (3, 100, 2)])
def test_large_products_of_matrices_and_one_matrix(batch: tuple[int, ...], last: tuple[int, ...], dtype: str) -> None:
    """Of few rows, or by a transposed matrix, they are one product of all, into memory of the pool."""
    rng = np.random.default_rng(0)
    for turned, order in ((False, "C"), (True, "C"), (False, "F"), (True, "F")):
        y = np.asarray(rng.normal(size=last).astype(dtype), order=order)  # type: ignore[call-overload]
        x = rng.normal(size=(*batch[:-1], 64, batch[-1]) if turned else (*batch, 64)).astype(dtype)
        given = tg.tensor(x, requires_grad=True)
        own, array = (given.mT, np.swapaxes(x, -1, -2)) if turned else (given, x)
        for _ in range(3):
            out = own @ tg.from_numpy(y)
            assert (out.shape, out.dtype) == ((*batch, *last[1:]), np.dtype(dtype))
            np.testing.assert_allclose(
                out.detach().numpy(), array @ y, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5
            )
        out.sum().backward()
        slope = np.broadcast_to(y if y.ndim == 1 else y.sum(1), (*batch, 64))
        expected = np.swapaxes(slope, -1, -2) if turned else slope
        np.testing.assert_allclose(given.grad.numpy(), expected, rtol=1e-4, atol=1e-5)

"""Linear algebra: results that are no derivatives, edges, NumPy's names, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg
from tapegrad.errors import LinAlgError

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def gradient(function: Callable[[tg.Tensor], tg.Tensor], x: Any) -> np.ndarray:
    leaf = tg.tensor(x, requires_grad=True)
    function(leaf).sum().backward()
    assert leaf.grad is not None
    return leaf.grad.numpy()


# Norms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ord", [2, 3, 1.5, 0.5, -1, 1, np.inf])
def test_norms_do_not_overflow(ord: float, dtype: str) -> None:
    x = np.array([3.0, 4.0, 1.0], dtype)
    for scale in (np.finfo(dtype).max / 1e3, np.finfo(dtype).tiny * 1e3):
        found = tg.linalg.vector_norm(tg.tensor(x * dtype_of(scale, dtype)), ord)
        expected = np.linalg.vector_norm(x.astype(float), ord=ord) * float(scale)
        np.testing.assert_allclose(found, expected, rtol=3e-6 if dtype == "float32" else 1e-14)
        slope = gradient(lambda own: tg.linalg.vector_norm(own, ord), x * dtype_of(scale, dtype))
        np.testing.assert_allclose(slope, gradient(lambda own: tg.linalg.vector_norm(own, ord), x), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ord", [2, 3, 1.5])
def test_small_cotangents_of_large_norms(ord: float, dtype: str) -> None:
    scale = dtype_of(np.finfo(dtype).max / 1e4, dtype)
    x, ct = np.array([3.0, 4.0], dtype), np.ones((), dtype)
    slope = gradient(lambda own: tg.linalg.vector_norm(own, ord) * (ct / scale), x * scale)
    expected = gradient(lambda own: tg.linalg.vector_norm(own, ord), x)
    np.testing.assert_allclose(slope * scale, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cosines_of_large_vectors(dtype: str) -> None:
    scale = dtype_of(np.finfo(dtype).max / 1e2, dtype)
    x, y = np.array([3.0, 4.0], dtype), np.array([4.0, 3.0], dtype)
    np.testing.assert_allclose(tg.cosine_similarity(tg.tensor(x * scale), tg.tensor(y * scale), 0), 0.96, rtol=1e-6)
    slope = gradient(lambda own: tg.cosine_similarity(own, tg.tensor(y * scale), 0), x * scale)
    np.testing.assert_allclose(slope * scale, [0.0448, -0.0336], rtol=1e-5)


def dtype_of(value: Any, dtype: str) -> Any:
    return np.dtype(dtype).type(value)


@pytest.mark.parametrize("ord", [2, 3, 1.5, 0.5, 1, np.inf])
def test_norm_of_zeros_has_the_gradient_zero(ord: float) -> None:
    x = tg.zeros(3, requires_grad=True)
    (slope,) = tg.autograd.grad(tg.linalg.vector_norm(x, ord), x, create_graph=True)
    assert slope.tolist() == [0.0] * 3
    if slope.requires_grad:
        assert tg.autograd.grad(slope.sum(), x)[0].tolist() == [0.0] * 3


def test_the_gradient_of_the_largest_is_shared() -> None:
    found = gradient(lambda x: tg.linalg.vector_norm(x, np.inf), [3.0, -3.0, 1.0])
    assert found.tolist() == [0.5, -0.5, 0.0]


@pytest.mark.parametrize("ord", [np.inf, -np.inf])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_the_largest_of_complex_numbers_in_single_precision_has_a_gradient(ord: float, dim: int | None) -> None:
    """The forward rounds absolute values once more than the rule."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(7, 5)) + 1j * rng.normal(size=(7, 5))).astype(np.complex64)
    single, double = (gradient(lambda x: tg.linalg.vector_norm(x, ord, dim), own) for own in (x, x.astype(complex)))
    np.testing.assert_allclose(single, double, rtol=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_distance_of_a_point_to_itself(p: float) -> None:
    points = np.array([[1.0, 2.0], [1.0, 2.0], [4.0, 6.0]])
    for function in (lambda x: tg.cdist(x, x, p), lambda x: tg.nn.functional.pdist(x, p)):
        assert np.isfinite(gradient(function, points)).all()


def test_distances_are_computed_of_differences() -> None:
    x = np.array([[1e8, 1e8], [1e8 + 3, 1e8 + 4]])
    assert tg.cdist(x, x).tolist() == [[0.0, 5.0], [5.0, 0.0]]
    slope = gradient(lambda own: tg.cdist(own, tg.tensor(x[1:])), x[:1])
    np.testing.assert_allclose(slope, [[-0.6, -0.8]], rtol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "scale"), [("float64", 2.0**660), ("float64", 2.0**-660), ("float32", 2.0**90), ("float32", 2.0**-90)]
)
@pytest.mark.parametrize("count", [2, 40])
def test_distances_whose_squares_are_not_representable(dtype: str, scale: float, count: int) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=(3, count)).astype(dtype) for _ in range(2))
    y[1] = x[1]
    found = [tg.cdist(tg.tensor(x * np.array(own, dtype)), tg.tensor(y * np.array(own, dtype))) for own in (1, scale)]
    np.testing.assert_allclose(found[1].numpy() / scale, found[0].numpy(), rtol=10 * np.finfo(dtype).eps)
    slopes = [gradient(lambda own, s=s: tg.cdist(own, tg.tensor(y * np.array(s, dtype))), x * np.array(s, dtype))
              for s in (1, scale)]  # fmt: skip
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=100 * np.finfo(dtype).eps)


# Factors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_factors_without_pivots(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).normal(size=shape) + 4 * np.eye(*shape[-2:])
    P, L, U = tg.linalg.lu(a, pivot=False)
    assert P.shape == (0,)
    np.testing.assert_allclose(L.numpy() @ U.numpy(), a, rtol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: tg.matmul(*tg.linalg.lu(x, pivot=False)[1:]), a), np.ones(shape))


def test_factors_of_singular_matrices() -> None:
    assert tg.linalg.lu_factor_ex(np.stack([SINGULAR, np.eye(2)])).info.tolist() == [2, 0]
    with pytest.raises(LinAlgError, match=r"U\[2,2\] is zero"):
        tg.linalg.lu_factor_ex(SINGULAR, check_errors=True)
    assert tg.linalg.cholesky_ex(np.stack([np.eye(2), -np.eye(2)])).info.tolist() == [0, 1]
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\): The factorization could not be completed"):
        tg.linalg.cholesky(np.stack([np.eye(2), -np.eye(2)]))
    inverse, info = tg.linalg.inv_ex(SINGULAR)
    assert info.item() == 2
    assert np.isnan(inverse.numpy()).all()
    assert tg.linalg.solve_ex(SINGULAR, np.ones(2)).info.item() == 2
    for call in (tg.linalg.inv_ex, lambda a, **options: tg.linalg.solve_ex(a, np.ones(2), **options)):
        with pytest.raises(LinAlgError, match="singular"):
            call(SINGULAR, check_errors=True)


def test_only_one_triangle_has_a_gradient() -> None:
    factor = np.array([[2.0, 9.0], [1.0, 3.0]])
    assert gradient(tg.cholesky_inverse, factor)[0, 1] == 0
    assert gradient(lambda x: tg.cholesky_solve(tg.ones(2, 1), x, upper=True), factor)[1, 0] == 0


def test_triangular_systems_with_zeros_on_the_diagonal() -> None:
    found = tg.linalg.solve_triangular(np.array([[0.0, 0.0], [1.0, 1.0]]), np.ones((2, 1)), upper=False)
    assert not np.isfinite(found.numpy()).any()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems_of_any_strides(order: Any, upper: bool, left: bool) -> None:
    rng = np.random.default_rng(0)
    a = np.array(rng.normal(size=(4, 4)) + 4 * np.eye(4), order=order)
    b = rng.normal(size=(8, 8))[::2, ::2]
    triangle = np.triu(a) if upper else np.tril(a)
    expected = np.linalg.solve(triangle, b) if left else np.linalg.solve(triangle.T, b.T).T
    np.testing.assert_allclose(tg.linalg.solve_triangular(a, b, upper=upper, left=left), expected, rtol=1e-12)


def test_qr_refuses_what_has_no_derivative() -> None:
    x = tg.tensor(np.arange(6.0).reshape(3, 2) % 4, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"depends on Q, which is not computed when mode='r'"):
        tg.linalg.qr(x, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match=r"not differentiable when mode='complete' and nrows > ncols"):
        tg.linalg.qr(x, "complete").Q.sum().backward()


@pytest.mark.parametrize(
    "x", [np.eye(3), np.diag([2.0, 2.0, 1.0]), np.linalg.qr(np.vander([0.5, 1.0, 2.0, 3.0], 3))[0], np.zeros((3, 0))]
)
def test_orthogonal_factor_of_equal_singular_values(x: np.ndarray) -> None:
    def orthogonal(x: Any) -> Any:
        u, _, vh = tg.linalg.svd(x, full_matrices=False)
        return tg.matmul(u, vh)

    assert tg.testing.gradcheck(orthogonal, tg.tensor(x, requires_grad=True))


def test_vectors_of_equal_singular_values_have_no_derivative() -> None:
    """Not a finite one that is wrong: of a function of them and of the singular values it cannot be told."""
    x = tg.tensor(np.diag([2.0, 2.0, 1.0]), requires_grad=True)
    u, s, vh = tg.linalg.svd(x)
    tg.matmul(u * s.sqrt(), vh).sum().backward()
    assert not np.isfinite(x.grad).any()


def test_equal_singular_values() -> None:
    """The sum of all has a derivative, to the second order, too; PyTorch: nan."""
    x = tg.eye(3, requires_grad=True)
    (slope,) = tg.autograd.grad(tg.linalg.svdvals(x).sum(), x, create_graph=True)
    assert slope.tolist() == np.eye(3).tolist()
    found = gradient(lambda own: tg.linalg.svd(own, full_matrices=False).S.sum(), np.ones((3, 2)))
    assert np.isfinite(found).all()


# Determinants ------------------------------------------------------------------------------------------------------


def test_determinants_of_singular_matrices() -> None:
    assert gradient(tg.linalg.det, SINGULAR).tolist() == pytest.approx(np.array([[4.0, -2.0], [-2.0, 1.0]]))
    x = tg.tensor(np.ones((3, 3)), requires_grad=True)
    (slope,) = tg.autograd.grad(tg.linalg.det(x), x, create_graph=True)
    np.testing.assert_allclose(slope.detach(), np.zeros((3, 3)), atol=1e-14)
    (second,) = tg.autograd.grad(slope[0, 0], x, create_graph=True)
    np.testing.assert_allclose(second.detach(), [[0, 0, 0], [0, 1, -1], [0, -1, 1]], atol=1e-12)
    with pytest.raises(RuntimeError, match="third derivative of the determinant of a singular matrix"):
        second[1, 1].backward()
    assert np.isnan(tg.logdet(-np.eye(1)).item())


# Least squares -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["gelsd", "gelss", "gelsy", "gels", None])
def test_least_squares(driver: str | None) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    found, expected = tg.linalg.lstsq(a, b, driver=driver), np.linalg.lstsq(a, b)
    np.testing.assert_allclose(found.solution, expected[0], rtol=1e-12)
    if driver in ("gelsd", "gelss", "gels"):
        np.testing.assert_allclose(found.residuals, expected[1], rtol=1e-12)
    else:
        assert found.residuals.shape == (0,)
    assert found.rank.tolist() == ([] if driver == "gels" else 3)
    if driver in ("gelsd", "gelss"):
        np.testing.assert_allclose(found.singular_values, expected[3], rtol=1e-12)
    with pytest.raises(RuntimeError, match="parameter `driver` should be one of"):
        tg.linalg.lstsq(a, b, driver="qr")


# NumPy's and SciPy's functions -------------------------------------------------------------------------------------

A, B = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), np.arange(9.0).reshape(3, 3)
BY_NUMPY: dict[str, Callable[[Any], Any]] = {
    "vdot": lambda x: np.vdot(x, B),
    "inner": lambda x: np.inner(x, B),
    "kron": lambda x: np.kron(x, B),
    "tensordot": lambda x: np.tensordot(x, B, axes=1),
    "trace": lambda x: np.trace(x, offset=1),
    "vecdot": lambda x: np.vecdot(x, B),
    "linalg.vecdot": lambda x: np.linalg.vecdot(x, B, axis=0),
    "cross": lambda x: np.cross(x, B),
    "linalg.cross": lambda x: np.linalg.cross(x, B),
    "cholesky": np.linalg.cholesky,
    "qr": lambda x: np.linalg.qr(x)[1],
    "svd": lambda x: np.linalg.svd(x)[1],
    "svd without vectors": lambda x: np.linalg.svd(x, compute_uv=False),
    "svdvals": np.linalg.svdvals,
    "eigvalsh": np.linalg.eigvalsh,
    "det": np.linalg.det,
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
    "pinv": lambda x: np.linalg.pinv(x, rcond=1e-10),
    "lstsq": lambda x: np.linalg.lstsq(x, B)[0],
    "norm": np.linalg.norm,
    "norm of rows": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    "norm of order 1": lambda x: np.linalg.norm(x, 1),
    "vector_norm": lambda x: np.linalg.vector_norm(x, axis=0, ord=3),
    "matrix_norm": lambda x: np.linalg.matrix_norm(x, ord="nuc"),
    "cond": np.linalg.cond,
    "matrix_power": lambda x: np.linalg.matrix_power(x, 3),
    "multi_dot": lambda x: np.linalg.multi_dot([x, B, x]),
    "tensorinv": lambda x: np.linalg.tensorinv(x, ind=1),
    "tensorsolve": lambda x: np.linalg.tensorsolve(x, np.ones(3)),
    "diagonal": lambda x: np.linalg.diagonal(x, offset=-1),
    "vander": lambda x: np.vander(x[0], 3),
    "cov": lambda x: np.cov(x, bias=True),
    "cov of two": lambda x: np.cov(x, B, rowvar=False),
    "corrcoef": np.corrcoef,
}


@pytest.mark.parametrize("name", BY_NUMPY)
def test_functions_of_numpy(name: str) -> None:
    found = BY_NUMPY[name](tg.tensor(A, requires_grad=True))
    assert found.requires_grad
    np.testing.assert_allclose(found.detach(), BY_NUMPY[name](A), rtol=1e-9, atol=1e-12)


def test_functions_that_scipy_has() -> None:
    np.testing.assert_allclose(tg.linalg.sqrtm(A), scipy.linalg.sqrtm(A), rtol=1e-12)
    np.testing.assert_allclose(tg.linalg.matrix_exp(A), scipy.linalg.expm(A), rtol=1e-12)
    np.testing.assert_allclose(tg.linalg.solve_sylvester(A, A, B), scipy.linalg.solve_sylvester(A, A, B), rtol=1e-12)
    assert np.isnan(tg.linalg.sqrtm(np.diag([1.0, -1.0])).numpy()).all()


# Errors ------------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "inner": (lambda: tg.inner(np.ones((2, 3)), np.ones((3, 2))), "the last dimension must match on both input"),
    "trace": (lambda: tg.trace(np.ones(3)), "trace: expected a matrix, but got tensor with dim 1"),
    "vdot": (lambda: tg.vdot(np.ones((2, 2)), np.ones(2)), "1D tensors expected, but got 2D and 1D tensors"),
    "tensordot": (lambda: tg.tensordot(B, np.ones((2, 2)), 1), "contracted dimensions need to match, but first has"),
    "multi_dot": (lambda: tg.linalg.multi_dot([B]), r"multi_dot\(\): expected at least 2 tensors but got 1"),
    "vecdot": (lambda: tg.linalg.vecdot(np.ones(3), np.ones(2)), "to have the same length in dim -1"),
    "cross": (lambda: tg.cross(np.ones(2), np.ones(2)), "no dimension of size 3 in input"),
    "norm": (lambda: tg.norm(A, "max"), "only valid string values are 'fro' and 'nuc', found: max"),
    "linalg.norm": (lambda: tg.linalg.norm(np.ones((2, 2, 2)), 2), "the input must be 1D or 2D. Got 3D"),
    "matrix_norm": (lambda: tg.linalg.matrix_norm(A, 3), "Order 3 not supported"),
    "cond": (lambda: tg.linalg.cond(np.ones((2, 3)), 1), "A must be batches of square matrices"),
    "pdist": (lambda: tg.nn.functional.pdist(np.ones(3)), "pdist only supports 2D tensors, got: 1D"),
    "cdist": (lambda: tg.cdist(np.ones((2, 3)), np.ones((2, 2)), 1), "X1 and X2 must have the same number of columns"),
    "renorm": (lambda: tg.renorm(A, -1, 0, 1), "renorm: non-positive norm not supported"),
    "cov": (lambda: tg.cov(np.ones((2, 2, 2))), "expected input to have two or fewer dimensions"),
    "cov, weights": (lambda: tg.cov(A, fweights=np.ones(2, int)), "expected fweights to have the same numel"),
    "corrcoef": (lambda: tg.corrcoef(np.ones((2, 2, 2))), "expected input to have two or fewer dimensions"),
    "tensorinv": (lambda: tg.linalg.tensorinv(np.ones((2, 3)), 1), "Expected self to satisfy the requirement"),
    "tensorsolve": (
        lambda: tg.linalg.tensorsolve(np.ones((2, 3)), np.ones(2)),
        "Expected self to satisfy the requirem",
    ),
    "vander": (lambda: tg.linalg.vander(np.ones(3), 1), "N must be greater than 1"),
    "lu_unpack": (
        lambda: tg.lu_unpack(A, np.ones(3)),
        "LU_pivots is expected to be a contiguous tensor of torch.int32",
    ),
    "householder": (
        lambda: tg.linalg.householder_product(np.ones((2, 3)), np.ones(2)),
        "must be greater than or equal",
    ),
    "inv": (
        lambda: tg.linalg.inv(np.stack([np.eye(2), [[1.0, 2.0], [2.0, 4.0]]])),
        r"^linalg\.inv: \(Batch element 1\): The diagonal element 2 is zero, the inversion could not be completed",
    ),
    "inv of one": (lambda: tg.linalg.inv(np.zeros((300, 300))), r"^linalg\.inv: The diagonal element 1 is zero, the"),
    "solve": (
        lambda: tg.linalg.solve(np.stack([np.eye(2), np.zeros((2, 2))]), np.ones((2, 1))),
        r"^torch\.linalg\.solve: \(Batch element 1\): The solver failed because the input matrix is singular\.",
    ),
    "cholesky": (
        lambda: tg.linalg.cholesky(np.stack([np.eye(2), -np.eye(2)])[:, None]),
        r"^linalg\.cholesky: \(Batch element 1\): The factorization could not be completed",
    ),
    "lstsq, dimensions": (
        lambda: tg.linalg.lstsq(np.ones((2, 3, 2)), np.ones(3)),
        r"input\.dim\(\) must be greater or equal to other\.dim\(\) and \(input\.dim\(\) - other\.dim\(\)\) <= 1",
    ),
    "lstsq, of a batch": (lambda: tg.linalg.lstsq(np.ones((3, 2)), np.ones((2, 3, 1))), r"input\.dim\(\) must be gre"),
    "lstsq, batches": (
        lambda: tg.linalg.lstsq(np.ones((2, 3, 2)), np.ones((3, 1))),
        r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 0",
    ),
    "addmm": (lambda: tg.addmm(np.ones(2, np.float32), np.eye(2), np.eye(2)), "self and mat2 must have the same dtype"),
    "addmv": (lambda: tg.addmv(np.ones(2), np.ones(2), np.ones(2)), "vector [+] matrix @ vector expected, got 1, 1, 1"),
    "addbmm": (lambda: tg.addbmm(1.0, np.ones((2, 2)), np.ones((2, 2))), "batch1 must be a 3D tensor"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_torch(name: str) -> None:
    call, words = ERRORS[name]
    with pytest.raises(RuntimeError, match=words):
        call()


BATCH = np.stack([np.array([[2.0, 1.0], [1.0, 3.0]]), SINGULAR])


@pytest.mark.parametrize("compiled", [False, True])
def test_singular_matrices_of_a_batch_leave_the_others(compiled):
    def inverses(a):
        return tg.func.value_and_grad(lambda own: tg.linalg.inv_ex(own).inverse[0].sum())(a)

    function = tg.compile(inverses) if compiled else inverses
    for _ in range(2):
        value, gradient = function(tg.tensor(BATCH))
        inverse = np.linalg.inv(BATCH[0])
        np.testing.assert_allclose(value.item(), inverse.sum())
        np.testing.assert_allclose(gradient.numpy()[0], -np.outer(inverse.sum(0), inverse.sum(1)), rtol=1e-12)
        assert (gradient.numpy()[1] == 0).all()
    found, info = tg.linalg.solve_ex(BATCH, np.ones((2, 2)))
    np.testing.assert_allclose(found.numpy()[0], np.linalg.solve(BATCH[0], np.ones(2)))
    assert np.isnan(found.numpy()[1]).all()
    assert info.tolist() == [0, 2]
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): U\[2,2\] is zero"):
        tg.linalg.lu_factor(BATCH)


@pytest.mark.parametrize("compiled", [False, True])
def test_logarithms_of_determinants_of_singular_matrices_have_infinite_gradients(compiled):
    slope = tg.func.grad(lambda a: tg.linalg.slogdet(a).logabsdet.sum())
    function = tg.compile(slope) if compiled else slope
    for _ in range(2):
        found = function(tg.tensor(BATCH)).numpy()
        np.testing.assert_allclose(found[0], np.linalg.inv(BATCH[0]).T, rtol=1e-12)
        assert np.isinf(found[1]).all()


def test_a_graph_of_the_gradient_of_a_singular_matrix_is_refused():
    a = tg.tensor(BATCH, requires_grad=True)
    for function in (tg.logdet, lambda a: tg.linalg.slogdet(a).logabsdet):
        with pytest.raises(RuntimeError, match=r"solve: \(Batch element 1\).*input matrix is singular"):
            tg.autograd.grad(function(a).sum(), a, create_graph=True)


@pytest.mark.parametrize(
    "tolerance", [{}, {"tol": 0.0}, {"atol": 0.0}, {"atol": 0.5}, {"rtol": 0.5}, {"hermitian": True}]
)
@pytest.mark.parametrize("given", [BATCH, np.zeros((2, 0)), np.zeros((0, 2, 2)), BATCH.astype(np.complex64)], ids=str)
def test_ranks_are_those_of_pytorch_also_compiled(given, tolerance):
    torch = pytest.importorskip("torch")
    if "hermitian" in tolerance and given.shape[-1] != given.shape[-2]:
        pytest.skip("not square")
    right = torch.linalg.matrix_rank(torch.tensor(given), **tolerance).tolist()

    def rank(a):
        return tg.linalg.matrix_rank(a, **tolerance)

    for function in (rank, tg.compile(rank)):
        own = function(tg.tensor(given))
        assert (own.tolist(), own.dtype) == (right, np.int64)


def test_each_matrix_has_a_tolerance_of_its_own():
    of_each = tg.tensor([0.1, 5.0])
    assert tg.linalg.matrix_rank(tg.tensor(BATCH), atol=of_each).tolist() == [2, 0]
    assert tg.linalg.matrix_rank(tg.tensor(BATCH), rtol=of_each).tolist() == [2, 0]


@pytest.mark.parametrize("rows", [3, 12])
@pytest.mark.parametrize("batch", [(), (2,), (2, 1)])
@pytest.mark.parametrize("is_singular", [False, True])
def test_slopes_of_determinants_are_those_of_eager_in_compiled_functions(rows, batch, is_singular):
    x = np.random.default_rng(0).normal(size=(*batch, rows, rows)) + 3 * np.eye(rows)
    x[..., 0, :] *= not is_singular
    slope = tg.func.grad(lambda a: (tg.linalg.det(a) + tg.linalg.det(a) ** 2).sum())
    np.testing.assert_allclose(tg.compile(slope)(tg.tensor(x)).numpy(), slope(tg.tensor(x)).numpy(), rtol=1e-9)

"""Sparse Jacobians and Hessians against dense ones, and patterns against those of random numbers."""

import numpy as np
import pytest
import scipy.sparse

import tapegrad as tg
from tapegrad.func import sparse_hessian, sparse_jacobian
from tapegrad.program.program import Program
from tapegrad.program.trace import trace
from tapegrad.sparse import structure
from tapegrad.sparse.coloring import of_hessian, of_jacobian
from tapegrad.sparse.patterns import pattern_of
from tapegrad.sparse.structure import TooDense

RNG = np.random.default_rng(5)
INDEX = np.array([3, 0, 2, 2, 5])
DENSE = RNG.normal(size=(4, 6))
BANDED = np.diag(np.ones(6)) + np.diag(np.ones(5), 1)

# Of 6 numbers: a function, and whether its pattern is exactly what is not 0 at random points.
FUNCTIONS = {
    "differences": (lambda x: (x[1:] - x[:-1]) ** 2, True),
    "products of neighbours": (lambda x: x[1:] * x[:-1] + tg.sin(x[2:3]), True),
    "sum": (lambda x: (x * x).sum(), True),
    "sums of rows": (lambda x: (x.reshape(2, 3) ** 2).sum(1), True),
    "means of columns": (lambda x: (x.reshape(2, 3) ** 2).mean(0, keepdim=True), True),
    "gather": (lambda x: x[INDEX] ** 2, True),
    "gather of rows": (lambda x: x.reshape(3, 2)[np.array([2, 0, 0])] * 2.0, True),
    "gather twice": (lambda x: x[INDEX] * x[INDEX[::-1].copy()], True),
    "where": (lambda x: tg.where(tg.tensor([True, False] * 3), x, x.flip(0) ** 2), True),
    "mask": (lambda x: x * np.array([0.0, 1.0] * 3) + x.flip(0) * np.array([1.0, 0.0] * 3), True),
    "cat": (lambda x: tg.cat([x[3:], x[:2] * x[1:3], tg.ones(2)]), True),
    "stack": (lambda x: tg.stack([x[:3], x[3:] ** 2], -1), True),
    "flip, roll, pad": (lambda x: tg.nn.functional.pad(tg.roll(x.flip(0), 2) ** 2, (1, 2)), True),
    "cross": (lambda x: tg.cross(x.reshape(2, 3), DENSE[:2, :3], dim=1), False),
    "outer": (lambda x: x[:3, None] * x[None, 3:], True),
    "matrix": (lambda x: DENSE @ (x * x), True),
    "banded matrix": (lambda x: BANDED @ tg.exp(x), True),
    "matrix on the right": (lambda x: (x.reshape(2, 3) ** 2) @ BANDED[:3, :3], True),
    "batches of matrices": (lambda x: np.ones((2, 3, 3)) @ x.reshape(2, 3, 1), True),
    "product": (lambda x: x[:4].reshape(2, 2) @ x[2:].reshape(2, 2), True),
    "vectors": (lambda x: x[:3] @ x[3:] * tg.ones(2), True),
    "cumsum": (lambda x: x.cumsum(0), True),
    "cumprod of columns": (lambda x: x.reshape(3, 2).cumprod(0), True),
    "softmax": (lambda x: tg.softmax(x.reshape(2, 3), 1), True),
    "logsumexp": (lambda x: tg.logsumexp(x.reshape(2, 3), 0), True),
    "norm": (lambda x: tg.linalg.vector_norm(x.reshape(2, 3), dim=1), True),
    "diff": (lambda x: tg.diff(x, n=2) ** 2, True),
    "scatter": (lambda x: tg.zeros(4).index_add(0, tg.tensor([0, 2, 2, 0, 1, 3]), x * x), True),
    "scatter_add": (lambda x: tg.zeros(3).scatter_add(0, tg.tensor([0, 2, 2, 0, 2, 0]), x**2), True),
    "index_put": (lambda x: tg.zeros(8).index_put((tg.tensor([1, 3, 0, 7, 5, 2]),), x**2), True),
    "diagonal": (lambda x: tg.diag(x) @ tg.ones(6) + tg.diagonal(x[:4].reshape(2, 2)).sum(), True),
    "windows": (lambda x: x.unfold(0, 3, 1).sum(1) ** 2, True),
    "inverse": (lambda x: tg.linalg.inv(x[:4].reshape(2, 2) + 5.0 * tg.eye(2)), True),
    "solve": (lambda x: tg.linalg.solve(tg.diag_embed(x[:4].reshape(2, 2) + 9.0), x[2:].reshape(2, 2, 1)), False),
    "fft": (lambda x: tg.fft.rfft(x.reshape(2, 3), dim=1).abs(), False),
    "sort": (lambda x: tg.sort(x.reshape(2, 3), 1)[0], False),
    "largest": (lambda x: x.reshape(2, 3).amax(1) ** 2, False),
    "detached": (lambda x: x * x.flip(0).detach(), True),
    "vmap": (lambda x: tg.vmap(lambda a: tg.stack([a[0] * a[1], a[1] ** 2]))(x.unfold(0, 2, 1)), True),
    "vmap of many": (lambda x: tg.vmap(lambda a, b: a * b.sum(), (0, None))(x.repeat(3), x[:2]), True),
    "a dict": (lambda x: {"a": x[:2] ** 2, "b": [x.sum(), x[5] * x[0]]}, True),
    "a branch": (lambda x: x[1:] ** 2 if x[0] < 100.0 else x[:-1], True),
    "nothing": (lambda x: tg.ones(3), True),
    "convolution": (lambda x: tg.nn.functional.conv1d(x.reshape(1, 1, 6), tg.ones(1, 1, 2)), False),
}  # fmt: skip


def flat(function):
    """Return a function that returns one vector."""

    def call(x):
        return tg.cat([leaf.reshape(-1) for leaf in tg.func.trees.flatten(function(x))])

    return call


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name):
    function, is_exact = FUNCTIONS[name]
    jacobian = sparse_jacobian(function)
    patterns = []
    for _ in range(3):
        x = RNG.uniform(0.5, 2.0, 6)
        found = jacobian(x)
        assert isinstance(found, scipy.sparse.csr_array)
        assert found.has_canonical_format
        dense = tg.func.jacrev(flat(function))(x)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-12)
        patterns.append(dense != 0.0)
    pattern = jacobian.pattern(x).toarray()
    assert (pattern >= patterns[0]).all()
    if is_exact:
        np.testing.assert_array_equal(pattern, np.any(patterns, 0))


SCALARS = {
    "rosenbrock": lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
    "arrow": lambda x: (x[0] * x[1:] ** 2).sum(),
    "separable": lambda x: tg.sin(x).sum(),
    "graph": lambda x: ((x[INDEX] - x[INDEX[::-1].copy()]) ** 4).sum() + (x**3).sum(),
    "dense": lambda x: tg.logsumexp(x, 0),
    "linear": lambda x: x.sum(),
    "blocks": lambda x: tg.linalg.det(x.repeat(3).reshape(2, 3, 3) + 3.0 * tg.eye(3)).sum(),
    "vmap": lambda x: tg.vmap(lambda a: a[0] ** 2 * a[1])(x.repeat(10).unfold(0, 2, 1)).sum(),
    "branch": lambda x: (x[1:] * x[:-1]).prod() if x.sum() < 0.0 else (x[1:] * x[:-1]).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name):
    hessian = sparse_hessian(SCALARS[name])
    for _ in range(2):
        x = RNG.uniform(0.5, 2.0, 6)
        np.testing.assert_allclose(
            hessian(x).toarray(), tg.func.hessian(SCALARS[name])(x), rtol=1e-9, atol=1e-12
        )  # fmt: skip
    assert (hessian.pattern(x) != hessian.pattern(x).T).nnz == 0


def test_hessian_against_torch():
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=12)

    def function(lib, x):
        return lib.sin(x[1:] * x[:-1]).sum() + (lib.exp(x[3:]) * x[:-3]).sum()

    found = sparse_hessian(lambda x: function(tg, x))(x)
    theirs = torch.autograd.functional.hessian(lambda x: function(torch, x), torch.tensor(x))
    np.testing.assert_allclose(found.toarray(), theirs.numpy(), rtol=1e-9, atol=1e-12)


def test_arguments():
    def f(p, data, scale, power):
        return scale * (p["a"] * p["b"][0]) ** power + data

    p = {"a": np.array([1.0, 2.0, 3.0]), "b": (2.0, np.ones(2))}
    jacobian = sparse_jacobian(f)
    found = jacobian(p, np.zeros(3), 2.0, power=2)
    np.testing.assert_allclose(
        found.toarray(), np.column_stack([np.diag(2 * 2 * p["a"] * 4.0), 2 * 2 * 2.0 * p["a"] ** 2, np.zeros((3, 2))])
    )
    assert jacobian(p, np.zeros(3), 2.0, power=3).toarray()[0, 0] == pytest.approx(2 * 3 * 8.0)
    both = sparse_jacobian(lambda x, y: x * y[:3], argnums=(1, 0))(np.ones(3), np.arange(4.0))
    assert both.shape == (3, 7)
    np.testing.assert_allclose(both.toarray()[:, 4:], np.diag([0.0, 1.0, 2.0]))
    assert sparse_jacobian(lambda x: x * 2.0)(tg.ones(2, dtype=tg.float32)).dtype == np.float32
    assert sparse_jacobian(lambda x: x * 2.0, format="csc")(np.ones(2)).format == "csc"
    assert sparse_jacobian(lambda x: x * 2.0)(3.0).toarray() == [[2.0]]
    weights = tg.tensor([1.0, 2.0])
    outside = sparse_jacobian(lambda x: x * weights)
    outside(np.ones(2))
    weights.copy_(tg.tensor([5.0, 6.0]))
    np.testing.assert_allclose(outside(np.ones(2)).diagonal(), [5.0, 6.0])


@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_pattern_depends_on_integers(as_tensor):
    jacobian = sparse_jacobian(lambda x, index: x[index] ** 2)
    for index in ([0, 1, 1], [2, 0, 1], [0, 1, 1]):
        index = tg.tensor(index) if as_tensor else np.array(index)
        expected = np.zeros((3, 3))
        expected[np.arange(3), np.asarray(index)] = 2.0
        np.testing.assert_array_equal(jacobian(np.ones(3), index).toarray(), expected)


def test_a_pattern_belongs_to_a_way_through_branches():
    def f(x):
        return x**2 if x[0] > 0.0 else x * x.flip(0)

    jacobian = sparse_jacobian(f)
    for sign in (1.0, -1.0, 1.0, -1.0):
        x = sign * np.array([1.0, 2.0, 3.0])
        np.testing.assert_array_equal(jacobian(x).toarray(), tg.func.jacrev(f)(x))
    assert jacobian.pattern(np.ones(3)).nnz == 3
    assert jacobian.pattern(-np.ones(3)).nnz == 5
    hessian = sparse_hessian(lambda x: f(x).sum())
    for sign in (1.0, -1.0, 1.0):
        x = sign * np.array([1.0, 2.0, 3.0])
        np.testing.assert_array_equal(hessian(x).toarray(), tg.func.hessian(lambda x: f(x).sum())(x))


def test_bad_calls():
    with pytest.raises(TypeError, match="real numbers"):
        sparse_jacobian(lambda x: x)(np.ones(2, complex))
    with pytest.raises(TypeError, match="returned a tensor of int64"):
        sparse_jacobian(lambda x: tg.argmax(x))(np.ones(2))
    with pytest.raises(ValueError, match="format must be one of csr"):
        sparse_jacobian(lambda x: x, format="dense")
    with pytest.raises(RuntimeError, match="scalar"):
        sparse_hessian(lambda x: x)(np.ones(2))
    with pytest.raises(RuntimeError, match="argnum"):
        sparse_jacobian(lambda x: x, argnums=3)(np.ones(2))
    with pytest.raises(tg.program.TracingError):
        sparse_jacobian(lambda x: tg.tensor(x.numpy()))(np.ones(2))
    with pytest.raises(ValueError, match="has none"):
        sparse_jacobian(lambda x: x)([])


def test_what_is_too_dense_is_refused(monkeypatch):
    monkeypatch.setattr(structure, "_MOST", 100)
    with pytest.raises(TooDense, match=r"fftn: its results would depend on \d+ unknowns in all; .* jacrev"):
        sparse_jacobian(lambda x: tg.fft.rfftn(x.reshape(4, 10)).abs())(np.ones(40))
    for function in (lambda x: x.cumsum(0), lambda x: tg.softmax(x, 0), lambda x: x.sum() * x):
        with pytest.raises(TooDense):
            sparse_jacobian(function)(np.ones(40))


def is_right(pattern, coloring):
    """Whether each element can be read from its sweep."""
    matrix, colors = pattern.toarray(), coloring.colors
    if coloring.kind != "symmetric":
        matrix = matrix if coloring.kind == "columns" else matrix.T
        return all((matrix[:, colors == color].sum(1) <= 1).all() for color in range(coloring.n_colors))
    count = np.array([[row[colors == color].sum() for color in range(coloring.n_colors)] for row in matrix])
    alone = count[:, colors] == 1
    return bool((alone | alone.T)[matrix].all())


@pytest.mark.parametrize("seed", range(8))
def test_colorings(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 40, 2)
    pattern = scipy.sparse.csr_array(rng.random((m, n)) < rng.choice([0.02, 0.1, 0.4]))
    coloring = of_jacobian(pattern)
    assert is_right(pattern, coloring)
    assert len(coloring.colors) == (n if coloring.kind == "columns" else m)
    square = scipy.sparse.csr_array(rng.random((n, n)) < rng.choice([0.02, 0.1, 0.4]))
    square = scipy.sparse.csr_array(square + square.T)
    square.sort_indices()
    coloring = of_hessian(square)
    assert is_right(square, coloring)
    broken = coloring._replace(colors=np.zeros_like(coloring.colors))
    assert is_right(square, broken) == (coloring.n_colors == 1)


def test_colors_are_as_few_as_known():
    n = 50
    tridiagonal = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    tridiagonal = scipy.sparse.csr_array(tridiagonal.astype(bool))
    assert of_jacobian(tridiagonal).n_colors == of_hessian(tridiagonal).n_colors == 3
    arrow = scipy.sparse.lil_array((n, n), dtype=bool)
    arrow[0, :] = arrow[:, 0] = True
    arrow.setdiag(True)
    assert of_hessian(scipy.sparse.csr_array(arrow)).n_colors == 2
    column = scipy.sparse.csr_array(np.column_stack([np.eye(n), np.ones(n)]).astype(bool))
    assert of_jacobian(column).kind == "columns"
    assert of_jacobian(column).n_colors == 2
    row = scipy.sparse.csr_array(np.vstack([np.eye(n), np.ones((1, n))]).astype(bool))
    assert of_jacobian(row).kind == "rows"
    assert of_jacobian(row).n_colors == 2


def test_large_hubs_get_colors_of_their_own():
    n = 30_000
    coloring = sparse_hessian(lambda x: (x[0] * x[1:] ** 2).sum()).colors(np.ones(n))
    assert coloring.n_colors == 2


def test_long_chains_take_no_time_for_each_element():
    import time

    n = 100_000
    begin = time.perf_counter()
    program, _ = trace(lambda x: [(x[1:] * x[:-1]).sum().reshape(1), x[INDEX], tg.exp(x[2:] - x[:-2])], [np.ones(n)])
    pattern = pattern_of(program, program.inputs)
    coloring = of_jacobian(pattern[1:])
    assert time.perf_counter() - begin < 5.0
    assert pattern.shape == (1 + 5 + n - 2, n)
    assert coloring.n_colors <= 5
    assert isinstance(program, Program)

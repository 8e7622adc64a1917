"""The argument `out`: as PyTorch treats it, and errors that lose nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tapegrad as tg

CALLS = {
    "sin": (lambda m, x, out: m.sin(x, out=out), (3, 3)),
    "add": (lambda m, x, out: m.add(x, 2, alpha=3, out=out), (3, 3)),
    "mul": (lambda m, x, out: m.mul(x, x, out=out), (3, 3)),
    "sum": (lambda m, x, out: m.sum(x, 0, out=out), (3,)),
    "mean": (lambda m, x, out: m.mean(x, 1, keepdim=True, out=out), (3, 1)),
    "cumsum": (lambda m, x, out: m.cumsum(x, 0, out=out), (3, 3)),
    "matmul": (lambda m, x, out: m.matmul(x, x, out=out), (3, 3)),
    "cat": (lambda m, x, out: m.cat([x, x], out=out), (6, 3)),
    "stack": (lambda m, x, out: m.stack([x, x], dim=1, out=out), (3, 2, 3)),
    "where": (lambda m, x, out: m.where(x > 2, x, -x, out=out), (3, 3)),
    "clamp": (lambda m, x, out: m.clamp(x, 1, 3, out=out), (3, 3)),
    "norm": (lambda m, x, out: m.norm(x, dim=0, out=out), (3,)),
    "inv": (lambda m, x, out: m.linalg.inv(x, out=out), (3, 3)),
    "det": (lambda m, x, out: m.linalg.det(x, out=out), ()),
    "erf": (lambda m, x, out: m.special.erf(x, out=out), (3, 3)),
    "index_select": (lambda m, x, out: m.index_select(x, 0, m.tensor([2, 0]), out=out), (2, 3)),
}
X = np.array([[1.0, 2.0, 0.5], [0.25, 3.0, 1.0], [2.0, -1.0, 4.0]])


@pytest.mark.parametrize("name", CALLS)
def test_as_torch(name):
    torch = pytest.importorskip("torch")
    call, shape = CALLS[name]
    found = []
    for module in (tg, torch):
        x, out = module.tensor(X), module.zeros(shape, dtype=module.float64)
        other = out[...]
        assert call(module, x, out) is out
        found.append([np.asarray(own) for own in (out, other)])
    for own, expected in zip(*found, strict=True):
        assert own.dtype == expected.dtype
        np.testing.assert_allclose(own, expected, rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_refused(name):
    call, shape = CALLS[name]
    out = tg.ones(shape, requires_grad=True)
    words = rf"{name}\(\): functions with out=... arguments don't support automatic differentiation"
    for x, target in ((tg.tensor(X), out), (tg.tensor(X, requires_grad=True), tg.ones(shape))):
        with pytest.raises(RuntimeError, match=words):
            call(tg, x, target)
        assert (target.detach() == 1).all()
    with tg.no_grad():
        assert call(tg, tg.tensor(X, requires_grad=True), out) is out


def test_another_shape():
    x, out, empty = tg.tensor(X), tg.zeros(2), tg.empty(0)
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        assert tg.sin(x, out=out) is out
    assert out.shape == (3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.cos(x, out=empty)
    np.testing.assert_allclose(empty.numpy(), np.cos(X))


def test_several_results():
    x, values, places = tg.tensor(X), tg.empty(3), tg.empty(3, dtype=tg.int64)
    result = tg.max(x, 0, out=(values, places))
    assert result.values is values
    assert result.indices is places
    assert values.tolist() == [2, 3, 4]
    assert places.tolist() == [2, 1, 2]
    with pytest.raises(TypeError, match="must be a tuple of 2 tensors"):
        tg.max(x, 0, out=values)
    before = values.tolist()
    with pytest.raises(TypeError, match="must be Tensor"):
        tg.min(x, 0, out=(values, None))
    assert values.tolist() == before


def test_errors():
    x, single = tg.tensor(X), tg.zeros((3, 3), dtype=tg.float32)
    assert tg.sin(x, out=single) is single
    np.testing.assert_allclose(single.numpy(), np.sin(X), rtol=1e-6)
    with pytest.raises(RuntimeError, match="result type Double can't be cast to the desired output type Long"):
        tg.sin(x, out=tg.zeros((3, 3), dtype=tg.int64))
    with pytest.raises(TypeError, match=r"sin\(\): argument 'out' must be Tensor, not ndarray"):
        tg.sin(x, out=np.zeros((3, 3)))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        tg.sin(x, out=tg.zeros(3).expand(3, 3))


def test_a_write_is_noticed():
    x = tg.tensor(X, requires_grad=True)
    y = x.exp()
    with tg.no_grad():
        tg.mul(x, 2.0, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


RESULTS = {
    "aminmax": (lambda m, x, out: m.aminmax(x, dim=0, out=out), ((3,), (3,)), ()),
    "lu_factor": (lambda m, x, out: m.linalg.lu_factor(x, out=out), ((3, 3), (3,)), (1,)),
    "lu": (lambda m, x, out: m.linalg.lu(x, out=out), ((3, 3), (3, 3), (3, 3)), ()),
    "inv_ex": (lambda m, x, out: m.linalg.inv_ex(x, out=out), ((3, 3), ()), (1,)),
    "solve_ex": (lambda m, x, out: m.linalg.solve_ex(x, x, out=out), ((3, 3), ()), (1,)),
    "ldl_factor": (lambda m, x, out: m.linalg.ldl_factor(x @ x.T, out=out), ((3, 3), (3,)), (1,)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_several_named_results(name):
    torch = pytest.importorskip("torch")
    call, shapes, integers = RESULTS[name]
    found = []
    for module in (tg, torch):
        kinds = [module.int32 if place in integers else module.float64 for place in range(len(shapes))]
        out = tuple(module.zeros(shape, dtype=kind) for shape, kind in zip(shapes, kinds, strict=True))
        result = call(module, module.tensor(X), out)
        found.append([np.asarray(own) for own in out])
        for own, one in zip(out, result, strict=True):
            np.testing.assert_array_equal(own, one)
    for own, expected in zip(*found, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-6, atol=1e-12)


CREATED = {
    "ones": lambda m, **kw: m.ones(2, 3, **kw),
    "zeros": lambda m, **kw: m.zeros((2, 3), **kw),
    "full": lambda m, **kw: m.full((2, 3), 3.5, **kw),
    "arange": lambda m, **kw: m.arange(6, **kw),
    "eye": lambda m, **kw: m.eye(2, 3, **kw),
    "linspace": lambda m, **kw: m.linspace(0, 4, 5, **kw),
    "logspace": lambda m, **kw: m.logspace(0, 2, 3, **kw),
}


@pytest.mark.parametrize("name", CREATED)
def test_created_tensors(name):
    torch = pytest.importorskip("torch")
    for kind in ("float64", "float32", "int64", "complex64"):
        if (name, kind) != ("arange", "complex64"):
            found = []
            for module in (tg, torch):
                out = module.empty(0, dtype=getattr(module, kind))
                assert CREATED[name](module, out=out) is out
                found.append(np.asarray(out))
            np.testing.assert_allclose(*found, rtol=1e-6)
            assert found[0].dtype == kind
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        CREATED[name](tg, out=tg.empty(0, dtype=tg.float32), dtype=tg.float64)


def test_random_numbers():
    for draw in (tg.rand, tg.randn):
        out = tg.empty(5, dtype=tg.float32)
        tg.manual_seed(3)
        assert draw(2, 3, out=out) is out
        tg.manual_seed(3)
        np.testing.assert_array_equal(out, draw(2, 3, dtype=tg.float32))


def test_sums_are_in_the_dtype_of_out():
    torch = pytest.importorskip("torch")
    for name in ("sum", "prod", "cumsum", "cumprod", "mean"):
        for kind in ("float32", "int64", "int32", "uint8", "complex128"):
            found = []
            for module in (tg, torch):
                out = module.empty(0, dtype=getattr(module, kind))
                if name == "mean" and "int" in kind:
                    with pytest.raises(RuntimeError, match="can't be cast"):
                        module.mean(module.tensor(X), 0, out=out)
                    continue
                getattr(module, name)(module.tensor([[1.5, 2.75], [3.5, 4.0]]), 0, out=out)
                found.append(np.asarray(out))
            if found:
                np.testing.assert_array_equal(*found)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        tg.sum(tg.tensor(X), dtype=tg.float64, out=tg.empty(0, dtype=tg.float32))


def test_copies_of_views():
    x, out = tg.tensor(X), tg.empty(0)
    assert tg.transpose_copy(x, 0, 1, out=out) is out
    np.testing.assert_array_equal(out, X.T)
    assert tg.nn.functional.normalize(x, out=out) is out
    np.testing.assert_allclose(out, X / np.linalg.norm(X, axis=1, keepdims=True))

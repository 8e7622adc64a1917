"""What chooses elements: indices out of range, ties, duplicates, layouts of indices, embeddings; as PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward import chosen
from tapegrad.ops import index_arrays
from tapegrad.tape.layout import layout_of
from tests.torch_programs import torch

F = tg.nn.functional
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def both(function: Callable[[Any, Any], Any], *arrays: np.ndarray) -> None:
    """Compare a function's value and gradients with PyTorch's."""
    ours = [tg.tensor(own, requires_grad=own.dtype.kind == "f") for own in arrays]
    theirs = [torch.tensor(own, requires_grad=own.dtype.kind == "f") for own in arrays]
    y, z = function(tg, ours), function(torch, theirs)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12)
    weights = np.linspace(1.0, 2.0, y.numel()).reshape(y.shape)
    (y * weights).sum().backward()
    (z * torch.tensor(weights)).sum().backward()
    for own, other in zip(ours, theirs, strict=True):
        if own.requires_grad:
            np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-12)


OUT_OF_RANGE = {
    "gather": (lambda x, i: tg.gather(x, 0, i[None]), RuntimeError),
    "scatter": (lambda x, i: tg.scatter(x, 0, i[None], 1.0), RuntimeError),
    "scatter_add": (lambda x, i: tg.scatter_add(x, 0, i[None], x), RuntimeError),
    "scatter_reduce": (lambda x, i: tg.scatter_reduce(x, 0, i[None], x, "amax"), RuntimeError),
    "scatter_": (lambda x, i: x.scatter_(0, i[None], 1.0), RuntimeError),
    "index_select": (lambda x, i: tg.index_select(x, 0, i), IndexError),
    "index_add_": (lambda x, i: x.index_add_(0, i, tg.ones(1, 3)), RuntimeError),
    "index_copy_": (lambda x, i: x.index_copy_(0, i, tg.ones(1, 3)), IndexError),
    "index_fill_": (lambda x, i: x.index_fill_(0, i, 1.0), IndexError),
    "index_reduce": (lambda x, i: tg.index_reduce(x, 0, i, tg.ones(1, 3), "amax"), IndexError),
    "take": (lambda x, i: tg.take(x, i), IndexError),
    "put_": (lambda x, i: x.put_(i, tg.ones(1)), IndexError),
    "index_put_": (lambda x, i: x.index_put_((i,), tg.ones(3)), IndexError),
    "embedding": (lambda x, i: F.embedding(i, x), IndexError),
}


@pytest.mark.parametrize("index", [2, -3, 6, -7, 2**62, -(2**63)])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_out_of_range_raises_before_anything_is_written(name: str, index: int) -> None:
    if name in ("take", "put_") and abs(index) < 6:
        pytest.skip("an index of the flat tensor")
    call, error = OUT_OF_RANGE[name]
    x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for _ in range(3):  # the plan is new, known, and found by compiled code
        with pytest.raises(error, match=r"out of bounds|out of range"):
            call(x, tg.tensor([index]))
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_indices_that_change_after_the_plan_are_looked_at_each_time() -> None:
    x, good, bad = tg.tensor([1.0, 2.0]), tg.tensor([1, 0]), tg.tensor([1, 5])
    for _ in range(4):
        assert tg.gather(x, 0, good).tolist() == [2.0, 1.0]
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 0 with size 2"):
        tg.gather(x, 0, bad)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_other_integers_are_indices(dtype: str) -> None:
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    index = np.array([[0, 1], [1, 0]], dtype)
    for _ in range(3):
        assert tg.gather(x, 1, tg.tensor(index)).tolist() == [[1.0, 2.0], [4.0, 3.0]]


@needs_torch
@pytest.mark.parametrize("order", ["C", "F"])
def test_strided_operands(order: Any) -> None:
    rng = np.random.default_rng(0)
    x, i = np.array(rng.normal(size=(3, 4)), order=order), np.array(rng.integers(0, 3, (3, 4)), order=order)
    both(lambda m, v: m.gather(v[0].T, 1, v[1].T), x, i)
    both(lambda m, v: m.scatter_add(v[0].T, 1, v[1].T, v[0].T * 2), x, i)
    both(lambda m, v: m.take(v[0], v[1].T), x, i)
    both(lambda m, v: m.masked_select(v[0], (v[0] > 0).T.contiguous().T), x)
    both(lambda m, v: m.nn.functional.embedding(v[1].T, v[0]), x, i)
    both(lambda m, v: m.index_select(v[0].T, 1, v[1][:, 0]), x, i)


@needs_torch
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_duplicates_and_zeros(reduce: str, include_self: bool) -> None:
    x, source = np.array([2.0, -1.0, 0.5, 4.0]), np.array([3.0, 3.0, 0.0, 5.0, -2.0])
    i = np.array([1, 1, 0, 0, 1])
    both(lambda m, v: m.scatter_reduce(v[0], 0, v[2], v[1], reduce, include_self=include_self), x, source, i)


def test_second_derivative_of_a_product_with_one_zero() -> None:
    x, source = tg.tensor([2.0], requires_grad=True), tg.tensor([0.0, 3.0], requires_grad=True)
    out = tg.scatter_reduce(x, 0, tg.tensor([0, 0]), source, "prod")
    by_x, by_source = tg.autograd.grad(out.sum(), (x, source), create_graph=True)
    assert (by_x.tolist(), by_source.tolist()) == ([0.0], [6.0, 0.0])
    assert [own.tolist() for own in tg.autograd.grad(by_source[0], (x, source), retain_graph=True)] == [
        [3.0], [0.0, 2.0],
    ]  # fmt: skip
    assert tg.autograd.grad(by_source[1], source, retain_graph=True)[0].tolist() == [2.0, 0.0]
    assert tg.autograd.grad(by_x.sum(), source)[0].tolist() == [3.0, 0.0]


@needs_torch
@pytest.mark.parametrize("name", ["mode", "cummax", "cummin", "median", "nanmedian"])
def test_indices_of_ties(name: str) -> None:
    x = np.array([[3.0, 1.0, 2.0, 3.0, 2.0, 1.0], [np.nan, 2.0, 2.0, np.nan, 5.0, 0.0]])
    for dim in (1, 0):
        ours, theirs = getattr(tg, name)(tg.tensor(x), dim), getattr(torch, name)(torch.tensor(x), dim)
        np.testing.assert_array_equal(ours[0].numpy(), theirs[0].numpy())
        if name.startswith("cum"):
            np.testing.assert_array_equal(ours[1].numpy(), theirs[1].numpy())
    assert tg.mode(tg.tensor([2.0, 3.0, 2.0, 3.0]), 0)[1].item() == torch.mode(torch.tensor([2.0, 3, 2, 3]), 0)[1]


@needs_torch
def test_medians_of_all_share() -> None:
    both(lambda m, v: m.median(v[0]), np.array([1.0, 2.0, 2.0, 2.0, 5.0]))
    both(lambda m, v: m.nanmedian(v[0]), np.array([1.0, 2.0, np.nan, 2.0, 2.0, 5.0]))
    both(lambda m, v: m.median(v[0]), np.array([1.0, np.nan, 2.0, np.nan]))


@needs_torch
@pytest.mark.parametrize("options", [{"padding_idx": 0}, {"padding_idx": -1}, {"scale_grad_by_freq": True}])
def test_embedding(options: dict[str, Any]) -> None:
    x, i = np.arange(12.0).reshape(4, 3), np.array([[0, 3, 0], [1, 3, 3]])
    both(lambda m, v: m.nn.functional.embedding(v[1], v[0], **options), x, i)


@needs_torch
def test_embedding_scales_rows_in_place() -> None:
    x, i = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]), [0, 1]
    ours, theirs = tg.tensor(x), torch.tensor(x)
    found = F.embedding(tg.tensor(i), ours, max_norm=1.0)
    expected = torch.nn.functional.embedding(torch.tensor(i), theirs, max_norm=1.0)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@needs_torch
@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_lines(right: bool) -> None:
    rng = np.random.default_rng(0)
    lines, values = np.sort(rng.integers(0, 9, (3, 5)), -1) / 2.0, rng.integers(-1, 10, (3, 7)) / 2.0
    for own, other in ((lines, values), (lines[0], values), (lines[0], values[:0])):
        found = tg.searchsorted(tg.tensor(own), tg.tensor(other), right=right)
        expected = torch.searchsorted(torch.tensor(own), torch.tensor(other), right=right)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    found = tg.bucketize(tg.tensor(values), tg.tensor(lines[1]), right=right)
    np.testing.assert_array_equal(
        found.numpy(), torch.bucketize(torch.tensor(values), torch.tensor(lines[1]), right=right).numpy()
    )


@needs_torch
def test_unique() -> None:
    x = np.array([[2, 1, 2], [2, 1, 2], [1, 1, 3]])
    for options in ({}, {"dim": 0}, {"dim": 1}):
        for name in ("unique", "unique_consecutive"):
            ours = getattr(tg, name)(tg.tensor(x), return_inverse=True, return_counts=True, **options)
            theirs = getattr(torch, name)(torch.tensor(x), return_inverse=True, return_counts=True, **options)
            for own, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(own.numpy(), other.numpy())
    leaf = tg.tensor([2.0, 1.0, 2.0], requires_grad=True)
    tg.unique(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0, 1.0, 0.0]


@needs_torch
def test_counts_and_order() -> None:
    x = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 1.0]])
    for options in ({}, {"dim": 0}, {"dim": (0, 1)}):
        assert (tg.count_nonzero(tg.tensor(x), **options).tolist()
                == torch.count_nonzero(torch.tensor(x), **options).tolist())  # fmt: skip
    for descending in (False, True):
        found = tg.argsort(tg.tensor(x), 1, descending)
        expected = torch.argsort(torch.tensor(x), dim=1, descending=descending, stable=True)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@needs_torch
@pytest.mark.parametrize("arguments", [(True,), (False,), (1, True, True), (1, False), (0, True), ((0, 1), False)])
def test_old_arguments_of_variances(arguments: tuple[Any, ...]) -> None:
    x = np.arange(12.0).reshape(3, 4) ** 2
    for name in ("var", "std"):
        both(lambda m, v, name=name: getattr(m, name)(v[0], *arguments), x)
        both(lambda m, v, name=name: getattr(v[0], name)(*arguments), x)
        both(lambda m, v, name=name: getattr(m, f"{name}_mean")(v[0], *arguments)[0], x)


def test_standard_deviation_of_equal_elements_has_slope_0() -> None:
    x = tg.ones(3, requires_grad=True)
    tg.std(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@needs_torch
@pytest.mark.parametrize(
    "name", ["scatter_", "scatter_add_", "index_add_", "index_copy_", "index_fill_", "masked_fill_"]
)
def test_in_place(name: str) -> None:
    def call(m: Any, v: Any) -> Any:
        y, i = v[0] * 1.0, v[1]
        more = {
            "scatter_": (0, i, v[0] * 2), "scatter_add_": (0, i, v[0] * 2), "index_add_": (0, i, v[0] * 3),
            "index_copy_": (0, i, v[0] * 3), "index_fill_": (0, i[:2], 7.0), "masked_fill_": (v[0] > 1, 5.0),
        }[name]  # fmt: skip
        result = getattr(y, name)(*more)
        assert result is y
        return y * v[0]

    both(call, np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]))


def test_kernels_serve_indices_in_range_and_no_others() -> None:
    """Of other indices NumPy's way decides, which raises."""

    def by_numpy(*arrays: Any, **attrs: Any) -> None:
        raise LookupError

    x, source = np.arange(12.0).reshape(3, 4), np.ones((2, 4))
    right, wrong = np.array([[0, 1, 2, 0], [1, 1, 0, 2]]), np.array([[0, 1, 2, 0], [1, 3, 0, 2]])
    layouts = layout_of(x), layout_of(right), layout_of(source)
    gather = chosen.gather(layouts[0], layouts[1], 0, by_numpy)
    np.testing.assert_array_equal(gather(x, right), np.take_along_axis(x, right, 0))
    functions = [gather]
    for way in ("replace", "sum", "amax"):
        scatter = chosen.scatter(layouts, 0, way, True, by_numpy)
        assert scatter(x, right, source).shape == x.shape
        functions.append(lambda x, indices, scatter=scatter: scatter(x, indices, source))
    for function in functions:
        for indices in (wrong, wrong - 4):
            with pytest.raises(LookupError):
                function(x, indices)


def test_the_largest_of_bags_of_none_and_of_one() -> None:
    table, indices = tg.tensor([[1.0, -2.0], [3.0, -4.0]]), tg.tensor([1, 0, 1])
    found = tg.nn.functional.embedding_bag(indices, table, tg.tensor([0, 1, 1]), mode="max")
    assert found.tolist() == [[3.0, -4.0], [0.0, 0.0], [3.0, -2.0]]


ALONG: dict[str, Callable[..., Any]] = {
    "index_select": lambda T, x, i, v: T.index_select(x, 0, i),
    "index_add": lambda T, x, i, v: T.index_add(x, 0, i, v),
    "index_copy": lambda T, x, i, v: T.index_copy(x, 0, i, v),
    "take": lambda T, x, i, v: T.take(x, i),
    "put": lambda T, x, i, v: T.put(x, i, v[:, 0]),
    "index_put": lambda T, x, i, v: T.index_put(x, (i,), v),
    "embedding": lambda T, x, i, v: T.nn.functional.embedding(i, x),
}


@needs_torch
@pytest.mark.parametrize("name", ALONG)
def test_compiled_code_serves_indices_along_a_dimension(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also others than those of the call that made the plan; what happens to an array of indices later is no matter."""
    function, rng = ALONG[name], np.random.default_rng(0)
    x, v = rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    for _ in range(2):
        both(lambda T, own: function(T, *own, T.tensor(v)), x, np.array([0, 3]))
    calls: list[Any] = []
    monkeypatch.setattr(index_arrays, "compute", lambda *args, **kwargs: calls.append(args))
    both(lambda T, own: function(T, *own, T.tensor(v)), x, np.array([2, 1]))
    assert not calls
    index, leaf = tg.tensor([2, 1]), tg.tensor(x, requires_grad=True)
    y = function(tg, leaf, index, tg.tensor(v))
    index.zero_()
    y.sum().backward()
    fresh = tg.tensor(x, requires_grad=True)
    function(tg, fresh, tg.tensor([2, 1]), tg.tensor(v)).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), fresh.grad.numpy())


@needs_torch
@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_scores_with_margins(p: int) -> None:
    """Ties with the margin, scores in any layout, and lists of labels that end, repeat one, or have none."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (5, 6)) / 2
    for scores in (x, np.array(x, order="F"), x[::2, 1:], x[0]):
        classes = rng.integers(0, scores.shape[-1], scores.shape[:-1])
        lists = rng.integers(-1, scores.shape[-1], scores.shape)
        for reduction in ("mean", "sum", "none"):
            options = {"p": p, "margin": 0.5, "reduction": reduction}
            both(lambda m, v, o=options: m.nn.functional.multi_margin_loss(*v, **o), scores, classes)
            both(lambda m, v, r=reduction: m.nn.functional.multilabel_margin_loss(*v, reduction=r), scores, lists)


@pytest.mark.parametrize("label", [-1, 3, 2**62])
def test_no_label_is_read_out_of_bounds(label: int) -> None:
    x = tg.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="out of range"):
        tg.nn.functional.multi_margin_loss(x, tg.tensor([0, label]))
    if label > 0:
        with pytest.raises(RuntimeError, match="out of range"):
            tg.nn.functional.multilabel_margin_loss(x, tg.tensor([[0, 1, 2], [0, label, 1]]))


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_kernels_of_what_is_combined_are_the_rule(reduce: str, include_self: bool) -> None:
    """Ties, zeros, nan and infinities; the cotangent of x is added to one that is there."""
    rng = np.random.default_rng(0)
    for dim, shape, index_shape in ((0, (4,), (9,)), (0, (3, 4), (5, 4)), (1, (2, 3, 2), (2, 6, 2))):
        values = np.array([-1.0, 0.0, 2.0, 2.0, np.nan, np.inf])
        x, source = (tg.tensor(rng.choice(values, own), requires_grad=True) for own in (shape, index_shape))
        index, ct = tg.tensor(rng.integers(0, shape[dim], index_shape)), tg.tensor(rng.normal(size=shape))
        with np.errstate(all="ignore"):
            y = tg.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)
            total = (y * ct).sum() + x.sum()
            expected = tg.autograd.grad(total, (x, source), create_graph=True)
            found = tg.autograd.grad(total, (x, source))
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(own.numpy(), other.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "shapes",
    [((5,), (5,), ()), ((2, 1), (3,), (2, 3)), ((40, 3), (40, 1), (3,)), ((2, 3, 4), (3, 1), (2, 1, 4))],
    ids=str,
)
def test_where_is_a_loop_for_any_strides(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    condition, x, y = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    condition = condition > 0
    for own in (condition, condition[::-1], np.ascontiguousarray(condition.T).T):
        for other in (y, 0.5, 0):
            expected = np.where(own, x, other).astype(dtype)
            for _ in range(2):  # the second time by compiled code
                found = tg.where(own, tg.from_numpy(x), other if isinstance(other, (int, float)) else tg.from_numpy(y))
                np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("given", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("wanted", ["float32", "float64", "complex128"])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_slopes_of_products_in_other_dtypes(given: str, wanted: str) -> None:
    numbers = np.array([1.5, 10.5, 0.0, -3.5]).astype(given)
    x = tg.tensor(numbers, requires_grad=True)
    tg.prod(x, dtype=getattr(tg, wanted)).backward(tg.ones((), dtype=getattr(tg, wanted)))
    np.testing.assert_array_equal(x.grad.numpy(), np.array([0, 0, -55.125, 0]).astype(given))

"""Writes in place: compiled code computes them, and writes to the memory of the tensor."""

from __future__ import annotations

import sys
import warnings
from functools import partial

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table import public

UNARY = (
    "abs acos asin atan ceil cos erf exp expm1 floor log1p neg relu round rsqrt sigmoid sign sin sqrt square tanh trunc"
)
BINARY = "add sub mul div eq lt atan2 fmod remainder hypot copysign maximum pow clamp_min clamp_max"
LENGTHS = (1, 7, 200, 20_000)  # of these, loops write to long ones themselves, and threads may share the longest


def values(count, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, count)


def written(name, target, *args):
    before = target._version
    for _ in range(3):  # the plan is known from the second call on
        same = getattr(target, f"{name}_")(*args)
        assert same is target
    assert target._version == before + 3
    return target


@pytest.mark.parametrize("name", UNARY.split())
@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.filterwarnings("ignore")
def test_functions(name, count):
    function, array = getattr(tg, name), values(count)
    expected = function(function(function(tg.tensor(array))))
    np.testing.assert_array_equal(written(name, tg.tensor(array)).numpy(), expected.numpy())


@pytest.mark.parametrize("name", [name for name in BINARY.split() if hasattr(tg.Tensor, f"{name}_")])
@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("other", ["tensor", "number", "itself", "row"])
@pytest.mark.filterwarnings("ignore")
def test_functions_of_two(name, count, other):
    function, array = getattr(tg, name), values(2 * count).reshape(2, count)
    x, y = tg.tensor(array), tg.tensor(array)
    second = {
        "tensor": lambda x: tg.tensor(values(2 * count, 1).reshape(2, count)), "number": lambda x: tg.tensor(0.7),
        "itself": lambda x: x, "row": lambda x: x[0],
    }[other]  # fmt: skip
    for _ in range(3):
        y = tg.tensor(function(y, second(y)).numpy().astype(float))
    before = x._version
    for _ in range(3):
        getattr(x, f"{name}_")(second(x))
    np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert x._version == before + 3


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex128"])
def test_dtypes(count, dtype):
    array = (values(count) * 10).astype(dtype)
    x = tg.tensor(array)
    for _ in range(3):
        x.eq_(3)
    assert x.numpy().dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), np.zeros(count, dtype))
    y = tg.tensor(array)
    for _ in range(3):
        y.copy_(x)
    np.testing.assert_array_equal(y.numpy(), x.numpy())


@pytest.mark.parametrize("count", [3, 3000])
def test_parts_of_the_memory(count):
    x = tg.zeros(3, count)
    for _ in range(3):
        x[1].add_(1.0)
        x[:, 0].add_(1.0)
        x.detach()[2].sub_(tg.ones(count))
        x.data[2].exp_()
    expected = np.zeros((3, count))
    for _ in range(3):
        expected[1] += 1
        expected[:, 0] += 1
        expected[2] = np.exp(expected[2] - 1)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-15)
    assert x._version == 9


@pytest.mark.parametrize("count", [5, 5000])
def test_overlapping_memory(count):
    for first, second in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        x, expected = tg.tensor(values(count)), values(count)
        for _ in range(3):
            x[first].add_(x[second])
            expected[first] = expected[first] + expected[second].copy()
            x.mul_(x[0]).sub_(x[1:2])
            expected *= expected[0].copy()
            expected -= expected[1].copy()
        np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("count", [3, 3000])
def test_floating_errors_are_numpys(count):
    with np.errstate(all="raise"):
        for _ in range(3):
            with pytest.raises(FloatingPointError, match="divide by zero"):
                tg.ones(count).div_(tg.zeros(count))
            with pytest.raises(FloatingPointError, match="invalid value encountered in log"):
                tg.zeros(count).sub_(1.0).log_()
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match="encountered in log"):
        tg.zeros(count).sub_(1.0).log_()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert tg.zeros(count).sub_(1.0).log_().isnan().all()


def test_what_is_refused_is_not_written():
    x, frozen = tg.zeros(3), tg.tensor(np.zeros(3))
    frozen._array().flags.writeable = False
    for write, words in [
        (lambda: x.add_(tg.ones(2, 3)), "output with shape"),
        (lambda: tg.zeros(3, dtype="int64").mul_(0.5), "can't be cast"),
        (lambda: tg.zeros(1).expand(3).exp_(), "more than one element"),
        (lambda: tg.zeros(3, requires_grad=True).exp_(), "leaf Variable"),
        (lambda: x.add_(tg.ones(3), tg.ones(3)), "argument"),
        (lambda: tg.zeros(3, dtype="complex128").abs_(), "not supported for complex"),
    ]:
        for _ in range(3):
            with pytest.raises((RuntimeError, TypeError), match=words):
                write()
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            frozen.add_(1.0)
    assert x._version == 0
    assert x.tolist() == [0.0] * 3


def test_gradients_come_first():
    w, x = tg.tensor([2.0, 3.0], requires_grad=True), tg.zeros(2)
    for _ in range(3):
        y = tg.ones(2)
        y.mul_(w).sin_()  # recorded, as w wants a gradient
        y.sum().backward()
        with tg.no_grad():
            w.add_(w.grad, alpha=-0.1)
            w.mul_(2.0)
            w.grad.zero_()
    assert w._version == 6
    product = x * w  # saves x
    x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    with tg.inference_mode():
        z = tg.ones(2)
        z.mul_(3.0)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        z.mul_(2.0)
    assert z.tolist() == [3.0, 3.0]


def test_writes_before_and_after_the_last_ones_are_counted():
    w, x = tg.tensor([2.0], requires_grad=True), tg.zeros(1)
    for _ in range(100):
        x.add_(1.0)
    product = x * w
    x.add_(1.0)
    x.sin_()
    with pytest.raises(RuntimeError, match="is at version 102; expected version 100"):
        product.backward()


def test_views_of_what_has_a_history_later():
    base, w = tg.zeros(4), tg.tensor(2.0, requires_grad=True)
    view = base[:2]
    view.add_(1.0)
    base.mul_(w)  # now it has a history
    view.add_(3.0)
    base.sum().backward()
    assert w.grad.item() == 2.0
    assert view.requires_grad


def test_a_number_becomes_an_array():
    x = tg.zeros(3).sum()
    alias = x.detach()
    for _ in range(3):
        x.add_(1.0).mul_(tg.tensor(2.0))
    assert (x.item(), alias.item()) == (14.0, 14.0)


def test_classes_derived_from_tensor():
    class Mine(tg.Tensor):
        pass

    x = tg.nn.Parameter(tg.zeros(3))
    with tg.no_grad():
        for _ in range(3):
            assert x.add_(1.0) is x
    assert x.tolist() == [3.0] * 3
    mine = tg.zeros(3).as_subclass(Mine) if hasattr(tg.Tensor, "as_subclass") else tg.zeros(3)
    assert mine.add_(1.0) is mine


def test_names_of_arguments():
    x = tg.tensor([1.0, 5.0])
    for _ in range(3):
        x.clamp_(min=2.0).clamp_(max=4.0).add_(other=1.0, alpha=0.0).lerp_(weight=0.0, end=x)
    assert x.tolist() == [2.0, 4.0]


def test_methods_take_no_calls_of_python():
    x, y, calls = tg.zeros(9), tg.ones(9), []

    def program():
        x.add_(y).mul_(0.5).sin_().clamp_(-1.0, 1.0).lerp_(y, 0.5).eq_(y)

    for _ in range(3):
        program()
    sys.setprofile(lambda frame, event, value: calls.append(frame) if event == "call" else None)
    try:
        program()
    finally:
        sys.setprofile(None)
    assert len(calls) == 1


def test_every_method_that_writes_serves_as_its_function():
    for name in public.names_in(public.WRITES):
        method = getattr(tg.Tensor, f"{name}_")
        assert callable(method)
        assert method.__doc__


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fill", [
    lambda x: x.normal_(), lambda x: x.normal_(2.0, 0.3), lambda x: x.uniform_(), lambda x: x.uniform_(-2.0, 5.0),
    lambda x: x.exponential_(3.0), lambda x: x.bernoulli_(0.3), lambda x: x.bernoulli_(tg.tensor(0.3)),
])  # fmt: skip
def test_random_numbers_do_not_depend_on_the_way(dtype, fill):
    results = []
    for target in (tg.zeros(50, dtype=dtype), tg.zeros(50, 2, dtype=dtype)[:, 0], tg.zeros(50, dtype=dtype) * 1.0):
        tg.manual_seed(3)
        fill(target)
        results.append(target.tolist())
    tg.manual_seed(3)
    recorded = tg.ones(50, dtype=dtype, requires_grad=True) * 1.0
    fill(recorded)
    assert [*results, recorded.tolist()] == [results[0]] * 4
    assert target._version == 1


ELEMENTS = {
    "index_put_": lambda m, x: x.index_put_((m.tensor([0, 2]), m.tensor([1, 1])), m.ones(2, dtype=m.float32)),
    "index_put_ with a mask": lambda m, x: x.index_put_((x > 3,), m.tensor(0.5, dtype=m.float32)),
    "index_put_, added": lambda m, x: x.index_put_((m.tensor([0, 0]),), m.ones(2, 4, dtype=m.float32), accumulate=True),
    "index_put_ out of bounds": lambda m, x: x.index_put_((m.tensor([9]),), m.ones(1, 4, dtype=m.float32)),
    "put_": lambda m, x: x.view(-1).put_(m.tensor([0, -1]), m.tensor([7.0, 8.0], dtype=m.float32)),
    "put_ of a matrix": lambda m, x: x.put_(m.tensor([0, 9]), m.tensor([7.0, 8.0], dtype=m.float32)),
    "index_copy_": lambda m, x: x.index_copy_(1, m.tensor([3, 0]), m.ones(3, 2, dtype=m.float32)),
    "index_copy_ of another shape": lambda m, x: x.index_copy_(1, m.tensor([3, 0]), m.ones(3, 1, dtype=m.float32)),
    "masked_scatter_": lambda m, x: x.masked_scatter_(x > 6, m.arange(20.0, dtype=m.float32)),
    "masked_fill_": lambda m, x: x.masked_fill_(x > 6, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements(name):
    torch, results = pytest.importorskip("torch"), []
    for m in (tg, torch):
        x = m.arange(12, dtype=m.float32).reshape(3, 4)
        for _ in range(3):
            try:
                ELEMENTS[name](m, x)
            except (RuntimeError, IndexError, ValueError):
                results.append("raised")
        results.append((x.tolist(), x._version))
    half = len(results) // 2
    assert results[:half] == results[half:]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    "name", ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "add", "mul", "floor_divide"]
)
@pytest.mark.parametrize("count", [3, 3000])
def test_integers(dtype, name, count):
    if dtype == "bool" and name in ("floor_divide",):
        return
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y = (rng.integers(1, 100, count).astype(dtype) for _ in range(2))
    own, other = tg.tensor(x), torch.tensor(x)
    for _ in range(3):
        getattr(own, f"{name}_")(tg.tensor(y))
        getattr(other, f"{name}_")(torch.tensor(y))
    np.testing.assert_array_equal(own.numpy(), other.numpy())


def test_elements_of_the_memory_that_is_written_to():
    x = tg.arange(3.0)
    assert x.index_put_((tg.tensor([2, 1, 0]),), x).tolist() == [2.0, 1.0, 0.0]
    assert x.index_copy_(0, tg.tensor([0, 1]), x[1:]).tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(RuntimeError):
        x.masked_scatter_(x == 0, tg.ones(1))
    assert (x.tolist(), x._version) == ([1.0, 0.0, 0.0], 2)


def frames_of(call):
    """Return the names of Python's functions in `tapegrad` that a call runs, but for those of other warm calls."""
    names = []
    sys.setprofile(lambda frame, event, value: names.append(frame.f_code) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {own.co_qualname for own in names if "tapegrad" in own.co_filename}


@pytest.mark.parametrize("name", ["relu_", "leaky_relu_", "elu_", "hardtanh_", "inplace"])
def test_activations_write_to_results_and_to_plain_tensors_in_compiled_code(name):
    functional = tg.nn.functional
    write = (lambda y: functional.leaky_relu(y, 0.5, True)) if name == "inplace" else getattr(functional, name)
    x = tg.tensor(values(5), requires_grad=True)
    for start in (x, x.detach()):
        for _ in range(3):
            write(start.clone())
        y = start.clone()
        assert not {"_rebase", "note", "in_place.<locals>.call", "owner_of"} & frames_of(lambda y=y: write(y))
        whole = getattr(functional, name.rstrip("_"), functional.leaky_relu)
        expected = whole(x, 0.5) if name == "inplace" else whole(x)
        np.testing.assert_array_equal(y.numpy(force=True), expected.numpy(force=True))
        if start is x:
            (own,), (other,) = (tg.autograd.grad((one * one).sum(), x) for one in (y, expected))
            np.testing.assert_array_equal(own.numpy(), other.numpy())


def test_what_compiled_writes_leave_to_python():
    """Results that were saved, hooks, gradients that are kept, views, memory of others: as in PyTorch."""
    x = tg.tensor([1.0, 4.0], requires_grad=True)
    quotient = x / 2.0
    ratio = x / quotient
    ratio.mul_(ratio)  # what the quotient has saved, and a factor
    ratio.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [0.0, 0.0], atol=1e-15)
    y, seen = x * 1.0, []
    y.retain_grad()
    y.register_hook(lambda ct: seen.append(ct.tolist()))
    y.sin_()
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert len(seen) == 1
    z = x.exp()
    z.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    part = (x * 1.0).view(2)
    part.exp_()
    part.mul_(part.detach())  # the same memory
    (grad,) = tg.autograd.grad(part.sum(), x)
    np.testing.assert_allclose(grad.tolist(), np.exp([2.0, 8.0]))
    w = x * 1.0
    with pytest.raises(TypeError):
        w.mul_("2")
    with pytest.raises(RuntimeError):
        w.add_(tg.ones(3))
    assert w.tolist() == [1.0, 4.0]


def test_only_writes_to_what_was_saved_are_looked_at():
    """A pass calls Python for them if one of its entries has saved what was written to."""
    x, other = tg.tensor([1.0, 2.0], requires_grad=True), tg.ones(2)
    for _ in range(2):
        y = (x * x).sin()
        other.add_(1.0)
        names = frames_of(lambda y=y: y.backward(other))
    assert "Sweep._check_versions" not in names
    y = x * other
    other.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = (x * x) * other[None].detach()[0]
    with tg.no_grad():
        other.view(-1)[:1].add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


FUSED = {
    "add_": ("alpha", 1, lambda w, g, h, v: w + v * g),
    "sub_": ("alpha", 1, lambda w, g, h, v: w - v * g),
    "addcmul_": ("value", 2, lambda w, g, h, v: w + v * g * h),
    "addcdiv_": ("value", 2, lambda w, g, h, v: w + v * g / h),
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("count", [3, 3000])
@pytest.mark.parametrize("way", ["parameter", "result"])
def test_multiples_are_added_in_one_pass(name, count, way):
    """As optimizers write it: ``w.add_(g, alpha=-lr)``."""
    keyword, n, function = FUSED[name]
    others = [tg.tensor(values(count, seed)) for seed in (1, 2)][:n]
    w = tg.nn.Parameter(tg.tensor(values(count)))
    arrays = [own.numpy() for own in (*others, *others)][:2]
    expected = w.numpy(force=True).copy()
    x = w.detach().requires_grad_()
    for factor in (-0.25, 0.5, 2):
        target = x.clone() if way == "result" else w
        start = expected if way == "parameter" else x.numpy(force=True)
        with tg.set_grad_enabled(way == "result"):
            names = frames_of(partial(getattr(target, name), *others, **{keyword: factor}))
            expected = function(start, *arrays, factor)
            np.testing.assert_allclose(target.numpy(force=True), expected, rtol=1e-14, atol=1e-15)
        if way == "result":
            assert tg.autograd.grad(target.sum(), x)[0].tolist() == [1.0] * count
    assert not {"_rebase", "in_place.<locals>.call", "times", "mul"} & names
    if way == "parameter":
        assert w._version == 3


def test_multiples_have_the_names_the_gradients_and_the_errors_of_sums():
    for name, slope in (("add", 0.3), ("sub", -0.3)):
        x, y = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
        out = getattr(tg, name)(x, y, alpha=0.3)
        assert out.grad_fn.name() == f"{name.title()}Backward0"
        out.sum().backward()
        assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [slope, slope])
    for _ in range(2):
        with pytest.raises(TypeError, match="positional arguments"):
            tg.ones(2).add_(tg.ones(2), -0.25, alpha=2.0)
        with pytest.raises(TypeError, match="positional arguments"):
            tg.ones(2).addcmul_(tg.ones(2), tg.ones(2), 0.5)
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            tg.ones(2, dtype="int64").add_(tg.ones(2, dtype="int64"), alpha=0.5)
        with pytest.raises(RuntimeError, match="leaf Variable"):
            x.add_(y, alpha=0.5)
    assert tg.ones(2, dtype="float32").add_(tg.ones(2), alpha=2).tolist() == [3.0, 3.0]
    assert tg.ones(2).addcmul_(tg.ones(2), tg.ones(2)).tolist() == [2.0, 2.0]

"""Facts about tensors, integers, shapes in place and random numbers in place: PyTorch's results and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch: Any = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("T", [tg, torch], ids=["ours", "torch"])


def _of_memory(x: Any) -> list[Any]:
    return [x.is_contiguous(), x.element_size(), x.nelement(), x.itemsize, x.nbytes, x.ndimension(), x.storage_offset(),
            x.is_signed(), x.cpu() is x]  # fmt: skip


def test_memory() -> None:
    ours, theirs = tg.zeros(2, 3, dtype="int16"), torch.zeros(2, 3, dtype=torch.int16)
    for view in (lambda x: x, lambda x: x.T, lambda x: x[1], lambda x: x[:, 1:], lambda x: x[1, 2], lambda x: x[2:]):
        mine, other = _of_memory(view(ours)), _of_memory(view(theirs))
        assert mine == other or view(theirs).numel() == 0  # NumPy copies what has no elements
    assert ours[1].data_ptr() - ours.data_ptr() == 6
    assert tg.zeros(0).data_ptr() == torch.zeros(0).data_ptr() == 0


@BOTH
def test_questions(T: Any) -> None:
    x = T.ones(2, 3)
    assert T.is_tensor(x)
    assert not T.is_tensor(np.ones(2))
    assert [T.is_nonzero(T.tensor(own)) for own in (0.0, [2.0], [[False]])] == [False, True, False]
    assert [T.is_signed(T.zeros(1, dtype=own)) for own in (T.uint8, T.float64, T.bool)] == [False, True, False]
    assert T.is_same_size(x, T.zeros(2, 3))
    assert not x.is_same_size(T.zeros(3, 2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        T.is_nonzero(T.ones(2))


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtypes", [("int64", "int64"), ("int8", "uint8"), ("int32", "int16")])
def test_integers(name: str, dtypes: tuple[str, str]) -> None:
    signed = [[-12, 4], [0, 7]] if name in ("gcd", "lcm") else [[12, 4], [0, 7]]
    arrays = np.array(signed, dtypes[0]), np.array([3, 2], dtypes[1])
    found, expected = (getattr(T, name)(*map(T.tensor, arrays)) for T in (tg, torch))
    assert found.tolist() == expected.tolist()
    assert str(expected.dtype) == f"torch.{found.dtype}"
    wide = [tg.tensor(own).long() for own in arrays]
    assert getattr(wide[0], f"{name}_")(wide[1]).tolist() == wide[0].tolist() == expected.tolist()


def test_shifts_as_operators_and_ufuncs() -> None:
    x = tg.tensor([1, 6])
    assert [(x << 2).tolist(), (x >> 1).tolist(), (64 >> x).tolist(), (1 << x).tolist()] == [
        [4, 24], [0, 3], [32, 1], [2, 64],
    ]  # fmt: skip
    assert np.left_shift(x, 1).tolist() == [2, 12]
    assert np.right_shift(x, 1).tolist() == [0, 3]
    assert np.gcd(x, 4).tolist() == [1, 2]
    assert np.lcm(x, 4).tolist() == [4, 12]


@BOTH
def test_integers_only(T: Any) -> None:
    for name in ("gcd", "lcm"):
        for x in (T.ones(2), T.tensor([True, False])):
            with pytest.raises(NotImplementedError):
                getattr(T, name)(x, x)


# In place ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logical_and_", "logical_or_", "logical_xor_", "eq_", "ne_", "lt_", "le_", "gt_",
                                  "ge_", "greater_", "not_equal_"])  # fmt: skip
def test_truth_values_in_place(name: str) -> None:
    for dtype in ("float64", "int64", "bool"):
        x, y = np.array([1, 0, 2, 0]).astype(dtype), np.array([1, 1, 0, 0]).astype(dtype)
        found, expected = (getattr(T.tensor(x), name)(T.tensor(y)) for T in (tg, torch))
        assert found.tolist() == expected.tolist()
        assert found.dtype == dtype


@pytest.mark.parametrize("name", ["eq_", "gt_", "logical_and_"])
def test_what_is_written_over_has_no_gradient(name: str) -> None:
    """As of PyTorch's comparisons; its logical_and_ leaves the gradient of the old values."""
    x = tg.tensor([1.0, 0.0, 2.0], requires_grad=True)
    y = x * 2
    assert getattr(y, name)(tg.tensor([2.0, 1.0, 0.0])) is y
    assert y.requires_grad
    (y * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == y.tolist()


SHAPED: dict[str, Callable[[Any], Any]] = {
    "t_": lambda y: y[0].t_(),
    "transpose_": lambda y: y.transpose_(0, 2),
    "swapaxes_": lambda y: y.swapaxes_(0, -1),
    "swapdims_": lambda y: y.swapdims_(1, 2),
    "squeeze_": lambda y: y.squeeze_(),
    "squeeze_ one": lambda y: y.squeeze_(0),
    "squeeze_ some": lambda y: y.squeeze_((0, 1)),
    "unsqueeze_": lambda y: y.unsqueeze_(-1),
    "of a number": lambda y: y.sum().unsqueeze_(0),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_in_place(name: str) -> None:
    start = np.random.default_rng(0).normal(size=(1, 2, 3))
    results = []
    for T in (tg, torch):
        x = T.tensor(start, requires_grad=True)
        y = x * 2
        before = y[0, 1]
        z = SHAPED[name](y)
        z.mul_(T.arange(float(z.numel())).reshape(z.shape))
        ((z * z).sum() + (before * before * before).sum()).backward()
        results.append((z.detach().numpy(), before.detach().numpy(), x.grad.numpy()))
    for mine, other in zip(*results, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-14)


def test_shapes_in_place_are_those_of_the_tensor_itself() -> None:
    x = tg.tensor([[1.0], [2.0]])
    assert x.squeeze_() is x
    assert x.shape == (2,)
    y = tg.tensor([[1.0, 2.0]], requires_grad=True)
    z = y.exp()
    assert z.t_() is z
    z.sum().backward()  # torch refuses, as if the values had changed
    assert y.grad is not None
    np.testing.assert_allclose(y.grad.numpy(), np.exp([[1.0, 2.0]]))


@BOTH
def test_shapes_of_leaves_in_place(T: Any) -> None:
    x = T.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.t_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0:1].squeeze_()
    with T.no_grad():
        x.t_()
    (x * T.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="expects a tensor with <= 2 dimensions, but self is 3D"):
        T.ones(1, 1, 1).t_()


# Random numbers ----------------------------------------------------------------------------------------------------


DRAWN: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "uniform_": (lambda x: x.uniform_(2, 4), 3, 1 / 3),
    "normal_": (lambda x: x.normal_(1, 2), 1, 4),
    "bernoulli_": (lambda x: x.bernoulli_(0.25), 0.25, 0.1875),
    "exponential_": (lambda x: x.exponential_(2), 0.5, 0.25),
    "log_normal_": (lambda x: x.log_normal_(0, 0.5), np.exp(0.125), (np.exp(0.25) - 1) * np.exp(0.25)),
    "cauchy_": (lambda x: x.cauchy_(1, 2).sub_(1).div_(2).atan_(), 0, np.pi**2 / 12),
    "geometric_": (lambda x: x.geometric_(0.5), 2, 2),
    "random_": (lambda x: x.random_(2, 5), 3, 2 / 3),
    "random_ to": (lambda x: x.random_(3), 1, 2 / 3),
    "random_ of all": (lambda x: x.random_().div_(2**53), 0.5, 1 / 12),
}


@pytest.mark.parametrize("name", DRAWN)
@BOTH
def test_drawn_in_place(T: Any, name: str) -> None:
    draw, mean, variance = DRAWN[name]
    T.manual_seed(0)
    found = draw(T.zeros(40000, dtype=T.float64)).numpy()
    np.testing.assert_allclose([found.mean(), found.var()], [mean, variance], rtol=0.06, atol=0.01)


def test_what_is_drawn_over_has_no_gradient() -> None:
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    y.exponential_()
    (y * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == y.tolist()


@BOTH
def test_drawn(T: Any) -> None:
    T.manual_seed(0)
    n = 20000
    weights = T.tensor([[1.0, 0.0, 3.0], [0.5, 0.25, 0.25]])
    found = T.multinomial(weights, n, replacement=True).numpy()
    assert found.shape == (2, n)
    counts = np.stack([np.bincount(row, minlength=3) / n for row in found])
    np.testing.assert_allclose(counts, [[0.25, 0, 0.75], [0.5, 0.25, 0.25]], atol=0.02)
    rows = T.multinomial(T.tensor([0.2, 0.3, 0.5]) * T.ones(n, 1), 2).numpy()
    assert (rows[:, 0] != rows[:, 1]).all()
    np.testing.assert_allclose(np.bincount(rows[:, 0]) / n, [0.2, 0.3, 0.5], atol=0.02)
    # The second: by the chance of the first, times its own among those that are left.
    np.testing.assert_allclose((rows[:, 1] == 2).mean(), 0.2 * 0.5 / 0.8 + 0.3 * 0.5 / 0.7, atol=0.02)
    assert T.multinomial(T.tensor([0.0, 1.0, 0.0]), 1).tolist() == [1]
    rates = T.poisson(T.full((n,), 3.0)).numpy()
    np.testing.assert_allclose([rates.mean(), rates.var()], [3, 3], rtol=0.06)
    counts = T.binomial(T.full((n,), 4.0), T.tensor(0.25)).numpy()
    np.testing.assert_allclose([counts.mean(), counts.var()], [1, 0.75], rtol=0.06)
    assert sorted(set(T.randint_like(T.ones(200), 2, 4).tolist())) == [2, 3]
    state = T.get_rng_state()
    first = T.rand(3).tolist()
    T.set_rng_state(state)
    assert T.rand(3).tolist() == first
    assert T.seed() == T.initial_seed()


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "more than there are": (lambda T: T.multinomial(T.ones(2), 3), RuntimeError,
                            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"),
    "negative": (lambda T: T.multinomial(T.tensor([1.0, -1.0]), 1), RuntimeError,
                 "probability tensor contains either `inf`, `nan` or element < 0"),
    "nan": (lambda T: T.multinomial(T.tensor([1.0, np.nan]), 1), RuntimeError, "probability tensor contains either"),
    "zeros": (lambda T: T.multinomial(T.zeros(2), 1), RuntimeError, "invalid multinomial distribution (sum of"),
    "integers": (lambda T: T.multinomial(T.arange(2), 1), RuntimeError,
                 "multinomial only supports floating-point dtypes for input, got: Long"),
    "dimensions": (lambda T: T.multinomial(T.ones(1, 1, 1), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    "none": (lambda T: T.ones(2).multinomial(0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    "rate": (lambda T: T.poisson(-T.ones(1)), RuntimeError, "invalid Poisson rate, expected rate to be non-negative"),
    "rate of integers": (lambda T: T.poisson(T.arange(2)), NotImplementedError, "not implemented for 'Long'"),
    "bernoulli_": (lambda T: T.ones(2).bernoulli_(2.0), RuntimeError, "bernoulli_ expects p to be in [0, 1], but got"),
    "exponential_": (lambda T: T.ones(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0, but found"),
    "integers_": (lambda T: T.arange(2).exponential_(), RuntimeError, "Exponential distribution is a continuous"),
    "log_normal_": (lambda T: T.ones(2).log_normal_(0, 0), RuntimeError, "log_normal_ expects std > 0.0, but found"),
    "cauchy_": (lambda T: T.ones(2).cauchy_(0, 0), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"),
    "geometric_": (lambda T: T.ones(2).geometric_(1), RuntimeError, "geometric_ expects p to be in (0, 1), but got"),
    "random_": (lambda T: T.ones(2).random_(3, 2), RuntimeError, "random_ expects 'from' to be less than 'to', but"),
    "uniform_": (lambda T: T.ones(2).uniform_(2, 1), RuntimeError, "uniform_ expects to return a [from, to) range"),
    "normal_": (lambda T: T.ones(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    "a leaf": (lambda T: T.ones(2, requires_grad=True).exponential_(), RuntimeError,
               "a leaf Variable that requires grad is being used in an in-place operation"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@BOTH
def test_refused(T: Any, name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=re.escape(words)):
        call(T)


def test_refused_by_us_alone() -> None:
    with pytest.raises(RuntimeError, match=r"binomial\(\) expects count >= 0 and 0 <= prob <= 1"):
        tg.binomial(tg.ones(2), tg.tensor(2.0))


@BOTH
def test_where_of_a_condition_alone_is_where_it_holds(T: Any) -> None:
    rows, columns = T.where(T.tensor([[True, False], [True, True]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1, 1], [0, 0, 1])

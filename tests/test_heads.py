"""Attention of several heads, samples of categories and fractional pools: PyTorch's numbers, and its refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests import checks

torch: Any = pytest.importorskip("torch")
E, HEADS, N, L, S = 4, 2, 2, 3, 5
RNG = np.random.default_rng(0)


def _arrays(batched: bool = True, narrow: bool = False) -> dict[str, np.ndarray]:
    middle = (N,) if batched else ()
    shapes = {
        "query": (L, *middle, E), "key": (S, *middle, 3 if narrow else E), "value": (S, *middle, 2 if narrow else E),
        "in_proj_weight": (3 * E, E), "in_proj_bias": (3 * E,), "out_proj_weight": (E, E), "out_proj_bias": (E,),
    }  # fmt: skip
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


REST = {"embed_dim_to_check": E, "num_heads": HEADS, "bias_k": None, "bias_v": None, "add_zero_attn": False,
        "dropout_p": 0.0}  # fmt: skip
NARROW = {"q_proj_weight": RNG.normal(size=(E, E)), "k_proj_weight": RNG.normal(size=(E, 3)),
          "v_proj_weight": RNG.normal(size=(E, 2)), "use_separate_proj_weight": True,
          "in_proj_weight": None}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "each head": {"average_attn_weights": False},
    "no bias": {"in_proj_bias": None, "out_proj_bias": None},
    "no dropout": {"dropout_p": 0.9, "training": False},
    "weights of their own": NARROW,
    "mask of heads": {"attn_mask": RNG.normal(size=(N * HEADS, L, S)), "key_padding_mask": RNG.normal(size=(N, S))},
    "masks of bools": {"attn_mask": RNG.random((L, S)) > 0.7, "key_padding_mask": np.arange(S) > [[3], [4]]},
    "causal": {"attn_mask": np.triu(np.ones((L, S), bool), 1), "is_causal": True},
    "biases and zeros": {"bias_k": RNG.normal(size=(1, 1, E)), "bias_v": RNG.normal(size=(1, 1, E)),
                         "add_zero_attn": True, "attn_mask": RNG.normal(size=(L, S)),
                         "key_padding_mask": RNG.normal(size=(N, S))},
    "static": {"static_k": RNG.normal(size=(N * HEADS, 2, E // HEADS)),
               "static_v": RNG.normal(size=(N * HEADS, 2, E // HEADS))},
}  # fmt: skip


def _attend(T: Any, arrays: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    given = {key: T.tensor(own) if isinstance(own, np.ndarray) else own for key, own in arrays.items()}
    leaves = [own for own in given.values() if hasattr(own, "dtype") and "float" in str(own.dtype)]
    for own in leaves:
        own.requires_grad_()
    out, weights = T.nn.functional.multi_head_attention_forward(**given)
    ((out**3).sum() + (0 if weights is None else (weights**2).sum())).backward()
    return out, weights, [own.grad for own in leaves]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention(name: str, need_weights: bool) -> None:
    arrays = _arrays(narrow=name == "weights of their own") | REST | OPTIONS[name] | {"need_weights": need_weights}
    (out, weights, grads), (their_out, their_weights, theirs) = (_attend(T, arrays) for T in (tg, torch))
    checks.assert_close([out.detach().numpy()], [their_out.detach().numpy()])
    assert (weights is None) == (their_weights is None) == (not need_weights)
    if need_weights:
        checks.assert_close([weights.detach().numpy()], [their_weights.detach().numpy()])
    for mine, other in zip(grads, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"key_padding_mask": np.arange(S) > 3}])
def test_attention_without_a_batch(options: dict[str, Any]) -> None:
    arrays = _arrays(batched=False) | REST | options
    for mine, other in zip(*(_attend(T, arrays)[:2] for T in (tg, torch)), strict=True):
        checks.assert_close([mine.detach().numpy()], [other.detach().numpy()])


def test_dropout_of_attention() -> None:
    arrays = _arrays() | REST | {"dropout_p": 1.0}
    out, weights, _ = _attend(tg, arrays)
    assert not weights.detach().numpy().any()
    np.testing.assert_array_equal(out.detach().numpy(), np.broadcast_to(arrays["out_proj_bias"], out.shape))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "embedding": ({"embed_dim_to_check": 3}, "was expecting embedding dimension of 3, but got 4"),
    "heads": ({"num_heads": 3}, "embed_dim 4 not divisible by num_heads 3"),
    "no weights": ({"in_proj_weight": None}, "use_separate_proj_weight is False but in_proj_weight is None"),
    "no weights of keys": (NARROW | {"k_proj_weight": None, "key": np.ones((S, N, 3)), "value": np.ones((S, N, 2))},
                           "use_separate_proj_weight is True but k_proj_weight is None"),
    "values": ({"value": np.ones((2, N, E))}, "does not match value shape"),
    "dimensions": ({"query": np.ones((1, 1, 1, E))}, "query should be unbatched 2D or batched 3D tensor but received"),
    "a batch": ({"key": np.ones((S, E))}, "For batched (3-D) `query`, expected `key` and `value` to be 3-D but found"),
    "padding": ({"key_padding_mask": np.ones(S, bool)}, "expected `key_padding_mask` to be `None` or 2-D but found 1-"),
    "mask": ({"attn_mask": np.ones((L, S), np.int64)}, "only bool and floating types of attn_mask are supported"),
    "one bias": ({"bias_k": np.ones((1, 1, E))}, "bias_k is set but bias_v is None"),
    "other bias": ({"bias_v": np.ones((1, 1, E))}, "bias_v is set but bias_k is None"),
    "static": ({"static_k": np.ones((1, 2, 2))}, "expecting static_k.size(0) of 4, but got 1"),
    "causal": ({"is_causal": True}, "Need attn_mask if specifying the is_causal hint"),
    "mask of others": ({"attn_mask": np.ones((L, L), bool)}, "The shape of the 2D attn_mask is "),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("T", [tg, torch], ids=["ours", "torch"])
def test_refused_attention(T: Any, name: str) -> None:
    options, words = REFUSED[name]
    with pytest.raises((AssertionError, RuntimeError), match=re.escape(words)) as caught:
        _attend(T, _arrays() | REST | options)
    assert caught.type is (RuntimeError if name in ("causal", "mask of others") else AssertionError)


# Samples of categories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, -1])
def test_gumbel_softmax(dim: int) -> None:
    logits = np.random.default_rng(2).normal(size=(3, 4))
    x = tg.tensor(logits, requires_grad=True)
    tg.manual_seed(1)
    soft = tg.nn.functional.gumbel_softmax(x, 0.5, dim=dim)
    noise = -np.log(np.random.default_rng(1).standard_exponential((3, 4)))
    expected = torch.softmax((torch.tensor(logits, requires_grad=True) + torch.tensor(noise)) / 0.5, dim)
    np.testing.assert_allclose(soft.detach().numpy(), expected.detach(), rtol=1e-12)
    (of_soft,) = tg.autograd.grad((soft * soft.detach()).sum(), x)
    tg.manual_seed(1)
    hard = tg.nn.functional.gumbel_softmax(x, 0.5, hard=True, dim=dim)
    np.testing.assert_allclose(hard.detach().numpy(), soft.detach().numpy() == soft.detach().numpy().max(
        dim, keepdims=True), atol=1e-15)  # fmt: skip
    (of_hard,) = tg.autograd.grad((hard * soft.detach()).sum(), x)
    np.testing.assert_allclose(of_hard.numpy(), of_soft.numpy(), rtol=1e-12)


def test_categories_are_drawn_as_often_as_they_are_likely() -> None:
    tg.manual_seed(0)
    chance = np.array([0.5, 0.2, 0.3])
    drawn = tg.nn.functional.gumbel_softmax(tg.tensor(np.tile(np.log(chance), (20000, 1))), hard=True)
    np.testing.assert_allclose(drawn.mean(0).numpy(), chance, atol=0.02)


def test_refused_and_warned() -> None:
    for T in (tg, torch):
        with pytest.raises(RuntimeError):
            T.nn.functional.gumbel_softmax(T.arange(3))
        with pytest.raises(IndexError, match="Dimension out of range"):
            T.nn.functional.gumbel_softmax(T.ones(3), dim=1)
        with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect"):
            T.nn.functional.gumbel_softmax(T.ones(3), eps=0.1)


# Fractional pools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fractional_pools(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    for kernel, size in ((1, 1), (2, 3), (3, 2), ((2, 1, 3)[:n], (1, 4, 2)[:n])):
        x, draws = rng.normal(size=(2, 3, 7, 6, 5)[: n + 2]).astype(dtype), rng.random((2, 3, n)).astype(dtype)
        ours, theirs = (
            getattr(T.nn.functional, f"fractional_max_pool{n}d")(
                T.tensor(x), kernel, size, return_indices=True, _random_samples=T.tensor(draws)
            )
            for T in (tg, torch)
        )
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine.numpy(), other.numpy())


def test_drawn_pools() -> None:
    x = tg.arange(20.0).reshape(1, 4, 5)
    pool = tg.nn.functional.fractional_max_pool2d
    for _ in range(5):
        found = pool(x, 2, output_ratio=0.5)
        assert found.shape == (1, 2, 2)
        assert found[0, -1, -1] == 19
    assert pool(x, 2, output_ratio=(0.5, 0.75)).shape == (1, 2, 3)


POOLS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no size": ({}, ValueError, "fractional_max_pool2d requires specifying either an output_size or an output_ratio"),
    "three ratios": ({"output_ratio": (0.5,) * 3}, ValueError, "fractional_max_pool2d requires output_ratio to either"),
    "too many": ({"output_size": (4, 2)}, RuntimeError, "pool height 2 too large relative to input height 4"),
    "draws": ({"output_size": 2, "_random_samples": np.ones((1, 1, 3))}, RuntimeError, "Expect _random_samples"),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("T", [tg, torch], ids=["ours", "torch"])
def test_refused_pools(T: Any, name: str) -> None:
    options, error, words = POOLS[name]
    given = {key: T.tensor(own) if isinstance(own, np.ndarray) else own for key, own in options.items()}
    with pytest.raises(error, match=re.escape(words)):
        T.nn.functional.fractional_max_pool2d(T.ones(1, 4, 5), 2, **given)

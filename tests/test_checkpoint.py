"""Checkpoints: each test with the fixture T runs on PyTorch too."""

import importlib
import os
import tracemalloc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.runtime import pool


def module_of(T):
    return importlib.import_module(f"{T.__name__}.utils.checkpoint")


def leaf(T, *values):
    return T.tensor(list(values), requires_grad=True)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_and_calls(T, use_reentrant):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    calls = []

    def layer(x, factor):
        calls.append(T.is_grad_enabled())
        return (x * w).sin() * factor, "text"

    for count in (1, 2):
        y, text = module_of(T).checkpoint(layer, x * 1, 2.0, use_reentrant=use_reentrant)
        assert (text, y.requires_grad) == ("text", True)
        y.exp().sum().backward()
        assert len(calls) == 2 * count
    assert calls == [not use_reentrant, True] * 2
    plain = [leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)]
    (2 * ((plain[0] * plain[1]).sin() * 2).exp().sum()).backward()
    assert np.allclose(x.grad.tolist(), plain[0].grad.tolist())
    assert np.allclose(w.grad.tolist(), plain[1].grad.tolist())


def test_a_graph_that_is_kept_and_derivatives_of_second_order(T):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    y = module_of(T).checkpoint(lambda x: (x * w).sin().exp(), x, use_reentrant=False).sum()
    plain = (x * w).sin().exp().sum()
    for _ in range(2):
        (slope,) = T.autograd.grad(y, x, create_graph=True)
        (expected,) = T.autograd.grad(plain, x, create_graph=True)
        assert np.allclose(slope.tolist(), expected.tolist())
        second = T.autograd.grad((slope * slope).sum(), (x, w))
        expected = T.autograd.grad((expected * expected).sum(), (x, w))
        assert [np.allclose(a.tolist(), b.tolist()) for a, b in zip(second, expected, strict=True)] == [True, True]
        y = module_of(T).checkpoint(lambda x: (x * w).sin().exp(), x, use_reentrant=False).sum()
        plain = (x * w).sin().exp().sum()


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(T, use_reentrant, preserve):
    x = leaf(T, *[1.0] * 50)
    drawn = []

    def layer(x):
        drawn.append(T.rand(50))
        return (x * drawn[-1]).exp()

    T.manual_seed(1)
    y = module_of(T).checkpoint(layer, x, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    state = T.rand(1)
    y.sum().backward()
    assert (drawn[0].tolist() == drawn[1].tolist()) == preserve
    T.manual_seed(1)
    T.rand(50)
    assert T.rand(1).tolist() == state.tolist()


def test_keywords_and_constants(T):
    checkpoint = module_of(T).checkpoint
    w = leaf(T, 3.0)
    y = checkpoint(lambda x, *, k: x.sin() * w * k, T.ones(1), k=2.0, use_reentrant=False)
    y.sum().backward()
    assert np.allclose(w.grad.tolist(), 2 * np.sin(1))
    with pytest.raises(ValueError, match=r"^Unexpected keyword arguments: k"):
        checkpoint(lambda x, k: x, T.ones(1), k=2.0, use_reentrant=True)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(lambda x: x * w, T.ones(1), use_reentrant=True)
    assert not y.requires_grad


def test_refusals(T):
    checkpoint = module_of(T).checkpoint
    x = leaf(T, 1.0, 2.0)
    y = checkpoint(lambda x: x.sin(), x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\) or passing an `inputs` parameter"):
        T.autograd.grad(y, x)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x.sin(), x)
    calls = []

    def changing(x):
        calls.append(0)
        return x.sin().exp() if len(calls) == 1 else x * 2 if len(calls) == 2 else x[:1].sin().exp()

    y = checkpoint(changing, x, use_reentrant=False)
    with pytest.raises(RuntimeError, match=r"A different number of tensors was saved during the original forward"):
        y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=r"Recomputed values for the following tensors have different metadata"):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_in_segments(T, use_reentrant):
    x, w = leaf(T, 0.1, 0.2), leaf(T, 0.3, 0.4)
    calls = [0] * 5

    def step(number):
        def call(x):
            calls[number] += 1
            return (x * w).sin() + number

        return call

    steps = [step(number) for number in range(5)]
    y = module_of(T).checkpoint_sequential(steps, 2, x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert calls == [2, 2, 1, 1, 1]
    value = x
    for one in steps:
        value = one(value)
    (expected,) = T.autograd.grad(value.sum(), w)
    assert np.allclose(w.grad.tolist(), expected.tolist())


def test_nested_and_in_place(T):
    checkpoint = module_of(T).checkpoint
    x = leaf(T, 1.0, 2.0)

    def inner(x):
        y = x.sin()
        y += 1
        return y.exp()

    def outer(x):
        return checkpoint(inner, x * 2, use_reentrant=False).cos()

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    z = leaf(T, 1.0, 2.0)
    ((z * 2).sin() + 1).exp().cos().sum().backward()
    assert np.allclose(x.grad.tolist(), z.grad.tolist())


@pytest.mark.skipif("TAPEGRAD_TEST_AS_LARGE" in os.environ, reason="threads keep the arrays of their last work")
def test_nothing_is_kept():
    import weakref

    x = tg.ones(1000, requires_grad=True)
    alive = []

    def layer(x):
        y = x.exp()
        alive.append(weakref.ref(y._data))
        return y.exp()

    y = tg.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
    assert [ref() is None for ref in alive] == [True]
    y.sum().backward()
    assert [ref() is None for ref in alive] == [True, True]


def _peak(advance):
    """The most bytes in use in a pass through 8 segments of 6 turns, in arrays of a turn."""
    before = pool._sizes["limit"]
    tg.set_cache_limit(0)
    x = y = tg.ones(1 << 15, requires_grad=True)
    tracemalloc.start()
    try:
        for _ in range(8):
            y = advance(y)
        y.sum().backward()
        return tracemalloc.get_traced_memory()[1] / x.nbytes
    finally:
        tracemalloc.stop()
        tg.set_cache_limit(before)


def test_the_memory_of_a_segment_is_free_before_the_next_one_runs_again():
    def segment(x):
        for _ in range(6):
            x = tg.tanh(1.1 * x)
        return x

    def again(x):
        return tg.utils.checkpoint.checkpoint(segment, x, use_reentrant=True)

    for advance in (segment, again):
        _peak(advance)  # compiles
    assert _peak(segment) > 48
    assert _peak(again) < 35

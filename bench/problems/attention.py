"""Self-attention with several heads, as in a transformer's block."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem

BATCH, WIDTH, HEADS = 4, 64, 4
SCALE = float((WIDTH // HEADS) ** -0.5)


def _block(rng: np.random.Generator, size: int) -> Data:
    weights = (rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5 for _ in range(4))
    arrays = (rng.normal(size=(BATCH, size, WIDTH)), *weights)
    return Data(tuple(array.astype(np.float32) for array in arrays), (size,))


def _split(x: Any, size: int) -> Any:
    """From (batch, size, width) to (batch, heads, size, width / heads)."""
    return x.reshape((BATCH, size, HEADS, WIDTH // HEADS)).swapaxes(1, 2)


def _join(x: Any, size: int) -> Any:
    return x.swapaxes(1, 2).reshape((BATCH, size, WIDTH))


def attention(F: Any, x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, size: int) -> Any:
    q, k, v = _split(x @ Wq, size), _split(x @ Wk, size), _split(x @ Wv, size)
    weights = F.softmax((q @ k.swapaxes(2, 3)) * SCALE, -1)  # (batch, heads, size, size)
    y = x + _join(weights @ v, size) @ Wo
    return (y * y).mean()


def by_hand(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, size: int) -> Any:
    q, k, v = _split(x @ Wq, size), _split(x @ Wk, size), _split(x @ Wv, size)
    scores = (q @ k.swapaxes(2, 3)) * SCALE
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    joined = _join(weights @ v, size)
    y = x + joined @ Wo
    ct_y = 2.0 / y.size * y
    ct = _split(ct_y @ Wo.T, size)
    ct_v = weights.swapaxes(2, 3) @ ct
    ct_weights = ct @ v.swapaxes(2, 3)
    ct_scores = weights * (ct_weights - (ct_weights * weights).sum(axis=-1, keepdims=True)) * SCALE
    cts = [_join(part, size) for part in (ct_scores @ k, ct_scores.swapaxes(2, 3) @ q, ct_v)]
    flat = x.reshape((-1, WIDTH))
    grads = [flat.T @ part.reshape((-1, WIDTH)) for part in cts]
    grad_x = ct_y + cts[0] @ Wq.T + cts[1] @ Wk.T + cts[2] @ Wv.T
    grad_o = joined.reshape((-1, WIDTH)).T @ ct_y.reshape((-1, WIDTH))
    return (y * y).mean(), (grad_x, *grads, grad_o)


PROBLEMS = (
    Problem(
        "attention", "4 heads over {} positions of 64 features, batch 4, float32", 64, 3, _block, attention, by_hand
    ),
)  # fmt: skip

"""Small networks: one of a few units, and the one that learns the bundled hand-written digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Arrays, Data, Problem


def _mlp(rng: np.random.Generator, size: int) -> Data:
    batch, features = 16, 8
    weights = (
        rng.normal(size=(features, size)) / 3,
        rng.normal(size=size),
        rng.normal(size=(size, 1)) / 6,
        np.zeros(1),
    )
    return Data(weights, (rng.normal(size=(batch, features)), rng.normal(size=(batch, 1))))


def mlp(F: Any, W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    return ((F.tanh(X @ W1 + b1) @ W2 + b2 - t) ** 2).mean()


def mlp_by_hand(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    hidden = np.tanh(X @ W1 + b1)
    error = hidden @ W2 + b2 - t  # (batch, 1)
    ct = 2.0 / error.size * error
    ct_hidden = (ct @ W2.T) * (1.0 - hidden * hidden)  # (batch, hidden)
    return (error * error).mean(), (X.T @ ct_hidden, ct_hidden.sum(axis=0), hidden.T @ ct, ct.sum(axis=0))


def digits(count: int) -> Arrays:
    """Return so many images of shape (count, 64), float32, between 0 and 1, and their labels."""
    from tapegrad.data import load_digits

    images, labels = load_digits()
    images = np.asarray(images[:count], np.float32)
    return images / images.max(), np.asarray(labels[:count], np.int64)


def cross_entropy_by_hand(scores: Any, labels: Any) -> tuple[Any, Any]:
    """Return the mean cross-entropy and the cotangent of the scores."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    ct = powers / powers.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    value = -np.log(ct[rows, labels]).mean()
    ct[rows, labels] -= 1.0
    return value, ct / np.float32(len(labels))


def _digits(rng: np.random.Generator, size: int) -> Data:
    images, labels = digits(size)
    hidden = 64
    weights = (rng.normal(size=(64, hidden)) / 8, np.zeros(hidden), rng.normal(size=(hidden, 10)) / 8, np.zeros(10))
    return Data(tuple(weight.astype(np.float32) for weight in weights), (images, labels))


def classifier(F: Any, W1: Any, b1: Any, W2: Any, b2: Any, X: Any, labels: Any) -> Any:
    return F.cross_entropy(F.relu(X @ W1 + b1) @ W2 + b2, labels)


def classifier_by_hand(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, labels: Any) -> Any:
    hidden = np.maximum(X @ W1 + b1, 0.0)
    value, ct = cross_entropy_by_hand(hidden @ W2 + b2, labels)
    ct_hidden = (ct @ W2.T) * (hidden > 0)
    return value, (X.T @ ct_hidden, ct_hidden.sum(axis=0), hidden.T @ ct, ct.sum(axis=0))


PROBLEMS = (
    Problem("mlp", "16 samples of 8 features, {} hidden units, tanh, mean square", 32, 4, _mlp, mlp, mlp_by_hand),
    Problem(
        "digits", "{} digits, 64 hidden units, relu, cross-entropy, float32", 128, 8, _digits, classifier,
        classifier_by_hand,
    ),
)  # fmt: skip

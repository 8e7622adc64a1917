"""Likelihoods: logistic regression, and a mixture of Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem


def _samples(rng: np.random.Generator, size: int) -> Data:
    features = 50
    X = rng.normal(size=(size, features))
    signs = np.where(rng.uniform(size=size) < 0.5, -1.0, 1.0)
    return Data((rng.normal(size=features) / 7, np.asarray(0.1)), (X, signs))


def logistic(F: Any, w: Any, b: Any, X: Any, signs: Any) -> Any:
    return F.log(1.0 + F.exp(-signs * (X @ w + b))).mean()


def logistic_by_hand(w: Any, b: Any, X: Any, signs: Any) -> Any:
    powers = np.exp(-signs * (X @ w + b))
    ct = -signs * powers / (1.0 + powers) / signs.size
    return np.log(1.0 + powers).mean(), (ct @ X, ct.sum())


def _mixture(rng: np.random.Generator, size: int) -> Data:
    components, dims = 8, 4
    means = rng.normal(size=(components, dims))
    points = means[rng.integers(components, size=size)] + rng.normal(size=(size, dims)) / 2
    spreads = rng.normal(size=(components, dims)) / 4  # logarithms
    return Data((rng.normal(size=components), means, spreads), (points[:, None, :],))


def mixture(F: Any, weights: Any, means: Any, spreads: Any, points: Any) -> Any:
    z = (points - means) * F.exp(-spreads)  # (points, components, dims)
    log_densities = weights - spreads.sum(-1) - 0.5 * (z * z).sum(-1)  # (points, components)
    return F.logsumexp(weights, 0) - F.logsumexp(log_densities, 1).mean()


def mixture_by_hand(weights: Any, means: Any, spreads: Any, points: Any) -> Any:
    narrow = np.exp(-spreads)
    z = (points - means) * narrow
    log_densities = weights - spreads.sum(-1) - 0.5 * (z * z).sum(-1)
    largest = log_densities.max(axis=1, keepdims=True)
    shares = np.exp(log_densities - largest)
    totals = shares.sum(axis=1, keepdims=True)
    all_weights = np.exp(weights).sum()
    value = np.log(all_weights) - (np.log(totals) + largest).mean()
    ct = shares / totals / -len(shares)  # of the log densities
    ct_sum = ct.sum(axis=0)
    ct_z = -ct[:, :, None] * z
    grads = (
        np.exp(weights) / all_weights + ct_sum,
        -ct_z.sum(axis=0) * narrow,
        -ct_sum[:, None] - (ct_z * z).sum(axis=0),
    )
    return value, grads


PROBLEMS = (
    Problem(
        "logistic", "logistic regression of {} samples of 50 features", 5000, 20, _samples, logistic, logistic_by_hand
    ),
    Problem(
        "mixture", "8 Gaussians in 4 dimensions, {} points, logsumexp", 2000, 7, _mixture, mixture, mixture_by_hand
    ),
)

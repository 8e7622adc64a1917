"""The likelihood of a mixture of Gaussians with full covariances, as in ADBench."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, dot, exp, log, total
from bench.programs.workload import Workload

COMPONENTS, DIMS = 10, 10
LOWER = np.tril_indices(DIMS, -1)


def _mixture(rng: np.random.Generator, size: int) -> Data:
    means = rng.normal(size=(COMPONENTS, DIMS))
    points = means[rng.integers(COMPONENTS, size=size)] + rng.normal(size=(size, DIMS)) / 2
    table, mask = np.zeros((DIMS, DIMS), np.int64), np.zeros((DIMS, DIMS))
    table[LOWER], mask[LOWER] = np.arange(len(LOWER[0])), 1.0
    logs = rng.normal(size=(COMPONENTS, DIMS)) / 4
    lower = rng.normal(size=(COMPONENTS, len(LOWER[0]))) / 4
    return Data((rng.normal(size=COMPONENTS), means, logs, lower), (points, table, mask))


def mixture(F: Any, weights: Any, means: Any, logs: Any, lower: Any, points: Any, table: Any, mask: Any) -> Any:
    """Take the inverse of a covariance's root as its diagonal's logarithms and what is below it, row by row."""
    roots = lower[:, table] * mask  # (component, dim, dim)
    centred = points[:, None, :] - means  # (point, component, dim)
    z = F.exp(logs) * centred + F.einsum("kij,nkj->nki", roots, centred)
    scores = weights + logs.sum(-1) - 0.5 * (z * z).sum(-1)  # (point, component)
    return F.logsumexp(scores, 1).sum() - len(points) * F.logsumexp(weights, 0)


@by_hand
def mixture_by_hand(weights: Any, means: Any, logs: Any, lower: Any, points: Any, table: Any, mask: Any) -> Any:
    count, dims = points.shape
    components = weights.size
    turned = np.empty((dims, count))  # points in a row, so that loops over them are vectorised
    for n in range(count):
        for i in range(dims):
            turned[i, n] = points[n, i]
    scores = np.empty((components, count))
    z, centred = np.empty((components, dims, count)), np.empty((dims, count))
    for k in range(components):
        place = 0
        score = scores[k]
        score[:] = 0.0
        for i in range(dims):
            row, at = z[k, i], centred[i]
            mean, scale = means[k, i], exp(logs[k, i])
            for n in range(count):
                at[n] = turned[i, n] - mean
                row[n] = scale * at[n]
            for j in range(i):
                add_scaled(row, lower[k, place], centred[j])
                place += 1
            for n in range(count):
                score[n] -= 0.5 * row[n] * row[n]
        score += weights[k] + logs[k].sum()
    shift, sums = scores[0].copy(), np.zeros(count)
    for k in range(1, components):
        for n in range(count):
            shift[n] = max(shift[n], scores[k, n])
    for k in range(components):
        for n in range(count):
            scores[k, n] = exp(scores[k, n] - shift[n])
            sums[n] += scores[k, n]
    for n in range(count):
        shift[n] += log(sums[n])
        sums[n] = 1.0 / sums[n]
    powers = np.exp(weights)
    value = total(shift) - count * np.log(powers.sum())
    ct_weights, ct_means = np.empty(components), np.zeros((components, dims))
    ct_logs, ct_lower = np.empty((components, dims)), np.empty(lower.shape)
    for k in range(components):
        share = scores[k]
        for n in range(count):
            share[n] *= sums[n]
        members = total(share)
        ct_weights[k] = members - count * powers[k] / powers.sum()
        place = 0
        for i in range(dims):
            row, at = z[k, i], centred[i]
            scale = exp(logs[k, i])
            for n in range(count):
                at[n] = turned[i, n] - means[k, i]
                row[n] *= -share[n]
            ct_logs[k, i] = members + scale * dot(row, at)
            moment = total(row)
            ct_means[k, i] -= scale * moment
            for j in range(i):
                ct_lower[k, place] = dot(row, centred[j])
                ct_means[k, j] -= lower[k, place] * moment
                place += 1
    return value, ct_weights, ct_means, ct_logs, ct_lower


@by_hand
def add_scaled(row: Any, factor: float, other: Any) -> None:
    for n in range(row.size):
        row[n] += factor * other[n]


WORKLOADS = (
    Workload(
        "mixture", "10 Gaussians with full covariances in 10 dimensions, {} points", 1000, 7, _mixture, mixture,
        mixture_by_hand,
    ),
)  # fmt: skip

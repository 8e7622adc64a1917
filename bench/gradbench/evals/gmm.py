"""GMM: the log-posterior of a mixture of Gaussians with a Wishart prior, and its gradient."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import multigammaln

import tapegrad as tg
from bench.gradbench.protocol import Function


@cache
def places(d: int) -> tuple[Any, Any]:
    """Return where each element of a lower triangle stands in its columns one after the other, and where it is one."""
    table, mask = np.zeros((d, d), int), np.zeros((d, d))
    upper = np.triu_indices(d, 1)
    table.T[upper], mask.T[upper] = np.arange(len(upper[0])), 1.0
    return table, mask


def objective(alpha: Any, mu: Any, q: Any, lower: Any, x: Any, m: int, gamma: float) -> Any:
    (n, d), k = x.shape, len(alpha)
    away, scales = x[:, None] - mu, np.exp(q)
    z = scales * away
    if d > 1:
        table, mask = places(d)
        z = z + np.einsum("kij,nkj->nki", lower[:, table] * mask, away)
    scores = alpha + q.sum(1) - 0.5 * (z * z).sum(2)
    likelihood = tg.logsumexp(scores, 1).sum() - n * tg.logsumexp(alpha, 0) - n * d * 0.5 * np.log(2 * np.pi)
    freedom = d + m + 1
    constant = freedom * d * (np.log(gamma) - 0.5 * np.log(2)) - multigammaln(0.5 * freedom, d)
    squares = (scales * scales).sum() + (lower * lower).sum()
    return likelihood - 0.5 * gamma * gamma * squares + m * q.sum() + k * constant


def _mixture(given: Any) -> tuple[Any, ...]:
    arrays = (np.array(given[name], dtype=float) for name in ("alpha", "mu", "q", "l", "x"))
    return *arrays, given["m"], float(given["gamma"])


def _by_name(gradients: Any) -> dict[str, Any]:
    return {name: found.tolist() for name, found in zip(("alpha", "mu", "q", "l"), gradients, strict=True)}


FUNCTIONS = {
    "objective": Function(_mixture, tg.compile(objective), float),
    "jacobian": Function(_mixture, tg.compile(tg.func.grad(objective, argnums=(0, 1, 2, 3))), _by_name),
}

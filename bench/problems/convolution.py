"""A small convolutional network over the bundled digits, its convolutions written with einsum."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.networks import cross_entropy_by_hand, digits
from bench.problems.problem import Data, Problem

CHANNELS, KERNEL = 8, 3


def _network(rng: np.random.Generator, size: int) -> Data:
    images, labels = digits(size)
    weights = (
        rng.normal(size=(CHANNELS, 1, KERNEL, KERNEL)) / 3,
        rng.normal(size=(CHANNELS, 1, 1)) / 4,
        rng.normal(size=(CHANNELS, CHANNELS, KERNEL, KERNEL)) / 8,
        rng.normal(size=(CHANNELS, 1, 1)) / 4,
        rng.normal(size=(CHANNELS, 4, 4, 10)) / 11,
    )
    return Data(tuple(weight.astype(np.float32) for weight in weights), (images.reshape(size, 1, 8, 8), labels))


def _convolve(einsum: Any, x: Any, kernel: Any) -> Any:
    """From (batch, channels, n, n) to (batch, channels, n - 2, n - 2): a sum over the places of the kernel."""
    n = x.shape[-1] - KERNEL + 1
    total = 0.0
    for u in range(KERNEL):
        for v in range(KERNEL):
            part = einsum("bcij,oc->boij", x[:, :, u : u + n, v : v + n], kernel[:, :, u, v])
            total = part if u == v == 0 else total + part
    return total


def network(F: Any, K1: Any, b1: Any, K2: Any, b2: Any, W: Any, images: Any, labels: Any) -> Any:
    hidden = F.tanh(_convolve(F.einsum, images, K1) + b1)
    hidden = F.tanh(_convolve(F.einsum, hidden, K2) + b2)
    return F.cross_entropy(F.einsum("bcij,cijk->bk", hidden, W), labels)


def _einsum(equation: str, *operands: Any) -> Any:
    return np.einsum(equation, *operands, optimize=True)


def _convolve_back(ct: Any, x: Any, kernel: Any) -> tuple[Any, Any]:
    """Return the cotangents of the input and of the kernel."""
    n = ct.shape[-1]
    ct_x, ct_kernel = np.zeros_like(x), np.empty_like(kernel)
    for u in range(KERNEL):
        for v in range(KERNEL):
            ct_kernel[:, :, u, v] = _einsum("boij,bcij->oc", ct, x[:, :, u : u + n, v : v + n])
            ct_x[:, :, u : u + n, v : v + n] += _einsum("boij,oc->bcij", ct, kernel[:, :, u, v])
    return ct_x, ct_kernel


def by_hand(K1: Any, b1: Any, K2: Any, b2: Any, W: Any, images: Any, labels: Any) -> Any:
    first = np.tanh(_convolve(_einsum, images, K1) + b1)
    second = np.tanh(_convolve(_einsum, first, K2) + b2)
    value, ct_scores = cross_entropy_by_hand(_einsum("bcij,cijk->bk", second, W), labels)
    ct = _einsum("bk,cijk->bcij", ct_scores, W) * (1.0 - second * second)
    ct_first, ct_K2 = _convolve_back(ct, first, K2)
    ct_first *= 1.0 - first * first
    _, ct_K1 = _convolve_back(ct_first, images, K1)
    ct_b1, ct_b2 = (part.sum(axis=(0, 2, 3)).reshape(-1, 1, 1) for part in (ct_first, ct))
    return value, (ct_K1, ct_b1, ct_K2, ct_b2, _einsum("bcij,bk->cijk", second, ct_scores))


PROBLEMS = (
    Problem(
        "convolution", "{} digits, two layers of 8 channels 3 x 3 by einsum, float32", 32, 3, _network, network, by_hand
    ),
)  # fmt: skip

"""A product of large matrices: BLAS decides, and a tool can only add to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem


def _matrices(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.normal(size=(size, size)).astype(np.float32), rng.normal(size=(size, size)).astype(np.float32)))


def matmul(F: Any, A: Any, B: Any) -> Any:
    C = A @ B
    return (C * C).mean()


def by_hand(A: Any, B: Any) -> Any:
    C = A @ B
    ct = (2.0 / C.size) * C
    return (C * C).mean(), (ct @ B.T, A.T @ ct)


PROBLEMS = (
    Problem("matmul", "product of {0} x {0} matrices, float32, mean square", 512, 8, _matrices, matmul, by_hand),
)

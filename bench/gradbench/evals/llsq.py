"""LLSQ: a polynomial's squared distance from the sign function, at equal steps from -1 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


def primal(x: Any, n: int) -> Any:
    t = -1 + np.arange(n) * 2 / (n - 1)
    errors = np.sign(t) - np.vander(t, len(x), increasing=True) @ x
    return (errors * errors).sum() / 2


def _coefficients(given: Any) -> tuple[Any, int]:
    return np.array(given["x"], dtype=float), given["n"]


FUNCTIONS = {
    "primal": Function(_coefficients, tg.compile(primal), float),
    "gradient": Function(_coefficients, tg.compile(tg.func.grad(primal)), np.ndarray.tolist),
}

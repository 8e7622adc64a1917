"""LSE: the logarithm of a sum of exponentials, shifted by the largest, as the eval asks."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


def primal(x: Any) -> Any:
    largest = x.max()
    return largest + np.log(np.exp(x - largest).sum())


def _vector(given: Any) -> tuple[Any]:
    return (np.array(given["x"], dtype=float),)


FUNCTIONS = {
    "primal": Function(_vector, tg.compile(primal), float),
    "gradient": Function(_vector, tg.compile(tg.func.grad(primal)), np.ndarray.tolist),
}

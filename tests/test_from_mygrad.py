"""The page on MyGrad: what stands in its table computes the same, with the same gradients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

pytest.importorskip("mygrad")

PAGE = (Path(__file__).parents[1] / "docs" / "port" / "from_mygrad.md").read_text()
COMPARED = [
    "softmax_crossentropy", "negative_log_likelihood", "multiclass_hinge", "conv_nd", "max_pool", "batchnorm",
    "mg.add_sequence", "mg.multi_matmul",
]  # fmt: skip
RNG = np.random.default_rng(0)
SCORES, IMAGES = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3, 6, 6))
OPERANDS: dict[str, dict[str, np.ndarray]] = {
    "conv_nd": {"x": IMAGES, "w": RNG.normal(size=(4, 3, 3, 3))},
    "max_pool": {"x": IMAGES},
    "batchnorm": {"x": IMAGES, "g": RNG.normal(size=3), "b": RNG.normal(size=3)},
    "mg.add_sequence": {"a": SCORES, "b": SCORES + 1, "c": SCORES * 2},
    "mg.multi_matmul": {"a": SCORES, "b": SCORES.T, "c": SCORES * 2},
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", COMPARED)
def test_both_columns_compute_the_same(name: str) -> None:
    import mygrad as mg
    from mygrad.nnet import layers, losses

    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}(")]
    theirs, ours = [re.findall(r"`([^`]+)`", column)[0] for column in row.strip("| ").split(" | ")]
    operands, y = OPERANDS.get(name, {"x": SCORES}), np.array([0, 2, 1, 0])
    names: dict[str, Any] = {own: getattr(home, own) for home in (losses, layers) for own in dir(home) if own[0] != "_"}
    results = []
    for code, make, more in (
        (theirs, mg.tensor, {**names, "mg": mg, "y": y}),
        (ours, lambda x: tg.tensor(x, requires_grad=True), {"F": tg.nn.functional, "tg": tg, "y": tg.tensor(y)}),
    ):
        given = {key: make(value) for key, value in operands.items()}
        result = eval(code, {**more, **given})
        (result * np.cos(np.arange(np.prod(result.shape))).reshape(result.shape)).sum().backward()
        results.append([np.asarray(own) for own in (*[own.grad for own in given.values()], result.data)])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)

"""Recorded Jacobians: one visit of each entry for all rows gives what a recorded pass for each row gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import rows as rows_file
from tapegrad.autograd.rows import record_rows
from tests import checks
from tests.cases import Case, grouped
from tests.test_table import SMOOTH

ROWS = 3


def _row_by_row(root: Any, inputs: list[Any], rows: np.ndarray) -> list[Any]:
    each = [tg.autograd.grad(root, inputs, tg.tensor(row), create_graph=True, allow_unused=True) for row in rows]
    return [None if column[0] is None else tg.stack(column) for column in zip(*each, strict=True)]


def _again(found: list[Any], inputs: list[Any]) -> list[Any]:
    """Return gradients of gradients; None where these depend on no input."""
    totals = [(own * own).sum() for own in found if own is not None and own.requires_grad]
    if not totals:
        return [None] * len(inputs)
    return list(tg.autograd.grad(sum(totals[1:], totals[0]), inputs, allow_unused=True, retain_graph=True))


@grouped([*((case, "float64") for case in SMOOTH), *((case, "float32") for case in SMOOTH[::3])], quick=3)
def test_samples(case: Case, dtype: str) -> None:
    problem = case.problem(dtype)
    inputs = problem.tensors()
    result = problem(inputs)
    rng = np.random.default_rng(7)
    count = 0
    for root in result if isinstance(result, tuple) else (result,):
        if not root.requires_grad or root.is_leaf:
            continue
        rows = rng.standard_normal((ROWS, *root.shape)).astype(root.dtype)
        found = record_rows([root], inputs, [tg.from_numpy(rows)], retain=True)
        assert found is not None
        expected = _row_by_row(root, inputs, rows)
        pairs = [*zip(found, expected, strict=True)]
        pairs += zip(_again(found, inputs), _again(expected, inputs), strict=True)
        for own, other in pairs:
            if own is None or other is None:
                assert not np.any([np.any(one.numpy()) for one in (own, other) if one is not None])
                continue
            assert own.shape == other.shape
            assert own.dtype == other.dtype
            checks.assert_close([own.detach().numpy()], [other.detach().numpy()], what="rows")
        count += 1
    if not count:
        pytest.skip("no result has a gradient")


def test_broadcasting_and_results_of_one_leaf() -> None:
    x, w = tg.linspace(-1, 1, 3).requires_grad_(), tg.ones(4, 1, requires_grad=True)
    for function in (
        lambda: x * w + w, lambda: (x * 2.0).sum() * w, lambda: tg.exp(w)[1:] - x, lambda: tg.stack([x, x * x]) / w[:2],
        lambda: x.expand(4, 3) @ x, lambda: (w * x)[:, tg.tensor([0, 2])], lambda: tg.where(x > 0, x * w, w),
        lambda: (w * x).T.reshape(-1)[2:9:3], lambda: tg.cat([x * x, w.flatten()]),
        lambda: tg.float_power(w * x + 2, 2).float(),
    ):  # fmt: skip
        root = function()
        rows = np.random.default_rng(1).standard_normal((5, *root.shape)).astype(root.dtype)
        found = record_rows([root], [x, w], [tg.from_numpy(rows)], retain=True)
        assert found is not None
        expected = _row_by_row(root, [x, w], rows)
        for own, other in zip([*found, *_again(found, [x, w])], [*expected, *_again(expected, [x, w])], strict=True):
            assert (own is None) is (other is None)
            if own is not None:
                np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_rules_give_what_a_sweep_for_each_row_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    first, second = (tg.tensor(rng.standard_normal((n, m)) / 10) for n, m in ((9, 12), (9, 9)))

    def function(x: tg.Tensor, y: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        z = tg.tanh(first @ x) * y[0] + y
        return second @ z + x[:9], z[:4].sum() + y

    def jacobians(by_rules: bool) -> Any:
        monkeypatch.setattr(rows_file, "_is_for_rules", lambda sweep, count: by_rules)
        return getattr(tg.func, name)(function, (0, 1))(*args)

    args = tuple(tg.tensor(rng.standard_normal(n)) for n in (12, 9))
    for found, expected in zip(jacobians(True), jacobians(False), strict=True):
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("length", "expected"), [(10, False), (200, True)])
def test_rules_serve_products_with_large_matrices(length: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, is_for_rules = [], rows_file._is_for_rules
    monkeypatch.setattr(rows_file, "_is_for_rules", lambda *args: asked.append(is_for_rules(*args)) or asked[-1])
    tg.func.jacrev(lambda x: tg.tanh(tg.ones(length, length) @ x))(tg.ones(length))
    assert asked == [expected]


def test_gradients_of_batches_share_no_memory() -> None:
    x, y, z = (tg.ones(200, requires_grad=True) for _ in range(3))
    matrix, batch = tg.ones(200, 200), tg.eye(200)
    found = tg.autograd.grad(matrix @ x + y + z, (x, y, z), batch, is_grads_batched=True)
    for own, expected in zip(found, (200 * 200, 200, 200), strict=True):
        assert own.sum() == expected
        own.zero_()
    assert batch.sum() == 200

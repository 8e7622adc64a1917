"""Functions of neural networks that are no op of the table, with their options, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("threshold", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softplus(beta: float, threshold: float, dtype: str) -> None:
    """On both sides of the threshold, which is one of beta times x; values and slopes, nan and infinities too."""
    around = threshold / beta
    data = np.array([-30, -1, -0.0, 0.3, around - 0.01, around + 0.01, 2 * around, 90, np.inf, -np.inf, np.nan], dtype)
    x, y = tg.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    out = tg.nn.functional.softplus(x, beta, threshold)
    expected = torch.nn.functional.softplus(y, beta, threshold)
    out.sum().backward()
    expected.sum().backward()
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    assert out.dtype == dtype
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=tolerance)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=tolerance)

"""Windows and transforms of frames: PyTorch's numbers for arguments that samples do not have, and its refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests import checks

torch: Any = pytest.importorskip("torch")

WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
X = np.random.default_rng(0).normal(size=(2, 13))
HANN = np.hanning(5)[:4] + 0.1


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, length: int, periodic: bool) -> None:
    ours = getattr(tg, name)(length, periodic, requires_grad=True)
    np.testing.assert_allclose(
        ours.detach().numpy(), getattr(torch, name)(length, periodic, dtype=torch.float64), atol=1e-15
    )
    assert ours.requires_grad
    assert getattr(tg, name)(length, dtype="float32").dtype == "float32"


def test_windows_of_other_numbers() -> None:
    for name, arguments in (("hamming_window", (6, False, 0.3, 0.2)), ("kaiser_window", (6, True, 3.0))):
        expected = getattr(torch, name)(*arguments, dtype=torch.float64)
        np.testing.assert_allclose(getattr(tg, name)(*arguments).numpy(), expected, atol=1e-15)


FRAMES: dict[str, dict[str, Any]] = {
    "defaults": {"n_fft": 5},
    "a short window of ones": {"n_fft": 6, "win_length": 3, "hop_length": 2},
    "circular": {"n_fft": 4, "pad_mode": "circular"},
    "replicate": {"n_fft": 7, "pad_mode": "replicate", "hop_length": 5},
    "aligned": {"n_fft": 6, "win_length": 2, "center": False, "align_to_window": True},
    "not aligned": {"n_fft": 6, "win_length": 3, "center": False, "align_to_window": False},
    "as long as the signal": {"n_fft": 13, "center": False, "hop_length": 1},
}


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("batched", [True, False])
def test_stft(name: str, dtype: str, batched: bool) -> None:
    x = (X if batched else X[0]).astype(dtype)
    ours, theirs = tg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = (own.stft(**FRAMES[name], return_complex=True) for own in (ours, theirs))
    assert str(z.dtype) == f"torch.{y.dtype}"
    np.testing.assert_allclose(y.detach().numpy(), z.detach(), rtol=1e-4, atol=1e-5)
    (y.abs() ** 2 * (1 + y.real)).sum().backward()
    (z.abs() ** 2 * (1 + z.real)).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad, rtol=1e-3, atol=1e-2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"length": 9}, {"length": 20}, {"win_length": 4, "hop_length": 3}])
@pytest.mark.parametrize("kind", ["onesided", "twosided", "complex"])
def test_istft(options: dict[str, Any], kind: str) -> None:
    options = {"n_fft": 4, "window": HANN, **options}
    own_options = {"onesided": True} if kind == "onesided" else {"onesided": False, "return_complex": kind == "complex"}
    x = np.random.default_rng(1).normal(size=(2, 3 if kind == "onesided" else 4, 6, 2)) @ np.array([1, 1j])
    ours, theirs = tg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    results = []
    for T, own in ((tg, ours), (torch, theirs)):
        y = own.istft(**options | {"window": T.tensor(HANN)}, **own_options)
        (abs(y) ** 4).sum().backward()
        results.append((y.detach().numpy(), own.grad.numpy()))
    for mine, other in zip(*results, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


def test_there_and_back_is_the_signal() -> None:
    x = tg.tensor(X, requires_grad=True)
    there = tg.stft(x, 4, window=HANN, return_complex=True)
    back = tg.istft(there, 4, window=HANN, length=13)
    np.testing.assert_allclose(back.detach().numpy(), X, atol=1e-14)
    (back * back).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X, atol=1e-13)


def _stft(T: Any, *args: Any, **options: Any) -> Any:
    return T.stft(T.arange(12.0), *args, **{"return_complex": True} | options)


def _istft(T: Any, *args: Any, **options: Any) -> Any:
    return T.istft(T.ones(3, 6) * 1j, *args, **{"window": T.ones(4)} | options)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "windows of no length": (lambda T: T.hann_window(-1), "hann_window requires non-negative window_length, got"),
    "windows of integers": (lambda T: T.kaiser_window(3, dtype=T.int64),
                            "kaiser_window expects floating point dtypes, got"),
    "return_complex": (lambda T: _stft(T, 4, return_complex=None), "stft requires the return_complex parameter be"),
    "window": (lambda T: _stft(T, 4, window=T.ones(3)), "expected a 1D window tensor of size equal to win_length=4"),
    "win_length": (lambda T: _stft(T, 4, win_length=5), "expected 0 < win_length <= n_fft, but got win_length=5"),
    "n_fft": (lambda T: _stft(T, 13, center=False), "expected 0 < n_fft < 12, but got n_fft=13"),
    "hop_length": (lambda T: _stft(T, 3), "expected hop_length > 0, but got hop_length=0"),
    "align_to_window": (lambda T: _stft(T, 4, align_to_window=True), "stft align_to_window should only be set when"),
    "integers": (lambda T: T.stft(T.arange(12), 4, return_complex=True), "expected a tensor of floating point or comp"),
    "three dimensions": (lambda T: T.stft(T.ones(1, 1, 9), 4, return_complex=True), "expected a 1D or 2D tensor"),
    "half of a complex spectrum": (lambda T: T.stft(T.ones(9) * 1j, 4, onesided=True), "Cannot have onesided output"),
    "real spectrum": (lambda T: T.istft(T.ones(3, 6), 4), "istft requires a complex-valued input tensor"),
    "frequencies": (lambda T: _istft(T, 6), "to match n_fft / 2 + 1 when onesided=True, but got 3"),
    "all frequencies": (lambda T: _istft(T, 4, onesided=False), "to match n_fft when onesided=False, but got 3"),
    "hops": (lambda T: _istft(T, 4, 5), "expected 0 < hop_length <= win_length"),
    "window of another length": (lambda T: _istft(T, 4, window=T.ones(3)), "Invalid window shape. window has to be 1D"),
    "no frames": (lambda T: T.istft(T.ones(3, 0) * 1j, 4, window=T.ones(4)), "input tensor cannot be empty"),
    "both": (lambda T: _istft(T, 4, return_complex=True), "Cannot have onesided output if window or input is complex"),
    "complex window": (lambda T: _istft(T, 4, window=T.ones(4) * 1j), "Complex windows are incompatible with return_c"),
    "window of zeros": (lambda T: _istft(T, 4, center=False, window=T.hann_window(4)), "window overlap add min: "),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("T", [tg, torch], ids=["ours", "torch"])
def test_refused(T: Any, name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(RuntimeError, match=re.escape(words)):
        call(T)


def test_warned() -> None:
    x = tg.arange(12.0)
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        tg.stft(x, 4, return_complex=False)
    spectrum = tg.stft(x, 4, return_complex=True)
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
        tg.istft(spectrum, 4, window=tg.ones(4), length=30)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_derivatives_by_windows(kind: str) -> None:
    """Of istft PyTorch lacks those by some windows."""
    rng = np.random.default_rng(2)
    spectrum = rng.normal(size=(4, 5)) + 1j * rng.normal(size=(4, 5))
    window = rng.uniform(0.5, 1.5, 3) + (0.3j * rng.normal(size=3) if kind == "complex" else 0.0)

    def inverse(x: tg.Tensor, w: tg.Tensor) -> tg.Tensor:
        return tg.istft(x, 4, 2, 3, w, return_complex=True, length=5)

    problem = checks.Problem(inverse, (spectrum, window), (0, 1))
    checks.check_gradient(problem)
    checks.check_second(problem)

"""Composites: Fourier transforms of the frames of a signal, and the signal of such transforms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.dtypes import real_dtype
from tapegrad.ops.arithmetic import div, mul
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.complex_parts import view_as_real
from tapegrad.ops.movement import reshape
from tapegrad.ops.padding import constant_pad_nd, pad
from tapegrad.ops.parts import strided_sum
from tapegrad.ops.permutations import transpose
from tapegrad.ops.strided import unfold, windows_part
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor, from_array

_FRAMES = docs.Common(
    options="""\
n_fft : int
    The length of a frame.
hop_length : int, optional
    From the beginning of a frame to that of the next; default ``n_fft // 4``.
win_length : int, optional
    The length of the window, which stands in the middle of a frame; default `n_fft`.
window : Tensor or array, (win_length,), optional
    What the elements of each frame are multiplied by; default ones.
center : bool
    The middles of frames, not their beginnings, stand at multiples of `hop_length`.
normalized : bool
    Divide by the square root of `n_fft` (`istft`: multiply by it).
onesided : bool, optional
    The half of the spectrum that real signals need.""",
    raises="RuntimeError\n    If shapes, lengths or dtypes do not fit.",
)


def _lengths(call: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """Return from where to where frames go, and the length of their window."""
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{call}(): expected 0 < win_length <= n_fft, but got win_length={length} of n_fft={n_fft}")
    return hop, length


def _as_long(window: Tensor | None, n_fft: int, length: int, dtype: np.dtype) -> Tensor | None:
    """Return a window with zeros on both sides, as long as a frame; None for ones."""
    if length == n_fft:
        return window
    before = (n_fft - length) // 2
    full = from_array(np.ones(length, dtype)) if window is None else window
    padded: Tensor = constant_pad_nd(full, (before, n_fft - length - before))
    return padded


# Forth -------------------------------------------------------------------------------------------------------------


def _stft_by_numpy(
    input: Any, window: Any, n_fft: int, hop_length: int, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, align_to_window: bool = False, **rest: Any,
) -> Any:  # fmt: skip
    aside = (n_fft - len(window)) // 2
    w = np.pad(window, (aside, n_fft - len(window) - aside))
    more = (n_fft // 2,) * 2 if center else (aside, n_fft - len(window) - aside) if align_to_window else (0, 0)
    x = np.pad(input, [(0, 0)] * (input.ndim - 1) + [more], pad_mode if center else "constant")  # type: ignore[call-overload]
    starts = range(0, x.shape[-1] - n_fft + 1, hop_length)
    frames = np.stack([x[..., start : start + n_fft] * w for start in starts], -1)
    out = np.fft.fft(frames, axis=-2, norm="ortho" if normalized else None)
    if input.dtype.kind == "f" and onesided is not False:
        out = out[..., : n_fft // 2 + 1, :]
    out = out.astype(np.result_type(input.dtype, np.complex64))
    return out if rest["return_complex"] else np.stack([out.real, out.imag], -1)


def _of_stft(function: Any, input: Any, window: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of return_complex=False
        return function(input, window=window, win_length=window.shape[0], **options)


@public(method=True, common=_FRAMES)
@composite(
    (
        Sample(((7,), (4,)), {"n_fft": 4, "hop_length": 2, "return_complex": True}),
        Sample(((2, 6), (3,)), {"n_fft": 4, "hop_length": 1, "normalized": True, "center": False,
                                "return_complex": False}),
        Sample(((7,), (4,)), {"n_fft": 5, "hop_length": 2, "onesided": False, "pad_mode": "constant",
                              "return_complex": True}),
        Sample(((7,), (2,)), {"n_fft": 4, "hop_length": 2, "center": False, "align_to_window": True,
                              "return_complex": True}),
    ),
    _stft_by_numpy, call=_of_stft,
)  # fmt: skip
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    r"""Fourier transforms of the frames of a signal: which frequencies it has, and when.

    Formula: :math:`Y_{kt} = \sum_j w_j x_{st + j} e^{-2 \pi \mathrm{i} jk/n}` with the window w, s samples between two
    frames and n frequencies; before, `center` adds n/2 samples at both ends. Derivative: as of `fft` and
    `index_select`.

    Parameters
    ----------
    input : Tensor or array, (time,) or (n, time)
    pad_mode : {"reflect", "constant", "replicate", "circular"}
        What stands before and behind the signal if `center`, as of `nn.functional.pad`.
    return_complex : bool, optional
        Default true for complex numbers; must be given for real ones. Otherwise the real and the imaginary parts stand
        along a new last dimension, which is deprecated.
    align_to_window : bool, optional
        Let the first window, not the first frame, begin where the signal does, if not `center`.

    Returns
    -------
    Tensor, (frequencies, frames) or (n, frequencies, frames)

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([0.0, 1.0, 0.0, -1.0, 0.0, 1.0])
    >>> tg.stft(x, 4, 2, center=False, return_complex=True).abs()
    tensor([[0., 0.],
            [2., 2.],
            [0., 0.]])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    x = as_operand(input, "stft", "input", 1)
    w = None if window is None else as_operand(window, "stft", "window", 5)
    if x.dtype.kind not in "fc":
        raise RuntimeError(f"stft(): expected a tensor of floating point or complex values, but got {x.dtype}")
    is_real = x.dtype.kind == "f" and (w is None or w.dtype.kind != "c")
    if return_complex is None and is_real:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs: True, as a rule")
    if return_complex is False:
        warnings.warn(
            "stft with return_complex=False is deprecated: call tapegrad.view_as_real on the complex output",
            UserWarning,
            stacklevel=2,
        )
    if x.ndim not in (1, 2):
        raise RuntimeError(f"stft(): expected a 1D or 2D tensor, but got shape {list(x.shape)}")
    hop, length = _lengths("stft", n_fft, hop_length, win_length)
    if w is not None and w.shape != (length,):
        raise RuntimeError(
            f"stft(): expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(w.shape)}"
        )
    if onesided and not is_real:
        raise RuntimeError("Cannot have onesided output if window or input is complex; stft() got onesided=True")
    if center:
        lines = x if x.ndim == 2 else reshape(x, (1, -1))
        x = reshape(pad(lines, (n_fft // 2,) * 2, pad_mode), (*x.shape[:-1], -1))
    elif align_to_window and length < n_fft:
        x = constant_pad_nd(x, ((n_fft - length) // 2, n_fft - length - (n_fft - length) // 2))
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"stft(): expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft(): expected hop_length > 0, but got hop_length={hop}")
    frames = unfold(x, -1, n_fft, hop)
    w = _as_long(w, n_fft, length, x.dtype)
    frames = frames if w is None else mul(frames, w)
    transform = xp.rfftn if is_real and onesided is not False else xp.fftn
    out = transpose(transform(frames, None, (-1,), "ortho" if normalized else None), -1, -2)
    return view_as_real(out) if return_complex is False else out


# Back --------------------------------------------------------------------------------------------------------------


def _spectrum(input: Any) -> Any:
    """Return complex numbers: those of samples, or made of real ones."""
    return input if "complex" in str(input.dtype) else input * (1 + 0.5j)


def _istft_by_numpy(
    input: Any, window: Any, n_fft: int, hop_length: int, center: bool = True, normalized: bool = False,
    onesided: bool = True, length: int | None = None, return_complex: bool = False,
) -> Any:  # fmt: skip
    spectrum, norm = _spectrum(input), "ortho" if normalized else None
    frames = (np.fft.ifft if return_complex else np.fft.irfft)(spectrum, n_fft, -2, norm)  # type: ignore[arg-type]
    aside = (n_fft - len(window)) // 2
    w = np.pad(window, (aside, n_fft - len(window) - aside))
    out = np.zeros((*input.shape[:-2], n_fft + hop_length * (input.shape[-1] - 1)), np.result_type(frames, w))
    weights = np.zeros(out.shape[-1], w.dtype)
    for k in range(input.shape[-1]):
        part = slice(k * hop_length, k * hop_length + n_fft)
        out[..., part] += frames[..., k] * w
        weights[part] += w * w
    low = n_fft // 2 if center else 0
    high = out.shape[-1] - low if length is None else low + length
    result = out[..., low:high] / weights[low:high]
    missing = 0 if length is None else length - result.shape[-1]
    padded = np.pad(result, [(0, 0)] * (result.ndim - 1) + [(0, missing)])
    return padded.astype(spectrum.dtype if return_complex else spectrum.real.dtype)


def _of_istft(function: Any, input: Any, window: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a length that is too long
        return function(_spectrum(input), window=window, win_length=window.shape[0], **options)


def _weights(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape).astype(real_dtype(np.dtype(dtype)))


@public(method=True, common=_FRAMES)
@composite(
    (
        Sample(((3, 4), (4,)), {"n_fft": 4, "hop_length": 2}, (None, _weights)),
        Sample(((2, 3, 2), (4,)), {"n_fft": 5, "hop_length": 3, "normalized": True, "length": 5}, (None, _weights)),
        Sample(((4, 3), (4,)), {"n_fft": 4, "hop_length": 1, "center": False, "return_complex": True, "length": 4,
                                "onesided": False}, (None, _weights)),
        Sample(((4, 3), (4,)), {"n_fft": 4, "hop_length": 2, "onesided": False, "length": 9}, (None, _weights)),
    ),
    _istft_by_numpy, call=_of_istft, kinks=(),
)  # fmt: skip
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    r"""Signal whose frames have such Fourier transforms, in the sense of least squares: the inverse of `stft`.

    Formula: :math:`x_i = \sum_t w_{i-st} f_{t,i-st} / \sum_t w_{i-st}^2` with the window w, s samples between two
    frames, and the frames f, which are inverse transforms. Derivative: as of `ifft`.

    Parameters
    ----------
    input : Tensor or array of complex, (frequencies, frames) or (n, frequencies, frames)
    length : int, optional
        Of the signal; default what all frames together cover, and if `center` without half a frame at both ends.
    return_complex : bool
        The signal is complex.

    Returns
    -------
    Tensor, (time,) or (n, time)

    Notes
    -----
    D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform" (1984).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, w = tg.tensor([0.0, 1.0, 0.0, -1.0, 0.0, 1.0]), tg.hann_window(4)
    >>> y = tg.stft(x, 4, 1, window=w, return_complex=True)
    >>> tg.allclose(tg.istft(y, 4, 1, window=w), x)
    True
    """
    x = as_operand(input, "istft", "input", 1)
    w = None if window is None else as_operand(window, "istft", "window", 5)
    if x.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if x.ndim not in (2, 3):
        raise RuntimeError(f"istft(): expected a tensor with 2 or 3 dimensions, but got {x.ndim}")
    if not x.numel():
        raise RuntimeError(f"istft(): input tensor cannot be empty, but got shape {list(x.shape)}")
    hop, span = _lengths("istft", n_fft, hop_length, win_length)
    count, frequencies = x.shape[-1], x.shape[-2]
    halved = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if halved else n_fft):
        raise RuntimeError(
            f"istft(): expected the frequency dimension of the input tensor to match n_fft{' / 2 + 1' * halved} when "
            f"onesided={halved}, but got {frequencies} with n_fft={n_fft}"
        )
    if not 0 < hop <= span:
        raise RuntimeError(f"istft(): expected 0 < hop_length <= win_length, but got {hop} and {span}")
    if w is not None and w.shape != (span,):
        raise RuntimeError(
            f"istft(): Invalid window shape. window has to be 1D and length of `win_length`; got {list(w.shape)}"
        )
    if return_complex and halved:
        raise RuntimeError("Cannot have onesided output if window or input is complex; istft() got return_complex=True")
    if not return_complex and w is not None and w.dtype.kind == "c":
        raise RuntimeError("Complex windows are incompatible with return_complex=False; istft() got one")
    spectrum, norm = transpose(x, -1, -2), "ortho" if normalized else None
    frames = (xp.ifftn if return_complex else xp.irfftn)(spectrum, (n_fft,), (-1,), norm)
    full = _as_long(w, n_fft, span, frames.real.dtype if return_complex else frames.dtype)
    if full is None:
        full = from_array(np.ones(n_fft, frames.dtype))
    total = n_fft + hop * (count - 1)
    low = n_fft // 2 if center else 0
    high = (total - low if center else total) if length is None else low + length
    signal = _laid_over(mul(frames, full), total, hop)[..., low:high]
    weights = _laid_over(expand(mul(full, full), (count, n_fft)), total, hop)[low:high]
    least = np.abs(np.asarray(weights._data)).min(initial=np.inf)
    if not least >= 1e-11:
        raise RuntimeError(f"istft(): window overlap add min: {least}; the windows leave an element of the signal away")
    out = div(signal, weights)
    if high > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        out = constant_pad_nd(out, (0, high - total))
    return out


def _laid_over(frames: Tensor, total: int, hop: int) -> Tensor:
    """Return sums of frames, each of which begins `hop` elements behind the one before."""
    shape = (*frames.shape[:-2], total)
    return strided_sum(frames, windows_part(shape, len(shape) - 1, frames.shape[-1], hop), shape)

"""Fourier transforms by the compiled functions of SciPy, whose own checks take longer than to transform 100 numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.runtime.extensions import scipy_extension
from tapegrad.tape.layout import Layout

# SciPy's compiled function of each transform, and whether it is one forward.
_ROUTINES: Final = {
    "fft": ("c2c", True), "ifft": ("c2c", False), "rfft": ("r2c", True), "ihfft": ("r2c", False),
    "hfft": ("c2r", True), "irfft": ("c2r", False),
}  # fmt: skip
_SCALES: Final = ("backward", "ortho", "forward")


@functools.cache
def _compiled() -> Any:
    """Return the module of SciPy's compiled functions; None if this SciPy has others, which users do not see."""
    try:
        return scipy_extension("fft._pocketfft", "pypocketfft")
    except ImportError:
        return None


def resized(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return an array of another shape: dimensions are cut, or get zeros, at their end."""
    out = np.zeros(shape, x.dtype)
    common = tuple([slice(min(sizes)) for sizes in zip(shape, x.shape, strict=True)])
    out[common] = x[common]
    return out


def transform(name: str, x: np.ndarray, s: Sequence[int], dims: Sequence[int], norm: str) -> Any:
    """Return the transform of an array along dimensions, with these lengths."""
    import scipy.fft  # at call time: SciPy would double the time of `import tapegrad`

    if not dims:
        return np.array(x, np.result_type(x, np.complex64))
    return getattr(scipy.fft, f"{name}n")(x, s, dims, norm)


def prepared_transform(
    name: str, x: Layout, s: Sequence[int], dims: Sequence[int], norm: str
) -> Callable[[np.ndarray], Any]:
    """Return `transform` for arrays of a layout."""
    module = _compiled()
    if module is None or not dims:
        return functools.partial(transform, name, s=s, dims=dims, norm=norm)
    routine, forward = _ROUTINES[name]
    scale = _SCALES.index(norm)
    scale = scale if forward else 2 - scale
    lengths = list(x.shape)
    for place, length in zip(dims, s, strict=True):
        lengths[place] = length
    is_real = routine == "c2r"
    if is_real:
        lengths[dims[-1]] = s[-1] // 2 + 1
    shape, call = tuple(lengths), getattr(module, routine)
    sizes = (s[-1],) if is_real else ()
    axes, fits, widened = tuple(dims), shape == x.shape, is_real and x.dtype.kind != "c"

    def compute(array: np.ndarray) -> Any:
        if not fits:
            array = resized(array, shape)
        if widened:
            array = array + 0j
        return call(array, axes, *sizes, forward, scale, None, 1)

    return compute

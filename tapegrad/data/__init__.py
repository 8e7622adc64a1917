"""Data that comes with the package: real input for the demo and for tests. README.md names its source."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

__all__ = ["load_digits"]


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images of 1797 hand-written digits, and the digits.

    Returns
    -------
    images : float64 array of shape (1797, 64)
        One digit a row: 8 rows of 8 pixels, from 0 (paper) to 1 (ink) in steps of 1/16.
    labels : int64 array of shape (1797,)
        The digits, 0 to 9.

    Notes
    -----
    From E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
    Repository, 1998 (test set), CC BY 4.0, https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits.

    Examples
    --------
    >>> from tapegrad.data import load_digits
    >>> images, labels = load_digits()
    >>> images.shape, labels[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    with lzma.open(Path(__file__).with_name("digits.txt.xz")) as file:
        characters = np.frombuffer(file.read(), np.uint8)
    numbers = np.searchsorted(np.frombuffer(_DIGITS, np.uint8), characters)
    images, labels = np.split(numbers, [len(numbers) // 65 * 64])
    return images.reshape(-1, 64) / 16, labels.copy()


_DIGITS = b"0123456789abcdefg"  # from 0 to 16

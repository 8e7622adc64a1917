"""Calls of Fourier transforms: of one dimension, of two or several; of numbers, lengths and norms as they come."""

from __future__ import annotations

import math
from typing import Any

_OF_REAL = ("rfft", "ihfft")
_KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TRANSFORMS = (*(f"{kind}{n}" for kind in _KINDS for n in ("", "2", "n")), "fftshift", "ifftshift")
FREQUENCIES = ("fftfreq", "rfftfreq")


def transform(draw: Any, name: str) -> str | None:
    """Of tensors of any dtype; two dimensions, where there are two, for transforms of several.

    Results of PyTorch's may be views that conjugate when they are read: they are copied.
    """
    least = 2 if name.endswith("2") else 1
    kinds = "fbi" if name.startswith(_OF_REAL) else "fcbi"

    def fits(value: Any) -> bool:
        return len(value.shape) >= least and math.prod(value.shape) < 200 and value.kind in kinds

    x = draw.one(fits)
    if x is None or len(x.shape) < least or math.prod(x.shape) >= 200:
        return None
    dims = str(draw.dim(x)) if name in _KINDS else str((0, -1) if len(x.shape) > 1 else (0,))
    if "shift" in name:
        return f"m.fft.{name}({x.name}{draw.rng.choice(['', f', dim={dims}'])}).clone()"
    sizes = draw.rng.choice(["", "2", "5"])
    if sizes and name not in _KINDS:
        sizes = f"({sizes}, 3)" if len(x.shape) > 1 else f"({sizes},)"
    words = {"n" if name in _KINDS else "s": sizes, "dim": dims}
    given = [f"{word}={value}" for word, value in words.items() if value and draw.rng.random() < 0.5]
    if draw.rng.random() < 0.5:
        given.append(f"norm={draw.rng.choice(['ortho', 'forward', 'backward'])!r}")
    return f"m.fft.{name}({', '.join([x.name, *given])}).clone()"


def frequencies(draw: Any, name: str) -> str | None:
    return f"m.fft.{name}({draw.rng.randrange(1, 7)}, d={draw.rng.choice([1.0, 0.5, 2])})"

"""Comparing a value of tapegrad's with PyTorch's: shape, dtype, elements, and whether a gradient is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegrad as tg

TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float64": 2e-6, "complex128": 2e-6}
ROUNDED = 1e-2  # differences from rounding are smaller than this, however badly a program is conditioned


@dataclass(frozen=True)
class Mismatch:
    """A difference: of which kind, and a sentence."""

    kind: str
    text: str


def describe(error: Exception) -> str:
    """Return an error's class and the beginning of its message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def array(value: Any) -> np.ndarray:
    """Return a tensor of either module as an array."""
    found: np.ndarray = (
        value.detach().numpy() if isinstance(value, tg.Tensor) else value.resolve_conj().numpy(force=True)
    )
    return found


def compare(what: str, ours: Any, theirs: Any, nearby: Callable[[], list[tuple[Any, Any]]]) -> Mismatch | None:
    """Return how a value of tapegrad's differs from PyTorch's.

    Parameters
    ----------
    what : str
    ours, theirs : object
    nearby : callable
        The values of both for inputs that are moved a little: what a difference is held against.
    """
    if not isinstance(ours, tg.Tensor):
        if isinstance(theirs, (bool, int, float, type(None))) and ours == theirs:
            return None
        if ours is None and close(np.zeros_like(array(theirs)), array(theirs)):
            return None  # a slope that is zero for all operands is recorded by one side only
        return Mismatch("type", f"{what}: {ours!r} instead of {theirs!r}")
    if theirs is None:
        is_zero = close(array(ours), np.zeros_like(array(ours)))
        return None if is_zero else Mismatch("type", f"{what}: {ours!r} instead of None")
    own, other = array(ours), array(theirs)
    if own.shape != other.shape:
        return Mismatch("shape", f"{what}: shape {own.shape} instead of {other.shape}")
    if own.dtype != other.dtype:
        return Mismatch("dtype", f"{what}: dtype {own.dtype} instead of {other.dtype}")
    if "gradient" not in what and ours.requires_grad != theirs.requires_grad:
        return Mismatch("requires_grad", f"{what}: requires_grad {ours.requires_grad}, not {theirs.requires_grad}")
    if close(own, other):
        return None
    with np.errstate(all="ignore"):
        distance = _farthest(own, other)
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0.0)))
        is_small = distance < ROUNDED * scale and (np.isfinite(own) == np.isfinite(other)).all()
        if own.dtype.kind == "b" or (own.dtype.kind in "fc" and is_small):
            for pair in nearby():
                for moved, original in zip(pair, (own, other), strict=True):
                    if moved is None or tuple(moved.shape) != original.shape:
                        continue
                    # A comparison that rounding decides is true of an element, where it is moved, or false.
                    own_distance = _farthest(array(moved), original)
                    if distance <= (own_distance if own.dtype.kind == "b" else 100 * own_distance):
                        return None
    return Mismatch("value" if "gradient" not in what else "gradient", f"{what}: {ours} instead of {theirs}")


def _farthest(own: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two elements that are numbers."""
    return float(np.nan_to_num(np.abs(own.astype(complex) - other.astype(complex))).max(initial=0.0))


def close(own: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are equal up to rounding; nan equals nan."""
    same = own == other
    if own.dtype.kind not in "fc" or same.all():
        return bool(same.all())
    with np.errstate(all="ignore"):
        own, other = own[~same], other[~same]
        near = np.abs(own - other) <= TOLERANCE[own.dtype.name] * np.maximum(np.abs(other), 1.0)
        return bool((near | (np.isnan(own) & np.isnan(other))).all())

"""Comparing a value of tapegrad's with PyTorch's: shape, dtype, elements, and whether a gradient is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegrad as tg

TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float64": 2e-6, "complex128": 2e-6}
FEW = 1e-3  # share of elements that may be at a discontinuity, on the one side or on the other
ROUNDED = 1e-2  # differences from rounding are smaller than this, however badly a program is conditioned


@dataclass(frozen=True)
class Mismatch:
    """A difference: of which kind, and a sentence."""

    kind: str
    text: str
    is_infinite: bool = False  # but for rounding, of elements that one side at least has as inf or nan


def describe(error: Exception) -> str:
    """Return an error's class and the beginning of its message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def array(value: Any) -> np.ndarray:
    """Return a tensor of either module as an array."""
    is_ours = isinstance(value, tg.Tensor)
    if not is_ours and value._is_zerotensor():  # without memory: PyTorch's `numpy` of a view of one ends the process
        value = value.clone()
    found: np.ndarray = value.detach().numpy() if is_ours else value.resolve_conj().numpy(force=True)
    return found


def _beside_none(text: str, slopes: np.ndarray) -> Mismatch | None:
    """Return how slopes differ from none: a slope that is zero for all operands is recorded by one side only."""
    zero = near(np.zeros_like(slopes), slopes)
    return None if zero.all() else Mismatch("gradient", text, is_infinite=bool((zero | ~np.isfinite(slopes)).all()))


Pairs = Callable[[], Iterable[Sequence[Any]]]


def compare(
    what: str, ours: Any, theirs: Any, moved: Pairs, rounded: Pairs, exact: Callable[[], Sequence[Any]]
) -> Mismatch | None:
    """Return how a value of tapegrad's differs from PyTorch's.

    Parameters
    ----------
    what : str
    ours, theirs : object
    moved, rounded : callable
        The values of both for inputs that are moved a little, and where each operand has an error of rounding: what a
        difference is held against.
    exact : callable
        The values of both in double precision, with the inputs as they are.
    """
    if not isinstance(ours, tg.Tensor):
        if isinstance(theirs, (bool, int, float, type(None))) and ours == theirs:
            return None
        if ours is not None:
            return Mismatch("type", f"{what}: {ours!r} instead of {theirs!r}")
        return _beside_none(f"{what}: None instead of {theirs!r}", array(theirs))
    if theirs is None:
        return _beside_none(f"{what}: {ours!r} instead of None", array(ours))
    own, other = array(ours), array(theirs)
    if own.shape != other.shape:
        return Mismatch("shape", f"{what}: shape {own.shape} instead of {other.shape}")
    if own.dtype != other.dtype:
        return Mismatch("dtype", f"{what}: dtype {own.dtype} instead of {other.dtype}")
    is_number = own.dtype.kind in "fc"  # PyTorch has bools that require grad, after a write
    if "gradient" not in what and is_number and ours.requires_grad != theirs.requires_grad:
        return Mismatch("requires_grad", f"{what}: requires_grad {ours.requires_grad}, not {theirs.requires_grad}")
    if close(own, other):
        return None
    with np.errstate(all="ignore"):
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0.0)))
        large = 1e37 if own.dtype.itemsize <= 8 and own.dtype.name != "float64" else 1e307
        overflows = (np.abs(own) > large) & (np.abs(other) > large)
        if own.dtype.kind != "c":
            overflows &= (own > 0) == (other > 0)
        distance = np.where(overflows, 0.0, np.abs(own.astype(complex) - other.astype(complex)))
        farthest = np.nan_to_num(distance).max(initial=0.0)
        is_small = bool(
            farthest < ROUNDED * scale and ((np.isfinite(own) == np.isfinite(other)) | overflows).all()
        ) or bool(near(own, other).mean() > 1 - FEW)
        factor = 100 if is_small else 10
        unclear = overflows  # elements that differ as much where inputs are moved
        if own.dtype.kind in "bfc":
            for pair in moved():
                for step, finite_changes in _steps(pair, own, other):
                    unclear |= (distance <= factor * step) | finite_changes
            if not (unclear | near(own, other)).all():
                # The scale of what was added up, where it cancels: as far as results are scattered by rounding.
                scattered = np.zeros(own.shape)
                for pair in rounded():
                    for step, _ in _steps(pair, own, other):
                        scattered = np.fmax(scattered, step)
                unclear |= distance <= factor * scattered
            if is_number and not (unclear | near(own, other)).all():
                right = [array(value) for value in exact() if value is not None and tuple(value.shape) == own.shape]
                if len(right) == 2:
                    agreed = near(*right)  # in double precision; and in single PyTorch's is no better, or ours right
                    lost = np.abs(other.astype(complex) - right[1])
                    # Ours would be the same, were nothing in single precision.
                    tolerance = TOLERANCE["float32"] * np.maximum(np.abs(right[0]), 1.0)
                    ours_right = near(own, right[0].astype(own.dtype)) | (np.abs(own - right[0]) <= tolerance)
                    unclear |= agreed & ((distance <= factor * lost) | ours_right)
                    if is_small or (unclear | near(own, other)).mean() > 1 - FEW:
                        # Which elements lose digits is chance: ours lose no more than PyTorch's somewhere.
                        worst = np.where(
                            agreed & np.isfinite(lost), lost / np.maximum(np.abs(right[1]), 1.0), 0.0
                        ).max()
                        unclear |= agreed & (distance <= factor * worst * np.maximum(np.abs(other), 1.0))
        if (unclear | near(own, other)).all():
            return None
    kind = "value" if "gradient" not in what else "gradient"
    is_infinite = bool((unclear | near(own, other) | ~np.isfinite(own) | ~np.isfinite(other)).all())
    return Mismatch(kind, f"{what}: {ours} instead of {theirs}", is_infinite)


def _steps(pair: Sequence[Any], *originals: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield how far each element of both is from what it was, and whether it is finite where it was not, or was."""
    for changed, original in zip(pair, originals, strict=True):
        if changed is not None and tuple(changed.shape) == original.shape:
            elements = array(changed)
            step = np.abs(elements.astype(complex) - original.astype(complex))
            yield step, np.isfinite(elements) != np.isfinite(original)


def close(own: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are equal up to rounding; nan equals nan."""
    return bool((own == other).all()) or bool(near(own, other).all())


def near(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return which elements are equal up to rounding; nan equals nan."""
    if own.dtype.kind not in "fc":
        return own == other
    with np.errstate(all="ignore"):
        tolerance = TOLERANCE[own.dtype.name] * np.maximum(np.abs(other), 1.0)
        is_rounded = np.isfinite(own) & np.isfinite(other) & (np.abs(own - other) <= tolerance)
        both_nan = np.isnan(own) & np.isnan(other)
        both_infinite = np.isinf(own) & np.isinf(other) & (own.dtype.kind == "c")  # in any of the two parts
        return (own == other) | is_rounded | both_nan | both_infinite

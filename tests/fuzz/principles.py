"""Slopes of which one side's are inf or nan, judged by principles in place of lists of functions.

None of them excuses slopes that are finite on both sides and differ. And none excuses inf or nan of tapegrad's for a
finite cotangent where PyTorch's slope is finite, but that of a line whose values are all nan: it has no right slope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import overwritten
from tests.fuzz.compare import ROUNDED, near
from tests.fuzz.trace import Culprit, derivatives, value

#: How far operands are moved, to see which slopes of PyTorch's are near: in double precision, several times each.
STEPS = (1e-3, 1e-4, 1e-6)
#: How far a slope may be from one at a moved operand, relative to its size, or to 1.
TOLERANCE = 1e-2
#: Stands for larger numbers and inf in half of the cases where operands are moved.
LARGE = 1e8
#: Cotangents by which a slope that is always 0 is told from others.
FINITE = ((0.5, 1.5), (-1.3, 0.7))

Pair = tuple[np.ndarray, np.ndarray]


def is_principled(torch: Any, culprit: Culprit) -> bool:
    """Whether a line's slopes differ only as one of the principles says."""
    if np.isnan(value(culprit)).all():  # then no slope is right
        return True
    if culprit.of_infinite:
        return _is_of_order(torch, culprit)
    if culprit.of_zero and _is_zero(torch, culprit):
        return True
    return _is_limit(torch, culprit)


def _pairs(torch: Any, culprit: Culprit) -> list[Pair | None] | None:
    """Return the derivatives of both sides; None for those that neither has; zeros for those that one has not."""
    own, other = (derivatives(module, culprit, culprit.ends) for module in (tg, torch))
    if own is None or other is None or len(own) != len(other):
        return None
    found: list[Pair | None] = []
    for a, b in zip(own, other, strict=True):
        known = b if a is None else a
        filled = [np.zeros_like(known) if value is None else value for value in (a, b) if known is not None]
        found.append((filled[0], filled[1]) if filled else None)
    return found


def _is_limit(torch: Any, culprit: Culprit) -> bool:
    """Whether PyTorch's slopes are inf or nan where tapegrad's are finite, and have tapegrad's as a limit.

    Each has to be PyTorch's own, in double precision, for these operands or for some that are moved a little, in one of
    several ways. Second derivatives may be inf or nan on both sides: which of the two depends on the order in which
    factors overflow or are added up.
    """
    pairs = _pairs(torch, culprit)
    if pairs is None:
        return False
    exact = _pairs(torch, _in_double(culprit)) or [None] * len(pairs)
    missing = []
    firsts = sum(own.dtype.kind in "fc" for name, own in culprit.operands.items() if name not in culprit.constants)
    for number, (pair, double) in enumerate(zip(pairs, exact, strict=True)):
        unexplained = np.zeros(0, bool)
        if pair is not None:
            own, other = pair
            is_rounded = abs(own - other) < ROUNDED * np.maximum(abs(other), 1)
            unexplained = ~(near(own, other) | (is_rounded & (double is not None and near(*double))))
            if double is not None:
                is_right = ~np.isfinite(own) | (abs(own - double[1]) <= TOLERANCE * np.maximum(abs(own), 1))
                unexplained &= ~(~np.isfinite(other) & near(*double) & is_right)  # overflow in single precision
            if number >= firsts:
                unexplained &= np.isfinite(own) | np.isfinite(other)
            if (unexplained & (np.isfinite(other) | ~np.isfinite(own))).any():
                return False
        missing.append(unexplained)
    for moved in _moved(culprit):
        slopes = derivatives(torch, moved, culprit.ends) or ()
        for number, (pair, slope) in enumerate(zip(pairs, slopes, strict=False)):
            if pair is not None and slope is not None:
                distance = abs(pair[0].astype(slope.dtype) - slope)
                missing[number] &= ~(distance <= TOLERANCE * np.maximum(abs(pair[0]), 1))
        if not any(unexplained.any() for unexplained in missing):
            return True
    return False


def _moved(culprit: Culprit) -> Iterator[Culprit]:
    """Yield a line in double precision with operands that are moved, in half of the cases large numbers far."""
    rng = np.random.default_rng(0)
    double = _in_double(culprit)
    for step, largest in ((step, largest) for step in STEPS for largest in (np.inf, LARGE) for _ in range(3)):
        operands = {}
        for name, values in double.operands.items():
            moved = values.clip(-largest, largest) if values.dtype.kind == "f" else values
            if values.dtype.kind in "fc":
                moved = moved + step * np.maximum(abs(moved), 1) * rng.uniform(-1, 1, values.shape)
            operands[name] = np.asarray(moved)
        yield replace(double, operands=operands)


def _in_double(culprit: Culprit) -> Culprit:
    wide = {"f": np.dtype("f8"), "c": np.dtype("c16")}
    operands = {name: own.astype(wide.get(own.dtype.kind, own.dtype)) for name, own in culprit.operands.items()}
    return replace(culprit, line=overwritten.in_double(culprit.line), operands=operands)


def _is_zero(torch: Any, culprit: Culprit) -> bool:
    """Whether tapegrad's slopes are 0 for the cotangent 0 where PyTorch's are nan: it multiplies 0 by inf."""
    pairs = _pairs(torch, culprit)
    return pairs is not None and all(
        bool((near(own, other) | ((own == 0) & np.isnan(other))).all()) for own, other in filter(None, pairs)
    )


def _is_of_order(torch: Any, culprit: Culprit) -> bool:
    """Whether slopes for infinite cotangents differ only by the order in which products are added up.

    They are the same for finite cotangents, of which they are sums with factors. So for infinite ones both are inf or
    nan, wherever inf is added to -inf; or one is finite, if all its factors are 0: then it is left out, or 0 times inf.
    """
    pairs = _pairs(torch, culprit)
    if pairs is None:
        return False
    finite = [_pairs(torch, replace(culprit, ends=ends)) for ends in FINITE]
    for number, pair in enumerate(pairs):
        if pair is None:
            continue
        own, other = pair
        explained = near(own, other) | (~np.isfinite(own) & ~np.isfinite(other))
        always_zero = np.ones(own.shape, bool)
        for slopes in finite:
            always_zero &= slopes is not None and slopes[number] is not None and slopes[number][0] == 0
        if not (explained | always_zero).all():
            return False
    return True

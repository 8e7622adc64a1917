"""Slopes that differ, judged by principles in place of lists of functions.

Of slopes that are finite on both sides tapegrad's have to be right: PyTorch's in double precision, or finite
differences of PyTorch's values or, of second order, of PyTorch's first ones. And none excuses inf or nan of tapegrad's
for a finite cotangent where PyTorch's slope is finite, but that of a value that is nan: it has no right slope.
"""

from __future__ import annotations

import itertools
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
#: How near finite differences have to be to tapegrad's slope, relative to the difference from PyTorch's.
NEAR = 0.02
#: How many elements are tried by finite differences at most: those whose slopes differ most.
PLACES = 12
#: Cotangents by which a slope that is always 0 is told from others.
FINITE = ((0.5, 1.5), (-1.3, 0.7))

Pair = tuple[np.ndarray, np.ndarray]


def is_principled(torch: Any, culprit: Culprit) -> bool:
    """Whether a line's slopes differ only as one of the principles says."""
    nan = np.isnan(value(culprit))
    if nan.all():
        return True
    if culprit.of_infinite:
        return _is_of_order(torch, culprit)
    if culprit.of_zero and _is_zero(torch, culprit):
        return True
    return _is_limit(torch, culprit, nan if nan.any() and _is_elementwise(culprit) else np.zeros((), bool))


def is_right(torch: Any, culprit: Culprit) -> bool:
    """Whether tapegrad's slopes are right wherever they differ from PyTorch's, and finite."""
    pairs = None if culprit.of_infinite else _pairs(torch, culprit)
    if pairs is None:
        return False
    unexplained = _in_single_only(torch, culprit, pairs)
    return _are_differences(torch, culprit, pairs, unexplained)


def _in_single_only(torch: Any, culprit: Culprit, pairs: list[Pair | None]) -> list[np.ndarray]:
    """Return where slopes differ in double precision, too, or tapegrad's in single is not near them."""
    doubles = _pairs(torch, _in_double(culprit)) or [None] * len(pairs)
    unexplained = []
    for pair, double in zip(pairs, doubles, strict=True):
        differs = np.zeros(0, bool) if pair is None else ~near(*pair)
        if pair is not None and double is not None:
            distance, theirs = abs(pair[0] - double[1]), abs(pair[1] - double[1])
            theirs = theirs[np.isfinite(theirs)].max(initial=0)  # where much cancels, PyTorch's rounds as much
            differs &= ~(near(*double) & (distance <= TOLERANCE * np.maximum(abs(pair[0]), 1) + 2 * theirs))
        unexplained.append(differs)
    return unexplained


def _are_differences(torch: Any, culprit: Culprit, pairs: list[Pair | None], unexplained: list[np.ndarray]) -> bool:
    """Whether tapegrad's slopes are finite differences in these places, and PyTorch's are not.

    First derivatives are held against differences of PyTorch's values, second ones against those of its first ones.
    """
    names = [name for name, own in culprit.operands.items() if own.dtype.kind in "fc" and name not in culprit.constants]
    for number, (pair, mask) in enumerate(zip(pairs, unexplained, strict=True)):
        if pair is None or not mask.any():
            continue
        if number >= 2 * len(names) or not np.isfinite(pair[0][mask]).all():
            return False
        name, is_second = names[number % len(names)], number >= len(names)
        distance = np.where(mask, np.nan_to_num(abs(pair[0] - pair[1]), nan=np.inf), -1.0)
        for place in np.argsort(-distance, axis=None)[: min(PLACES, mask.sum())]:
            own, other = (slopes.ravel()[place] for slopes in pair)
            room = NEAR * (abs(own - other) if np.isfinite(other) else max(abs(own), 1.0))
            if not any(abs(own - slope) <= room for slope in _differences(torch, culprit, name, place, is_second)):
                return False
    return True


def _differences(torch: Any, culprit: Culprit, name: str, place: int, is_second: bool) -> Iterator[complex]:
    """Yield slopes by an element of an operand: central differences, with several steps."""
    double = _in_double(culprit)
    values = double.operands[name]
    size = float(abs(values.ravel()[place]))
    for step in (relative * scale for relative in STEPS for scale in {size, max(size, 1.0)} if scale):
        slope = 0j
        for direction in (1.0, 1j) if values.dtype.kind == "c" else (1.0,):
            sides = []
            for sign in (1, -1):
                moved = values.copy()
                moved.ravel()[place] += sign * step * direction
                one = replace(double, operands={**double.operands, name: moved})
                sides.append(_summed(torch, one) if is_second else [value(one, torch)])
            with np.errstate(all="ignore"):
                changes = [above - below for above, below in zip(*sides, strict=True)]
                if not is_second:
                    changes = [own.ravel() * np.linspace(*culprit.ends, own.size) for own in changes]
                slope += direction * float(sum(own.real.sum() for own in changes)) / (2 * step)
        yield slope


def _summed(torch: Any, culprit: Culprit) -> list[np.ndarray]:
    """Return PyTorch's first derivatives, of whose sum the second ones are."""
    firsts = sum(own.dtype.kind in "fc" and name not in culprit.constants for name, own in culprit.operands.items())
    return [own for own in (derivatives(torch, culprit, culprit.ends) or ())[:firsts] if own is not None]


def _is_elementwise(culprit: Culprit) -> bool:
    """Whether each element's slopes are those of one value: in proportion to its cotangent, at random operands."""
    rng = np.random.default_rng(0)
    operands = {
        name: np.asarray(rng.uniform(0.5, 0.9, own.shape)).astype(own.dtype) if own.dtype.kind in "fc" else own
        for name, own in culprit.operands.items()
    }
    moved = _in_double(replace(culprit, operands=operands))
    count = value(moved).size
    one, other = (derivatives(tg, moved, ends) or () for ends in FINITE)
    cts, other_cts = (np.linspace(*ends, count) for ends in FINITE)
    return bool(one) and all(
        slope is None or changed is None or slope.size != count
        or bool(near(slope.ravel() * other_cts, changed.ravel() * cts).all())
        for slope, changed in zip(one[:len(culprit.operands)], other, strict=False)
    )  # fmt: skip


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


def _is_limit(torch: Any, culprit: Culprit, nan: np.ndarray) -> bool:
    """Whether PyTorch's slopes are inf or nan where tapegrad's are finite, and have tapegrad's as a limit.

    Those of values that are `nan` may be any. Each of the others has to be PyTorch's own, in double precision, for
    these operands or for some that are moved a little, in one of several ways; or a finite difference. Second
    derivatives may be inf or nan on both sides: which of the two depends on the order in which factors overflow or are
    added up.
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
            if own.shape == nan.shape:
                unexplained &= ~nan
            if (unexplained & ~np.isfinite(own)).any():
                return False
        missing.append(unexplained)
    for moved in _moved(culprit):
        slopes = derivatives(torch, moved, culprit.ends) or ()
        for number, (pair, slope) in enumerate(zip(pairs, slopes, strict=False)):
            if pair is not None and slope is not None:
                distance = abs(pair[0].astype(slope.dtype) - slope)
                is_limit = ~np.isfinite(pair[1]) & (distance <= TOLERANCE * np.maximum(abs(pair[0]), 1))
                missing[number] &= ~is_limit
        if not any(unexplained.any() for unexplained in missing):
            return True
    return _are_differences(torch, culprit, pairs, missing)


def _moved(culprit: Culprit) -> Iterator[Culprit]:
    """Yield a line in double precision with operands that are moved, in half of the cases large numbers far.

    All elements of an operand are moved up, or down, or some of them up: the slope may have a limit from one side only.
    """
    rng = np.random.default_rng(0)
    double = _in_double(culprit)
    both, up, down = (-1, 1), (0.1, 1), (-1, -0.1)
    sides = (both, both), (up, up), (up, down), (down, up), (down, down)
    for step, largest, side in itertools.product(STEPS, (np.inf, LARGE), sides):
        operands = {}
        for number, (name, values) in enumerate(double.operands.items()):
            moved = values.clip(-largest, largest) if values.dtype.kind == "f" else values
            if values.dtype.kind in "fc":
                moved = moved + step * np.maximum(abs(moved), 1) * rng.uniform(*side[number % 2], values.shape)
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

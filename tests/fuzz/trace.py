"""Which line of a program makes its gradients differ: one whose own derivative differs, at the operands that it has."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import overwritten, prelude
from tests.fuzz.compare import ROUNDED, array, close
from tests.fuzz.known_values import ROUNDING

#: Cotangents of a line, tried in this order until a line is found: 0 times an infinite slope is nan.
COTANGENTS = ((0.5, 1.5), (0.0, 0.0), (np.inf, np.inf), (np.nan, np.nan))


#: Whether values of a line are PyTorch's, up to what is known to differ.
Alike = Callable[[str, np.ndarray, np.ndarray], bool]


@dataclass
class Culprit:
    """A line, with the values of its operands; its slopes differ for the cotangents `ends` and all between.

    No gradient is wanted for the operands in `constants`.
    """

    line: str
    operands: dict[str, np.ndarray]
    constants: set[str]
    ends: tuple[float, float] = COTANGENTS[0]

    @property
    def of_infinite(self) -> bool:
        """Whether slopes differ for cotangents inf or nan only."""
        return not np.isfinite(self.ends[0])

    @property
    def of_zero(self) -> bool:
        """Whether slopes differ for cotangents 0 only, of those that are finite."""
        return self.ends == (0.0, 0.0)


def culprits(torch: Any, lines: list[str]) -> list[Culprit]:
    """Return the lines whose derivatives of first or second order differ between tapegrad and PyTorch."""
    operations = list(steps(torch, lines))
    for ends in COTANGENTS:
        found = [step for step in operations if _differs(torch, step, ends)]
        if found:
            return [replace(culprit, ends=ends) for culprit in found]
    return []


def steps(torch: Any, lines: list[str]) -> Iterator[Culprit]:
    """Yield the lines that have a gradient, with the values of their operands, each of them innocent so far."""
    space = prelude.space(torch)
    for line in lines:
        operands = {name: space[name] for name in re.findall(r"\bv\d+\b", line.split(" = ")[-1]) if name in space}
        tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
        arrays = {name: array(value).copy() for name, value in tensors.items()}
        constants = {name for name, value in tensors.items() if not value.requires_grad}
        try:
            exec(line, space)
        except Exception:  # raised on both sides
            continue
        result = space[re.split(r" = |\.", line, maxsplit=1)[0]]
        wanted = isinstance(result, torch.Tensor) and result.requires_grad
        if wanted and any(values.size for values in arrays.values()):  # of no elements, nothing has a gradient
            yield _apart(Culprit(line, arrays, constants))


def value(step: Culprit, module: Any = tg) -> np.ndarray:
    """Return what a line gives."""
    space = prelude.space(module) | {name: module.tensor(values) for name, values in step.operands.items()}
    exec(step.line, space)
    return array(space[re.split(r" = |\.", step.line, maxsplit=1)[0]])


def is_singular(step: Culprit) -> bool:
    """Whether a line has complex slopes that are inf or nan: in which part is chance, as in loops of PyTorch's."""
    if not any(map(np.iscomplexobj, step.operands.values())):
        return False
    slopes = derivatives(tg, step, COTANGENTS[0]) or ()
    return any(slope is not None and not np.isfinite(slope).all() for slope in slopes)


def is_on_cut(step: Culprit) -> bool:
    """Whether a line has complex slopes that the signs of zeros among its operands decide."""
    if not any(map(np.iscomplexobj, step.operands.values())):
        return False
    own, other = (
        derivatives(tg, replace(step, operands=_with_zeros(step.operands, zero)), COTANGENTS[0], 1 + 0.5j)
        for zero in (0.0, -0.0)
    )
    return own is not None and other is not None and not _are_close(own, other, close)


def _with_zeros(arrays: dict[str, np.ndarray], zero: float) -> dict[str, np.ndarray]:
    """Return copies of arrays, in which all zeros have a sign."""
    found = {name: values.copy() for name, values in arrays.items()}
    for values in found.values():
        for part in (values.real, values.imag) if values.dtype.kind == "c" else (values,):
            part[part == 0] = zero
    return found


def _apart(step: Culprit) -> Culprit:
    """Return a line with an operand of its own at each place, as slopes of one at two places may cancel."""
    if " = " not in step.line:
        return step
    arrays, own, constants = step.operands, dict[str, np.ndarray](), set[str]()

    def renamed(place: re.Match[str]) -> str:
        name = place[0] if place[0] not in own else f"v{1000 + len(own)}"
        if place[0] in arrays:
            own[name] = arrays[place[0]]
            constants.update({name} if place[0] in step.constants else ())
        return name if place[0] in arrays else place[0]

    result, expression = step.line.split(" = ", 1)
    return Culprit(f"{result} = {re.sub(overwritten.NAME, renamed, expression)}", own, constants)


def _differs(torch: Any, step: Culprit, ends: tuple[float, float]) -> bool:
    own, other = (derivatives(module, step, ends) for module in (tg, torch))
    if own is None or other is None:
        return False
    if _are_close(own, other, close):
        return False
    # What is left of a small difference in double precision does not come from rounding.
    return not _are_close(own, other, _roughly) or _differs_in_double(torch, step, ends)


def _differs_in_double(torch: Any, step: Culprit, ends: tuple[float, float]) -> bool:
    wide = {np.dtype("f4"): np.dtype("f8"), np.dtype("c8"): np.dtype("c16")}
    operands = {name: values.astype(wide.get(values.dtype, values.dtype)) for name, values in step.operands.items()}
    in_double = replace(step, line=overwritten.in_double(step.line), operands=operands)
    own, other = (derivatives(module, in_double, ends) for module in (tg, torch))
    return own is not None and other is not None and not _are_close(own, other, close)


def _roughly(own: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are so close that they may differ by rounding."""
    finite = np.isfinite(own) & np.isfinite(other)
    is_small = abs(own - other) < ROUNDED * np.maximum(abs(other), 1)
    return close(own[~finite], other[~finite]) and bool(is_small[finite].all())


def _are_close(
    own: list[np.ndarray | None], other: list[np.ndarray | None], close: Callable[[np.ndarray, np.ndarray], bool]
) -> bool:
    for a, b in zip(own, other, strict=False):
        zeros = [np.zeros_like(value) for value in (a, b) if value is not None]
        a, b = (zeros[0] if value is None and zeros else value for value in (a, b))
        if a is not None and b is not None and not close(a, b):
            return False
    return True


def _is_endless(step: Culprit) -> bool:
    """Whether PyTorch adds up one term for each whole number between an operand and 0: minutes for 40,000 operands."""
    if re.search(r"digamma|psi\(|polygamma|zeta", step.line) is None:
        return False
    reals = [values for values in step.operands.values() if values.dtype.kind == "f"]
    return any(bool((np.isfinite(values) & (values < -1e5)).any()) for values in reals)


def derivatives(
    module: Any, step: Culprit, ends: tuple[float, float], direction: complex = 1.0
) -> list[np.ndarray | None] | None:
    """Return the first and second derivatives of a line at its operands; None if it has none, or if one is refused.

    Cotangents of complex results have a direction.
    Where one side has none, or refuses one that the program takes, the program itself shows it.
    """
    if module is not tg and _is_endless(step):
        return None
    space, leaves = prelude.space(module), []
    written = re.match(r"(v\d+)\.", step.line) if " = " not in step.line else None
    for name, values in step.operands.items():
        leaf = module.tensor(values)
        if values.dtype.kind in "fc" and name not in step.constants:
            leaf.requires_grad_()
            leaves.append(leaf)
        space[name] = leaf * 1 if written and written[1] == name else leaf
    try:
        exec(step.line if module is tg else overwritten.written_elsewhere(step.line), space)
        out = space[written[1] if written else step.line.split(" = ")[0]]
        if not isinstance(out, module.Tensor) or not out.requires_grad:
            return None
        weights = np.linspace(*ends, out.numel()) if np.isfinite(ends[0]) else np.full(out.numel(), ends[0])
        weights = weights.reshape(tuple(out.shape)) * (direction if array(out).dtype.kind == "c" else 1.0)
        ct = module.tensor(weights.astype(array(out).dtype), requires_grad=True)
        first = module.autograd.grad(out, leaves, ct, create_graph=True, allow_unused=True)
        some = [slope for slope in first if slope is not None and slope.requires_grad]
        second = []
        with contextlib.suppress(NotImplementedError, RuntimeError):  # PyTorch lacks some
            if some:
                ones = [module.ones_like(slope) for slope in some]
                second = module.autograd.grad(some, [*leaves, ct], ones, allow_unused=True)
        return [None if slope is None else array(slope) for slope in (*first, *second)]
    except Exception:
        return None


def from_rounding(
    line: str, ours: dict[str, Any], theirs: dict[str, Any], own: np.ndarray, other: np.ndarray, alike: Alike
) -> bool:
    """Whether values of a line differ because its operands do, by rounding, e.g. beside a singularity.

    Then the one value follows from the one side's operands, and the other from the other's, but for known differences.
    """
    names = _tensors(line, ours)
    if all(_equal(array(ours[operand]), array(theirs[operand])) for operand in names):
        return False
    return _follows(line, names, ours, theirs, own, other, alike)


def is_of_equality(line: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether tensors are equal on one side only because their values differ: each side's answer is right."""
    if not re.search(r"\bequal\(", line):
        return False
    result, names = line.split(" = ")[0], _tensors(line, ours)
    return all(space[result] == np.array_equal(*(array(space[name]) for name in names)) for space in (ours, theirs))


def from_zeros(line: str, ours: dict[str, Any], theirs: dict[str, Any], own: np.ndarray, other: np.ndarray) -> bool:
    """Whether values of a line differ because the signs of zeros do among its operands."""
    names = _tensors(line, ours)
    if not any(_turned(array(ours[operand]), array(theirs[operand])) for operand in names):
        return False
    return _follows(line, names, ours, theirs, own, other, lambda line, ours, theirs: close(ours, theirs))


def turning(torch: Any, lines: list[str]) -> list[str]:
    """Return the lines of whose zeros the signs are not PyTorch's, though those of their operands are."""
    spaces, found = (prelude.space(tg), prelude.space(torch)), []
    for line in lines:
        before = _turned_names(*spaces)
        for space in spaces:
            with contextlib.suppress(Exception):  # raised on both sides
                exec(line, space)
        turned = _turned_names(*spaces)
        if not before.keys() & set(overwritten.operands(line.split(" = ")[-1])) and turned.keys() - before.keys():
            found.append(line if any(turned[name] for name in turned.keys() - before.keys()) else ROUNDING)
    return found


def _turned_names(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, bool]:
    """Return the names of tensors that have an element of another sign, and whether both are zeros."""
    names = [name for name, value in ours.items() if isinstance(value, tg.Tensor) and name in theirs]
    pairs = {name: (array(ours[name]), array(theirs[name])) for name in names}
    return {name: _turned(*pair) for name, pair in pairs.items() if _turned(*pair, are_zeros=False)}


def _turned(own: np.ndarray, other: np.ndarray, *, are_zeros: bool = True) -> bool:
    """Whether arrays have a number each, somewhere, of different signs; zeros, or any."""
    if own.dtype.kind not in "fc" or own.shape != other.shape:
        return False
    parts = (own.real, other.real), (own.imag, other.imag)
    return any(
        bool(
            ((np.signbit(a) != np.signbit(b)) & (((a == 0) & (b == 0)) | ((not are_zeros) & (a == a) & (b == b)))).any()
        )
        for a, b in parts
    )


def _tensors(line: str, space: dict[str, Any]) -> list[str]:
    """Return the names of a line's operands that are tensors; of a write, also what is written to."""
    return [name for name in overwritten.operands(line.split(" = ")[-1]) if isinstance(space[name], tg.Tensor)]


def _follows(
    line: str,
    names: list[str],
    ours: dict[str, Any],
    theirs: dict[str, Any],
    own: np.ndarray,
    other: np.ndarray,
    alike: Alike,
) -> bool:
    """Whether tapegrad has PyTorch's value of a line at PyTorch's operands, and its own at copies of its own."""
    result = re.split(r" = |\.", line, maxsplit=1)[0]
    for space, expected in ((ours, own), (theirs, other)):
        own_space = prelude.space(tg) | {operand: tg.tensor(array(space[operand])) for operand in names}
        try:
            exec(line, own_space)
        except Exception:
            return False
        if not alike(line, array(own_space[result]), expected):
            return False
    return True


def _equal(own: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are equal, nan to nan; of complex numbers, each part."""
    parts = (own.real, other.real), (own.imag, other.imag)
    return all(np.array_equal(*pair, equal_nan=own.dtype.kind in "fc") for pair in parts)

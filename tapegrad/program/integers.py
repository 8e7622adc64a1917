"""Integers among the arguments of a compiled function: constants of its programs, or inputs once they have changed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.given import Given
from tapegrad.program.program import Entry, Program
from tapegrad.program.version import Version

#: For so many values of a constant integer the function is traced without a word.
_MANY: Final = 16
_POWER: Final = 2
_FACTOR: Final = 1 << 31
_RANGE: Final = np.iinfo(np.int64)


class NotAnInputError(Exception):
    """An integer is to be a constant of the program that was traced with it as an input."""


class Integers:
    """Which integer arguments of a function are inputs.

    An integer is a constant until another one stands in its place: then it becomes an input, and any other integer is
    served by the same program. It stays a constant where Python looks at it, as `range` does, and where the
    function returns it.

    Parameters
    ----------
    name : str
        Of the function.
    n_counts : int
        How many of the last results are integers that the function counts, which may be inputs.
    """

    def __init__(self, name: str, n_counts: int = 0) -> None:
        self._name, self._n_counts = name, n_counts
        self._seen: dict[Hashable, set[int]] = {}  # by the kind of call and the place; no more than `_MANY` values
        self._constant: dict[Hashable, str] = {}  # and why

    def inputs(self, kind: Hashable, leaves: Sequence[Any]) -> list[int]:
        """Return which leaves of the arguments of a call are integers that are inputs; `kind` says all else of it."""
        places = []
        for place, leaf in enumerate(leaves):
            if leaf.__class__ is not int or not _RANGE.min <= leaf <= _RANGE.max:
                continue
            key = kind, place
            seen = self._seen.setdefault(key, set())
            if len(seen) < _MANY and leaf not in seen:
                seen.add(leaf)
                if len(seen) == _MANY and key in self._constant:
                    self._warn(self._constant[key])
            if len(seen) > 1 and key not in self._constant:
                places.append(place)
        return places

    def traced(self, given: Given, trace: Callable[[Given], Version]) -> Version:
        """Trace a function with integers as inputs.

        Raises
        ------
        NotAnInputError
            If they are to be constants: from now on they are.
        """
        other = given.with_integers([])
        try:
            version = trace(given)
        except Exception as error:
            why = f"a tensor in its place raises {type(error).__name__}"
        else:
            places = [given.places.index(place) for place in given.integers]
            integers = [version.program.inputs[place] for place in places]
            why = constant_use(version.program, integers, version.results(self._n_counts))
            if not why and _are_same(version.example(given.inputs), trace(other).example(other.inputs)):
                return version
        kind = other.structure, *other.places
        why = why or "the function computes something else of a tensor in its place"
        self._constant.update({(kind, place): why for place in given.integers})
        raise NotAnInputError

    def _warn(self, why: str) -> None:
        warnings.warn(
            f"{self._name} was traced for {_MANY} values of an integer argument, and will be for more: {why}",
            UserWarning,
            stacklevel=6,
        )


def constant_use(program: Program, integers: Sequence[int], results: Sequence[int]) -> str:
    """Return why integers, the inputs with these numbers, are to be constants of a program; empty if they are not."""
    derived, known = set(integers), {*integers, *program.constants}
    for entry in program.entries:
        operands = {*entry.operands, *entry.index_arrays}
        if operands <= known and not operands.isdisjoint(derived):
            if _may_overflow(program, entry):
                return f"{entry.op.name} may take it beyond 64 bits"
            derived.update(entry.results)
            known.update(entry.results)
    for guard in program.guards:
        if guard.value in derived and program.layouts[guard.value].dtype != np.bool_:
            return f"Python looks at it. {guard.where}"
    return "the function returns it" if not derived.isdisjoint(results) else ""


def _may_overflow(program: Program, entry: Entry) -> bool:
    """Whether an operation of an integer may have a result that 64 bits do not hold, if it is below 2**31."""
    if program.layouts[entry.results[0]].dtype.kind != "i":
        return False
    constants = [program.constants.get(number) for number in entry.operands]
    if entry.op.name == "pow":
        return constants[1] is None or abs(int(constants[1])) > _POWER
    return entry.op.name == "bitwise_left_shift" or any(
        own is not None and np.size(own) and int(np.max(np.abs(own))) > _FACTOR for own in constants
    )


def _are_same(some: Sequence[np.ndarray] | None, others: Sequence[np.ndarray] | None) -> bool:
    """Whether the outputs of two programs agree beyond rounding."""
    if some is None or others is None or len(some) != len(others):
        return False
    return all(_is_close(one, other) for one, other in zip(some, others, strict=True))


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    eps = float(np.finfo(one.dtype).eps) if one.dtype.kind in "fc" else 0.0
    return np.allclose(one, other, rtol=eps**0.5, atol=0, equal_nan=True)

"""Compiled functions that count: integers outside that a function changes are arguments and results of its programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.ops.creation import as_tensor
from tapegrad.program.compiled import Compiled
from tapegrad.program.effects import Count, Counted
from tapegrad.program.given import Given
from tapegrad.program.handed import called
from tapegrad.program.integers import Integers
from tapegrad.program.program import Program
from tapegrad.program.standing import Place
from tapegrad.program.version import Version
from tapegrad.tensor import Tensor

__all__ = ["Counting", "counted"]

_MOST: Final = 32  # traces
_LARGE: Final = 1 << 31  # such integers are counted by Python, which knows no overflow
_PATIENCE: Final = 3  # calls that change what they look at outside, until it is known that each does


def counted(compiled: Compiled, places: Sequence[Place], given: Given) -> Any:
    """Call a compiled function that has changed numbers or strings at some places outside, in a trace.

    Integers that nothing else depends on are counted behind each call.
    """
    if all(own.value.__class__ is int for own in places):
        counting = Counting(compiled.function, compiled._limit).at(places, compiled)
        try:
            counts = counting.counts(given)
        except (Counted, _NotCountedError):
            return _changed(compiled, places, given)
        if counts is None:
            compiled._counting = counting
            return counting.call(given)
        compiled._counts_up = counts
        try:
            return compiled._call(*given.tree)
        finally:
            compiled._counts_up = ()
    return _changed(compiled, places, given)


def _changed(compiled: Compiled, places: Sequence[Place], given: Given) -> Any:
    """Call the function itself, and if that is always so, from now on."""
    compiled._counting, compiled._changes = None, compiled._changes + 1
    if compiled._changes == _PATIENCE:
        _let_be(compiled, places, "it changes what it looks at outside of it, or is called with, in each call")
    return called(compiled.function, given)


def _let_be(compiled: Compiled, places: Sequence[Place], why: str) -> None:
    """Call the function itself from now on, with a warning."""
    compiled._is_plain, compiled._counting = True, None
    compiled._dispatch.variants = compiled._marked.dispatch.variants = ()
    keys = ", ".join(sorted({repr(own.key) for own in places if isinstance(own.key, str)}))
    warnings.warn(
        f"{compiled._name} is not compiled, because {why}{f' ({keys})' if keys else ''}. Let it take and return that "
        "(append to a list what the call returns), or keep it in tensors, and write to these in place",
        UserWarning,
        stacklevel=6,
    )


class _NotCountedError(BaseException):
    """The function changes more than integers."""


class Counting(Compiled):
    """A compiled function that takes integers from places outside, and puts others there."""

    def at(self, places: Sequence[Place], compiled: Compiled) -> Counting:
        """Return it for some places, in place of another compiled function."""
        self._counted, self._places, self._compiled, self._traces = self.function, list(places), compiled, 0
        self._integers = Integers(self._name, len(places))
        self.function: Callable[..., Any] = self._of_numbers
        return self

    def counts(self, given: Given) -> list[Count] | None:
        """Return how a call counts; None if its results depend on that, or its way, or it is more than a sum."""
        own = Given(([place.present() for place in self._places], *given.tree), {}, range(len(self._places))).read()
        try:
            version = self._trace(own)
        except Exception:  # of a tensor in place of an integer
            return None
        program, count = version.program, len(self._places)
        depends = {program.inputs[own.places.index(place)] for place in own.integers}
        for entry in program.entries:
            if not depends.isdisjoint((*entry.operands, *entry.index_arrays)):
                depends.update(entry.results)
        looked_at = [*version.results(count), *[guard.value for guard in program.guards]]
        if not depends.isdisjoint(looked_at):
            return None
        end = len(version.places)
        found = list(map(_count, [program] * count, self._places, program.inputs, program.outputs[end - count : end]))
        counts = [own for own in found if own is not None]
        return counts if len(counts) == count else None

    def call(self, given: Given) -> Any:
        """Call the function: with the integers that stand at the places now, where others stand afterwards."""
        args, kwargs = given.tree
        numbers = [place.present() for place in self._places]
        if not all(number.__class__ is int and abs(number) < _LARGE for number in numbers):
            return called(self._counted, given)
        try:
            result, after = self(numbers, args, kwargs)
        except (Counted, _NotCountedError):
            return _changed(self._compiled, self._places, given)
        for place, number in zip(self._places, after, strict=True):
            place.put(int(number))
        if self._traces > _MOST:
            _let_be(self._compiled, self._places, "Python looks at what it counts")
        return result

    def _of_numbers(self, numbers: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the function returns, and the integers that stand at the places then."""
        if not modes.is_traced():
            return self._counted(*args, **kwargs), [place.present() for place in self._places]
        holders = {id(place.holder): place.holder for place in self._places if isinstance(place.holder, dict)}.values()
        keys = {(id(place.holder), place.key) for place in self._places}
        before = [place.present() for place in self._places], [dict(own) for own in holders]
        try:
            for place, number in zip(self._places, numbers, strict=True):
                place.put(number)
            result = self._counted(*args, **kwargs)
            if any(_differ(*pair, keys) for pair in zip(holders, before[1], strict=True)):
                raise _NotCountedError
            return result, [_integer(place.present()) for place in self._places]
        finally:
            for place, number in zip(self._places, before[0], strict=True):
                place.put(number)

    def _looked_at(self) -> tuple[Callable[..., Any], Sequence[Place]]:
        return self._counted, self._places

    def _counts(self, places: Sequence[Place], given: Given) -> Any:
        raise Counted(places)

    def _trace(self, given: Given) -> Version:
        self._traces += 1
        return super()._trace(given)


def _count(program: Program, place: Place, before: int, after: int) -> Count | None:
    """Return how an integer is counted: from the value with one number to that with another; None if by no sum."""
    known = {entry.results[0]: entry for entry in program.entries if entry.op.name in ("add", "sub")}
    total = 0
    while after in known and after != before:
        first, second = known[after].operands
        if known[after].op.name == "add" and first in program.constants:
            first, second = second, first
        if second not in program.constants:
            return None
        number = int(program.constants[second])
        total += number if known[after].op.name == "add" else -number
        after = first
    if after == before:
        return Count(place, total, is_added=True)
    return Count(place, total + int(program.constants[after]), is_added=False) if after in program.constants else None


def _differ(holder: dict[Any, Any], before: dict[Any, Any], counted: Container[tuple[int, Any]]) -> bool:
    """Whether something else than what is counted stands in a dict, as other values that the function keeps there."""
    keys = [key for key in {*holder, *before} if (id(holder), key) not in counted]
    return any(key not in holder or key not in before or holder[key] is not before[key] for key in keys)


def _integer(value: Any) -> Tensor:
    """Return an integer as a tensor."""
    if value.__class__ is int:
        return as_tensor(value)
    if isinstance(value, Tensor) and value.dtype == np.dtype(np.int64) and value.ndim == 0:
        return value
    raise _NotCountedError

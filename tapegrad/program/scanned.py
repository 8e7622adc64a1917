"""From loops in a function that is traced to operations: a turn is traced once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.func.carried import Carried, Values
from tapegrad.func.trees import flatten, rebuild
from tapegrad.ops.creation import as_tensor
from tapegrad.program.scan_ways import Loop, Traced
from tapegrad.program.trace import TracingError, trace
from tapegrad.program.traced import example
from tapegrad.tensor import Tensor, from_array

__all__ = ["computed_again", "counted", "repeated", "scanned"]


def scanned(turn: Callable[..., Any], carry: Carried, rows: Values, count: int, reverse: bool) -> Any:
    """Return what `scan` returns, by one operation; None if turns do more than to compute."""
    whole = _Turn(turn, carry, rows)
    body = whole.first([example(own)[-1 if reverse else 0] for own in rows.leaves])
    if body is None:
        return None
    loop = Loop(body, whole.traced, whole.examples, rows.leaves, count, reverse=reverse)
    results = loop.results(carry.leaves)
    if results is None:
        return None
    end = len(carry.leaves)
    values = iter(results[end:])
    leaves = [None if leaf is None else next(values) for leaf in flatten(whole.y)]
    return carry.with_leaves(results[:end]), rebuild(whole.y, leaves)


def repeated(goes_on: Callable[[Any], Tensor], body_fun: Callable[[Any], Any], carry: Carried) -> Any:
    """Return what `while_loop` returns; None if turns do more than to compute."""
    whole = _Turn(lambda value, _: (body_fun(value), None), carry, _NO_ROWS)
    body = whole.first([])
    condition = _traced(lambda *tensors: [goes_on(carry.with_leaves(tensors))], whole.examples)
    if body is None or condition is None:
        return None
    results = Loop(body, whole.traced, whole.examples, condition=condition).results(carry.leaves)
    return None if results is None else carry.with_leaves(results)


def counted(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], carry: Carried) -> Any:
    """Return what `fori_loop` returns; None if turns do more than to compute."""
    first = _integer(lower)
    if any(carry.numbers):  # which take the dtype of what the first turn returns
        _Turn(lambda value, _: (body_fun(first, value), None), carry, _NO_ROWS).first([])

    def turn(value: Any, _: None) -> tuple[Any, None]:
        leaves = carry.leaves_of(body_fun(value[0], value[1]))
        carry.check(leaves)
        return (value[0] + 1, carry.with_leaves(leaves)), None

    whole = _Turn(turn, Carried((first, carry.tree), "fori_loop", "value"), _NO_ROWS)
    body, turns = whole.first([]), upper - lower
    if body is None:
        return None
    loop = Loop(body, whole.traced, whole.examples, length=None if isinstance(turns, Tensor) else turns)
    results = loop.results([first, *carry.leaves], [_integer(turns)] if isinstance(turns, Tensor) else [])
    return None if results is None else carry.with_leaves(results[1:])


def computed_again(function: Callable[[], Any]) -> tuple[Any] | None:
    """Return what a function returns, by a loop of one turn, whose rule computes it again; None if it cannot be traced.

    All that it takes comes from outside.
    """
    whole = _Turn(lambda value, _: (value, function()), Carried((), "checkpoint", "nothing"), _NO_ROWS)
    body = whole.first([])
    results = None if body is None else Loop(body, whole.traced, [], length=1).results([])
    if results is None:
        return None
    values = iter([own[0] for own in results])
    leaves = [None if leaf is None else next(values) for leaf in flatten(whole.y)]
    return (rebuild(whole.y, leaves),)


_NO_ROWS = Values(None, "", "")


def _integer(value: Any) -> Tensor:
    """Return an integer as a tensor of int64."""
    if not isinstance(value, Tensor):
        return from_array(np.array(value))
    return value if value.dtype == np.dtype(np.int64) else value.to(np.dtype(np.int64))


class _PromotedError(Exception):
    """A Python number that the loop begins with takes another dtype."""


class _Turn:
    """A turn of a loop, which is to be traced.

    Attributes
    ----------
    y : nested containers
        What the turn returned besides the carried value.
    examples : list of array
        What it was first traced with: rows, and carried values.
    """

    def __init__(self, turn: Callable[..., Any], carry: Carried, rows: Values) -> None:
        self._turn, self._carry, self._rows = turn, carry, rows
        self.y: Any = None
        self.examples: list[np.ndarray] = []

    def _call(self, *tensors: Tensor, may_promote: bool) -> list[Tensor]:
        end, carry = len(self._rows.leaves), self._carry
        value, self.y = self._turn(carry.with_leaves(tensors[end:]), self._rows.with_leaves(tensors[:end]))
        own = carry.leaves_of(value)
        if may_promote and carry.promote(own):
            raise _PromotedError
        carry.check(own)
        return [*own, *[as_tensor(leaf) for leaf in flatten(self.y) if leaf is not None]]

    def first(self, row: Sequence[np.ndarray]) -> Traced | None:
        """Return the program of the first turn, and what it takes from outside; None if there is none."""
        for _ in range(1 + sum(self._carry.numbers)):
            self.examples = [*row, *[example(own) for own in self._carry.leaves]]
            try:
                return self.traced(self.examples, may_promote=True)
            except _PromotedError:
                continue
        raise AssertionError("a number was promoted twice")

    def traced(self, examples: Sequence[np.ndarray], *, may_promote: bool = False) -> Traced | None:
        """Return the program of a turn for these examples, and what it takes from outside; None if there is none."""
        found = _traced(functools.partial(self._call, may_promote=may_promote), examples)
        self.y = rebuild(self.y, [None if leaf is None else 0 for leaf in flatten(self.y)])  # without the tensors
        return found


def _traced(function: Callable[..., list[Tensor]], examples: Sequence[np.ndarray]) -> Traced | None:
    """Return the program of a function and what it takes from outside; None if it does more than to compute."""
    is_recorded = modes.is_grad_enabled()
    wanted = [is_recorded and own.dtype.kind in "fc" for own in examples]
    try:
        program, captured = trace(function, examples, wanted)
    except TracingError:  # e.g. it draws random numbers, anew in each turn: the trace around writes them all down
        return None
    return None if program.has_functions else (program, captured)

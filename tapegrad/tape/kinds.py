"""Results that hold for all lengths, kept by kind: a kind is everything else that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from tapegrad.runtime import state
from tapegrad.tape.lengths import Found, NotGeneralError, Trace, Words, integers


class Kind:
    """One kind: a value of everything that a result depends on besides lengths, and the functions of lengths for it.

    Attributes
    ----------
    key : hashable
        That answer.
    functions : list
        From lengths and attributes to what was worked out; None where conditions do not hold.
    facts : object, optional
        What else follows from the kind alone: for who asks for it, to keep.
    """

    __slots__ = ("_met", "_words", "facts", "functions", "key")

    _FIRST: Final = 3  # other lengths that are met before there is an attempt: it takes a millisecond
    _ATTEMPTS: Final = 4
    _GAVE_UP: Final = _FIRST + _ATTEMPTS

    def __init__(self, key: Hashable, words: Words) -> None:
        self.key, self._words = key, words
        self.functions: list[Found] = []
        self.facts: Any = None
        self._met = 0

    @property
    def learns(self) -> bool:
        """Whether there may be another attempt."""
        return self._met < self._GAVE_UP

    def find(self, lengths: Sequence[int], attrs: Mapping[str, Any]) -> Any:
        """Return the result for these lengths, or None."""
        for function in self.functions:
            value = function(lengths, attrs)
            if value is not None:
                return value
        return None

    def learn(self, work_out: Callable[[Trace], Any]) -> None:
        """Work out a function of lengths, if results of this kind were worked out for several lengths before."""
        self._met += 1
        if not self._FIRST <= self._met < self._GAVE_UP:
            return
        trace = Trace(self._words)
        try:
            result = work_out(trace)
            function = trace.function(result) if result is not None else None
        except NotGeneralError:
            function = None
        if function is not None:
            self.functions.insert(0, function)
        else:
            self._met = self._GAVE_UP  # the next attempt would fail too


class Templates:
    """The results that hold for all lengths, by kind.

    Parameters
    ----------
    name : str
        Of what is kept, for `tapegrad.runtime.state`.
    words : callable, optional
        From a list of integers to the array that it becomes, which has a method ``__copy__``.
    """

    _KINDS: Final = 512

    def __init__(self, name: str, words: Words | None = None) -> None:
        self._kinds: dict[Hashable, Kind] = {}
        self._words = words or integers
        state.register(name, lambda: len(self._kinds), self._kinds.clear)
        self.clear = self._kinds.clear

    def kind(self, key: Hashable) -> Kind:
        """Return the kind with this key."""
        kind = self._kinds.get(key)
        if kind is None:
            kind = state.put(self._kinds, key, Kind(key, self._words), self._KINDS)
        return kind

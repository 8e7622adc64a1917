"""Lengths as symbols: a result that is worked out once with them becomes a function of lengths.

A program that meets new lengths in each step, as of sentences or of batches that are filtered, would work out the same
things again and again. So they are worked out with `Length` in place of integers. Sums and products of lengths are
polynomials; whatever is asked of them (is one larger than another, is it 1) is answered as it is true now, and becomes
a condition. The result is compiled to a Python function that checks the conditions and computes the polynomials.

This cannot go wrong silently: a length that is used as an integer of its own, e.g. by NumPy, becomes the condition that
it is that integer, and a length that is used as a key ends the attempt.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from tapegrad.tape.conditions import Conditions, Terms, plus, replaced, text, times

Found = Callable[[Sequence[int], Mapping[str, Any]], Any]
Words = Callable[[list[int]], Any]


_new_tuple: Final[Any] = tuple.__new__


class NotGeneralError(Exception):
    """The result depends on lengths in a way that no function of lengths can follow."""


class Length:
    """An integer that stands for any other length; see the file."""

    __slots__ = ("_terms", "_trace", "value")

    def __init__(self, trace: Trace, terms: Terms, value: int) -> None:
        self._trace, self._terms, self.value = trace, terms, value

    def _of(self, terms: Terms, value: int) -> Any:
        """Return the polynomial with these terms; an integer if it depends on no length."""
        return Length(self._trace, terms, value) if any(terms) else value

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (int, Length)):
            return NotImplemented
        return self._of(plus(self._terms, _terms(other)), self.value + _value(other))

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (int, Length)):
            return NotImplemented
        return self._of(times(self._terms, _terms(other)), self.value * _value(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __floordiv__(self, other: Any) -> Any:
        exact = _quotient(self._terms, _terms(other)) if other else None
        if exact is not None:
            return self._of(exact, self.value // _value(other))
        return applied(_floor, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return applied(_floor, other, self) if self else other // self.value

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __truediv__(self, other: Any) -> Any:
        raise NotGeneralError("a length is divided to a fraction")

    __rtruediv__ = __truediv__

    def __lt__(self, other: Any) -> bool:
        return self._trace.holds(self - other, "<", ">=")

    def __le__(self, other: Any) -> bool:
        return self._trace.holds(self - other, "<=", ">")

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Length)):
            return NotImplemented
        return self._trace.holds(self - other, "==", "!=")

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        raise NotGeneralError("a length is a key")

    def __index__(self) -> int:
        self._trace.holds(self - self.value, "==", "!=")
        return self.value

    def __repr__(self) -> str:
        return text(self._terms)


def applied(function: Callable[..., int], *arguments: int | Length) -> Any:
    """Call a function of integers; with lengths among them, note that it is to be called when they are known."""
    for argument in arguments:
        if isinstance(argument, Length):
            return argument._trace.applied(function, *arguments)
    return function(*arguments)


def _terms(number: int | Length) -> Terms:
    return number._terms if isinstance(number, Length) else {(): int(number)}


def _value(number: int | Length) -> int:
    return number.value if isinstance(number, Length) else int(number)


def _is_general(value: Any) -> bool:
    return isinstance(value, Length) or (isinstance(value, (list, tuple)) and any(map(_is_general, value)))


def _keeps(value: Any) -> bool:
    """Whether a function, or an object that it was made with, would look at lengths or attributes later."""
    if isinstance(value, functools.partial):
        return _keeps(value.func) or any(map(_keeps, (*value.args, *value.keywords.values())))
    if isinstance(value, FunctionType):
        return any(_keeps(cell.cell_contents) for cell in value.__closure__ or ())
    if isinstance(value, type):
        return False
    names = {*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ()), "shape"}
    parts = [value, *(getattr(value, name, None) for name in names)]
    return any(isinstance(part, _Attributes) or _is_general(part) for part in parts)


def _floor(dividend: int, divisor: int) -> int:
    return dividend // divisor


def _quotient(terms: Terms, divisor: Terms) -> Terms | None:
    """Return a polynomial divided by a product of lengths and a number; None if something would be left over."""
    if len(divisor) != 1:
        return None
    ((names, by),) = divisor.items()
    result: Terms = {}
    for product, factor in terms.items():
        rest = list(product)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if factor % by:
            return None
        result[tuple(rest)] = factor // by
    return result


def integers(values: list[int]) -> np.ndarray:
    """Return an array of integers."""
    return np.array(values, dtype=np.int64)


class Trace:
    """One attempt to work out a result for all lengths; `words` makes arrays of the lists in it."""

    def __init__(self, words: Words = integers) -> None:
        self._words = words
        self._lengths: list[str] = []
        self._least: dict[str, int] = {}  # what some of them cannot be less than
        self._attributes: dict[str, Any] = {}  # those that were read
        self._conditions = Conditions()
        self._calls: dict[str, tuple[Callable[..., int], list[Terms]]] = {}  # functions of lengths
        self._values: dict[str, Terms] = {}  # of names that others stand for
        self._constants: dict[str, Any] = {}
        self._filled: list[str] = []  # statements that make arrays
        self._ended = False

    def length(self, value: int, least: int | None = None) -> Length:
        """Return a new length whose value is this one now, and never less than `least`."""
        name = f"n{len(self._lengths)}"
        self._lengths.append(name)
        if least is not None:
            self._least[name] = least
        return Length(self, {(name,): 1}, value)

    def attributes(self, attrs: Mapping[str, Any], general: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return attributes; those that are read must be the same later, but for `general` ones: tuples of lengths."""
        return _Attributes(self, attrs, {name: tuple(map(self.length, attrs[name])) for name in general})

    def requires(self, name: str, value: Any) -> None:
        """Note that an attribute must have this value."""
        if self._ended:
            raise NotGeneralError("attributes were kept for later")
        self._attributes[name] = value

    def applied(self, function: Callable[..., int], *arguments: int | Length) -> Any:
        """Return a function of lengths."""
        name = f"a{len(self._calls)}"
        self._calls[name] = function, [_terms(argument) for argument in arguments]
        return Length(self, {(name,): 1}, function(*map(_value, arguments)))

    def holds(self, difference: int | Length, relation: str, opposite: str) -> bool:
        """Return whether a relation to 0 holds now, and note that it must hold later, or its opposite."""
        if self._ended:
            raise NotGeneralError("a length was kept for later")
        value = _value(difference)
        answer = value == 0 if relation == "==" else value < 0 if relation == "<" else value <= 0
        if isinstance(difference, Length):
            self._conditions.add(difference._terms, relation if answer else opposite)
        return answer

    def function(self, result: Any) -> Found:
        """Return a function of lengths, in the order in which they were made, and attributes, that gives `result`.

        It returns None where the conditions do not hold. The result is an integer, a length, another object, or tuples
        and named tuples of such. Lists of integers become arrays: only a few words of one depend on lengths.
        """
        lines = [f"({', '.join(self._lengths)},) = lengths"] if self._lengths else []
        equations = self._conditions.equations(self._lengths)
        self._values = dict(equations)
        calls = self._different_calls()
        conditions = [
            # np.dtype(np.float64) == None; dtypes are compared as objects, too.
            f"attrs[{name!r}] {'is' if value is None or isinstance(value, np.dtype) else '=='} {self._constant(value)}"
            for name, value in self._attributes.items()
        ]
        conditions += [f"{name} == {text(value)}" for name, value in equations.items()]
        left = list(self._conditions.texts(self._values, self._least))
        lengths = set(self._lengths)
        for call in [None, *calls]:
            if call is not None:
                lines.append(f"{call} = {calls[call]}")
                lengths.add(call)
            conditions += [condition for names, condition in left if names <= lengths]
            left = [(names, condition) for names, condition in left if not names <= lengths]
            if conditions:
                lines.append(f"if not ({' and '.join(conditions)}): return None")
            conditions = []
        answer = self._text(result)
        lines += [*self._filled, f"return {answer}"]
        source = "def found(lengths, attrs):\n" + "".join(f"    {line}\n" for line in lines)
        names = dict(self._constants)
        exec(compile(source, "<lengths>", "exec"), names)
        self._ended = True
        made: Found = names["found"]
        return made

    def _different_calls(self) -> dict[str, str]:
        """Return the calls of functions by the names of their results, each once; note which names are the same."""
        first: dict[str, str] = {}
        for name, (function, arguments) in self._calls.items():
            texts = [text(replaced(argument, self._values)) for argument in arguments]
            call = f"{self._constant(function)}({', '.join(texts)})"
            if first.setdefault(call, name) != name:
                self._values[name] = {(first[call],): 1}
        return {name: call for call, name in first.items()}

    def _constant(self, value: Any) -> str:
        for name, other in self._constants.items():
            if other is value:
                return name
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _final(self, value: Any) -> Any:
        """Return a length as the terms of the names that are left, or as an integer if it depends on none."""
        if not isinstance(value, Length):
            return value
        terms = replaced(value._terms, self._values)
        return terms if any(terms) else terms.get((), 0)

    def _text(self, value: Any) -> str:
        value = self._final(value)
        if type(value) is dict:
            return text(value)
        if type(value) is int:
            return str(value)
        if type(value) is list:
            words = list(map(self._final, value))
            constant = self._words([0 if type(word) is dict else word for word in words])
            name = f"w{len(self._filled)}"
            self._filled.append(f"{name} = {self._constant(constant.__copy__)}()")
            self._filled += [
                f"{name}[{place}] = {text(word)}" for place, word in enumerate(words) if type(word) is dict
            ]
            return name
        if isinstance(value, tuple) and (_is_general(value) or list in map(type, value)):
            items = f"({''.join(self._text(item) + ', ' for item in value)})"
            # What a named tuple has for a constructor takes three times as long.
            return (
                items
                if type(value) is tuple
                else f"{self._constant(_new_tuple)}({self._constant(type(value))}, {items})"
            )
        if any(map(_keeps, value)) if isinstance(value, tuple) else _keeps(value):
            raise NotGeneralError("a function looks at a length later")
        return self._constant(value)


class _Attributes(Mapping[str, Any]):
    """The attributes of a call; it notes which ones are read."""

    def __init__(self, trace: Trace, attrs: Mapping[str, Any], general: Mapping[str, Any]) -> None:
        self._trace, self._attrs, self._general = trace, attrs, general

    def __getitem__(self, name: str) -> Any:
        if name in self._general:
            return self._general[name]
        value = self._attrs[name]
        self._trace.requires(name, value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._attrs)

    def __len__(self) -> int:
        return len(self._attrs)

"""Numbers, strings and arrays that the code of a traced function names: in later calls, others may stand there.

They are constants of its program. So they are compared in each call, and the function is traced again for others.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapegrad.program.names import attribute, is_name_of_ours, is_ours
from tapegrad.program.watched import PLAIN, Watched
from tapegrad.tensor import Tensor

__all__ = ["Values"]

_VALUES: Final = (*PLAIN, np.ndarray)
_MOST: Final = 1000  # functions, objects and containers that are looked at, and elements of each
_cell: Final = attrgetter("cell_contents")


class Values:
    """The values that a function and those that it calls name, before it is traced.

    They are variables, attributes, and what is in containers. Code of the library names nothing that a user changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._named: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}  # dict or class, name and value, by identities
        self._cells: list[tuple[Any, Any]] = []
        self._lists: list[Watched] = []
        self._known: dict[tuple[int, frozenset[str]], Any] = {}
        self.value(function, frozenset())

    def watched(self) -> list[Watched]:
        """Return what is to be compared in each call: not what the function has changed itself."""
        keys: dict[int, tuple[Any, list[Any]]] = {}
        for holder, key, value in self._named.values():
            if _space(holder).get(key) is value:
                keys.setdefault(id(holder), (holder, []))[1].append(key)
        cells = [cell for cell, value in self._cells if _content(cell) is value]
        found = [Watched(functools.partial(map, _space(holder).get, own)) for holder, own in keys.values()]
        found += [Watched(functools.partial(map, _content, cells))] if cells else []
        return [*found, *[own for own in self._lists if own.holds()]]

    def value(self, value: Any, words: frozenset[str]) -> None:
        """Look at what stands behind a name of code with these names of attributes."""
        key = id(value), words
        if key in self._known or len(self._known) >= _MOST or isinstance(value, (Tensor, *_VALUES)):
            return
        self._known[key] = value
        if isinstance(value, dict):
            self.names(value, value, words)
        elif isinstance(value, (list, tuple)):
            if isinstance(value, list) and _values_in(value):
                self._lists.append(Watched(functools.partial(_values_in, value)))
            for own in value[:_MOST]:
                self.value(own, words)
        elif isinstance(value, types.MethodType):
            self.method(value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            for own in (value.func, value.args, value.keywords):
                self.value(own, words)
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.ModuleType) or not is_ours(value if isinstance(value, type) else type(value)):
            self.attributes(value, words)

    def function(self, function: types.FunctionType) -> frozenset[str]:
        """Look at the variables of a function; return the names of attributes in its code."""
        codes = [function.__code__]
        for code in codes:  # it grows
            codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        is_fixed = is_name_of_ours(function.__globals__.get("__name__"))  # whatever it wraps
        words = frozenset(key for code in codes for key in code.co_names)
        for cell in function.__closure__ or ():
            if type(_content(cell)) in _VALUES and not is_fixed:
                self._cells.append((cell, _content(cell)))
            self.value(_content(cell), words)
        if not is_fixed:
            self.names(function.__globals__, words & function.__globals__.keys(), words)
        return words

    def method(self, function: Any, own: Any) -> None:
        """Look at what a method names, of its object as well."""
        if isinstance(function, types.FunctionType):
            self.value(own, self.function(function))

    def names(self, holder: Any, keys: Iterable[Any], words: frozenset[str]) -> None:
        """Look at variables, attributes, or what is in a dict."""
        for key in list(keys)[:_MOST]:
            value = _space(holder)[key]
            if type(value) in _VALUES:
                self._named[id(holder), key] = holder, key, value
            else:
                self.value(value, words)

    def attributes(self, value: Any, words: frozenset[str]) -> None:
        """Look at the attributes of an object that code names, and at its methods."""
        own = attribute(value, "__dict__") or {}
        is_network = "_kinds" in own  # what is read of it is compared anyway
        words = words | {"forward"} if is_network else words | {"__call__"}
        if isinstance(own, dict) and not is_network:
            self.names(own, words & own.keys(), words)
        for child in [own[key] for key in own.get("_kinds", ()) if attribute(own[key], "_kinds") is not None]:
            self.value(child, frozenset())
        for kind in (value if isinstance(value, type) else type(value)).__mro__:
            for key in words & vars(kind).keys() if not is_ours(kind) else ():
                member = vars(kind)[key]
                if isinstance(member, (staticmethod, classmethod)):
                    member = member.__func__
                elif isinstance(member, property):
                    member = member.fget
                if isinstance(member, types.FunctionType):
                    if (id(member), words) not in self._known:
                        self._known[id(member), words] = member
                        self.method(member, value)
                else:
                    self.names(kind, [key], words)


def _space(holder: Any) -> Any:
    """Return where the names of a dict or a class stand."""
    return vars(holder) if isinstance(holder, type) else holder


def _content(cell: Any) -> Any:
    try:
        return _cell(cell)
    except ValueError:  # deleted
        return None


def _values_in(container: Sequence[Any]) -> list[Any]:
    return [own for own in container if type(own) in _VALUES]

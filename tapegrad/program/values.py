"""What the code of a traced function names, but for tensors and modules: in later calls, others may stand there.

Numbers, strings, arrays, functions and other objects are constants of its program. So they are compared in each call,
and the function is traced again for others.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.func.trees import is_network
from tapegrad.program.names import attribute, is_name_of_ours, is_ours, words_in
from tapegrad.program.standing import ABSENT, Place, Standing, elements_checked
from tapegrad.program.watched import PLAIN, Watched
from tapegrad.tensor import Tensor

__all__ = ["Values"]

_VALUES: Final = (*PLAIN, np.ndarray)
_FIXED: Final = types.MappingProxyType  # the namespaces of classes
_MOST: Final = 1000  # functions, objects and containers that are looked at, and elements of each


class Values:
    """The values that a function and those that it calls name, before it is traced.

    They are variables, attributes, and what is in containers. Code of the library names nothing that a user changes.

    Parameters
    ----------
    function : callable
    others : sequence of Place
        What is not to be looked at: numbers that are arguments.
    arguments : iterable
        Objects that the function is called with: it may hand them to each function that it calls.
    """

    def __init__(
        self, function: Callable[..., Any], others: Sequence[Place] = (), arguments: Iterable[Any] = ()
    ) -> None:
        self._others = {(id(own.holder), own.key) for own in others}
        self._places: dict[tuple[int, Any], Place] = {}
        self._lists: list[_Elements] = []
        self._slots: list[Place] = []
        self._hidden: list[Place] = []  # where objects may get an attribute in place of their class's
        self._arrays: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # small ones, and what they contain
        self._functions: list[types.FunctionType] = []
        self._known: dict[tuple[int, frozenset[str]], Any] = {}
        self._left: list[tuple[Any, frozenset[str]]] = [(function, frozenset())]  # with the names of attributes in code
        self._look()
        objects, count = [own for own in arguments if not isinstance(own, (*PLAIN, types.NoneType, type))], -1
        while count < len(self._functions):  # each may get each object, and the methods of these name more
            count = len(self._functions)
            words = frozenset(word for own in self._functions for word in words_in(own))
            found = [own for own in self._known.values() if _has_attributes(own)]
            self._left += [(own, words) for own in {id(own): own for own in (*objects, *found)}.values()]
            self._look()

    def _look(self) -> None:
        while self._left:
            self.value(*self._left.pop())

    def unchanged(self) -> list[Callable[[], bool]]:
        """Return what is to be asked in each call."""
        places = [place for place in self._places.values() if place.present() is place.value]
        places += [place for place in self._hidden if place.stands()]
        found: list[Callable[[], bool]] = [Standing(places)] if places else []
        found += [place.stands for place in self._slots if place.stands()]
        return [*found, *[own.holds for own in self._lists if own.values and own.holds()]]

    def changed(self, others: Sequence[Place]) -> list[Place]:
        """Return where something else stands now, or in arrays, with what stood there before; and others.

        That a list is longer is no change: it gets its elements while the function is traced. Nor is what the code only
        stores.
        """
        places = [place for place in self._places.values() if not isinstance(place.holder, _FIXED)]
        places += self._slots + self._hidden
        for watched in self._lists:
            places += watched.changed_elements()
        found = [place for place in places if not place.stands()]
        loaded = _loaded_in(self._functions) if found else ()
        found = [place for place in found if not isinstance(place.key, str) or place.key in loaded]
        found = [place for place in (*found, *others) if (id(place.holder), place.key) not in self._others]
        arrays = [Place(own, ..., before) for own, before in self._arrays.values() if own.tobytes() != before.tobytes()]
        return found + arrays

    def value(self, value: Any, words: frozenset[str]) -> None:
        """Look at what stands behind a name of code with these names of attributes."""
        key = id(value), words
        if key in self._known or len(self._known) >= _MOST or isinstance(value, (Tensor, *_VALUES)):
            if isinstance(value, np.ndarray) and value.size <= _MOST and value.flags.writeable:
                self._arrays[id(value)] = value, value.copy()
            return
        self._known[key] = value
        if isinstance(value, dict):
            self.names(value, value, words)
        elif isinstance(value, (list, tuple)):
            if isinstance(value, list):
                self._lists.append(_Elements(value))
            for own in value[:_MOST]:
                self._left.append((own, words))
        elif isinstance(value, types.MethodType):
            self.method(value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            for own in (value.func, value.args, value.keywords):
                self._left.append((own, words))
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif not is_ours(value if isinstance(value, (type, types.ModuleType)) else type(value)):
            self.attributes(value, words)

    def function(self, function: types.FunctionType) -> frozenset[str]:
        """Look at the variables of a function; return the names of attributes in its code."""
        is_fixed = is_ours(function) or is_name_of_ours(function.__globals__.get("__name__"))  # which may wrap a user's
        words = frozenset(words_in(function))
        self._functions.append(function)
        defaults = *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()
        self._left += [(own, words) for own in defaults]
        self.names(function.__dict__, words & function.__dict__.keys(), words)
        for cell in function.__closure__ or ():
            self.look(Place(cell, types.CellType, None), words, is_fixed)
        if not is_fixed:
            self.names(function.__globals__, words & function.__globals__.keys(), words)
        return words

    def method(self, function: Any, own: Any) -> None:
        """Look at what a method names, of its object as well."""
        if isinstance(function, types.FunctionType):
            self._left.append((own, self.function(function)))

    def names(self, holder: Any, keys: Iterable[Any], words: frozenset[str]) -> None:
        """Look at variables, attributes, or what is in a dict."""
        for key in list(keys)[:_MOST]:
            self.look(Place(holder, key, None), words)

    def look(self, place: Place, words: frozenset[str], is_fixed: bool = False) -> None:
        """Look at what stands at a place, where a user may change it unless that `is_fixed`."""
        value = place.present()
        is_compared = type(value) in _VALUES or (_is_compared(value) and not isinstance(place.holder, _FIXED))
        if is_compared and not is_fixed and (id(place.holder), place.key) not in self._others and place.is_there():
            self._places[id(place.holder), place.key] = place._replace(value=value)
        self._left.append((value, words))

    def attributes(self, value: Any, words: frozenset[str]) -> None:
        """Look at the attributes of an object that code names, and at its methods."""
        own: Any = None if isinstance(value, type) else attribute(value, "__dict__")
        own = {} if own is None else own  # one that is empty may be filled
        is_module = is_network(own)  # what is read of it is compared anyway
        words = words | {"forward"} if is_module else words | {"__call__"}
        if isinstance(own, dict) and not is_module:
            self.names(own, words & own.keys(), words)
        members = [own[key] for key in own["_kinds"]] if is_module else []
        self._left += [(child, frozenset()) for child in members if is_network(attribute(child, "__dict__"))]
        if not isinstance(value, type) and not is_module:
            slots = [key for kind in type(value).__mro__ for key in _slots_of(kind) if key in words]
            places = [Place(value, key, getattr(value, key, None)) for key in slots]
            self._slots += [own for own in places if _is_compared(own.value) and own.is_there()]
            self._left += [(own.value, words) for own in places]
        for kind in (value if isinstance(value, type) else type(value)).__mro__:
            for key in words & vars(kind).keys() if not is_ours(kind) else ():
                member = vars(kind)[key]
                if isinstance(member, (staticmethod, classmethod)):
                    member = member.__func__
                elif isinstance(member, property):
                    member = member.fget
                if isinstance(member, types.FunctionType):  # a method
                    if (id(member), words) not in self._known:
                        self._known[id(member), words] = member
                        self.method(member, value)
                elif key not in own:
                    self.names(vars(kind), [key], words)
                    if isinstance(own, dict) and not isinstance(value, type):
                        self._hidden.append(Place(own, key, ABSENT))


class _Elements(Watched):
    """What is in a list, but for tensors."""

    def __init__(self, own: list[Any]) -> None:
        super().__init__(functools.partial(_values_in, own))
        self._own, self._before = own, tuple(own)

    @functools.cached_property
    def _has_same(self) -> Callable[[], bool]:
        """What asks for the same objects only, in 1 ns an element; of lists that have tensors as well, nothing does."""
        is_whole = len(self.values) == len(self._before)
        return elements_checked(self._own, self._before) if is_whole else bool

    def holds(self) -> bool:
        """Whether the same elements stand there."""
        return self._has_same() or super().holds()

    def changed_elements(self) -> list[Place]:
        """Return where other ones stand now."""
        return [] if self.holds() else [Place(self._own, key, value) for key, value in enumerate(self._before)]


def _loaded_in(functions: Sequence[types.FunctionType]) -> set[Any]:
    """Return the names and constants that code takes from somewhere, not those that it only stores."""
    codes = [function.__code__ for function in functions]
    for code in codes:  # it grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    taken = [
        own for code in codes for own in dis.get_instructions(code) if not own.opname.startswith(("STORE", "DELETE"))
    ]
    return {own.argval for own in taken if isinstance(own.argval, str)}


def _has_attributes(value: Any) -> bool:
    return not isinstance(value, (dict, list, tuple, type, types.ModuleType, types.MethodType, types.FunctionType))


def _slots_of(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _values_in(container: Sequence[Any]) -> list[Any]:
    return [own for own in container if _is_compared(own)]


def _is_compared(value: Any) -> bool:
    """Whether another value in this one's place is looked for here: not of tensors, which are inputs."""
    return not isinstance(value, (Tensor, types.ModuleType, type))

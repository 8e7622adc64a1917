"""Names through which a function finds tensors from outside: variables around it, and what these contain.

A tensor that stands behind such a name may be another one in the next call.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor

_MOST: Final = 10_000  # objects that are looked into


class Name(NamedTuple):
    """A variable, an attribute, or an element of a list or dict.

    Attributes
    ----------
    holder : dict, list, tuple, class or cell
    key : str or int
        Of a container.
    """

    holder: Any
    key: Any

    def value(self) -> Any:
        """Return what stands behind the name; None if nothing does."""
        holder = self.holder
        if isinstance(holder, dict):
            return holder.get(self.key)
        if isinstance(holder, (list, tuple)):
            return holder[self.key] if self.key < len(holder) else None
        if isinstance(holder, type):
            return vars(holder).get(self.key)
        try:
            return holder.cell_contents
        except ValueError:  # deleted
            return None

    def put(self, value: Any) -> None:
        """Let something stand behind the name."""
        if isinstance(self.holder, types.CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            setattr(self.holder, self.key, value)
        else:
            self.holder[self.key] = value


#: Names one behind the other: what stands behind each but the last holds the next one.
Path = tuple[Name, ...]


def paths_of(function: Callable[..., Any], arguments: Iterable[Any] = ()) -> dict[int, tuple[Tensor, list[Path]]]:
    """Return the tensors that a function may look up, and the paths to each, by their identity.

    It looks into variables of the function and of functions that it names, into lists, tuples, dicts and objects among
    them and among its arguments, but for modules of networks: see `tapegrad.program.watched`.
    """
    found: dict[int, tuple[Tensor, list[Path]]] = {}
    seen: set[int] = set()
    left: list[tuple[Any, Path]] = [(function, ())]
    left += [(own, ()) for own in arguments]
    for value, path in left:  # it grows
        if isinstance(value, Tensor):
            found.setdefault(id(value), (value, []))[1].extend([path] if path else [])
        elif id(value) not in seen and len(seen) < _MOST:
            seen.add(id(value))
            left += [(name.value(), (*path, name) if is_held else (name,)) for name, is_held in _names_in(value)]
    return found


def _names_in(value: Any) -> Iterator[tuple[Name, bool]]:
    """Return the names in an object, and whether what stands behind them is found there only."""
    if isinstance(value, dict):
        yield from [(Name(value, key), True) for key in value] if len(value) <= _MOST else ()
    elif isinstance(value, (list, tuple)):
        yield from [(Name(value, place), True) for place in range(len(value))] if len(value) <= _MOST else ()
    elif isinstance(value, types.MethodType):
        yield from _held(value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from _held(value.func, value.args, value.keywords)
    elif _attribute(value, "__wrapped__") is not None:
        yield from _held(value.__wrapped__)
    elif isinstance(value, types.FunctionType):
        yield from [(name, False) for name in _variables(value)]
    elif not isinstance(value, types.ModuleType) and not _is_ours(value) and _attribute(value, "_kinds") is None:
        own = _attribute(value, "__dict__")
        if own.__class__ is dict:
            yield from [(Name(own, key), True) for key in own]


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute; None if there is none, whatever the `__getattr__` of a user's class raises then."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _held(*parts: Any) -> Iterator[tuple[Name, bool]]:
    """Return names of parts that are always the same."""
    yield from [(Name(parts, place), False) for place in range(len(parts))]


def _variables(function: types.FunctionType) -> Iterator[Name]:
    codes = [function.__code__]
    for code in codes:  # it grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    words = {key: None for code in codes for key in code.co_names}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = [Name(cell, key) for key, cell in cells]
    if not _is_ours(function):
        names += [Name(function.__globals__, key) for key in words if key in function.__globals__]
    yield from names
    for held in [name.value() for name in names]:
        if isinstance(held, (types.ModuleType, type)) and not _is_ours(held):
            holder = held if isinstance(held, type) else vars(held)
            yield from [Name(holder, key) for key in words if key in vars(held)]


def _is_ours(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return (module or "").partition(".")[0] in ("tapegrad", "numpy", "scipy", "builtins", "types", "functools")

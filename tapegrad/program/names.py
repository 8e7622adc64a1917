"""Names through which a function finds tensors from outside: variables around it, and global ones.

A tensor that stands behind such a name may be another one in the next call.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class Name(NamedTuple):
    """A variable.

    Attributes
    ----------
    holder : dict or cell
    key : str
        Of a dictionary.
    """

    holder: Any
    key: str

    def value(self) -> Any:
        """Return what stands behind the name; None if nothing does."""
        if self.holder.__class__ is dict:
            return self.holder.get(self.key)
        try:
            return self.holder.cell_contents
        except ValueError:  # deleted
            return None


def names_of(function: Callable[..., Any]) -> dict[int, Name]:
    """Return the names of tensors that a function, and functions that it names, may look up; by their identity."""
    found: dict[int, Name] = {}
    seen: set[int] = set()
    left: list[Any] = [function]
    while left:
        own = left.pop()
        own = getattr(own, "__func__", own)
        own = getattr(own, "__wrapped__", own)
        if id(own) in seen or not isinstance(own, types.FunctionType):
            continue
        seen.add(id(own))
        for name in _names(own):
            value = name.value()
            if isinstance(value, Tensor):
                found.setdefault(id(value), name)
            elif callable(value) and not _is_ours(value):
                left.append(value)
    return found


def _names(function: types.FunctionType) -> Iterator[Name]:
    for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Name(cell, key)
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        for key in code.co_names:
            if key in function.__globals__:
                yield Name(function.__globals__, key)
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]


def _is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] in ("tapegrad", "numpy", "builtins")

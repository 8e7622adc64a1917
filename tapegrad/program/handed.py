"""Lists, dicts and instances of dataclasses that a compiled function is called with, and what it changes in them.

The function gets copies of them, with tensors in place of arrays and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tapegrad import modes
from tapegrad.func.level import array_of
from tapegrad.func.trees import fields_of, flatten, is_record, is_row, tree_map
from tapegrad.program.given import Given
from tapegrad.program.standing import Place
from tapegrad.tensor import Tensor

__all__ = ["called", "called_in_trace"]


class _Handed:
    """The containers of one call.

    Parameters
    ----------
    args, kwargs
        What the function is called with.
    theirs : sequence of (tuple, dict)
        None, or one: what the user has called it with.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *theirs: tuple[Any, Any]) -> None:
        tree = [*args, *kwargs.values()]
        self._before = [(own, _contents(own)) for child in tree for own in _changeable(child)]
        self._theirs: list[Any] = []
        self._known: dict[int, Any] = {}
        for other_args, other_kwargs in theirs if self._before else ():
            other_tree = [*other_args, *other_kwargs.values()]
            self._theirs = [own for child in other_tree for own in _changeable(child)]
            self._known = dict(zip(map(id, flatten(tree)), flatten(other_tree), strict=True))
            self._known.update({id(own): other for (own, _), other in zip(self._before, self._theirs, strict=True)})

    def changed(self) -> list[Place]:
        """Return where something else is in a container now, with what was there before, or None."""
        return [
            Place(own, key, before.get(key))
            for own, before in self._before
            for key, _ in _different(_contents(own), before)
        ]

    def put_back(self, convert: Callable[[Any], Any]) -> None:
        """Change the user's containers as the function has changed these; `convert` makes a new leaf the user's."""
        for (own, before), other in zip(self._before, self._theirs, strict=True):
            different = _different(_contents(own), before)
            if different and isinstance(other, list):
                other[:] = [_known_or(self._known, value, convert) for value in own]
                continue
            for key, is_there in different:
                if is_there:
                    _put(other, key, _known_or(self._known, _contents(own)[key], convert))
                else:
                    _delete(other, key)


def called(function: Callable[..., Any], given: Given) -> Any:
    """Call a function with tensors as in a trace, and return what the user gets; of arrays, arrays."""
    args, kwargs = given.tree
    if not kwargs and is_row(args):
        return function(*args)
    args, kwargs = given.with_tensors()
    convert = _as_array if given.has_arrays else _as_it_is
    handed = _Handed(args, kwargs, given.tree)
    out = function(*args, **kwargs)
    handed.put_back(convert)
    return tree_map(convert, out) if given.has_arrays else out


def called_in_trace(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changed: list[Place]
) -> Any:
    """Call a function, and note in `changed` what it changes in containers."""
    tracer = modes.tracer()
    if tracer is not None:
        tracer.returns_to = called_in_trace.__code__
    handed = _Handed(args, kwargs)
    out = function(*args, **kwargs)
    changed[:] = handed.changed()
    return out


def _as_array(leaf: Any) -> Any:
    return array_of(leaf) if isinstance(leaf, Tensor) else leaf


def _as_it_is(leaf: Any) -> Any:
    return leaf


def _known_or(known: dict[int, Any], value: Any, convert: Callable[[Any], Any]) -> Any:
    return known[id(value)] if id(value) in known else tree_map(lambda leaf: known.get(id(leaf), convert(leaf)), value)


def _put(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        setattr(container, key, value)


def _delete(container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container.pop(key, None)
    else:
        delattr(container, key)


def _changeable(tree: Any) -> Iterator[Any]:
    """Yield the lists, dicts and instances of dataclasses in a tree, outer ones first."""
    if isinstance(tree, (dict, list)) or is_record(tree):
        yield tree
    for child in _contents(tree).values():
        yield from _changeable(child)


def _contents(container: Any) -> dict[Any, Any]:
    if isinstance(container, dict):
        return dict(container)
    if isinstance(container, (list, tuple)):
        return dict(enumerate(container))
    return fields_of(container) if is_record(container) else {}


def _different(present: dict[Any, Any], before: dict[Any, Any]) -> list[tuple[Any, bool]]:
    """Return the keys of what is new or gone, and whether something is there."""
    new = [(key, True) for key, value in present.items() if key not in before or before[key] is not value]
    return new + [(key, False) for key in before if key not in present]

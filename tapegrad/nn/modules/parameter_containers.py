"""Containers of parameters, a list and a dictionary; and what dictionaries of members share."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping
from itertools import islice
from typing import Any, Self

from tapegrad.nn.modules.members import typename
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensor import Tensor


class DictOfMembers(MutableMapping[str, Any], Module):
    """What `ModuleDict` and `ParameterDict` share: members by their names."""

    __eq__, __hash__ = object.__eq__, object.__hash__  # of modules, not of mappings

    def _space(self) -> Any:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self._space()[key]

    def __delitem__(self, key: str) -> None:
        del self._space()[key]

    def __len__(self) -> int:
        return len(self._space())

    def __iter__(self) -> Iterator[str]:
        return iter(self._space())

    def keys(self) -> KeysView[str]:
        """Return the names, as those of a dictionary."""
        return dict.fromkeys(self).keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the names and members, as those of a dictionary."""
        return {key: self[key] for key in self}.items()


class ParameterList(Module):
    """A list of parameters; tensors that are put in become parameters.

    Parameters
    ----------
    values : iterable of Tensor, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> weights = tg.nn.ParameterList([tg.ones(2), tg.zeros(3)])
    >>> [parameter.shape for parameter in weights.parameters()]
    [(2,), (3,)]
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def _name_of(self, index: Any) -> str:
        place = operator.index(index)
        if not -self._size <= place < self._size:
            raise IndexError(f"index {place} is out of range")
        return str(place % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(islice(self, *index.indices(self._size)))
        return getattr(self, self._name_of(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name_of(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(place)) for place in range(self._size)])

    def append(self, value: Any) -> Self:
        """Add a parameter at the end, and return the list."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end, and return the list."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        return "\n".join(_lines(enumerate(self), lambda value: f"torch.{value.dtype}"))


class ParameterDict(DictOfMembers):
    """A dictionary of parameters; tensors that are put in become parameters.

    Parameters
    ----------
    parameters : mapping of str to Tensor, or iterable of pairs, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> weights = tg.nn.ParameterDict({"scale": tg.ones(2)})
    >>> weights["scale"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(() if parameters is None else parameters)

    def _space(self) -> Any:
        return self._keys

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked_key(key))  # its error is PyTorch's, too

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _checked_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict([*self.items(), *other.items()])

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a dictionary of the same parameters."""
        return ParameterDict(list(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary, with one value for all keys."""
        return ParameterDict([(key, default) for key in keys])

    def get(self, key: str, default: Any = None) -> Any:
        """Return a parameter, or `default`."""
        return getattr(self, key) if key in self else default

    def pop(self, key: str) -> Any:  # type: ignore[override]
        """Remove a parameter, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter, and return it with its name."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a parameter, after `default` is put in if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, parameters: Any) -> None:  # type: ignore[override]
        """Put parameters in: of a plain dictionary in the order of their names, as in PyTorch."""
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, (OrderedDict, ParameterDict))
        super().update(sorted(parameters.items()) if plain else parameters)

    def extra_repr(self) -> str:
        return "\n".join(_lines(self.items(), typename))


def _checked_key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}')."
        )
    return key


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _lines(items: Iterable[tuple[Any, Any]], shown: Callable[[Tensor], str]) -> Iterator[str]:
    for name, value in items:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            size = "x".join(map(str, value.shape))
            yield f"  ({name}): {kind} containing: [{shown(value.detach())} of size {size}]"
        else:
            yield f"  ({name}): Object of type: {type(value).__name__}"

"""Containers: modules that hold modules, or parameters, in sequences and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Self

from tapegrad.nn.modules.members import MODULE
from tapegrad.nn.modules.module import Module, indented
from tapegrad.nn.modules.parameter_containers import DictOfMembers, ParameterDict, ParameterList

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _List(Module):
    """Modules by number: what `Sequential` and `ModuleList` share."""

    def _name_of(self, index: Any) -> str:
        """Return the name under which a module is registered."""
        names, place = list(self._modules), operator.index(index)
        if not -len(names) <= place < len(names):
            raise IndexError(f"index {place} is out of range")
        return names[place]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        space = self.__dict__
        return iter([space[name] for name, kind in self._kinds.items() if kind == MODULE])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self._modules.items())[index])
        return self.__dict__[self._name_of(index)]

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        """Return a part of this container."""
        return type(self)(*(module for _, module in items))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_of(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_of(index)]:
            delattr(self, name)
        self._set(list(self))

    def _set(self, modules: Iterable[Any]) -> Self:
        """Register modules under their numbers, in place of what there is."""
        modules = list(modules)
        for name in self._modules:
            delattr(self, name)
        for place, module in enumerate(modules):
            self.add_module(str(place), module)
        return self

    def append(self, module: Any) -> Self:
        """Add a module at the end, and return the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Add a module before the one of a number."""
        modules = list(self)
        modules.insert(index, module)
        return self._set(modules)

    def pop(self, key: Any) -> Any:
        """Remove a module, and return it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end, and return the container."""
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)


class Sequential(_List):
    """Modules that are called one after the other, each with the result of the one before.

    Parameters
    ----------
    *args : Module, or one OrderedDict of names and modules

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        is_dict = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if is_dict else enumerate(args):
            self.add_module(str(name), module)

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(OrderedDict(items))

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def insert(self, index: int, module: Any) -> Sequential:
        """Add a module before the one of a number, and return the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index, module)
        return self

    def _joined(self, other: Any, what: str) -> list[Any]:
        if not isinstance(other, Sequential):
            raise ValueError(f"{what} operator supports only objects of Sequential class, but {type(other)} is given.")
        return [*self, *other]

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self._joined(other, "add"))

    def __mul__(self, other: int) -> Sequential:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*[*self] * other)

    __rmul__ = __mul__


class ModuleList(_List):
    """A list of modules, whose parameters belong to the module that has the list.

    Parameters
    ----------
    modules : iterable of Module, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> layers = tg.nn.ModuleList([tg.nn.Linear(3, 3) for _ in range(2)])
    >>> len(list(layers.parameters()))
    4
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def _of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(module for _, module in items)

    def insert(self, index: int, module: Any) -> None:
        """Add a module before the one of a number."""
        super().insert(index, module)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end, and return the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def _lines_of_children(self) -> Iterator[str]:
        """Yield one line for modules in a row that are shown alike."""
        place = 0
        for text, alike in groupby(repr(module) for module in self):
            count = len(list(alike))
            span = f"({place})" if count == 1 else f"({place}-{place + count - 1})"
            yield f"{span}: {indented(text if count == 1 else f'{count} x {text}')}"
            place += count


class ModuleDict(DictOfMembers):
    """A dictionary of modules, whose parameters belong to the module that has the dictionary.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> choices = tg.nn.ModuleDict({"tanh": tg.nn.Tanh(), "relu": tg.nn.ReLU()})
    >>> choices["relu"](tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(() if modules is None else modules)

    def _space(self) -> Any:
        return self._modules

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

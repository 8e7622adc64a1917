"""Names through which a function finds tensors from outside: variables around it, and what these contain.

A tensor that stands behind such a name may be another one in the next call.
"""

from __future__ import annotations

import functools
import os
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tapegrad.func.trees import is_network
from tapegrad.program.standing import ABSENT, Place, Standing, elements_checked, kinds_checked, kinds_in
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor

_MOST: Final = 10_000  # objects that are looked into
_PYTHON: Final = os.path.dirname(os.__file__) + os.sep
_SEQUENCES: Final = (list, tuple, deque)
_WATCHED: Final = (dict, list, deque)
_FUNCTIONS: Final = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class Name(NamedTuple):
    """A variable, an attribute, or an element of a container.

    Attributes
    ----------
    holder : dict, list, tuple, deque, class, cell or object
    key : str or int
        Of a container or an attribute.
    """

    holder: Any
    key: Any

    def value(self) -> Any:
        """Return what stands behind the name; None if nothing does."""
        holder = self.holder
        if isinstance(holder, dict):
            return holder.get(self.key)
        if isinstance(holder, _SEQUENCES):
            return holder[self.key] if self.key < len(holder) else None
        if isinstance(holder, type):
            return vars(holder).get(self.key)
        if isinstance(holder, types.CellType):
            try:
                return holder.cell_contents
            except ValueError:  # deleted
                return None
        return attribute(holder, self.key)

    def place(self) -> Place:
        """Return a variable with what stands there."""
        key = types.CellType if isinstance(self.holder, types.CellType) else self.key
        place = Place(self.holder, key, self.value())
        return place if place.is_there() else place._replace(value=ABSENT)

    def put(self, value: Any) -> None:
        """Let something stand behind the name."""
        holder = self.holder
        if isinstance(holder, types.CellType):
            holder.cell_contents = value
        elif isinstance(holder, _WATCHED):
            holder[self.key] = value
        elif not isinstance(holder, tuple):
            setattr(holder, self.key, value)


#: Names one behind the other: what stands behind each but the last holds the next one.
Path = tuple[Name, ...]


class Names:
    """The names through which a function may look up tensors, before it is traced.

    They are variables of the function and of functions that it names, and what is in lists, tuples, dicts and objects
    among them and among its arguments, but for modules of networks: see `tapegrad.program.watched`.

    Attributes
    ----------
    paths : dict
        By the identity of tensors and containers: what it is, and the paths to it.
    """

    def __init__(self, function: Callable[..., Any], arguments: Iterable[Any] = ()) -> None:
        self.paths: dict[int, tuple[Any, list[Path]]] = {}
        self._empty: list[Name] = []
        self._parts: list[tuple[Path, Any]] = []  # modules and optimizers
        self._variables: list[Any] = []  # containers
        self._before: dict[int, list[Any]] = {}  # the kinds in containers
        words = {"forward", "__call__"}
        classes: dict[type, set[str]] = {}  # and the names that were looked up
        left: list[tuple[Any, Path, bool]] = [(function, (), False)]  # and whether only the library can change it
        left += [(own, (), False) for own in arguments]
        while left:
            for value, path, is_fixed in left:  # it grows
                is_known = id(value) in self.paths
                if value is None and not is_fixed and _is_read(path, words):
                    self._empty.append(path[-1])
                if value is None or len(self.paths) >= _MOST:
                    continue
                self.paths.setdefault(id(value), (value, []))[1].extend([path] if path else [])
                if _is_part(value) and not any(_is_of_module(name) for name in path):
                    self._parts.append((path, value))
                if is_known or isinstance(value, Tensor):
                    continue
                if isinstance(value, _WATCHED):
                    self._before[id(value)] = kinds_in(value)
                    self._variables += [value] if len(path) == 1 and not is_fixed else []
                if not isinstance(value, type):
                    classes.update({kind: set() for kind in type(value).__mro__ if kind not in classes})
                has_fixed = _is_fixed(value)
                left += [
                    (name.value(), (*path, name) if is_held else (name,), has_fixed or name.key == "__kwdefaults__")
                    for name, is_held in _names_in(value, words)
                ]
            # Of classes, only methods and attributes are looked at that code names.
            left = []
            for kind, known in classes.items():
                if not is_ours(kind):
                    new = [Name(kind, key) for key in words - known if key in vars(kind)]
                    left += [(name.value(), (name,), False) for name in new]
                    known |= words

    def of(self, value: Any) -> list[Path]:
        """Return the paths to a tensor."""
        return self.paths[id(value)][1] if id(value) in self.paths else []

    def replaced(self) -> list[Place]:
        """Return where tensors of the trace stand now, with the tensors from before."""
        found = [(path[-1], own) for own, paths in self.paths.values() if isinstance(own, Tensor) for path in paths]
        return [
            Place(name.holder, types.CellType if isinstance(name.holder, types.CellType) else name.key, own)
            for name, own in found
            if isinstance(present := name.value(), Tensor) and present is not own and present.is_traced
        ]

    def grown(self) -> list[Place]:
        """Return where lists and dicts have tensors of the trace behind what they contained before, or at new keys."""
        found = []
        for own, _ in self.paths.values():
            if isinstance(own, list) and id(own) in self._before:
                count = len(self._before[id(own)])
                found += [Place(own, slice(count, None), [])] if any(map(_is_traced, own[count:])) else []
            elif isinstance(own, dict) and id(own) in self._before:
                keys = [key for key, value in own.items() if _is_traced(value)]
                before = self._before[id(own)] if keys else ()
                known = before[: len(before) // 2]
                found += [Place(own, key, ABSENT) for key in keys if key not in known]
        return found

    def gradients(self) -> dict[int, Tensor]:
        """Return what has a gradient, by the identity of that: tensors with names, and those of modules and optimizers.

        A gradient that has a name itself is left out.
        """
        found = [own for own, _ in self.paths.values() if isinstance(own, Tensor)]
        for _, part in self._parts:
            groups = getattr(part, "param_groups", None)
            found += part.parameters() if groups is None else [own for group in groups for own in group["params"]]
        return {id(own._grad): own for own in found if own._grad is not None and id(own._grad) not in self.paths}

    def holders(self, path: Path) -> Iterator[tuple[Name, Any]]:
        """Return the names before the last one of a path, and other names of these containers, with the containers."""
        for name in path[:-1]:
            held = name.value()
            for other in self.of(held):
                yield from [(own, own.value()) for own in other]

    def checks(self, holders: Iterable[Any]) -> list[Callable[[], bool]]:
        """Return functions that say whether modules and optimizers are the same, and no other tensors appeared.

        They may appear in containers, and where None was.

        Parameters
        ----------
        holders : iterable
            Containers on the paths to tensors that the function has taken. Of others, variables are looked at.
        """
        watched = {id(own): own for own in (*holders, *self._variables) if isinstance(own, _WATCHED)}
        # Containers that the function itself has changed are not looked at: that is done in the trace only.
        kinds = [(own, kinds_in(own)) for own in watched.values()]
        found = kinds_checked([(own, now) for own, now in kinds if self._before.get(id(own), now) == now])
        empty = [name for name in self._empty if name.value() is None]
        variables = [name for name in empty if type(name.holder) in (dict, types.CellType)]
        if variables:
            stand = Standing([name.place() for name in variables]).compiled
            found.append(lambda: stand() or are_empty(variables))
        if len(variables) < len(empty):
            found.append(functools.partial(are_empty, [name for name in empty if name not in variables]))
        names = {(id(name.holder), name.key): name for path, part in self._parts if path and path[-1].value() is part
                 for name in path}  # fmt: skip
        lists = {id(name.holder): name.holder for name in names.values() if isinstance(name.holder, list)}
        parts = [(name, name.value()) for name in names.values() if id(name.holder) not in lists]
        found += [elements_checked(own, own) for own in lists.values()]
        places: list[Place] = []
        attributes: list[tuple[Name, Any]] = []
        for name, value in parts:
            if value is not None and isinstance(name.holder, (dict, types.CellType)):
                places.append(name.place())
            else:
                attributes.append((name, value))
        found += [Standing(places)] if places else []
        return [*found, functools.partial(stand_behind, attributes)] if attributes else found


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_traced


def _is_fixed(value: Any) -> bool:
    """Whether a value is a function of the library, whose variables no user changes."""
    function = value.func if isinstance(value, functools.partial) else value
    return isinstance(function, _FUNCTIONS) and is_ours(function)


def _is_part(value: Any) -> bool:
    """Whether a value is a module of networks or an optimizer."""
    own = attribute(value, "__dict__")
    groups = own.get("param_groups") if own.__class__ is dict else None
    is_optimizer = isinstance(groups, list) and all(isinstance(group, dict) and "params" in group for group in groups)
    return is_optimizer or is_network(own)


def _is_of_module(name: Name) -> bool:
    """Whether a name is a member of a module: a compiled function compares what it has read of those."""
    return is_network(name.holder)


def stand_behind(pairs: Sequence[tuple[Name, Any]]) -> bool:
    """Whether values stand behind their names."""
    return all(name.value() is value for name, value in pairs)


def _is_read(path: Path, words: set[str]) -> bool:
    """Whether code names what a path leads to: an attribute, or a variable."""
    return bool(path) and (isinstance(path[-1].holder, types.CellType) or path[-1].key in words)


def are_empty(names: list[Name]) -> bool:
    """Whether None stands behind names."""
    return not any(isinstance(name.value(), Tensor) for name in names)


def _names_in(value: Any, words: set[str]) -> Iterator[tuple[Name, bool]]:
    """Return the names in an object, and whether what stands behind them is found there only.

    Functions add to `words` the names that their code has.
    """
    if isinstance(value, dict):
        yield from [(Name(value, key), True) for key in value] if len(value) <= _MOST else ()
    elif isinstance(value, _SEQUENCES):
        yield from [(Name(value, place), True) for place in range(len(value))] if len(value) <= _MOST else ()
    elif isinstance(value, types.MethodType):
        yield from _held(value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from _held(value.func, value.args, value.keywords)
    elif isinstance(value, property):
        yield from _held(value.fget)
    elif attribute(value, "__wrapped__") is not None:
        yield from _held(value.__wrapped__)
    elif isinstance(value, types.FunctionType):
        yield from [(name, False) for name in _variables(value, words)]
    elif not isinstance(value, (types.ModuleType, type)) and not is_ours(value):
        own = attribute(value, "__dict__")
        is_module = is_network(own)  # only the code of its parts is looked at
        for key in own if own.__class__ is dict else ():
            if not is_module or is_network(attribute(own[key], "__dict__")):
                yield Name(own, key), True
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for key in [slots] if isinstance(slots, str) else slots:
                is_private = key.startswith("__") and not key.endswith("__")
                yield Name(value, f"_{kind.__name__.lstrip('_')}{key}" if is_private else key), True


def attribute(value: Any, name: str) -> Any:
    """Return an attribute; None if there is none, whatever the `__getattr__` of a user's class raises then."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _held(*parts: Any) -> Iterator[tuple[Name, bool]]:
    """Return names of parts that are always the same."""
    yield from [(Name(parts, place), False) for place in range(len(parts))]


def words_in(function: types.FunctionType) -> list[str]:
    """Return the names of variables and attributes in the code of a function, and of those that are defined in it."""
    codes = [function.__code__]
    for code in codes:  # it grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return list(dict.fromkeys(key for code in codes for key in code.co_names))


def _variables(function: types.FunctionType, others: set[str]) -> Iterator[Name]:
    words = words_in(function)
    others.update(words)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = [Name(cell, key) for key, cell in cells]
    if not is_ours(function):
        yield from [Name(function, key) for key in ("__defaults__", "__kwdefaults__")]
        names += [Name(function.__globals__, key) for key in words if key in function.__globals__]
    yield from names
    for held in [name.value() for name in names]:
        if isinstance(held, (types.ModuleType, type)) and not is_ours(held):
            holder = held if isinstance(held, type) else vars(held)
            yield from [Name(holder, key) for key in words if key in vars(held)]


def is_ours(value: Any) -> bool:
    """Whether the library, or one that it is made of, defines something, or a function or module is Python's.

    Users fill objects of one class of Python's: `types.SimpleNamespace`.
    """
    if isinstance(value, types.ModuleType):
        return is_name_of_ours(value.__name__) or _is_file_of_python(getattr(value, "__file__", None))
    if isinstance(value, types.FunctionType) and _is_file_of_python(value.__code__.co_filename):
        return True
    is_filled = value is types.SimpleNamespace or isinstance(value, types.SimpleNamespace)
    return not is_filled and is_name_of_ours(getattr(value, "__module__", None))


def _is_file_of_python(path: str | None) -> bool:
    is_within = path is not None and path.startswith(("<frozen ", _PYTHON))
    return is_within and not any(folder in str(path) for folder in ("site-packages", "dist-packages"))


def is_name_of_ours(module: str | None) -> bool:
    """Whether a module of this name is the library's, or of one that it is made of."""
    return (module or "").partition(".")[0] in ("tapegrad", "numpy", "scipy", "builtins", "types", "functools")

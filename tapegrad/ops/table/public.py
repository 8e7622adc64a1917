"""The public functions: their names and namespaces. All lists of functions are made from these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tapegrad.ops.table.callers import with_numpy_names
from tapegrad.ops.table.docs import RESULT, Common, docstring
from tapegrad.ops.table.op import Op, xp
from tapegrad.runtime.named_tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])

TOP: Final = "tapegrad"
FUNCTIONAL: Final = "tapegrad.nn.functional"
LINALG: Final = "tapegrad.linalg"
FFT: Final = "tapegrad.fft"
SPECIAL: Final = "tapegrad.special"


class Names(NamedTuple):
    """Where users find a function.

    Attributes
    ----------
    aliases : tuple of str
        Further names of the function, and of the method.
    namespaces : tuple of str
        The modules that it is a function of.
    method : bool or callable
        Whether tensors have it as a method; or the method, where its first argument is not the function's.
    inplace : bool
        Whether tensors have it as a method that writes to them, ``name_``.
    attribute : bool
        Whether tensors have it as a property.
    ufuncs : tuple of str
        NumPy's and SciPy's ufuncs that are this function, beside those of its own names.
    reduces, accumulates : str
        The ufunc that it is the ``reduce`` of, or the ``accumulate``.
    functions : tuple of str
        NumPy's functions, no ufuncs, that are this function: ``sum``, ``linalg.inv``.
    adapter : str, callable or mapping
        How the arguments of these are converted: by name (see `tapegrad.ops.protocol`), as a function, or our name of
        each keyword that is called otherwise.
    """

    aliases: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = (TOP,)
    method: bool | Callable[..., Any] = False
    inplace: bool = False
    attribute: bool = False
    ufuncs: tuple[str, ...] = ()
    reduces: str = ""
    accumulates: str = ""
    functions: tuple[str, ...] = ()
    adapter: str | Callable[..., Any] | Mapping[str, str] = "same"


def module_of(names: Names | None) -> str:
    """Return the module in which a function stands first."""
    return names.namespaces[0] if names is not None and names.namespaces else TOP


class Public(NamedTuple):
    """A public function, its name and its further names."""

    name: str
    function: Callable[..., Any]
    names: Names

    def all_names(self) -> tuple[str, ...]:
        """Return the name and the aliases."""
        return self.name, *self.names.aliases


registry: Final[list[Public]] = []
_taken: Final[set[tuple[str, str]]] = set()  # namespace and name


def register(name: str, function: Callable[..., Any], names: Names) -> None:
    """Make a function public, under NumPy's names of its parameters as well.

    Raises
    ------
    ValueError
        If a namespace has another function of one of its names.
    """
    places = [(namespace, alias) for namespace in names.namespaces for alias in (name, *names.aliases)]
    for place in places:
        if place in _taken:
            raise ValueError(f"{place[0]}.{place[1]} is taken")
    _taken.update(places)
    registry.append(Public(name, with_numpy_names(function, module_of(names)), names))


def withdraw(name: str) -> None:
    """Remove a public function: for tests that register one."""
    for one in [one for one in registry if one.name == name]:
        registry.remove(one)
        _taken.difference_update((namespace, alias) for namespace in one.names.namespaces for alias in one.all_names())


def public(
    *,
    aliases: tuple[str, ...] = (),
    namespaces: tuple[str, ...] = (TOP,),
    method: bool | Callable[..., Any] = False,
    inplace: bool = False,
    attribute: bool = False,
    ufuncs: tuple[str, ...] = (),
    reduces: str = "",
    accumulates: str = "",
    functions: tuple[str, ...] = (),
    adapter: str | Callable[..., Any] | Mapping[str, str] = "same",
    common: Common = RESULT,
    of: Callable[..., Any] | Op | None = None,
) -> Callable[[F], F]:
    """Make the decorated function public; it is returned as it is, for our own files.

    Parameters
    ----------
    aliases, namespaces, method, inplace, attribute, ufuncs, reduces, accumulates, functions, adapter
        Fields of `Names`.
    common : Common
        What the docstrings of its kind have in common, if it is no op: the docstring of an op has that already.
    of : callable or Op, optional
        The op that it calls after it looked at its arguments, or the function of that: the tests of the op are its
        own.
    """
    names = Names(aliases, namespaces, method, inplace, attribute, ufuncs, reduces, accumulates, functions, adapter)

    def decorate(function: F) -> F:
        if function.__annotations__.get("return") == "Tensor" and not hasattr(function, "op"):
            function.__doc__ = docstring(function.__doc__ or "", common)
        if of is not None:
            function.op = of if isinstance(of, Op) else of.op  # type: ignore[attr-defined]
        register(function.__name__, function, names)
        return function

    return decorate


def publish(call: Callable[..., Any], op: Op, doc: str, names: Names | None = None) -> Callable[..., Any]:
    """Name a function after its op, for users and for rules, and make it public if it has `names`."""
    call.__name__ = call.__qualname__ = op.name
    call.__module__ = TOP
    call.__doc__ = doc
    call.op = op  # type: ignore[attr-defined]
    setattr(xp, op.name, call)
    if names is not None:
        register(op.name, call, names)
    return call


def functions(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module by their names."""
    return {name: one.function for one in registry if namespace in one.names.namespaces for name in one.all_names()}


def namespaces() -> list[str]:
    """Return the modules that have public functions."""
    return list(dict.fromkeys(namespace for one in registry for namespace in one.names.namespaces))


def contents(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module by their names, and set the module as that of its ops' functions."""
    for one in registry:
        if one.names.namespaces[:1] == (namespace,) and hasattr(one.function, "op"):
            one.function.__module__ = namespace
    return functions(namespace)


def methods() -> dict[str, Callable[..., Any]]:
    """Return the methods of tensors that are public functions, by their names."""
    return {
        name: one.names.method if callable(one.names.method) else one.function
        for one in registry
        if one.names.method
        for name in one.all_names()
    }


def properties() -> dict[str, property]:
    """Return the properties of tensors that are public functions, by their names."""
    return {one.name: property(one.function) for one in registry if one.names.attribute}


def inplace_functions() -> dict[str, Callable[..., Any]]:
    """Return the functions that tensors have as methods that write to them, by their names without the underscore."""
    return {name: one.function for one in registry if one.names.inplace for name in one.all_names()}


def ufunc_names() -> dict[str, str]:
    """Return our name for each ufunc of NumPy and SciPy that has another name."""
    return {name: one.name for one in registry for name in one.names.ufuncs}


def reducing_ufuncs() -> dict[str, str]:
    """Return our name for the ``reduce`` of a ufunc."""
    return {one.names.reduces: one.name for one in registry if one.names.reduces}


def accumulating_ufuncs() -> dict[str, str]:
    """Return our name for the ``accumulate`` of a ufunc."""
    return {one.names.accumulates: one.name for one in registry if one.names.accumulates}


def numpy_functions() -> dict[str, Public]:
    """Return the public function for each of NumPy's functions that are no ufuncs, by their names."""
    return {name: one for one in registry for name in one.names.functions}

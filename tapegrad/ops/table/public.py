"""The public functions: their names and namespaces. All lists of functions are made from these."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeVar

from tapegrad.ops.table.callers import with_numpy_names
from tapegrad.ops.table.docs import RESULT, Common, docstring
from tapegrad.ops.table.loading import complete, files, importing, load
from tapegrad.ops.table.op import Op, xp
from tapegrad.runtime.named_tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])

TOP: Final = "tapegrad"
FUNCTIONAL: Final = "tapegrad.nn.functional"
LINALG: Final = "tapegrad.linalg"
FFT: Final = "tapegrad.fft"
SPECIAL: Final = "tapegrad.special"
NAMESPACES: Final = (TOP, SPECIAL, FUNCTIONAL, LINALG, FFT)

# Lists beside those modules: methods of tensors, those that write, properties; NumPy's functions that are ours.
METHODS, WRITES, PROPERTIES = "methods", "writes", "properties"
UFUNCS, REDUCES, ACCUMULATES, NUMPY = "ufuncs", "reduces", "accumulates", "numpy"


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
    """A public function, its name and its further names, and the file of `tapegrad.ops` that it stands in."""

    name: str
    function: Callable[..., Any]
    names: Names
    file: str

    def all_names(self) -> tuple[str, ...]:
        """Return the name and the aliases."""
        return self.name, *self.names.aliases

    def method(self) -> Callable[..., Any]:
        """Return the function as tensors have it."""
        return self.names.method if callable(self.names.method) else self.function

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the lists that it stands in, each with its name there."""
        names = self.names
        everywhere = (*names.namespaces, *[METHODS] * bool(names.method), *[WRITES] * names.inplace)
        yield from ((place, name) for place in everywhere for name in self.all_names())
        yield from [(PROPERTIES, self.name)] * names.attribute
        yield from ((UFUNCS, name) for name in names.ufuncs)
        yield from [(REDUCES, names.reduces)] * bool(names.reduces)
        yield from [(ACCUMULATES, names.accumulates)] * bool(names.accumulates)
        yield from ((NUMPY, name) for name in names.functions)


registry: Final[list[Public]] = []  # of the files that were imported
_found: Final[dict[tuple[str, str], Public]] = {}


def register(name: str, function: Callable[..., Any], names: Names) -> None:
    """Make a function public, under NumPy's names of its parameters as well.

    Raises
    ------
    ValueError
        If a list has another function of one of its names.
    """
    module = module_of(names)
    one = Public(name, with_numpy_names(function, module, _has_out(function, module)), names, importing())
    for place in one.places():
        other = _found.get(place)
        if other is not None and (other.file != one.file or not one.file):  # else an import was interrupted
            raise ValueError(f"{place[0]}.{place[1]} is taken")
    if hasattr(one.function, "op") and module_of(names) != TOP:
        one.function.__module__ = module_of(names)
    registry.append(one)
    _found.update(dict.fromkeys(one.places(), one))


def _has_out(function: Callable[..., Any], module: str) -> bool:
    """Whether a function takes `out`: it computes tensors, and does not make them of something else."""
    returns = str(getattr(function, "__annotations__", {}).get("return", ""))
    makes = {"data", "obj", "ndarray"} & set(getattr(function, "__annotations__", ()))
    named = getattr(inspect.unwrap(function), "__globals__", {}).get(returns)  # the class of several results
    computes = ("Tensor" in returns and "Callable" not in returns) or returns == "Any"
    computes = computes or (isinstance(named, type) and issubclass(named, tuple))
    return module != FUNCTIONAL and not makes and computes


def withdraw(name: str) -> None:
    """Remove a public function: for tests that register one."""
    for one in [one for one in registry if one.name == name]:
        registry.remove(one)
        for place in one.places():
            del _found[place]


def find(place: str, name: str) -> Public | None:
    """Return what a list has under a name, and import its file if nobody did."""
    entry = _found.get((place, name))
    # Another thread may be at the import of its file, whose last lines it may need.
    if (entry is None or entry.file not in complete) and load(place, name):
        entry = _found[place, name]
    return entry


def names_in(place: str) -> list[str]:
    """Return the names that a list has."""
    return sorted({*files.get(place, ()), *(name for where, name in _found if where == place)})


def functions(place: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a list by their names."""
    return {name: one.function for name in names_in(place) if (one := find(place, name))}


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
    is_op: bool = False,
    with_keyword: tuple[str, Any] | None = None,
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
    is_op : bool
        Whether a call with the operands of `of` alone is a call of that op, so that its plans serve the function.
    with_keyword : tuple of str and callable, optional
        A name, and the function of an op: of this op are calls with one more argument, which is given by that name.
    """
    names = Names(aliases, namespaces, method, inplace, attribute, ufuncs, reduces, accumulates, functions, adapter)

    def decorate(function: F) -> F:
        if getattr(function, "__annotations__", {}).get("return") == "Tensor" and not hasattr(function, "op"):
            function.__doc__ = docstring(function.__doc__ or "", common)
        if of is not None:
            function.op = of if isinstance(of, Op) else of.op  # type: ignore[attr-defined]
            if is_op:
                function.plans = function.op.plans  # type: ignore[attr-defined]
        if with_keyword is not None:
            function.with_keyword = with_keyword[0], with_keyword[1].op  # type: ignore[attr-defined]
        if callable(method):  # Python's messages name it
            method.__name__ = method.__qualname__ = function.__name__
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


def contents(namespace: str, module: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of the module that has the functions of a namespace.

    A function is found when it is first used; of a name that is missing it is said where it is, or what is nearest.
    """
    module = module or namespace

    def attribute(name: str) -> Any:
        one = None if name.startswith("_") else find(namespace, name)
        if one is None:
            refuse(namespace, name, module)
        setattr(sys.modules[module], name, one.function)
        return one.function

    return attribute, lambda: names_in(namespace)


def refuse(namespace: str, name: str, module: str = "") -> NoReturn:
    """Raise the error for a name that a module does not have, with the reason."""
    why = ""
    if not name.startswith("_"):
        from tapegrad.ops.table.scope import why_missing  # a long list, for programs that are about to fail

        why = f": {why_missing(namespace, name)}"
    raise AttributeError(f"module {module or namespace!r} has no attribute {name!r}{why}", name=name)

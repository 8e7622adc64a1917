"""Tables of names that lead to the pages of the reference: methods of tensors, NumPy's and SciPy's functions."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.special

from docs.extensions.public_names import METHOD, Name, names
from tapegrad import ops
from tapegrad.ops import protocol
from tapegrad.ops.table import public


def link(one: Name, within: str = "tapegrad.") -> str:
    """Return a link to the description of a name, without the modules that it stands within."""
    return f":py:obj:`{one.path.removeprefix(within)} <{one.path}>`"


def common_module(section: Sequence[Name]) -> str:
    """Return the module of all names of a section, with a dot behind it; `tapegrad` if they have several."""
    modules = {one.path.rpartition(".")[0] for one in section}
    return f"{modules.pop() if len(modules) == 1 else 'tapegrad'}."


def linked(text: str, module: str, parameters: Collection[str] = ()) -> str:
    """Return a text in which public names in backquotes are links, as a docstring of a module means them, else code."""

    def shown(found: re.Match[str]) -> str:
        word = found[1]
        spaces = (module, *(["tapegrad.nn.functional"] if module.startswith("tapegrad.nn") else []), "tapegrad")
        paths = (*(f"{space}.{word}" for space in spaces), word)
        path = next((path for path in paths if path in by_path()), None)
        if path is None or word in parameters:
            return f"``{word}``"
        return f":py:obj:`{word} <{by_path()[path].path}>`"

    return WORD.sub(shown, text)


def summary(one: Name) -> str:
    """Return the first sentence of a docstring, in which public names are links and parameters are code."""
    return linked(one.summary, one.path.rpartition(".")[0], parameters_of(one.value))


def parameters_of(value: Any) -> Collection[str]:
    """Return the names of the parameters of a function or class, if it says them."""
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):
        return ()


# A word in single backquotes, of which none belongs to a role.
WORD = re.compile(r"(?<![`:\w])`([\w.]+)`(?![`_\w])")


@functools.cache
def by_path() -> dict[str, Name]:
    """Return the names by their paths, further ones too."""
    found = {path: one for one in names() for path in one.aliases}
    return found | {one.path: one for one in names()}


@functools.cache
def _by_function() -> dict[int, Name]:
    return {id(one.value): one for one in names()}


def methods_of(one: Name) -> Iterator[str]:
    """Yield the paths of the methods of tensors that a function is."""
    for entry in [entry for entry in public.registry if entry.function is one.value]:
        if one.path.startswith(f"{METHOD}."):
            continue
        for name in entry.all_names() if entry.names.method else ():
            yield f"{METHOD}.{name}"
        for name in entry.all_names() if entry.names.inplace else ():
            yield f"{METHOD}.{name}_"


@functools.cache
def methods() -> list[tuple[str, Name]]:
    """Return the methods and attributes of tensors that the op table has, in order, with their functions."""
    found = {path.removeprefix(f"{METHOD}."): one for one in names() for path in methods_of(one)}
    found |= {
        path.removeprefix(f"{METHOD}."): one
        for one in names()
        for path in (one.path, *one.aliases)
        if path.startswith(f"{METHOD}.")
    }
    return sorted(found.items())


def _ufuncs_of(module: ModuleType) -> list[str]:
    return [name for name in sorted(dir(module)) if isinstance(getattr(module, name), np.ufunc)]


@functools.cache
def ufuncs() -> list[tuple[str, Name]]:
    """Return the ufuncs of NumPy and SciPy that are one of our functions, as `tapegrad.ops.numpy_ufuncs` finds it."""
    found = []
    for module, short in ((np, "np"), (scipy.special, "scipy.special")):
        for name in _ufuncs_of(module):
            own = getattr(module, name).__name__
            places = public.UFUNCS, public.TOP, public.LINALG, public.SPECIAL
            one = next((one for place in places if (one := public.find(place, own))), None)
            if one is not None and id(one.function) in _by_function():
                found.append((f"{short}.{name}", _by_function()[id(one.function)]))
    return found


@functools.cache
def numpy_functions() -> list[tuple[str, Name]]:
    """Return NumPy's functions, no ufuncs, that are one of ours."""
    found = []
    for name in public.names_in(public.NUMPY):
        one = public.find(public.NUMPY, name)
        if one is not None and id(one.function) in _by_function():
            found.append((f"np.{name}", _by_function()[id(one.function)]))
    return found


def further_functions() -> list[tuple[str, list[str]]]:
    """Return NumPy's functions that are put together from ours, by the kinds that their files say, then all others."""
    kinds = []
    for path in sorted(Path(ops.__file__).parent.glob("numpy_*.py")):
        module = import_module(f"{ops.__name__}.{path.stem}")
        if hasattr(module, "FUNCTIONS"):
            kinds.append(((module.__doc__ or "").partition("\n")[0], sorted(map(_path_in_numpy, module.FUNCTIONS))))
    known = {name for _, names_of_kind in kinds for name in names_of_kind} | {name for name, _ in numpy_functions()}
    rest = sorted({_path_in_numpy(function) for function in protocol.functions()} - known)
    return [
        ("NumPy's functions with NumPy's own arguments; counts, comparisons and shapes have no gradient.", rest),
        *kinds,
    ]


def _path_in_numpy(function: Any) -> str:
    return f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"


@functools.cache
def numpy_names() -> dict[str, list[str]]:
    """Return the names in NumPy and SciPy of our functions, by the functions' paths."""
    found: dict[str, list[str]] = {}
    for name, one in (*ufuncs(), *numpy_functions()):
        found.setdefault(one.path, []).append(name)
    return found


def also(one: Name) -> str:
    """Return a sentence on the further names of a function, or nothing."""
    parts = [f"``{path.replace('tapegrad.', 'tg.', 1)}``" for path in one.aliases if not path.startswith(METHOD)]
    parts += [f"``x.{path.rpartition('.')[2]}()``" for path in methods_of(one)]
    parts += [f"``{name}``" for name in numpy_names().get(one.path, ())]
    return f"Also {', '.join(parts)}." if parts else ""

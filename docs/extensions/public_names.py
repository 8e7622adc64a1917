"""Every public name, the file in which it is defined, and the page of docs/reference/ that has it.

A page says in its directives ``operations`` which files it describes; all else is read from the modules' ``__all__``
and from the list of public functions, so that a new function stands on the page of its file.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.table import public
from tapegrad.ops.table.loading import load_all
from tapegrad.tensor import Tensor

REFERENCE = Path(__file__).parents[1] / "reference"
METHOD = "tapegrad.Tensor"
# Those that no `__all__` of `tapegrad` leads to: they are imported by their names.
ROOTS = (
    "tapegrad",
    "tapegrad.testing",
    "tapegrad.program",
    "tapegrad.autograd.function",
    "tapegrad.utils.data.distributed",
)
CONSTANTS = (float, str, type(None))
_PARTS = re.compile(r"^##? (.*)|^\.\. operations:: (.*(?:\n {3}\S.*)*)", re.MULTILINE)


class Name(NamedTuple):
    """A public name: its path, what it means, where that is defined, and its further names.

    `source` is a module without ``tapegrad.``; of a function of `tapegrad.ops`, with its namespace behind a colon if
    that is not `tapegrad`.
    """

    path: str
    value: Any
    source: str
    aliases: tuple[str, ...]
    entry: public.Public | None = None

    @property
    def short(self) -> str:
        """The path without the name of the package."""
        return self.path.removeprefix("tapegrad.")

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, or the value of a constant."""
        if isinstance(self.value, CONSTANTS):
            return f"``{self.value!r}``"
        if isinstance(self.value, np.dtype):
            return f"NumPy's dtype ``{self.value}``."
        if self.value is np.dtype:
            return "NumPy's class of dtypes."
        if isinstance(self.value, types.SimpleNamespace):
            return f"Has {', '.join([f'``{name}``' for name in vars(self.value)])}."
        doc = inspect.cleandoc(getattr(self.value, "__doc__", None) or "")
        return re.sub(r"\s+", " ", doc.partition("\n\n")[0])


@functools.cache
def _operations() -> dict[int, list[public.Public]]:
    load_all()
    found: dict[int, list[public.Public]] = {}
    for one in public.registry:
        found.setdefault(id(one.function), []).append(one)
    return found


def _of_table() -> Iterator[Name]:
    """Yield the functions of `tapegrad.ops`, each once, with all names that it has."""
    for entries in _operations().values():
        first = entries[0]
        if not any((first.names.namespaces, first.names.method, first.names.inplace, first.names.attribute)):
            continue  # of rules only, or of NumPy's functions
        module = first.names.namespaces[0] if first.names.namespaces else METHOD
        paths = [
            f"{place}.{name}"
            for one in entries
            for place in one.names.namespaces or (METHOD,)
            for name in one.all_names()
        ]
        space = "" if module in (public.TOP, METHOD) else f":{module.removeprefix('tapegrad.')}"
        yield Name(paths[0], first.function, f"ops.{first.file}{space}", tuple(paths[1:]), first)


def _modules() -> Iterator[types.ModuleType]:
    """Yield the public modules."""
    waiting, seen = [import_module(root) for root in ROOTS], set()
    while waiting:
        module = waiting.pop(0)
        if module.__name__ in seen:
            continue
        seen.add(module.__name__)
        yield module
        values = [getattr(module, name) for name in getattr(module, "__all__", ())]
        waiting += [value for value in values if isinstance(value, types.ModuleType) and _is_ours(value.__name__)]


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "tapegrad"


def _listed(module: types.ModuleType) -> list[str]:
    """Return the names of a module: those of its list, or what its files define that is no part of another list."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    home = module.__name__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and f"{getattr(value, '__module__', '')}.".startswith(f"{home}.")
    ]


def _source(path: str, value: Any) -> str:
    """Return the module that defines a value."""
    module = getattr(value, "__module__", None)
    if isinstance(value, CONSTANTS):
        return "constants"
    if isinstance(value, np.dtype) or value is np.dtype:
        return "dtypes"
    if isinstance(value, types.SimpleNamespace):
        return "backends"
    if not module or not _is_ours(module):
        module = path.rpartition(".")[0]
    return str(module).removeprefix("tapegrad.")


def _shortest(path: str, value: Any) -> str:
    """Return the path without modules in the middle that users need not write."""
    *parents, name = path.split(".")
    while len(parents) > 1 and getattr(import_module(".".join(parents[:-1])), name, None) is value:
        parents.pop()
    return ".".join([*parents, name])


@functools.cache
def names() -> tuple[Name, ...]:
    """Return all public names, each value once."""
    found: dict[Any, Name] = {id(one.value): one for one in _of_table()}
    for module in _modules():
        for name in _listed(module):
            value, path = getattr(module, name), f"{module.__name__}.{name}"
            if isinstance(value, types.ModuleType):
                continue
            key = path if isinstance(value, CONSTANTS) else id(value)
            one = found.get(key)
            if one is None:
                found[key] = Name(_shortest(path, value), value, _source(path, value), ())
            elif path not in (one.path, *one.aliases):
                found[key] = one._replace(aliases=(*one.aliases, path))
    found[METHOD] = Name(METHOD, Tensor, "tensor", ())
    del found[id(Tensor)]
    return tuple(found.values())


@functools.cache
def by_source() -> dict[str, list[Name]]:
    """Return the names of each source, in the order in which its file has them."""
    found: dict[str, list[Name]] = {}
    for one in names():
        found.setdefault(one.source, []).append(one)
    return found


class Section(NamedTuple):
    """A part of a page: its heading, what it describes as the page says it, and the public names of that."""

    heading: str
    sources: tuple[str, ...]
    names: list[Name]


def sections_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the headings and the sources of the directives ``operations`` of a page."""
    heading, found = "", []
    for title, sources in _PARTS.findall(text):
        heading = title or heading
        if sources:
            found.append((heading, tuple(sources.split())))
    return found


def meant(source: str, stated: Collection[str]) -> set[str]:
    """Return the sources that a section means by one, if all sections together state these.

    `ops.composite` means the functions of that file in all namespaces but those that another section has, as
    `ops.composite:nn.functional`.
    """
    exact = {one for one in by_source() if one.startswith(f"{source}:") and one not in stated}
    return exact | ({source} & by_source().keys())


@functools.cache
def pages(folder: Path = REFERENCE) -> dict[str, list[Section]]:
    """Return the sections of each page that has operations; names stand in the order of their files."""
    texts = {path.stem: sections_of(path.read_text()) for path in sorted(folder.glob("*.md"))}
    stated = {source for parts in texts.values() for _, sources in parts for source in sources}

    def described(sources: tuple[str, ...]) -> list[Name]:
        exact = [meant(source, stated) for source in sources]
        return [one for own in exact for one in names() if one.source in own]

    return {
        page: [Section(heading, sources, described(sources)) for heading, sources in parts]
        for page, parts in texts.items()
        if parts
    }


def problems(folder: Path = REFERENCE) -> list[str]:
    """Return what keeps the pages from having each name once."""
    stated = [source for sections in pages(folder).values() for section in sections for source in section.sources]
    known = by_source()
    described = {exact for source in stated for exact in meant(source, stated)}
    return [
        *(f"{one} stands in two sections of docs/reference" for one in set(stated) if stated.count(one) > 1),
        *(f"{one}, in a section of docs/reference, has no public name" for one in stated if not meant(one, stated)),
        *(
            f"no page of docs/reference has `{source}` among its operations, which defines "
            f"{', '.join([one.path for one in known[source]])}"
            for source in known.keys() - described
        ),
    ]

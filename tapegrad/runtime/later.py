"""Names of a package that are imported when they are first used: programs without them do not wait for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tapegrad.runtime import garbage


def later(
    package: str, files: Mapping[str, str], modules: str = "", otherwise: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
    files : mapping of str
        By file, the names that are imported from it. A file of the package itself is written as ``".file"``.
    modules : str
        The files of the package that are attributes of it themselves.
    otherwise : callable
        Is called with any other name, and returns the value or raises AttributeError.
    """
    file_of = {name: file for file, names in files.items() for name in names.split()}
    file_names = frozenset(modules.split())

    def attribute(name: str) -> Any:
        if name in file_names:
            return import_module(f".{name}", package)
        if name in file_of:
            with garbage.kept():
                value = getattr(import_module(file_of[name], package), name)
            setattr(sys.modules[package], name, value)  # the next use finds it without coming here
            return value
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    return attribute

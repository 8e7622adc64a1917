"""SciPy's compiled modules without the packages around them, which take a fifth of a second to import."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType


@functools.cache
def scipy_extension(package: str, name: str) -> ModuleType:
    """Return a compiled module of a package of SciPy.

    Raises
    ------
    ImportError
        If this SciPy has none of this name.
    """
    import importlib.util  # all at the first call
    from importlib.machinery import PathFinder

    import scipy  # it finds the libraries that its modules need

    whole = f"scipy.{package}.{name}"
    spec = PathFinder.find_spec(whole, [os.path.join(scipy.__path__[0], *package.split("."))])
    if whole in sys.modules or spec is None or spec.loader is None:
        return importlib.import_module(whole)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

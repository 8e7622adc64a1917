"""Modules whose parameters are not drawn."""

from __future__ import annotations

import inspect
from typing import Any

from tapegrad.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Return a module whose parameters may have any values.

    Raises
    ------
    RuntimeError
        If it is no class of modules, or one without an argument `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)

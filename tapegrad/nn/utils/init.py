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

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.skip_init(tg.nn.Linear, 3, 2)  # its numbers are to be filled in
    >>> layer.weight.shape
    (2, 3)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)

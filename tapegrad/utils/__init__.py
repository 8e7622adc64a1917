"""Utilities beside tensors and gradients; each module is imported when it is first used."""

import importlib
from typing import Any

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"tapegrad.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

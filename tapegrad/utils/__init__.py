"""PyTorch's ``torch.utils``: modules that are loaded when they are first used."""

from importlib import import_module
from typing import Any

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

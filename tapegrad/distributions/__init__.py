"""Probability distributions, with PyTorch's names: samples, densities, entropies, divergences."""

import importlib
from typing import TYPE_CHECKING, Any

from tapegrad.ops.table.public import missing

if TYPE_CHECKING:
    from tapegrad.distributions import constraints
    from tapegrad.distributions.distribution import Distribution
    from tapegrad.distributions.events import Bernoulli, Categorical
    from tapegrad.distributions.normal import Normal

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "constraints"]

if not TYPE_CHECKING:
    #: The file of each name; imported when one of its names is first used.
    _FILES = {
        name: file
        for file, names in {
            "distribution": "Distribution", "events": "Bernoulli Categorical", "normal": "Normal",
        }.items()
        for name in names.split()
    }  # fmt: skip

    def __getattr__(name: str) -> Any:
        if name in _FILES:
            return getattr(importlib.import_module(f"tapegrad.distributions.{_FILES[name]}"), name)
        if name == "constraints":
            return importlib.import_module("tapegrad.distributions.constraints")
        raise missing(__name__, __name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

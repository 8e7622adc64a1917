"""Utilities beside tensors and gradients; each module is imported when it is first used."""

from tapegrad.runtime.later import later

__all__ = ["checkpoint", "data"]

__getattr__ = later(__name__, {}, "checkpoint data")

"""Complex numbers as pairs of real ones: from a program to one that machine code can be made of."""

from __future__ import annotations

from tapegrad.program.pairs.rewriting import paired

__all__ = ["paired"]

"""Programs: a function traced once, as a list of operations, and compiled to a few loops of machine code."""

from __future__ import annotations

from tapegrad.program.program import Entry, Guard, Program

__all__ = ["Entry", "Guard", "Program"]

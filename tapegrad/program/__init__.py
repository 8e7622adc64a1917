"""Programs: a function traced once, as a list of operations, and compiled to a few loops of machine code."""

from __future__ import annotations

from tapegrad.program.compiled import Compiled
from tapegrad.program.decorator import compile
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.program.trace import TracingError

__all__ = ["Compiled", "Entry", "Guard", "Program", "TracingError", "compile"]

"""Loops of programs: periodic stretches of the list are found, proved, and run as loops over machine code."""

from __future__ import annotations

from tapegrad.program.loops.blocked import Blocked, blocked, one_by_one
from tapegrad.program.loops.stages import Staged, staged

__all__ = ["Blocked", "Staged", "blocked", "one_by_one", "staged"]

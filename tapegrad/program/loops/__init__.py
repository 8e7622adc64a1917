"""Programs in stages: periodic stretches of the list become loops, what is not fused stands between what is."""

from __future__ import annotations

from tapegrad.program.loops.blocked import Blocked, blocked, one_by_one
from tapegrad.program.loops.replayed import Replayed
from tapegrad.program.loops.stages import Staged, code_of

__all__ = ["Blocked", "Replayed", "Staged", "blocked", "code_of", "one_by_one"]

"""Programs in stages: periodic stretches of the list become loops, what is not fused stands between what is."""

from __future__ import annotations

from tapegrad.program.loops.stages import Staged, code_of

__all__ = ["Staged", "code_of"]

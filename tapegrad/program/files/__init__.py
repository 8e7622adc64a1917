"""Programs as text, which is read back without running any code."""

from __future__ import annotations

from tapegrad.program.files.reading import parsed
from tapegrad.program.files.writing import text_of

__all__ = ["parsed", "text_of"]

"""What all machine code of programs shares; a process that finds it in the cache imports nothing of what makes it."""

from __future__ import annotations

from typing import Final

__all__ = ["LARGEST", "SYMBOL", "Refused", "TooLongError"]

#: The name of a program's function in its module.
SYMBOL: Final = "tapegrad_kernel"
#: Rows of matrices whose factors are straight code; those of larger ones are LAPACK's.
LARGEST: Final = 8


class Refused(Exception):  # noqa: N818  # what a program is, not what went wrong
    """A program cannot be fused: the message says which operation, and why."""


class TooLongError(Refused):
    """A program is too long for one function, whatever its axes are."""

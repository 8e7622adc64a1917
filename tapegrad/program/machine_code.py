"""What all machine code of programs shares; a process that finds it in the cache imports nothing of what makes it."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["LARGEST", "SYMBOL", "MachineCode", "Refused", "TooLongError"]

#: The name of a program's function in its module.
SYMBOL: Final = "tapegrad_kernel"
#: Rows of matrices whose factors are straight code; those of larger ones are LAPACK's.
LARGEST: Final = 8


class Refused(Exception):  # noqa: N818  # what a program is, not what went wrong
    """A program cannot be fused: the message says which operation, and why."""


class TooLongError(Refused):
    """A program is too long for one function, whatever its axes are."""


class MachineCode:
    """The base of what runs programs as machine code."""

    stops: Any  # the words of its stops

    def counts(self, n_operations: int) -> str:
        """Return how the operations of the program run, in a line."""
        called = len(self.stops)
        fused = f"{n_operations - called} operations are fused"
        return f"{fused}, {called} called" if called else fused

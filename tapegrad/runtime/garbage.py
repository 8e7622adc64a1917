"""No garbage collections while a program or a function is made, or tapegrad imported: they look at all that is new.

They would take a third of the time of a program, and a tenth of that of the import.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator

from tapegrad.runtime import state

__all__ = ["kept", "paused"]


class _Others:
    """Whether the program freezes objects itself, as far as is known."""

    freeze = False


def _forget() -> None:
    _Others.freeze = False


state.register("runtime.garbage: others freeze", lambda: int(_Others.freeze), _forget)


@contextlib.contextmanager
def paused() -> Generator[None, None, None]:
    """Collect no garbage in a ``with`` block, or in a function; then at once, if much is new."""
    if not gc.isenabled():
        yield
        return
    try:
        gc.disable()
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def kept() -> Generator[None, None, None]:
    """Collect no garbage in a ``with`` block, or in a function; what is new counts as old.

    In a program that has frozen objects it does not, as they would no longer be frozen. To count them takes 60 ms where
    large libraries are loaded, so it is done once.
    """
    collects = gc.isenabled()
    with paused():
        yield
        if not collects or _Others.freeze:
            return
        _Others.freeze = gc.get_freeze_count() > 0
        if not _Others.freeze:  # the next collection would look at all that is new
            gc.freeze()
            gc.unfreeze()  # it counts as old

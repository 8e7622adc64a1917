"""No garbage collections while a program or a function is made: they look at all that is new again and again.

They would take a third of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator

__all__ = ["kept", "paused"]


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
    """Collect no garbage in a ``with`` block, or in a function; what is new counts as old."""
    if not gc.isenabled():
        yield
        return
    try:
        gc.disable()
        yield
    finally:
        if gc.get_freeze_count() == 0:  # the next collection would look at all that is new
            gc.freeze()
            gc.unfreeze()  # it counts as old
        gc.enable()

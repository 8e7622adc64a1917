"""No garbage collections while a program or a function is made: they look at all that is new again and again.

They would take a third of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def kept() -> Generator[None, None, None]:
    """Collect no garbage in a ``with`` block, or in a function."""
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

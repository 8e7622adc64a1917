"""How many bytes a loop may keep for its derivative, in the functions that this thread traces."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_local: Final = threading.local()


def limit() -> int | None:
    """Return how many bytes a loop may keep; None if any number."""
    found: int | None = getattr(_local, "limit", None)
    return found


@contextmanager
def limited(nbytes: int | None) -> Iterator[None]:
    """Let loops that are traced here keep at most so many bytes."""
    before, _local.limit = limit(), nbytes
    try:
        yield
    finally:
        _local.limit = before

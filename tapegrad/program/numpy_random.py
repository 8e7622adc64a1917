"""Random numbers of NumPy and of Python, which no tracer sees: a warning where a traced function draws some."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Generator
from typing import Any

import numpy as np


def _states() -> tuple[Any, ...]:
    """Return the states of the generators that have no name, of those modules that are imported."""
    found: list[Any] = []
    if "numpy.random" in sys.modules:
        _, key, place, *rest = np.random.get_state()  # noqa: NPY002  the one that others draw from
        found += [np.asarray(key).tobytes(), place, rest]
    if "random" in sys.modules and threading.active_count() == 1:  # other threads, e.g. Dask's, draw from it too
        found.append(sys.modules["random"].getstate())
    return tuple(found)


@contextlib.contextmanager
def noticed_draws() -> Generator[None]:
    """Warn if the generators of `numpy.random` or `random` are drawn from in a ``with`` block."""
    before = _states()
    yield
    after = _states()
    if len(after) == len(before) and after != before:
        warnings.warn(
            "a compiled function draws random numbers of numpy.random or of Python's random: they are the same in all "
            "calls. Use tapegrad's, e.g. tg.randn(), which are drawn anew, or give them to it as an argument.",
            UserWarning,
            stacklevel=7,
        )

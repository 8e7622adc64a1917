"""State of the process: every module registers its caches here, so that they are listed, and emptied for a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple


class _Cache(NamedTuple):
    size: Callable[[], int]
    reset: Callable[[], object] | None


_caches: Final[dict[str, _Cache]] = {}


def register(name: str, size: Callable[[], int], reset: Callable[[], object] | None = None) -> None:
    """Register a cache.

    Parameters
    ----------
    name : str
        Module and contents, as in ``"tape.layout: layouts"``.
    size : callable
        Returns how many items it holds now.
    reset : callable, optional
        Empties it. Without it the cache cannot be emptied: others keep numbers or addresses of its items.
    """
    _caches[name] = _Cache(size, reset)


def sizes() -> dict[str, int]:
    """Return how many items each cache of the process holds.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.runtime import state
    >>> state.sizes()["tape.layout: layouts"] > 0
    True
    """
    return {name: cache.size() for name, cache in sorted(_caches.items())}


def reset() -> None:
    """Empty all caches that can be emptied. Tensors, graphs and compiled kernels stay valid."""
    for cache in list(_caches.values()):
        if cache.reset is not None:
            cache.reset()

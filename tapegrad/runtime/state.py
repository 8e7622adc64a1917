"""The caches of the process: every module registers its own here, so that a test can list and empty them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from tapegrad.runtime.named_tuples import NamedTuple

T = TypeVar("T")


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
        Empties it. Leave it out where others keep numbers or addresses of the items: the cache must then stay full.
    """
    _caches[name] = _Cache(size, reset)


def put(cache: dict[Any, T], key: Any, value: T, most: int) -> T:
    """Put an item into a cache, which is emptied first if it holds as many as it may, and return the item.

    Examples
    --------
    >>> cache = {1: "one", 2: "two"}
    >>> put(cache, 3, "three", 2), cache
    ('three', {3: 'three'})
    """
    if len(cache) >= most:
        cache.clear()
    cache[key] = value
    return value


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

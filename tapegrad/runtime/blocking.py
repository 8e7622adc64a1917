"""How work on large arrays is divided: the elements of a block, and the number of threads."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Final

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.platform import has

__all__ = ["get_num_threads", "set_num_threads"]

MAX_BLOCK: Final = 8192  # elements; the memory of a group in the cache is laid out for them
# A multiple of the elements that one iteration of a vectorised loop takes. A block must be a multiple of it: leftover
# elements go through a scalar loop, in which LLVM may contract other products and sums, so that the bits of a result
# would depend on where its block ends.
UNROLLED: Final = 64
# Arrays of at least so many blocks are processed block by block. Smaller arrays stay in the cache anyway.
ENOUGH_BLOCKS: Final = 4


class Division(NamedTuple):
    """How work is divided. It is replaced as a whole, so that a copy can be compared by identity."""

    threads: int
    #: Elements of a block, 0 for no blocks: 4 or 5 blocks fit into the second level of the cache.
    block: int


def _threads_at_start() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return cores()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if has("affinity") else os.cpu_count() or 1


division = Division(_threads_at_start(), min(int(os.environ.get("TAPEGRAD_BLOCK") or 4096), MAX_BLOCK))
on_new_block: list[Callable[[], None]] = []


def get_num_threads() -> int:
    """Return how many threads one operation or one backward pass may use.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.get_num_threads() >= 1
    True
    """
    return division.threads


def few_elements() -> float:
    """Return the fewest elements of an array that is processed block by block."""
    return ENOUGH_BLOCKS * division.block or math.inf


def is_streamed(nbytes: int) -> bool:
    """Whether a new array of so many bytes is written past the caches.

    It is if few arrays of its size fit into the last level, which other programs share: it would evict other data, and
    most of its own bytes would be evicted before they are read. Where that level has 480 MB,
    ``y = x * r + b; (y * y).mean()`` and its gradient take 1.5 times as long with it at 8 MB, 1.1 times at 32 MB, and
    0.8 times from 64 MB on.
    """
    return nbytes >= 1 << 22 and nbytes >= _last_level() // 16


@functools.cache
def _last_level() -> int:
    """Return the bytes of the last level of the cache, 0 where the system does not say."""
    if not has("linux_files"):
        return 0
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as file:
            return int(file.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 0


def set_num_threads(threads: int) -> None:
    """Set how many threads one operation or one backward pass may use on large arrays.

    The default is ``OMP_NUM_THREADS``, or the number of cores that the process may use. BLAS has its own number of
    threads. Results do not depend on it.

    Parameters
    ----------
    threads : int

    Raises
    ------
    TypeError
        If it is no integer.
    RuntimeError
        If it is not positive.

    Examples
    --------
    >>> import tapegrad as tg
    >>> before = tg.get_num_threads()
    >>> tg.set_num_threads(2)
    >>> tg.get_num_threads()
    2
    >>> tg.set_num_threads(before)
    """
    global division
    if type(threads) is not int:
        raise TypeError(f"set_num_threads expects an int, but got {type(threads).__name__}")
    if threads < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, not {threads}")
    division = division._replace(threads=threads)


def set_block_size(elements: int) -> None:
    """Set how many elements a block has, 0 for no blocks; no sweep may be running."""
    global division
    division = division._replace(block=min(elements, MAX_BLOCK))
    for tell in on_new_block:
        tell()

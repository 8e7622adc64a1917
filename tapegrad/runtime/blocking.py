"""Large arrays: into blocks of how many elements, and among how many threads, work on them is divided."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["get_num_threads", "set_num_threads"]

MAX_BLOCK: Final = 8192  # elements; a run's memory in the cache is laid out for them
# A multiple of the elements that a vectorised loop takes at a time. Blocks are multiples of it: what is left over is
# done one by one, where LLVM may contract other products and sums, and the bits would depend on where a block ends.
UNROLLED: Final = 64
# Blocks from which on arrays are gone through in blocks: fewer stay in the cache as they are.
ENOUGH_BLOCKS: Final = 4


class Division(NamedTuple):
    """How work is divided. Whoever keeps one compares it by identity: it is replaced as a whole."""

    threads: int
    #: Elements of large arrays that a sweep goes over at a time: 4 or 5 blocks fit into the second level of the cache.
    #: 0 means all.
    block: int


def _threads_at_start() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    """Return from how many elements on arrays are gone through in blocks."""
    return ENOUGH_BLOCKS * division.block or math.inf


def set_num_threads(threads: int) -> None:
    """Set how many threads one operation or one backward pass may use on large arrays.

    At first it is what ``OMP_NUM_THREADS`` says, or the number of cores that the process may use. The number of
    threads of BLAS is its own affair. Results do not depend on it.

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
    """Set how many elements of large arrays a sweep goes over at a time, 0 for all; no sweep may be under way."""
    global division
    division = division._replace(block=min(elements, MAX_BLOCK))
    for tell in on_new_block:
        tell()

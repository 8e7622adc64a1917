"""The memory pool: it keeps the large buffers of dead results and gradients, and lends them to new ones.

New memory costs more than arithmetic: a page fault takes longer than computing the 512 numbers of the page, so that 8
results of 256 KB take 20 times as long in fresh memory as in used memory. A buffer comes back when the last array over
it dies, views included. The pool never holds more than its limit, and never more than the program once had in use.
Arrays beyond that own their memory as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import weakref
from collections import OrderedDict
from typing import Any, Final

import numpy as np

from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.platform import has

__all__ = ["empty_cache", "memory_allocated", "memory_reserved", "set_cache_limit"]

# The allocator reuses smaller buffers without the system's help: lending them would cost 1.5 µs and gain nothing.
THRESHOLD: Final = 1 << 17
_ALIGNMENT: Final = 64
_PAGE: Final = 4096
_HUGE_PAGE: Final = 1 << 21
_DEFAULT_LIMIT: Final = 1 << 29
_HAS_HUGE_PAGES: Final = has("hugepages")


class _Buffer:
    """Memory, with its address and its ctypes class: asking NumPy for an address costs 1 µs."""

    __slots__ = ("first", "kind", "memory", "size")
    memory: np.ndarray | mmap.mmap

    def __init__(self, size: int) -> None:
        self.size = size
        self.kind = ctypes.c_char * size
        huge = size // 16 * 17 // _HUGE_PAGE * _HUGE_PAGE if _HAS_HUGE_PAGES else 0
        if huge:
            self.memory, self.first = _huge_pages(max(size, huge), huge)
        else:
            self.memory = np.empty(size + _ALIGNMENT, np.uint8)
            self.first = -(-self.memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT


def _huge_pages(size: int, huge: int) -> tuple[mmap.mmap, int]:
    """Return memory and the address at which a buffer begins in it. The first `huge` bytes ask for huge pages.

    Arithmetic on huge pages takes a tenth less time. The rest uses small pages, as a huge page is allocated as a whole.
    """
    try:
        memory = mmap.mmap(-1, size + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for {size} bytes") from error
    start = np.frombuffer(memory, np.uint8).ctypes.data
    first = -(-start // _HUGE_PAGE) * _HUGE_PAGE
    with contextlib.suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE, first - start, huge)
    return memory, first


class _Return(weakref.ref[Any]):
    """Notes, in C, that the holder of a buffer died. A ``__del__`` is Python code, in which a Ctrl-C would get lost."""

    __slots__ = ("buffer",)
    buffer: _Buffer


# The base of every array over a buffer is one ctypes object, its holder. The holder is no array, so NumPy follows the
# base of a view of a view up to it and no further. Callbacks only append to `_dead`.
#
# The counts stay right if a signal handler raises: CPython calls handlers after calls and at jumps back, and statements
# that belong together contain neither. For the same reason a fork never sees half of them.
_lent: dict[int, _Return] = {}
_dead: list[_Return] = []
_idle: OrderedDict[int, list[_Buffer]] = OrderedDict()  # by size; the size that was used last stands last
_sizes = {"lent": 0, "idle": 0, "peak": 0, "limit": _DEFAULT_LIMIT}
_lock = module_lock()  # a collection in the middle may run a finalizer that computes
if os.environ.get("TAPEGRAD_POOL") == "0":
    _sizes["limit"] = 0


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a C-contiguous array without initial values. The memory of a large one begins at a cache line."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < THRESHOLD or nbytes > _sizes["limit"]:
        return np.empty(shape, dtype)
    size = -(-nbytes // _PAGE) * _PAGE
    with _lock:
        while True:
            if _dead:
                _collect()
            buffers = _idle.get(size)
            if buffers:
                buffer = buffers[-1]
                _idle.move_to_end(size)
            else:
                wanted = _sizes["lent"] + size
                if wanted > _sizes["limit"]:
                    return np.empty(shape, dtype)
                _sizes["peak"] = max(_sizes["peak"], wanted)
                _shrink(min(_sizes["limit"], _sizes["peak"]) - wanted)
                buffers, buffer = None, _Buffer(size)
            holder: Any = buffer.kind.from_address(buffer.first)
            note = _Return(holder, _dead.append)
            note.buffer = buffer
            number = id(note)
            if buffers is None:
                _lent[number] = note
                _sizes["lent"] += size
                break
            if buffers and buffers[-1] is buffer:  # unless a finalizer ran meanwhile and took it
                del buffers[-1]
                _lent[number] = note
                _sizes["idle"] -= size
                _sizes["lent"] += size
                break
    return np.ndarray(shape, dtype, holder)


def _collect() -> None:
    """Take back the buffers whose arrays have died."""
    while _dead:
        note = _dead[-1]
        number = id(note)
        if _lent.get(number) is not note:  # `empty` was interrupted before it lent the buffer
            _dead.remove(note)
            continue
        buffer, size = note.buffer, note.buffer.size
        buffers = _idle.setdefault(size, [])
        _idle.move_to_end(size)
        if _dead and _dead[-1] is note:  # unless a finalizer ran meanwhile and took it back
            del _dead[-1]
            del _lent[number]
            buffers += [buffer]
            _sizes["lent"] -= size
            _sizes["idle"] += size


def _shrink(room: int) -> None:
    """Free idle buffers until at most `room` bytes are idle, the least recently used sizes first."""
    while _idle and _sizes["idle"] > max(room, 0):
        size = next(iter(_idle))
        buffers = _idle[size]
        if buffers:
            _sizes["idle"] -= size
            del buffers[-1]
        else:
            del _idle[size]


def empty_cache() -> None:
    """Give the memory that no array uses back to the system.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.empty_cache()
    >>> tg.memory_reserved() == tg.memory_allocated()
    True
    """
    with _lock:
        _collect()
        _shrink(0)
        _sizes["peak"] = _sizes["lent"]


def set_cache_limit(limit: int) -> None:
    """Set how many bytes the pool of large buffers may hold, those in use included; 0 turns it off.

    Parameters
    ----------
    limit : int
        At first 512 MB, or 0 where the environment has ``TAPEGRAD_POOL=0``. Arrays beyond the limit own their memory.

    Raises
    ------
    ValueError
        If it is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_cache_limit(2**29)
    """
    if limit < 0:
        raise ValueError(f"set_cache_limit() takes a number of bytes that is not negative, not {limit}; 0 is no pool")
    with _lock:
        _sizes["limit"] = int(limit)
        _collect()
        _shrink(limit - _sizes["lent"])


def memory_allocated() -> int:
    """Return the bytes of the pool's memory that arrays use now.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.memory_allocated() <= tg.memory_reserved()
    True
    """
    with _lock:
        _collect()
        return _sizes["lent"]


def memory_reserved() -> int:
    """Return the bytes that the pool of large buffers holds: those that arrays use, and those kept for later.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.memory_reserved() >= 0
    True
    """
    with _lock:
        _collect()
        return _sizes["lent"] + _sizes["idle"]

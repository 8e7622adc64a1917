"""Memory that Python reads and writes by address, as compiled code does, with every access checked.

Interpreted code may touch three things: arrays that were passed to `watch` (pages, workspaces, the arena, plans), as
long as they live; the stack of the running function; and Python objects of the types that compiled code knows, within
their size.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import struct
import weakref
from _ctypes import PyObj_FromPtr  # a fifth of the time of ctypes.cast
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np

from tapegrad.runtime.locks import in_child, module_lock
from tapegrad.runtime.platform import copy_of, has

__all__ = [
    "INTERPRETS",
    "MEMORY",
    "OutOfBoundsError",
    "check",
    "object_at",
    "peek",
    "read",
    "watch",
    "watch_forever",
    "write",
]

#: Whether the compiled functions run in Python instead, for debugging (`tapegrad.compiler.interpreter`).
INTERPRETS: Final = os.environ.get("TAPEGRAD_INTERPRET", "0") not in ("", "0")

#: All of this process's memory as one buffer: an address is an offset in it.
MEMORY: Final = (ctypes.c_char * (1 << 62)).from_address(0)

_words: Final = struct.Struct("q")
_halves: Final = struct.Struct("i")
_header: Final = struct.Struct("=qqq")  # of an object: references, type, and of many the number of items


class OutOfBoundsError(RuntimeError):
    """Interpreted code touched memory that it may not touch."""


# ---- watched memory

_starts: list[int] = []  # sorted; replaced as a whole, never changed, as other threads read it
_regions: dict[int, tuple[int, str, Callable[[], object]]] = {}  # from the start to the end, a name, and the owner
_dead: list[tuple[int, object]] = []
_changing: Final = module_lock()
Owner = TypeVar("Owner", np.ndarray, "array[int]")


def watch(owner: Owner, name: str) -> Owner:
    """Let interpreted code touch the elements of an array while it lives; return the array.

    Without the interpreter this does nothing.
    """
    if INTERPRETS:
        elements = np.asarray(owner)
        start = elements.ctypes.data
        if elements.nbytes:
            reference = weakref.ref(owner, lambda reference: _dead.append((start, reference)))
            _add(start, elements.nbytes, name, reference)
    return owner


def watch_forever(start: int, nbytes: int, name: str) -> None:
    """Let interpreted code touch memory that belongs to no array and is never freed."""
    if INTERPRETS:
        _add(start, nbytes, name, lambda: True)


def _add(start: int, nbytes: int, name: str, owner: Callable[[], object]) -> None:
    global _starts
    with _changing:
        starts = _starts.copy()
        while _dead:
            gone, reference = _dead.pop()
            if gone in _regions and _regions[gone][2] is reference:
                del _regions[gone]
                del starts[bisect.bisect_left(starts, gone)]
        if start not in _regions:
            bisect.insort(starts, start)
        _regions[start] = start + nbytes, name, owner
        _starts = starts


def _region(address: int) -> tuple[int, int, str] | None:
    """Return the start, the end and the name of the watched memory at an address; None if there is none."""
    starts = _starts
    place = bisect.bisect_right(starts, address) - 1
    while place >= 0:
        end, name, owner = _regions.get(starts[place], (0, "", lambda: None))
        if owner() is not None:
            return (starts[place], end, name) if address < end else None
        place -= 1  # it died
    return None


# ---- objects

# Offsets in objects: see `tapegrad.runtime.objects`. Compiled code also keeps addresses of fields inside of objects.
_LIST_ITEMS, _ARRAY_DATA, _ARRAY_NDIM = 24, 16, 24
_ARRAY_STEPS: Final = (32, 40)  # the lengths and the strides of an array
_INSIDE: Final = ((0, object), (16, (slice, float, complex, np.generic)), (tuple.__basicsize__, tuple), (32, bytes))
_sizes: dict[int, tuple[type, int, int]] = {}  # by a type's id: the type, and the bytes of its objects and items
_lent: dict[int, int] = {}  # from memory that a list or an array has outside of its object, to the owner
_lent_before: dict[int, int] = {}  # the older half of `_lent`
_MOST_LENT: Final = 4096


def object_at(identity: int) -> Any:
    """Return the object with this `id`, which the caller knows to be alive."""
    return PyObj_FromPtr(identity)


@cache
def _opened() -> int:
    """Return a file descriptor of this process's memory: reading an unmapped address raises instead of crashing."""
    if not has("linux_files"):
        return -1
    try:
        return os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


in_child(_opened.cache_clear)  # the old descriptor reads the parent's memory


def peek(address: int, size: int = 8) -> bytes:
    """Return bytes at an address; zeros where no memory is mapped."""
    file = _opened()
    try:
        raw = os.pread(file, size, address) if file >= 0 else copy_of(address, size)
    except (OSError, OverflowError):
        raw = b""
    return raw.ljust(size, b"\0")


def _type_at(address: int) -> int:
    return int(_words.unpack(peek(address + 8))[0])


def _kind_at(address: int) -> tuple[type | None, int]:
    """Return the type and the size of the object at an address; None and 0 if the bytes there look like no object."""
    references, type_at, count = _header.unpack(peek(address, _header.size))
    if references & 0xFFFFFFFF == 0:
        return None, 0
    if type_at not in _sizes:
        meta = _type_at(type_at)
        if meta != id(type) and not (_type_at(meta) == id(type) and issubclass(object_at(meta), type)):
            return None, 0
        kind: type = object_at(type_at)
        _sizes[type_at] = kind, kind.__basicsize__, kind.__itemsize__
    kind, size, item = _sizes[type_at]
    return kind, size + abs(count) * item


def _room(address: int) -> int:
    """Return how many bytes may be touched from an address on, in memory that is not watched."""
    owner = _lent.get(address) or _lent_before.get(address, 0)
    kind = _kind_at(owner)[0] if owner else None
    if kind is list and _words.unpack_from(MEMORY, owner + _LIST_ITEMS)[0] == address:
        return 8 * int(_words.unpack_from(MEMORY, owner + _LIST_ITEMS + 8)[0])
    steps = _ARRAY_STEPS if kind is not None and issubclass(kind, np.ndarray) else ()
    if any(_words.unpack_from(MEMORY, owner + place)[0] == address for place in steps):
        return 8 * int(_halves.unpack_from(MEMORY, owner + _ARRAY_NDIM)[0])
    # A sequence (`tapegrad.runtime.structs`) is no object.
    for begin, kinds in _INSIDE[1 if hasattr(address, "element") else 0 :]:
        found, size = _kind_at(address - begin)
        if found is not None and issubclass(found, kinds):
            return size - begin
    raise OutOfBoundsError(f"no object is at {address:#x}")


# ---- access


def check(base: int, offset: int, size: int) -> None:
    """Check that `size` bytes at `offset` from an address may be touched.

    Raises
    ------
    OutOfBoundsError
    """
    region = _region(base)
    if region is not None:
        start, end, name = region
        first = base + offset - start
        if 0 <= first <= end - start - size:
            return
        raise OutOfBoundsError(f"bytes {first} to {first + size} of {name}, which has {end - start}")
    if not 0 <= offset <= _room(base) - size:
        raise OutOfBoundsError(f"{size} bytes at {offset} from {base:#x}, where {_room(base)} are")


def read(base: int, offset: int, size: int) -> int:
    """Return the signed word, or half of one, at `offset` from an address."""
    check(base, offset, size)
    value: int = (_words if size == 8 else _halves).unpack_from(MEMORY, base + offset)[0]
    if offset in (_LIST_ITEMS, _ARRAY_DATA, *_ARRAY_STEPS) and value and _region(base) is None:
        _lend(value, int(base), offset)
    return value


def _lend(address: int, owner: int, place: int) -> None:
    """Note that an object owns memory elsewhere. The elements of an array are watched from then on."""
    global _lent, _lent_before
    kind = _kind_at(owner)[0]
    if kind is not None and issubclass(kind, np.ndarray) and place not in _ARRAY_STEPS:
        region, array = _region(address), object_at(owner)
        if region is None or region[1] - address < array.nbytes:
            watch(array, "an array")
        return
    if len(_lent) > _MOST_LENT:
        _lent, _lent_before = {}, _lent
    _lent[address] = owner


def write(base: int, offset: int, size: int, value: int) -> None:
    """Write a word, or half of one; a value that is too large wraps around."""
    check(base, offset, size)
    half = 1 << (8 * size - 1)
    (_words if size == 8 else _halves).pack_into(MEMORY, base + offset, (value + half) % (2 * half) - half)

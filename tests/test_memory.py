"""Memory that interpreted code touches: each byte of what is watched, while it lives, and no other."""

import numpy as np
import pytest

from tapegrad.runtime import memory
from tapegrad.runtime.memory import OutOfBoundsError, check, read, watch, write


@pytest.fixture(autouse=True)
def _watches(monkeypatch):
    """Watch as under TAPEGRAD_INTERPRET=1, beginning with nothing."""
    for name, value in {"INTERPRETS": True, "_starts": [], "_regions": {}, "_dead": []}.items():
        monkeypatch.setattr(memory, name, value)


# Not an object that may be touched as such: parts of one array.
WORDS = np.zeros(1 << 12, dtype=np.int64)


def part(first, count, name="words"):
    return watch(WORDS[first : first + count], name)


def test_words_within_and_beside():
    own = part(8, 4)
    at = own.ctypes.data
    for base in (at, at + 8, at + 24):
        for offset in (0, 8, -8, 24, 32):
            inside = 0 <= base - at + offset <= 24
            if inside:
                write(base, offset, 8, base + offset)
                assert read(base, offset, 8) == base + offset
            else:
                with pytest.raises(OutOfBoundsError, match="of words, which has 32"):
                    check(base, offset, 8)
    check(at, 28, 4)
    check(at, 0, 32)
    for offset, size in ((0, 33), (28, 8), (-1, 8), (25, 8)):
        with pytest.raises(OutOfBoundsError):
            check(at, offset, size)


def test_words_wrap_around_and_halves_are_halves():
    at = part(16, 2).ctypes.data
    for size in (4, 8):
        half = 1 << (8 * size - 1)
        for value, expected in ((half, -half), (-half - 1, half - 1), (5, 5), (-5, -5), (2 * half + 3, 3)):
            kept = part(16, 2)
            write(at, 0, size, value)
            assert read(at, 0, size) == expected
            assert kept[1] == 0


def test_what_died_is_not_touched_and_not_kept():
    first, second, third = part(32, 8, "first"), part(48, 8, "second"), part(64, 8, "third")
    at = [own.ctypes.data for own in (first, second, third)]
    del second
    check(at[0], 0, 64)
    check(at[2], 0, 64)
    with pytest.raises(OutOfBoundsError):
        check(at[1], 0, 8)
    again = part(48, 4, "again")
    with pytest.raises(OutOfBoundsError, match="bytes 32 to 40 of again, which has 32"):
        check(at[1], 32, 8)
    for number in range(100):
        part(400 + 8 * number, 8)
    assert len(memory._starts) == len(memory._regions) <= 5
    assert memory._starts == sorted(memory._regions)
    assert again.base is not None


def test_memory_that_died_below_hides_nothing():
    outer = part(128, 64, "outer")
    part(136, 2, "inner")  # dies at once
    check(outer.ctypes.data + 64, 0, 8)


def test_memory_that_is_watched_again_belongs_to_the_new_one():
    old = part(256, 8, "old")
    new = part(256, 8, "new")
    del old
    part(300, 1)  # when those that died are looked at
    check(new.ctypes.data, 56, 8)


def test_arrays_without_elements_and_without_the_mode(monkeypatch):
    watch(np.zeros(0), "nothing")
    assert memory._starts == []
    monkeypatch.setattr(memory, "INTERPRETS", False)
    part(8, 4)
    memory.watch_forever(WORDS.ctypes.data, 8, "for ever")
    assert memory._starts == []


def test_memory_is_read_where_the_system_shows_it_in_no_file(monkeypatch):
    def refuse(*_):
        raise FileNotFoundError("/proc/self/mem")

    words = np.array([3, 5], dtype=np.int64)
    at = words.ctypes.data
    assert memory.peek(at, 16) == words.tobytes()
    assert memory.peek(16) == bytes(8)  # where nothing is
    memory._opened.cache_clear()
    try:
        monkeypatch.setattr(memory.os, "open", refuse)
        assert memory.peek(at, 16) == words.tobytes()
    finally:
        monkeypatch.undo()
        memory._opened.cache_clear()

"""The workspace of a sweep: the words that Python and compiled code share, its arrays, and the arena of cotangents.

Reached entries and leaves get numbers (ids) when they are first touched. `CTS_AT` is the array that holds, by id, the
address of a cotangent's buffer, with three flags in its low bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tapegrad.runtime import blocking, pool
from tapegrad.runtime.threads import SHARED_WORK
from tapegrad.tape.entries import write_word
from tapegrad.tape.plan import size_classes

# Words of a workspace. First what `find` and `sweep` set from their arguments, and the fresh memory of the arena: what
# is left of it, and all.
N_ROOTS, N_INPUTS, RETAIN, WRITE_SEQUENCE, WRITE_PLACE = range(5)
POSITION, OPERAND, RESUMED, NEXT_FREE, END_FREE, FIRST_FREE, LAST_FREE = range(5, 12)
# What the walk tells: counts, the entry or plan that it could not go on with, and the bytes that it needs.
N_IDS, N_ORDER, N_EDGES, N_LEAVES, N_PAGES, N_MISSING, N_OUTLIVING, PROBLEM = range(12, 20)
CONSUMED_INPUT, HAS_HOOKS = range(20, 22)
# The arrays of the workspace, and their lengths.
NEED, CAPACITY, EDGE_CAPACITY, CLASSES_AT, N_CLASSES, ROOTS_AT, INPUTS_AT, SLOTS_AT, ORDER_AT, STARTS_AT = range(22, 32)
EDGES_AT, CTS_AT, PAGES_AT, LEAVES_AT, GRADS_AT, USES_AT = range(32, 38)
# Runs (`runs.py`): elements of a block as they were asked for; from how many elements times steps on a run is for
# several threads; the place at which no run begins; of the run at hand its elements, those of a block, where it ends,
# its records, the bytes of memory for one block, and of how many elements a part must be a multiple.
BLOCK, SHARED_FROM, NO_RUN_AT, RUN_ELEMENTS, RUN_BLOCK, RUN_END, RUN_RECORDS, RUN_SLOT, RUN_GRAIN = range(38, 47)
RECORDS_AT, LOCALS_AT = range(47, 49)
WORKSPACE_WORDS: Final = 49

# Statuses.
OK, GROW, FREED, MISSING, CHANGED, DISORDER = range(6)
DONE, STOPPED, MEMORY, INCOMPLETE, LARGE, NO_RUN = range(6)

# Flags of a cotangent's address.  Borrowed memory is a leaf's gradient or a seed: it is not given back to the arena.
WRITTEN, BORROWED, CAPTURED, FLAG_BITS = 1, 2, 4, 7
UNWANTED: Final = -8

# Of a run: the most entries, each of which has memory for one block, of elements of 16 bytes; the most records, and
# their words.
LOCALS: Final = 16
SLOT_PAD: Final = 192  # so that blocks do not all fall on the same places in the cache
THREAD_BYTES: Final = (LOCALS + 1) * (16 * blocking.MAX_BLOCK + SLOT_PAD)
RECORDS: Final = 64
RECORD_WORDS: Final = 48

_FIRST_CAPACITY: Final = 1024
_FIRST_CHUNK: Final = 1 << 20
_LARGEST_CHUNK: Final = 1 << 24  # memory for small cotangents, the newest part of which an idle workspace keeps
_LARGE: Final = 1 << 18  # a cotangent of so many bytes has memory of its own, which goes back when the sweep ends
_LINE: Final = 64
_BYTE: Final = np.dtype(np.uint8)


class Workspace:
    """The integers and the memory that one sweep works in; kept for the next one."""

    def __init__(self) -> None:
        self.words = np.zeros(WORKSPACE_WORDS, dtype=np.int64)
        self.state = memoryview(self.words.data)  # reads and writes Python integers twice as fast as the array
        self.chunks: list[np.ndarray] = []
        self.buffers: list[np.ndarray] = []
        self.classes = np.zeros(0, dtype=np.int64)
        self.n_classes = 0
        self.records = np.zeros(RECORDS * RECORD_WORDS, dtype=np.int64)
        self.state[RECORDS_AT] = self.records.ctypes.data
        self.division: blocking.Division | None = None
        self.resize(_FIRST_CAPACITY)

    def resize(self, capacity: int) -> None:
        """Make room for this many entries."""
        longer = {LEAVES_AT: 2, EDGES_AT: 3}
        words = {
            word: np.empty(longer.get(word, 1) * capacity, dtype=np.int64) for word in range(ROOTS_AT, USES_AT + 1)
        }
        for word, array in words.items():
            self.state[word] = array.ctypes.data
        self.state[CAPACITY], self.state[EDGE_CAPACITY] = capacity, 3 * capacity
        self.arrays = {word: memoryview(array.data) for word, array in words.items()}

    def begin(self) -> None:
        """Empty the arena, and know the size classes of today."""
        if len(size_classes) != self.n_classes:
            sizes = list(size_classes)  # other threads may add to it
            self.n_classes = self.state[N_CLASSES] = len(sizes)
            self.classes = np.array([word for size in sizes for word in (0, size)], dtype=np.int64)
            self.state[CLASSES_AT] = self.classes.ctypes.data
        if self.division is not blocking.division:
            self.divide(blocking.division)
        if len(self.chunks) > 1:
            del self.chunks[:-1]

    def divide(self, division: blocking.Division) -> None:
        """Make memory for the blocks of each thread."""
        self.locals = np.empty(division.threads * THREAD_BYTES, dtype=np.uint8)
        self.state[LOCALS_AT], self.state[BLOCK] = self.locals.ctypes.data, division.block
        self.state[SHARED_FROM] = SHARED_WORK if division.threads > 1 else 1 << 62
        self.division = division

    def add_chunk(self) -> None:
        """Give the arena more memory: a buffer from the pool for a large cotangent, for others twice what it has."""
        need = self.state[NEED]
        if need >= _LARGE:
            buffer = pool.empty((need + _LINE,), _BYTE)
            self.buffers.append(buffer)
            first = -(-buffer.ctypes.data // _LINE) * _LINE
            place = 2 * size_classes[need]
            write_word(first, 0, int(self.classes[place]))
            self.classes[place] = first
            return
        newest = self.chunks[-1].nbytes if self.chunks else 0
        chunk = np.empty(max(_FIRST_CHUNK, min(2 * newest, _LARGEST_CHUNK)), dtype=_BYTE)
        self.chunks.append(chunk)
        first = chunk.ctypes.data
        self.state[NEXT_FREE] = self.state[FIRST_FREE] = -(-first // _LINE) * _LINE
        self.state[END_FREE] = self.state[LAST_FREE] = first + chunk.nbytes

    def end(self) -> None:
        """Give back what an idle workspace should not hold."""
        self.buffers.clear()
        if self.state[CAPACITY] > 1 << 20:
            self.resize(_FIRST_CAPACITY)


def is_aligned(array: np.ndarray) -> bool:
    """Whether the low bits of an array's address are 0: the walk keeps flags there."""
    if array.base is None or (array.dtype.alignment >= 8 and array.flags.aligned):
        return True
    return array.ctypes.data % 8 == 0  # of float32 in the pool's memory

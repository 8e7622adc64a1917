"""The workspace of a sweep: the words that Python and compiled code share, its arrays, and the arena of cotangents.

Entries and leaves get ids, 0, 1, 2..., when `find` first reaches them. Most arrays are indexed by id: `State.cts` holds
the address of each cotangent's buffer, with three flags in its low bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tapegrad.recording.objects import Runtime, runtime
from tapegrad.recording.steps import size_classes
from tapegrad.runtime import blocking, pool
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List
from tapegrad.runtime.structs import WORD, Array, Struct, Table, embedded, sizeof
from tapegrad.runtime.threads import SHARED_WORK
from tapegrad.tape.entries import write_word
from tapegrad.tape.structs import Entry, PageHead, PlanFields


class Argument(Struct):
    """An argument of an instruction's kernel."""

    address: int
    stride: int  # bytes to the next element
    row_stride: int  # bytes to the next row
    is_local: int  # whether it is memory for one block


class Instruction(Struct):
    """A kernel and its arguments, for any block of elements (see `tapegrad.sweep.instructions`)."""

    kernel: int
    count: int  # number of arguments
    accumulate: int
    row: int  # elements of a row, if the kernel loops over rows; 0 if it loops over elements
    once: int  # whether it is executed for the first block only: it writes the same elements for every block
    # Only of a sum, which adds up a block to partial sums:
    inner: int  # elements of a row; 0 for other instructions
    combine: int  # the kernel that adds up the partial sums at the end
    partial_sums: FreeBuffer
    target: int
    n_groups: int  # number of partial sums
    size_class: int  # size class of the partial sums
    arguments: Table[Argument] = embedded(36)


class FoundLeaf(Struct):
    """A leaf that `find` reached."""

    entry_id: int
    slot: Entry


class FreeBuffer(Struct):
    """A buffer of the arena that is not in use. Free buffers of a size form a linked list."""

    next: FreeBuffer


class SizeClass(Struct):
    """A size class of the arena."""

    head: FreeBuffer  # of the free list
    size: int  # bytes of a buffer


class UsedScratch(Struct):
    """The memory of a group's partial sums, and its size class."""

    size_class: int
    buffer: FreeBuffer


class State(Struct):
    """The words of a workspace."""

    runtime: Runtime
    # From the arguments of `find`.
    n_roots: int
    n_inputs: int
    retain: int
    last_write: int  # when it was, in the order of recording
    # Where the sweep stands.
    position: int  # in the order
    operand: int
    resumed: int  # the position whose hooks have run
    is_hooked: int  # whether the entry at which the sweep stopped has hooks or is captured
    # Fresh memory of the arena: first the rest of it, then all.
    next_free: int
    end_free: int
    first_free: int
    last_free: int
    # Results of `find` and `sweep`.
    n_ids: int
    n_order: int
    n_edges: int
    n_leaves: int
    n_pages: int
    n_missing: int
    n_shared: int
    problem: int  # the entry or plan that an error is about, or that lacks kernels
    consumed_input: int  # 1 + the id of the only input, if it was consumed before; else 0
    has_hooks: int
    need: int  # bytes of the buffer that is missing
    # The arrays of the workspace, and their lengths.
    capacity: int
    edge_capacity: int
    classes: Table[SizeClass]
    n_classes: int
    roots: Array[Entry]
    inputs: Array[Entry]
    slots: Array[Entry]  # by id
    order: Array[int]  # ids, latest first
    starts: Array[int]  # by position in the order: the index of the entry's first edge
    edges: Array[int]  # the ids of operands
    cts: Array[int]  # by id: the address of a cotangent with its flags
    pages: Array[PageHead]
    leaves: Table[FoundLeaf]
    grads: Array[int]  # by index among the leaves: the array of the gradient, with flags
    uses: Array[int]  # by id: how many entries that run have it as an operand
    # These share memory with `pages` and `grads`, which are no longer needed then.
    shared_nodes: Array[List]
    missing: Array[PlanFields]
    sums: Table[UsedScratch]
    # Groups (`groups.py`).
    block: int  # elements of a block, as the user asked for
    shared_from: int  # several threads share a group from so many elements times instructions on
    no_group_at: int  # the position at which no group begins
    # The current group.
    group_elements: int
    group_block: int  # elements of its blocks
    group_end: int
    n_instructions: int
    local_bytes: int  # bytes of the memory for one block
    multiple: int  # the range of a thread must be a multiple of it
    instructions: Table[Instruction]
    locals: int  # memory for the blocks of all threads


# Indices of the words that Python reads and writes too, in a view of the same memory.
(
    N_ROOTS, N_INPUTS, POSITION, OPERAND, RESUMED, IS_HOOKED, NEXT_FREE, END_FREE, FIRST_FREE, LAST_FREE, N_IDS,
    N_ORDER, N_EDGES, N_LEAVES, N_PAGES, N_MISSING, N_SHARED, PROBLEM, HAS_HOOKS, NEED, CAPACITY, EDGE_CAPACITY,
    CLASSES_AT, N_CLASSES, ROOTS_AT, INPUTS_AT, SLOTS_AT, ORDER_AT, STARTS_AT, EDGES_AT, CTS_AT, PAGES_AT,
    LEAVES_AT, GRADS_AT, USES_AT, BLOCK, SHARED_FROM, NO_GROUP_AT, GROUP_ELEMENTS, MULTIPLE, N_INSTRUCTIONS,
    INSTRUCTIONS_AT, LOCALS_AT,
) = map(State.word, (
    "n_roots", "n_inputs", "position", "operand", "resumed", "is_hooked", "next_free", "end_free", "first_free",
    "last_free", "n_ids", "n_order", "n_edges", "n_leaves", "n_pages", "n_missing", "n_shared", "problem",
    "has_hooks", "need", "capacity", "edge_capacity", "classes", "n_classes", "roots", "inputs", "slots", "order",
    "starts", "edges", "cts", "pages", "leaves", "grads", "uses", "block", "shared_from", "no_group_at",
    "group_elements", "multiple", "n_instructions", "instructions", "locals",
))  # fmt: skip

# Statuses of `find`, and of `sweep` and `groups.run`.
OK, GROW, FREED, MISSING, CHANGED, DISORDER, SHARED = range(7)
DONE, STOPPED, MEMORY, INCOMPLETE, LARGE, NO_GROUP = range(6)

# Flags of a cotangent's address. Borrowed memory belongs to a leaf's gradient or a seed: the arena does not get it.
WRITTEN, BORROWED, CAPTURED, FLAG_BITS = 1, 2, 4, 7
UNWANTED: Final = -8

# Limits of a group. Each entry may need memory for one block, of elements of up to 16 bytes.
LOCALS: Final = 16
SLOT_PAD: Final = 192  # bytes between blocks, so that they do not all fall on the same lines of the cache
THREAD_BYTES: Final = (LOCALS + 1) * (16 * blocking.MAX_BLOCK + SLOT_PAD)
MOST_INSTRUCTIONS: Final = 64

_FIRST_CAPACITY: Final = 1024
_FIRST_CHUNK: Final = 1 << 20
_LARGEST_CHUNK: Final = 1 << 24  # chunks hold small cotangents; an idle workspace keeps the newest
_LARGE: Final = 1 << 18  # a cotangent of so many bytes has a buffer of its own, which is freed when the sweep ends
_LINE: Final = 64
_BYTE: Final = np.dtype(np.uint8)


class Workspace:
    """The integers and the memory that one sweep works in. The next sweep uses it again."""

    def __init__(self) -> None:
        self.words = watch(np.zeros(sizeof(State) // WORD, dtype=np.int64), "a workspace")
        self.words[State.word("runtime")] = runtime().ctypes.data
        self.state = memoryview(self.words.data)  # reads and writes Python integers twice as fast as the array
        self.chunks: list[np.ndarray] = []
        self.buffers: list[np.ndarray] = []
        self.classes = np.zeros(0, dtype=np.int64)
        self.n_classes = 0
        words = MOST_INSTRUCTIONS * sizeof(Instruction) // WORD
        self.instructions = watch(np.zeros(words, dtype=np.int64), "the instructions of a group")
        self.state[INSTRUCTIONS_AT] = self.instructions.ctypes.data
        self.division: blocking.Division | None = None
        self.resize(_FIRST_CAPACITY)
        self.has_grown = False  # since the last `end`

    def resize(self, capacity: int) -> None:
        """Make room for this many entries."""
        longer = {LEAVES_AT: 2, EDGES_AT: 3}
        words = {
            word: watch(np.empty(longer.get(word, 1) * capacity, dtype=np.int64), "an array of a workspace")
            for word in range(ROOTS_AT, USES_AT + 1)
        }
        for word, array in words.items():
            self.state[word] = array.ctypes.data
        for name, word in (("shared_nodes", PAGES_AT), ("missing", GRADS_AT), ("sums", GRADS_AT)):
            self.state[State.word(name)] = self.state[word]
        self.state[CAPACITY], self.state[EDGE_CAPACITY] = capacity, 3 * capacity
        self.arrays = {word: memoryview(array.data) for word, array in words.items()}
        self.has_grown = True

    def read_size_classes(self) -> None:
        """Take over the size classes that plans have asked for until now."""
        sizes = list(size_classes)  # other threads may add to it
        self.n_classes = self.state[N_CLASSES] = len(sizes)
        self.classes = watch(np.array([word for size in sizes for word in (0, size)]), "the size classes")
        self.state[CLASSES_AT] = self.classes.ctypes.data

    def divide(self, division: blocking.Division) -> None:
        """Allocate memory for the blocks of each thread."""
        self.locals = watch(np.empty(division.threads * THREAD_BYTES, dtype=np.uint8), "memory for blocks")
        self.state[LOCALS_AT], self.state[BLOCK] = self.locals.ctypes.data, division.block
        self.state[SHARED_FROM] = SHARED_WORK if division.threads > 1 else 1 << 62
        self.division = division

    def add_chunk(self) -> None:
        """Give the arena more memory: a buffer of the pool for a large cotangent, else a chunk of twice the size."""
        self.has_grown = True
        need = self.state[NEED]
        if need >= _LARGE:
            buffer = watch(pool.empty((need + _LINE,), _BYTE), "a large buffer of the arena")
            self.buffers.append(buffer)
            first = -(-buffer.ctypes.data // _LINE) * _LINE
            place = 2 * size_classes[need]
            write_word(first, 0, int(self.classes[place]))
            self.classes[place] = first
            return
        newest = self.chunks[-1].nbytes if self.chunks else 0
        chunk = watch(np.empty(max(_FIRST_CHUNK, min(2 * newest, _LARGEST_CHUNK)), dtype=_BYTE), "the arena")
        self.chunks.append(chunk)
        first = chunk.ctypes.data
        self.state[NEXT_FREE] = self.state[FIRST_FREE] = -(-first // _LINE) * _LINE
        self.state[END_FREE] = self.state[LAST_FREE] = first + chunk.nbytes

    def end(self) -> None:
        """Free the memory that an idle workspace should not hold."""
        self.buffers.clear()
        del self.chunks[:-1]
        if self.state[CAPACITY] > 1 << 20:
            self.resize(_FIRST_CAPACITY)
        self.has_grown = False


def is_aligned(array: np.ndarray) -> bool:
    """Whether the low bits of an array's address are 0: a sweep keeps flags there."""
    if array.base is None or (array.dtype.alignment >= 8 and array.flags.aligned):
        return True
    return array.ctypes.data % 8 == 0  # float32 in memory of the pool

"""The tape: pages of entries, which are integers, and the nodes that keep entries alive.

An entry has eight words. Its address is its *slot*, the same integer in Python and in compiled code.

    word  0     plan: the address of the operation's plan (`tapegrad.recording.plan`); 0 for a leaf
          1     node: the identity of the entry's node, which holds the residuals; for a leaf its `Leaf`
          2-4   operands: their slots, 0 where no gradient is wanted. More than three stand in a side array, whose
                address is in word 2
          5     flags, set with the GIL held: CONSUMED; WANTED while `find` runs; RESHAPED if the tensor's data were
                replaced by data of another shape
          6     mark: set while `find` runs, 0 otherwise
          7     stop: a sweep has to stop here for hooks

A *node* is a plain list, ``[slot, page, plan, nodes of the operands..., residuals..., hooks?]``. The tensor that an
operation returned holds the node, and so does the node of every entry computed from that tensor. So liveness follows
reference counts exactly: residuals die with the last tensor of a graph, there is no cycle, and CPython frees a chain of
10^6 lists without recursion. A list is the cheapest such record (45 ns; an object with slots takes 120), and compiled
code can read it. A page holds integers only, and its memory is recycled when its last node dies. A leaf has a record on
a page too.

A signal handler that raises KeyboardInterrupt must leave nothing half done here. CPython calls handlers between
bytecodes, after a call or at a jump back. So statements that belong together contain no call.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.memory import MEMORY, object_at, watch
from tapegrad.runtime.structs import WORD, sizeof
from tapegrad.tape.structs import ENTRY_BYTES, PAGE_BYTES, Entry, PageHead

if TYPE_CHECKING:
    from tapegrad.tape.hooks import HookTable
    from tapegrad.tensor import Tensor

WORDS: Final = ENTRY_BYTES // WORD
PLAN, NODE, OPERANDS, FLAGS, MARK, STOP = (field.offset // WORD for field in Entry.fields())
INLINE_OPERANDS: Final = 3
MAX_SAVED: Final = 8  # operands, from the first on, that may be residuals
CONSUMED, WANTED, RESHAPED = 1, 2, 4

# A page has its head in place of its first two entries (`PageHead`).
SEQUENCE: Final = PageHead.word("sequence")
HEAD_ENTRIES: Final = -(-sizeof(PageHead) // ENTRY_BYTES)

# Positions in a node.
SLOT, PAGE, PLAN_OBJECT, FIRST_OPERAND = 0, 1, 2, 3
TapeNode = list[Any]

_pack_word: Final = struct.Struct("q").pack_into
_unpack_word: Final = struct.Struct("q").unpack_from
_unpack_entry: Final = struct.Struct("8q").unpack_from


Memory = tuple[int, np.ndarray, list[int]]  # a page's address, the block that it is a part of, and its slots
_pool: list[Memory] = []


class Page:
    """The free slots of one page, of 254 entries. It lives as long as a node holds it; then its memory is recycled."""

    __slots__ = ("__weakref__", "free")

    def __init__(self, slots: list[int]) -> None:
        self.free = slots.copy()  # descending: slots are taken from the end


class _Return(weakref.ref[Page]):
    """Notes, in C, that a page died. A ``__del__`` is Python code, in which a Ctrl-C would get lost."""

    __slots__ = ("memory",)
    memory: Memory


_returns: dict[int, _Return] = {}
_dead: list[_Return] = []
_BLOCK_PAGES: Final = 16
_MAX_POOLED: Final = 4096  # pages of 16 KB
_END: Final = 1 << 62  # of any list: a slice behind it appends without a call


def _grow_pool() -> None:
    block = watch(np.zeros((_BLOCK_PAGES + 1) * PAGE_BYTES, dtype=np.uint8), "pages of the tape")
    first = -(-block.ctypes.data // PAGE_BYTES) * PAGE_BYTES
    for page in reversed(range(_BLOCK_PAGES)):
        base = first + page * PAGE_BYTES
        slots = list(range(base + PAGE_BYTES - ENTRY_BYTES, base + (HEAD_ENTRIES - 1) * ENTRY_BYTES, -ENTRY_BYTES))
        _pool.append((base, block, slots))


class Recorder:
    """The end of the tape: the page that new entries are written to.

    All threads write to one tape, in the order in which they take slots. The slot of an operand was taken before that
    of the result, so slots are in topological order.
    """

    __slots__ = ("_lock", "page", "sequence")

    page: Page

    def __init__(self) -> None:
        self._lock = module_lock()
        self.sequence = 0
        self._next_page()

    def _next_page(self) -> None:
        while _dead:
            note = _dead[-1]
            del _dead[-1]  # no call until the memory is back
            del _returns[note.memory[0]]
            _pool[_END:] = [note.memory]  # used next, while caches know it
        if not _pool:
            _grow_pool()
        elif len(_pool) > _MAX_POOLED:
            del _pool[_MAX_POOLED:]
        memory = base, _, slots = _pool[-1]
        sequence = self.sequence + 1
        ctypes.memset(base, 0, PAGE_BYTES)
        _pack_word(MEMORY, base + 8 * SEQUENCE, sequence)
        page = Page(slots)
        note = _Return(page, _dead.append)
        note.memory = memory
        # Unless a finalizer ran meanwhile, recorded something, and turned to this page.
        if self.sequence == sequence - 1:
            del _pool[-1]
            _returns[base], self.sequence, self.page = note, sequence, page

    def turn(self) -> None:
        """Turn to the next page if this one is full, unless another thread has done so."""
        with self._lock:
            while not self.page.free:
                self._next_page()

    def take_slot(self) -> tuple[int, Page]:
        """Return a free slot and its page."""
        while True:
            page = self.page
            try:
                return page.free.pop(), page
            except IndexError:
                self.turn()


recorder: Final = Recorder()


class Leaf:
    """The node of a leaf: the slot of its record, a weak reference to the tensor, and its hooks.

    The tape does not keep a leaf alive. A leaf keeps no entries alive, only the memory of its page.
    """

    # shape       the tensor's shape when the graph was recorded; set only if its data were replaced by data of another
    #             shape
    # is_private  set only if the tensor belongs to a call that differentiates a function: nothing outside depends on it
    __slots__ = ("__weakref__", "hooks", "is_private", "page", "post_hooks", "shape", "slot", "tensor")

    is_private: bool
    shape: tuple[int, ...]

    def __init__(self, tensor: Tensor) -> None:
        self.slot, self.page = slot, _ = recorder.take_slot()
        self.tensor = weakref.ref(tensor)
        self.hooks: HookTable | None = None
        self.post_hooks: HookTable | None = None
        _pack_word(MEMORY, slot + 8 * NODE, id(self))


def private_leaf(tensor: Tensor) -> Tensor:
    """Let a constant of a call that differentiates a function require grad, and return it."""
    leaf: Tensor = tensor.requires_grad_()
    if leaf._node.__class__ is Leaf:
        leaf._node.is_private = True
    return leaf


def leaf_at(slot: int) -> Leaf:
    """Return the leaf with this slot, which the caller knows to be alive."""
    leaf: Leaf = object_at(read_entry(slot)[NODE])
    return leaf


def reshaped(node: TapeNode | Leaf, tensor: Tensor, shape: tuple[int, ...]) -> TapeNode | Leaf:
    """Return a new node for a tensor whose data are about to be replaced by data of another shape.

    The graph has the old sizes. So a leaf becomes another leaf, and a sweep that reaches the old one raises; a result
    becomes the result of an entry that no sweep passes.
    """
    if isinstance(node, Leaf):
        leaf = Leaf(tensor)
        leaf.hooks, leaf.post_hooks = node.hooks, node.post_hooks
        node.shape = tensor.shape
        return leaf
    slot, page = recorder.take_slot()
    plan = node[PLAN_OBJECT]
    twin = [slot, page, plan, *operand_nodes(node), shape]
    for word, value in ((PLAN, plan.address), (NODE, id(twin)), (FLAGS, CONSUMED | RESHAPED)):
        write_word(slot, word, value)
    return twin


def read_entry(slot: int) -> tuple[int, ...]:
    """Return the eight integers of an entry."""
    return _unpack_entry(MEMORY, slot)


def write_word(slot: int, word: int, value: int) -> None:
    """Write one word of an entry."""
    _pack_word(MEMORY, slot + 8 * word, value)


def describe(slot: int) -> str:
    """Return how messages name an entry: by its operation and its place on the tape."""
    node = object_at(read_entry(slot)[NODE])
    return f"{node[PLAN_OBJECT].name} (entry {order_of(slot)})"


def is_consumed(node: TapeNode) -> bool:
    """Whether a backward pass has gone through the entry and freed its residuals."""
    return bool(read_entry(node[SLOT])[FLAGS] & CONSUMED)


def order_of(slot: int) -> tuple[int, int]:
    """Return the entry's place in the order of recording: the page's sequence number, and its number in the page."""
    base = slot & -PAGE_BYTES
    return _unpack_word(MEMORY, base + 8 * SEQUENCE)[0], (slot - base) // ENTRY_BYTES - HEAD_ENTRIES


def is_older(slot: int, other: int) -> bool:
    """Whether an entry was recorded before another one."""
    if slot ^ other < PAGE_BYTES:  # in the same page
        return slot < other
    return order_of(slot) < order_of(other)


def operand_nodes(node: TapeNode) -> list[TapeNode | Leaf | None]:
    """Return the nodes of an entry's operands, None where no gradient is wanted; nothing once they are freed."""
    items = node[FIRST_OPERAND : FIRST_OPERAND + node[PLAN_OBJECT].arity]
    return [item for item in items if item is None or isinstance(item, (list, Leaf))]  # hooks stay


def operand_slots(node: TapeNode) -> list[int]:
    """Return the slots of an entry's operands, read from the entry's words; 0 where no gradient is wanted."""
    words = read_entry(node[SLOT])
    arity = node[PLAN_OBJECT].arity
    if arity <= INLINE_OPERANDS:
        return list(words[OPERANDS : OPERANDS + arity])
    return list((ctypes.c_int64 * arity).from_address(words[OPERANDS]))


def slot_of(node: TapeNode | Leaf | None) -> int:
    """Return the slot of a node, 0 for None, the node of a constant."""
    if node is None:
        return 0
    return node.slot if isinstance(node, Leaf) else node[SLOT]

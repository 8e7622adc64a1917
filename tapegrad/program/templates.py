"""Templates of arguments and results, and the words that they become for compiled code.

A template is a tree of tuples, named tuples, lists, dicts and records. Among its leaves, `Input` and `Output` stand
for values.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.func.trees import fields_of, is_record, record_of
from tapegrad.program.returned import Number
from tapegrad.runtime import pool
from tapegrad.runtime.memory import watch
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.structs import WORD
from tapegrad.tape.layout import Layout, contiguous_layout, intern, layout_of
from tapegrad.tensor import Tensor

__all__ = ["Input", "Output"]

# Kinds of nodes.
CONSTANT, TUPLE, LIST, DICT, OUTPUT, GRADIENT, RECORD, SLOTTED, MADE = 0, 1, 2, 3, 4, 5, 6, 7, 8
# Bytes on the stack of a call. They are few, as a function may call itself by the fallback, a thousand times. Memory
# that a variant keeps takes 10 ns more.
WORDS_ON_STACK: Final = 512
MEMORY_ON_STACK: Final = 512
#: Bytes of the largest result that a variant keeps, to give it out again when nobody else has it: that takes 60 ns less
#: than to let NumPy make an array.
KEPT: Final = 1 << 14
_ALIGNMENT: Final = 64
_BYTE: Final = np.dtype(np.uint8)


class Input(NamedTuple):
    """What stands for an input in a template.

    Attributes
    ----------
    kind : type
        ``np.ndarray``, `Tensor`, a subclass of `Tensor`, or the class of a Python number. A scalar of NumPy serves as
        an array without dimensions. Other subclasses do not count: Python serves them.
    layout : Layout
        Its dtype and shape; the strides are those of a contiguous array. If it requires grad, a tensor has to.
    """

    kind: type
    layout: Layout


class Output(NamedTuple):
    """What stands for an output in a template."""

    number: int


class Made(NamedTuple):
    """What a function makes of a tuple, in the template of a result."""

    function: Callable[[tuple[Any, ...]], Any]
    parts: tuple[Any, ...]


class GradOf(NamedTuple):
    """The gradient that a tensor from outside has when the function is called."""

    tensor: Tensor


class Changes(NamedTuple):
    """What a call changes; see `tapegrad.program.variants.ChangeFields`.

    Attributes
    ----------
    before, undo, after : callable or None
    sizes : sequence of int
    writes, grads, conditions : sequence of (int, int)
    """

    before: Callable[[], bool] | None
    undo: Callable[[], None] | None
    after: Callable[[], None] | None
    sizes: Sequence[int]
    writes: Sequence[tuple[int, int]]
    grads: Sequence[tuple[int, int]]
    conditions: Sequence[tuple[int, int]]


class Address(int):
    """The number of a word among pieces, which becomes its address."""


class Pieces:
    """Lists of words, to be placed one after the other in one memory, and the objects to which they refer.

    Parameters
    ----------
    first : int
        Words at the beginning, which are filled in later.
    """

    def __init__(self, first: int) -> None:
        self.words: list[int] = [0] * first
        self.held: list[object] = []

    def add(self, words: Sequence[int]) -> Address:
        """Append a list of words, and return what becomes its address."""
        start = Address(len(self.words))
        self.words += words
        return start

    def table(self, rows: Sequence[Sequence[int]]) -> Address:
        """Append structs."""
        return self.add([word for row in rows for word in row])

    def hold(self, thing: object) -> int:
        """Hold an object, and return its identity."""
        self.held.append(thing)
        return id(thing)

    def empty_arguments(self, shape: tuple[int, ...], dtype: np.dtype) -> Address:
        """Append the arguments of `tapegrad.runtime.pool.empty`."""
        return self.add([self.hold(shape), self.hold(dtype)])

    def placed(self) -> np.ndarray:
        """Return the memory."""
        memory = watch(np.zeros(len(self.words), dtype=np.int64), "a variant of a program")
        start = memory.ctypes.data
        memory[:] = [start + WORD * word if isinstance(word, Address) else word for word in self.words]
        return memory


def _node(tree: Any) -> tuple[int, Sequence[Any], tuple[Any, ...]]:
    """Return the kind, the children and the keys of a tree.

    Raises
    ------
    TypeError
    """
    kind = type(tree)
    if kind is dict:
        return DICT, list(tree.values()), tuple(tree)
    if kind is list:
        return LIST, tree, ()
    if kind is tuple or (isinstance(tree, tuple) and hasattr(kind, "_fields") and kind not in (Input, Output)):
        return TUPLE, tree, ()
    if isinstance(tree, (dict, list)) or (isinstance(tree, tuple) and kind not in (Input, Output)):
        raise TypeError(f"compiled code does not look into a {kind.__name__}; use a dict, a list or a tuple")
    if is_record(tree):
        own = fields_of(tree)
        return _kind_of_record(tree, own), list(own.values()), tuple(own)
    return CONSTANT, (), ()


def _kind_of_record(record: Any, own: Mapping[str, Any]) -> int:
    """Return where the attributes of a record stand.

    Raises
    ------
    TypeError
        If code of its class says what they are.
    """
    kind: Any = type(record)
    places = [inspect.getattr_static(kind, name, None) for name in own]
    in_slots = [isinstance(place, types.MemberDescriptorType) for place in places]
    if kind.__getattribute__ in (object.__getattribute__, types.SimpleNamespace.__getattribute__):
        if not hasattr(record, "__dict__") and all(in_slots):
            return SLOTTED
        if vars(record).keys() == own.keys() and not any(hasattr(type(place), "__set__") for place in places):
            return RECORD
    raise TypeError(f"compiled code does not look into a {kind.__name__}; use a dict, a list or a tuple")


class Arguments:
    """The words that say how arguments are read.

    Attributes
    ----------
    inputs, checks : list of list of int
        The words of `InputFields` and `CheckFields`.
    n_values : int
        0 if all inputs are arguments without names and nothing is checked.
    """

    def __init__(
        self,
        pieces: Pieces,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        captured: Sequence[tuple[Tensor | GradOf, Layout]],
    ) -> None:
        self._pieces = pieces
        self.inputs: list[list[int]] = []
        self.checks: list[list[int]] = []
        trees = [*arguments, *keywords.values()]
        self._next = len(trees) + len(captured)
        for place, tree in enumerate(trees):
            self._read(tree, place)
        for place, (own, layout) in enumerate(captured, len(trees)):
            if isinstance(own, GradOf):
                self.checks.append([place, GRADIENT, pieces.hold(type(own.tensor)), 1, 0])
                self._read(Input(Tensor, layout), self._next)
                self._next += 1
            else:
                self._read(Input(type(own), layout), place)
        is_flat = not self.checks and not keywords and not captured
        self.n_values = 0 if is_flat else self._next

    def _read(self, tree: Any, place: int) -> None:
        if isinstance(tree, Input):
            self.inputs.append(input_words(self._pieces, tree, place))
            return
        kind, children, keys = _node(tree)
        hold = self._pieces.hold
        owner = tree if kind == CONSTANT else type(tree)
        self.checks.append([place, kind, hold(owner), len(children), hold(keys) if keys else 0])
        first = self._next
        self._next += len(children)
        for number, child in enumerate(children, first):
            self._read(child, number)


def input_words(pieces: Pieces, wanted: Input, place: int) -> list[int]:
    """Return the words of `InputFields`."""
    kind, layout = wanted
    is_tensor = issubclass(kind, Tensor)
    over_array = _of_new_array(layout)
    inline = intern((), (), layout.dtype, inline=True) if layout.ndim == 0 else over_array
    if layout.requires_grad:
        over_array, inline = over_array.tracked, inline.tracked
    scalar = 0
    if is_tensor or kind is np.ndarray:
        scalar = pieces.hold(layout.dtype.type) if layout.ndim == 0 else 0
    elif kind in (float, complex):
        scalar = pieces.hold(kind)
    is_integer = kind in (int, bool)
    layouts = pieces.hold(over_array), pieces.hold(inline)
    shape = pieces.add(layout.shape)
    dtype = pieces.hold(layout.dtype)
    return [place, pieces.hold(kind), is_tensor, is_integer, scalar, *layouts, dtype, layout.ndim, shape]


def _of_new_array(layout: Layout) -> Layout:
    """Return the layout of an array that NumPy makes: where it has no element, strides are as NumPy likes."""
    shape, dtype = layout.shape, layout.dtype
    return contiguous_layout(shape, dtype) if layout.size else layout_of(np.empty(shape, dtype))


def of_output(layout: Layout) -> Layout:
    """Return the layout of an output as a tensor: a number without dimensions is a scalar of NumPy."""
    return _of_new_array(layout) if layout.ndim else intern((), (), layout.dtype, inline=True)


def output(pieces: Pieces, layout: Layout, offset: int, as_tensor: bool) -> list[int]:
    """Return the words of `OutputFields`."""
    shape, dtype = layout.shape, layout.dtype
    is_large = layout.ndim > 0 and layout.nbytes >= pool.THRESHOLD
    large = pieces.empty_arguments(shape, dtype) if is_large else 0
    tensor = pieces.hold(of_output(layout)) if as_tensor else 0
    is_kept = layout.ndim > 0 and layout.nbytes <= KEPT
    kept = pieces.hold([None, None]) if is_kept else 0
    return [pieces.hold(dtype), layout.ndim, pieces.add(shape), large, kept, offset, tensor]


def build(pieces: Pieces, tree: Any) -> list[list[int]]:
    """Return the words of `BuildFields` that build a result: those of children before those of their parent."""
    if isinstance(tree, Output):
        return [[OUTPUT, tree.number, 0, 0]]
    if isinstance(tree, Number):
        return build(pieces, Made(Number._make, tree))
    if isinstance(tree, Made):
        return [*build(pieces, tuple(tree.parts)), [MADE, 1, pieces.hold(tree.function), 0]]
    kind, children, keys = _node(tree)
    if kind in (RECORD, SLOTTED):
        return build(pieces, Made(functools.partial(record_of, type(tree), keys), tuple(children)))
    words = [own for child in children for own in build(pieces, child)]
    owner = tree if kind == CONSTANT else type(tree)
    words.append([kind, len(children), pieces.hold(owner), pieces.hold(keys) if keys else 0])
    return words


def change_words(pieces: Pieces, changes: Changes) -> Address:
    """Append the words of `ChangeFields`."""
    calls = [0 if own is None else pieces.hold(own) for own in changes[:3]]
    lists = [(len(rows), pieces.table(rows)) for rows in changes[4:]]
    return pieces.add([*calls, pieces.add(changes.sizes), *(word for pair in lists for word in pair)])


def guard_words(guards: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    """Return where each guard's value begins, and the words of all outcomes."""
    offsets: list[int] = []
    words: list[int] = []
    for outcome in guards:
        offsets.append(WORD * len(words))
        raw = outcome.tobytes()
        words += np.frombuffer(raw.ljust(-(-len(raw) // WORD) * WORD, b"\0"), np.int64).tolist()
    return offsets, words


def room(pieces: Pieces, nbytes: int, on_stack: int) -> Address:
    """Append the words of `Room`."""
    if nbytes <= on_stack:
        return pieces.add([0, 0])
    idle = pieces.hold([]) if nbytes < pool.THRESHOLD else 0
    return pieces.add([idle, pieces.empty_arguments((nbytes + _ALIGNMENT,), _BYTE)])

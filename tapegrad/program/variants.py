"""Variants: machine code for arguments of certain classes, shapes and dtypes, as words that compiled code reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.recording.objects import LayoutObject, Runtime
from tapegrad.runtime import pool
from tapegrad.runtime.memory import watch
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.objects import List, NDArray, Object, Tuple, Type
from tapegrad.runtime.structs import WORD, Array, Struct, Table, sizeof, slot
from tapegrad.tape.layout import Layout, contiguous_layout, intern, layout_of
from tapegrad.tensor import Tensor

__all__ = ["Dispatch", "Input", "Variant"]

# Flags of a variant: its only output is the result; other threads may have the GIL while its code runs.
IS_SINGLE, RELEASES_GIL = 1, 2
# Bytes on the stack of a call. They are few, as a function may call itself by the fallback, a thousand times. Memory
# that a variant keeps takes 10 ns more.
WORDS_ON_STACK: Final = 512
MEMORY_ON_STACK: Final = 512
_ALIGNMENT: Final = 64
_BYTE: Final = np.dtype(np.uint8)


class InputFields(Struct):
    """The argument that a variant wants in one place."""

    type: Type  # its class: Tensor, arrays, or a number's
    scalar: Type  # the class of a number that may stand in its place, or in place of a tensor's array; 0: none
    is_integer: int  # a Python integer or truth value
    layout: LayoutObject  # of a tensor over an array
    inline: LayoutObject  # of a tensor over a scalar; the same again if there is none
    dtype: Object
    ndim: int
    shape: Array[int]


class OutputFields(Struct):
    """One result of a variant."""

    dtype: Object
    ndim: int  # 0: a number, which becomes a scalar
    shape: Array[int]
    large: Array[Object]  # the arguments of `tapegrad.runtime.pool.empty`; 0 if the array is small
    offset: int  # of a number in the memory of a call
    layout: LayoutObject  # 0 if the result is no tensor


class Room(Struct):
    """Memory for a call for which the stack has no room."""

    idle: List  # what calls have used; 0 if the pool keeps it
    arguments: Array[Object]  # of `tapegrad.runtime.pool.empty`; 0 if the stack has room


class VariantFields(Struct):
    """A variant. Its lists stand behind it in the same memory."""

    code: int
    flags: int
    n_inputs: int
    n_outputs: int
    n_guards: int
    guard_words: int  # of all guards; their values stand at the beginning of the memory of a call
    inputs: Table[InputFields]
    outputs: Table[OutputFields]
    guards: Array[int]  # the offset of each guard's value in the memory of a call
    outcomes: Array[int]  # `guard_words`
    scratch: int  # the offset of scratch memory in the memory of a call
    words: Room  # for addresses and references during a call
    memory: Room  # for what machine code writes besides arrays


class DispatchFields(Struct):
    """What `run` needs besides a `Dispatch`."""

    runtime: Runtime
    new_scalar: int  # the address of PyArray_Scalar


class Input(NamedTuple):
    """What an argument must be.

    Attributes
    ----------
    kind : type
        ``np.ndarray``, `Tensor`, or the class of a Python number. A scalar of NumPy serves as an array without
        dimensions. Subclasses do not count: Python serves them.
    layout : Layout
        Its dtype and shape; the strides are those of a contiguous array.
    """

    kind: type
    layout: Layout


class Variant:
    """Machine code, and the arguments that it serves.

    Parameters
    ----------
    code : int
        The address of ``void f(char **inputs, char **outputs, char *scratch)``. The outputs are followed by the
        guards.
    inputs : sequence of Input
    outputs : sequence of Layout
        Outputs without dimensions become scalars of NumPy.
    guards : sequence of array
        The outcome of each guard. If a value has other bits, the results are dropped and the variant does not serve.
    scratch : int
        Bytes of memory, aligned to 64, that the code may use during a call.
    as_tensors : bool
        Whether results are tensors.
    is_single : bool
        Whether the only output is returned as it is. Else all stand in a tuple.
    is_long : bool
        Whether other threads of Python run meanwhile. To let them takes 0.1 µs.
    """

    __slots__ = ("data", "held")
    data: np.ndarray  # `VariantFields`
    held: tuple[Any, ...]

    def __init__(
        self,
        code: int,
        inputs: Sequence[Input],
        outputs: Sequence[Layout],
        *,
        guards: Sequence[np.ndarray] = (),
        scratch: int = 0,
        as_tensors: bool = False,
        is_single: bool = False,
        is_long: bool = False,
    ) -> None:
        pieces = _Pieces(sizeof(VariantFields) // WORD)
        offsets, outcomes = _outcomes(guards)
        offset, rows = WORD * len(outcomes), []
        for layout in outputs:
            rows += _output(pieces, layout, offset, as_tensors)
            offset += 0 if layout.ndim else max(-(-layout.nbytes // WORD) * WORD, WORD)
        start = -(-offset // _ALIGNMENT) * _ALIGNMENT
        n_words = 3 * len(inputs) + 2 * len(outputs) + len(guards)
        fields = {
            "code": code,
            "flags": IS_SINGLE * is_single | RELEASES_GIL * is_long,
            "n_inputs": len(inputs),
            "n_outputs": len(outputs),
            "n_guards": len(guards),
            "guard_words": len(outcomes),
            "inputs": pieces.add([word for one in inputs for word in _input(pieces, one)]),
            "outputs": pieces.add(rows),
            "guards": pieces.add(offsets),
            "outcomes": pieces.add(outcomes),
            "scratch": start,
            "words": _room(pieces, WORD * n_words, WORDS_ON_STACK),
            "memory": _room(pieces, start + scratch, MEMORY_ON_STACK),
        }
        for name, word in fields.items():
            pieces.words[VariantFields.word(name)] = word
        self.data, self.held = pieces.placed(), tuple(pieces.held)


class _Address(int):
    """The number of a word among pieces, which becomes its address."""


class _Pieces:
    """Lists of words, to be placed one after the other in one memory, and the objects to which they refer."""

    def __init__(self, first: int) -> None:
        self.words: list[int] = [0] * first
        self.held: list[object] = []

    def add(self, words: Sequence[int]) -> _Address:
        """Append a list of words, and return what becomes its address."""
        start = _Address(len(self.words))
        self.words += words
        return start

    def hold(self, thing: object) -> int:
        """Hold an object, and return its identity."""
        self.held.append(thing)
        return id(thing)

    def arguments(self, shape: tuple[int, ...], dtype: np.dtype) -> _Address:
        """Append the arguments of `tapegrad.runtime.pool.empty`."""
        return self.add([self.hold(shape), self.hold(dtype)])

    def placed(self) -> np.ndarray:
        """Return the memory."""
        memory = watch(np.zeros(len(self.words), dtype=np.int64), "a variant of a program")
        start = memory.ctypes.data
        memory[:] = [start + WORD * word if isinstance(word, _Address) else word for word in self.words]
        return memory


def _room(pieces: _Pieces, nbytes: int, on_stack: int) -> _Address:
    """Append the words of `Room`."""
    if nbytes <= on_stack:
        return pieces.add([0, 0])
    idle = pieces.hold([]) if nbytes < pool.THRESHOLD else 0
    return pieces.add([idle, pieces.arguments((nbytes + _ALIGNMENT,), _BYTE)])


def _outcomes(guards: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    """Return where each guard's value begins, and the words of all outcomes."""
    offsets: list[int] = []
    words: list[int] = []
    for outcome in guards:
        offsets.append(WORD * len(words))
        raw = outcome.tobytes()
        words += np.frombuffer(raw.ljust(-(-len(raw) // WORD) * WORD, b"\0"), np.int64).tolist()
    return offsets, words


def _of_new_array(layout: Layout) -> Layout:
    """Return the layout of an array that NumPy makes: where it has no element, strides are as NumPy likes."""
    shape, dtype = layout.shape, layout.dtype
    return contiguous_layout(shape, dtype) if layout.size else layout_of(np.empty(shape, dtype))


def _input(pieces: _Pieces, wanted: Input) -> list[int]:
    """Return the words of `InputFields`."""
    kind, layout = wanted
    is_array = kind is np.ndarray or kind is Tensor
    over_array = _of_new_array(layout)
    inline = intern((), (), layout.dtype, inline=True) if layout.ndim == 0 else over_array
    scalar = 0
    if is_array:
        scalar = pieces.hold(layout.dtype.type) if layout.ndim == 0 else 0
    elif kind in (float, complex):
        scalar = pieces.hold(kind)
    return [
        pieces.hold(kind),
        scalar,
        kind in (int, bool),
        pieces.hold(over_array),
        pieces.hold(inline),
        pieces.hold(layout.dtype),
        layout.ndim,
        pieces.add(layout.shape),
    ]


def _output(pieces: _Pieces, layout: Layout, offset: int, as_tensor: bool) -> list[int]:
    """Return the words of `OutputFields`."""
    shape, dtype = layout.shape, layout.dtype
    is_large = layout.ndim > 0 and layout.nbytes >= pool.THRESHOLD
    of_tensor = _of_new_array(layout) if shape else intern((), (), dtype, inline=True)
    return [
        pieces.hold(dtype),
        layout.ndim,
        pieces.add(shape),
        pieces.arguments(shape, dtype) if is_large else 0,
        offset,
        pieces.hold(of_tensor) if as_tensor else 0,
    ]


class Dispatch:
    """The ``self`` of an entry: its variants, and what is called if none serves.

    Attributes
    ----------
    variants : tuple of Variant
        Those that are tried, in this order. Replace the tuple to change them: calls under way keep the old one.
    fallback : callable
        Called with all arguments of a call that no variant serves.
    """

    __slots__ = ("data", "fallback", "variants")

    def __init__(self, fallback: Callable[..., Any], data: np.ndarray) -> None:
        self.fallback, self.data = fallback, data  # the memory of `DispatchFields`
        self.variants: tuple[Variant, ...] = ()


class VariantObject(Object, of=Variant):
    """A variant."""

    data: NDArray = slot("data")


class DispatchObject(Object, of=Dispatch):
    """The ``self`` of an entry."""

    fallback: Object = slot("fallback")
    data: NDArray = slot("data")
    variants: Tuple = slot("variants")

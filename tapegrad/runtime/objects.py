"""The objects of CPython and NumPy as structs. Every field is checked against a live object at import."""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
import weakref
from typing import Any, Final

import numpy as np

from tapegrad.runtime.memory import peek
from tapegrad.runtime.structs import WORD, Array, Struct, embedded, int32, slot

__all__ = [
    "ALIGNED", "C_CONTIGUOUS", "WRITEABLE", "Builtin", "Bytes", "List", "NDArray", "Object", "Scalar", "Slice", "Tuple",
    "Type", "Ufunc", "check_objects", "new_array_function", "numpy_core", "numpy_function", "pointer_in",
]  # fmt: skip


class Object(Struct):
    """The head of every object. The lower half of the first word counts references, in all versions of CPython."""

    references: int = int32()
    type: Type


class Type(Object):
    """A class."""

    reserved: Array[int] = embedded(30)
    base: Type  # the first class that it is derived from


FLAGS: Final = 19  # the word of a class that has its flags, behind the head
_HAS_VECTORCALL: Final = 1 << 11


def inherit_vectorcall(kind: type) -> None:
    """Let CPython call the objects of a class as it calls those of its base, which is one of CPython's own.

    Before Python 3.12 it calls them in a slower way, with a tuple of their arguments.
    """
    if sys.version_info < (3, 12) and not hasattr(sys, "gettotalrefcount"):  # a debug build has larger heads
        ctypes.c_ulong.from_address(id(kind) + WORD * (Type.word("reserved") + FLAGS)).value |= _HAS_VECTORCALL


class List(Object):
    """A list; its items stand elsewhere."""

    length: int
    items: Array[Object]
    allocated: int


class Tuple(Object):
    """A tuple, with its items inside."""

    length: int
    if sys.version_info >= (3, 14):
        hash: int
    items: Array[Object] = embedded()


class Bytes(Object):
    """Bytes, here of whole words."""

    length: int
    hash: int
    words: Array[int] = embedded()


class Slice(Object):
    """A slice: start, stop and step."""

    items: Array[Object] = embedded(3)


class Scalar(Object):
    """A Python float or complex, or a NumPy scalar: the value follows the header."""

    value: Array[int] = embedded()


class Builtin(Object):
    """A built-in function, such as one of ours: its definition, and the object that it belongs to."""

    definition: int
    owner: Object


class NDArray(Object):
    """A NumPy array."""

    data: Array[int]
    ndim: int = int32()
    shape: Array[int]
    strides: Array[int]
    base: Object
    dtype: Object
    flags: int = int32()
    weak_references: Object


C_CONTIGUOUS: Final = 0x0001
OWNS_DATA: Final = 0x0004
ALIGNED: Final = 0x0100
WRITEABLE: Final = 0x0400
#: Flags of an array as NumPy makes it.
AS_MADE: Final = C_CONTIGUOUS | OWNS_DATA | ALIGNED | WRITEABLE


class Ufunc(Object):
    """The first fields of a ufunc, which are part of NumPy's C API."""

    nin: int = int32()
    nout: int = int32()
    nargs: int = int32()
    identity: int = int32()
    functions: Array[int]
    data: Array[int]
    ntypes: int = int32()
    reserved: int = int32()
    name: int
    types: int  # one byte for each operand and result of each loop


# ---- addresses that other extension modules publish in capsules: NumPy's C API, SciPy's BLAS

_name_of: Final = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def pointer_in(capsule: object) -> int:
    """Return the address that a capsule holds."""
    address: int = _pointer(capsule, _name_of(capsule))
    return address


def numpy_core() -> Any:
    """Return the extension module that NumPy is made of."""
    return importlib.import_module("numpy._core._multiarray_umath")


def numpy_function(table: str, index: int) -> int:
    """Return the address of a function of NumPy's C API, from one of its two tables. Indices never change."""
    return Array[int](pointer_in(getattr(numpy_core(), table))).unchecked(index)


def new_array_function() -> int:
    """Return the address of PyArray_Empty, which takes the number of dimensions, lengths, the dtype and 0."""
    return numpy_function("_ARRAY_API", 184)


# ---- the check


class _Slots:
    __slots__ = ("a", "b")
    a: object
    b: object


class _Derived(_Slots):
    pass


class _SlotsFields(Object, of=_Slots):
    a: Object = slot("a")
    b: Object = slot("b")


def check_objects() -> None:
    """Check every field against a live object.

    Raises
    ------
    ImportError
        If this Python, or this NumPy, lays out an object in another way.
    """
    text, bits = b"12345678", int.from_bytes(struct.pack("d", 3.25), sys.byteorder)
    items: list[object] = [text, None, text]
    array, frozen = np.array([[1.5, 2.5, 3.5]]), np.zeros(2)
    part, watch = array[:, ::2], weakref.ref(array)
    frozen.flags.writeable = False
    lists = List(id(items))
    before = lists.references  # not sys.getrefcount: since Python 3.14 a call may borrow its arguments
    slots = _Slots()
    slots.a, slots.b = text, items
    tuple_, slice_ = (text, items), slice(text, None, items)
    pair, some = Tuple(id(tuple_)), Slice(id(slice_))
    whole, cut, add = NDArray(id(array)), NDArray(id(part)), Ufunc(id(np.add))
    fields = _SlotsFields(id(slots))
    method = array.copy
    codes = bytes(np.dtype(code).num for loop in np.add.types for code in loop.replace("->", ""))
    room = (items.__sizeof__() - list.__basicsize__) // 8
    words = int.from_bytes(text, sys.byteorder)
    checks: dict[str, tuple[object, object]] = {
        "references": (lists.references - before, 3),  # of slots, tuple_ and slice_
        "type": ([lists.type, whole.type], [id(list), id(np.ndarray)]),
        "class": ([Type(id(bool)).base, Type(id(_Derived)).base], [id(int), id(_Slots)]),
        "list": ([lists.length, lists.items[2], lists.allocated], [3, id(text), room]),
        "tuple": ([pair.length, pair.items[0], pair.items[1]], [2, id(text), id(items)]),
        "slice": ([some.items[0], some.items[1], some.items[2]], [id(text), id(None), id(items)]),
        "built-in function": (Builtin(id(method)).owner, id(array)),
        "bytes": ([Bytes(id(text)).length, Bytes(id(text)).words[0]], [8, words]),
        "float": ([Scalar(id(box)).value[0] for box in _boxes], [bits] * len(_boxes)),
        "array": (
            [whole.data, whole.ndim, cut.shape.unchecked(1), cut.strides.unchecked(1), cut.base, cut.dtype],
            [array.ctypes.data, 2, 2, 16, id(array), id(array.dtype)],
        ),
        "weak references of an array": ([whole.weak_references, cut.weak_references], [id(watch), 0]),
        "flags of an array": (
            [NDArray(id(one)).flags & AS_MADE for one in (array, part, frozen)],
            [AS_MADE, ALIGNED | WRITEABLE, AS_MADE & ~WRITEABLE],
        ),
        "ufunc": (
            [add.nin, add.nout, add.nargs, add.ntypes, peek(add.name, 3), peek(add.types, len(codes))],
            [2, 1, 3, np.add.ntypes, b"add", codes],
        ),
        "slots": ([fields.a, fields.b], [id(text), id(items)]),
    }
    for name, (found, wanted) in checks.items():
        if found != wanted:
            raise ImportError(
                f"tapegrad reads objects where CPython with a GIL and NumPy keep them; {sys.implementation.name} "
                f"{sys.version.split()[0]} with NumPy {np.__version__} keeps the fields of {name!r} elsewhere "
                f"({found}, not {wanted}). Use CPython 3.11 or later, not the free-threaded build."
            )


_boxes: Final = (3.25, np.float64(3.25), complex(3.25, 1), np.complex128(3.25))
check_objects()

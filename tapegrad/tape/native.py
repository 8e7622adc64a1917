"""Compiled functions that Python calls as it calls its own, and what they need to know of CPython's objects.

A function here is plain Python over addresses, ``function(self, args, nargs)``, compiled by `tapegrad.compiler.jit`
and called with the GIL held in the form of CPython's fast functions (METH_FASTCALL): ``self`` and what lies at ``args``
are objects. With a fourth parameter it takes keywords too: the tuple of their names, or 0. It returns an object with a
reference, or 0 if Python raised. A call takes 40 ns, through ctypes 500.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.compiler.cache import address_of
from tapegrad.compiler.interpreter import Interpreted
from tapegrad.compiler.intrinsics import external, get
from tapegrad.runtime import pool
from tapegrad.runtime.memory import INTERPRETS, watch, watch_forever
from tapegrad.tape.entries import Leaf, Page, Recorder, recorder
from tapegrad.tape.layout import FLOAT, INTEGER, OBJECT_HEADER, Layout, layout_of
from tapegrad.tape.plan import Plan
from tapegrad.tape.views import renewed
from tapegrad.tensor import Tensor

# Words that all functions share: objects, ...
TENSOR, FLOAT_TYPE, INT_TYPE, LIST_TYPE, ARRAY_TYPE, NONE, FALSE, TRUE, FLOAT_LAYOUT, INT_LAYOUT, RECORDER = range(11)
NEXT_PAGE, IS_GRAD_ENABLED, EMPTY, MODE_AT = range(11, 15)
# ... and the words at which objects keep what.
DATA_OF, LAYOUT_OF, NODE_OF, GRAD_OF, PAGE_OF, FREE_OF, ADDRESS_OF_PLAN = range(15, 22)
SLOT_OF_LEAF, TENSOR_OF_LEAF, HOOKS_OF_LEAF, POST_HOOKS_OF_LEAF = range(22, 26)
PLAIN_OF, SHAPE_OF, DTYPE_OF, CONTIGUOUS_OF, INLINE_OF, NBYTES_OF, EMPTY_LARGE = range(26, 33)
SLICE_TYPE, TUPLE_TYPE, BASE_OF, LAYOUT_OF_ARRAY, FLOAT64_TYPE, FLOAT64_LAYOUT = range(33, 39)
ARRAY_COPY, INDEX_ERROR, RENEW, SHARED_WORDS = range(39, 43)

# Words of any object, and of arrays, lists and bytes.
REFERENCES, TYPE = 0, 1
DATA: Final = OBJECT_HEADER // 8
LENGTH, ITEMS = DATA, DATA + 1
BYTES: Final = 4
TUPLE_ITEMS: Final = 3
SLICE_ITEMS: Final = 2  # start, stop and step
ARRAY_NDIM: Final = 3  # the lower half of the word, as of the flags
ARRAY_DIMS: Final = 4
ARRAY_DESCR: Final = 7
ARRAY_FLAGS: Final = 8
TYPE_BASE: Final = 32  # of a class: the one that it is made from
C_CONTIGUOUS: Final = 0x0001
ALIGNED: Final = 0x0100
WRITEABLE: Final = 0x0400

take: Final = external("Py_IncRef", 1)
drop: Final = external("Py_DecRef", 1)
new_object: Final = external("PyType_GenericAlloc", 2)
new_list: Final = external("PyList_New", 1)
append: Final = external("PyList_Append", 2)
new_bytes: Final = external("PyBytes_FromStringAndSize", 2)
integer: Final = external("PyLong_AsSsize_t", 1)
integer_or_overflow: Final = external("PyLong_AsLongLongAndOverflow", 2)
new_integer: Final = external("PyLong_FromSsize_t", 1)
as_float: Final = external("PyNumber_Float", 1)
add: Final = external("PyNumber_Add", 2)
vectorcall: Final = external("PyObject_Vectorcall", 4)
error_matches: Final = external("PyErr_ExceptionMatches", 1)
clear_error: Final = external("PyErr_Clear", 0)
release_gil: Final = external("PyEval_SaveThread", 0)
take_gil: Final = external("PyEval_RestoreThread", 1)


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]  # fmt: skip


_METH_FASTCALL: Final = 0x80
_METH_KEYWORDS: Final = 0x02


def plain_of(known: int, layout: int) -> int:
    """Return the plain form of a layout: see `Layout.plain`."""
    plain = get(layout, get(known, PLAIN_OF))
    return layout if plain == get(known, NONE) else plain


def keep_forever(thing: object) -> None:
    """Let an object outlive Python's end, in the course of which functions may still be called or die."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


@functools.cache
def _method(function: Callable[..., int], name: str, doc: str) -> _MethodDef:
    count = function.__code__.co_argcount
    address = address_of(function.__name__, function, ("int64",) * count)
    flags = _METH_FASTCALL | (_METH_KEYWORDS if count == 4 else 0)
    method = _MethodDef(name.encode(), address, flags, doc.encode())
    keep_forever(method)
    return method


_new_function: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def load(function: Callable[..., int], own: Any, name: str = "", doc: str = "") -> Callable[..., Any]:
    """Return a compiled function as Python calls it, with ``own`` as its first argument."""
    if INTERPRETS:
        return Interpreted(function, own, name or function.__name__, doc)
    method = _method(function, name or function.__name__, doc)
    made: Callable[..., Any] = _new_function(ctypes.addressof(method), own, None)
    return made


def as_method(function: Callable[..., Any]) -> Any:
    """Return a compiled function as a class needs it to take the instance as its first operand."""
    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(function)


def _word_of(kind: type, name: str) -> int:
    """Return the word of an instance in which a slot stands, from what CPython says of it (PyMemberDef)."""
    word = ctypes.c_int64.from_address
    definition = word(id(kind.__dict__[name]) + 40).value
    return word(definition + 16).value // 8


_objects: Final = {
    TENSOR: Tensor, FLOAT_TYPE: float, INT_TYPE: int, LIST_TYPE: list, ARRAY_TYPE: np.ndarray, NONE: None,
    FALSE: False, TRUE: True, FLOAT_LAYOUT: FLOAT, INT_LAYOUT: INTEGER, RECORDER: recorder, NEXT_PAGE: recorder.turn,
    IS_GRAD_ENABLED: modes.is_grad_enabled, EMPTY: np.empty, EMPTY_LARGE: pool.empty, SLICE_TYPE: slice,
    TUPLE_TYPE: tuple, LAYOUT_OF_ARRAY: layout_of, FLOAT64_TYPE: np.float64, FLOAT64_LAYOUT: layout_of(np.float64(0)),
    ARRAY_COPY: np.ndarray.copy, INDEX_ERROR: IndexError, RENEW: renewed,
}  # fmt: skip
_slots: Final[dict[int, tuple[type, str]]] = {
    DATA_OF: (Tensor, "_data"), LAYOUT_OF: (Tensor, "_layout"), NODE_OF: (Tensor, "_node"),
    GRAD_OF: (Tensor, "_grad"), PAGE_OF: (Recorder, "page"), FREE_OF: (Page, "free"),
    ADDRESS_OF_PLAN: (Plan, "address"), SLOT_OF_LEAF: (Leaf, "slot"), TENSOR_OF_LEAF: (Leaf, "tensor"),
    HOOKS_OF_LEAF: (Leaf, "hooks"), POST_HOOKS_OF_LEAF: (Leaf, "post_hooks"), PLAIN_OF: (Layout, "_plain"),
    SHAPE_OF: (Layout, "shape"), DTYPE_OF: (Layout, "dtype"), CONTIGUOUS_OF: (Layout, "contiguous"),
    INLINE_OF: (Layout, "inline"), NBYTES_OF: (Layout, "nbytes"), BASE_OF: (Tensor, "_base"),
}  # fmt: skip


@functools.cache
def shared() -> np.ndarray:
    """Return the words that all functions share.

    Raises
    ------
    ImportError
        If this Python keeps the slots of an object where nobody would expect them.
    """
    words = watch(np.zeros(SHARED_WORDS, dtype=np.int64), "the words that all functions share")
    for word, value in _objects.items():
        words[word] = id(value)
    for word, (kind, name) in _slots.items():
        words[word] = _word_of(kind, name)
    words[MODE_AT] = ctypes.addressof(modes.mode)
    watch_forever(ctypes.addressof(modes.mode), ctypes.sizeof(modes.mode), "the mode")
    keep_forever(words)
    probe = object.__new__(Tensor)
    probe._layout = FLOAT
    if ctypes.c_int64.from_address(id(probe) + 8 * int(words[LAYOUT_OF])).value != id(FLOAT):
        raise ImportError(f"tapegrad does not know where Python {sys.version.split()[0]} keeps the slots of an object")
    return words

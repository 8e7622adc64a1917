"""Compiled functions that Python calls like built-in functions, and the functions of CPython that they call.

Such a function is written as ``function(self, args, nargs)``, in Python over addresses, and compiled by
`tapegrad.compiler.jit`. CPython calls it as a fast function (METH_FASTCALL), with the GIL held: ``self`` is an object,
and ``args`` an array of `nargs` objects. A function with a fourth parameter takes keywords too: the parameter is the
tuple of their names, or 0. The function returns an object with a reference, or 0 if Python raised. A call takes 40 ns,
through ctypes it takes 500.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from tapegrad.compiler import cache
from tapegrad.compiler.interpreter import Interpreted
from tapegrad.compiler.intrinsics import OfPlatform, external, words
from tapegrad.compiler.library import words_of
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.runtime.objects import FLAGS, Tuple, Type
from tapegrad.tape.layout import OBJECT_HEADER

R = TypeVar("R")

C_INT: Final = 0xFFFFFFFF  # the bits of a C int in a word
DATA: Final = OBJECT_HEADER // 8  # the word in which an array has its data pointer, and a number its value

_allocate: Final = external("PyType_GenericAlloc", 2)  # of a class, and of how many items: a tuple without them, too
new_list: Final = external("PyList_New", 1)
new_tuple: Final = external("PyTuple_New", 1)
get_item: Final = external("PyObject_GetItem", 2)
append: Final = external("PyList_Append", 2)
new_bytes: Final = external("PyBytes_FromStringAndSize", 2)
integer: Final = external("PyLong_AsSsize_t", 1)
integer_or_overflow: Final = external("PyLong_AsLongLongAndOverflow", 2)
new_integer: Final = external("PyLong_FromSsize_t", 1)
as_float: Final = external("PyNumber_Float", 1)
add: Final = external("PyNumber_Add", 2)
vectorcall: Final = external("PyObject_Vectorcall", 4)
error_matches: Final = external("PyErr_ExceptionMatches", 1)
next_item: Final = external("PyDict_Next", 4)  # of a dict, and where a position, a key and a value stand
clear_error: Final = external("PyErr_Clear", 0)
new_function: Final = external("PyCFunction_NewEx", 3)  # of a definition, an owner, and 0
release_gil: Final = external("PyEval_SaveThread", 0)
take_gil: Final = external("PyEval_RestoreThread", 1)


# ---- new objects

if sys.version_info < (3, 14):
    new_object: Final = _allocate
else:
    _IS_TUPLE: Final = 1 << 26

    def new_object(kind: Type, count: int) -> int:
        """Return a new object. Since Python 3.14 there is one empty tuple, and tuples keep their hash: -1 for none."""
        if kind.reserved[FLAGS] & _IS_TUPLE == 0:
            return _allocate(kind, count)
        if kind.base.base == 0:  # tuple itself, behind which is only object
            return new_tuple(count)
        made = Tuple(_allocate(kind, count))
        if made != 0:
            made.hash = -1
        return made


# ---- reference counts, changed in place as CPython's macros do: calls would be 2 % of recording a product

# Since 3.12 an object is immortal if the lower half of its count is negative, and its count does not change.
_HAS_IMMORTALS: Final = sys.version_info >= (3, 12)
# Later versions count in another way, and a debug build counts more. There we call CPython's own functions.
_COUNTS_IN_PLACE: Final = sys.version_info < (3, 14) and not hasattr(sys, "gettotalrefcount")


#: What a reference adds to a count: 1, and 0 to that of an object that is immortal.
_share: Final = OfPlatform("tapegrad_share", """\
  %half.{n} = trunc i64 {word} to i32
  %mortal.{n} = icmp sge i32 %half.{n}, 0
{result}zext i1 %mortal.{n} to i64""" if _HAS_IMMORTALS else "{result}add i64 0, 1")  # fmt: skip


@words
def _incref(builder: Any, address: Any) -> None:
    """Take a reference to an object."""
    word = address.type
    place = builder.inttoptr(address, word.as_pointer())
    count = builder.load(place, typ=word)
    builder.store(builder.add(count, _share.emit(builder, count)), place)


@words
def _decref(builder: Any, address: Any) -> None:
    """Drop a reference to an object, and free it if that was the last one."""
    from llvmlite import ir

    word = address.type
    place = builder.inttoptr(address, word.as_pointer())
    count = builder.load(place, typ=word)
    with builder.if_then(builder.icmp_unsigned("!=", _share.emit(builder, count), word(0))):
        count = builder.sub(count, word(1))
        builder.store(count, place)
        with builder.if_then(builder.icmp_unsigned("==", count, word(0)), likely=False):
            kind = ir.FunctionType(ir.VoidType(), [word])
            name = "_Py_Dealloc"
            builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), [address])


incref: Final = _incref if _COUNTS_IN_PLACE else external("Py_IncRef", 1)
decref: Final = _decref if _COUNTS_IN_PLACE else external("Py_DecRef", 1)
incref.symbol, decref.symbol = "Py_IncRef", "Py_DecRef"  # the interpreter calls these


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]  # fmt: skip


_METH_FASTCALL: Final = 0x80
_METH_KEYWORDS: Final = 0x02


def keep_forever(thing: object) -> None:
    """Leak a reference: compiled functions may run, or die, during interpreter shutdown."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


@functools.cache  # one function has many names: each operation's call is the same machine code
def _address(function: Callable[..., int]) -> int:
    return cache.address_of(function.__name__, function, words_of(function))


@functools.cache
def _method(function: Callable[..., int], name: str, doc: str) -> int:
    """Return the address of a compiled function's PyMethodDef."""
    flags = _METH_FASTCALL | (_METH_KEYWORDS if function.__code__.co_argcount == 4 else 0)
    method = _MethodDef((name or function.__name__).encode(), _address(function), flags, doc.encode())
    keep_forever(method)
    return ctypes.addressof(method)


_new_function: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def load(function: Callable[..., int], owner: Any, name: str = "", doc: str = "") -> Callable[..., Any]:
    """Return a compiled function as a built-in function; its ``self`` is always `owner`."""
    if INTERPRETS:
        return Interpreted(function, owner, name or function.__name__, doc)
    builtin: Callable[..., Any] = _new_function(_method(function, name, doc), owner, None)
    return builtin


def definition(function: Callable[..., int]) -> int:
    """Return the address of what says how a compiled function is called, for `new_function`."""
    return _method(function, "", "")


def make_together(functions: Sequence[Any]) -> bool:
    """Compile functions that are loaded soon, in a thread: see `tapegrad.compiler.cache.make_together`."""
    return not INTERPRETS and cache.make_together(functions)


class Lazy(Generic[R]):
    """Compiled functions that are loaded, or compiled, when they are first used: ``lazy.name(...)``.

    Parameters
    ----------
    **loaders : callable
        By the function's name: what returns the loaded function.
    """

    def __init__(self, **loaders: Callable[[], Callable[..., R]]) -> None:
        self._loaders = loaders

    def __getattr__(self, name: str) -> Callable[..., R]:
        if name not in self._loaders:
            raise AttributeError(name)
        function = self._loaders[name]()
        setattr(self, name, function)  # the next use finds it without coming here
        return function


def as_method(function: Callable[..., Any]) -> Any:
    """Return a compiled function as a method: the instance becomes its first argument."""
    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(function)

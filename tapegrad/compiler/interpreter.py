"""Runs compiled functions in Python (TAPEGRAD_INTERPRET=1): a debugger can step through them, and memory is checked.

The functions are the same ones that `frontend.py` compiles. Structs and intrinsics have a meaning in Python too, and
this file is that of the intrinsics. Kernels, and NumPy's and BLAS's functions, stay compiled: `call` runs them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any, Final

import numpy as np

from tapegrad.runtime import memory, platform
from tapegrad.runtime.locks import in_child
from tapegrad.runtime.structs import struct_hints

__all__ = ["Interpreted", "meaning_of"]


class _Thread(threading.local):
    """What a thread has at hand: the stack, an exception that Python raised, and whether it holds the lock."""

    def __init__(self) -> None:
        self.stack: list[np.ndarray] = []
        self.raised: BaseException | None = None
        self.fetched: list[BaseException | None] = []
        self.holds = False


_thread: Final = _Thread()
# Compiled functions hold the GIL from call to call. So one thread at a time interprets between its calls of Python.
_lock = threading.Lock()


def _renew() -> None:
    global _lock
    _lock = threading.Lock()
    if _thread.holds:
        _lock.acquire()


in_child(_renew)


def _hold(holds: bool) -> bool:
    """Take the lock, or give it back; return whether this thread held it before."""
    before = _thread.holds
    if holds and not before:
        _lock.acquire()
    _thread.holds = holds
    if before and not holds:
        _lock.release()
    return before


class Interpreted:
    """A function that Python calls as it would call the compiled one (see `tapegrad.recording.native`)."""

    def __init__(self, function: Callable[..., int], owner: object, name: str, doc: str) -> None:
        assert isinstance(function, FunctionType)
        self._function, self._owner, self.__name__, self.__doc__ = function, owner, name, doc
        code = function.__code__
        self._kinds = [struct_hints(function).get(name, int) for name in code.co_varnames[: code.co_argcount]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        if kwargs and len(self._kinds) < 4:
            raise TypeError(f"{self.__name__}() takes no keyword arguments")
        names = tuple(kwargs)
        values = np.array([*map(id, args), *map(id, kwargs.values()), 0], dtype=np.int64)
        memory.watch(values, f"the arguments of {self.__name__}")
        words = id(self._owner), values.ctypes.data, len(args), id(names) if names else 0
        stack, raised, held = len(_thread.stack), _thread.raised, _hold(True)
        _thread.raised = None
        try:
            result = self._function(*(kind(word) for kind, word in zip(self._kinds, words, strict=False)))
            if _thread.raised is not None:
                raise _thread.raised
            value = memory.object_at(result)
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(result))
            return value
        finally:
            _hold(held)
            _thread.raised = raised
            del _thread.stack[stack:]


def meaning_of(name: str, symbol: str) -> Callable[..., Any]:
    """Return what does the same as an intrinsic does in compiled code, or the C function of this symbol of CPython."""
    if symbol in _OF_PYTHON:
        return _OF_PYTHON[symbol]
    if symbol:
        failed = -1 if symbol in _RETURN_INTEGERS else 0
        return partial(_call, _symbol(symbol), failed=failed)
    return _INTRINSICS[name]


def _call(address: int, *args: int, failed: int = 0) -> int:
    """Call a C function with the GIL held; an exception waits until the function at hand returns 0."""
    try:
        return int(_prototype(len(args))(address)(*args))
    except BaseException as error:
        _thread.raised = error
        return failed


@cache
def _prototype(count: int) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)


@cache
def _symbol(name: str) -> int:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


# ---- functions of CPython that are other ones here


def _vectorcall(*args: int) -> int:
    held = _hold(False)  # what is called may wait for another thread
    try:
        return _call(_symbol("PyObject_Vectorcall"), *args)
    finally:
        _hold(held)


def _exception_matches(kind: int) -> int:
    return int(isinstance(_thread.raised, memory.object_at(kind)))


def _clear_exception() -> int:
    _thread.raised = None
    return 0


def _fetch_exception(*_: int) -> int:
    _thread.fetched.append(_thread.raised)
    return _clear_exception()


def _restore_exception(*_: int) -> int:
    _thread.raised = _thread.fetched.pop()
    return 0


_OF_PYTHON: Final[dict[str, Callable[..., int]]] = {
    "PyObject_Vectorcall": _vectorcall,
    "PyErr_ExceptionMatches": _exception_matches,
    "PyErr_Clear": _clear_exception,
    "PyErr_Fetch": _fetch_exception,
    "PyErr_Restore": _restore_exception,
    "PyEval_SaveThread": lambda: int(_hold(False)),
    "PyEval_RestoreThread": lambda held: int(_hold(bool(held))),
}
_RETURN_INTEGERS: Final = frozenset(
    (
        "PyLong_AsSsize_t",
        "PyLong_AsLongLongAndOverflow",
        "PyList_Append",
        "PyObject_SetAttr",
        "PyDict_SetItem",
        "PyDict_DelItem",
        "PyObject_GenericSetDict",
    )
)


# ---- intrinsics


def _stack(nbytes: int) -> int:
    block = memory.watch(np.empty(nbytes + 64, dtype=np.uint8), "the stack")
    _thread.stack.append(block)
    return -(-block.ctypes.data // 64) * 64


def _memset(address: int, nbytes: int) -> None:
    if nbytes:
        memory.check(address, 0, nbytes)
        ctypes.memset(address, 0, nbytes)


def _memcpy(target: int, source: int, nbytes: int) -> None:
    if nbytes:
        memory.check(target, 0, nbytes)
        memory.check(source, 0, nbytes)
        ctypes.memmove(target, source, nbytes)


def _fenv(name: str) -> Callable[[int], int]:
    return lambda which: int(getattr(platform.c_library(), name)(which)) if platform.has("fenv") else 0


_INTRINSICS: Final[dict[str, Callable[..., Any]]] = {
    "get": lambda address, index: memory.read(address, 8 * index, 8),
    "put": lambda address, index, value: memory.write(address, 8 * index, 8, value),
    "_stack": _stack,
    "memset": _memset,
    "memcpy": _memcpy,
    "end_streams": lambda: None,  # the kernels that stream are compiled, and interpreted code has the GIL
    "call": _call,
    "call_void": _call,
    "clz": lambda x: 64 - (x & (1 << 64) - 1).bit_length(),
    "float_errors": _fenv("fetestexcept"),
    "clear_float_errors": _fenv("feclearexcept"),
    "raise_float_errors": _fenv("feraiseexcept"),
}

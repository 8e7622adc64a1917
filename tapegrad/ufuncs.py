"""NumPy ufuncs whose loops are kernels of ours, for functions that NumPy and SciPy compute more slowly.

They are made by `PyUFunc_FromFuncAndData` of NumPy's C API, at first use: until then nothing is loaded or compiled.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import cache, vmath
from tapegrad.intrinsics import (  # fmt: skip
    Intrinsic,
    as_pointer,
    clear_float_errors,
    float_errors,
    get,
    load,
    load_at,
    raise_float_errors,
    stack,
    store,
    store_at,
)

__all__ = ["Function"]

_NUMBERS = {"float32": 11, "float64": 12}  # of dtypes in NumPy's C API
#: The errors of <fenv.h> but FE_INEXACT, which no one looks at.
FLOAT_ERRORS = 15 if platform.machine().lower() in ("aarch64", "arm64") else 29
_BLOCK = 128
_lock = threading.RLock()
_alive: list[Any] = []  # NumPy keeps the addresses of what a ufunc is made from


class Function:
    """A function of one array: a ufunc of ours for some dtypes, and another function for the rest.

    Parameters
    ----------
    name : str
        Of the function in `tapegrad.vmath`.
    other : callable
        For other dtypes.
    dtypes : sequence of str
        Where ours is the faster one.
    invalid : bool
        Whether the function is nan for numbers that are not, of which NumPy is to be told.
    """

    def __init__(
        self,
        name: str,
        other: Callable[..., Any],
        dtypes: Sequence[str] = ("float64", "float32"),
        invalid: bool = False,
    ) -> None:
        self.name = self.__name__ = name
        self.other = other
        self.dtypes = dtypes
        self.invalid = invalid
        self._made: dict[str, Callable[..., Any]] = {}

    def of(self, dtype: np.dtype) -> Callable[..., Any]:
        """Return what computes the function for a dtype."""
        name = dtype.name
        if name not in self.dtypes:
            return self.other
        if name not in self._made:
            with _lock:
                if name not in self._made:
                    self._made[name] = _make(self.name, name, self.invalid)
        return self._made[name]

    def __call__(self, x: Any) -> Any:
        """Compute the function."""
        return self.of(np.result_type(x))(x)


def _make(name: str, dtype: str, invalid: bool) -> Callable[..., Any]:
    """Return the ufunc of a function of one number, for one dtype."""
    import ctypes

    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    loop = cache.address_of(f"ufunc-{name}-{dtype}", inner_loop(getattr(vmath, name), dtype, invalid), ("int64",) * 4)
    word, text = ctypes.c_void_p, ctypes.c_char_p
    functions, data = (word * 1)(loop), (word * 1)()
    types = bytes([_NUMBERS[dtype]] * 2)
    names = (name.encode(), f"{name} of tapegrad, for {dtype}.".encode())
    _alive.append((functions, data, types, names))
    pointer = ctypes.PYFUNCTYPE(word, ctypes.py_object, text)(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = ctypes.cast(pointer(_multiarray_umath._UFUNC_API, None), ctypes.POINTER(word))
    # (functions, data, types, ntypes, nin, nout, identity, name, doc, unused); -1: there is no identity.
    make = ctypes.PYFUNCTYPE(ctypes.py_object, word, word, text, *[ctypes.c_int] * 4, text, text, ctypes.c_int)(
        table[1]
    )
    made: Callable[..., Any] = make(ctypes.addressof(functions), ctypes.addressof(data), types, 1, 1, 1, -1, *names, 0)
    return made


def inner_loop(function: Intrinsic, dtype: str, invalid: bool) -> Callable[..., int]:
    """Return NumPy's inner loop ``(args**, dims*, steps*, data)`` of a function of one number.

    Vectors need neighbours, and a target that is not the source: all else goes through a block on the stack.
    """
    size = np.dtype(dtype).itemsize
    block = _BLOCK
    room = block * size
    error = 1 if invalid else 0  # FE_INVALID of <fenv.h> on x86 and ARM
    errors = FLOAT_ERRORS

    def kernel(args: int, dims: int, steps: int, data: int) -> int:
        source, target, n = get(args, 0), get(args, 1), get(dims, 0)
        step, skip = get(steps, 0), get(steps, 1)
        wrong = 0
        if step == size and skip == size and (source >= target + n * size or target >= source + n * size):
            x, out = as_pointer(source, dtype), as_pointer(target, dtype)
            for i in range(n):
                value = load(x, i)
                result = function(value)
                if error:
                    wrong |= (result != result) & (value == value)
                store(out, i, result)
        else:
            part = as_pointer(stack(room), dtype)
            for first in range(0, n, block):
                count = min(block, n - first)
                for i in range(count):
                    store(part, i, load_at(source, (first + i) * step, dtype))
                for i in range(count):
                    value = load(part, i)
                    result = function(value)
                    if error:
                        wrong |= (result != result) & (value == value)
                    store(part, i, result)
                for i in range(count):
                    store_at(target, (first + i) * skip, load(part, i), dtype)
        # Formulas compute both sides of every choice; what that raised is not the user's.
        if float_errors(errors):
            clear_float_errors(errors)
        if wrong:
            raise_float_errors(error)
        return 0

    return kernel

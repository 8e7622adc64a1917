"""Addresses that other extension modules publish in capsules: NumPy's C API, SciPy's BLAS."""

from __future__ import annotations

import ctypes
import importlib
from typing import Any, Final

_name: Final = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def pointer_in(capsule: object) -> int:
    """Return the address that a capsule holds."""
    address: int = _pointer(capsule, _name(capsule))
    return address


def numpy_core() -> Any:
    """Return the extension module that NumPy is made of."""
    return importlib.import_module("numpy._core._multiarray_umath")


def numpy_function(table: str, place: int) -> int:
    """Return the address of a function of NumPy's C API, in one of its two tables."""
    addresses = ctypes.cast(pointer_in(getattr(numpy_core(), table)), ctypes.POINTER(ctypes.c_void_p))
    address: int = addresses[place]
    return address

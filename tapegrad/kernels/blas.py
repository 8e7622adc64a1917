"""BLAS: the addresses of its routines, for compiled code to call."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Final

from tapegrad.runtime.objects import numpy_core, pointer_in

#: How names of BLAS begin for a dtype.
BLAS_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@cache
def blas_address(routine: str, dtype: str) -> int:
    """Return the address of a routine, e.g. gemm, of the BLAS that NumPy is linked with; where NumPy hides it, SciPy's.

    That of NumPy multiplies in the forward. Threads of another BLAS would look for work in a loop while these compute,
    and the other way round: with two on two cores, a product takes four times as long. Both widths of integers read
    the words of a block, as they are below 2^31.
    """
    name = BLAS_LETTERS[dtype] + routine
    library = ctypes.CDLL(numpy_core().__file__)  # what it depends on is searched too
    for symbol in (f"scipy_{name}_64_", f"{name}_64_", f"scipy_{name}_", f"{name}_"):
        if hasattr(library, symbol):
            address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
            assert address is not None
            return address
    return pointer_in(importlib.import_module("scipy.linalg.cython_blas").__pyx_capi__[name])

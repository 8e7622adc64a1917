"""BLAS: where its product of matrices is, for compiled code to call."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Final

from tapegrad.runtime.objects import numpy_core, pointer_in

#: How names of BLAS begin for a dtype.
GEMM_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@cache
def gemm_address(dtype: str) -> int:
    """Return where gemm is of the BLAS that NumPy is linked with; where NumPy hides it, SciPy's.

    That of NumPy multiplies in the forward. Threads of another BLAS would look for work in a loop while these compute,
    and the other way round: with two on two cores, a product takes four times as long. Both widths of integers read
    the words of a block, as they are below 2^31.
    """
    letter = GEMM_LETTERS[dtype]
    library = ctypes.CDLL(numpy_core().__file__)  # what it depends on is searched too
    for name in (f"scipy_{letter}gemm_64_", f"{letter}gemm_64_", f"scipy_{letter}gemm_", f"{letter}gemm_"):
        if hasattr(library, name):
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            assert found is not None
            return found
    return pointer_in(importlib.import_module("scipy.linalg.cython_blas").__pyx_capi__[f"{letter}gemm"])

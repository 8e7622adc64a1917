"""BLAS: the addresses of its routines, and products of matrices in compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.intrinsics import call_void, get, put, stack
from tapegrad.runtime.extensions import scipy_extension
from tapegrad.runtime.objects import numpy_core, pointer_in
from tapegrad.runtime.platform import has

#: How names of BLAS begin for a dtype.
BLAS_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@cache
def blas_address(routine: str, dtype: str) -> int:
    """Return the address of a routine, e.g. gemm, of the BLAS and LAPACK of NumPy; where it hides them, of SciPy's.

    That of NumPy multiplies in the forward. Threads of another BLAS would look for work in a loop while these compute,
    and the other way round: with two on two cores, a product takes four times as long. Both widths of integers read
    the words of a block, as they are below 2^31.
    """
    name = BLAS_LETTERS[dtype] + routine
    if has("numpy_blas"):
        library = ctypes.CDLL(numpy_core().__file__)  # what it depends on is searched too
        for symbol in (f"scipy_{name}_64_", f"{name}_64_", f"scipy_{name}_", f"{name}_"):
            if hasattr(library, symbol):
                address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
                assert address is not None
                return address
    lapack, blas = (scipy_extension("linalg", f"cython_{own}").__pyx_capi__ for own in ("lapack", "blas"))
    return pointer_in({**lapack, **blas}[name])


GEMM_WORDS: Final = 5  # of `gemm_words`


def gemm_words(dtype: str) -> list[int]:
    """Return what a `product` needs to know: the address of gemm, and the numbers 1 and 0 in two words each."""
    numbers = np.zeros(4, np.int64)
    numbers[:2].view(np.uint8)[: np.dtype(dtype).itemsize] = np.ones(1, dtype).view(np.uint8)
    return [blas_address("gemm", dtype), *numbers.tolist()]


def product(dtype: str) -> Callable[..., None]:
    """Return a function of kernels: C = op(A) op(B) or C += op(A) op(B), for matrices stored by columns.

    It takes the address of the `gemm_words`; which of A (1) and B (2) are transposed; lengths, and the matrices, each
    with the distance of its columns.
    """
    normal, adjoint = ord("N"), ord("C" if np.dtype(dtype).kind == "c" else "T")

    def product(
        words: int,
        turns: int,
        m: int,
        n: int,
        k: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        adds: int,
        c: int,
        ldc: int,
    ) -> None:
        p = stack(64)
        put(p, 0, adjoint if turns & 1 else normal)
        put(p, 1, adjoint if turns & 2 else normal)
        put(p, 2, m)
        put(p, 3, n)
        put(p, 4, k)
        put(p, 5, max(lda, 1))
        put(p, 6, max(ldb, 1))
        put(p, 7, max(ldc, 1))
        one, zero = words + 8, words + 24
        call_void(
            get(words, 0), p, p + 8, p + 16, p + 24, p + 32, one, a, p + 40, b, p + 48, one if adds else zero, c, p + 56
        )

    return product

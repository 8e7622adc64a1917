"""Kernel of eigenvalues and vectors of any real matrices: what LAPACK does, but with an iteration of ours.

LAPACK balances the matrix, reduces it to Hessenberg's form and, after the iteration, which takes most of its time,
finds the vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import call_void, get, memcpy, memset, put, stack
from tapegrad.kernels.blas import blas_address
from tapegrad.kernels.francis import iterating_on_hessenberg
from tapegrad.kernels.sweeps import copied
from tapegrad.kernels.tiles import lanes_of

__all__ = ["ROUTINES", "general_address", "memory_of_general", "words_of_general"]

#: What is called of LAPACK.
ROUTINES: Final = ("gebal", "gehrd", "orghr", "trevc3", "gebak")

# The geometry: how many matrices; the distance between them; rows; distances of rows and columns; addresses of
# routines.
_, _NUMBER, _FAR, _N, _BELOW, _BESIDE, _GEBAL, _GEHRD, _ORGHR, _TREVC, _GEBAK = range(11)
_BLOCK: Final = 64  # columns that LAPACK has memory for


def memory_of_general(n: int) -> int:
    """Return how many elements of memory the kernel needs."""
    some = lanes_of("float64")
    width = -(-n // some) * some
    return 2 * width * width + 3 * width + _BLOCK * n + 4224 + some


@cache
def words_of_general() -> tuple[int, ...]:
    """Return the addresses of LAPACK's routines."""
    return tuple(blas_address(name, "float64") for name in ROUTINES)


def _general() -> Callable[[int, int, int], int]:
    dtype, size, some, block = "float64", 8, lanes_of("float64"), _BLOCK
    line, iterate = 8 * some, iterating_on_hessenberg()
    letter_b, letter_r = ord("B"), ord("R")

    def write(values: int, out: int, h: int, v: int, pitch: int, n: int, squares: int) -> None:
        """Write eigenvalues, and vectors of length 1 whose largest element is real."""
        diagonal, found, target = as_pointer(h, dtype), as_pointer(values, dtype), as_pointer(out, dtype)
        work, k = as_pointer(squares, dtype), 0
        while k < n:
            at, vector = k * pitch + k, as_pointer(v + k * pitch * size, dtype)
            below = load(diagonal, at + 1) if k + 1 < n else 0.0
            store(found, 2 * k, load(diagonal, at))
            store(found, 2 * k + 1, 0.0)
            total = 0.0
            if below == 0:
                for i in range(n):
                    total += load(vector, i) * load(vector, i)
                inverse = 1.0 / math.sqrt(total)
                for i in range(n):
                    store(target, 2 * (i * n + k), load(vector, i) * inverse)
                    store(target, 2 * (i * n + k) + 1, 0.0)
                k += 1
                continue
            imag = math.sqrt(abs(load(diagonal, at + pitch))) * math.sqrt(abs(below))
            store(found, 2 * k + 1, imag)
            store(found, 2 * k + 2, load(diagonal, at + pitch + 1))
            store(found, 2 * k + 3, -imag)
            place, largest = 0, 0.0
            for i in range(n):
                real, other = load(vector, i), load(vector, pitch + i)
                square = real * real + other * other
                store(work, i, square)
                total += square
            for i in range(n):
                if load(work, i) > largest:
                    place, largest = i, load(work, i)
            inverse = 1.0 / (math.sqrt(total) * math.sqrt(largest))
            cosine, sine = load(vector, place) * inverse, load(vector, pitch + place) * inverse
            for i in range(n):
                real, other = load(vector, i), load(vector, pitch + i)
                one, two = cosine * real + sine * other, cosine * other - sine * real
                two = 0.0 if i == place else two
                own = 2 * (i * n + k)
                store(target, own, one)
                store(target, own + 1, two)
                store(target, own + 2, one)
                store(target, own + 3, -two)
            k += 2

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory, eigenvalues and vectors; return 1 if LAPACK should compute them."""
        n = get(geometry, _N)
        step = (n + some - 1) // some * line
        h = (get(args, 1) + line - 1) // line * line
        z = h + step // size * step
        scales, taus, pair = z + step // size * step, z + (step // size + 1) * step, z + (step // size + 2) * step
        work = pair + step
        words = stack(96)
        put(words, 0, letter_b)
        put(words, 1, letter_r)
        put(words, 2, n)
        put(words, 3, step // size)
        put(words, 4, block * n + 4160)
        letter, side, rows, pitch, room = words, words + 8, words + 16, words + 24, words + 32
        first, last, info, count = words + 40, words + 48, words + 56, words + 64
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            values, out = get(args, 2) + number * 2 * n * size, get(args, 3) + number * 2 * n * n * size
            memset(h, 2 * (step // size) * step)
            memset(first, 32)
            if copied(h, step, x, n, n, get(geometry, _BESIDE), get(geometry, _BELOW)):  # column by column
                return 1
            call_void(get(geometry, _GEBAL), letter, rows, h, pitch, first, last, scales, info)
            call_void(get(geometry, _GEHRD), rows, first, last, h, pitch, taus, work, room, info)
            memcpy(z, h, n * step)
            call_void(get(geometry, _ORGHR), rows, first, last, z, pitch, taus, work, room, info)
            for k in range(n - 2):
                memset(h + k * step + (k + 2) * size, (n - k - 2) * size)
            if iterate(h, z, step // size, n, get(first, 0) - 1, get(last, 0) - 1, pair):
                return 1
            call_void(get(geometry, _TREVC), side, letter, words + 72, rows, h, pitch, z, pitch, z, pitch, rows, count,
                      work, room, info)  # fmt: skip
            call_void(get(geometry, _GEBAK), letter, side, rows, first, last, scales, rows, z, pitch, info)
            write(values, out, h, z, step // size, n, scales)
        return 0

    return kernel


@cache
def general_address() -> int:
    """Return the address of the kernel."""
    return address_of("general", _general())

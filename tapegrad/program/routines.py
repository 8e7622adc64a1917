"""Routines of BLAS and LAPACK, and kernels, by their names in LLVM's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tapegrad.kernels.blas import blas_address
from tapegrad.kernels.iterations import rotations, rotations_address
from tapegrad.kernels.singular import singular, singular_address
from tapegrad.kernels.strips import strips, strips_address
from tapegrad.kernels.symmetric import symmetric, symmetric_address

__all__ = ["KERNELS", "LETTERS", "address_of_routine", "name_of_routine"]

Kernel = Callable[[int, int, int], int]
#: Dtypes by the letters of their routines.
LETTERS: Final = {"d": "float64", "f": "float32"}
#: Of kernels, by their names in the text: functions that return an address, and the function that is compiled.
KERNELS: Final[Mapping[str, tuple[Callable[[], int], Callable[[], Kernel]]]] = {
    "tapegrad_kernel_rotations": (rotations_address, rotations),
    "tapegrad_kernel_singular": (singular_address, singular),
    "tapegrad_kernel_strips": (lambda: strips_address("float64"), lambda: strips("float64")),
    "tapegrad_kernel_symmetric": (symmetric_address, symmetric),
}
_IMPORTED: Final = "tapegrad_"


def name_of_routine(char: str, routine: str) -> str:
    """Return the name of a routine in the text."""
    return f"{_IMPORTED}{char}{routine}"


def address_of_routine(name: str) -> int:
    """Return the address of a routine or kernel by its name in the text."""
    if name in KERNELS:
        return KERNELS[name][0]()
    name = name.removeprefix(_IMPORTED)
    return blas_address(name[1:], LETTERS[name[0]])

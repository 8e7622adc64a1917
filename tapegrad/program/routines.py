"""Routines of BLAS and LAPACK, by their names in LLVM's text."""

from __future__ import annotations

from typing import Final

from tapegrad.kernels.blas import blas_address

__all__ = ["LETTERS", "address_of_routine", "name_of_routine"]

#: Dtypes by the letters of their routines.
LETTERS: Final = {"d": "float64", "f": "float32"}
_IMPORTED: Final = "tapegrad_"


def name_of_routine(char: str, routine: str) -> str:
    """Return the name of a routine in the text."""
    return f"{_IMPORTED}{char}{routine}"


def address_of_routine(name: str) -> int:
    """Return the address of a routine by its name in the text."""
    name = name.removeprefix(_IMPORTED)
    return blas_address(name[1:], LETTERS[name[0]])

"""Calls of BLAS and LAPACK, which take the addresses of all their arguments, and of kernels, from LLVM's text."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.text import bits_of
from tapegrad.program.native.triangles import Triangles
from tapegrad.program.native.writer import Matrix
from tapegrad.program.routines import address_of_routine, name_of_routine

__all__ = ["Calls", "strided_by"]


class Calls(Triangles):
    """Writes calls of routines.

    Attributes
    ----------
    memory : Memory
        The pointers of inputs and outputs.
    imports : dict
        The addresses of routines, by their names in the text: these are the same in every process.
    constants : dict
        The definitions of arguments, by their names.
    """

    def __init__(self, char: str) -> None:
        super().__init__(char)
        self.memory = Memory()
        self.imports: dict[str, int] = {}
        self.constants: dict[str, str] = {}

    # ---- routines

    def call(self, routine: str, *args: str | int | float) -> None:
        """Call a routine with pointers, which begin with a percent sign, letters and numbers."""
        name = name_of_routine(self.char, routine)
        self.imports.setdefault(name, address_of_routine(name))
        self.text.call(name, "void", *[f"ptr {self._argument(own)}" for own in args])

    def kernel(self, name: str, pointers: Sequence[str], words: Sequence[int | str]) -> None:
        """Call a kernel of float64, and stop later if it returns another number than 0.

        Parameters
        ----------
        name : str
        pointers : sequence of str
            What it takes.
        words : sequence of int or str
            Its geometry: numbers, and names of other kernels.
        """
        names = [f"tapegrad_kernel_{own}" for own in (name, *[own for own in words if isinstance(own, str)])]
        for own in names:
            self.imports.setdefault(own, address_of_routine(own))
            self.text.declared[own] = f"declare i64 @{own}(i64, i64, i64)"
        given = [[self._word(own) for own in pointers], []]
        given[1] = [str(own) if isinstance(own, int) else self._word(f"@tapegrad_kernel_{own}") for own in words]
        places = []
        for values in given:
            block = self.room(len(values), 8)
            for k, own in enumerate(values):
                self.text.put(f"store i64 {own}, ptr {self.at(block, (k, 1))}, align 8")
            places.append(f"i64 {self._word(block)}")
        found = self.text.call(names[0], "i64", *places, "i64 0")
        self.fail_if(self.text.op(f"icmp ne i64 {found}, 0"))

    def _word(self, pointer: str) -> str:
        return self.text.op(f"ptrtoint ptr {pointer} to i64")

    def _argument(self, value: str | int | float) -> str:
        if isinstance(value, str) and value[0] in "%@":
            return value
        # A length is read as 64 or 32 bits: it is below 2^31, and the first half is the same.
        if isinstance(value, int):
            name, kind = f"@int.{value}".replace("-", "m"), f"i64 {value}"
        elif isinstance(value, float):
            name, kind = f"@number.{value}".replace("-", "m"), f"{self.kind} {bits_of(value, self.char)}"
        else:
            name, kind = f"@letter.{value}", f"i8 {ord(value)}"
        self.constants[name] = f"{name} = private unnamed_addr constant {kind}, align 8"
        return name

    def info(self) -> str:
        """Return where a routine says whether it has succeeded, which is 0."""
        self.text.put("store i64 0, ptr %info, align 8")
        return "%info"

    def check(self) -> None:
        """Stop later if the last routine has not succeeded."""
        self.fail_if(self.text.op(f"icmp ne i64 {self.text.op('load i64, ptr %info, align 8')}, 0"))

    def gemm(self, a: Matrix, b: Matrix, result: str, start: str = "") -> None:
        """Write a product of matrices by BLAS, as `product` does."""
        # C = A B in rows is C^T = B^T A^T in columns, so the factors change places.
        (n, k), m = a.shape, b.shape[1]
        if start:
            self.copy(Matrix(start, (n, m), (m, 1)), Matrix(result, (n, m), (m, 1)))
        (first, lda), (second, ldb) = strided_by(b), strided_by(a)
        self.call("gemm", first, second, m, n, k, 1.0, b.pointer, lda, a.pointer, ldb, 1.0 if start else 0.0, result, m)


def strided_by(own: Matrix) -> tuple[str, int]:
    """Return how BLAS takes a matrix that stands row by row: N, or T if it is transposed; and the step of rows."""
    (rows, columns), (down, along) = own.shape, own.strides
    if along == 1 or columns == 1:
        return "N", max(down if rows > 1 else columns, columns)
    return "T", max(along, rows)

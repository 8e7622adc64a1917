"""Sums of products of matrices that stand in memory in equal steps: mostly one longer product."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.views import View
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Factor", "sum_of_products"]


class Factor(NamedTuple):
    """The matrices that are factors of products.

    Attributes
    ----------
    view : View
        How each stands in the memory of a value.
    step : int
        Elements from one value to the next.
    """

    view: View
    step: int


def sum_of_products(program: Program, factors: Sequence[Factor], count: int) -> Native:
    """Return the code of C = D + A1 B1 + A2 B2 + ...

    Parameters
    ----------
    program : Program
        One of these terms and its addition. Its inputs are the values that A1 and B1 stand in, and D.
    factors : sequence of Factor
        Of the first and of the second factor.
    count : int
    """
    first, second = factors
    code = Code(program, {}, program.layouts[program.outputs[0]].dtype.char)
    (n, k), (_, m) = first.view.shape, second.view.shape
    down, (along_a, along_b) = first.view.strides[0], (first.view.strides[1], second.view.strides[0])
    steps = first.step, second.step
    is_long = k == 1 or steps in ((k * along_a, k * along_b), (-k * along_a, -k * along_b))
    code.notes.append(f"the sum of {count} products of {n} x {k} and {k} x {m}{', as one product' if is_long else ''}")
    pointers = [code.at(f"%in{number}", (own.view.offset, 1)) for number, own in enumerate((first, second))]

    def body() -> None:
        a = Matrix(pointers[0], (n, k), (down, along_a))
        b = Matrix(pointers[1], (k, m), (along_b, second.view.strides[1]))
        if not is_long:
            code.copy(Matrix("%in2", (n, m), (m, 1)), Matrix("%out0", (n, m), (m, 1)))

            def term(at: str) -> None:
                one, two = (
                    own._replace(pointer=code.at(own.pointer, (at, step)))
                    for own, step in zip((a, b), steps, strict=True)
                )
                code.product(one, two, "%out0", "%out0")

            code.loop_over(count, 1, term)
            return
        if k > 1 and steps[0] < 0:  # from the last one on
            pointers[:] = [code.at(own, (count - 1, step)) for own, step in zip(pointers, steps, strict=True)]
        along = steps if k == 1 else (along_a, along_b)
        a = Matrix(pointers[0], (n, k * count), (down, along[0]))
        b = Matrix(pointers[1], (k * count, m), (along[1], second.view.strides[1]))
        write = code.gemm if code.is_for_blas(a, b) else code.product
        write(a, b, "%out0", "%in2")

    return code.finished(body, f"# {code.notes[0]}")

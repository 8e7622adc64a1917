"""Operations of matrices as machine code of their own: products as loops or by BLAS, factors by LAPACK.

Such code is a stage of a program. Its operands may be transposed or sliced: they are not copied first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tapegrad.program.fuse.space import steps_of
from tapegrad.program.native.code import BLAS, Code, Native, broadcast
from tapegrad.program.native.factors import FACTORS
from tapegrad.program.native.indexed import has_computed_indices, indexed
from tapegrad.program.native.parts import copied, joined, put, turned
from tapegrad.program.native.views import View, views_of
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry, Program

__all__ = ["BLAS", "FACTORS", "Native", "native"]


def native(program: Program) -> Native | None:
    """Return the machine code of a program that is one operation of matrices; None if there is none of its own.

    Parameters
    ----------
    program : Program
        An operation, on inputs or views of them. A product may be followed by what is added to it.
    """
    views = views_of(program)
    entries = [entry for entry in program.entries if views[entry.results[0]].number == entry.results[0]]
    char = program.layouts[program.outputs[0]].dtype.char
    if not entries:
        (result,) = program.outputs
        return copied(Code(program, views, char), result) if char in "df" else None
    if has_computed_indices(program, entries[0]):
        return indexed(Code(program, views, char), entries[0]) if char in "df" and len(entries) == 1 else None
    make = _TABLE.get(entries[0].op.name)
    chars = {program.layouts[own].dtype.char for entry in entries for own in (*entry.operands, *entry.results)}
    if make is None or len(chars) > 1 or not chars <= {"d", "f"}:
        return None
    return make(Code(program, views, chars.pop()), *entries)


def _product(code: Code, entry: Entry, *after: Entry) -> Native | None:
    """Return the code of a product, to which something may be added, or whose batch is summed."""
    result = entry.results[0]
    start: View | None = None
    is_summed = bool(after) and after[0].op.name == "sum"
    if is_summed:
        result = after[0].results[0]
    elif after:
        start = code.added(result, after)
        if start is None:
            return None
        result = after[0].results[0]
    if code.program.outputs != (result,):
        return None
    x, y = (code.views[number] for number in entry.operands)
    a = x if len(x.shape) > 1 else x._replace(shape=(1, *x.shape), strides=(0, *x.strides))
    b = y if len(y.shape) > 1 else y._replace(shape=(*y.shape, 1), strides=(*y.strides, 0))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    steps_a, steps_b = (broadcast(own, batch) for own in (a, b))
    (n, k), m, (down, along) = a.shape[-2:], b.shape[-1], a.strides[-2:]
    dims, across = list(zip(batch, steps_a, steps_b, strict=True)), b.strides[-2]
    if is_summed:  # the terms of all products are those of one
        attrs = after[0].attrs
        if len(after) > 1 or attrs["keepdim"] or attrs["dtype"] is not None or attrs["dim"] != tuple(range(len(dims))):
            return None
        while dims and dims[-1][1:] == (k * along, k * across):
            k *= dims.pop()[0]
        if dims:
            return None
    while dims and dims[-1][2] == 0 and (n == 1 or dims[-1][1] == n * down):  # one product with more rows
        length, step, _ = dims.pop()
        n, down = n * length, step if n == 1 else down
    first, second = Matrix("", (n, k), (down, along)), Matrix("", (k, m), (across, b.strides[-1]))
    by_blas = code.is_for_blas(first, second)
    many = f"{math.prod(length for length, *_ in dims)} products" if dims else "a product"
    code.notes.append(f"{many} of {n} x {k} and {k} x {m} {'by BLAS' if by_blas else 'in loops'}")

    sizes = steps_of((*[length for length, *_ in dims], n * m))[:-1]
    places: list[tuple[str, Sequence[int]]] = [
        (code.pointer(a), [step for _, step, _ in dims]),
        (code.pointer(b), [step for *_, step in dims]),
        (code.pointers[result], sizes),
    ]
    places += [(code.pointer(start), sizes)] if start is not None else []

    def one(pointers: list[str]) -> None:
        write = code.gemm if by_blas else code.product
        write(first._replace(pointer=pointers[0]), second._replace(pointer=pointers[1]), *pointers[2:])

    return code.finished(lambda: code.each([length for length, *_ in dims], places, one))


_TABLE: Final[dict[str, Callable[..., Native | None]]] = {
    "matmul": _product, "index_scatter_add": put, "turned": turned, "cat": joined, **FACTORS,
}  # fmt: skip

"""What is done with each matrix of a batch: its operands and results, as they stand in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tapegrad.program.fuse.space import steps_of
from tapegrad.program.native.code import Code, Native, broadcast
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry

__all__ = ["Write", "each"]

Write = Callable[[Code, list[Matrix], list[str]], None]


def each(
    code: Code,
    entry: Entry,
    name: str,
    write: Write,
    vectors: Sequence[int] = (),
    in_double: bool = True,
    how: str = "by LAPACK",
) -> Native | None:
    """Return the code of an operation that is done with each matrix of a batch.

    Parameters
    ----------
    name : str
        For `explain`.
    write : callable
        Takes the matrices of operands, and the pointers of results, which stand row by row.
    vectors : sequence of int
        The operands whose last dimension is a vector's.
    in_double : bool
        Compute with float64 whatever the dtype.
    how : str
        For `explain`, too.
    """
    layouts = code.program.layouts
    views = [code.views[number] for number in entry.operands]
    views = [
        view._replace(shape=(*view.shape, 1), strides=(*view.strides, 1)) if k in vectors else view
        for k, view in enumerate(views)
    ]
    if any(len(view.shape) < 2 for view in views):
        return None
    batch = np.broadcast_shapes(*[view.shape[:-2] for view in views])
    steps = [broadcast(view, batch) for view in views]
    sizes = [math.prod(layouts[number].shape[len(batch) :]) for number in entry.results]
    code.notes.append(f"{name} of {' and '.join(f'{view.shape[-2]} x {view.shape[-1]}' for view in views)} {how}")
    results = [code.pointers.get(number) for number in entry.results]
    spare = [code.room(size) if own is None else own for own, size in zip(results, sizes, strict=True)]

    if 0 in batch or any(0 in view.shape for view in views):
        return None
    inside = [
        own[:-1] if found is not None else (0,) * len(batch)
        for own, found in zip([steps_of((*batch, size)) for size in sizes], results, strict=True)
    ]
    places = [*zip(map(code.pointer, views), steps, strict=True), *zip(spare, inside, strict=True)]

    def one(pointers: list[str]) -> None:
        matrices = [
            Matrix(pointer, (view.shape[-2], view.shape[-1]), (view.strides[-2], view.strides[-1]))
            for pointer, view in zip(pointers[: len(views)], views, strict=True)
        ]
        targets = pointers[len(views) :]
        if code.char == "d" or not in_double:
            write(code, matrices, targets)
            return
        code.become("d")
        wide = [Matrix(code.room(math.prod(own.shape)), own.shape, (own.shape[1], 1)) for own in matrices]
        for own, target in zip(matrices, wide, strict=True):
            code.converted(own, target, ("f", "d"))
        found = [Matrix(code.room(size), (1, size), (size, 1)) for size in sizes]
        write(code, wide, [own.pointer for own in found])
        for own, pointer in zip(found, targets, strict=True):
            code.converted(own, own._replace(pointer=pointer), ("d", "f"))
        code.become("f")

    return code.finished(lambda: code.each(batch, places, one))

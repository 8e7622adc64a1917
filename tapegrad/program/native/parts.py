"""Parts of arrays of several dimensions: copies of views, and what is put, or added, where a view stands."""

from __future__ import annotations

import math

from tapegrad.ops.index_keys import numpy_index
from tapegrad.program.fuse.text import typed
from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.views import View, contiguous, seen
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry

__all__ = ["copied", "put"]


def copied(code: Code, result: int) -> Native:
    """Return the code of a view that is a result."""
    view = code.views[result]
    code.notes.append(f"a copy of {' x '.join(map(str, view.shape))} elements that stand elsewhere")
    target = View(result, view.shape, contiguous(view.shape), 0)
    return code.finished(lambda: _moved(code, view, target, adds=False))


def put(code: Code, entry: Entry, *after: Entry) -> Native | None:
    """Return the code of what stands in a slice of zeros, to which something may be added."""
    if entry.index_arrays:
        return None
    result, layout = (after or (entry,))[-1].results[0], code.program.layouts[entry.results[0]]
    start = code.added(entry.results[0], after) if after else None
    if code.program.outputs != (result,) or (after and start is None):
        return None
    whole = View(result, layout.shape, contiguous(layout.shape), 0)
    target = seen(layout.dtype, whole, lambda own: own[numpy_index(entry.attrs["key"])])
    source = code.views[entry.operands[0]]
    if target is None or target.shape != source.shape:
        return None
    code.notes.append(
        f"a part of {' x '.join(map(str, source.shape))} elements of {' x '.join(map(str, layout.shape))}"
    )

    def write() -> None:
        size, out = math.prod(layout.shape), code.pointers[result]
        if start is None:
            code.clear(out, str(size))
        else:
            code.copy(Matrix(code.pointer(start), (1, size), (size, 1)), Matrix(out, (1, size), (size, 1)))
        _moved(code, source, target, adds=start is not None)

    return code.finished(write)


def _moved(code: Code, source: View, target: View, adds: bool) -> None:
    """Write what copies elements, or adds them to others."""
    shape = source.shape or (1,)
    length, step, other = shape[-1], *((own.strides or (1,))[-1] for own in (source, target))
    places = [(code.pointer(own), own.strides[:-1]) for own in (source, target)]

    def row(pointers: list[str]) -> None:
        one, two = pointers
        if step == other == 1 or length == 1:
            whole = length - length % code.lanes

            def vector(at: str, mask: str = "") -> None:
                value, to = code.load(code.at(one, (at, 1)), mask), code.at(two, (at, 1))
                code.store(code.add(code.load(to, mask), value, code.lanes) if adds else value, to, mask, code.lanes)

            if whole > code.lanes:
                code.loop_over(whole, code.lanes, vector)
            elif whole:
                vector("0")
            if whole < length:
                vector(str(whole), code.mask(length - whole))
            return

        def single(at: str) -> None:
            value, to = code.get(code.at(one, (at, step))), code.at(two, (at, other))
            if adds:
                value = code.text.op(f"fadd {typed(code.char, 1)} {code.get(to)}, {value}")
            code.put(value, to)

        code.loop_over(length, 1, single)

    if math.prod(shape):
        code.each(shape[:-1], places, row)

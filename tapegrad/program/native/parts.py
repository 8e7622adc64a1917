"""Parts of arrays of several dimensions: copies of views, and what is put, added, turned or joined beside others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.ops.index_keys import numpy_index
from tapegrad.program.fuse.space import steps_of
from tapegrad.program.fuse.text import typed
from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.views import View, seen
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry

__all__ = ["copied", "joined", "put", "turned"]


def copied(code: Code, result: int) -> Native:
    """Return the code of a view that is a result."""
    view = code.views[result]
    code.notes.append(f"a copy of {' x '.join(map(str, view.shape))} elements that stand elsewhere")
    target = View(result, view.shape, steps_of(view.shape), 0)
    return code.finished(lambda: _moved(code, view, target, adds=False))


def put(code: Code, entry: Entry, *after: Entry) -> Native | None:
    """Return the code of what stands in a slice of zeros, to which something may be added."""
    if entry.index_arrays:
        return None
    result, layout = (after or (entry,))[-1].results[0], code.program.layouts[entry.results[0]]
    start = code.added(entry.results[0], after) if after else None
    if code.program.outputs != (result,) or (after and start is None):
        return None
    whole = View(result, layout.shape, steps_of(layout.shape), 0)
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


def turned(code: Code, entry: Entry, *after: Entry) -> Native | None:
    """Return the code of elements that are moved along dimensions, round their end."""
    source, (result,), dims = code.views[entry.operands[0]], entry.results, entry.attrs["dims"]
    shape, dim = source.shape, dims[0] if dims else 0
    if len(dims) != 1:  # as one dimension
        n = math.prod(shape[own] for own in dims)
        shape = (math.prod(shape[:dim]), n, math.prod(shape[dim + len(dims) :]))
        if source.strides != steps_of(source.shape):
            return None
        source, dim = View(source.number, shape, steps_of(shape), source.offset), 1
    count, place, target = shape[dim], entry.attrs["place"], View(result, shape, steps_of(shape), 0)
    pieces = [
        (_cut(source, dim, start, length), _cut(target, dim, to, length))
        for start, to, length in ((count - place, 0, place), (0, place, count - place))
    ]
    return None if after else _pieces(code, entry, pieces, "turned round their end")


def joined(code: Code, entry: Entry, *after: Entry) -> Native | None:
    """Return the code of arrays that stand behind each other along a dimension."""
    shape, dim, start, pieces = code.program.layouts[entry.results[0]].shape, entry.attrs["dim"], 0, []
    target = View(entry.results[0], shape, steps_of(shape), 0)
    for own in (code.views[number] for number in entry.operands):
        if len(own.shape) != len(shape):  # a vector of nothing, which PyTorch joins with anything
            continue
        pieces.append((own, _cut(target, dim, start, own.shape[dim])))
        start += own.shape[dim]
    return None if after else _pieces(code, entry, pieces, "of several arrays")


def _cut(view: View, dim: int, start: int, length: int) -> View:
    """Return a part of a view along a dimension."""
    shape = (*view.shape[:dim], length, *view.shape[dim + 1 :])
    return view._replace(shape=shape, offset=view.offset + start * view.strides[dim])


def _pieces(code: Code, entry: Entry, pieces: Sequence[tuple[View, View]], what: str) -> Native | None:
    """Return the code of a result whose parts are copied from views."""
    if code.program.outputs != entry.results:
        return None
    shape = code.program.layouts[entry.results[0]].shape
    code.notes.append(f"{' x '.join(map(str, shape))} elements {what}")

    def write() -> None:
        for source, target in pieces:
            _moved(code, source, target, adds=False)

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

"""From a program with complex values to one with pairs of real ones, which machine code can be made of.

A complex array stands in memory as a real one with a last dimension of two: so inputs and outputs are seen. What has no
formula for pairs, e.g. a Fourier transform, gets and gives complex numbers as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.program.batch import batch_of
from tapegrad.program.native.views import offset_of
from tapegrad.program.pairs.formulas import FORMULAS, REAL_FORMULAS, power
from tapegrad.program.pairs.writer import Real, Writer
from tapegrad.program.program import Entry, Program
from tapegrad.vmath.pairs import Pair

__all__ = ["paired"]

#: Families whose linear operations do with real and imaginary parts what they do with complex numbers.
_BY_PARTS: Final = frozenset(("movement", "indexing", "joining", "along", "padding"))
_SUMS: Final = frozenset(("sum", "mean"))
_SEEN_AS: Final = frozenset(("view_as_real", "view_as_complex"))


def paired(program: Program) -> Program:
    """Return a program that computes the same in the same memory, with pairs of real values for complex ones."""
    if not any(layout.dtype.kind == "c" for layout in set(program.layouts)):
        return program
    entries = [entry for entry in program.entries if _is_complex(program, entry)]
    if not any(entry.op.name not in _SEEN_AS and _is_rewritten(program, entry) for entry in entries):
        return program
    return _Rewriting(program).run()


def _is_complex(program: Program, entry: Entry) -> bool:
    """Return whether complex values are taken or made."""
    return any(program.layouts[number].dtype.kind == "c" for number in (*entry.operands, *entry.results))


def _is_rewritten(program: Program, entry: Entry) -> bool:
    """Return whether an operation becomes one on pairs: that of a batch if all operations of its items do."""
    if entry.op.family != "batch":
        return _way(entry) is not None
    batch = entry.attrs["batch"]
    return batch.dims == (0, 0) and all(
        _is_rewritten(way, own) for way in batch.ways for own in way.entries if _is_complex(way, own)
    )


def _way(entry: Entry) -> Callable[[_Rewriting, Entry], Pair | Real] | None:
    """Return what writes an operation on pairs; None if nothing does."""
    op = entry.op
    if op.name in _WAYS:
        return _WAYS[op.name]
    if not op.linear or op.family not in _BY_PARTS or len(entry.results) > 1:
        return None
    of_real = getattr(entry.attrs.get("part"), "of_real", False)
    return None if of_real or entry.attrs.get("value") else _Rewriting.by_parts


def _part_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the parts of complex numbers, or that of real ones."""
    return np.empty(0, dtype).real.dtype


class _Rewriting(Writer):
    """A list that is written anew. Real values keep their numbers.

    Attributes
    ----------
    pairs : dict
        Of complex values, by their numbers.
    rows : dict
        Their parts along a last dimension, as they stand in memory.
    joined : dict
        Complex values where they are wanted as such.
    same : dict
        Real values that have another number now.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program.layouts, program.constants)
        self.program = program
        self.pairs: dict[int, Pair] = {}
        self.rows: dict[int, int] = {}
        self.joined: dict[int, int] = {number: number for number in program.constants}
        self.same: dict[int, int] = {}

    def run(self, *, is_item: bool = False) -> Program:
        """Return the program; that of an item has no complex outputs."""
        program = self.program
        inputs = [self._input(number) for number in program.inputs]
        for entry in program.entries:
            way = _way(entry)
            if not (_is_complex(program, entry) and _is_rewritten(program, entry)) or self._is_seen(entry):
                self._called(entry)
            elif way is None:
                self._batch(entry)
            else:
                self._made(entry, way(self, entry))
        outputs = [self._output(number, is_item) for number in program.outputs]
        guards = [own._replace(value=self.whole(own.value)) for own in program.guards]
        made = Program(self.layouts, inputs, self.constants, self.entries, outputs, guards)
        return made.cleaned().compact()

    # ---- values

    def _input(self, number: int) -> int:
        layout = self.layouts[number]
        if layout.dtype.kind != "c":
            return number
        self.rows[number] = self.new((*layout.shape, 2), _part_of(layout.dtype))
        self.pairs[number] = self.split(self.rows[number])
        return self.rows[number]

    def _made(self, entry: Entry, found: Pair | Real) -> None:
        """Let an operation's result be known as what was written for it."""
        (result,) = entry.results
        layout = self.layouts[result]
        if isinstance(found, Pair):
            self.pairs[result] = Pair(*[self._settled(own, layout.shape, _part_of(layout.dtype)) for own in found])
        else:
            self.same[result] = self._settled(found, layout.shape, layout.dtype).number

    def _output(self, number: int, is_item: bool) -> int:
        """Return an output in the memory that it had."""
        is_kept = self.layouts[number].dtype.kind != "c" or (number in self.joined and not is_item)
        return self.whole(number) if is_kept else self._rows(number)

    def _rows(self, number: int) -> int:
        """Return a complex value as the real array that stands in its memory."""
        if number not in self.rows:
            self.rows[number] = self.together(self.pair(number, self.layouts[number].dtype)).number
        return self.rows[number]

    def _batch(self, entry: Entry) -> None:
        """Write a batch whose items take and give real arrays in the place of complex ones."""
        batch = entry.attrs["batch"]
        ways = [_Rewriting(way).run(is_item=True) for way in batch.ways]
        operands = [
            self._rows(number) if self.layouts[number].dtype.kind == "c" else self.whole(number)
            for number in entry.operands
        ]
        results = []
        for number in entry.results:
            layout = self.layouts[number]
            results.append(number)
            if layout.dtype.kind == "c":
                results[-1] = self.rows[number] = self.new((*layout.shape, 2), _part_of(layout.dtype))
        attrs = {"batch": batch_of(ways, batch.mapped, batch.flags)}
        self.entries.append(Entry(entry.op, tuple(operands), attrs, (), tuple(results), entry.records))
        self.pairs |= {number: self.split(self.rows[number]) for number in entry.results if number in self.rows}

    def whole(self, number: int) -> int:
        """Return a value as it was: a complex one if it was complex."""
        layout = self.layouts[number]
        if layout.dtype.kind != "c":
            return self.same.get(number, number)
        if number not in self.joined:
            self.joined[number] = self.put("view_as_complex", (self._rows(number),), layout.shape, layout.dtype)
        return self.joined[number]

    def _is_seen(self, entry: Entry) -> bool:
        """Return whether a movement of complex numbers only looks at the memory in which they stand as such."""
        (number, *others) = entry.operands
        is_whole = number in self.joined and not (others or number in self.pairs or number in self.constants)
        return is_whole and entry.op.family == "movement" and offset_of(self.program, entry) is not None

    def _called(self, entry: Entry) -> None:
        """Write an operation as it stands: it takes complex numbers, and may make some."""
        operands, arrays = ([self.whole(own) for own in numbers] for numbers in (entry.operands, entry.index_arrays))
        self.entries.append(entry._replace(operands=tuple(operands), index_arrays=tuple(arrays)))
        self.joined |= {number: number for number in entry.results}

    def pair(self, number: int, dtype: Any) -> Pair:
        """Return a value as a pair of parts; a Python number as one of the dtype of these."""
        known = self.pairs.get(number)
        if known is not None:
            return known
        layout, constant = self.layouts[number], self.constants.get(number)
        if constant is not None:
            data = np.asarray(constant)
            part = dtype if layout.weak or data.dtype.kind not in "fc" else _part_of(data.dtype)
            found = Pair(*[self.constant(np.array(own, part, order="C")) for own in (data.real, data.imag)])
        elif layout.dtype.kind == "c":  # a called operation has made it
            seen = self.put("view_as_real", (number,), (*layout.shape, 2), _part_of(layout.dtype))
            found = self.split(seen)
        else:
            real = Real(self, self.same.get(number, number))
            return Pair(real, self.constant(np.zeros((), layout.dtype if layout.dtype.kind == "f" else dtype)))
        self.pairs[number] = found
        return found

    def split(self, rows: int) -> Pair:
        """Return the parts that stand along the last dimension."""
        layout = self.layouts[rows]
        parts = [self.put("getitem", (rows,), layout.shape[:-1], layout.dtype, {"key": (..., k)}) for k in (0, 1)]
        return Pair(*[Real(self, number) for number in parts])

    def together(self, pair: Pair) -> Real:
        """Return parts along a new last dimension."""
        layout = pair.real.layout
        numbers, shape = [own.number for own in pair], (*layout.shape, 2)
        return Real(self, self.put("stack", numbers, shape, layout.dtype, {"dim": len(layout.shape)}))

    def _settled(self, x: Real, shape: tuple[int, ...], dtype: Any) -> Real:
        """Return a value of a shape and dtype."""
        layout = x.layout
        if x.number in self.constants:
            value = self.constants[x.number]
            if layout.weak or layout.shape != shape or layout.dtype != dtype:
                return self.constant(np.array(np.broadcast_to(np.asarray(value, dtype), shape), order="C"))
            return x
        if layout.dtype != dtype:
            attrs = {"source": layout.dtype, "dtype": np.dtype(dtype)}
            x = Real(self, self.put("cast", (x.number,), layout.shape, dtype, attrs))
        return (
            x if layout.shape == shape else Real(self, self.put("expand", (x.number,), shape, dtype, {"size": shape}))
        )

    # ---- operations

    def operands(self, entry: Entry) -> list[Pair]:
        """Return the operands as pairs."""
        kinds = [self.program.layouts[number].dtype for number in (*entry.operands, *entry.results)]
        dtype = _part_of(next(own for own in kinds if own.kind == "c"))
        return [self.pair(number, dtype) for number in entry.operands]

    def by_formula(self, entry: Entry) -> Pair:
        """Write a function of elements."""
        return FORMULAS[entry.op.name](*self.operands(entry))

    def to_real(self, entry: Entry) -> Real:
        """Write a function of elements whose result is real."""
        return REAL_FORMULAS[entry.op.name](*self.operands(entry))

    def power(self, entry: Entry) -> Pair:
        """Write a power; that of a known exponent may be products."""
        value = self.constants.get(entry.operands[1])
        known = value if isinstance(value, (int, float, complex)) else None
        x, y = self.operands(entry)
        return power(x, y, known)

    def where(self, entry: Entry) -> Pair:
        """Write a choice of elements."""
        condition = Real(self, self.whole(entry.operands[0]))
        _, x, y = self.operands(entry)
        return Pair(condition.where(x.real, y.real), condition.where(x.imag, y.imag))

    def complex(self, entry: Entry) -> Pair:
        """Write nothing: the parts are there."""
        real, imag = entry.operands
        return Pair(Real(self, self.whole(real)), Real(self, self.whole(imag)))

    def cast(self, entry: Entry) -> Pair | Real:
        """Write a conversion, which is that of the parts."""
        (pair,) = self.operands(entry)
        return pair if np.dtype(entry.attrs["dtype"]).kind == "c" else pair.real

    def seen_as_real(self, entry: Entry) -> Real:
        """Write the parts along a new dimension."""
        (pair,) = self.operands(entry)
        return self.together(pair)

    def seen_as_complex(self, entry: Entry) -> Pair:
        """Write the parts along the last dimension."""
        return self.split(self.whole(entry.operands[0]))

    def product(self, entry: Entry) -> Pair:
        """Write the products of parts."""
        shape = self.layouts[entry.results[0]].shape
        x, y = self.operands(entry)

        def times(x: Real, y: Real) -> Real:
            return Real(self, self.put("matmul", (x.number, y.number), shape, x.layout.dtype))

        real = times(x.real, y.real) - times(x.imag, y.imag)
        return Pair(real, times(x.real, y.imag) + times(x.imag, y.real))

    def by_parts(self, entry: Entry) -> Pair:
        """Write a linear operation for each part; operands that are no numbers, as indices, are the same for both."""
        layout, attrs = self.layouts[entry.results[0]], dict(entry.attrs)
        part = _part_of(layout.dtype)
        if attrs.get("dtype") is not None:
            attrs["dtype"] = part
        arrays = tuple([self.whole(number) for number in entry.index_arrays])
        columns: list[tuple[int, int]] = []
        for number, pair in zip(entry.operands, self.operands(entry), strict=True):
            own = self.layouts[number]
            if own.dtype.kind in "fc" or own.weak:
                real, imag = (self._settled(each, own.shape, part) for each in pair)
                columns.append((real.number, imag.number))
            else:
                columns.append((self.whole(number), self.whole(number)))
        made = []
        for numbers in zip(*columns, strict=True):
            made.append(Real(self, self.new(layout.shape, part)))
            self.entries.append(Entry(entry.op, numbers, attrs, arrays, (made[-1].number,), entry.records))
        return Pair(*made)


_WAYS: Final[dict[str, Callable[[_Rewriting, Entry], Pair | Real]]] = {
    **dict.fromkeys(FORMULAS, _Rewriting.by_formula), **dict.fromkeys(REAL_FORMULAS, _Rewriting.to_real),
    **dict.fromkeys(_SUMS, _Rewriting.by_parts), "pow": _Rewriting.power, "where": _Rewriting.where,
    "complex": _Rewriting.complex, "cast": _Rewriting.cast, "matmul": _Rewriting.product,
    "view_as_real": _Rewriting.seen_as_real, "view_as_complex": _Rewriting.seen_as_complex,
}  # fmt: skip

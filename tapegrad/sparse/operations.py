"""What each result of an operation depends on, from what its operands depend on: by kinds of operations."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, xp
from tapegrad.program.fuse.lowering import MOVEMENTS, forward_of
from tapegrad.program.fuse.moves import positions_of
from tapegrad.program.machine_code import Refused
from tapegrad.program.program import Entry, Program
from tapegrad.sparse.structure import TooDense, among, check, chosen, empty, gathered, line_of, spread, stacked, united
from tapegrad.tensor import from_array

__all__ = ["dependencies"]

Rows: TypeAlias = Any  # a csr_array, or None: on nothing
_PREFIXES: Final = frozenset(("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "recurrence"))
_SHARES: Final = frozenset(("along", "ranks", "reduction", "fourier"))  # families that mix what stands along dimensions


def dependencies(program: Program, entry: Entry, operands: Sequence[Rows]) -> list[Rows]:
    """Return what the results of an operation depend on.

    Parameters
    ----------
    program : Program
    entry : Entry
    operands : sequence of csr_array
        What its operands depend on.

    Raises
    ------
    TooDense
        If elements depend on too much, perhaps because nothing better is known than that each depends on all.
    """
    layouts = [program.layouts[number] for number in entry.results]
    taken = [None if entry.op.rule(place) is NOT_DIFFERENTIABLE else rows for place, rows in enumerate(operands)]
    if all(rows is None for rows in taken):
        return [None] * len(layouts)
    shapes = [program.layouts[number].shape for number in entry.operands]
    call = _Call(program, entry, shapes, taken)
    try:
        return [call.result(layout.shape) if layout.floating else None for layout in layouts]
    except TooDense as error:
        raise TooDense(
            f"{entry.op.name}: {error}; a sparse matrix is of no use then: take jacrev(), jacfwd() or hvp()"
        ) from None


class _Call:
    """One operation: its operands' shapes, and what they depend on."""

    def __init__(self, program: Program, entry: Entry, shapes: Sequence[tuple[int, ...]], rows: Sequence[Rows]) -> None:
        self.program, self.entry, self.shapes, self.rows = program, entry, shapes, rows
        self.width = next(own.shape[1] for own in rows if own is not None)

    def result(self, shape: tuple[int, ...]) -> csr_array:
        """Return what a result of a shape depends on."""
        op = self.entry.op
        if op.family == "padding":  # what is added depends on nothing
            self.entry = self.entry._replace(attrs={**self.entry.attrs, "value": 0})
            found = self.linear(shape)
        elif op.is_elementwise or op.family in ("cast", "rounding", "choice", "special", "complex"):
            found = self.elementwise(shape)
        elif op.name == "matmul":
            found = self.product(shape)
        elif op.name in _PREFIXES:
            found = self.prefixes(shape)
        elif op.name == "cross" or (op.family in _SHARES and not op.linear):
            found = self.lines(shape)
        elif op.linear:
            found = self.linear(shape)
        elif op.family == "linalg":
            found = self.blocks(shape)
        else:
            found = self.dense(shape)
        return found

    def known(self) -> list[tuple[csr_array, tuple[int, ...], int]]:
        """Return the operands that depend on anything, with their shapes and places."""
        zipped = zip(self.rows, self.shapes, range(len(self.shapes)), strict=True)
        return [(rows, shape, place) for rows, shape, place in zipped if rows is not None]

    def constant(self, place: int) -> np.ndarray | None:
        """Return an operand that is the same in each call."""
        value = self.program.constants.get(self.entry.operands[place])
        return None if value is None else np.asarray(value)

    def elementwise(self, shape: tuple[int, ...]) -> csr_array:
        """Each element depends on those of the same place; products with a constant 0 on none."""
        parts = []
        for rows, own, place in self.known():
            part = spread(rows, own, shape)
            if self.entry.op.name == "mul" and (factor := self.constant(1 - place)) is not None and not factor.all():
                zeros = np.broadcast_to(factor == 0, shape).reshape(-1)
                part = gathered(part, np.where(zeros, -1, np.arange(len(zeros))))
            elif self.entry.op.name == "where" and (condition := self.constant(0)) is not None:
                left_out = np.broadcast_to(condition if place == 2 else ~condition, shape).reshape(-1)
                part = gathered(part, np.where(left_out, -1, np.arange(len(left_out))))
            parts.append(part)
        return united(parts)

    def dense(self, shape: tuple[int, ...]) -> csr_array:
        """Each element depends on all that any operand depends on."""
        parts = [among(rows, np.zeros(rows.shape[0], np.int64), 1) for rows, *_ in self.known()]
        return gathered(united(parts), np.zeros(math.prod(shape), np.int64))

    def lines(self, shape: tuple[int, ...]) -> csr_array:
        """Each element depends on the lines along some dimensions that stand at its place."""
        attrs = self.entry.attrs
        dims = attrs.get("dim", attrs.get("dims"))
        (_, first, _), *others = self.known()
        if dims is None and "dim" in attrs and self.entry.op.family == "reduction":
            dims = tuple(range(len(first)))
        if dims is None or any(own != first for _, own, _ in others):
            return self.dense(shape)
        dims = _dims(dims, len(first))
        kept = [length for k, length in enumerate(first) if k not in dims]
        count, lines = math.prod(kept), line_of(first, dims)
        if math.prod(shape) == count:  # there is one result for each line, in their order
            places = np.arange(count)
        elif len(shape) == len(first) and [n for k, n in enumerate(shape) if k not in dims] == kept:
            places = line_of(shape, dims)
        else:
            return self.dense(shape)
        return gathered(united([among(rows, lines, count) for rows, *_ in self.known()]), places)

    def prefixes(self, shape: tuple[int, ...]) -> csr_array:
        """Each element depends on those before it along a dimension, and on itself."""
        (_, first, _), *others = self.known()
        if not shape or first != shape or any(own != shape for _, own, _ in others):
            return self.lines(shape)
        (dim,) = _dims(self.entry.attrs["dim"], len(shape))
        length, inner, outer = shape[dim], math.prod(shape[dim + 1 :]), math.prod(shape[:dim])
        check(length * math.prod(shape))
        triangle = csr_array(np.tri(length, dtype=bool))
        blocks = kron(eye_array(outer, dtype=bool), kron(triangle, eye_array(inner, dtype=bool)), format="csr")
        return chosen(csr_array(blocks, dtype=bool), united([rows for rows, *_ in self.known()]))

    def blocks(self, shape: tuple[int, ...]) -> csr_array:
        """Each matrix of a batch depends on the matrices at its place."""
        batches = {own[:-2] for _, own, _ in self.known()}
        batch = batches.pop()
        if batches or shape[: len(batch)] != batch:
            return self.dense(shape)
        count = math.prod(batch)
        parts = [among(rows, line_of(own, range(len(batch), len(own))), count) for rows, own, _ in self.known()]
        return gathered(united(parts), line_of(shape, range(len(batch), len(shape))))

    def product(self, shape: tuple[int, ...]) -> csr_array:
        """Each element of a product of matrices depends on a row and a column; not where a constant is 0."""
        x, y = self.shapes
        full = [(1, *x) if len(x) == 1 else x, (*y, 1) if len(y) == 1 else y]
        batch = np.broadcast_shapes(full[0][:-2], full[1][:-2])
        whole = (*batch, full[0][-2], full[1][-1])
        parts = []
        for rows, _, place in self.known():
            own, factor = full[place], self.constant(1 - place)
            if factor is not None and factor.ndim == 2 and own[:-2] == batch:
                count = math.prod(batch)
                if place == 1:  # (i, k) of the constant times (batch, k, j)
                    local = kron(csr_array(factor != 0), eye_array(own[-1], dtype=bool))
                else:  # (batch, i, k) times (k, j) of the constant
                    local = kron(eye_array(own[-2], dtype=bool), csr_array(factor.T != 0))
                part = chosen(csr_array(kron(eye_array(count, dtype=bool), local), dtype=bool), rows)
            else:
                dim = len(own) - 1 - place
                lines = line_of(own, [dim])
                kept = tuple([1 if k == dim else n for k, n in enumerate(own)])
                part = spread(among(rows, lines, math.prod(kept)), kept, whole)
            parts.append(part)
        return united(parts)

    def linear(self, shape: tuple[int, ...]) -> csr_array:
        """Ask an operation that moves elements where they come from; one that adds them, where they go."""
        entry, op = self.entry, self.entry.op
        moves = [op.rule(place) is not NOT_DIFFERENTIABLE for place in range(len(self.shapes))]
        given = [None if own else self.constant(place) for place, own in enumerate(moves)]
        is_known = all(number in self.program.constants for number in entry.index_arrays)
        is_known = is_known and all(own or value is not None for own, value in zip(moves, given, strict=True))
        if op.family in MOVEMENTS and is_known:
            indices = [np.asarray(self.program.constants[number]) for number in entry.index_arrays]
            places = [place for place, own in enumerate(moves) if own]
            for ask in (self.moved, self.transposed):
                # A forward or a rule may not take positions, or add elements.
                with contextlib.suppress(Exception):
                    return ask(shape, places, given, indices)
        return self.lines(shape) if op.family in _SHARES else self.dense(shape)

    def moved(
        self, shape: tuple[int, ...], places: Sequence[int], given: Sequence[Any], indices: Sequence[np.ndarray]
    ) -> csr_array:
        """Ask the forward of an operation where elements come from."""
        call = forward_of(self.entry, [*given, *indices])
        sources = positions_of(call, tuple([self.shapes[place] for place in places])).reshape(-1) - 1
        found = [(self.rows[place], math.prod(self.shapes[place])) for place in places]
        return gathered(stacked([empty(size, self.width) if rows is None else rows for rows, size in found]), sources)

    def transposed(
        self, shape: tuple[int, ...], places: Sequence[int], given: Sequence[Any], indices: Sequence[np.ndarray]
    ) -> csr_array:
        """Ask the rule of an operation that adds elements where each goes."""
        parts: list[csr_array] = []
        for place in places:
            rows = self.rows[place]
            if rows is None:
                continue
            to = positions_of(self.rule_of(place, given, indices), (shape,)).reshape(-1) - 1
            known = np.flatnonzero(to >= 0)
            parts.append(among(gathered(rows, known), to[known], math.prod(shape)))
        return united(parts)

    def rule_of(self, place: int, given: Sequence[Any], indices: Sequence[np.ndarray]) -> Callable[..., np.ndarray]:
        """Return an operand's rule as a function of the cotangent."""
        entry, rule = self.entry, self.entry.op.rule(place)
        if not callable(rule) or callable(entry.op.vjp):
            raise Refused("its rule is not of one operand")
        asked: Mapping[str, Any] = {
            **entry.attrs,
            **{f"{name}_shape": own for name, own in zip(entry.op.operands, self.shapes, strict=False)},
            **{name: None if own is None else from_array(own)
               for name, own in zip(entry.op.operands, given, strict=False)},
            "index_arrays": tuple(indices), "number": place, "shapes": tuple(self.shapes), "xp": xp,
        }  # fmt: skip
        names = [name for name in inspect.signature(rule).parameters if name != "ct"]

        def cotangent(ct: np.ndarray) -> np.ndarray:
            return np.asarray(rule(ct=from_array(ct), **{name: asked[name] for name in names})._data)

        return cotangent


def _dims(dims: Any, ndim: int) -> list[int]:
    return [k % ndim for k in ((dims,) if isinstance(dims, int) else dims)] if ndim else []

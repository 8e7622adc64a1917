"""Loops of many values: constants, rows and carried values of one dtype become one vector each.

An entry of the tape has room for the residuals of a few operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.modes import enable_grad
from tapegrad.ops.table.op import xp
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.scan import Scan, scan_of
from tapegrad.program.trace import trace
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["Pack", "packs", "packs_of"]


class Pack:
    """Values of one dtype, one behind the other."""

    def __init__(self, layouts: Sequence[Layout], places: Sequence[int]) -> None:
        self.places, self.shapes = list(places), [layouts[place].shape for place in places]
        self.sizes = [math.prod(shape) for shape in self.shapes]

    def joined(self, values: Sequence[Tensor], *lead: int) -> Tensor:
        """Return values as one; they may have a dimension in front."""
        parts = [xp.reshape(values[place], (*lead, size)) for place, size in zip(self.places, self.sizes, strict=True)]
        whole: Tensor = xp.cat(parts, len(lead)) if len(parts) > 1 else parts[0]
        return whole

    def put(self, whole: Tensor, values: list[Any]) -> None:
        """Put the parts of one to where the values stood."""
        ends = np.cumsum(self.sizes).tolist()
        for place, shape, size, end in zip(self.places, self.shapes, self.sizes, ends, strict=True):
            values[place] = xp.reshape(whole[end - size : end], shape)


def packs(layouts: Sequence[Layout]) -> list[Pack]:
    """Return values in packs: one for each dtype."""
    places: dict[Any, list[int]] = {}
    for place, layout in enumerate(layouts):
        places.setdefault(layout.dtype, []).append(place)
    return [Pack(layouts, own) for own in places.values()]


class Packs:
    """A loop, as a loop of few values.

    Attributes
    ----------
    scan : Scan
        The loop of few values.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan, body = scan, scan.body
        n_consts, n_rows, n_carried = scan.counts
        layouts = [body.layouts[number] for number in body.inputs]
        end = n_consts + n_rows
        self._kinds = [packs(own) for own in (layouts[:n_consts], layouts[n_consts:end], layouts[end:])]
        counts = [len(own) for own in self._kinds]
        examples = self._joined(scan.examples[:n_consts], scan.examples[n_consts:end], scan.examples[end:])

        def turn(*tensors: Tensor) -> list[Tensor]:
            outputs, _ = replay(body, self._taken_apart(tensors, (0, 1, 2)))
            carried = [own.joined(outputs) for own in self._kinds[2]]
            return [*carried, *outputs[n_carried:]]

        def goes_on(*tensors: Tensor) -> list[Tensor]:
            assert scan.condition is not None
            return replay(scan.condition, self._taken_apart(tensors, (0, 2)))[0]

        condition: Program | None = None
        if scan.condition is not None:
            condition = trace(goes_on, [*examples[: counts[0]], *examples[counts[0] + counts[1] :]])[0]
        with enable_grad():
            program, _ = trace(turn, examples, [own.dtype.kind in "fc" for own in examples])
        self.scan = scan_of(
            program, (counts[0], counts[1], counts[2]), scan.length, examples,
            reverse=scan.reverse, counted=scan.counted, condition=condition,
        )  # fmt: skip

    def _joined(self, *kinds: Sequence[Any]) -> list[np.ndarray]:
        return [
            np.concatenate([np.reshape(values[place], -1) for place in own.places])
            for packs, values in zip(self._kinds, kinds, strict=True)
            for own in packs
        ]

    def _taken_apart(self, tensors: Sequence[Tensor], kinds: Sequence[int]) -> list[Tensor]:
        found, left = [], list(tensors)
        for kind in kinds:
            values: list[Any] = [None] * self._scan.counts[kind]
            for own in self._kinds[kind]:
                own.put(left.pop(0), values)
            found += values
        return found

    def operands(self, operands: Sequence[Tensor]) -> list[Tensor]:
        """Return operands of the loop as those of the loop of few values."""
        consts, rows, turns, carried = self._scan.parts(operands)
        first, second, third = self._kinds
        arrays = [own.joined(rows, self._scan.length or 0) for own in second]
        found: list[Tensor] = self.scan.operands(
            [own.joined(consts) for own in first], arrays, turns, [own.joined(carried) for own in third]
        )
        return found

    def results(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Return results of the loop of few values as those of the loop."""
        carried: list[Any] = [None] * self._scan.n_carried
        for own, whole in zip(self._kinds[2], results, strict=False):
            own.put(whole, carried)
        return [*carried, *results[len(self._kinds[2]) :]]


_known: Final[WeakKeyDictionary[Scan, Packs]] = WeakKeyDictionary()


def packs_of(scan: Scan) -> Packs:
    """Return a loop as one of few values."""
    found = _known.get(scan)
    if found is None:
        found = _known[scan] = Packs(scan)
    return found

"""Which dimensions of a program belong together, and which of them become axes of loops.

Dimensions that an operation pairs are of one class: those of operands that are broadcast together, or that a movement
only carries on. Long classes are axes. If that leaves too many scalars, more classes become axes, until it does not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad.kernels.indexed import ARRAY
from tapegrad.program.fuse.flat import Flat, enter, leave
from tapegrad.program.fuse.moves import courses
from tapegrad.program.machine_code import Refused
from tapegrad.program.program import Entry, Program

__all__ = ["Roles", "roles_of"]


_SINGLE: Final = 1000  # elements of all values that are not along one long axis: below it, the rest is scalars,
_ELSE_SINGLE: Final = 4000  # and below this, if nests do not fit
_AT_ONCE: Final = 1 << 16  # elements along all axes: below it, a value is no more than what is computed at once
_LANES: Final = 8  # so long is an axis in vectors at least
_BESIDE: Final = 16  # so long is it if its elements are neighbours in memory, rather than those of a longer one
_WIDE: Final = 32  # so long is an axis that is reduced to several results, if vectors lie along it
_SUMS: Final = 256  # and so many reductions along it

Axes = tuple[int | None, ...]


class Roles:
    """The axis of each dimension of each value, or None.

    Attributes
    ----------
    axes : dict
        By numbers of values. Axis 0, which vectors lie along, is the class whose elements are neighbours in memory, if
        it is long enough, or the longest.
    of_batches : dict
        The axes of the batches that each value is an item of.
    lengths : dict
        By axes.
    single : bool
        Whether no more than one dimension of a value is long, and what else there is is not too much for scalars.
    alone : bool
        Whether there is one axis.
    else_single : bool
        Whether one axis would do if nests of loops over several do not.
    """

    def __init__(
        self, axes: dict[int, Axes], of_batches: dict[int, Axes], lengths: dict[int, int], single: bool, alone: bool,
        else_single: bool,
    ) -> None:  # fmt: skip
        self.axes, self.of_batches, self.lengths = axes, of_batches, lengths
        self.single, self.alone, self.else_single = single, alone, else_single


class _Classes:
    def __init__(self) -> None:
        self._parents: dict[tuple[int, int], tuple[int, int]] = {}

    def find(self, dim: tuple[int, int]) -> tuple[int, int]:
        """Return the representative of a dimension ``(value, place)``."""
        root = dim
        while root in self._parents:
            root = self._parents[root]
        while dim != root:
            self._parents[dim], dim = root, self._parents.get(dim, root)
        return root

    def join(self, one: tuple[int, int], two: tuple[int, int]) -> None:
        one, two = self.find(one), self.find(two)
        if one != two:
            self._parents[two] = one


def roles_of(flat: Flat, long: int, enough: int, moves: Callable[[Entry], np.ndarray | None]) -> Roles:
    """Return the roles of a program's dimensions.

    Parameters
    ----------
    flat : Flat
        The program; its batches are axes anyway.
    long : int
        Longer classes are axes anyway.
    enough : int
        How many elements all values together may have, besides those along axes.
    moves : callable
        From an entry to the positions that its elements are moved from, counted from 1 over its operands; None if it
        computes.
    """
    program = flat.program
    classes, layouts = _Classes(), program.layouts
    for entry in program.entries:
        if entry.op is enter or entry.op is leave:
            _join_batch(classes, flat, entry)
        else:
            _join(classes, program, entry, moves)
    members: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, layout in enumerate(layouts):
        for place, length in enumerate(layout.shape):
            if length > 1:
                members.setdefault(classes.find((number, place)), []).append((number, place))
    lengths = {root: max(layouts[number].shape[place] for number, place in own) for root, own in members.items()}
    batches = [classes.find(_dim_of(batch)) for batch in range(len(flat.sizes))]
    rolled = [root for root, length in lengths.items() if length > long or root in batches]

    def is_double(root: tuple[int, int]) -> bool:
        """Return whether a value has two dimensions of a class, of which an axis would be a diagonal."""
        numbers = {number for number, _ in members[root]}
        if any(root == batches[batch] for number in numbers for batch in flat.batches.get(number, ())):
            return True
        return len(numbers) < len(members[root])

    def dims_of(number: int) -> list[tuple[tuple[int, int], int]]:
        shape = layouts[number].shape
        return [(classes.find((number, place)), length) for place, length in enumerate(shape) if length != 1]

    def unrolled(dims: Iterable[tuple[tuple[int, int], int]], roots: Container[tuple[int, int]]) -> int:
        return math.prod([length for root, length in dims if root not in roots])

    values: Counter[tuple[tuple[tuple[int, int], int], ...]] = Counter()  # how many have these dimensions
    for entry in program.entries:
        for number in entry.results:
            values[tuple(dims_of(number))] += 1
        if entry.op.name == "matmul":  # of each element, as many products as the contracted dimension has
            operand = entry.operands[0]
            last = layouts[operand].ndim - 1
            inner = classes.find((operand, last)), layouts[operand].shape[last]
            values[(*dims_of(entry.results[0]), inner)] += 1

    def scalars(roots: Container[tuple[int, int]]) -> int:
        return sum(count * unrolled(dims, roots) for dims, count in values.items())

    longs = set(rolled)
    summed = [(entry.results[0], _summed(classes, program, entry)) for entry in program.entries]
    sums = sum(unrolled(dims_of(result), longs) for result, own in summed if own & longs)
    count = scalars(rolled)
    else_single = (
        sums <= _SUMS
        and count <= _ELSE_SINGLE
        and all(
            sum(classes.find((number, place)) in longs for place in range(layout.ndim))
            + len(flat.batches.get(number, ()))
            < 2
            for number, layout in enumerate(layouts)
        )
    )
    single = else_single and count <= _SINGLE
    if len(rolled) > 1 and any(lengths[root] <= long for root in batches):
        single = False  # a batch is an axis though others of its length are none
    if rolled and not single:
        doubles = {root: is_double(root) for root, length in lengths.items() if root not in longs and length > 3}
        _add_axes(rolled, doubles, values, enough)
    if rolled:  # a dimension that computed indices add to is one, too: each place asks all indices
        for entry in program.entries:
            arrays = [number for number in entry.index_arrays if number not in program.constants]
            if arrays and entry.op.name == "index_scatter_add" and len(entry.index_arrays) == 1:
                at = next((k for k, own in enumerate(entry.attrs["key"]) if own == ARRAY), 0)
                root = classes.find((entry.results[0], at))
                if root in lengths and root not in rolled:
                    rolled.append(root)
                    single = False
    rolled.sort(key=lambda root: -lengths[root])
    if not single and not batches and rolled:
        beside = _elements_side_by_side(classes, program)
        most = max([math.prod([length for _, length in dims]) for dims in values], default=0)
        nearest = max(beside, key=beside.__getitem__, default=rolled[0])
        if nearest not in rolled and len(rolled) > 1 and lengths[nearest] >= _BESIDE and not is_double(nearest):
            rolled.append(nearest)
        if most > _AT_ONCE and beside[nearest] >= most // 2:  # an array as large as values lies along it
            rolled.sort(key=lambda root: (lengths[root] < _BESIDE, -beside[root]))
        elif most <= _AT_ONCE:
            many = [own for result, own in summed if math.prod(layouts[result].shape) > 1]
            barred = {root for own in many for root in own if lengths.get(root, 0) < _WIDE}
            barred |= {root for root in rolled if lengths[root] < _LANES}
            rolled.sort(key=lambda root: 0 if root in barred else -beside[root])
    numbers = {root: axis for axis, root in enumerate(rolled)}
    axes: dict[int, Axes] = {}
    of_batches: dict[int, Axes] = {}
    for number, layout in enumerate(layouts):
        own = flat.batches.get(number, ())
        roots = [batches[batch] for batch in own]
        roots += [classes.find((number, place)) for place in range(layout.ndim)]
        found: list[int | None] = []
        for root, length in zip(roots, [*[flat.sizes[batch] for batch in own], *layout.shape], strict=True):
            axis = numbers.get(root) if length > 1 else None
            if axis is not None and axis in found:  # two dimensions of one class
                axis = len(numbers) + axis
                if axis in found:
                    raise Refused("three dimensions belong together")
            found.append(axis)
        axes[number], of_batches[number] = tuple(found[len(own) :]), tuple(found[: len(own)])
    spans = {axis: lengths[root] for root, axis in numbers.items()}
    spans.update({len(numbers) + axis: length for axis, length in list(spans.items())})
    return Roles(axes, of_batches, spans, single, len(numbers) == 1, else_single)


def _add_axes(
    rolled: list[tuple[int, int]], doubles: dict[tuple[int, int], bool],
    values: Mapping[tuple[tuple[tuple[int, int], int], ...], int], enough: int,
) -> None:  # fmt: skip
    """Make more classes axes, each time the one that leaves the fewest scalars, until these are few enough.

    Parameters
    ----------
    rolled : list
        The axes, to which others are added.
    doubles : dict
        The other classes, and whether one has two dimensions of a value: these come last.
    values : mapping
        How many values have these dimensions, as pairs of a class and a length.
    """
    left = {dims: math.prod([length for root, length in dims if root not in rolled]) for dims in values}
    of_class: dict[tuple[int, int], list[tuple[Any, int]]] = {root: [] for root in doubles}
    for dims in values:
        for root in {root for root, _ in dims} & doubles.keys():
            of_class[root].append((dims, math.prod([length for own, length in dims if own == root])))
    scalars = sum(count * left[dims] for dims, count in values.items())
    while of_class and scalars > enough:
        fewer = {root: sum(values[d] * (left[d] - left[d] // n) for d, n in own) for root, own in of_class.items()}
        best = min(of_class, key=lambda root: (doubles[root], -fewer[root]))
        for dims, length in of_class.pop(best):
            left[dims] //= length
        scalars -= fewer[best]
        rolled.append(best)


def _summed(classes: _Classes, program: Program, entry: Entry) -> set[tuple[int, int]]:
    """Return the classes along which an operation sums up, or reduces otherwise."""
    if entry.op.name != "matmul" and entry.op.family != "reduction":
        return set()
    operand, kept = (
        {classes.find((number, place)) for place in range(program.layouts[number].ndim)}
        for number in (entry.operands[0], entry.results[0])
    )
    return operand - kept


def _elements_side_by_side(classes: _Classes, program: Program) -> Counter[tuple[int, int]]:
    """Return how many elements of inputs and outputs are neighbours in memory, by classes."""
    found: Counter[tuple[int, int]] = Counter()
    for number in {*program.inputs, *program.outputs}:
        layout = program.layouts[number]
        strides = [(stride, place) for place, stride in enumerate(layout.strides) if layout.shape[place] > 1 and stride]
        if strides:
            found[classes.find((number, min(strides)[1]))] += math.prod(layout.shape)
    return found


def _dim_of(batch: int) -> tuple[int, int]:
    """Return what stands for the items of a batch among dimensions."""
    return -1 - batch, 0


def _join_batch(classes: _Classes, flat: Flat, entry: Entry) -> None:
    """Join the dimensions of a value with those of its items, and one with their batch."""
    (x,), (result,), dim = entry.operands, entry.results, entry.attrs["dim"]
    whole, item = (x, result) if entry.op is enter else (result, x)
    places = list(range(flat.program.layouts[whole].ndim))
    if dim is not None:
        classes.join(_dim_of(flat.batches[item][-1]), (whole, places.pop(dim)))
    for place, of_whole in enumerate(places):
        classes.join((item, place), (whole, of_whole))


def _join(classes: _Classes, program: Program, entry: Entry, moves: Callable[[Entry], np.ndarray | None]) -> None:
    """Join the dimensions that an operation pairs."""
    layouts, (result, *_) = program.layouts, entry.results
    shape = layouts[result].shape
    if entry.op.name == "matmul":
        x, y = entry.operands
        a, b = layouts[x].ndim, layouts[y].ndim
        classes.join((x, a - 1), (y, max(b - 2, 0)))
        rest = len(shape)
        if a > 1:
            classes.join((x, a - 2), (result, rest - 1 - (b > 1)))
        if b > 1:
            classes.join((y, b - 1), (result, rest - 1))
        for side, ndim in ((x, a), (y, b)):
            for k in range(3, ndim + 1):
                if layouts[side].shape[ndim - k] > 1:
                    classes.join((side, ndim - k), (result, rest - k))
        return
    if entry.op.family == "reduction":
        said, ndim = entry.attrs.get("dim", ()), layouts[entry.operands[0]].ndim
        dims = (said,) if isinstance(said, int) else tuple(range(ndim)) if said is None else said
        if not entry.attrs.get("keepdim"):
            kept = [k for k in range(layouts[entry.operands[0]].ndim) if k not in dims]
            for place, k in enumerate(kept[: len(shape)]):
                classes.join((entry.operands[0], k), (result, place))
            return
    if entry.index_arrays and "key" in entry.attrs and len(entry.index_arrays) == 1:  # along a dimension
        number, (index,) = entry.operands[0], entry.index_arrays
        at = next((k for k, own in enumerate(entry.attrs["key"]) if own == ARRAY), 0)
        many, few = (result, number) if entry.op.name == "index_gather" else (number, result)
        count = layouts[index].ndim
        for k in range(layouts[many].ndim):
            if k < at:
                classes.join((few, k), (many, k))
            elif k < at + count:
                classes.join((index, k - at), (many, k))
            else:
                classes.join((few, k - count + 1), (many, k))
        return
    if entry.index_arrays:  # one element for each row
        for number in (*entry.operands, *entry.index_arrays):
            if layouts[number].ndim and layouts[number].shape[:1] == shape[:1]:
                classes.join((number, 0), (result, 0))
        return
    positions = moves(entry)
    if positions is not None:
        _join_moved(classes, program, entry, positions)
        return
    for number in entry.operands:
        own = layouts[number].shape
        for k in range(1, min(len(own), len(shape)) + 1):
            if own[-k] == shape[-k] > 1:
                classes.join((number, len(own) - k), (result, len(shape) - k))
    for other in entry.results[1:]:
        for k in range(min(layouts[other].ndim, len(shape))):
            if layouts[other].shape[k] == shape[k]:
                classes.join((other, k), (result, k))


def _join_moved(classes: _Classes, program: Program, entry: Entry, positions: np.ndarray) -> None:
    """Join each dimension of the result with the one of an operand along which it goes on."""
    (result,) = entry.results
    for k, own in enumerate(courses(positions, [program.layouts[number].shape for number in entry.operands])):
        for number, changed in zip(entry.operands, own, strict=True):
            if len(changed) == 1:
                classes.join((number, changed[0]), (result, k))

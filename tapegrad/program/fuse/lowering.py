"""From a program's operations to scalar nodes: each op by what the op table says of it.

An elementwise op by its formula, on each node; a movement by its forward, on positions; any other by its forward, on an
array of nodes. So nothing about an op stands here but how its kind is served.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op
from tapegrad.ops.table.plain import attributes, plain
from tapegrad.ops.table.promotion import promote
from tapegrad.program.fuse import functions
from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.estimates import SPARSE
from tapegrad.program.fuse.flat import Flat, enter, leave
from tapegrad.program.fuse.formulas import of_op, rebound
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.picks import OF_CLASSES, PICKS
from tapegrad.program.fuse.roles import Roles
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.slices import Slice
from tapegrad.program.fuse.small import SMALL
from tapegrad.program.fuse.space import Space, steps_of
from tapegrad.program.machine_code import Refused
from tapegrad.program.program import Entry
from tapegrad.tape.layout import Layout

__all__ = ["MOVEMENTS", "Lowered", "forward_of", "lower", "moves"]

_BITS: Final = {
    "d": np.int64,
    "f": np.int32,
    "l": np.int64,
    "i": np.int32,
    "?": np.int8,
}  # of numbers that are equal to the last one
_FEW: Final = 4096  # elements of an operand that is asked for one by one, and of the result
MOVEMENTS: Final = frozenset(("movement", "indexing", "joining", "convolution", "padding", "along"))


class Lowered:
    """A program as nodes.

    Attributes
    ----------
    graph : Graph
    outputs : list of Array
        Of the program's outputs, and of the values of its guards.
    constants : list of array
        Those that stand in memory.
    """

    def __init__(self, graph: Graph, outputs: list[Array], constants: list[np.ndarray]) -> None:
        self.graph, self.outputs, self.constants = graph, outputs, constants


def lower(flat: Flat, long: int, limit: int, roles: Roles | None = None) -> Lowered:
    """Return the nodes of a program.

    Parameters
    ----------
    flat : Flat
    long : int
        Dimensions longer than this are axes.
    limit : int
        Of the number of scalars.
    roles : Roles, optional
        Which dimensions are axes; default those that are long.

    Raises
    ------
    Refused
        If an operation has no lowering.
    """
    return _Lowering(flat, long, limit, roles).run()


class _Lowering:
    def __init__(self, flat: Flat, long: int, limit: int, roles: Roles | None) -> None:
        self.program, self.batches, self.slices, self.roles = flat.program, flat.batches, flat.slices, roles
        self.graph = Graph()
        self.graph.limit = limit
        self.space = Space(self.graph, long, functions, flat.movements)
        self.graph.lengths = None if roles is None else roles.lengths
        self.values: dict[int, Array] = {}
        self.constants: list[np.ndarray] = []
        self.formulas: dict[Any, tuple[Callable[..., Node], list[Any]]] = {}  # by operations and layouts

    def run(self) -> Lowered:
        program = self.program
        for position, number in enumerate(program.inputs):
            layout = program.layouts[number]
            own = self.slices.get(number) or Slice(position, steps_of(layout.shape), 0)
            self.values[number] = self.space.memory(
                ("in", own.position), layout.shape, layout.dtype, self.axes(number), own.strides, own.offset
            )
        for entry in program.entries:
            axes = self.axes(entry.results[0])
            self.space.wish = None if axes is None else (program.layouts[entry.results[0]].shape, axes)
            self.space.taken = self.of_batches(entry.results[0])
            try:
                results = self.entry(entry)
            except Refused as error:
                raise Refused(f"{entry.op.name}: {error}") from None
            except RecursionError:
                raise
            except Exception as error:  # a forward that meets nodes may raise anything
                raise Refused(f"{entry.op.name}: its forward does more than arithmetic on elements") from error
            for number, result in zip(entry.results, results, strict=True):
                layout = program.layouts[number]
                if not isinstance(result, Array):
                    result = self.space.array(result)
                if result.shape != layout.shape:
                    raise Refused(f"{entry.op.name}: its code has shape {result.shape}, not {layout.shape}")
                self.values[number] = result.astype(layout.dtype)
        outputs = [self.value(number) for number in (*program.outputs, *[own.value for own in program.guards])]
        return Lowered(self.graph, outputs, self.constants)

    def value(self, number: int) -> Array:
        """Return the nodes of a value."""
        value = self.values.get(number)
        if value is None:
            if number not in self.program.constants:
                raise Refused("a value that no operation computes")
            data = np.asarray(self.program.constants[number], self.program.layouts[number].dtype)
            value = self.values[number] = self.constant(data, self.axes(number))
        return value

    def axes(self, number: int) -> tuple[int | None, ...] | None:
        """Return the axes of a value, if it is said which dimensions are axes."""
        return None if self.roles is None else self.roles.axes[number]

    def of_batches(self, number: int) -> tuple[int | None, ...]:
        """Return the axes of the batches that a value is an item of; without roles there is one axis."""
        if self.roles is None:
            return (0,) * len(self.batches.get(number, ()))
        return self.roles.of_batches[number]

    def constant(self, data: np.ndarray, axes: tuple[int | None, ...] | None) -> Array:
        """Return an array of numbers: constants, unless it is long."""
        if axes is None:
            axes = self.space.fresh(data.shape)
        self.space.char(data.dtype)  # is refused if there is no code for it
        bits = np.ascontiguousarray(data).reshape(-1).view(_BITS[data.dtype.char])
        if all(axis is None for axis in axes) or (bits == bits[:1]).all():
            return self.space.array(data, axes)
        self.constants.append(np.ascontiguousarray(data))
        return self.space.memory(("const", len(self.constants) - 1), data.shape, data.dtype, axes)

    def entry(self, entry: Entry) -> tuple[Any, ...]:
        """Return the results of an operation."""
        op, operands = entry.op, [self.value(number) for number in entry.operands]
        if op.family == "scan":
            raise Refused("it is a loop")
        if op.is_elementwise:
            return (self.elementwise(entry, operands),)
        if op is enter or op is leave:
            return (self.moved_batch(entry, *operands),)
        if op.name == "cast":
            return (operands[0].astype(self.program.layouts[entry.results[0]].dtype),)
        fixed = [number in self.program.constants for number in entry.index_arrays]
        along = op.name in OF_CLASSES and any(axis is not None for axis in operands[0].axes)
        if op.name in PICKS and (along or not all(fixed)):
            numbers = zip(entry.index_arrays, fixed, strict=True)
            picked = [
                self.fixed(number) if is_fixed and not along else self.value(number) for number, is_fixed in numbers
            ]
            return (PICKS[op.name](self.space, operands, picked, entry.attrs),)
        indices: list[Any] = [self.fixed(number) for number in entry.index_arrays]
        small = SMALL.get(op.name)
        if small is not None:
            result = small(self.space, *operands, **entry.attrs)
        elif op.linear and op.family in MOVEMENTS:
            # Operands that say where elements go are numbers, as are arrays of indices.
            moves = [not (op.has_constants and op.rule(k) is NOT_DIFFERENTIABLE) for k in range(len(operands))]
            given = [None if own else self.fixed(number) for number, own in zip(entry.operands, moves, strict=True)]
            operands = [operand for operand, own in zip(operands, moves, strict=True) if own]
            call = forward_of(entry, given + indices)
            key = None if len(given) + len(indices) > len(operands) else _key(entry)
            try:
                result = self.space.moved(call, operands, key, op.name in SPARSE)
            except Refused as error:
                if any(own.nodes.size != own.size for own in operands):
                    raise
                result = self.summing(call, operands, error)
        else:
            result = _of_arrays(op, self.space)(*operands, *indices, **attributes(op, entry.attrs))
        return result if isinstance(result, tuple) else (result,)

    def moved_batch(self, entry: Entry, x: Array) -> Array:
        """Return each item's part of a value, or the whole of items: the nodes depend on the axis of the batch."""
        (operand,), (result,), dim = entry.operands, entry.results, entry.attrs["dim"]
        axes, shape = self.axes(result), self.program.layouts[result].shape
        if dim is None:
            return x if axes is None else self.space.renamed(x, axes)
        axis = self.of_batches(result if entry.op is enter else operand)[-1]
        if entry.op is leave:
            along = list(x.axes)
            along.insert(dim % len(shape), axis)
            whole = Array(self.space, np.expand_dims(x.nodes, dim), shape, tuple(along), x.dtype)
            return whole if axes is None else self.space.renamed(whole, axes)
        along = list(x.axes if axes is None else axes)
        if axes is None:
            along.pop(dim)
        of_items = tuple(along)
        along.insert(dim % x.ndim, axis)
        x = self.space.renamed(x, tuple(along))
        return Array(self.space, x.nodes.reshape(np.delete(x.nodes.shape, dim)), shape, of_items, x.dtype)

    def fixed(self, number: int) -> np.ndarray:
        """Return an array of indices, which must be a constant."""
        if number not in self.program.constants:
            raise Refused("its indices are computed")
        return np.asarray(self.program.constants[number])

    def summing(self, call: Callable[..., Any], operands: list[Array], error: Refused) -> Array:
        """Return the result of a linear operation of few elements: which it adds up is what it does to each one."""
        if len(operands) != 1 or operands[0].size > _FEW:
            raise error
        (x,) = operands
        graph, char = self.graph, self.space.char(x.dtype)
        total: np.ndarray | None = None
        image = np.empty(0)
        nodes = x.nodes.reshape(-1)
        for k in range(x.size):
            unit = np.zeros(x.size)
            unit[k] = 1.0
            image = np.asarray(call(unit.reshape(x.shape)))
            if image.dtype.kind == "c" or image.size > _FEW:
                raise error
            if total is None:
                total = np.full(image.size, graph.zero(char), object)
            for at in np.flatnonzero(image):
                factor = float(image.reshape(-1)[at])
                total[at] = graph.binary("add", total[at], nodes[k] * factor)
        if total is None:
            raise error
        made = np.empty(image.shape, object)
        made.reshape(-1)[:] = total
        return Array(self.space, made, image.shape, (None,) * made.ndim, x.dtype)

    def elementwise(self, entry: Entry, operands: list[Array]) -> Array:
        """Return the results of an elementwise operation: its operands in a common dtype, then its formula."""
        layouts = self.program.layouts
        given, result = [layouts[number] for number in entry.operands], layouts[entry.results[0]].dtype
        key = entry.op, result, *given
        found = self.formulas.get(key)
        if found is None:
            found = self.formulas[key] = self.formula(entry.op, given, result)
        function, dtypes = found
        taken = [own if dtype is None else own.astype(dtype) for own, dtype in zip(operands, dtypes, strict=True)]
        return self.space.map(function, taken, result)

    def formula(self, op: Op, given: Sequence[Layout], result: Any) -> tuple[Callable[..., Node], list[Any]]:
        """Return what an elementwise operation does with nodes, and the dtypes that it takes; None for conditions."""
        conditions = [op.family == "elementwise" and layout.dtype.kind == "b" for layout in given]
        taken = [layout for layout, is_condition in zip(given, conditions, strict=True) if not is_condition]
        common = promote(taken) if taken else result
        if result.kind == "f" and common.kind != "f":
            common = result
        function, graph, char = of_op(op), self.graph, self.space.char(result)

        def of_any(*args: Any) -> Node:
            value = function(*args)
            return graph.cast(value if isinstance(value, Node) else graph.const(value, char), char)

        return of_any, [None if is_condition else common for is_condition in conditions]


def moves(flat: Flat) -> Callable[[Entry], np.ndarray | None]:
    """Return a function that says where an operation's elements are moved from, counted from 1; None if it computes."""
    layouts = flat.program.layouts

    def positions(entry: Entry) -> np.ndarray | None:
        op = entry.op
        if not op.linear or op.family not in MOVEMENTS or entry.index_arrays or op.has_constants:
            return None
        shapes = tuple([layouts[number].shape for number in entry.operands])
        try:
            return flat.movements.of(forward_of(entry, [None] * len(shapes)), shapes, _key(entry))
        except Exception:  # it adds elements, or its forward does not take positions
            return None

    return positions


def _key(entry: Entry) -> tuple[Any, ...]:
    """Return what decides, besides shapes, where an operation without other operands moves elements."""
    return (entry.op.name, *entry.attrs.values())


def forward_of(entry: Entry, given: list[Any]) -> Callable[..., Any]:
    """Return the forward of an operation as a function of the arrays that stand as None among its arguments."""
    forward, attrs = plain(entry.op.forward), entry.attrs

    def call(*arrays: np.ndarray) -> Any:
        rest = iter(arrays)
        return forward(*[next(rest) if own is None else own for own in given], **attrs)

    return call


class _Numpy:
    """NumPy as forwards see it, whose new arrays take nodes."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        data = np.zeros(shape, dtype)
        return self._space.array(data)

    empty = zeros

    def ones(self, shape: Any, dtype: Any = float) -> Any:
        return self._space.array(np.ones(shape, dtype))

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return value if dtype is None else value.astype(dtype)
        return np.asarray(value, dtype)


def _of_arrays(op: Op, space: Space) -> Callable[..., Any]:
    """Return the forward of an op on arrays of nodes."""
    forward = op.forward
    if isinstance(forward, types.FunctionType):
        return rebound(forward, {"np": _Numpy(space)})
    return forward

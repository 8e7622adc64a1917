"""One compiled pass over all parameters of a group: compiled code finds their arrays and runs the formula's loop.

Nothing about the arrays is assumed from the step before: each step looks up the gradient and the states, and compares
layouts. A parameter that is not as expected (the first step, other strides, a state of another dtype) is left to
Python, which runs the same loop.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.compiler.intrinsics import call
from tapegrad.dtypes import default_dtype
from tapegrad.optim.formula import HEAD, MOST, Formula, loop_address, reads
from tapegrad.recording.native import load, new_integer
from tapegrad.recording.objects import LayoutObject, Runtime, TensorObject, is_tensor, plain_layout, runtime
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import WRITEABLE, List, NDArray, Object, Scalar
from tapegrad.runtime.structs import WORD, Array, Struct, Table, embedded, sizeof
from tapegrad.tape import versions
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor, from_array

State = dict[Tensor, dict[str, Any]]
_call_loop: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_get_item: Final = ctypes.cast(ctypes.pythonapi.PyDict_GetItem, ctypes.c_void_p).value or 0
_PLACES: Final = 3 + 2 * MOST


class Row(Struct):
    """What the pass knows of a parameter."""

    loop: int  # the address of its loop; 0 if Python has to look at it first
    layout: LayoutObject  # of its data, its gradient, and states of its shape
    number_layout: LayoutObject  # of states that are single numbers
    was_run: int  # whether the last pass ran the loop
    places: Array[int] = embedded(_PLACES)  # what the loop gets: see `tapegrad.optim.formula.loop`


class Pass(Struct):
    """The memory behind the compiled function."""

    runtime: Runtime
    count: int  # parameters
    rows: Table[Row]
    values: int  # the address of the values that loops get
    numbers: int
    states: int
    get_item: int  # the address of PyDict_GetItem: the reference is borrowed, and 0 if there is none
    names: Array[Object] = embedded(2 * MOST)  # of the numbers, and from MOST on of the states


def run(self: NDArray, args: Array[Object], nargs: int) -> Any:
    """Run the loops of all parameters of a list, with the states in a dict; return how many are left to Python."""
    own, params, states = Pass(self.data), List(args[0]), args[1]
    left = 0
    for index in range(own.count):
        row = own.rows[index]
        row.was_run = 0
        tensor = TensorObject(params.items[index])
        known = is_tensor(own.runtime, tensor.type)
        if known != 0 and tensor.grad == own.runtime.none:
            continue
        if known == 0 or row.loop == 0 or tensor.grad == 0 or find(own, row, tensor, states) == 0:
            left += 1
            continue
        row.was_run = 1
        call(row.loop, row.places, own.values)
    return new_integer(left)


def find(own: Pass, row: Row, tensor: TensorObject, states: Object) -> int:
    """Write down where a parameter, its gradient and its states are; 0 if one of them is not as expected."""
    grad, places = TensorObject(tensor.grad), row.places
    places[1] = address_in(own, tensor, row.layout)
    if places[1] == 0 or tensor.data.flags & WRITEABLE == 0:
        return 0
    # The gradient of a tensor without dimensions is often a scalar object.
    if tensor.data.ndim == 0 and grad.data.type == own.runtime.float64_type and tensor.data.dtype == grad.layout.dtype:
        places[2] = Scalar(grad.data).value
    else:
        places[2] = address_in(own, grad, row.layout)
        if places[2] == 0:
            return 0
    if own.numbers + own.states == 0:
        return 1
    state = Object(call(own.get_item, states, tensor))
    if state == 0:
        return 0
    for kind in range(2):
        layout = row.layout if kind == 1 else row.number_layout
        for number in range(own.states if kind == 1 else own.numbers):
            item = TensorObject(call(own.get_item, state, own.names[MOST * kind + number]))
            if item == 0 or is_tensor(own.runtime, item.type) == 0:
                return 0
            places[3 + MOST * kind + number] = address_in(own, item, layout)
            if places[3 + MOST * kind + number] == 0:
                return 0
    return 1


def address_in(own: Pass, tensor: TensorObject, layout: LayoutObject) -> Any:
    """Return the address of a tensor's array if it has this layout, else 0."""
    if plain_layout(own.runtime, tensor.layout) != layout or tensor.data.type != own.runtime.array_type:
        return 0
    return tensor.data.data


class Update:
    """The pass of one group: call it with the options of a step.

    Parameters
    ----------
    name : str
        What the loops are called in the cache.
    formula : Formula
    initial : mapping
        The names of all states and their initial values.
    count : int
        How many parameters the group has.
    """

    def __init__(self, name: str, formula: Formula, initial: Mapping[str, Any], count: int) -> None:
        self.name, self.formula, self.initial = name, formula, initial
        self.reads = reads(formula, initial)
        self.count = count
        self._written = versions.Writer()
        self._pack: Callable[..., None] = struct.Struct(f"{HEAD + len(self.reads.options)}d").pack_into
        self._values = watch(np.zeros(HEAD + 7), "values of an optimizer")
        width = sizeof(Row) // WORD
        self._rows = watch(np.zeros((max(self.count, 1), width), np.int64), "rows of an optimizer")
        self._layouts: list[tuple[Layout, Layout] | None] = [None] * self.count
        names = [*self.reads.numbers, *[""] * (MOST - len(self.reads.numbers)), *self.reads.states]
        words = [runtime().ctypes.data, self.count, self._rows.ctypes.data, self._values.ctypes.data,
                 len(self.reads.numbers), len(self.reads.states), _get_item, *map(id, names)]  # fmt: skip
        self._names = names
        own = np.zeros(sizeof(Pass) // WORD, np.int64)
        own[: len(words)] = words
        self._run: Callable[[list[Tensor], State], int] = load(run, watch(own, "pass of an optimizer"))

    def __call__(self, group: Mapping[str, Any], state: State, head: tuple[float, float, float]) -> None:
        """Update all parameters of the group that have a gradient, and note that they were written to.

        Parameters
        ----------
        group : dict
            The parameters and the options.
        state : dict
            From each parameter to its states.
        head : tuple of float
            The sign of gradients, how much of the parameter is added to them, and what the parameter is multiplied by.
        """
        self._pack(self._values, 0, *head, 0.0, *values_of(self, group))
        params = group["params"] if group["params"].__class__ is list else list(group["params"])
        if self._run(params, state):
            for number, param in enumerate(params):
                if param._grad is not None and not self._rows[number, Row.word("was_run")]:
                    self._by_hand(number, param, param._grad, group, state)
        self._written.note([param._data for param in params if param._grad is not None])

    def _by_hand(self, number: int, param: Tensor, grad: Tensor, group: Mapping[str, Any], state: State) -> None:
        """Make what is missing of the state, and run the loop on contiguous copies of what is not contiguous."""
        data, slope = param._array(), np.asarray(grad._data)
        if data.shape != slope.shape:
            raise errors.reshaped("a parameter", data.shape, slope.shape)
        if not data.flags.writeable:
            raise ValueError("a parameter's array is read-only; give the optimizer a tensor over a copy of it")
        own = self.states_of(param, state)
        fresh = self.add_states(param, own, group)
        numbers = [own[name]._array() for name in self.reads.numbers]
        arrays = [data, slope.astype(data.dtype, copy=False), *(own[name]._array() for name in self.reads.states)]
        part = np.dtype(f"f{data.itemsize // 2}") if data.dtype.kind == "c" else data.dtype
        kind = numbers[0].dtype if numbers else part
        numbers_as = [np.array(value, kind) for value in numbers]
        arrays_as = [np.array(array, data.dtype, order="C") for array in arrays]
        found = [*numbers_as, *[numbers_as or arrays_as][0][:1] * MOST][:MOST]
        places = np.array(
            [
                data.size * (data.itemsize // part.itemsize),
                *(a.ctypes.data for a in [*arrays_as[:2], *found, *arrays_as[2:]]),
            ]
        )
        address = loop_address(self.name, self.formula, len(numbers), len(self.reads.states), part.name, kind.name)
        self._values[HEAD - 1] = fresh
        _loop_at(address)(watch(places, "places of an optimizer").ctypes.data, self._values.ctypes.data)
        self._values[HEAD - 1] = 0.0
        for target, value in zip(
            [*numbers, data, *arrays[2:]], [*numbers_as, arrays_as[0], *arrays_as[2:]], strict=True
        ):
            target[...] = value
        if data.flags.c_contiguous:
            layouts = layout_of(data), layout_of(numbers[0]) if numbers else layout_of(data)
            self._layouts[number] = layouts
            row = [address, id(layouts[0]), id(layouts[1]), 0, *places[:1], *[data.ctypes.data] * (_PLACES - 1)]
            self._rows[number, : len(row)] = row

    def states_of(self, param: Tensor, state: State) -> dict[str, Any]:
        """Return the states of a parameter; none, and make no place for them, if the formula has none."""
        return state[param] if self.reads.numbers or self.reads.states else {}

    def missing(self, own: Mapping[str, Any]) -> list[str]:
        """Return the names of the states that a parameter does not have yet."""
        return [name for name in (*self.reads.numbers, *self.reads.states) if own.get(name) is None]

    def add_states(self, param: Tensor, own: dict[str, Any], group: Mapping[str, Any]) -> bool:
        """Make the states that a parameter does not have yet, and return whether there were any."""
        missing = self.missing(own)
        for name in missing:
            value = self.initial[name]
            value = float(group[value] if isinstance(value, str) else value)
            if name in self.reads.numbers:
                own[name] = from_array(np.array(value, default_dtype()))
            else:
                value = complex(value, value) if param.dtype.kind == "c" else value
                own[name] = from_array(np.full(param.shape, value, param.dtype))
        return bool(missing)


def values_of(update: Update, group: Mapping[str, Any]) -> list[Any]:
    """Return the options of a group that a formula reads."""
    return [group[name] if part is None else group[name][part] for name, part in update.reads.options]


@functools.cache
def _loop_at(address: int) -> Callable[[int, int], int]:
    return _call_loop(address)

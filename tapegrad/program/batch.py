"""`vmap` as an operation: programs of one item, which run for all items of a batch.

The programs know nothing of the batch. Fused code has an axis for it (`tapegrad.program.fuse.flat`). Where Python
looked at values, there is a program for each way through the branches, and each item has the results of the way that it
takes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import compute, constant, raw_data
from tapegrad.ops.table.index_values import TracedIndices
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, op_table
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.tape.entries import FIRST_OPERAND, MAX_SAVED, TapeNode
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["Batch", "apply_batch", "batch_of", "batch_op", "has_rule", "takes_way_op", "with_flag"]

_FLAG: Final = layout_of(np.array(True))


class Batch:
    """Programs of one item, and which of their inputs each item has for itself.

    Attributes
    ----------
    ways : tuple of Program
        With equal inputs and outputs, and without guards. If there are `flags`, the last output of each is true if an
        item takes this way (see `with_flag`); no item takes two.
    mapped : tuple of bool
        Of each input whether its operand has the items along a dimension; the others are the same for all.
    flags : bool
        Whether the last result says for each item if it took one of the ways; its other results are void if not.
    dims : tuple of int
        The dimension of operands and of results that the items stand along: 0, the first, or -1, the last.
    """

    #: From a batch and its operands' arrays to those of the results, and from cotangents, batch, which operands' ones
    #: are wanted, and operands to these; and what computes a batch in a trace, or None, from its operands' layouts.
    #: Breaks an import cycle: `tapegrad.program.batched` installs them.
    forward: ClassVar[Callable[..., Any]]
    in_traces: ClassVar[Callable[..., Any]]
    rule: ClassVar[Callable[..., tuple[Any, ...]]]

    def __init__(
        self, ways: Sequence[Program], mapped: Sequence[bool], flags: bool = False, dims: tuple[int, int] = (0, 0)
    ) -> None:
        self.ways, self.mapped, self.flags, self.dims = tuple(ways), tuple(mapped), flags, dims

    @property
    def program(self) -> Program:
        """The first way."""
        return self.ways[0]

    def __repr__(self) -> str:
        mapped = ["each" if own else "all" for own in self.mapped]
        count = " or ".join([str(len(way.entries)) for way in self.ways])
        return f"<an item's program of {count} operations on inputs of {', '.join(mapped)}>"

    def size(self, arrays: Sequence[Any]) -> int:
        """Return the number of items of operands."""
        return int(arrays[self.mapped.index(True)].shape[0])

    def whole(self, size: int) -> Program:
        """Return the program of so many items: this operation alone."""
        item, n_inputs = self.program, len(self.mapped)
        layouts = [item.layouts[number] for number in item.inputs]
        taken, given = self.dims
        layouts = [_of_all(own, size, taken) if each else own for own, each in zip(layouts, self.mapped, strict=True)]
        layouts += [_of_all(item.layouts[number], size, given) for number in item.outputs]
        results = tuple(range(n_inputs, len(layouts)))
        inputs = tuple(range(n_inputs))
        entry = Entry(batch_op(n_inputs, len(results)), inputs, {"batch": self}, (), results)
        return Program(layouts, inputs, {}, [entry], results)


def _of_all(layout: Layout, size: int, dim: int) -> Layout:
    return contiguous_layout((*layout.shape, size) if dim else (size, *layout.shape), layout.dtype)


_batches: Final[WeakValueDictionary[Hashable, Batch]] = WeakValueDictionary()


def batch_of(ways: Sequence[Program], mapped: Sequence[bool], flags: bool = False) -> Batch:
    """Return the batch of an item's programs: the same one for equal programs, so that what is known of it is found."""
    ways = [way.compact() for way in ways]
    key = tuple([way.key() for way in ways]), tuple(mapped), flags
    batch = _batches.get(key)
    if batch is None:
        batch = _batches[key] = Batch(ways, mapped, flags)
    return batch


def has_rule(operands: Sequence[Tensor], n_results: int) -> bool:
    """Whether gradients of as many operands can be computed, if any is wanted: of several results only of a few."""
    is_wanted = modes.is_grad_enabled() and any(own.requires_grad for own in operands)
    return n_results == 1 or len(operands) <= MAX_SAVED or not is_wanted


def apply_batch(batch: Batch, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of all items along the first dimension, recorded as one operation."""
    op = batch_op(len(operands), len(batch.program.outputs))
    arrays: tuple[np.ndarray, ...] = ()
    if len(operands) > MAX_SAVED and modes.is_grad_enabled() and any(own.requires_grad for own in operands):
        arrays = tuple(map(_array_of, operands))
    result = compute(op, Bound(operands, {"batch": batch}, arrays))[0]
    return [result] if isinstance(result, Tensor) else list(result)


def _array_of(operand: Tensor) -> np.ndarray:
    """Return the data of an operand as an array, which stands for the same value in a trace."""
    data = raw_data(operand)
    if isinstance(data, np.ndarray):
        return data
    array = np.asarray(data)
    modes.tell("alias", data, array)
    return array


@functools.cache
def batch_op(n_operands: int, n_results: int) -> Op:
    """Return the operation with so many operands and results."""
    operands = tuple([f"x{k}" for k in range(n_operands)])

    def forward(*arrays: Any, batch: Batch) -> Any:
        results = Batch.forward(batch, arrays[:n_operands])
        return results[0] if n_results == 1 else results

    forward.in_traces = lambda layouts, batch: Batch.in_traces(layouts, batch)  # type: ignore[attr-defined]
    results = tuple([f"out{k}" for k in range(n_results)]) if n_results > 1 else ("out",)
    rule = _rule_of(operands) if n_operands <= MAX_SAVED else _rule_of_many
    op = Op(name="vmap", operands=operands, forward=forward, vjp=rule, family="batch", attrs=("batch",),
            results=results)  # fmt: skip
    del op_table[op.name]  # its public function is that of `tapegrad.func`
    return op


def _rule_of(names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the rule for operands of these names, which are its residuals."""

    def rule(ct: Any, batch: Batch, wanted: tuple[bool, ...], *operands: Tensor) -> tuple[Any, ...]:
        return Batch.rule([ct] if isinstance(ct, Tensor) else ct, batch, wanted, operands)

    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("ct", "batch", "wanted", *names)]
    )
    return rule


def _rule_of_many(
    ct: Any, batch: Batch, wanted: tuple[bool, ...], entry: tuple[TapeNode, bool], index_arrays: Sequence[Any]
) -> tuple[Any, ...]:
    """Do as the rule of a few operands; the arrays of many are kept as arrays of indices are."""
    node, is_recorded = entry
    operands = []
    for place, data in enumerate(index_arrays):
        operand = data.tensor if isinstance(data, TracedIndices) else constant(data, layout_of(data))
        parent = node[FIRST_OPERAND + place]
        if is_recorded and parent is not None:
            operand._node, operand._layout = parent, operand._layout.tracked
        operands.append(operand)
    return Batch.rule([ct] if isinstance(ct, Tensor) else ct, batch, wanted, operands)


# Ways through branches -----------------------------------------------------------------------------------------------


def _is_same(x: Any, outcome: np.ndarray) -> Any:
    """Return whether elements are the numbers that they were: zeros and nan of the same sign."""
    if outcome.dtype.kind != "f":
        return x == outcome
    return ((x == outcome) | (np.isnan(x) & np.isnan(outcome))) & (np.signbit(x) == np.signbit(outcome))


def _takes_way(*values: Any, outcomes: Sequence[tuple[bytes, str, tuple[int, ...]]]) -> Any:
    """Return whether the values of guards are their outcomes: bytes, dtype and shape."""
    flag: Any = None
    for x, (data, dtype, shape) in zip(values, outcomes, strict=True):
        same = np.all(_is_same(x, np.frombuffer(data, dtype).reshape(shape)))
        flag = same if flag is None else flag & same
    return flag


takes_way_op: Final = Op(
    name="takes_way", operands=("*values",), forward=_takes_way, vjp=(NOT_DIFFERENTIABLE,), family="batch_way",
    attrs=("outcomes",),
)  # fmt: skip
del op_table[takes_way_op.name]  # it stands only in programs


def with_flag(program: Program) -> Program:
    """Return a program with one more output in place of its guards: whether all values have their outcomes."""
    flag, guards = len(program.layouts), program.guards
    entries, constants = program.entries, program.constants
    if guards:
        outcomes = tuple([_described(guard) for guard in guards])
        values = tuple([guard.value for guard in guards])
        entries = [*entries, Entry(takes_way_op, values, {"outcomes": outcomes}, (), (flag,))]
    else:
        constants = {**constants, flag: np.array(True)}
    return Program([*program.layouts, _FLAG], program.inputs, constants, entries, (*program.outputs, flag))


def _described(guard: Guard) -> tuple[bytes, str, tuple[int, ...]]:
    outcome = guard.outcome
    return outcome.tobytes(), outcome.dtype.str, outcome.shape

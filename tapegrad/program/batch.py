"""`vmap` as an operation: a program of one item, which runs for all items of a batch.

The program knows nothing of the batch. Fused code has an axis for it (`tapegrad.program.fuse.flat`). The rule is the
same operation with the program of the item's cotangents.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Hashable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from tapegrad.ops.table.gateway import compute, raw_data
from tapegrad.ops.table.op import Bound, Op, op_table, xp
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.derivative import vjp_of
from tapegrad.program.program import Entry, Program
from tapegrad.program.run import Runner
from tapegrad.tape.layout import contiguous_layout
from tapegrad.tensor import Tensor

__all__ = ["Batch", "apply_batch", "batch_of"]

#: How many operands a rule can have beside its cotangents: see `tapegrad.recording.rule_calls`.
MOST_OPERANDS: Final = 28


class Batch:
    """A program of one item, and which of its inputs each item has for itself: make it by `batch_of`.

    Attributes
    ----------
    program : Program
    mapped : tuple of bool
        Of each input whether its operand has the items along the first dimension; the others are the same for all.
    """

    def __init__(self, program: Program, mapped: Sequence[bool]) -> None:
        self.program, self.mapped = program, tuple(mapped)
        self._runners: dict[int, Runner] = {}
        self._vjps: dict[tuple[bool, ...], tuple[Batch, list[Tensor]]] = {}

    def __repr__(self) -> str:
        mapped = ["each" if own else "all" for own in self.mapped]
        return f"<an item's program of {len(self.program.entries)} operations on inputs of {', '.join(mapped)}>"

    def size(self, arrays: Sequence[Any]) -> int:
        """Return the number of items of operands."""
        return int(arrays[self.mapped.index(True)].shape[0])

    def whole(self, size: int) -> Program:
        """Return the program of so many items: this operation alone."""
        item, n_inputs = self.program, len(self.mapped)
        layouts = [item.layouts[number] for number in item.inputs]
        layouts = [_of_all(own, size) if each else own for own, each in zip(layouts, self.mapped, strict=True)]
        layouts += [_of_all(item.layouts[number], size) for number in item.outputs]
        results = tuple(range(n_inputs, len(layouts)))
        inputs = tuple(range(n_inputs))
        entry = Entry(_op(n_inputs, len(results)), inputs, {"batch": self}, (), results)
        return Program(layouts, inputs, {}, [entry], results)

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results of all items, along the first dimension."""
        size = self.size(arrays)
        runner = self._runners.get(size)
        if runner is None:
            runner = self._runners[size] = Runner(self.whole(size), self._one_by_one)
        return tuple(runner(arrays)[0])

    def _one_by_one(self, *arrays: Any) -> tuple[Any, ...]:
        """Do the same by calls of the item's program."""
        run, items = self._item, range(self.size(arrays))
        results = [
            run([own[k] if each else own for own, each in zip(arrays, self.mapped, strict=True)])[0] for k in items
        ]
        return tuple([np.stack(column) for column in zip(*results, strict=True)])

    @functools.cached_property
    def _item(self) -> Runner:
        return Runner(self.program)

    def vjp(self, wanted: tuple[bool, ...], operands: Sequence[Any], cts: Sequence[Any]) -> tuple[Batch, list[Tensor]]:
        """Return the batch of the cotangents of wanted inputs, and tensors that it takes besides.

        Its inputs are this one's, then cotangents of all floating outputs. Operands and cotangents are examples.
        """
        found = self._vjps.get(wanted)
        if found is None:
            items = [own[0] if each else own for own, each in zip(operands, self.mapped, strict=True)]
            outputs = [number for number in self.program.outputs if self.program.layouts[number].floating]
            vjp, captured = vjp_of(self.program.with_outputs(outputs), wanted, [*items, *[own[0] for own in cts]])
            mapped = [*self.mapped, *[True] * len(cts), *[False] * len(captured)]
            found = self._vjps[wanted] = batch_of(vjp, mapped), captured
        return found


_batches: Final[WeakValueDictionary[Hashable, Batch]] = WeakValueDictionary()


def batch_of(program: Program, mapped: Sequence[bool]) -> Batch:
    """Return the batch of an item's program: the same one for equal programs, so that what is known of it is found."""
    program = program.compact()
    key = program.key(), tuple(mapped)
    batch = _batches.get(key)
    if batch is None:
        batch = _batches[key] = Batch(program, mapped)
    return batch


def apply_batch(batch: Batch, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of all items along the first dimension, recorded as one operation."""
    result = compute(_op(len(operands), len(batch.program.outputs)), Bound(operands, {"batch": batch}))[0]
    return [result] if isinstance(result, Tensor) else list(result)


def _of_all(layout: Any, size: int) -> Any:
    return contiguous_layout((size, *layout.shape), layout.dtype)


@functools.cache
def _op(n_operands: int, n_results: int) -> Op:
    """Return the operation with so many operands and results."""
    operands = tuple([f"x{k}" for k in range(n_operands)])

    def forward(*arrays: Any, batch: Batch) -> Any:
        results = batch.run(arrays)
        return results[0] if n_results == 1 else results

    def rule(ct: Any, batch: Batch, wanted: tuple[bool, ...], *operands: Tensor) -> tuple[Any, ...]:
        return _pulled([ct] if isinstance(ct, Tensor) else ct, batch, wanted, operands)

    names = ["ct", "batch", "wanted", *operands]
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    results = tuple([f"out{k}" for k in range(n_results)]) if n_results > 1 else ("out",)
    op = Op(name="vmap", operands=operands, forward=forward, vjp=rule, family="batch", attrs=("batch",),
            results=results)  # fmt: skip
    del op_table[op.name]  # its public function is that of `tapegrad.func`
    return op


def _pulled(
    cts: Sequence[Tensor], batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Tensor]
) -> tuple[Any, ...]:
    """Return the cotangents of operands; of one that all items share, the sum over items."""
    vjp, captured = batch.vjp(wanted, [*map(raw_data, operands)], [*map(raw_data, cts)])
    gradients = iter(apply_batch(vjp, [*operands, *cts, *captured]))
    result = []
    for is_wanted, each in zip(wanted, batch.mapped, strict=True):
        ct = next(gradients) if is_wanted else NO_COTANGENT
        result.append(xp.sum(ct, 0) if is_wanted and not each else ct)
    return tuple(result)

"""`vmap` as an operation: a program of one item, which runs for all items of a batch.

The program knows nothing of the batch. Fused code has an axis for it (`tapegrad.program.fuse.flat`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op, op_table
from tapegrad.program.program import Entry, Program
from tapegrad.tape.layout import Layout, contiguous_layout
from tapegrad.tensor import Tensor

__all__ = ["MOST_OPERANDS", "Batch", "apply_batch", "batch_of"]

#: How many operands a rule can have beside its cotangents: see `tapegrad.recording.rule_calls`.
MOST_OPERANDS: Final = 28


class Batch:
    """A program of one item, and which of its inputs each item has for itself.

    Attributes
    ----------
    program : Program
    mapped : tuple of bool
        Of each input whether its operand has the items along a dimension; the others are the same for all.
    dims : tuple of int
        The dimension of operands and of results that the items stand along: 0, the first, or -1, the last.
    """

    #: From a batch and its operands' arrays to those of the results, and from cotangents, batch, which operands' ones
    #: are wanted, and operands to these. Breaks an import cycle: `tapegrad.program.batched` installs them.
    forward: ClassVar[Callable[..., Any]]
    rule: ClassVar[Callable[..., tuple[Any, ...]]]

    def __init__(self, program: Program, mapped: Sequence[bool], dims: tuple[int, int] = (0, 0)) -> None:
        self.program, self.mapped, self.dims = program, tuple(mapped), dims

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
        taken, given = self.dims
        layouts = [_of_all(own, size, taken) if each else own for own, each in zip(layouts, self.mapped, strict=True)]
        layouts += [_of_all(item.layouts[number], size, given) for number in item.outputs]
        results = tuple(range(n_inputs, len(layouts)))
        inputs = tuple(range(n_inputs))
        entry = Entry(_op(n_inputs, len(results)), inputs, {"batch": self}, (), results)
        return Program(layouts, inputs, {}, [entry], results)


def _of_all(layout: Layout, size: int, dim: int) -> Layout:
    return contiguous_layout((*layout.shape, size) if dim else (size, *layout.shape), layout.dtype)


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


@functools.cache
def _op(n_operands: int, n_results: int) -> Op:
    """Return the operation with so many operands and results."""
    operands = tuple([f"x{k}" for k in range(n_operands)])

    def forward(*arrays: Any, batch: Batch) -> Any:
        results = Batch.forward(batch, arrays)
        return results[0] if n_results == 1 else results

    def rule(ct: Any, batch: Batch, wanted: tuple[bool, ...], *operands: Tensor) -> tuple[Any, ...]:
        return Batch.rule([ct] if isinstance(ct, Tensor) else ct, batch, wanted, operands)

    names = ["ct", "batch", "wanted", *operands]
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    results = tuple([f"out{k}" for k in range(n_results)]) if n_results > 1 else ("out",)
    op = Op(name="vmap", operands=operands, forward=forward, vjp=rule, family="batch", attrs=("batch",),
            results=results)  # fmt: skip
    del op_table[op.name]  # its public function is that of `tapegrad.func`
    return op

"""How `vmap` computes as an operation, and its rule: the same operation with the programs of an item's cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.batch import Batch, apply_batch, batch_of, has_rule
from tapegrad.program.derivative import pull, vjp_of
from tapegrad.program.program import Program
from tapegrad.program.replay import Replay
from tapegrad.program.run import Runner
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["is_worth", "known_of", "unified"]

_FEW: Final = 16  # items of a group, which is filled up to a power of two of them


class _Known:
    """What is known of a batch.

    Attributes
    ----------
    runners : dict
        How it runs for a number of items, or for one (0).
    vjps : dict
        Its derivatives, by which operands' cotangents are wanted.
    operations : int
        How many operations calls for each item have computed, before there was machine code.
    """

    def __init__(self) -> None:
        self.operations = 0
        self.runners: dict[int, Runner] = {}
        self.vjps: dict[tuple[bool, ...], tuple[Batch, list[Tensor]]] = {}


_known: Final[WeakKeyDictionary[Batch, _Known]] = WeakKeyDictionary()


def known_of(batch: Batch) -> _Known:
    """Return what is known of a batch."""
    return _known.setdefault(batch, _Known())


def forward(batch: Batch, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of all items, along the first dimension."""
    size, runners = batch.size(arrays), known_of(batch).runners
    runner = runners.get(size)
    if runner is None:
        runner = runners[size] = Runner(batch.whole(size), lambda *arrays: _in_python(batch, arrays))
    return tuple(runner(arrays)[0])


def is_worth(operations: int, count: int) -> bool:
    """Whether machine code for items of `count` operations takes less time than to compute so many operations.

    An operation takes 3 µs; code takes 40 ms, and 1 ms for each operation of an item.
    """
    return operations > 13_000 + 300 * count


def in_traces(layouts: Sequence[Layout], batch: Batch) -> Callable[..., Any] | None:
    """Return what computes a batch in a trace, if machine code would take longer: the whole program gets its own."""
    count, mapped = len(batch.program.entries), batch.mapped
    size = layouts[mapped.index(True)].shape[batch.dims[0]]
    if batch.dims != (0, 0) or not size or len(batch.ways) > 1 or batch.flags or is_worth(size * count, count):
        return None
    run = Replay(batch.program)

    def forward(*arrays: Any) -> Any:
        results = _stacked([run(*_item(batch, arrays[: len(mapped)], k)) for k in range(size)])
        return results if len(results) > 1 else results[0]

    return forward


def _in_python(batch: Batch, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Do the same by groups of items that take the same way, or by calls for each item."""
    if len(batch.ways) > 1:
        return _by_groups(batch, arrays)
    runners = known_of(batch).runners
    run = runners.get(0)
    if run is None:
        run = runners[0] = Runner(batch.program)
    results = []
    for k in range(batch.size(arrays)):
        try:
            results.append(run(_item(batch, arrays, k))[0])
        except Exception:
            if not batch.flags:
                raise
            results.append(_void(batch))  # it takes another way, or raises the error when its own is traced
    return _stacked(results)


def _item(batch: Batch, arrays: Sequence[Any], k: int) -> list[Any]:
    """Return the arrays of one item."""
    return [own[k] if each else own for own, each in zip(arrays, batch.mapped, strict=True)]


def _stacked(results: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return the results of all items, each along a new first dimension."""
    return tuple([np.stack(column) for column in zip(*results, strict=True)])


def _void(batch: Batch) -> list[np.ndarray]:
    """Return the results of an item that does not take the way: its flag is false."""
    layouts = [batch.program.layouts[number] for number in batch.program.outputs]
    return [np.zeros(layout.shape, layout.dtype) for layout in layouts]


def _by_groups(batch: Batch, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Compute each way for the items that take none of those before, and put the results of those that do in place."""
    size = batch.size(arrays)
    layouts = [batch.program.layouts[number] for number in batch.program.outputs]
    results = [np.zeros((size, *layout.shape), layout.dtype) for layout in layouts]
    left = np.arange(size)
    for way in batch.ways:
        count = len(left)
        if not count:
            break
        chosen = left
        if count < size:
            chosen = np.resize(left, max(_FEW, 1 << (count - 1).bit_length()))
        part = [own[chosen] if each else own for own, each in zip(arrays, batch.mapped, strict=True)]
        found = forward(batch_of([way], batch.mapped, True), part)
        takes = np.asarray(found[-1][:count])
        for result, values in zip(results, found, strict=True):
            result[left[takes]] = values[:count][takes]
        left = left[~takes]
    return tuple(results)


def _vjp(
    batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Any], cts: Sequence[Any]
) -> tuple[Batch, list[Tensor]]:
    """Return the batch of the cotangents of wanted inputs, and tensors that it takes besides.

    Its inputs are the batch's, then cotangents of all floating outputs. Operands and cotangents are examples.
    """
    vjps = known_of(batch).vjps
    found = vjps.get(wanted)
    if found is None:
        items = [own[0] if each else own for own, each in zip(operands, batch.mapped, strict=True)]
        items += [own[0] for own in cts]
        ways = [vjp_of(_flagged(way, batch), wanted, items, int(batch.flags)) for way in batch.ways]
        programs, captured = unified(ways)
        mapped = [*batch.mapped, *[True] * len(cts), *[False] * len(captured)]
        found = vjps[wanted] = batch_of(programs, mapped, batch.flags), captured
    return found


def _flagged(way: Program, batch: Batch) -> Program:
    """Return a way with the outputs that have cotangents, and the flag if there is one."""
    outputs = [number for number in way.outputs if way.layouts[number].floating]
    return way.with_outputs([*outputs, *(way.outputs[-1:] if batch.flags else ())])


def unified(ways: Sequence[tuple[Program, Sequence[Tensor]]]) -> tuple[list[Program], list[Tensor]]:
    """Return programs with the same inputs, from programs whose last inputs are tensors, and these tensors."""
    tensors = list({id(own): own for _, captured in ways for own in captured}.values())
    programs = []
    for program, captured in ways:
        layouts, n_own = list(program.layouts), len(program.inputs) - len(captured)
        numbers = {id(own): number for own, number in zip(captured, program.inputs[n_own:], strict=True)}
        inputs = list(program.inputs[:n_own])
        for tensor in tensors:
            if id(tensor) not in numbers:
                numbers[id(tensor)] = len(layouts)
                layouts.append(tensor._layout.plain)
            inputs.append(numbers[id(tensor)])
        programs.append(Program(layouts, inputs, program.constants, program.entries, program.outputs, program.guards))
    return programs, tensors


def _pulled_one_by_one(
    cts: Sequence[Tensor], batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Tensor]
) -> list[Tensor]:
    """Return the cotangents of wanted operands for all items, each by the operations of the way that it takes."""
    ways, mapped, items = [_flagged(way, batch) for way in batch.ways], [*batch.mapped, *[True] * len(cts)], []
    for k in range(batch.size(operands)):
        tensors = [own[k] if each else own for own, each in zip([*operands, *cts], mapped, strict=True)]
        item: list[Tensor] = []
        for way in ways:
            found = list(pull(way, wanted, *tensors, n_kept=int(batch.flags)))
            takes = found.pop() if batch.flags else None
            item = [xp.where(takes, own, other) for own, other in zip(found, item, strict=True)] if item else found
        items.append(item)
    return [xp.stack(list(column)) for column in zip(*items, strict=True)]


def rule(cts: Sequence[Tensor], batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return the cotangents of operands; of one that all items share, the sum over items."""
    if has_rule([*operands, *cts], sum(wanted)):
        vjp, captured = _vjp(batch, wanted, [*map(raw_data, operands)], [*map(raw_data, cts)])
        gradients = iter(apply_batch(vjp, [*operands, *cts, *captured]))
    else:
        gradients = iter(_pulled_one_by_one(cts, batch, wanted, operands))
    result = []
    for is_wanted, each in zip(wanted, batch.mapped, strict=True):
        ct = next(gradients) if is_wanted else NO_COTANGENT
        result.append(xp.sum(ct, 0) if is_wanted and not each else ct)
    return tuple(result)


Batch.forward, Batch.in_traces, Batch.rule = staticmethod(forward), staticmethod(in_traces), staticmethod(rule)

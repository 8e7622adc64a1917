"""How `vmap` computes as an operation, and its rule: the same operation with the program of an item's cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.batch import Batch, apply_batch, batch_of
from tapegrad.program.derivative import vjp_of
from tapegrad.program.run import Runner
from tapegrad.tensor import Tensor

_known: Final[WeakKeyDictionary[Batch, _Ways]] = WeakKeyDictionary()


class _Ways:
    """What is known of a batch: how it runs for a number of items, or for one, and its derivatives."""

    def __init__(self) -> None:
        self.runners: dict[int, Runner] = {}
        self.vjps: dict[tuple[bool, ...], tuple[Batch, list[Tensor]]] = {}


def forward(batch: Batch, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of all items, along the first dimension."""
    size, runners = batch.size(arrays), _known.setdefault(batch, _Ways()).runners
    runner = runners.get(size)
    if runner is None:
        runner = runners[size] = Runner(batch.whole(size), lambda *arrays: _one_by_one(batch, arrays))
    return tuple(runner(arrays)[0])


def _one_by_one(batch: Batch, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Do the same by calls of the item's program."""
    runners = _known.setdefault(batch, _Ways()).runners
    run = runners.get(0)
    if run is None:
        run = runners[0] = Runner(batch.program)
    items = range(batch.size(arrays))
    results = [run([own[k] if each else own for own, each in zip(arrays, batch.mapped, strict=True)])[0] for k in items]
    return tuple([np.stack(column) for column in zip(*results, strict=True)])


def _vjp(
    batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Any], cts: Sequence[Any]
) -> tuple[Batch, list[Tensor]]:
    """Return the batch of the cotangents of wanted inputs, and tensors that it takes besides.

    Its inputs are the batch's, then cotangents of all floating outputs. Operands and cotangents are examples.
    """
    vjps = _known.setdefault(batch, _Ways()).vjps
    found = vjps.get(wanted)
    if found is None:
        items = [own[0] if each else own for own, each in zip(operands, batch.mapped, strict=True)]
        outputs = [number for number in batch.program.outputs if batch.program.layouts[number].floating]
        vjp, captured = vjp_of(batch.program.with_outputs(outputs), wanted, [*items, *[own[0] for own in cts]])
        mapped = [*batch.mapped, *[True] * len(cts), *[False] * len(captured)]
        found = vjps[wanted] = batch_of(vjp, mapped), captured
    return found


def rule(cts: Sequence[Tensor], batch: Batch, wanted: tuple[bool, ...], operands: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return the cotangents of operands; of one that all items share, the sum over items."""
    vjp, captured = _vjp(batch, wanted, [*map(raw_data, operands)], [*map(raw_data, cts)])
    gradients = iter(apply_batch(vjp, [*operands, *cts, *captured]))
    result = []
    for is_wanted, each in zip(wanted, batch.mapped, strict=True):
        ct = next(gradients) if is_wanted else NO_COTANGENT
        result.append(xp.sum(ct, 0) if is_wanted and not each else ct)
    return tuple(result)


Batch.forward, Batch.rule = staticmethod(forward), staticmethod(rule)

"""The rule of loops back from checkpoints: by the rules of two loops, which keep what they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.autograd.backward import grad
from tapegrad.modes import enable_grad
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.checkpoints import Checkpointed, apply_back
from tapegrad.program.derivative import apart
from tapegrad.program.limits import limited
from tapegrad.program.scan import apply_scan, check_room, room_for
from tapegrad.program.traced import example
from tapegrad.tensor import Tensor

__all__ = ["apply_back", "rule", "with_kept"]


def rule(ct: Any, checkpoints: Checkpointed, wanted: Sequence[bool], operands: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return the cotangents of operands, by the rules of the two loops, which keep what they need."""
    cts = [ct] if isinstance(ct, Tensor) else list(ct)
    with enable_grad(), limited(None):
        own = [x if x.requires_grad or not is_wanted else x.detach().requires_grad_()
               for x, is_wanted in zip(apart(operands), wanted, strict=True)]  # fmt: skip
        outputs = with_kept(checkpoints, own)
        chosen = [x for x, is_wanted in zip(own, wanted, strict=True) if is_wanted]
        found = iter(grad(outputs, chosen, cts, create_graph=True, allow_unused=True, materialize_grads=True))
    return tuple([next(found) if is_wanted else NO_COTANGENT for is_wanted in wanted])


def with_kept(checkpoints: Checkpointed, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the results by the two loops, of which the first keeps what the turns of the other take."""
    scan, back = checkpoints.scan, checkpoints.back
    consts, rows, turns, first, seeds, carried = checkpoints.parts(operands)
    forth = scan.with_kept(checkpoints.kept).changed(kept=())
    if scan.length is None:
        room = room_for(int(example(turns[0])))
        check_room(turns[0], room)
        forth, back = forth.changed(length=room), back.changed(length=room)
    given = apply_scan(forth, forth.operands(consts[: scan.counts[0]], rows, turns, first))
    kept = given[len(scan.body.outputs) :]
    return apply_scan(back, back.operands(consts, [*rows, *kept, *seeds], turns, carried))


Checkpointed.rule, Checkpointed.with_kept = staticmethod(rule), staticmethod(with_kept)

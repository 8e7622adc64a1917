"""Loops back that keep little: what some turns were given, from which the turns between are computed again.

The schedule is binomial, which takes the fewest turns for so many checkpoints: Griewank and Walther, Algorithm 799,
revolve, ACM Transactions on Mathematical Software 26 (2000). With s checkpoints, b(s, r) = (s + r)! / (s! r!) turns can
be gone back over if each is computed at most r times more.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op, op_table
from tapegrad.program.program import Entry, Program
from tapegrad.program.replay import Replay
from tapegrad.program.scan import TURNS_LAYOUT, Scan
from tapegrad.tape.entries import MAX_SAVED
from tapegrad.tensor import Tensor

__all__ = ["Checkpointed", "advances", "apply_back", "back_op", "checkpointed", "schedule", "split"]


def split(turns: int, slots: int) -> int:
    """Return after how many turns the next checkpoint is, with slots for it and others besides the first."""
    slots, many, repeats = min(slots, turns), 1, 0
    while many < turns:  # b(slots, repeats)
        repeats += 1
        many = many * (slots + repeats) // repeats
    fewer = many * repeats // (slots + repeats)  # b(slots, repeats - 1)
    return min(fewer, turns - fewer * slots // (slots + repeats - 1))


def advances(turns: int, slots: int) -> int:
    """Return the fewest turns that are computed again to go back over all, by the formula of Griewank and Walther.

    Examples
    --------
    >>> advances(10, 3), advances(10, 10), advances(10, 1)
    (15, 9, 45)
    """
    many, repeats = 1, 0
    while many < turns:
        repeats += 1
        many = many * (slots + repeats) // repeats
    # repeats * turns - b(slots + 1, repeats - 1)
    return repeats * turns - many * repeats // (slots + 1) if repeats else 0


def schedule(turns: int, slots: int) -> Iterator[tuple[str, int, int]]:
    """Yield what is done: "restore" a slot, "advance" from a turn to another, "store" in a slot, "back" over a turn."""
    begins, end = [0], turns
    while end:
        start = begins[-1]
        yield "restore", len(begins) - 1, start
        while end - start > 1:
            free = slots - len(begins)
            stop = start + split(end - start, free + 1) if free else end - 1
            yield "advance", start, stop
            start = stop
            if free:
                begins.append(start)
                yield "store", len(begins) - 1, start
        end -= 1
        yield "back", end, end
        if begins[-1] == end:
            begins.pop()


class Checkpointed:
    """A loop back that computes the turns again.

    Attributes
    ----------
    scan : Scan
        The loop.
    kept : tuple of int
        The carried values that the turns of the loop back take.
    back : Scan
        The loop back, as it is if they were kept.
    slots : int
        How many checkpoints there is room for: that of the first turn, and others.
    """

    #: Break import cycles: `scan_run` and `checkpoint_rule` install them. The last one computes what the loop back
    #: does by two loops, of which the first keeps what the turns of the other take.
    forward: ClassVar[Callable[..., Any]]
    rule: ClassVar[Callable[..., tuple[Any, ...]]]
    with_kept: ClassVar[Callable[..., list[Tensor]]]

    def __init__(self, scan: Scan, kept: tuple[int, ...], back: Scan, slots: int) -> None:
        self.scan, self.kept, self.back, self.slots = scan, kept, back, slots
        layouts = [scan.body.layouts[number] for number in scan.body.inputs]
        self.states = layouts[len(layouts) - scan.n_carried :]

    def __repr__(self) -> str:
        return f"<{self.back!r} from {self.slots} checkpoints>"

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], ...]:
        """Return the parts of operands.

        Constants, rows, the number of turns (none or one), the first values that are carried, rows of cotangents, and
        the values that are carried back.
        """
        (n_consts, n_rows, n_carried), own = self.back.counts, list(operands)
        n_own = self.scan.counts[1]
        sizes = (n_consts, n_own, self.scan.is_open, self.scan.n_carried, n_rows - n_own - len(self.kept), n_carried)
        ends = np.cumsum(sizes).tolist()
        return tuple([own[end - size : end] for size, end in zip(sizes, ends, strict=True)])

    def whole(self) -> Program:
        """Return the program that is this operation alone."""
        back = self.back.whole()
        layouts = [back.layouts[number] for number in back.inputs]
        consts, rows, _, carried = self.back.parts(layouts)
        n_own = self.scan.counts[1]
        taken = [*consts, *rows[:n_own], *[TURNS_LAYOUT] * self.scan.is_open, *self.states,
                 *rows[n_own + len(self.kept) :], *carried]  # fmt: skip
        made = [back.layouts[number] for number in back.outputs]
        inputs, outputs = tuple(range(len(taken))), tuple(range(len(taken), len(taken) + len(made)))
        entry = Entry(back_op(len(taken), len(made)), inputs, {"checkpoints": self}, (), outputs)
        return Program([*taken, *made], inputs, {}, [entry], outputs)

    def turn_by_turn(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Compute it by calls of operations."""
        scan, back = self.scan, self.back
        consts, rows, given, first, seeds, carried = self.parts(arrays)
        n_carried, n_consts = scan.n_carried, scan.counts[0]
        turns = max(int(given[0]), 0) if given else scan.length or 0
        run, pull = Replay(scan.body.with_outputs(scan.body.outputs[:n_carried])), Replay(back.body)
        outputs = [back.body.layouts[number] for number in back.body.outputs[back.n_carried :]]
        results = [np.zeros((back.length or 0, *own.shape), own.dtype) for own in outputs]
        state, slots = list(first), {0: list(first)}
        for what, one, two in schedule(turns, self.slots):
            if what == "restore":
                state = slots[one]
            elif what == "store":
                slots[one] = state
            elif what == "advance":
                for turn in range(one, two):
                    row = turns - 1 - turn if scan.reverse else turn
                    state = list(run(*consts[:n_consts], *[own[row] for own in rows], *state))
            else:
                row = turns - 1 - one if scan.reverse else one
                kept = [state[k] for k in self.kept]
                found = pull(*consts, *[own[row] for own in rows], *kept, *[own[row] for own in seeds], *carried)
                carried = list(found[: back.n_carried])
                for result, value in zip(results, found[back.n_carried :], strict=True):
                    result[row] = value
        return (*[np.array(own) for own in carried], *results)


_known: Final[WeakValueDictionary[Hashable, Checkpointed]] = WeakValueDictionary()


def checkpointed(scan: Scan, kept: tuple[int, ...], back: Scan, slots: int) -> Checkpointed:
    """Return a loop back: the same one for equal loops."""
    key = scan, kept, back, slots
    own = _known.get(key)
    if own is None:
        own = _known[key] = Checkpointed(*key)
    return own


def apply_back(scan: Scan, kept: tuple[int, ...], back: Scan, slots: int, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a loop back that computes the turns of a loop again; see `Checkpointed.parts`."""
    own = checkpointed(scan.changed(condition=None, counted=scan.is_open, slots=0), kept, back, slots)
    if len(operands) > MAX_SAVED and modes.is_grad_enabled() and any(one.requires_grad for one in operands):
        # An entry of the tape has room for the residuals of a few operands.
        return Checkpointed.with_kept(own, operands)
    op = back_op(len(operands), len(back.body.outputs))
    result = compute(op, Bound(list(operands), {"checkpoints": own}))[0]
    return [result] if isinstance(result, Tensor) else list(result)


@functools.cache
def back_op(n_operands: int, n_results: int) -> Op:
    """Return the operation with so many operands and results."""
    operands = tuple([f"x{k}" for k in range(n_operands)])
    results = tuple([f"out{k}" for k in range(n_results)]) if n_results > 1 else ("out",)

    def forward(*arrays: Any, checkpoints: Checkpointed) -> Any:
        found = Checkpointed.forward(checkpoints, arrays)
        return found[0] if n_results == 1 else found

    def rule(ct: Any, checkpoints: Checkpointed, wanted: tuple[bool, ...], *own: Tensor) -> Any:
        return Checkpointed.rule(ct, checkpoints, wanted, own)

    names = ("ct", "checkpoints", "wanted", *operands)
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    op = Op(
        name="scan_back", operands=operands, forward=forward, vjp=rule, family="scan", attrs=("checkpoints",),
        results=results,
    )  # fmt: skip
    del op_table[op.name]  # it stands only in programs
    return op

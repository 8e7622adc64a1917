"""Loops as operations: the program of a turn, which runs so many times.

A turn takes the same constants, a row of each of some arrays, and the values that are carried from turn to turn; it
computes the next carried values, and a row of each of some results. How many turns there are is known, or an operand,
or follows from a condition on the carried values. The rule is such a loop too, which goes through the turns backwards:
it takes what each turn was given, which is kept as further results. So loops have derivatives of any order.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, op_table
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.tape.entries import MAX_SAVED
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["TURNS_LAYOUT", "Scan", "apply_scan", "check_room", "room_for", "scan_of"]

#: Of the number of turns.
TURNS_LAYOUT: Final = layout_of(np.array(0))
_ROOM: Final = 64  # turns that there is room for at least


class Scan:
    """A loop.

    Attributes
    ----------
    body : Program
        Of a turn. Its inputs are the constants, the rows, and the carried values; its outputs the carried values, and
        rows of results.
    counts : tuple of int
        How many constants, rows and carried values there are.
    length : int, or None
        Of the arrays: how many turns there are, or may be at most; None if there are no arrays.
    reverse : bool
        Whether the first turn takes the last row.
    counted : bool
        Whether the number of turns is an operand.
    condition : Program, or None
        Of the constants and the carried values; its output is true as long as there is a further turn. The number of
        turns is then the last result; one more than `length` if there is no room for them.
    kept : tuple of int
        Which of the carried values each turn's rule takes: the last rows are those that it was given.
    slots : int
        If not 0, nothing is kept: the rule computes turns again, from so many checkpoints.
    examples : sequence of array
        Inputs of the body with which it was traced.
    """

    #: From a loop and its operands' arrays to those of the results, and from cotangents, loop, which operands' ones are
    #: wanted, and residuals to these. Breaks an import cycle: `scan_run` and `scan_rule` install them, and `scan_ways`.
    forward: ClassVar[Callable[..., Any]]
    rule: ClassVar[Callable[..., tuple[Any, ...]]]
    #: From a loop and its operands to one that keeps what its rule takes, its operands, and from its results to those
    #: of the first loop.
    recorded: ClassVar[Callable[..., Any]]
    #: From a turn's program to one that machine code is made of.
    written_out: ClassVar[Callable[[Program], Program]]
    #: From a program with batches of loops to one with loops of batches.
    lifted: ClassVar[Callable[[Program], Program]] = staticmethod(lambda program: program)

    def __init__(
        self,
        body: Program,
        counts: tuple[int, int, int],
        length: int | None,
        examples: Sequence[Any],
        *,
        reverse: bool = False,
        counted: bool = False,
        condition: Program | None = None,
        kept: tuple[int, ...] = (),
        slots: int = 0,
    ) -> None:
        self.body, self.counts, self.length, self.reverse = body, counts, length, reverse
        self.counted, self.condition, self.kept, self.examples = counted, condition, kept, list(examples)
        self.slots = slots

    def __repr__(self) -> str:
        turns = "as many" if self.length is None else f"{'at most ' * self.is_open}{self.length}"
        return f"<a turn's program of {len(self.body.entries)} operations, {turns} turns{' back' * self.reverse}>"

    @property
    def is_open(self) -> bool:
        """Whether the number of turns depends on data."""
        return self.counted or self.condition is not None

    @property
    def n_carried(self) -> int:
        """How many values are carried."""
        return self.counts[2]

    @property
    def n_residuals(self) -> int:
        """How many of the first operands the rule takes: not the carried values, unless it computes turns again."""
        return self.counts[0] + self.counts[1] + self.counted + (self.n_carried if self.slots else 0)

    def operands(self, consts: Sequence[Any], rows: Sequence[Any], turns: Sequence[Any], carried: Sequence[Any]) -> Any:
        """Return operands in their order."""
        return [*consts, *rows, *turns, *carried]

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return the constants, the rows, the number of turns (none or one), and the carried values of operands."""
        n_consts, n_rows, _ = self.counts
        end = n_consts + n_rows
        own = list(operands)
        return own[:n_consts], own[n_consts:end], own[end : end + self.counted], own[end + self.counted :]

    def with_kept(self, kept: Sequence[int]) -> Scan:
        """Return the loop that keeps carried values for its rule."""
        body, (n_consts, n_rows, _) = self.body, self.counts
        given = body.inputs[n_consts + n_rows :]
        outputs = [*body.outputs, *[given[place] for place in kept]]
        return self.changed(body=body.having_outputs(outputs), kept=tuple(kept))

    def changed(self, **options: Any) -> Scan:
        """Return the loop with other attributes."""
        given = {name: getattr(self, name) for name in ("body", "counts", "length", "examples", *_OPTIONS)}
        return scan_of(**(given | options))

    def whole(self) -> Program:
        """Return the program that is this operation alone."""
        body, (n_consts, n_rows, n_carried) = self.body, self.counts
        given = [body.layouts[number] for number in body.inputs]
        rows = [self._of_all(own) for own in given[n_consts : n_consts + n_rows]]
        taken = self.operands(given[:n_consts], rows, [TURNS_LAYOUT] * self.counted, given[n_consts + n_rows :])
        made = [body.layouts[number] for number in body.outputs]
        made = [*made[:n_carried], *map(self._of_all, made[n_carried:])]
        made += [TURNS_LAYOUT] * (self.condition is not None)
        inputs, outputs = tuple(range(len(taken))), tuple(range(len(taken), len(taken) + len(made)))
        entry = Entry(self.op, inputs, {"scan": self}, (), outputs)
        return Program([*taken, *made], inputs, {}, [entry], outputs)

    def _of_all(self, layout: Layout) -> Layout:
        return contiguous_layout((self.length or 0, *layout.shape), layout.dtype)

    @property
    def op(self) -> Op:
        """The operation."""
        n_results = len(self.body.outputs) + (self.condition is not None)
        n_operands = sum(self.counts) + self.counted
        n_residuals = self.n_residuals if self.n_residuals <= MAX_SAVED else -1
        return _op(n_operands, n_results, n_residuals, len(self.kept), self.condition is not None)


_DEFAULTS: Final[dict[str, Any]] = {"reverse": False, "counted": False, "kept": (), "slots": 0}
_OPTIONS: Final = ("condition", *_DEFAULTS)
_scans: Final[WeakValueDictionary[Hashable, Scan]] = WeakValueDictionary()


def scan_of(
    body: Program, counts: tuple[int, int, int], length: int | None, examples: Sequence[Any], **options: Any
) -> Scan:
    """Return a loop: the same one for equal programs, so that what is known of it is found."""
    body, condition = body.compact(), options.pop("condition", None)
    options = _DEFAULTS | options
    if condition is not None:
        condition = condition.compact()
    known = None if condition is None else condition.key()
    key = body.key(), counts, length, known, tuple(sorted(options.items()))
    scan = _scans.get(key)
    if scan is None:
        scan = _scans[key] = Scan(body, counts, length, examples, condition=condition, **options)
    return scan


def room_for(turns: int) -> int:
    """Return for how many turns there is room: a power of two, so that there are few programs."""
    return max(_ROOM, 1 << max(turns - 1, 0).bit_length())


def check_room(turns: Tensor, room: int) -> None:
    """Look whether there is room for the turns: a guard, which says what there is to do."""
    guards: list[Guard] = getattr(modes.interceptor(), "guards", [])
    count = len(guards)
    if not bool(turns <= room):
        raise AssertionError("a loop was traced with more turns than it has room for")
    advice = f"A loop whose derivative is wanted has room for {room} turns; trace it with as many as there may be."
    guards[count:] = [guard._replace(where=f"{advice} {guard.where}") for guard in guards[count:]]


def apply_scan(scan: Scan, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a loop, recorded as one operation; without what is kept for its rule."""
    if modes.is_grad_enabled() and any(own.requires_grad for own in operands):
        scan, operands, finish = Scan.recorded(scan, operands)
        results: list[Tensor] = finish(_computed(scan, operands))
        return results
    return _computed(scan, list(operands))


def _computed(scan: Scan, operands: Sequence[Tensor]) -> list[Tensor]:
    result = compute(scan.op, Bound(list(operands), {"scan": scan}))[0]
    return [result] if isinstance(result, Tensor) else list(result)


@functools.cache
def _op(n_operands: int, n_results: int, n_residuals: int, n_kept: int, has_condition: bool) -> Op:
    """Return the operation with so many operands and results, of which the first and the last are residuals."""
    operands = tuple([f"x{k}" for k in range(n_operands)])
    results = tuple([f"out{k}" for k in range(n_results)]) if n_results > 1 else ("out",)

    def forward(*arrays: Any, scan: Scan) -> Any:
        found = Scan.forward(scan, arrays)
        return found[0] if n_results == 1 else found

    rule: Any = (NOT_DIFFERENTIABLE,) * n_operands
    if n_residuals >= 0:
        last = n_kept + has_condition
        rule = _rule_of((*operands[:n_residuals], *(results[n_results - last :] if last else ())))
    op = Op(name="scan", operands=operands, forward=forward, vjp=rule, family="scan", attrs=("scan",), results=results)
    del op_table[op.name]  # its public functions are those of `tapegrad.func`
    return op


def _rule_of(names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the rule whose residuals have these names."""

    def rule(ct: Any, scan: Scan, wanted: tuple[bool, ...], *residuals: Tensor) -> tuple[Any, ...]:
        return Scan.rule([ct] if isinstance(ct, Tensor) else ct, scan, wanted, residuals)

    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("ct", "scan", "wanted", *names)]
    )
    return rule

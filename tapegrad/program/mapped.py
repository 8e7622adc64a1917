"""`vmap` by programs: the function is traced for one item, and its program runs for all.

Where Python looks at values, items may take different ways. A way is traced for the first item that takes none of those
before, and again, until each item takes one.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad import modes
from tapegrad.func.trees import flatten, rebuild, structure
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program import batched
from tapegrad.program.batch import Batch, apply_batch, batch_of, has_rule, with_flag
from tapegrad.program.program import Program
from tapegrad.program.replay import Replay
from tapegrad.program.trace import TracingError, trace
from tapegrad.program.traced import example
from tapegrad.runtime import state
from tapegrad.tensor import Tensor

#: How many ways through its branches the items of a batch may take.
MOST_WAYS: Final = 16

_recent: Final[deque[Batch]] = deque(maxlen=64)  # which would be forgotten after their call
_VALUES: Final = (Tensor, np.ndarray, np.generic)
#: Items that took ways of their own, by functions' code: who traces a function again traces these ways again.
#: None where these are too many.
_examples: Final[WeakKeyDictionary[Any, dict[Any, list[list[np.ndarray]] | None]]] = WeakKeyDictionary()
state.register("program.mapped: batches", lambda: len(_recent), _recent.clear)
state.register("program.mapped: items of ways", lambda: sum(map(len, _examples.values())), _examples.clear)


class _Unlike(Exception):  # noqa: N818  # a finding, which ends the attempt
    """A function does not do the same for all items, or cannot be traced."""


def mapped(function: Callable[..., Any], call: Callable[..., Any], operands: Sequence[Tensor], in_program: bool) -> Any:
    """Return what a function returns for all items: tensors have the items along the first dimension.

    Parameters
    ----------
    function : callable
        The user's.
    call : callable
        Calls it with an item's part of each operand; it returns a tree.
    operands : sequence of Tensor
        They have the items along the first dimension.
    in_program : bool
        Whether the call is a part of a program that is being traced. Else machine code has to be worth its making.

    Returns
    -------
    object
        None if the function cannot be traced, or items take too many ways, or return different things, or calls for
        each item take less time.
    """
    try:
        tree, batch, captured = _batch_of(function, call, operands, in_program)
    except (TracingError, _Unlike):
        return None
    n_results = len(batch.program.outputs)
    if n_results == batch.flags or not has_rule([*operands, *captured], n_results):
        return None
    results = apply_batch(batch, [*operands, *captured])
    if batch.flags and not results.pop().all():
        return None
    values = iter(results)
    return rebuild(tree, [next(values) if isinstance(leaf, _VALUES) else leaf for leaf in flatten(tree)])


def _is_worth(batch: Batch, size: int) -> bool:
    """Whether machine code for a batch is there, or is made in less time than calls for each item have taken by now."""
    known = batched.known_of(batch)
    if size in known.runners:
        return known.runners[size].code is not None
    if batch in _recent:
        _recent.remove(batch)
    _recent.append(batch)
    count = len(batch.program.entries)
    known.operations += size * count
    return batched.is_worth(known.operations, count)


def _batch(programs: Sequence[Program], operands: Sequence[Any], captured: Sequence[Tensor], has_guards: bool) -> Batch:
    flags = [True] * len(operands) + [False] * len(captured)
    return batch_of([with_flag(own) for own in programs] if has_guards else programs, flags, has_guards)


def _batch_of(
    function: Callable[..., Any], call: Callable[..., Any], operands: Sequence[Tensor], in_program: bool
) -> tuple[Any, Batch, list[Tensor]]:
    """Return what the function returns for an item, the batch of the ways that items take, and what it captured."""
    is_recorded = modes.is_grad_enabled()
    wanted = [own.requires_grad and is_recorded for own in operands]
    arrays: list[Any] = list(map(example, operands))
    first, place = _trace(call, [own[0] for own in arrays], wanted, in_program), 0
    ways, (tree, program, captured) = [first], first
    batch = _batch([program], operands, captured, bool(program.guards))
    if not in_program and not _is_worth(batch, len(arrays[0])):
        raise _Unlike
    if not program.guards:
        return tree, batch, captured
    known, key = _examples_of(function, arrays)
    examples = known.setdefault(key, [])
    if examples is None:
        raise _Unlike
    if not examples:
        examples.append([own[0].copy() for own in arrays])
    while True:
        programs, captured = batched.unified([own[1:] for own in ways])
        asked = [own.with_outputs(()) for own in programs]
        flags = _flags(_batch(asked, operands, captured, True), operands, captured, examples)
        if flags.all():
            return tree, _batch(programs, operands, captured, True), captured
        before, place = place, int(np.argmin(flags))
        if len(ways) == MOST_WAYS:
            known[key] = None
        if len(ways) == MOST_WAYS or place == before:
            raise _Unlike
        behind = place - len(arrays[0])
        item = examples[behind] if behind >= 0 else [own[place].copy() for own in arrays]
        ways.append(_trace(call, item, wanted, in_program))
        _check_alike(first, ways[-1])
        if len(examples) < MOST_WAYS and behind < 0:
            examples.append(item)


def _flags(
    batch: Batch, operands: Sequence[Tensor], captured: Sequence[Tensor], examples: Sequence[Sequence[np.ndarray]]
) -> np.ndarray:
    """Return whether each item, and behind these each example, takes one of the ways."""
    (flags,) = apply_batch(batch, [*operands, *captured])  # in a trace it computes what operands it has not yet
    runs, given = [Replay(way) for way in batch.ways], list(map(example, captured))
    others = [any(bool(run(*own, *given)[-1]) for run in runs) for own in examples]
    return np.array([*np.asarray(raw_data(flags)), *others])


def _examples_of(
    function: Callable[..., Any], arrays: Sequence[np.ndarray]
) -> tuple[dict[Any, list[list[np.ndarray]] | None], Any]:
    """Return items that took ways of their own, by shapes and dtypes, and the key of these ones."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    known = {} if code is None else _examples.setdefault(code, {})
    return known, tuple([(own.shape[1:], own.dtype) for own in arrays])


def _trace(
    call: Callable[..., Any], items: Sequence[Any], wanted: Sequence[bool], in_program: bool
) -> tuple[Any, Program, list[Tensor]]:
    """Return what the function returns for an item, its program, and the tensors that it takes from outside."""
    returned: list[Any] = []

    def function(*tensors: Tensor) -> list[Tensor]:
        returned.append(call(*tensors))
        return [as_tensor(leaf) for leaf in flatten(returned[0]) if isinstance(leaf, _VALUES)]

    try:
        program, captured = trace(function, items, wanted)
    except TracingError:
        raise
    except Exception as error:  # what a function does not take in a trace, it may take as it is
        if in_program:
            raise
        raise _Unlike from error
    if program.has_functions:
        raise _Unlike  # the rule is the user's own
    return returned.pop(), program, captured


def _check_alike(one: tuple[Any, Program, Any], two: tuple[Any, Program, Any]) -> None:
    """Check that items return the same kinds of things."""
    kinds = []
    for tree, program, _ in (one, two):
        leaves = [None if isinstance(leaf, _VALUES) else (leaf.__class__, leaf) for leaf in flatten(tree)]
        layouts = [(program.layouts[number].shape, program.layouts[number].dtype) for number in program.outputs]
        kinds.append((structure(tree), leaves, layouts))
    if kinds[0] != kinds[1]:
        raise _Unlike

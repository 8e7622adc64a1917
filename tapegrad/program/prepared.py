"""What compiled code needs to know of what a program takes from outside and changes there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.program.effects import Drawn, Outside, Read, identity_of, stands_behind
from tapegrad.program.program import Program
from tapegrad.program.standing import together
from tapegrad.program.templates import Changes, GradOf
from tapegrad.tape.layout import Layout, contiguous_layout
from tapegrad.tensor import Tensor, from_array


def prepared(
    outside: Outside, program: Program, n_inputs: int, first: int, *, is_recorded: bool = False
) -> tuple[list[tuple[Tensor | GradOf, Layout]], Changes | None]:
    """Return tensors and gradients that are inputs behind the arguments, with their layouts, and what a call changes.

    Parameters
    ----------
    outside : Outside
    program : Program
    n_inputs : int
        How many inputs the arguments are.
    first : int
        The number of the first value behind them.
    is_recorded : bool
        Whether the call is recorded: then tensors may want a gradient.
    """
    layouts = [program.layouts[number] for number in program.inputs]
    fresh: list[tuple[Any, Drawn | Read]] = []
    tensors: list[Any] = []
    for source, layout in zip(outside.sources, layouts[n_inputs:], strict=True):
        if isinstance(source, (Drawn, Read)):
            tensors.append(from_array(np.zeros(layout.shape, layout.dtype)))
            fresh.append((tensors[-1], source))
        else:
            tensors.append(source)
    written: list[Any] = [own for own in outside.written if not isinstance(own, int)]
    others: list[Any] = [*written, *[own.tensor for own in outside.new_grads], *outside.cleared]
    others += [own for own, _ in outside.conditions]
    place_of = {identity_of(own): place for place, own in enumerate(tensors)}
    for own in others:
        if identity_of(own) not in place_of:
            place_of[identity_of(own)] = len(tensors)
            tensors.append(own)
            tensor = own.tensor if isinstance(own, GradOf) else own
            layouts.append(contiguous_layout(tensor.shape, tensor.dtype))
    may_want = outside.is_step or is_recorded
    captured = [
        (own, layout.tracked if may_want and isinstance(own, Tensor) and own.requires_grad else layout)
        for own, layout in zip(tensors, layouts[n_inputs:], strict=True)
    ]
    checks = together([*outside.checks, *[stands_behind(name, tensors[place]) for place, name in outside.names]])
    after = outside.finish if outside.modes or outside.counts else None
    if not outside.has_effects and not outside.conditions and not checks and not fresh and after is None:
        return captured, None
    local = threading.local()
    count = len(program.outputs) - len(outside.written) - len(outside.new_grads)
    grads = [(first + place_of[identity_of(own.tensor)], number) for number, own in
             enumerate(outside.new_grads, count + len(outside.written))]  # fmt: skip
    grads += [(first + place_of[identity_of(own)], -1) for own in outside.cleared]
    return captured, Changes(
        _before(outside, checks, fresh, local) if fresh or checks else None,
        _undo(local) if any(isinstance(source, Drawn) for _, source in fresh) else None,
        after,
        [layout.nbytes for layout in layouts],
        [(n_inputs + place_of[identity_of(own)], count + number) for number, own in enumerate(written)],
        grads,
        [(first + place_of[identity_of(own)], int(has_grad)) for own, has_grad in outside.conditions],
    )  # fmt: skip


def _before(
    outside: Outside,
    checks: Sequence[Callable[[], bool]],
    fresh: Sequence[tuple[Any, Drawn | Read]],
    local: threading.local,
) -> Callable[[], bool]:
    """Return what looks at Python's state, and makes the inputs that are new in each call."""
    if len(checks) == 1 and not fresh:
        return checks[0]
    has_draws = any(isinstance(source, Drawn) for _, source in fresh)

    def before() -> bool:
        for check in checks:
            if not check():
                return False
        if has_draws:
            local.states = outside.states()
        for holder, source in fresh:
            holder._data = source.new()
        return True

    return before


def _undo(local: threading.local) -> Callable[[], None]:
    def undo() -> None:
        for bits, state in local.states:
            bits.state = state

    return undo

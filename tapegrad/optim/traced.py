"""A step of an optimizer in a function that is traced: the formula on tensors, a part of the program.

The options of a group are looked at in each call, as schedules change them; the states are tensors from outside.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.optim.formula import HEAD, Formula
from tapegrad.optim.optimizer import Group
from tapegrad.optim.update import State, Update, values_of
from tapegrad.tensor import Tensor


def trace_step(
    tracer: Any, update: Update, group: Group, states: State, head: Callable[[Group], tuple[float, float, float]],
    choose: Callable[[Group], Formula],
) -> None:  # fmt: skip
    """Write the update of all parameters of a group down that have a gradient.

    Parameters
    ----------
    tracer : Tracer
    update : Update
    group : dict
        The parameters and the options.
    states : dict
        From each parameter to its states.
    head : callable
        From the group to the first values of a step; see `Update`.
    choose : callable
        From the group to the formula.
    """
    params, formula = list(group["params"]), update.formula
    for param in params:
        if param._grad is None:
            tracer.accumulated(param)  # it has to be so in other calls, too
        elif param.dtype.kind == "c":
            raise RuntimeError("updates of complex parameters are not traced: call step() outside of the function")
        elif update.reads.fresh and update.missing(update.states_of(param, states)):
            tracer.postpone()  # its first step is another one than the program's
        else:
            update.add_states(param, update.states_of(param, states), group)
    flags = {name: group[name] for name, _ in update.reads.options if isinstance(group[name], bool)}
    _, *changes = head(group)
    plain = [changes[0] == 0.0, changes[1] == 1.0]

    stepped = [param for param in params if param._grad is not None and param in states]
    owners, names = [states[param] for param in stepped], (*update.reads.numbers, *update.reads.states)
    places = [(states, param) for param in stepped] + [(own, name) for own in owners for name in names]

    def is_same() -> bool:
        _, decay, shrink = head(group)
        own = group["params"]
        if choose(group) is not formula or len(own) != len(params) or not all(map(operator.is_, own, params)):
            return False
        return [decay == 0.0, shrink == 1.0] == plain and all(group[name] is flags[name] for name in flags)

    tracer.require_same(places)
    tracer.require(is_same)
    with modes.no_grad():
        values = tracer.read(lambda: np.array([*head(group), *values_of(update, group)], np.float64))
        sign, decay, shrink = (values[place] for place in range(HEAD - 1))
        given = [
            flags[name] if name in flags else values[HEAD - 1 + place]
            for place, (name, _) in enumerate(update.reads.options)
        ]
        for param in params:
            if param._grad is not None:
                x, slope = tracer.copy_of(param), sign * tracer.copy_of(param._grad)
                slope = slope if plain[0] else slope + decay * x
                _change(tracer, update, param, x if plain[1] else shrink * x, slope, states, given)


def follow_step(tracer: Any, optimizer: Any, step: Callable[[], Any]) -> Any:
    """Call a `step` that a user wrote in Python.

    Its options, and the numbers among its states, are compared in each call. A step that makes states is postponed: the
    function is called as it is. One that replaces states is refused, as the program would not.

    Parameters
    ----------
    tracer : Tracer
    optimizer : Optimizer
    step : callable
    """
    states = {param: dict(own) for param, own in optimizer.state.items()}

    def looked_at() -> list[Any]:
        found: list[Any] = optimizer._looked_at()
        for own in (*optimizer.param_groups, *optimizer.state.values()):
            found += [*own, *own.values()]
        return found + [param for group in optimizer.param_groups for param in group["params"]]

    what, present = f"step() of {type(optimizer).__name__}", optimizer.state
    tracer.watch(looked_at, what)
    result = step()
    is_new = any(list(own) != list(states.get(param, ())) for param, own in present.items())
    replaced = [] if is_new else [
        name for param, own in present.items() for name, value in own.items() if states[param][name] is not value
    ]  # fmt: skip
    if is_new or replaced:
        present.clear()
        present.update(states)
    if is_new:
        tracer.postpone()
    if replaced:
        tracer.unseen(f"{what}, which replaces the state {replaced[0]!r} (a tensor can be written to in place),")
    return result


def _change(
    tracer: Any, update: Update, param: Tensor, x: Tensor, slope: Tensor, states: State, given: list[Any]
) -> None:
    own = update.states_of(param, states)
    numbers = [own[name] for name in update.reads.numbers]
    arrays = [own[name] for name in update.reads.states]
    fresh = [0.0] if update.reads.fresh else []
    begun = update.formula.begin(*map(tracer.copy_of, numbers), *given, *fresh)
    count = len(numbers)
    after = update.formula.element(x, slope, *map(tracer.copy_of, arrays), *begun[count:])
    for target, value in zip([*numbers, param, *arrays], [*begun[:count], *after], strict=True):
        tracer.overwrite(target, value)

"""Rules in a function that is traced: the operations of one call of a rule serve all entries of its plan.

A rule is called once with values of its own, and what it computes is noted as a script. For the next entry of the same
plan the script is written with that entry's numbers, in 1 to 2 µs an operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.results import is_part
from tapegrad.ops.table.rules import cotangents
from tapegrad.program.calls import Calls, Kind
from tapegrad.program.traced import Traced
from tapegrad.recording.plan import Plan
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import PLAN_OBJECT, TapeNode
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of

_CT: Final = 0  # the place of the result's cotangent among the values of a script


class Script(NamedTuple):
    """The operations of the rules of an entry. Values are the cotangent, residuals, constants, then results.

    Attributes
    ----------
    constants : list of int
        Their numbers.
    steps : list of (Kind, list of int)
        Each operation, and the places of its operands among the values.
    cotangents : list of (int, int, Layout)
        Of an operand: its number, the place of its cotangent among the values, and the layout of that.
    """

    constants: list[int]
    steps: list[tuple[Kind, list[int]]]
    cotangents: list[tuple[int, int, Layout]]


class Scripts(Calls):
    """Writes the operations of rules down."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[Plan, tuple[list[int], list[int]] | None] = {}
        self._scripts: dict[Any, Script | None] = {}

    def cotangents(self, node: TapeNode, wanted: tuple[int, ...], ct: Any) -> list[tuple[int, Any]] | None:
        """Return the cotangents of the wanted operands of an entry; None if its rules have to be called."""
        if ct.__class__ is not Traced or modes.is_grad_enabled():
            return None
        plan = node[PLAN_OBJECT]
        if plan not in self._places:
            self._places[plan] = _residuals(plan)
        places = self._places[plan]
        if places is None:
            return None
        arrays, numbers = places
        key = (plan, wanted, ct._layout, *[repr(node[place]) for place in numbers])
        if key not in self._scripts:
            self._scripts[key] = self._learn_script(node, wanted, ct, arrays)
        script = self._scripts[key]
        if script is None:
            return None
        data = [raw_data(ct), *[node[place] for place in arrays]]
        found = [self._by_identity.get(id(own)) for own in data]
        if None in found:
            return None
        values, results = self.values, self._results
        found += script.constants
        data += [values[number] for number in script.constants]
        for kind, sources in script.steps:
            operands: Any = tuple([found[place] for place in sources])
            number = results.get((kind.plan, operands))
            if number is None:
                number = self.write_numbers(kind, operands, [data[place] for place in sources])
            found.append(number)
            data.append(values[number])
        return [
            (operand, ct if place == _CT else self.constant_of(found[place], layout))  # type: ignore[arg-type]
            for operand, place, layout in script.cotangents
        ]

    def _learn_script(self, node: TapeNode, wanted: Sequence[int], ct: Traced, arrays: Sequence[int]) -> Script | None:
        """Return the operations of rules, which are called with values that stand for others."""
        numbers, twin = [self._stand_in(raw_data(ct))], list(node)
        for place in arrays:
            numbers.append(self._stand_in(node[place]))
            twin[place] = self.values[numbers[-1]]
        looks, guards = self.looks, len(self.guards)
        script: list[Any] = []
        self.script = script
        try:
            pairs = cotangents(twin, wanted, self.constant_of(numbers[0], ct._layout))
        finally:
            self.script = None
        if self.looks > looks:
            self.drop_guards(guards)
            return None
        return None if None in script else self._script(numbers, script, pairs)

    def _stand_in(self, data: Any) -> int:
        """Return the number of a new value that has the layout of another one."""
        twin = data[...] if isinstance(data, np.ndarray) else np.asarray(data)[()]
        layout = layout_of(data)
        return self.new(twin, contiguous_layout(layout.shape, layout.dtype))

    def _script(self, numbers: Sequence[int], calls: Sequence[Any], pairs: Sequence[tuple[int, Any]]) -> Script | None:
        given = [self.number_of(value) for _, value in pairs]
        made = {number for _, _, number in calls}
        used = [number for _, operands, _ in calls for number in operands] + given
        constants = list(dict.fromkeys(own for own in used if own not in made and own not in numbers))
        if not self.constants.keys() >= set(constants):
            return None
        place_of = {number: place for place, number in enumerate([*numbers, *constants])}
        steps, count = [], len(place_of)
        for kind, operands, number in calls:
            steps.append((kind, [place_of[own] for own in operands]))
            place_of.setdefault(number, count)
            count += 1
        places = [place_of[number] for number in given]
        if any(_CT < place < len(numbers) for place in places):
            return None  # a residual as it is, which may have other strides than its value elsewhere
        return Script(constants, steps, [
            (operand, place, layout_of(np.asarray(raw_data(value))))
            for (operand, value), place in zip(pairs, places, strict=True)
        ])  # fmt: skip


def _residuals(plan: Plan) -> tuple[list[int], list[int]] | None:
    """Return the places of arrays and of Python numbers in the nodes of a plan; None if its rules have no script."""
    op = plan.op
    rules = [op.rule(operand) for operand in range(plan.arity) if plan.wants(operand)]
    if len(op.results) > 1 or is_part(plan) or plan.extra or any("entry" in rule_parameters(rule) for rule in rules):
        return None
    if op.variadic and any(name != "out" for name in plan.saved):
        return None
    arrays: list[int] = []
    numbers: list[int] = []
    for name in plan.saved:
        (numbers if plan.layout(name).weak else arrays).append(plan.position(name))
    return arrays, numbers

"""Rules in a function that is traced: the operations of one call of a rule serve all entries of its plan.

A rule is called once with values of its own, and what it computes is noted as a script. For the next entry of the same
plan the script is written with that entry's numbers, in 1 µs an operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import dtypes
from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.results import is_part
from tapegrad.ops.table.rules import cotangents
from tapegrad.program.calls import Calls
from tapegrad.program.kinds import Kind
from tapegrad.program.moved_scripts import Script, moved_script
from tapegrad.program.numbers import array_of
from tapegrad.program.short_walk import ShortWalk, find_same
from tapegrad.program.walk import Walk
from tapegrad.recording.plan import Plan
from tapegrad.runtime import state
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.sweep.found_entries import FoundEntries
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.entries import PLAN_OBJECT, TapeNode
from tapegrad.tape.hooks import node_hooks
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of


class Value(NamedTuple):
    """A cotangent that is no tensor yet: the number of its value, and the layout of the tensor."""

    number: int
    layout: Layout


#: A value from a tuple of its fields, in a third of the time.
value_of: Final[Callable[[Any], Value]] = functools.partial(tuple.__new__, Value)


#: Scripts of all traces, by what `Scripts` finds them by.
_scripts: Final[dict[Any, Script]] = {}
_MOST_SCRIPTS: Final = 1 << 12
_SMALL: Final = 1 << 10  # elements of a constant that is kept
state.register("program.scripts: scripts of rules", lambda: len(_scripts), _scripts.clear)
dtypes.on_change.append(_scripts.clear)

FEW: Final = 100  # entries, which Python visits in less time than compiled code takes to know their rules


class Scripts(Calls):
    """Writes the operations of rules down. Their values are not computed until somebody asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[Plan, tuple[list[int], list[int]] | None] = {}
        self._scripts: dict[Any, Script | None] = {}
        self._told: set[Any] = set()  # of which scripts, and of which plans' residuals, compiled code knows
        self._layouts_of_codes: list[Layout] = []
        self._walk: Walk | ShortWalk = ShortWalk()

    @functools.cached_property
    def _compiled_walk(self) -> Walk:
        return Walk()

    def walk(self, sweep: Sweep, cts: list[Any]) -> None:
        """Visit the entries that a sweep has found; see `tapegrad.sweep.recorded.run_recorded`."""
        found, before = FoundEntries(sweep), self._walk
        if len(found.order) < FEW:
            self._walk = ShortWalk(found.order, find_same(found, self._known_places, self._by_identity))
        else:
            self._walk = self._compiled_walk
        try:
            with self._walk.of(sweep):
                self._visit_all(found, cts)
        finally:
            self._walk = before

    def _visit_all(self, found: FoundEntries, cts: list[Any]) -> None:
        walk, count = self._walk, len(found.order)
        position = count
        while (position := walk.find_same(position - 1, self._by_identity) + 1) > 0:
            self._know(found.node(found.order[position - 1])[PLAN_OBJECT])
        for entry_id, ct in enumerate(cts):
            if ct is not None:
                self._give(cts, entry_id)
        while (position := walk.run(position, self._by_identity, len(self.layouts))) < count:
            self._take_written()
            self._visit(found, cts, position)
            position += 1
        self._take_written()
        for entry_id in walk.ids():
            self._take(cts, entry_id)

    def _visit(self, found: FoundEntries, cts: list[Any], position: int) -> None:
        """Visit an entry that compiled code does not serve, or not yet."""
        entry_id, walk = found.order[position], self._walk
        node = found.node(entry_id)
        ids, wanted = found.operands(position, node)
        given = walk.take(entry_id)
        values = None if given is None else self._cotangents(node, wanted, value_of(given))
        if given is not None and (values is None or found.is_captured(entry_id)):
            walk.give(entry_id, *given)
        if values is not None:
            for operand, value in zip(wanted, values, strict=True):
                self._add_to(walk.same(ids[operand]), value)
            return
        touched = {own for own in (entry_id, *ids) if own >= 0}
        for own in touched:
            self._take(cts, own)
        found.visit(cts, position)
        if not found.is_captured(entry_id):
            cts[entry_id] = None
        for own in touched:
            self._give(cts, own)

    def _take(self, cts: list[Any], entry_id: int) -> None:
        """Take a cotangent from compiled code."""
        value = self._walk.take(entry_id)
        if value is not None:
            cts[entry_id] = self.constant_of(*value)

    def _give(self, cts: list[Any], entry_id: int) -> None:
        """Give a cotangent to compiled code; it knows none of several results."""
        ct, cts[entry_id] = cts[entry_id], None
        if isinstance(ct, dict):
            cts[entry_id] = ct
        if ct is None or cts[entry_id] is not None:
            self._walk.leave(entry_id, ct is not None)
        else:
            self._walk.give(entry_id, self.number_of(ct), ct._layout)

    def _add_to(self, entry_id: int, value: Value) -> None:
        given = self._walk.take(entry_id)
        if given is not None:
            before = value_of(given)
            kinds = (xp.add, before.layout, value.layout)
            script = self._script(kinds, lambda: self._script_of_sum(before.layout, value.layout))
            assert script is not None
            if isinstance(self._walk, Walk) and kinds not in self._told:
                self._told.add(kinds)
                self._walk.know_sum(before.layout, value.layout, self._coded(script))
            (value,) = self._write_script(script, [before.number, value.number])
        self._walk.give(entry_id, *value)

    def _known_places(self, plan: Plan) -> tuple[list[int], list[int]] | None:
        """Return where the residuals of a plan stand; see `_residuals`."""
        if plan not in self._places:
            self._places[plan] = _residuals(plan)
        return self._places[plan]

    def _know(self, plan: Plan) -> None:
        """Tell compiled code where the residuals of a plan stand."""
        places = self._known_places(plan)
        if isinstance(self._walk, Walk) and plan not in self._told:
            self._told.add(plan)
            self._walk.know_plan(plan, places)

    def _coded(self, script: Script | None) -> Script | None:
        """Return a script with numbers for the plans of its operations."""
        if script is None:
            return None
        steps = []
        for kind, sources in script.steps:
            if kind.plan not in self._codes:
                self._codes[kind.plan] = self._compiled_walk.know_operation(kind.plan)
                self._layouts_of_codes.append(kind.layout)
            steps.append((self._codes[kind.plan], sources))
        return script._replace(steps=steps)

    def known_result(self, plan: Plan, numbers: tuple[int, ...]) -> int | None:
        """Return the result of an operation that stands in the list already; None if it does not."""
        number: int | None = self._results.get((plan, numbers))
        code = self._codes.get(plan) if number is None else None
        return number if code is None else self._compiled_walk.find(code, numbers)

    def add(self, kind: Kind, numbers: tuple[int, ...]) -> int:
        """Write down an operation that stands nowhere yet, and return the number of its result."""
        number = super().add(kind, numbers)
        code = self._codes.get(kind.plan)
        if code is not None:
            self._compiled_walk.note(code, numbers, number)
        return number

    def _take_written(self) -> None:
        """Take over the operations that compiled code has written."""
        entries, codes = self._walk.written()
        self.layouts += map(self._layouts_of_codes.__getitem__, codes)
        self.values += entries
        self.entries += entries

    def _cotangents(self, node: TapeNode, wanted: tuple[int, ...], ct: Value) -> list[Value] | None:
        """Return the cotangents of the wanted operands of an entry; None if its rules have to be called."""
        if node_hooks(node) is not None:
            return None
        plan = node[PLAN_OBJECT]
        self._know(plan)
        places = self._places[plan]
        if places is None:
            return None
        arrays, numbers = places
        key: Any = plan, wanted, ct.layout
        if numbers:
            key += tuple([repr(node[place]) for place in numbers])
        script = self._script(
            key, lambda: moved_script(plan, wanted, ct.layout, lambda: self._script_of(node, wanted, ct.layout, arrays))
        )
        if isinstance(self._walk, Walk) and key not in self._told:
            self._told.add(key)
            weak = [node[place] for place in numbers]
            self._walk.know_rules(plan, wanted, ct.layout, weak, self._coded(script))
        found = [self._by_identity.get(id(node[place])) for place in arrays]
        if script is None or None in found:
            return None
        return self._write_script(script, [ct.number, *found])  # type: ignore[list-item]

    def _write_script(self, script: Script, found: list[int]) -> list[Value]:
        found += script.constants
        for kind, sources in script.steps:
            operands = tuple([found[place] for place in sources])
            number = self.known_result(kind.plan, operands)
            found.append(self.add(kind, operands) if number is None else number)
        return [value_of((found[place], layout)) for place, layout in script.results]

    def _script(self, key: Any, make: Callable[[], Script | None]) -> Script | None:
        """Return a script with numbers of this trace: a known one, or a new one, which is kept for other traces."""
        if key in self._scripts:
            return self._scripts[key]
        shared = _scripts.get(key)
        if shared is None:
            script = make()
            constants = [(self.constants[own], self.layouts[own]) for own in script.constants] if script else []
            if script is not None and all(layout.size <= _SMALL for _, layout in constants):
                state.put(_scripts, key, script._replace(constants=constants), _MOST_SCRIPTS)
        else:
            numbers = [self._number_of_constant(*own) for own in shared.constants]
            script = shared._replace(constants=numbers)
        self._scripts[key] = script
        return script

    def _number_of_constant(self, value: Any, layout: Layout) -> int:
        return self.python_number(value, layout) if layout.weak else self.new_constant(value)

    def _script_of_sum(self, one: Layout, two: Layout) -> Script | None:
        """Return the operation that adds cotangents of two layouts."""
        numbers = [self._stand_in(array_of(own)) for own in (one, two)]
        terms = [self.constant_of(number, own) for number, own in zip(numbers, (one, two), strict=True)]
        return self._learned(numbers, lambda: [xp.add(*terms)])

    def _script_of(self, node: TapeNode, wanted: Sequence[int], layout: Layout, arrays: Sequence[int]) -> Script | None:
        """Return the operations of rules, which are called with values that stand for others."""
        numbers, twin = [self._stand_in(array_of(layout))], list(node)
        for place in arrays:
            numbers.append(self._stand_in(node[place]))
            twin[place] = self.values[numbers[-1]]
        ct = self.constant_of(numbers[0], layout)

        def call() -> list[Any]:
            pairs = cotangents(twin, wanted, ct)
            return [value for _, value in pairs] if [own for own, _ in pairs] == list(wanted) else []

        script = self._learned(numbers, call)
        if script is None or len(script.results) != len(wanted):
            return None
        # A residual as it is may have other strides than its value elsewhere.
        return None if any(0 < place < len(numbers) for place, _ in script.results) else script

    def _stand_in(self, data: Any) -> int:
        """Return the number of a new value that has the layout of another one."""
        twin = data[...] if isinstance(data, np.ndarray) else np.asarray(data)[()]
        return self.new(twin, contiguous_layout(np.shape(data), data.dtype))

    def _learned(self, numbers: Sequence[int], call: Callable[[], Sequence[Any]]) -> Script | None:
        """Return what a function writes down, given the numbers of what it computes with; None if it is no script."""
        looks, guards = self.looks, len(self.guards)
        calls: list[Any] = []
        self.script = calls
        self.let_serve()
        try:
            values = call()
        finally:
            self.script = None
            self.let_serve()
        if self.looks > looks:
            self.drop_guards(guards)
            return None
        if None in calls:
            return None
        given = [self.number_of(value) for value in values]
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
        layouts = [layout_of(np.asarray(raw_data(value))) for value in values]
        return Script(constants, steps, [(place_of[own], layout) for own, layout in zip(given, layouts, strict=True)])


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

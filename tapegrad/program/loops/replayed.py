"""Programs that are too long, or too irregular, to fuse as a whole: one compiled function for each kind of operation.

A table says which function runs on which memory: it is walked over in each call. Values stand in an arena in which
memory serves again as soon as nobody reads what it has. Nothing is compiled for an operation of a kind that was there
before, so a long program is ready soon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse import fuse
from tapegrad.program.loops.cut import SCALARS, Cutter
from tapegrad.program.loops.driver import Driver
from tapegrad.program.loops.find import kind_of
from tapegrad.program.loops.memory_of_calls import Memory, Step
from tapegrad.program.loops.table import Call, pointer_bytes, table_text
from tapegrad.program.machine_code import Refused
from tapegrad.program.native import Native, native
from tapegrad.program.native.groups import groups, without_copies
from tapegrad.program.native.views import offset_of
from tapegrad.program.program import Entry, Program
from tapegrad.program.stops import Stop
from tapegrad.tape.layout import Layout, contiguous_layout

__all__ = ["Replayed", "is_replayed"]

_SOME: Final = 64  # operations from which on calls replace stretches of fused ones
_MANY: Final = 4000  # and from which on they do so for long arrays too
_SHORT: Final = 1 << 13  # elements
_SCALARS: Final = 1500  # of straight code for one operation
#: Operations whose constants are operands of their functions, as their code is the same for all numbers.
_ANY_NUMBER: Final = frozenset(("add", "sub", "mul", "div", "maximum", "minimum"))


def is_replayed(program: Program) -> bool:
    """Return whether a program that cannot be fused as a whole becomes calls, and not stretches of fused operations.

    Stretches go over long arrays once. Short ones stay in the cache between calls, and where few kinds of operations
    are many, to fuse takes long: for a step of an LSTM it took ten times as long as this, and ran no faster.
    """
    count = len(program.entries)
    if not _SOME <= count < _MANY:
        return count >= _MANY
    sizes = [math.prod(program.layouts[number].shape) for entry in program.entries for number in entry.results]
    kinds = {kind_of(program, entry) for entry in program.entries}
    return max(sizes) <= _SHORT and 2 * len(kinds) <= count


class Replayed(Driver):
    """A program as calls of functions; used like `tapegrad.program.fuse.Fused`.

    Parameters
    ----------
    program : Program
    reason : str
        Why it is not fused.
    with_turns : callable
        From code to the code of a loop, if it is a call of one.

    Attributes
    ----------
    called : list of Code
        That of each call.
    """

    def __init__(self, program: Program, reason: str, with_turns: Callable[[Any], Any]) -> None:
        program = without_copies(program)
        kinds = _Kinds(program, with_turns)
        if not kinds.steps:
            raise Refused("no operation computes anything")
        memory = Memory(program, kinds.steps, kinds.aliases, kinds.scalars)
        order = sorted(range(len(kinds.codes)), key=lambda own: kinds.codes[own].may_fail)
        number_of = {own: place for place, own in enumerate(order)}
        self.codes = [kinds.codes[own] for own in order]
        self.called = [kinds.codes[step.code] for step in kinds.steps]
        calls: list[Call] = [
            (number_of[step.code], len(step.inputs), places)
            for step, places in zip(kinds.steps, memory.calls, strict=True)
        ]
        copies = memory.copies()
        constants = np.frombuffer(b"".join(memory.constants), np.uint8)
        self.text = table_text(self.codes, calls, memory.bases, copies, constants, memory.arena_bytes)
        self._program, self._reason, self._arena_bytes = program, reason, memory.arena_bytes
        own_bytes = memory.arena_bytes + pointer_bytes(memory.calls)
        self.scratch_bytes: int = own_bytes + max([own.scratch_bytes for own in self.codes], default=0)

    def source(self) -> str:
        """Return the operations as lines."""
        return str(self._program)

    def counts(self, n_operations: int) -> str:
        """Return how the operations of the program run, in a line."""
        return f"{n_operations} operations are replayed"

    def explain(self) -> list[str]:
        """Return what was done with the program."""
        lines = [f"replayed: {len(self.called)} calls of {len(self.codes)} functions, as {self._reason}"]
        for own in self.codes:
            lines += own.explain() if own.may_fail or isinstance(own, Native) else ()
        return [*lines, f"{self._arena_bytes} bytes between the calls"]


class _Kinds:
    """The functions of a program, and the calls of them.

    Attributes
    ----------
    codes : list of Code
    steps : list of Step
    aliases : dict
        From values that stand in another one to that, and how many bytes behind its beginning.
    scalars : dict
        From numbers behind those of the program to constants.
    """

    def __init__(self, program: Program, with_turns: Callable[[Any], Any]) -> None:
        self.program, self._cutter, self._with_turns = program, Cutter(program), with_turns
        self.codes: list[Any] = []
        self.steps: list[Step] = []
        self.aliases: dict[int, tuple[int, int]] = {}
        self.scalars: dict[int, np.ndarray] = {}
        self._scalar_numbers: dict[tuple[str, bytes], int] = {}
        self._numbers: dict[Any, int] = {}
        self._offsets: dict[Any, int | None] = {}
        self._keys: dict[int, Hashable] = {}  # of attributes, by identity: they are shared, and live as long
        found = groups(program)
        left = self._cutter.absorb(found)
        for place, entry in enumerate(program.entries):
            if place in found:
                group = found[place]
                code = self._numbers.setdefault(group.code.key, len(self.codes))
                if code == len(self.codes):
                    self.codes.append(group.code)
                self.steps.append(Step(code, group.inputs, group.outputs))
            elif place in left:
                self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        program, takes = self.program, (*entry.operands, *entry.index_arrays)
        kind = self._kind(entry)
        if len(takes) == 1 and takes[0] not in program.constants:
            if kind not in self._offsets:
                self._offsets[kind] = offset_of(program, entry)
            offset = self._offsets[kind]
            if offset is not None:
                self.aliases[entry.results[0]] = takes[0], offset
                return
        wanted = [own for own in entry.results if len(entry.results) == 1 or self._cutter.users(own)]
        taken = [self._operand(entry, number) for number in takes]
        inputs = list(dict.fromkeys(own for own in taken if own is not None))
        fixed = [
            _bits(program.constants[number]) if own is None else inputs.index(own)
            for own, number in zip(taken, takes, strict=True)
        ]
        key = kind, tuple(fixed), tuple([entry.results.index(own) for own in wanted])
        code = self._numbers.get(key)
        if code is None:
            code = self._numbers[key] = len(self.codes)
            self.codes.append(self._code(entry, taken, inputs, wanted))
        self.steps.append(Step(code, inputs, wanted))

    def _kind(self, entry: Entry) -> Hashable:
        layouts = self.program.layouts
        numbers = (*entry.operands, *entry.index_arrays, *entry.results)
        forms = [(own.shape, own.dtype, own.weak) for own in map(layouts.__getitem__, numbers)]
        return entry.op, self._attributes(entry), tuple(forms), len(entry.operands)

    def _attributes(self, entry: Entry) -> Hashable:
        attrs = entry.attrs
        key = self._keys.get(id(attrs))
        if key is None:
            key = self._keys[id(attrs)] = tuple([_exact(own) for own in attrs.items()])
        return key

    def _operand(self, entry: Entry, number: int) -> int | None:
        """Return the number of an operand that is one of the function too; None if its code has the constant."""
        value = self.program.constants.get(number)
        if value is None:
            return number
        layout, dtype = self.program.layouts[number], self.program.layouts[entry.results[0]].dtype
        if layout.ndim:
            return None if number in entry.index_arrays else number
        if entry.op.name not in _ANY_NUMBER or dtype.char not in "df" or not (layout.weak or layout.dtype == dtype):
            return None
        data = np.asarray(value).astype(dtype)
        token = dtype.char, data.tobytes()
        if token not in self._scalar_numbers:
            own = self._scalar_numbers[token] = len(self.program.layouts) + len(self.scalars)
            self.scalars[own] = data
        return self._scalar_numbers[token]

    def _code(self, entry: Entry, taken: Sequence[int | None], inputs: Sequence[int], wanted: Sequence[int]) -> Any:
        """Return the code of an operation."""
        layouts = [self._layout(number) for number in inputs]
        constants, to = {}, []
        for own, number in zip(taken, (*entry.operands, *entry.index_arrays), strict=True):
            to.append(len(layouts) if own is None else inputs.index(own))
            if own is None:
                constants[len(layouts)] = self.program.constants[number]
                layouts.append(self.program.layouts[number])
        results = range(len(layouts), len(layouts) + len(entry.results))
        layouts += [self.program.layouts[number] for number in entry.results]
        split = len(entry.operands)
        moved = entry._replace(operands=tuple(to[:split]), index_arrays=tuple(to[split:]), results=tuple(results))
        outputs = [results[entry.results.index(own)] for own in wanted]
        body = Program(layouts, range(len(inputs)), constants, [moved], outputs)
        reason = ""
        for scalars in (_SCALARS, SCALARS):
            try:
                return fuse(body, in_brief=True, scalars=scalars)
            except Refused as error:
                reason = str(error)
            found = native(body)
            if found is not None:
                return found
        return self._with_turns(Stop(body, reason))

    def _layout(self, number: int) -> Layout:
        scalar = self.scalars.get(number)
        return self.program.layouts[number] if scalar is None else contiguous_layout((), scalar.dtype)


def _bits(value: Any) -> Hashable:
    """Return a constant as what is equal for equal bits only."""
    return value.__class__, np.asarray(value).tobytes()


def _exact(item: tuple[str, Any]) -> Hashable:
    name, value = item
    return (name, value.__class__, repr(value)) if isinstance(value, (int, float, complex)) else (name, value)

"""Programs: lines of Python that run with either module, drawn at random, and what came of them."""

from __future__ import annotations

import functools
import inspect
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import calls, differences, forms, known_errors, known_slopes, known_values, overwritten, prelude
from tests.fuzz.compare import Mismatch, array, close, compare, describe
from tests.fuzz.machines import Copying, Machine, Rounding
from tests.fuzz.trace import from_rounding, from_zeros, is_of_equality, turning


@dataclass
class Program:
    """Lines, of which each computes a value or writes to one."""

    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return a script that shows what both modules compute."""
        body = "\n    ".join(self.lines)
        names = ", ".join(dict.fromkeys(re.findall(r"^(v\d+) =", "\n".join(self.lines), re.MULTILINE)))
        return (
            f"{inspect.getsource(prelude)}\n\ndef program(m):\n    F = m.nn.functional\n    {body}\n"
            f"    values = [{names}]\n"
            "    tensors = [x for x in values if hasattr(x, 'requires_grad')]\n"
            "    leaves = list({id(x): x for x in tensors if x.requires_grad and x.is_leaf}.values())\n"
            "    print(m.__name__, values, gradients(m, tensors, leaves), sep='\\n')\n\n\n"
            "import tapegrad\nimport torch\n\n"
            "tapegrad.set_default_dtype('float32')\nprogram(torch)\nprogram(tapegrad)\n"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class Comparison:
    """A program that runs on both modules at once, line by line."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.ours, self.theirs = Machine(tg), Machine(torch)
        self.lines: list[str] = []
        self.ran: list[str] = []  # those that raised nothing
        self.kinds: list[type[Machine]] = [Machine, Machine]  # of the machines that run the program again
        self.mismatch: Mismatch | None = None
        self.ended = False  # with a mismatch, or with a difference that is known: what follows differs, too

    def line(self, line: str) -> bool:
        """Run a line; return whether both computed it, to the same value."""
        self.lines.append(line)
        name = line.split(" = ")[0]
        errors = self.ours.run(line), self.theirs.run(line)
        if any(errors):
            self._end(self._of_errors(self.lines, *errors))
            self.ended = not all(errors) or known_errors.is_half_written(line, str(errors[1]))
            return False
        self.ran.append(line)
        is_write = name == line
        if is_write:
            name = line.split(".")[0]
        own, other = self.ours.space[name], self.theirs.space[name]
        if self._is_view_of_one_side(line, own, other):
            self.lines.pop()
            self.ran.pop()
            del self.ours.space[name], self.theirs.space[name]
            return False
        mismatch = self._compare(line, name, own, other)
        differs = mismatch is not None and mismatch.kind == "value"
        # A write of what rounding has moved past a singularity is seen through views, too.
        differs |= is_write and mismatch is None and not close(array(own), array(other))
        if self._is_known(line, name, mismatch) or (
            differs
            and (known_values.known_value(line, array(own), array(other)) or self._is_of_operands(line, name, is_write))
        ):
            self.lines.pop()
            self.ran.pop()
            self.ended = is_write
            del self.ours.space[name], self.theirs.space[name]
            return False
        return self._end(mismatch)

    def _is_known(self, line: str, name: str, mismatch: Mismatch | None) -> bool:
        """Whether results that are of other types, dtypes or shapes, or equal on one side only, are known to be."""
        if mismatch is None or mismatch.kind not in ("type", "dtype", "shape"):
            return False
        ours, theirs = self.ours.space, self.theirs.space
        if mismatch.kind == "shape":
            own, other = array(ours[name]), array(theirs[name])
            counted = known_values.COUNTS.search(line) and from_rounding(line, ours, theirs, own, other, _is_same)
            return bool(counted) or known_values.known_shape(line, other)
        if mismatch.kind == "type":
            return is_of_equality(line, ours, theirs)
        return known_values.known_dtype(line, array(ours[name]), array(theirs[name]))

    def _is_view_of_one_side(self, line: str, own: Any, other: Any) -> bool:
        """Whether a result is a copy on one side only: that follows from strides, which are not the same."""
        operand = re.search(r" = .*?\b(v\d+)", line)
        if operand is None or not re.search(known_values.DEPENDS_ON_STRIDES, line) or not own.numel():
            return False
        source, their_source = (machine.space[operand[1]] for machine in (self.ours, self.theirs))
        own_shares = np.may_share_memory(array(own), array(source))
        return own_shares != (other.untyped_storage().data_ptr() == their_source.untyped_storage().data_ptr())

    def _is_of_operands(self, line: str, name: str, is_write: bool) -> bool:
        """Whether values differ because operands do, by rounding, or are infinite; or a write reads what it wrote."""
        own, other = (array(machine.space[name]) for machine in (self.ours, self.theirs))
        before = [self.ours, self.theirs]
        if is_write:
            before = [_ran(Machine(module), self.ran[:-1]) for module in (tg, self.torch)]
        if from_rounding(line, before[0].space, before[1].space, own, other, known_values.known_value):
            return True
        if from_zeros(line, before[0].space, before[1].space, own, other):
            return known_values.known_zeros(turning(self.torch, self.ran[:-1]))
        operands = [before[0].space[operand] for operand in overwritten.operands(line.split(" = ")[-1])]
        arrays = [array(operand) for operand in operands if isinstance(operand, tg.Tensor)]
        if known_values.known_of_operands(line, arrays, own, other):
            return True
        if not is_write:
            return False
        before[1].run(overwritten.written_elsewhere(line))
        return close(own, array(before[1].space[name]))

    def finish(self) -> None:
        """Compare what was written to in place, and the gradients."""
        if any(" = " not in line for line in self.lines):
            for name, value in self.ours.values().items():
                mismatch = self._compare(f"{name} at the end", name, value, self.theirs.space[name])
                if mismatch is not None:
                    self._end(mismatch)
                    return
        found = [self.ours.gradients(), self.theirs.gradients()]
        refused = [isinstance(own, Exception) and overwritten.WORDS in str(own) for own in found]
        if any(refused) and not all(refused):  # what the other side computes has to be right
            side = refused.index(True)
            self.kinds[side] = Copying
            found[side] = self._after(side, self.ran).gradients()
        errors = [own if isinstance(own, Exception) else None for own in found]
        if any(errors):
            self._end(self._of_errors([*self.lines, "gradients"], *errors))
            found = [self._after(side, self.lines).gradients(orders=1) for side in (0, 1)]
        if self.ended or any(isinstance(own, Exception) for own in found):
            return
        for name in {**found[1], **found[0]}:
            own, other = (one.get(name) for one in found)
            mismatch = self._compare(name, name, own, other)
            if mismatch is None:
                continue
            if mismatch.kind == "gradient" and (
                known_slopes.known_gradient(self.torch, self.lines, mismatch)
                or differences.is_right(self.torch, self.lines, name, self.kinds)
            ):
                return
            self._end(mismatch)
            return

    def _compare(self, what: str, name: str, own: Any, other: Any) -> Mismatch | None:
        moved, rounded = functools.partial(self._moved, name), functools.partial(self._rounded, name)
        return compare(what, own, other, moved, rounded, functools.partial(self._exact, name))

    def _exact(self, name: str) -> list[Any]:
        """Return a value or gradient of both modules in double precision."""
        lines = [overwritten.in_double(line) for line in self.lines]
        defaults = tg.get_default_dtype(), self.torch.get_default_dtype()  # of what integers become
        tg.set_default_dtype(tg.float64)
        self.torch.set_default_dtype(self.torch.float64)
        try:
            return [result(self._after(side, lines), name) for side in (0, 1)]
        finally:
            tg.set_default_dtype(defaults[0])
            self.torch.set_default_dtype(defaults[1])

    def _moved(self, name: str) -> Iterator[list[Any]]:
        """Yield a value or gradient of both modules for inputs that are moved a little, in several ways."""
        for eps in (1e-7, -3e-7, 1e-6):
            prelude.EPS = eps
            try:
                pair = [result(self._after(side, self.lines), name) for side in (0, 1)]
            finally:
                prelude.EPS = 0.0
            yield pair

    def _rounded(self, name: str) -> Iterator[list[Any]]:
        """Yield a value or gradient of both modules with an error of rounding in each operand, several times."""
        for seed in range(6):
            machines = [Rounding(module, seed) for module in (tg, self.torch)]
            yield [result(_ran(machine, self.lines), name) for machine in machines]

    def _after(self, side: int, lines: list[str]) -> Machine:
        """Return a module that ran lines, with copies if it refuses gradients otherwise."""
        return _ran(self.kinds[side]((tg, self.torch)[side]), lines)

    def _of_errors(self, lines: list[str], ours: Exception | None, theirs: Exception | None) -> Mismatch | None:
        """Return the mismatch of an error of the last line that one side raised and the other did not."""
        if (ours is None) == (theirs is None):
            return None
        if ours is not None:
            kind, who, error, errors = "error", "tapegrad", ours, known_errors.REFUSED
        else:
            kind, who, error, errors = "leniency", "PyTorch", theirs, known_errors.ACCEPTED
        other = self.theirs if error is ours else self.ours

        def size_of(line: str) -> int:
            result = other.space.get(re.split(r" = |\.", line, maxsplit=1)[0])
            return getattr(result, "numel", lambda: 1)()

        if known_errors.known_error(lines, str(error), errors, size_of):
            return None
        if known_errors.LEAF in str(theirs) and self._is_stale(lines[-1]):
            return None
        return Mismatch(kind, f"{lines[-1]}: only {who} raises {describe(error)}")

    def _is_stale(self, line: str) -> bool:
        """Whether PyTorch accepts a write to what it took for a leaf once the `grad_fn` of all tensors was read."""
        machine = _ran(Machine(self.torch), self.ran)
        for value in machine.values().values():
            getattr(value, "grad_fn", None)
        error = machine.run(line)
        return error is None or known_errors.known_error([line], str(error), known_errors.ACCEPTED)

    def _end(self, mismatch: Mismatch | None) -> bool:
        if mismatch is not None:
            self.mismatch, self.ended = mismatch, True
        return mismatch is None


def check(torch: Any, lines: list[str]) -> Mismatch | None:
    """Run lines on both modules and return the first difference that is not known."""
    with _quiet():
        both = Comparison(torch)
        for line in lines:
            both.line(line)
            if both.ended:
                return both.mismatch
        both.finish()
        return both.mismatch


def _is_same(line: str, own: np.ndarray, other: np.ndarray) -> bool:
    return own.shape == other.shape and close(own, other)


def _ran(machine: Machine, lines: list[str]) -> Machine:
    for line in lines:
        machine.run(line)
    return machine


def result(machine: Machine, name: str) -> Any:
    """Return a value or gradient of a program that ran; None if it has none of this name."""
    if name in machine.space:
        return machine.space[name]
    gradients = machine.gradients(orders=1 if name.startswith("first") else 2)
    return None if isinstance(gradients, Exception) else gradients.get(name)


# Drawing -------------------------------------------------------------------------------------------------------------

SHAPES = [(), (1,), (2,), (3,), (2, 3), (3, 2), (3, 3), (1, 3), (2, 1), (2, 3, 2), (0,), (0, 3), (2, 0), (2, 1, 3, 1)]
#: How large values are: the share of programs, the shapes of their inputs, and the most elements of a value. Large
#: arrays, of more than 2**17 bytes, come from the pool and are gone through in blocks; huge ones are written past the
#: caches. They take long, and small ones show nearly all that is wrong.
SIZES = [
    (0.955, SHAPES, 10_000),
    (0.04, [(40_000,), (200, 200), (2, 20_000), (20_000, 2)], 100_000),
    (0.005, [(600_000,), (1000, 600), (2, 300_000), (300_000, 2)], 1_000_000),
]
# The floating and complex ones first.
INPUT_DTYPES = ["float64"] * 5 + ["float32"] * 3 + ["complex128", "complex64", "int64", "int32", "uint8", "bool"]


@functools.cache
def _table() -> list[tuple[Any, str]]:
    return calls.calls() + forms.calls()


def draw(torch: Any, seed: int, counts: Counter[str]) -> tuple[Program, Mismatch | None]:
    """Return a random program and the first difference that running it showed."""
    rng = random.Random(seed)
    values: dict[str, calls.Value] = {}
    table = _table()
    ((_, shapes, most),) = rng.choices(SIZES, [share for share, *_ in SIZES])
    # Half of the programs have one dtype: each mixture needs kernels of its own, and compiling them takes long.
    dtypes = [rng.choice(INPUT_DTYPES[:10])] if rng.random() < 0.5 else INPUT_DTYPES
    lines = [_input(rng, number, dtypes, shapes) for number in range(rng.randrange(1, 4))]
    inputs = len(lines)
    with _quiet():
        both = Comparison(torch)
        while not both.ended and (lines or (len(both.lines) < inputs + 12 and rng.random() < 0.92)):
            if lines:
                line = lines.pop(0)
            else:
                kind, name = rng.choice(table)
                expression = kind(calls.Draw(rng, values, most), name)
                if expression is None:
                    continue
                counts[f"{kind.__name__}:{name}"] += 1
                number = sum(" = " in own for own in both.lines)
                line = expression if _is_write(expression) else f"v{number} = {expression}"
            if both.line(line):
                _note(torch, line, both.theirs, values, most)
        if not both.ended:
            both.finish()
    return Program(both.lines), both.mismatch


def _is_write(expression: str) -> bool:
    return re.match(r"v\d+\.([a-z]\w*_|__setitem__|__i\w+__)\(", expression) is not None


def _input(rng: random.Random, number: int, dtypes: list[str], shapes: list[tuple[int, ...]]) -> str:
    shape = rng.choice(shapes)
    dtype = rng.choice(dtypes)
    kind = rng.choice(["grid", "normal", "uniform"])
    flag = ", requires_grad=True" if dtype[0] in "fc" and rng.random() < 0.8 else ""
    return f"v{number} = m.tensor(data({rng.randrange(1000)}, {shape}, '{dtype}', '{kind}'){flag})"


def _note(torch: Any, line: str, machine: Machine, values: dict[str, calls.Value], most: int) -> None:
    name = line.split(" = ")[0]
    value = machine.space.get(name)
    if isinstance(value, torch.Tensor) and value.numel() <= most:
        values[name] = calls.Value(name, tuple(value.shape), str(value.dtype).removeprefix("torch."))


def minimised(torch: Any, program: Program, mismatch: Mismatch) -> tuple[Program, Mismatch]:
    """Return a part of a program that still shows a difference of this kind: no line can be left out."""
    lines = list(program.lines)
    place = len(lines)
    while place:
        place -= 1
        fewer = lines[:place] + lines[place + 1 :]
        found = check(torch, fewer)
        if found is not None and found.kind == mismatch.kind and not _is_name_error(found):
            lines, mismatch = fewer, found
    return Program(lines), mismatch


def _is_name_error(mismatch: Mismatch) -> bool:
    return "NameError" in mismatch.text

"""Programs: lines of Python that run with either module, drawn at random, and what came of them."""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapegrad as tg
from tests.fuzz import calls, differences
from tests.fuzz.compare import Mismatch, array, compare, describe

# The beginning of each program, and of each reproduction.
PRELUDE = '''\
import numpy as np

EPS = 0.0  # inputs are moved by this, relative to them, to see how much depends on rounding


def data(seed, shape, dtype, kind="grid"):
    """Return random numbers that single precision holds; of a grid, so that there are ties and zeros."""
    rng = np.random.default_rng(seed)
    if kind == "grid":
        x = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0], shape)
    else:
        x = rng.normal(size=shape) if kind == "normal" else rng.uniform(0.1, 3.0, shape)
    x = np.float32(x).astype(np.float64)
    if dtype.startswith("complex"):
        x = x + 1j * np.float32(rng.normal(size=shape))
    if dtype[0] in "fc":
        x = x * (1 + EPS * rng.normal(size=shape))
    return np.asarray(abs(x) if dtype == "uint8" else x).astype(dtype)


def total(m, values):
    """Return a sum of all elements with weights, in double precision."""
    loss = 0.0
    for x in values:
        weight = m.tensor(np.linspace(0.5, 1.5, x.numel()).reshape(tuple(x.shape)).astype(np.float32))
        part = (x * weight).sum()
        loss = loss + ((part.real + part.imag * 0.5) if part.is_complex() else part).to(m.float64)
    return loss


def gradients(m, values, leaves):
    """Return first and second gradients."""
    found = {}
    values = [x for x in values if x.requires_grad]
    for order in ("first", "second"):
        if not values or not leaves:
            break
        loss = total(m, values)
        if not loss.requires_grad:
            break
        found[order] = m.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        values = [x for x in found[order] if x is not None and x.requires_grad]
    return found
'''

Results = dict[str, Any]


@dataclass
class Program:
    """Lines, of which each computes a value or writes to one."""

    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return a script that shows what both modules compute."""
        body = "\n    ".join(self.lines)
        names = ", ".join(dict.fromkeys(re.findall(r"^(v\d+) =", "\n".join(self.lines), re.MULTILINE)))
        return (
            f"{PRELUDE}\n\ndef program(m):\n    F = m.nn.functional\n    {body}\n    values = [{names}]\n"
            "    tensors = [x for x in values if hasattr(x, 'requires_grad')]\n"
            "    leaves = list({id(x): x for x in tensors if x.requires_grad and x.is_leaf}.values())\n"
            "    print(m.__name__, values, gradients(m, tensors, leaves), sep='\\n')\n\n\n"
            "import tapegrad\nimport torch\n\n"
            "tapegrad.set_default_dtype('float32')\nprogram(torch)\nprogram(tapegrad)\n"
        )


class Machine:
    """One module that runs lines."""

    def __init__(self, module: Any, eps: float = 0.0) -> None:
        self.module = module
        self.space: dict[str, Any] = {"m": module, "F": module.nn.functional}
        exec(PRELUDE, self.space)
        self.space["EPS"] = eps

    def run(self, line: str) -> Exception | None:
        """Run a line, and return what it raised."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(line, self.space)
        except Exception as error:
            return error
        return None

    def values(self) -> Results:
        """Return all values by name."""
        return {name: value for name, value in self.space.items() if re.fullmatch(r"v\d+", name)}

    def gradients(self) -> Results | Exception:
        """Return the gradients of all results by all leaves."""
        tensors = [value for value in self.values().values() if isinstance(value, self.module.Tensor)]
        leaves = list({id(value): value for value in tensors if value.requires_grad and value.is_leaf}.values())
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.space["gradients"](self.module, tensors, leaves)
        except Exception as error:
            return error
        return {f"{order} gradient {number}": value for order, own in found.items() for number, value in enumerate(own)}


def check(torch: Any, lines: list[str]) -> Mismatch | None:
    """Run lines on both modules and return the first difference that is not known."""
    ours, theirs = Machine(tg), Machine(torch)
    for line in lines:
        errors = ours.run(line), theirs.run(line)
        mismatch = of_errors(line, *errors)
        if mismatch is not None:
            return mismatch
        if any(errors):
            return None
        name = line.split(" = ")[0]
        if name in ours.space:
            nearby = functools.partial(moved, torch, lines, name)
            mismatch = compare(line, ours.space[name], theirs.space[name], nearby)
            if mismatch is not None:
                return mismatch
    for name, value in ours.values().items():
        mismatch = compare(
            f"{name} at the end", value, theirs.space[name], functools.partial(moved, torch, lines, name)
        )
        if mismatch is not None:
            known = mismatch.kind == "value" and isinstance(value, tg.Tensor)
            if known and differences.known_value("\n".join(lines), array(value), array(theirs.space[name])):
                return None  # what follows differs, too
            return mismatch
    found = ours.gradients(), theirs.gradients()
    errors = tuple(own if isinstance(own, Exception) else None for own in found)
    mismatch = of_errors("gradients", *errors)
    if mismatch is not None or any(errors):
        return mismatch
    for name in found[1].keys() | found[0].keys():
        own, other = (one.get(name) for one in found)
        mismatch = compare(name, own, other, functools.partial(moved, torch, lines, name))
        if mismatch is not None:
            both = mismatch.kind == "gradient"
            if not both or not differences.known_gradient(lines, array(own), array(other)):
                return mismatch
    return None


def moved(torch: Any, lines: list[str], name: str) -> list[Any]:
    """Return a value or gradient of PyTorch's for inputs that are moved a little, in several ways."""
    found = []
    for eps in (1e-7, -3e-7, 1e-6):
        machine = Machine(torch, eps)
        for line in lines:
            machine.run(line)
        gradients = {} if name in machine.space else machine.gradients()
        found.append(
            machine.space.get(name)
            if isinstance(gradients, Exception)
            else gradients.get(name, machine.space.get(name))
        )
    return found


def of_errors(line: str, ours: Exception | None, theirs: Exception | None) -> Mismatch | None:
    """Return the mismatch of an error that one side raised and the other did not."""
    if (ours is None) == (theirs is None):
        return None
    if ours is not None:
        known = differences.refused(str(ours))
        return None if known else Mismatch("error", f"{line}: only tapegrad raises {describe(ours)}")
    known = differences.accepted(str(theirs))
    return None if known else Mismatch("leniency", f"{line}: only PyTorch raises {describe(theirs)}")


# Drawing -------------------------------------------------------------------------------------------------------------

SHAPES = [(), (1,), (2,), (3,), (2, 3), (3, 2), (3, 3), (1, 3), (2, 1), (2, 3, 2), (0,), (0, 3), (2, 0), (2, 1, 3, 1)]
LARGE = [(40_000,), (200, 200), (2, 20_000), (20_000, 2)]  # of more than 2**17 bytes
INPUT_DTYPES = ["float64"] * 5 + ["float32"] * 3 + ["complex128", "complex64", "int64", "int32", "uint8", "bool"]


def draw(torch: Any, seed: int, counts: Counter[str]) -> tuple[Program, Mismatch | None]:
    """Return a random program and the first difference that running it showed."""
    rng = random.Random(seed)
    program, values = Program(), {}
    theirs, ours = Machine(torch), Machine(tg)
    large = rng.random() < 0.05
    lines = [_input(rng, number, large) for number in range(rng.randrange(1, 4))]
    table = calls.calls()
    while lines or len(program.lines) < 12:
        line = lines.pop(0) if lines else None
        name = ""
        if line is None:
            if rng.random() < 0.08:
                break
            kind, name = rng.choice(table)
            expression = kind(calls.Draw(rng, values), name)
            if expression is None:
                continue
            label = f"{kind.__name__}:{name}"
            target = f"v{sum(own.startswith('v') and ' = ' in own for own in program.lines)}"
            is_written = kind in (calls.written, calls.augmented)
            line = expression if is_written else f"{target} = {expression}"
            counts[label] += 1
        errors = ours.run(line), theirs.run(line)
        if any(errors):
            mismatch = of_errors(line, *errors)
            if mismatch is not None:
                return Program([*program.lines, line]), mismatch
            if not all(errors):
                break  # a known difference: one side has what the other lacks
            ours.space.pop(line.split(" = ")[0], None)
            continue
        own, other = (machine.space.get(line.split(" = ")[0]) for machine in (ours, theirs))
        if isinstance(own, tg.Tensor) and differences.known_value(line, array(own), array(other)):
            del ours.space[line.split(" = ")[0]], theirs.space[line.split(" = ")[0]]
            continue
        program.lines.append(line)
        _note(torch, line, theirs, values)
    return program, check(torch, program.lines)


def _input(rng: random.Random, number: int, large: bool) -> str:
    shape = rng.choice(LARGE if large else SHAPES)
    dtype = rng.choice(INPUT_DTYPES)
    kind = rng.choice(["grid", "normal", "uniform"])
    flag = ", requires_grad=True" if dtype[0] in "fc" and rng.random() < 0.8 else ""
    return f"v{number} = m.tensor(data({rng.randrange(1000)}, {shape}, '{dtype}', '{kind}'){flag})"


def _note(torch: Any, line: str, machine: Machine, values: dict[str, calls.Value]) -> None:
    name = line.split(" = ")[0]
    value = machine.space.get(name)
    if isinstance(value, torch.Tensor) and value.numel() < 200_000:
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

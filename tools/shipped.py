"""LLVM's IR that the package ships: `python -m tools.shipped` writes it, with `--check` it only compares."""

from __future__ import annotations

import argparse
import bz2
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tapegrad.compiler.assembly import target_machine
from tapegrad.compiler.frontend import lower_together
from tapegrad.compiler.shipped import BLOCK, FILE, NO_VALUE, digest_of, name_in_file
from tapegrad.program.entry import FIRST

_VALUE = re.compile(r'%"([^"]+)"')


def text_of_file(functions: Sequence[Any] = FIRST) -> str:
    """Return what the file has for functions, which the front end makes now: a head, distances, and lines.

    A wheel has to be small. The numbers of values are most of a text, and how far back an operand stands is mostly 1.
    """
    machine = target_machine()
    both = lower_together(functions, machine)
    distances: list[int] = []
    lines = ["\n".join(_lines(text, distances)) for text in both.functions.values()]
    pairs = zip(functions, both.wanted, strict=True)
    head = {
        "wanted": {name_in_file(own): (name, digest_of(own, machine.triple)) for own, name in pairs},
        "around": re.sub("^target .*\n", "", both.around, flags=re.MULTILINE),
        "calls": {name: list(called) for name, called in both.calls.items()},
        "functions": list(both.functions),
    }
    return "\0".join([json.dumps(head, separators=(",", ":")), " ".join(map(str, distances)), *lines])


def _lines(text: str, distances: list[int]) -> list[str]:
    """Return the lines of a function without names of values, and append how far back each operand stands."""
    head, _, *lines = text.splitlines()
    names = _VALUE.findall(head)
    found, count = [_VALUE.sub("", head).replace(" ,", ",").replace(" )", ")")], len(names)
    for line in lines:
        if line.endswith(":"):
            names.append(line[:-1])
        elif " = " in line:
            names += _VALUE.findall(line.partition(" = ")[0])
    numbers = {name: number for number, name in enumerate(names)}
    for line in lines:
        if line.endswith(":"):
            found.append(BLOCK)
            count += 1
            continue
        made, is_value, computed = line.partition(" = ")
        own = computed if is_value else made.strip()
        distances += [count - numbers[name] for name in _VALUE.findall(own)]
        found.append(re.sub(r"\bi(\d+)\*", "ptr", _VALUE.sub("%", own)))
        count += bool(is_value)
        if bool(is_value) is found[-1].startswith(NO_VALUE):
            raise ValueError(f"tapegrad.compiler.shipped does not know whether this line computes a value: {line}")
    return found


def main() -> int:
    """Write the file, or say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.shipped", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is stale")
    check = parser.parse_args().check
    text, path = text_of_file(), Path(FILE)
    if path.exists() and bz2.decompress(path.read_bytes()).decode() == text:
        return 0
    print(f"{'stale' if check else 'written'}: {path.name}")
    if not check:
        path.write_bytes(bz2.compress(text.encode()))
    return int(check)


if __name__ == "__main__":
    sys.exit(main())

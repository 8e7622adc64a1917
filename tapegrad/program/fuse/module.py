"""LLVM's module of a program: what it declares, its functions, and the one that is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from tapegrad.program.apart import piece_of
from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.text import Text, vmath_text
from tapegrad.program.machine_code import SYMBOL
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Module", "Writer", "arguments_of", "module_of", "outside"]

_MOST_INLINED: Final = 200  # calls of functions of vmath: as parts of straight code, each takes LLVM 2 to 10 ms


class Writer(Protocol):
    """What writes the instructions of a module: see `tapegrad.program.fuse.emit.Emitter`."""

    text: Text
    memory: Memory


class Module(NamedTuple):
    """LLVM's text of a program.

    Attributes
    ----------
    shared : str
        Functions of vmath, constants, and declarations.
    pieces : tuple of str
        Functions that run one after the other.
    main : str
        The function that calls them.
    """

    shared: str
    pieces: tuple[str, ...]
    main: str

    def __str__(self) -> str:
        return "\n".join([self.shared, *self.pieces, self.main])

    def alone(self, piece: int) -> str:
        """Return a module of one piece, as the function that is called."""
        return "\n".join([self.shared, _NAME.sub(rf"define void @{SYMBOL}(", self.pieces[piece], count=1)])

    def calling(self, name: str) -> str:
        """Return the module that calls its pieces elsewhere, given the name of the whole."""
        declared = [
            f"declare void @{piece_of(name, k)}({', '.join(['ptr'] * own.partition(')')[0].count('ptr'))})"
            for k, own in enumerate(self.pieces)
        ]
        main = re.sub(r"@fused(\d+)\(", lambda own: f"@{piece_of(name, int(own[1]))}(", self.main)
        return "\n".join([*declared, main])


_NAME: Final = re.compile(r"define internal void @fused\d+\(")


def module_of(
    emitter: Writer, write: Callable[[], str | None], head: Sequence[str], constants: Iterable[str]
) -> Module:
    """Return the module of a schedule.

    Parameters
    ----------
    emitter : Writer
    write : callable
        Writes the instructions; returns the name of the status of code that may fail, see
        `tapegrad.program.variants.Variant`.
    head : sequence of str
        Lines that find the parts of the scratch memory.
    constants : iterable of str
        Definitions of constants that stand in memory.
    """
    text = emitter.text
    arguments, entry = arguments_of(emitter.memory)
    status = write()
    formulas, declared = outside(text)
    parameters = ", ".join([f"ptr noalias {name}" for name in arguments] + ["ptr noalias align 64 %scratch"])
    given = ", ".join([f"ptr {name}" for name in arguments] + ["ptr %scratch"])
    kind, more = ("i64", ", ptr %call, ptr %stops") if status else ("void", "")
    functions = [*text.functions_before, text.lines]
    way = " alwaysinline" if len(functions) == 1 else ""
    pieces = [
        "\n".join([
            f"define internal {kind} @fused{k}({parameters}){way} nounwind {{",
            "entry:", *head, *lines, f"  ret {kind} {status or ''}", "}",
        ])
        for k, lines in enumerate(functions)
    ]  # fmt: skip
    calls = [f"call {kind} @fused{k}({given})" for k, _ in enumerate(functions)]
    if status:
        calls = [f"%status = {call}" for call in calls]
    main = "\n".join([
        f"define {kind} @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch{more}) nounwind {{", *entry,
        *[f"  {call}" for call in calls], f"  ret {kind}{' %status' if status else ''}", "}", "",
    ])  # fmt: skip
    return Module("\n".join([formulas, *constants, declared]), tuple(pieces), main)


def arguments_of(memory: Memory) -> tuple[list[str], list[str]]:
    """Return the names of the pointers to inputs and outputs, and the lines that read them from their tables."""
    names, lines = [], []
    for (kind, number), name in memory.pointers.items():
        if kind in ("in", "out"):
            names.append(name)
            lines.append(f"  {name}.p = getelementptr ptr, ptr %{kind}puts, i64 {number}")
            lines.append(f"  {name} = load ptr, ptr {name}.p, align 8")
    return names, lines


def outside(text: Text) -> tuple[str, str]:
    """Return the definitions of the functions of vmath that were called, and the declarations of others."""
    formulas, known = vmath_text(frozenset(text.functions), text.n_formulas <= _MOST_INLINED)
    return formulas, "\n".join(line for name, line in sorted(text.declared.items()) if name not in known)

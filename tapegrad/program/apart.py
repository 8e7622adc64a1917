"""Long functions of a program: each becomes an object file of its own, which LLVM makes in a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from tapegrad.compiler import ahead
from tapegrad.program.machine_code import SYMBOL

__all__ = ["LONG", "begun", "name_of", "parts_of", "piece_of"]

LONG: Final = 20_000  # characters of a function that is no part of the one that calls it
_PIECE: Final = "_piece"  # LLVM takes a dot and a number behind a name for its own, and drops it


class Code(Protocol):
    """What has a name by its text."""

    @property
    def key(self) -> str: ...


F = TypeVar("F", bound=Code)


def name_of(code: Code) -> str:
    """Return the name of the function of some code: those of the same text have one."""
    return "stage_" + hashlib.blake2b(code.key.encode(), digest_size=12).hexdigest()


def piece_of(name: str, piece: int) -> str:
    """Return the name of a piece of some code, given that of the code."""
    return f"{name}{_PIECE}{piece}"


def begun(code: F) -> F:
    """Let LLVM begin with code if that is long; of several pieces with each. Return the code."""
    own: Any = code
    module = getattr(own, "module", None)
    if module is None or len(str(module)) < LONG:
        return code
    name, imports, count = name_of(code), frozenset(own.imports), len(module.pieces)
    for k in sorted(range(count), key=lambda k: -len(module.pieces[k])):  # who asks for them begins with the shortest
        part = piece_of(name, k) if count > 1 else name
        ahead.begin(part, _maker(part, partial(module.alone, k) if count > 1 else partial(str, module), imports))
    return code


def parts_of(names: Container[str]) -> Mapping[str, ahead.Part]:
    """Return the parts that LLVM has begun with, of code with these names."""
    return {own: part for own, part in ahead.parts().items() if own.partition(_PIECE)[0] in names}


def _maker(name: str, text: Callable[[], str], imports: frozenset[str]) -> Callable[[], bytes]:
    def make() -> bytes:
        from tapegrad.compiler.modules import assemble_module

        return assemble_module(text(), SYMBOL, imports, name=name)

    return make

"""LLVM's IR of functions that stand in one module for their drafts, and alone for the code that replaces these.

LLVM makes one module of twenty functions in half of the time that it takes for twenty modules, and what several of them
call is emitted once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tapegrad.compiler.intrinsics import for_this_platform
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Pieces", "Together"]

_NAME: Final = re.compile(r'@"([^"\n]+)"')
_DEFINED: Final = "define internal "
_PIECE: Final = 150_000  # characters of functions on which LLVM works while others are emitted


class Together(NamedTuple):
    """Functions of one module.

    Attributes
    ----------
    around : str
        LLVM's IR of all that is no function: types, declarations and metadata.
    functions : mapping of str
        LLVM's IR of the functions by their names; all are internal. Each stands behind those that it calls.
    calls : mapping
        By the names of functions, those of the functions that they call, in the order in which these were met.
    wanted : sequence of str
        The names of those that are asked for.
    left : sequence of str
        The names of those that stand in no piece that was handed on.
    """

    around: str
    functions: Mapping[str, str]
    calls: Mapping[str, Iterable[str]]
    wanted: Sequence[str]
    left: Sequence[str]

    @property
    def last(self) -> str:
        """LLVM's IR of the last piece, which knows all that are wanted."""
        return self.piece(self.left, self.wanted)

    def piece(self, own: Sequence[str], known: Iterable[str] = ()) -> str:
        """Return LLVM's IR of a module of some functions, which other object files of the library may call.

        Those of the others that they call, or that are to be known, are declared.
        """
        called = {name for each in own for name in self.calls.get(each, ())} | {*known}
        heads = [self.functions[name].partition("\n")[0] for name in self.functions if name in called - {*own}]
        texts = [self.functions[name].replace(_DEFINED, "define hidden ", 1) for name in own]
        declared = [head.replace(_DEFINED, "declare hidden ", 1) for head in heads]
        return for_this_platform(self.around + "\n".join([*declared, *texts]))

    def alone(self, name: str, symbol: str) -> str:
        """Return LLVM's IR of a function under another name, and of those that it calls.

        They have the names and the order that they would have if the front end had met no other function.
        """
        names: dict[str, str] = {}

        def meet(own: str) -> None:
            if own not in names:
                names[own] = f"{own.rpartition('.')[0]}.{len(names)}" if names else symbol
                for other in self.calls.get(own, ()):
                    meet(other)

        meet(name)
        texts = [_NAME.sub(lambda at: f'@"{names.get(at[1], at[1])}"', self.functions[own]) for own in names]
        texts[0] = texts[0].replace(_DEFINED, "define ", 1)
        return for_this_platform(self.around + "\n".join(texts))


class Pieces:
    """Pieces of a module, which are handed on as its functions are finished.

    Parameters
    ----------
    texts, calls : mapping
        LLVM's IR of functions by their names, and what they call; they may grow.
    module : callable
        It returns all that is known of the module.
    begin : callable, optional
        It gets LLVM's IR of each piece but the last, and the names of the functions of other pieces.

    Attributes
    ----------
    left : list of str
        The names of functions that stand in no piece that was handed on.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        calls: Mapping[str, Iterable[str]],
        module: Callable[[], Together],
        begin: Callable[[str, frozenset[str]], object] | None,
    ) -> None:
        self._texts, self._calls, self._module, self._begin = texts, calls, module, begin
        self._finished, self._length = set[str](), 0
        self.left: list[str] = []

    def add(self, name: str) -> None:
        """Add a function; hand on a piece if that makes it long enough, and it calls none that is not finished."""
        self.left.append(name)
        self._finished.add(name)
        self._length += len(self._texts[name])
        if self._begin is None or self._length < _PIECE:
            return
        if self._finished >= {other for own in self.left for other in self._calls.get(own, ())}:
            self._begin(self._module().piece(self.left), frozenset(self._finished) - {*self.left})
            self.left, self._length = [], 0

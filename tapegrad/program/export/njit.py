"""`program.njit`: a program as a function of nopython code, which numba's own compiler inlines into its callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.func.trees import flatten
from tapegrad.program.export.code import Way, ways_of
from tapegrad.program.program import Program
from tapegrad.program.signature import Slot

_held: Final[list[Any]] = []  # what compiled callers refer to: like machine code, for the life of the process


def njit_of(programs: Sequence[Program]) -> Any:
    """Return a function for nopython code that computes the first of some programs whose guards hold.

    Parameters
    ----------
    programs : sequence of Program
        Of one function, for arguments of one kind.

    Raises
    ------
    TypeError
        See `Program.njit`.
    """
    ways = ways_of(programs, "njit")
    name = ways[0].signature.name
    _check_leaves(ways[0])
    import numba
    from numba.core.errors import TypingError
    from numba.extending import intrinsic

    from tapegrad.program.export.nopython import Call

    if numba.config.DISABLE_JIT:
        return programs[0]
    _held.append(ways)
    call = Call(ways)

    @intrinsic  # type: ignore[untyped-decorator]
    def run(typing_context: Any, args: Any) -> Any:
        problem = call.problem(args)
        if problem:
            raise TypingError(f"{name}.njit: {problem}")
        return call.result_type(args), call.emit

    def function(*args: Any) -> Any:
        return run(args)

    function.__name__ = function.__qualname__ = name if name.isidentifier() else "program"
    function.__doc__ = f"Compute {name}, without Python. Arguments: {_shown(ways[0])}."
    return numba.njit(function)


def _check_leaves(way: Way) -> None:
    """Raise an error if nopython code cannot have a leaf that is the same in every call."""
    for what, tree in (("takes", way.signature.arguments), ("returns", way.signature.result)):
        for leaf in flatten(tree):
            if not (leaf is None or isinstance(leaf, (Slot, bool, int, float))):
                raise TypeError(
                    f"njit: {way.signature.name} {what} a {type(leaf).__name__}, {leaf!r}; code of Numba has arrays, "
                    "numbers, None and tuples of them"
                )


def _shown(way: Way) -> str:
    program, count = way.program, len(way.program.inputs) - len(way.signature.captured)
    return ", ".join([str(program.layouts[number]) for number in program.inputs[:count]]) or "none"


def data_of(value: Any) -> tuple[Any, int]:
    """Return the object that has a tensor's data, and the address of these."""
    data = value._data
    if isinstance(data, np.ndarray):
        return data, data.ctypes.data
    from tapegrad.tape.layout import OBJECT_HEADER

    return data, id(data) + OBJECT_HEADER

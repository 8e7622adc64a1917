"""Numbers that a traced function takes out of a tensor by `item()` and returns at once: outputs of the program.

Whatever else Python does with a number may depend on its value, so that a guard has to hold it.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any, Final

from tapegrad.tape import traces

__all__ = ["Number", "returns_to"]

_PUSHES: Final = ("LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_GLOBAL", "PUSH_NULL")
_POPS: Final = {
    "LOAD_ATTR": 1, "LOAD_METHOD": 1, "UNARY_NEGATIVE": 1, "POP_TOP": 1, "BINARY_OP": 2, "BINARY_SUBSCR": 2,
    "COMPARE_OP": 2, "BINARY_SLICE": 3,
}  # fmt: skip
_NOTHING: Final = ("CACHE", "NOP", "RESUME", "PRECALL", "EXTENDED_ARG")


class Number(tuple[Any]):
    """What stands for a number in the results of a traced function: made of a tensor or array, it is the number.

    Examples
    --------
    >>> import tapegrad as tg
    >>> Number._make([tg.tensor(2.0)]), Number._make([None])
    (2.0, (None,))
    """

    __slots__ = ()

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        (value,) = values
        return value.item() if hasattr(value, "item") else cls((value,))


def returns_to(caller: CodeType) -> bool:
    """Whether the function that calls `item()` returns the result at once, to code of `caller`.

    Functions of the library may stand between: decorators, and the call of a module.
    """
    frame = sys._getframe(2)
    is_item = _is_item(frame.f_code, frame.f_lasti)
    while is_item and _is_returned(frame.f_code, frame.f_lasti) and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is caller:
            return True
        if not frame.f_code.co_filename.startswith(traces.HERE):
            return False
    return False


@functools.lru_cache(maxsize=256)
def _is_item(code: CodeType, place: int) -> bool:
    """Whether the call at a place of bytecode is that of a method `item`, and not of a function that calls it."""
    steps = [step for step in dis.get_instructions(code) if step.offset <= place and step.opname not in _NOTHING]
    return len(steps) > 1 and steps[-2].opname in ("LOAD_ATTR", "LOAD_METHOD") and steps[-2].argval == "item"


@functools.lru_cache(maxsize=256)
def _is_returned(code: CodeType, place: int) -> bool:
    """Whether the result of the call at a place of bytecode is returned, perhaps in containers, and not used before."""
    above = 0  # how much lies on the stack above the result, or above the container that it is in
    for step in dis.get_instructions(code):
        name, arg = step.opname, step.arg or 0
        if step.offset <= place or name in _NOTHING:
            continue
        if name == "RETURN_VALUE":
            return above == 0
        of_builds = {"BUILD_TUPLE": arg, "BUILD_LIST": arg, "BUILD_MAP": 2 * arg, "BUILD_CONST_KEY_MAP": arg + 1}
        n_parts = of_builds.get(name)
        if n_parts is not None:
            if name == "BUILD_MAP" and above < n_parts and above % 2:  # it is a key, or in one
                return False
            above = max(0, above + 1 - n_parts)
        elif name == "SWAP":  # behind a `with`
            above = arg - 1 if above == 0 else 0 if above == arg - 1 else above
        else:
            of_arg = {"CALL": arg + 2, "BUILD_SLICE": arg}.get(name, sys.maxsize)
            pops = 0 if name.startswith(_PUSHES) else _POPS.get(name, of_arg)
            if pops > above:
                return False
            above += 1 - pops if name == "CALL" else dis.stack_effect(step.opcode, step.arg, jump=False)
    return False

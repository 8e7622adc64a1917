"""What a function depends on besides its arguments, as a key: equal keys, and it computes the same.

A trace keeps the data that a function takes from its surroundings. So it is used again only if these are the same bits:
closures, defaults, and the globals that the code names, functions among them looked into. Whatever may change unseen,
e.g. an object of a user's class, makes that impossible.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from tapegrad.program.compiled import Compiled

__all__ = ["Unseen", "frozen"]

_LARGE: Final = 1 << 20  # bytes of an array, which are looked at in each call
_KNOWN: Final = frozenset(("cmath", "itertools", "builtins", "math", "numpy", "operator", "scipy", "tapegrad"))
_OPEN: Final = frozenset(("__import__", "eval", "exec", "globals", "input", "locals", "open", "random", "vars"))
_PLAIN: Final = (int, bool, str, bytes, type(None), type(Ellipsis), range, np.dtype)


class Unseen(Exception):  # noqa: N818  # a finding, which ends the attempt
    """Something may change, and nobody would see it."""


def frozen(value: Any, around: tuple[Any, ...] = ()) -> Hashable:
    """Return a value as a key, which is equal for equal bits; `around` are the functions whose parts are looked at.

    Raises
    ------
    Unseen
        If it may change unseen.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype):
        return kind, value
    if kind in (float, complex):
        return kind, repr(value)  # zeros of another sign are equal, and nan are not
    if isinstance(value, (np.ndarray, np.generic)):
        if kind not in (np.ndarray, value.dtype.type) or value.nbytes > _LARGE or value.dtype.hasobject:
            raise Unseen
        return kind, value.dtype, value.shape, value.tobytes()
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return kind, *[frozen(own, around) for own in value]
    if kind is dict:
        return kind, *[(frozen(key, around), frozen(own, around)) for key, own in value.items()]
    if kind is functools.partial:
        return kind, frozen(value.func, around), frozen(value.args, around), frozen(value.keywords, around)
    if kind is types.FunctionType and not _is_known(value.__module__):
        return _function(value, around)
    if isinstance(value, Compiled):
        return kind, value  # its user knows
    if kind is types.ModuleType:
        is_fixed = _is_known(value.__name__)
    elif kind is types.BuiltinFunctionType:
        is_fixed = isinstance(value.__self__, types.ModuleType) and _is_known(value.__self__.__name__)
    else:
        is_fixed = kind in _FUNCTIONS and _is_known(value.__module__)
    if not is_fixed:
        raise Unseen
    return kind, id(value)  # it lives as long as its module


_FUNCTIONS: Final = (types.FunctionType, type, np.ufunc, type(np.sum))


def _is_known(name: Any) -> bool:
    return isinstance(name, str) and name.split(".")[0] in _KNOWN and not name.endswith("random")


def _function(function: Any, around: tuple[Any, ...]) -> Hashable:
    """Return a user's function as a key."""
    if function in around:  # it calls itself
        return "around", around.index(function)
    around = (*around, function)
    names, cells = function.__globals__, function.__closure__ or ()
    try:
        closed = tuple([frozen(cell.cell_contents, around) for cell in cells])
    except ValueError:  # a cell that is empty yet
        raise Unseen from None
    taken = tuple([(name, frozen(names[name], around)) for name in _names(function.__code__) if name in names])
    return (
        function.__code__, closed, taken, frozen(function.__defaults__, around), frozen(function.__kwdefaults__, around)
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the globals that code takes, and code within it."""
    names: dict[str, None] = {}
    for own in dis.get_instructions(code):
        if own.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[own.argval] = None
        if own.opname == "STORE_GLOBAL" or own.argval in _OPEN or (
            own.opname == "IMPORT_NAME" and not _is_known(own.argval)
        ):  # fmt: skip
            raise Unseen
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return tuple(names)

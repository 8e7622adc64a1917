"""Functions that Numba has decorated: with a tensor among its arguments, such a function runs as it is written.

Numba asks an argument that it does not know for its type (``_numba_type_``), before it compiles anything. The first
tensor that is asked lets numba's dispatchers look for tensors when they are to compile for new types: then they return
the Python function instead, which numba calls. Calls with arrays never come here.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tapegrad.tensor import Tensor

__all__ = ["numba_type"]


def numba_type() -> property:
    """Return the attribute ``_numba_type_`` of tensors, which says that there is none."""

    def none(self: Tensor) -> Any:
        if "numba.core.dispatcher" in sys.modules:  # others may ask as well
            _install()
        raise AttributeError("a tensor has no type of numba's: functions run in Python", name="_numba_type_", obj=self)

    return property(none)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor)


def _in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the arguments that numba has put in order: with marks for defaults, and ``*args`` last."""
    from numba.core.dispatcher import OmittedArg

    is_packed = any(own.kind is own.VAR_POSITIONAL for own in inspect.signature(function).parameters.values())

    def call(*args: Any, **kws: Any) -> Any:
        given = [*args[:-1], *args[-1]] if is_packed else args
        return function(*[own.value if isinstance(own, OmittedArg) else own for own in given], **kws)

    return call


@functools.cache
def _install() -> None:
    from numba.core import dispatcher

    base: Any = dispatcher._DispatcherBase
    compile_for_args: Callable[..., Any] = base._compile_for_args
    explain: Callable[..., Any] = base._explain_matching_error

    def compile_or_run(self: Any, *args: Any, **kws: Any) -> Any:
        if _has_tensor((*args, *kws.values())):
            return _in_python(self.py_func)
        return compile_for_args(self, *args, **kws)

    def explain_tensors(self: Any, *args: Any, **kws: Any) -> Any:
        if _has_tensor((*args, *kws.values())):
            name = self.__name__
            raise TypeError(
                f"{name}() got a tensor, but Numba compiles it for a list of signatures only; call {name}.py_func(), "
                "or decorate it without signatures"
            )
        return explain(self, *args, **kws)

    base._compile_for_args, base._explain_matching_error = compile_or_run, explain_tensors

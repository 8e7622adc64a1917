"""The names of `torch.jit`: what they return computes the same, as functions of Python; `tapegrad.compile` compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Final", "annotate", "export", "freeze", "ignore", "is_scripting", "is_tracing", "optimize_for_inference",
           "script", "script_if_tracing", "script_method", "trace", "unused"]  # fmt: skip

T = TypeVar("T")


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """Return a function or module as it is.

    Examples
    --------
    >>> import tapegrad as tg
    >>> @tg.jit.script
    ... def f(x):
    ...     return x * tg.sigmoid(1.702 * x)
    >>> f(tg.zeros(2))
    tensor([0., 0.])
    """
    return obj


def trace(func: T, *args: Any, **kwargs: Any) -> T:
    """Return a function or module as it is: it may do other things with other arguments than those given here.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.jit.trace(tg.sin, tg.zeros(1))(tg.zeros(2))
    tensor([0., 0.])
    """
    return func


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.jit.annotate(list, [1])
    [1]
    """
    return the_value


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function as it is; a decorator with or without arguments."""
    return drop if callable(drop) else lambda function: function


def is_scripting() -> bool:
    """Return False.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.jit.is_scripting()
    False
    """
    return False


is_tracing: Callable[[], bool] = is_scripting
export = unused = script_method = script_if_tracing = freeze = optimize_for_inference = script


class Final:
    """A mark of attributes that do not change: ``x: Final[int]``."""

    def __class_getitem__(cls, kind: T) -> T:
        return kind

"""What a rule says by its code: its parameters, whose names are those of residuals, and the functions that it calls."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from tapegrad.runtime import state


@functools.lru_cache(maxsize=4096)  # every plan and every call of a rule needs them
def rule_parameters(rule: Any) -> tuple[str, ...]:
    """Return the names of a rule's parameters; none if the rule is no function.

    >>> rule_parameters(lambda ct, out: ct * out)
    ('ct', 'out')
    """
    if isinstance(rule, types.FunctionType) and not rule.__dict__:
        code = rule.__code__
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):  # the usual case, 20 times as fast
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(rule).parameters) if callable(rule) else ()


@functools.lru_cache(maxsize=4096)
def called_functions(rule: Any) -> frozenset[str]:
    """Return the names of the functions of ``xp`` that a rule calls, itself or in a function of its file.

    >>> sorted(called_functions(lambda ct, x: ct * xp.conj(xp.cos(x))))
    ['conj', 'cos']
    """
    code: Any = getattr(rule, "__code__", None)
    if code is None:
        return frozenset()
    names, owner = set(), None
    for instruction in dis.get_instructions(code):
        if owner == "xp":
            names.add(instruction.argval)
        owner = instruction.argval if instruction.opname == "LOAD_GLOBAL" else None
    helpers = [rule.__globals__.get(name) for name in code.co_names]
    own = [one for one in helpers if isinstance(one, types.FunctionType) and one.__module__ == rule.__module__]
    return frozenset(names).union(*(called_functions(one) for one in own if one is not rule))


def identity(ct: Any) -> Any:
    """Return the cotangent. All ops whose rule is ``lambda ct: ct`` share this rule, and so its kernel."""
    return ct


@functools.lru_cache(maxsize=4096)
def is_identity(rule: Callable[..., Any]) -> bool:
    """Whether a rule is ``lambda ct: ct``."""
    code: Any = getattr(rule, "__code__", None)
    return rule_parameters(rule) == ("ct",) and code is not None and code.co_code == identity.__code__.co_code


state.register("kernels.rules: parameters", lambda: rule_parameters.cache_info().currsize, rule_parameters.cache_clear)
state.register("kernels.rules: functions", lambda: called_functions.cache_info().currsize, called_functions.cache_clear)

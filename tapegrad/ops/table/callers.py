"""The functions that users call: each hands its arguments to compiled code.

CPython calls a function with named parameters in half the time of one with ``*args`` and ``**kwargs``. So there is a
template for each number of parameters; a copy gets the names and defaults of the function that binds the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tapegrad.recording.plan_cache import PlanCache

Caller = Callable[..., Any]


def caller(plans: PlanCache, signature: Any) -> Caller:
    """Return the function that calls an op, with the parameters of `signature`.

    Parameters
    ----------
    plans : PlanCache
        Of the op.
    signature : function
        Takes the operand, or a list of operands, and arguments; those by keyword only have the default None.
    """
    code = signature.__code__
    n_names = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:n_names]
    template = _templates(plans, names[code.co_argcount :]).get((code.co_argcount, code.co_kwonlyargcount))
    if template is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return _for_any_arguments(plans, signature)
    renamed = template.__code__.replace(co_varnames=names, co_name=code.co_name)
    call = FunctionType(renamed, template.__globals__, code.co_name, signature.__defaults__, template.__closure__)
    call.__kwdefaults__ = signature.__kwdefaults__
    return call


def _templates(plans: PlanCache, names: tuple[str, ...]) -> dict[tuple[int, int], Any]:
    """Return callers by how many arguments they take by position, and how many, of these names, by keyword only."""

    def given(*options: Any) -> dict[str, Any]:
        return {name: value for name, value in zip(names, options, strict=True) if value is not None}

    return {
        (1, 0): lambda x: plans.call(x),
        (2, 0): lambda x, a: plans.call(x, a),
        (3, 0): lambda x, a, b: plans.call(x, a, b),
        (4, 0): lambda x, a, b, c: plans.call(x, a, b, c),
        (2, 1): lambda x, a, *, p: plans.call(x, a) if p is None else plans.call(x, a, **given(p)),
        (3, 1): lambda x, a, b, *, p: plans.call(x, a, b) if p is None else plans.call(x, a, b, **given(p)),
        (4, 1): lambda x, a, b, c, *, p: plans.call(x, a, b, c) if p is None else plans.call(x, a, b, c, **given(p)),
        (3, 2): lambda x, a, b, *, p, q: (
            plans.call(x, a, b) if p is None and q is None else plans.call(x, a, b, **given(p, q))
        ),
        (3, 3): lambda x, a, b, *, p, q, r: (
            plans.call(x, a, b) if p is None and q is None and r is None else plans.call(x, a, b, **given(p, q, r))
        ),
    }


def _for_any_arguments(plans: PlanCache, signature: Any) -> Caller:
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not kwargs:
            return plans.call(*args)
        if not args:  # the operand is named
            bound = inspect.signature(signature).bind(**kwargs)
            args, kwargs = bound.args, bound.kwargs
        return plans.call(*args, **kwargs)

    return call

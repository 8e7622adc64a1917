"""Functions that Numba has decorated: with a tensor among its arguments, such a function runs as it is written.

Numba asks an argument that it does not know for its type (``_numba_type_``), before it compiles anything. The first
tensor that is asked lets numba's dispatchers look for tensors when they are to compile for new types: then they return
the Python function instead, which numba calls. Calls with arrays never come here.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

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
    function = _with_numpy(function)

    def call(*args: Any, **kws: Any) -> Any:
        given = [*args[:-1], *args[-1]] if is_packed else args
        return function(*[own.value if isinstance(own, OmittedArg) else own for own in given], **kws)

    return call


def _with_numpy(function: Any) -> Callable[..., Any]:
    """Return a function whose global names of `math` are NumPy's functions, which take tensors; `math` has floats."""
    names = {name: value for name, value in function.__globals__.items()
             if value is math or (isinstance(value, types.BuiltinFunctionType) and value in _of_math())}  # fmt: skip
    if not names:
        return cast("Callable[..., Any]", function)
    ours = {name: _numpys() if value is math else _of_math()[value] for name, value in names.items()}
    changed = types.FunctionType(
        function.__code__, {**function.__globals__, **ours}, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    changed.__kwdefaults__ = function.__kwdefaults__
    return changed


@functools.cache
def _of_math() -> Mapping[Any, Any]:
    """Return NumPy's functions, and SciPy's, by those of `math`."""
    from scipy import special

    others = {"erf": special.erf, "erfc": special.erfc, "gamma": special.gamma, "lgamma": special.gammaln}
    others |= {"fabs": np.absolute, "pow": np.power}
    found = {}
    for name, function in vars(math).items():
        numpys = others.get(name, getattr(np, name, None))
        if isinstance(function, types.BuiltinFunctionType) and isinstance(numpys, np.ufunc):
            found[function] = numpys
    return found


@functools.cache
def _numpys() -> types.SimpleNamespace:
    """Return what stands in the place of `math`."""
    return types.SimpleNamespace(**{
        name: _of_math().get(value, value) if isinstance(value, types.BuiltinFunctionType) else value
        for name, value in vars(math).items()
    })  # fmt: skip


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

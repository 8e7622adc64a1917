"""Forwards by NumPy alone: what computes the values of a function that is traced, before its kernels are compiled.

A trace computes each operation once or a few times, so that shapes and errors are the ordinary ones. To compile a
kernel takes a tenth of a second, and a program may need dozens. The last bits may be other ones than the kernel's.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.scipy import SciPy
from tapegrad.ops.table.op import ELEMENTWISE, Op
from tapegrad.tape.layout import Layout

__all__ = ["attributes", "by_numpy", "may_differ", "plain"]

_FAMILIES: Final = (*ELEMENTWISE, "reduction", "along", "indexing")
_OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {"pow": lambda x, y: x**y}
_NUMPYS: Final = {"dim": "axis", "keepdim": "keepdims"}
_ALONE: Final = (np.matmul, np.where)  # forwards that take the place of kernels as they are


def plain(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward on NumPy arrays, by another function where it is one of ours."""
    return getattr(forward, "other", forward)


def attributes(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes as the forward of an op names them: NumPy's own functions have other names."""
    numpys = (op.family == "reduction" and not isinstance(op.forward, types.FunctionType)) or op.forward is np.mean
    return {_NUMPYS.get(name, name) if numpys else name: value for name, value in attrs.items()}


def by_numpy(op: Op, layouts: Sequence[Layout], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return the forward of an op for operands of these layouts, without kernels; None where there are none anyway."""
    in_traces = getattr(op.forward, "in_traces", None)
    if in_traces is not None:
        return in_traces(layouts, **attrs)  # type: ignore[no-any-return]
    is_alone = op.forward in _ALONE
    if not is_alone and (op.prepare_forward is None or op.family not in _FAMILIES or len(op.results) > 1):
        return None
    if isinstance(op.forward, SciPy):
        return None
    dtypes = {layout.dtype for layout in layouts if not layout.weak and layout.dtype != np.bool_}
    if len(dtypes) != 1 or next(iter(dtypes)).kind != "f":  # others are promoted
        return None
    function = op.forward if is_alone else _OPERATORS.get(op.name) or _function(op)
    if function is None:
        return None
    if is_alone or isinstance(function, np.ufunc):
        return function
    of_lines = dtypes.pop() if op.family == "along" else None
    return functools.partial(_computed, function, attributes(op, attrs), of_lines)


def may_differ(op: Op, layouts: Sequence[Layout], attrs: Mapping[str, Any]) -> bool:
    """Return whether the result of an op in a trace may have other bits than an ordinary call."""
    is_same = op.forward is np.where or (isinstance(op.forward, np.ufunc) and op.forward is not np.matmul)
    return not is_same and by_numpy(op, layouts, attrs) is not None


def _function(op: Op) -> Callable[..., Any] | None:
    """Return NumPy's function of an op."""
    function = plain(op.forward)
    is_known = function is not op.forward or isinstance(function, (np.ufunc, types.FunctionType))
    return function if is_known or op.family == "reduction" else None


def _computed(function: Callable[..., Any], named: Mapping[str, Any], dtype: Any, *values: Any) -> Any:
    """Return the result of a function with attributes, a scalar if it is one number; of lines in their dtype."""
    if dtype is None:
        return function(*values, **named)[()]
    with np.errstate(all="ignore"):
        return np.asarray(function(*map(np.asarray, values), **named), dtype, order="C")[()]

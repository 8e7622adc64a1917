"""Composites: functions that make views, in copies, with PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tapegrad.ops.broadcasting import clone, expand, squeeze, unsqueeze
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.movement import view
from tapegrad.ops.permutations import permute, t, transpose
from tapegrad.ops.splitting import narrow, select, split_with_sizes, unbind
from tapegrad.ops.strided import as_strided, unfold
from tapegrad.ops.table.callers import into, with_numpy_names
from tapegrad.ops.table.composites import composite, composites
from tapegrad.ops.table.public import TOP, public

VIEWS: tuple[Callable[..., Any], ...] = (
    as_strided, diagonal, expand, narrow, permute, select, split_with_sizes, squeeze, t, transpose, unbind,
    unfold, unsqueeze, view,
)  # fmt: skip


def copying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes what another one does, in copies; its samples are the other's."""
    name, function = function.__name__, with_numpy_names(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            out = kwargs.pop("out")
            return into(out, call.__name__, partial(call, **kwargs), args)
        views = function(*args, **kwargs)
        return tuple([clone(one) for one in views]) if isinstance(views, tuple) else clone(views)

    call.__name__ = call.__qualname__ = f"{name}_copy"
    call.__module__ = TOP  # where pickle finds it
    call.__wrapped__ = function  # type: ignore[attr-defined]  # whose arguments they are
    call.__doc__ = f"Compute `{name}` in a copy, which shares no memory with the tensor."
    known = composites.get(name) or function.op  # type: ignore[attr-defined]
    return public(method=function is narrow)(composite(known.samples, known.oracle, call=known.call)(call))


for _function in VIEWS:
    copying(_function)

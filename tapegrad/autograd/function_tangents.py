"""The tangents of a `Function`: its `jvp`, called for dual tensors, and as the transpose of its recorded rule.

`tapegrad.func.jvp` transposes the recorded backward pass (see `tapegrad.func.products`). There the rule of a call whose
`Function` has a `jvp` is a linear map with that as its derivative.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from tapegrad import errors, modes
from tapegrad.autograd.roots import zeros_of
from tapegrad.pass_modes import weak_zeros
from tapegrad.tape.graph import whole_node
from tapegrad.tensor import Tensor

_local: Final = threading.local()


def calls_of_jvp() -> int:
    """Return how many calls this thread has recorded whose tangents a `jvp` of the user computes."""
    return getattr(_local, "calls", 0)


def note_jvp() -> None:
    """Count such a call."""
    _local.calls = calls_of_jvp() + 1


def is_transposed() -> bool:
    """Whether this thread records a backward pass in order to transpose it."""
    return getattr(_local, "transposed", False)


def to_be_transposed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that records a backward pass, which is then transposed.

    Its cotangents are zeros, of which only the graph counts: the mode of strong zeros would cut that.
    """
    before = is_transposed()
    _local.transposed = True
    try:
        with weak_zeros():
            return function(*args, **kwargs)
    finally:
        _local.transposed = before


def with_tangents(jvp: Callable[..., Any], ctx: Any, args: Sequence[Any], run: Callable[[], Any]) -> Any:
    """Run a call, and give its outputs the tangents that the user's `jvp` computes, if an argument has one.

    Raises
    ------
    RuntimeError
        If `jvp` returns tangents of other shapes than the outputs', or not one for each.
    """
    duals = modes.interceptor()
    tangent_of = getattr(duals, "tangent_of", None)
    tangents = [] if tangent_of is None else [tangent_of(arg) if isinstance(arg, Tensor) else None for arg in args]
    if all(tangent is None for tangent in tangents):
        return run()
    with modes.uninterrupted():
        out = run()
        outputs = out if isinstance(out, tuple) else (out,)
        node = next(
            (tensor._node for tensor in outputs if isinstance(tensor, Tensor) and isinstance(tensor._node, list)), None
        )
        if node is not None and "_written" in ctx.__dict__:  # the call was recorded
            ctx = type(ctx).of(whole_node(node))
        values = tangents_by(jvp, ctx, args, tangents, len(outputs))
    for output, value in zip(outputs, values, strict=True):
        if value is not None and isinstance(output, Tensor):
            if value.shape != output.shape:
                raise errors.tangent_shape(output.shape, value.shape)
            duals.note(output, value)  # type: ignore[union-attr]
    return out


def tangents_by(
    jvp: Callable[..., Any], ctx: Any, args: Sequence[Any], tangents: Sequence[Tensor | None], count: int
) -> tuple[Any, ...]:
    """Return `count` tangents by the user's `jvp`, which gets zeros for floating arguments without tangent."""
    if ctx.__dict__.get("_materialize", True):
        tangents = [
            zeros_of(arg) if tangent is None and isinstance(arg, Tensor) and arg._layout.floating else tangent
            for arg, tangent in zip(args, tangents, strict=True)
        ]
    values = jvp(ctx.for_jvp(), *tangents)
    values = values if isinstance(values, tuple) else (values,)
    if len(values) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(values)})"
        )
    return values

"""The argument `out` of functions: a tensor, or several, that the result is written to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.write_checks import can_hold, cast_error, check_distinct
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


def into(out: Any, name: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call a function, write its result to `out`, and return that.

    Raises
    ------
    RuntimeError
        If a gradient is wanted, or `out` cannot hold the result's dtype.
    TypeError
        If `out` is no tensor; of several results, no sequence of as many.
    """
    if modes.is_grad_enabled() and any(tensor.requires_grad for tensor in _tensors((out, args))):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. Call it under no_grad(), or without out."
        )
    with modes.no_grad():
        result = function(*args)
    if not isinstance(result, tuple):
        _check(name, out, result)
        return _write(out, result)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} tensors, one for each result")
    for target, one in zip(out, result, strict=True):
        _check(name, target, one)  # all of them before the first is written
    written = [_write(target, one) for target, one in zip(out, result, strict=True)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif not isinstance(value, (str, np.ndarray)) and isinstance(value, Iterable):
            yield from _tensors(value)


def _check(name: str, out: Any, result: Tensor) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not can_hold(out.dtype, result.dtype):
        raise cast_error(result.dtype, out.dtype)
    if not modes.is_traced():  # a tracer looks itself
        check_distinct(out._array())


def _write(out: Tensor, result: Tensor) -> Tensor:
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(result.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements. Give an empty tensor, or "
                "one of the result's shape.",
                UserWarning,
                stacklevel=5,
            )
        out.data = Tensor.detach(result).to(out.dtype)
        return out
    tracer = modes.tracer()
    if tracer is not None:
        tracer.overwrite(out, result)
        return out
    array = out._array()
    versions.note(array)
    array[...] = result._data
    return out

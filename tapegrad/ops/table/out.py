"""The argument `out` of functions: a tensor, or several, that the result is written to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.callers import missing
from tapegrad.ops.table.out_dtypes import CREATING, check_dtype, dtype_of
from tapegrad.ops.table.write_checks import check_distinct
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


def into(out: Any, name: str, function: Callable[..., Any], args: Sequence[Any], dtype: int | None = None) -> Any:
    """Call a function, write its result to `out`, and return that.

    Parameters
    ----------
    out : Tensor or tuple of Tensor
    name : str
        Of the function.
    function : callable
    args : sequence
        What it is called with.
    dtype : int, optional
        Which of these is the dtype that it computes in.

    Raises
    ------
    RuntimeError
        If a gradient is wanted, or the function does not write to tensors of the dtype of `out`.
    TypeError
        If `out` is no tensor; of several results, no sequence of as many.
    """
    if modes.is_grad_enabled() and any(tensor.requires_grad for tensor in _tensors((out, args))):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. Call it under no_grad(), or without out."
        )
    operand = next((value.dtype for value in _tensors(args)), None)
    if dtype is not None and isinstance(out, Tensor):
        wanted = args[dtype] if args[dtype] is not missing else None
        args = [*args[:dtype], dtype_of(name, wanted, out.dtype, operand), *args[dtype + 1 :]]
    with modes.no_grad():
        result = function(*args)
    if not isinstance(result, tuple):
        _check(name, out, result, operand, None)
        return _write(out, result, name not in CREATING)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} tensors, one for each result")
    for number, (target, one) in enumerate(zip(out, result, strict=True)):
        _check(name, target, one, operand, number)  # all of them before the first is written
    written = [_write(target, one) for target, one in zip(out, result, strict=True)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif not isinstance(value, (str, np.ndarray)) and isinstance(value, Iterable):
            yield from _tensors(value)


def _check(name: str, out: Any, result: Tensor, operand: np.dtype | None, number: int | None) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    check_dtype(name, out.dtype, result.dtype, operand, number)
    if not modes.is_traced():  # a tracer looks itself
        check_distinct(out._array())


def _write(out: Tensor, result: Tensor, warn: bool = True) -> Tensor:
    if out.shape != result.shape:
        if out.numel() and warn:
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

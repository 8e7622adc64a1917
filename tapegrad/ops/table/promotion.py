"""Promotion: the dtype in which an elementwise operation is computed, and the forward that computes in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.forward import rowwise
from tapegrad.forward.ufuncs import Function
from tapegrad.tape.layout import Layout


def promote(layouts: Sequence[Layout]) -> np.dtype:
    """Return the dtype in which PyTorch computes an elementwise operation of these operands.

    A tensor without dimensions does not promote one with dimensions of the same kind (bool, integer, real, complex),
    and a Python number promotes neither; a number of a higher kind gives the default dtype of that kind.
    """
    ranks = tuple((0 if layout.weak else 1 if layout.ndim == 0 else 2, layout.dtype) for layout in layouts)
    return _promote(ranks, default_dtype())


@functools.lru_cache(maxsize=1024)
def _promote(ranks: tuple[tuple[int, np.dtype], ...], default: np.dtype) -> np.dtype:
    result: np.dtype | None = None
    for priority in (2, 1, 0):
        dtypes = [dtype for rank, dtype in ranks if rank == priority]
        if not dtypes:
            continue
        # NumPy makes float64 of int64 and float32; PyTorch does not look at the integers.
        dtype = np.result_type(*([own for own in dtypes if own.kind in "fc"] or dtypes))
        if priority == 0 and dtype.kind in "fc":
            dtype = np.result_type(default, np.complex64) if dtype.kind == "c" else default
        if result is None:
            result = dtype
        elif _kind(dtype) > _kind(result):
            # A higher kind wins; a complex number beside a real tensor keeps the tensor's precision.
            result = np.result_type(result, np.complex64) if dtype.kind == "c" and result.kind == "f" else dtype
    assert result is not None  # every operation has an operand
    return result


def _kind(dtype: np.dtype) -> int:
    return "biufc".replace("iu", "i").index("i" if dtype.kind == "u" else dtype.kind)


def forward_for(
    function: Callable[..., Any],
    scalar: Callable[..., Any] | None,
    to_float: bool,
    promoted: tuple[int, ...] | None = None,
) -> Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]]:
    """Return what chooses the forward for given layouts: with casts where PyTorch promotes otherwise than NumPy.

    Parameters
    ----------
    function : callable
        On arrays.
    scalar : callable, optional
        An operator that does the same, and is faster on scalar objects.
    to_float : bool
        Integers are converted to the default dtype.
    promoted : tuple of int, optional
        Numbers of the operands that are converted to a common dtype; default all (a condition is not).
    """

    def choose(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        chosen = promoted or tuple(range(len(layouts)))
        common = promote([layouts[number] for number in chosen])
        if to_float and common.kind in "biu":
            common = default_dtype()
        cast = [
            number in chosen and layout.dtype != common and not layout.weak for number, layout in enumerate(layouts)
        ]
        chosen_function = function.of(common) if isinstance(function, Function) else function
        if any(cast):

            def with_casts(*values: Any) -> Any:
                pairs = zip(values, cast, strict=True)
                return chosen_function(*(np.asarray(value).astype(common) if own else value for value, own in pairs))

            return with_casts
        if scalar is not None and len(layouts) == 2 and all(layout.ndim == 0 for layout in layouts):
            # Scalar objects multiply in 40 ns, arrays without dimensions in 280.
            arrays = [not layout.inline for layout in layouts]
            if arrays == [False, False]:
                return scalar
            if arrays == [False, True]:
                return lambda x, y: scalar(x, y[()])
            if arrays == [True, False]:
                return lambda x, y: scalar(x[()], y)
            return lambda x, y: scalar(x[()], y[()])
        return rowwise.elementwise(chosen_function, layouts) if len(layouts) == 2 else chosen_function

    return choose

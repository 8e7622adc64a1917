"""Creation: sequences of values, and matrices with ones on the diagonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.devices import DeviceLike
from tapegrad.dtypes import DTypeLike, check_range
from tapegrad.ops.creation import dtype_or_default, made
from tapegrad.ops.table import docs
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer
from tapegrad.tensor import Tensor


@public()
def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the values from `start` (0 if only one is given) up to and without `end`, `step` apart.

    Parameters
    ----------
    start, end, step : number
    dtype : dtype, optional
        By default int64 if all three are integers, otherwise the default dtype.
    device : device, optional
        Only the CPU.
    requires_grad : bool

    Raises
    ------
    RuntimeError
        If the step is 0 or leads away from `end`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.arange(3)
    tensor([0, 1, 2])
    >>> tg.arange(0.0, 1.0, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if end is None:
        start, end = 0, start
    if start.__class__ is not int or end.__class__ is not int or step.__class__ is not int:
        start, end, step = [value.item() if hasattr(value, "item") else value for value in (start, end, step)]
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end} in arange()")
    kind = None if dtype is None else np.dtype(dtype)
    if kind == np.int64:  # PyTorch counts in this dtype, and in double precision for all others
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: arange({start}, {end}, {step})")
    whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    kind = np.dtype(np.int64) if whole and dtype is None else dtype_or_default(dtype)
    # NumPy's arange steps by (start + step) - start, whose rounding error grows with the index.
    count = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if kind.kind in "iu":
        start, step = int(start), int(step)
    values = np.arange(count)
    if step != 1:
        values = values * step
    if start:
        values = start + values
    return made(values.astype(kind, copy=False), requires_grad, device)


def _evenly(call: str, start: Any, end: Any, steps: int) -> np.ndarray:
    if integer(call, "steps", steps) < 0:
        raise RuntimeError(f"number of steps must be non-negative, but {call}() got {steps}")
    are_numbers = start.__class__ in (int, float) and end.__class__ in (int, float)
    if not are_numbers and (np.ndim(start) or np.ndim(end)):
        raise RuntimeError(
            f"{call} only supports 0-dimensional start and end tensors, but got start with {np.ndim(start)} "
            f"dimension(s) and end with {np.ndim(end)} dimension(s)."
        )
    first, last = float(start), float(end)
    distance, gaps = last - first, steps - 1
    places = np.arange(0.0, steps)  # what follows is NumPy's linspace, for two numbers in a fifth of its time
    step = distance / gaps if gaps > 0 else distance
    values = places * step if step or gaps <= 0 else places / gaps * distance
    values += first
    if gaps > 0:
        values[-1] = last
    return values


@public(common=docs.NEW_TENSOR)
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return evenly spaced values from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
    steps : int
        How many values.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    dtype = dtype_or_default(dtype)
    for number in (start, end):
        check_range(number, dtype)
    return made(_evenly("linspace", start, end, steps).astype(dtype, copy=False), requires_grad, device)


@public(common=docs.NEW_TENSOR)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `base` to the power of evenly spaced values from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        Exponents.
    steps : int
        How many values.
    base : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    values = np.power(base, _evenly("logspace", start, end, steps))
    return made(values.astype(dtype_or_default(dtype), copy=False), requires_grad, device)


@public(common=docs.NEW_TENSOR)
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on its diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int, optional
        Number of columns, default `n`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for name, count in (("n", n), ("m", m)):
        if count is not None and count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}: eye({n}, {m})")
    return made(np.eye(n, m, dtype=dtype_or_default(dtype)), requires_grad, device)

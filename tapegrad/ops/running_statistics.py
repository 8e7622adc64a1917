"""Running means and variances of channels, as batch norms use and move them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.standard import MOMENTS, geometry_of_rows, kernel_of_rows
from tapegrad.ops.standard import affine
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.promotion import check_mixed
from tapegrad.recording.steps import address_of_array
from tapegrad.recording.writes import written
from tapegrad.tape.layout import dtype_name
from tapegrad.tensor import Tensor, from_array

_call: Final = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)  # it releases the GIL


def _per_channel(values: Any, x: Tensor) -> np.ndarray:
    return np.asarray(values, x.dtype).reshape(-1, *(1 for _ in x.shape[2:]))


def by_running(call: str, x: Tensor, running_mean: Any, running_var: Any, eps: float) -> Tensor:
    """Return what is normalised with running statistics."""
    if running_mean is None or running_var is None:
        raise RuntimeError(f"Expected running_mean and running_var to be defined; {call}() uses no others now")
    for name, own in (("running_mean", running_mean), ("running_var", running_var)):
        if tuple(own.shape) != (x.shape[1],):
            raise RuntimeError(f"{name} should contain {x.shape[1]} elements not {math.prod(own.shape)}")
        check_mixed(x.dtype, own.dtype)
    if modes.is_traced():
        return _by_running_traced(x, running_mean, running_var, eps)
    means, variances = (np.asarray(getattr(own, "_data", own)) for own in (running_mean, running_var))
    with np.errstate(all="ignore"):
        scale = 1 / np.sqrt(variances.astype(np.float64) + eps)
    constants = (from_array(_per_channel(own, x)) for own in (scale, -means * scale))
    return affine(x, *constants)


def _update(running: Any, values: np.ndarray, momentum: float) -> None:
    """Move running statistics towards those of a batch, in place."""
    if running is None:
        return
    data = running._array() if isinstance(running, Tensor) else running
    if data.shape != values.shape:
        raise RuntimeError(f"running_mean should contain {values.size} elements not {data.size}, one a channel")
    data *= 1 - momentum
    data += values * momentum
    written.note(data)


def _moments(x: Tensor, parts: tuple[int, ...]) -> Any:
    """Return the means of rows, and the sums of squared deviations from these, in double precision."""
    data = np.asarray(x._data)
    if not has_kernel(x._layout) or not data.size:
        rows = data.reshape(parts)
        means = np.add.reduce(rows, (0, 2), np.float64) / max(parts[0] * parts[2], 1)
        return means, np.add.reduce(np.square(rows - means[:, None]), (0, 2))
    found = np.empty((2, parts[1]))
    args, geometry = (np.array(words) for words in (
        [address_of_array(data), address_of_array(found)], geometry_of_rows(parts, 0.0),
    ))  # fmt: skip
    kernel = _call(kernel_of_rows(MOMENTS, dtype_name(x._layout.dtype), True))
    kernel(address_of_array(args), address_of_array(geometry), 0)
    return found


def update_both(x: Tensor, running_mean: Any, running_var: Any, momentum: float, parts: tuple[int, ...]) -> None:
    """Update running statistics by the means and unbiased variances of rows, averaged over items."""
    if running_mean is None and running_var is None:
        return
    tracer = modes.tracer()
    if tracer is not None:
        _update_both_traced(tracer, x, (running_mean, running_var), momentum, parts)
        return
    check_mixed(x.dtype, *(running.dtype for running in (running_mean, running_var) if running is not None))
    channels, (means, squares) = x.shape[1], _moments(x, parts)
    variances = squares / max(parts[0] * parts[2] - 1, 1)
    for running, values in ((running_mean, means), (running_var, variances)):
        _update(running, values if len(values) == channels else values.reshape(-1, channels).mean(0), momentum)


# In a function that is traced ----------------------------------------------------------------------------------------


def _by_running_traced(x: Tensor, mean: Any, var: Any, eps: float) -> Tensor:
    shape = (-1, *(1 for _ in x.shape[2:]))
    with modes.no_grad():
        scale = 1 / xp.sqrt(xp.cast(var, np.dtype(np.float64)) + eps)
        constants = [xp.reshape(xp.cast(own, x.dtype), shape) for own in (scale, -mean * scale)]
    return affine(x, *constants)


def _update_both_traced(tracer: Any, x: Tensor, running: Sequence[Any], momentum: Any, parts: tuple[int, ...]) -> None:
    with modes.no_grad():
        rows = xp.reshape(xp.cast(x.detach(), np.dtype(np.float64)), parts)
        count = parts[0] * parts[2]
        means = rows.sum((0, 2)) / max(count, 1)
        apart = rows - xp.reshape(means, (-1, 1))
        squares = (apart * apart).sum((0, 2))
        for own, values in zip(running, (means, squares / max(count - 1, 1)), strict=True):
            if own is not None:
                by_channel = xp.reshape(values, (-1, x.shape[1])).mean(0)
                tracer.overwrite(own, own * (1 - momentum) + by_channel * momentum)

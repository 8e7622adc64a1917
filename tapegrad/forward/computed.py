"""Forwards that call our kernels, as built-in functions of CPython."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.compiler.intrinsics import call, clear_float_errors, float_errors, memset, stack
from tapegrad.forward.results import Result, compiled_forward, finished, new_result
from tapegrad.forward.ufuncs import FLOAT_ERRORS
from tapegrad.recording.native import decref, new_object, release_gil, take_gil, vectorcall
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.objects import NDArray, Object, Scalar
from tapegrad.runtime.structs import Array, embedded
from tapegrad.tape.geometry import Geometry, iterate


class Computation(Result):
    """The words of a forward that calls a kernel."""

    kernel: int
    zeroed: int  # the bytes of a result that is added to, or 0
    scalar: Object  # the type of a result that is a scalar, or 0
    otherwise: Object  # NumPy's way
    by_status: int
    geometry: Array[int] = embedded()


def computed(
    kernel: int,
    geometry: Sequence[int],
    shape: tuple[int, ...],
    dtype: np.dtype,
    otherwise: Callable[..., Any],
    *,
    adds: bool = False,
    by_status: bool = False,
) -> Callable[..., Any]:
    """Return the forward that computes a result of this shape and dtype by a kernel.

    Parameters
    ----------
    kernel : int
        Address.
    geometry : sequence of int
    otherwise : callable
        Does the same in NumPy. It is called if an error of floating point occurred, to say so as NumPy does.
    adds : bool
        The kernel adds to its target, which must be zeros.
    by_status : bool
        `otherwise` is called where the kernel returns another number than 0, and whatever floating errors occurred.
    """
    zeroed = math.prod(shape) * dtype.itemsize if adds else 0
    scalar = 0 if shape else id(dtype.type)
    rest = kernel, zeroed, scalar, id(otherwise), int(by_status), *geometry
    return compiled_forward(compute, shape, dtype, *rest, keep=(otherwise,))


class OfCopy(NamedTuple):
    """A forward for contiguous operands, of copies of others; a draft, if that forward is one."""

    forward: Any

    def made(self) -> Callable[..., Any]:
        """Return the forward."""
        forward = finished(self.forward)
        return lambda *values: forward(*map(np.ascontiguousarray, values))


def compute(self: NDArray, args: Array[NDArray], nargs: int) -> int:
    """Call the kernel and return its result, a new array or a scalar object of NumPy; 0 if Python raised."""
    words, places, value = Computation(self.data), Array[int](stack(128)), Array[int](stack(16))
    for number in range(nargs):
        places[number] = args[number].data
    out = NDArray(0)
    if words.scalar == 0:
        out = new_result(words)
        if out == 0:
            return out
        places[nargs] = out.data
    else:
        value[0] = 0
        places[nargs] = value
    zeroed = words.zeroed
    thread = release_gil()
    if words.by_status == 0 and float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)  # which takes longer
    if zeroed != 0:
        memset(places[nargs], zeroed)
    found = 0
    if words.by_status != 0:
        found = call(words.kernel, places, words.geometry, 0)
    else:
        iterate(words.kernel, places, nargs + 1, Geometry(words.geometry), 1 if zeroed != 0 else 0)
        found = float_errors(FLOAT_ERRORS)
    take_gil(thread)
    if found != 0:
        if out != 0:
            decref(out)
        return vectorcall(words.otherwise, args, nargs, 0)
    if words.scalar != 0:
        box = Scalar(new_object(words.scalar, 0))
        if box != 0:
            box.value[0] = value[0]
        return box
    return out

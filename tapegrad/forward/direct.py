"""Forwards that call NumPy's inner loops directly: its ufuncs take 0.2 to 0.4 µs to find the loop that a plan knows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import call_void, clear_float_errors, float_errors, get, stack
from tapegrad.forward.results import Result, compiled_forward, new_result
from tapegrad.forward.ufuncs import FLOAT_ERRORS, loop_of
from tapegrad.kernels.elementwise import ARITHMETIC
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.recording.native import decref, vectorcall
from tapegrad.runtime.objects import NDArray, Object, Scalar
from tapegrad.runtime.structs import Array, embedded
from tapegrad.tape.layout import Layout, contiguous_strides


class Loop(Result):
    """The words of a forward that calls an inner loop of NumPy."""

    function: int
    data: int
    count: int  # elements of a row
    rows: int
    inline: int  # a bit for each operand that is a number inside an object
    otherwise: Object  # NumPy's way
    strides: Array[int] = embedded()  # of operands and result: within a row, then to the next


# To begin a loop takes a function 10 to 30 ns, for the vectors that it makes of a few elements. NumPy copies short rows
# into one array first.
_FEW_ROWS: Final = 32
_LONG_ROW: Final = 32


def direct(
    ufunc: Callable[..., Any], layouts: Sequence[Layout], result: Layout, of_numbers: bool = False
) -> Callable[..., Any]:
    """Return the forward of a ufunc for operands of these layouts: its inner loop if the rows are evenly spaced.

    NumPy returns a number that is no array where there are no dimensions. The loop returns an array, so it serves that
    case only if `of_numbers` says so.
    """
    if not isinstance(ufunc, np.ufunc) or ufunc.signature or (ufunc.nin, ufunc.nout) != (len(layouts), 1):
        return ufunc
    if not all(map(_has_words, layouts)):
        return ufunc
    if not result.ndim and not of_numbers:
        return ufunc
    return _over_rows(
        ufunc,
        layouts,
        result,
        ufunc in ARITHMETIC,
        lambda: loop_of(ufunc, (*[own.dtype for own in layouts], result.dtype)),
    )


def direct_where(layouts: Sequence[Layout], result: Layout) -> Callable[..., Any]:
    """Return the forward of ``np.where`` for operands of these layouts: a loop of ours as `direct` has NumPy's."""
    condition, *others = layouts
    is_real = condition.dtype.kind == "b" and not condition.inline and result.dtype.kind == "f"
    if not is_real or not result.ndim or any(own.dtype != result.dtype for own in others):
        return np.where
    return _over_rows(np.where, layouts, result, True, lambda: (_where_address(result.dtype.name), 0))


def _over_rows(
    otherwise: Callable[..., Any],
    layouts: Sequence[Layout],
    result: Layout,
    begins_at_once: bool,
    find: Callable[[], tuple[int, int] | None],
) -> Callable[..., Any]:
    """Return the forward that calls a loop, whose address and data are found, for each row; else another function."""
    if result.dtype.kind not in "fbiu" or not result.contiguous:
        return otherwise
    strides = [broadcast_strides(own.shape, own.strides, result.shape) for own in layouts]
    lengths, steps = coalesce(result.shape, [*strides, contiguous_strides(result.shape, result.dtype.itemsize)])
    rows = lengths[0] if len(lengths) == 2 else 1
    # Where an operand's elements lie in reverse, NumPy chooses another order.
    if len(lengths) > 2 or min(map(min, steps)) < 0:
        return otherwise
    if rows > _FEW_ROWS and lengths[-1] < _LONG_ROW and not begins_at_once:
        return otherwise
    found = find()
    if found is None:
        return otherwise
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    within, between = [own[-1] for own in steps], [own[0] for own in steps]
    rest = (*found, lengths[-1], rows, inline, id(otherwise), *within, *between)
    return compiled_forward(run_loop, result.shape, result.dtype, *rest, keep=(otherwise,))


@functools.cache
def _where_address(dtype: str) -> int:
    """Return the address of an inner loop ``(args**, dims*, steps*, data)`` that chooses as a condition says."""
    size = np.dtype(dtype).itemsize

    def kernel(args: int, dims: int, steps: int, data: int) -> int:
        n, condition, x, y, out = get(dims, 0), get(args, 0), get(args, 1), get(args, 2), get(args, 3)
        step, step_x, step_y = get(steps, 0), get(steps, 1), get(steps, 2)
        if step == 1 and step_x == size and step_y == size:
            flags, one, other = as_pointer(condition, "bool"), as_pointer(x, dtype), as_pointer(y, dtype)
            target = as_pointer(out, dtype)
            for i in range(n):
                store(target, i, load(one, i) if load(flags, i) else load(other, i))
            return 0
        for i in range(n):
            first, second = load_at(x, i * step_x, dtype), load_at(y, i * step_y, dtype)
            store_at(out, i * size, first if load_at(condition, i * step, "bool") else second, dtype)
        return 0

    return address_of(f"where-loop-{dtype}", kernel, ("int64",) * 4)


def _has_words(layout: Layout) -> bool:
    """Whether an operand's elements stand in memory, and are real: integers of Python have another form."""
    return layout.dtype.kind == "f" or (layout.dtype.kind in "biu" and not layout.weak)


def run_loop(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Call the loop and return its result; 0 if Python raised. NumPy reports floating-point errors as usual."""
    words = Loop(self.data)
    out = new_result(words)
    if out == 0:
        return 0
    loop_into(words, args, nargs, out.data)
    if float_errors(FLOAT_ERRORS) != 0:
        decref(out)
        return vectorcall(words.otherwise, args, nargs, 0)
    return out


def loop_into(words: Loop, args: Array[Object], nargs: int, target: Array[int]) -> None:
    """Call the loop, which writes to a target. It may set flags of floating errors."""
    places, count = Array[int](stack(64)), Array[int](stack(8))
    begins = Array[int](stack(64))  # of the row: SciPy's loops write to the places that they get
    for number in range(nargs):
        value = args[number]
        places[number] = begins[number] = Scalar(value).value if words.inline >> number & 1 else NDArray(value).data
    places[nargs] = begins[nargs] = target
    count[0] = words.count
    if float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)
    within, rows = words.strides, words.rows
    between = within.at(nargs + 1)
    for row in range(rows):
        call_void(words.function, places, count, within, words.data)
        for number in range(nargs + 1 if row + 1 < rows else 0):
            begins[number] += between[number]
            places[number] = begins[number]

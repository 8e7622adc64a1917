"""Compiled: what the dims of a kernel say besides its own loop's length and steps (see `tapegrad.tape.plan.Step`)."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, get, put, stack


def rows_at(dims: int, count: int) -> int:
    """Return where the dims of a loop with `count` arguments say how many rows it goes over."""
    return dims + 8 * (2 + count + get(dims, 0) * (1 + count))


def iterate(kernel: int, args: int, count: int, dims: int, accumulate: int) -> None:
    """Call a kernel for each index of the outer dimensions."""
    outer = get(dims, 0)
    if outer == 0:
        call(kernel, args, dims, accumulate)
        return
    lengths = dims + 8 * (2 + count)
    steps = lengths + 8 * outer
    index = stack(512)  # 64 dimensions, as many as NumPy allows
    total = 1
    for dim in range(outer):
        put(index, dim, 0)
        total *= get(lengths, dim)
    for _ in range(total):
        call(kernel, args, dims, accumulate)
        dim = outer - 1
        while dim >= 0:
            position = get(index, dim) + 1
            length = get(lengths, dim)
            turned = position == length
            for arg in range(count):
                step = get(steps, dim * count + arg)
                put(args, arg, get(args, arg) + step - (length * step if turned else 0))
            put(index, dim, 0 if turned else position)
            dim = dim - 1 if turned else -1

"""Kernels of recurrent layers: all steps of a sequence, forward and back, around products that BLAS computes.

A step adds what the state gives to what the input gives, in rows: (items, gates). What follows is done for all items at
once, in blocks of (items, hidden), one for each gate: so vectors are full where a layer is narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, memcpy, memset
from tapegrad.kernels.blas import gemm_words
from tapegrad.kernels.blas import product as product_of

sigmoid, tanh = vmath.sigmoid, vmath.tanh

# Words of the geometry: sizes; whether the last step is the first, and the matrix of the forward transposed; gemm.
_STEPS, _ITEMS, _HIDDEN, _REVERSE, _TURNED, _GEMM = range(6)

#: How many blocks a step keeps for the way back. Those of an LSTM are its gates i, f, g, o; those of a GRU r, z, what
#: the state adds to n, and n. An Elman layer keeps its output.
KEPT: Final = {"lstm": 4, "gru": 4, "rnn_tanh": 0, "rnn_relu": 0}


def geometry_of_steps(
    steps: int, items: int, hidden: int, reverse: bool, dtype: str, *, turned: bool = False
) -> list[int]:
    """Return the geometry of the kernels."""
    return [steps, items, hidden, int(reverse), int(turned), *gemm_words(dtype)]


# The cotangents of a step's sums and of the state before, from those of its output and cell, on numbers or tensors.


def lstm_back(dh: Any, dc: Any, i: Any, f: Any, g: Any, o: Any, shown: Any, before: Any) -> tuple[Any, ...]:
    """Gates i, f, g, o; the cell before."""
    dc = dc + dh * o * (1 - shown * shown)
    return (
        dc * g * (i * (1 - i)), dc * before * (f * (1 - f)), dc * i * (1 - g * g), dh * shown * (o * (1 - o)), dc * f,
    )  # fmt: skip


def gru_back(dh: Any, r: Any, z: Any, by_state: Any, n: Any, before: Any) -> tuple[Any, ...]:
    """Gates r, z, n; what the state adds to n; the state before, but for what goes through the gates."""
    dn = dh * (1 - z) * (1 - n * n)
    return dn * by_state * (r * (1 - r)), dh * (before - n) * (z * (1 - z)), dn, dn * r, dh * z


def tanh_back(dh: Any, out: Any) -> tuple[Any, ...]:
    """Return the one gate's cotangent."""
    return (dh * (1 - out * out),)


# Blocks --------------------------------------------------------------------------------------------------------------


def _each(function: Callable[..., Any], count: int, dtype: str, number: int = -1) -> Callable[..., None]:
    """Return a function that computes a block of others, element by element; perhaps one of several results.

    It writes to one block only, as LLVM makes no vectors where too many could overlap.
    """
    several = number >= 0

    def each(n: int, target: int, *sources: int) -> None:
        a, b, c, d = (
            as_pointer(sources[0], dtype), as_pointer(sources[1 % count], dtype), as_pointer(sources[2 % count], dtype),
            as_pointer(sources[3 % count], dtype),
        )  # fmt: skip
        e, f, g, h = (
            as_pointer(sources[4 % count], dtype), as_pointer(sources[5 % count], dtype),
            as_pointer(sources[6 % count], dtype), as_pointer(sources[7 % count], dtype),
        )  # fmt: skip
        out = as_pointer(target, dtype)
        for k in range(n):
            values = (
                load(a, k), load(b, k), load(c, k), load(d, k), load(e, k), load(f, k), load(g, k), load(h, k),
            )[:count]  # fmt: skip
            if several:
                store(out, k, function(*values)[number])
            else:
                store(out, k, function(*values))

    return each


def _rearrange(size: int, to_rows: bool) -> Callable[..., None]:
    """Return a function that copies a block from its columns among rows, or to them."""

    def rearrange(block: int, rows: int, items: int, hidden: int, width: int) -> None:
        for item in range(items):
            own, row = block + item * hidden * size, rows + item * width * size
            if to_rows:
                memcpy(row, own, hidden * size)
            else:
                memcpy(own, row, hidden * size)

    return rearrange


def _relu(dtype: str) -> Callable[[Any], Any]:
    kind = np.dtype(dtype).type
    return lambda x: kind(0) if x <= 0 else x


def _relu_back(dtype: str) -> Callable[[Any, Any], tuple[Any, ...]]:
    kind = np.dtype(dtype).type
    return lambda dh, out: (dh if out > 0 else kind(0),)


# Forward: x, what the state is multiplied by, the first state, the first cell or the bias; the outputs, and, if there
# are, cells, and what is kept; rows of one step.
_X, _W, _H, _MORE, _OUT, _CELLS, _KEPT, _ROWS = range(8)


def _forward(mode: str, dtype: str) -> Callable[[int, int, int], int]:
    size, product, spread = np.dtype(dtype).itemsize, product_of(dtype), _rearrange(np.dtype(dtype).itemsize, False)
    sigmoids, tanhs, relus = _each(sigmoid, 1, dtype), _each(tanh, 1, dtype), _each(_relu(dtype), 1, dtype)
    add = _each(lambda x, y: x + y, 2, dtype)
    cell = _each(lambda i, f, g, before: f * before + i * g, 4, dtype)
    output = _each(lambda o, c: o * tanh(c), 2, dtype)
    new_gate = _each(lambda x, r, by_state: tanh(x + r * by_state), 3, dtype)
    mix = _each(lambda z, n, before: n + z * (before - n), 3, dtype)
    is_lstm, is_gru, is_tanh = mode == "lstm", mode == "gru", mode == "rnn_tanh"
    gates, width_of_rows = (4, 4) if is_lstm else (3, 4) if is_gru else (1, 1)

    def kernel(args: int, geometry: int, unused: int) -> int:
        steps, items, hidden = get(geometry, _STEPS), get(geometry, _ITEMS), get(geometry, _HIDDEN)
        n, block, line = items * hidden, items * hidden * size, hidden * size
        before, cell_before = get(args, _H), get(args, _MORE)
        rows, bias, width = get(args, _ROWS), get(args, _MORE), width_of_rows * hidden
        turned = get(geometry, _TURNED)
        turns, step_of_w = (0, gates * hidden) if turned else (1, hidden)
        for step in range(steps):
            t = steps - 1 - step if get(geometry, _REVERSE) else step
            x, out = get(args, _X) + t * gates * block, get(args, _OUT) + t * block
            if is_gru:
                for item in range(items):
                    own, row = x + item * 3 * line, rows + item * 4 * line
                    add(2 * hidden, row, own, bias)
                    memcpy(row + 2 * line, bias + 2 * line, line)
                    memcpy(row + 3 * line, own + 2 * line, line)
            else:
                rows = rows if is_lstm else out
                memcpy(rows, x, gates * block)
            product(
                geometry + 8 * _GEMM, turns, gates * hidden, items, hidden, get(args, _W), step_of_w, before, hidden, 1,
                rows, width,
            )  # fmt: skip
            if is_lstm or is_gru:
                a = get(args, _KEPT) + t * 4 * block
                b, c, d = a + block, a + 2 * block, a + 3 * block
                for gate in range(4):
                    spread(a + gate * block, rows + gate * line, items, hidden, width)
                sigmoids(2 * n, a, a)
                if is_lstm:
                    own = get(args, _CELLS) + t * block
                    tanhs(n, c, c)
                    sigmoids(n, d, d)
                    cell(n, own, a, b, c, cell_before)
                    output(n, out, d, own)
                    cell_before = own
                else:
                    new_gate(n, d, d, a, c)
                    mix(n, out, b, d, before)
            elif is_tanh:
                tanhs(n, out, out)
            else:
                relus(n, out, out)
            before = out
        return 0

    return kernel


# Back: the cotangents of outputs and, if there are, of cells; the operands and results of the forward; the cotangents
# of x, of what a product adds to it (the same for most), of the matrix (0 if none is wanted), of the first state and
# cell; five blocks.
(
    _CT, _CELL_CT, _BACK_W, _BACK_H, _BACK_C, _BACK_OUT, _BACK_CELLS, _BACK_KEPT, _DX, _DSUMS, _DW, _DH, _DC, _BLOCKS,
) = range(14)  # fmt: skip


def _back(mode: str, dtype: str) -> Callable[[int, int, int], int]:
    size, product, gather = np.dtype(dtype).itemsize, product_of(dtype), _rearrange(np.dtype(dtype).itemsize, True)
    add = _each(lambda x, y: x + y, 2, dtype)
    tanhs, simple = _each(tanh, 1, dtype), _each(tanh_back if mode == "rnn_tanh" else _relu_back(dtype), 2, dtype, 0)
    to_i, to_f, to_g, to_o, to_cell = (_each(lstm_back, 8, dtype, number) for number in range(5))
    to_r, to_z, to_n, to_sum, to_state = (_each(gru_back, 6, dtype, number) for number in range(5))
    is_lstm, is_gru = mode == "lstm", mode == "gru"
    gates = 4 if is_lstm else 3 if is_gru else 1

    def kernel(args: int, geometry: int, unused: int) -> int:
        steps, items, hidden = get(geometry, _STEPS), get(geometry, _ITEMS), get(geometry, _HIDDEN)
        n, block, line, width = items * hidden, items * hidden * size, hidden * size, gates * hidden
        w, gemm, outs = get(args, _BACK_W), geometry + 8 * _GEMM, get(args, _BACK_OUT)
        dh, dc = get(args, _DH), get(args, _DC)
        p = get(args, _BLOCKS)
        q, u, v, shown = p + block, p + 2 * block, p + 3 * block, p + 4 * block
        memset(dh, block)
        if is_lstm:
            memset(dc, block)
        for step in range(steps):
            t = step if get(geometry, _REVERSE) else steps - 1 - step
            to_before = 1 if get(geometry, _REVERSE) else -1
            is_first = step + 1 == steps
            before = get(args, _BACK_H) if is_first else outs + (t + to_before) * block
            dx, dsums = get(args, _DX) + t * gates * block, get(args, _DSUMS) + t * gates * block
            a = get(args, _BACK_KEPT) + t * 4 * block
            b, c, d = a + block, a + 2 * block, a + 3 * block
            add(n, dh, dh, get(args, _CT) + t * block)
            if is_lstm:
                cells = get(args, _BACK_CELLS)
                add(n, dc, dc, get(args, _CELL_CT) + t * block)
                was = get(args, _BACK_C) if is_first else cells + (t + to_before) * block
                tanhs(n, shown, cells + t * block)
                to_i(n, p, dh, dc, a, b, c, d, shown, was)
                to_f(n, q, dh, dc, a, b, c, d, shown, was)
                to_g(n, u, dh, dc, a, b, c, d, shown, was)
                to_o(n, v, dh, dc, a, b, c, d, shown, was)
                to_cell(n, dc, dh, dc, a, b, c, d, shown, was)
                for gate in range(4):
                    gather(p + gate * block, dx + gate * line, items, hidden, width)
            elif is_gru:
                to_r(n, p, dh, a, b, c, d, before)
                to_z(n, q, dh, a, b, c, d, before)
                to_n(n, u, dh, a, b, c, d, before)
                to_sum(n, v, dh, a, b, c, d, before)
                to_state(n, dh, dh, a, b, c, d, before)
                for gate in range(2):
                    gather(p + gate * block, dx + gate * line, items, hidden, width)
                    gather(p + gate * block, dsums + gate * line, items, hidden, width)
                gather(u, dx + 2 * line, items, hidden, width)
                gather(v, dsums + 2 * line, items, hidden, width)
            else:
                simple(n, dx, dh, outs + t * block)
            product(gemm, 0, hidden, items, width, w, hidden, dsums, width, 1 if is_gru else 0, dh, hidden)
        dw = get(args, _DW)
        if dw != 0:
            later = 0 if get(geometry, _REVERSE) else gates * block
            earlier = block if get(geometry, _REVERSE) else 0
            first = steps - 1 if get(geometry, _REVERSE) else 0
            sums, rest = get(args, _DSUMS), (steps - 1) * items
            product(
                gemm, 2, hidden, width, items, get(args, _BACK_H), hidden, sums + first * gates * block, width, 0, dw,
                hidden,
            )  # fmt: skip
            if rest > 0:
                product(gemm, 2, hidden, width, rest, outs + earlier, hidden, sums + later, width, 1, dw, hidden)
        return 0

    return kernel


@cache
def recurrent_address(way: str, mode: str, dtype: str) -> int:
    """Return the address of a kernel; `way` is forward or back."""
    return address_of(f"{mode}-{way}-{dtype}", (_forward if way == "forward" else _back)(mode, dtype))

"""The line of cross products: three elements of each operand, and of the result."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.lines import LINES, Line


def _cross(dtype: str, width: int) -> Line:
    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, y, out = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
        a, b, c = load_at(x, 0, dtype), load_at(x, stride, dtype), load_at(x, 2 * stride, dtype)
        p, q, r = load_at(y, 0, dtype), load_at(y, stride, dtype), load_at(y, 2 * stride, dtype)
        first, second, third = b * r - c * q, c * p - a * r, a * q - b * p
        if adds:
            first += load_at(out, 0, dtype)
            second += load_at(out, stride, dtype)
            third += load_at(out, 2 * stride, dtype)
        store_at(out, 0, first, dtype)
        store_at(out, stride, second, dtype)
        store_at(out, 2 * stride, third, dtype)
        return 0

    return line


CROSS: Final = "cross"
LINES[CROSS] = _cross

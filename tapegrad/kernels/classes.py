"""Functions of one line for kernels: the negative log-likelihood of a class."""

from __future__ import annotations

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.lines import IGNORED, LINES, Line


def _class_nll(dtype: str, width: int) -> Line:
    kind, ignored = np.dtype(dtype).type, IGNORED

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, chosen = get(args, 0) + start, get(get(args, 1), number)
        if chosen == ignored:
            store(as_pointer(get(args, 2), dtype), number, kind(0))
        elif chosen < 0 or chosen >= n:
            return 1
        else:
            store(as_pointer(get(args, 2), dtype), number, -load_at(x, chosen * stride, dtype))
        return 0

    return line


def _class_nll_back(dtype: str, width: int) -> Line:
    kind, ignored = np.dtype(dtype).type, IGNORED

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        chosen, target = get(get(args, 1), number), get(args, 2) + start
        for k in range(0 if adds else n):
            store_at(target, k * stride, kind(0), dtype)
        if chosen != ignored:
            value = load_at(target, chosen * stride, dtype) - load(as_pointer(get(args, 0), dtype), number)
            store_at(target, chosen * stride, value, dtype)
        return 0

    return line


LINES.update({"class_nll": _class_nll, "class_nll-back": _class_nll_back})

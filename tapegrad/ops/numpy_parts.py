"""NumPy's ufuncs that are several of our functions, and `reduceat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.broadcasting import squeeze, unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import conj
from tapegrad.ops.concat import stack
from tapegrad.ops.fill import zeros
from tapegrad.ops.index_dim import index_add, index_select
from tapegrad.ops.linalg import matmul
from tapegrad.ops.rounding import floor_divide, frac, remainder, trunc
from tapegrad.ops.splitting import narrow
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor, from_array


def _matvec(x: Any, y: Any) -> Tensor:
    return squeeze(matmul(x, unsqueeze(as_operand(y, "matvec", "x2", 2), -1)), -1)


def _vecmat(x: Any, y: Any) -> Tensor:
    return squeeze(matmul(unsqueeze(conj(as_operand(x, "vecmat", "x1", 1)), -2), y), -2)


#: What ufuncs compute, by their names.
SEVERAL: Final[dict[str, Callable[..., Any]]] = {
    "divmod": lambda x, y: (floor_divide(x, y), remainder(x, y)), "modf": lambda x: (frac(x), trunc(x)),
    "matvec": _matvec, "vecmat": _vecmat,
    "bitwise_count": lambda x: from_array(np.asarray(np.bitwise_count(x._data))),
}  # fmt: skip


def reduceat(call: str, reduction: Callable[..., Tensor], x: Any, indices: Any, axis: int = 0) -> Tensor:
    """Return reductions of the elements from each index to the next, as ``ufunc.reduceat`` does.

    Raises
    ------
    IndexError
        If an index is outside.
    """
    operand, begins = as_operand(x, call, "array", 1), np.asarray(getattr(indices, "_data", indices)).astype(np.int64)
    dim = one_dim(call, operand.ndim, axis)
    n = operand.shape[dim]
    wrong = begins[(begins < 0) | (begins >= n)]
    if len(wrong):
        raise IndexError(f"index {wrong[0]} out-of-bounds in {call}.reduceat [0, {n})")
    lengths = np.maximum(np.append(begins[1:], n) - begins, 1)
    if call == "np.add":
        operand = cast(operand, np.int64) if operand.dtype.kind == "b" else operand
        rows = np.repeat(begins - np.append(0, np.cumsum(lengths)[:-1]), lengths) + np.arange(lengths.sum())
        shape = (*operand.shape[:dim], len(begins), *operand.shape[dim + 1 :])
        sums = zeros(shape, dtype=operand.dtype)
        added: Tensor = index_add(
            sums, dim, np.repeat(np.arange(len(begins)), lengths), index_select(operand, dim, rows)
        )
        return added
    if not len(begins):
        return index_select(operand, dim, begins)
    pairs = zip(begins.tolist(), lengths.tolist(), strict=True)
    joined: Tensor = stack([reduction(narrow(operand, dim, begin, length), dim) for begin, length in pairs], dim)
    return joined

"""What NumPy's functions take for operands: lists in place of arrays, and products of any dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.numpy_ufuncs import in_common_dtype, no_list

# Products, whose first two operands are arrays of any dtypes.
_PRODUCTS: Final = frozenset((
    np.dot, np.inner, np.vdot, np.tensordot, np.convolve, np.correlate, np.linalg.solve, np.linalg.lstsq,
    np.linalg.tensordot, np.linalg.matmul, np.linalg.vecdot, np.linalg.tensorsolve,
))  # fmt: skip
# Others that take arrays, and no lists that are something else.
_OF_ARRAYS: Final = frozenset((
    np.append, np.bincount, np.broadcast_arrays, np.clip, np.corrcoef, np.cov, np.cross, np.kron, np.linalg.cross,
    np.linalg.outer, np.meshgrid, np.outer, np.polyval, np.searchsorted, np.trapezoid, np.where,
))  # fmt: skip
_OF_SEQUENCES: Final = frozenset((np.column_stack, np.dstack, np.hstack, np.stack, np.vstack))


def operands(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments of a function of NumPy, with arrays in place of lists of numbers and tensors."""
    if function in _PRODUCTS:
        return [*in_common_dtype(list(map(no_list, args[:2]))), *args[2:]], kwargs
    if function in _OF_ARRAYS:
        return list(map(no_list, args)), {key: no_list(value) for key, value in kwargs.items()}
    if function in _OF_SEQUENCES and args and isinstance(args[0], (list, tuple)):
        return [list(map(no_list, args[0])), *args[1:]], kwargs
    if function is np.linalg.multi_dot and args and isinstance(args[0], (list, tuple)):
        return [in_common_dtype(list(map(no_list, args[0]))), *args[1:]], kwargs
    if function is np.einsum and isinstance(args[0], str):  # otherwise lists are subscripts
        return [args[0], *in_common_dtype(list(map(no_list, args[1:])))], kwargs
    if function is np.average:
        return args, {key: value if key == "axis" else no_list(value) for key, value in kwargs.items()}
    return args, kwargs

"""The dtypes of tensors, by PyTorch's names, and the default dtype. They are NumPy's dtype objects."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike as DTypeLike
else:
    DTypeLike = Any  # the module documents its types at import, for as long as four of our files take

float32 = float = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
complex64 = cfloat = np.dtype(np.complex64)
complex128 = cdouble = np.dtype(np.complex128)
int8, uint8 = np.dtype(np.int8), np.dtype(np.uint8)
int16 = short = np.dtype(np.int16)
int32 = int = np.dtype(np.int32)
int64 = long = np.dtype(np.int64)
bool_ = bool = np.dtype(np.bool_)


class _Half:
    """The name of a dtype that there is not: programs name it beside others, and may never use it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    @property
    def dtype(self) -> np.dtype:
        """Raise TypeError: what NumPy asks for when it makes a dtype of this."""
        raise TypeError(f"can't make a tensor of dtype {self._name}: there is no half precision; use float32")


float16 = half = _Half("float16")
bfloat16 = _Half("bfloat16")

_default_dtype: np.dtype = np.dtype(np.float64)
_LARGEST_SINGLE = np.finfo(np.float32).max.item()
_ALLOWED = {dtype: dtype for dtype in (float32, float64, complex64, complex128, bool, int8, int16, int32, int64, uint8)}


#: Functions that are called when the default dtype has changed.
on_change: list[Callable[[], None]] = []


def default_dtype() -> np.dtype:
    """Return the dtype that Python floats get; float64 unless `set_default_dtype` changed it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.get_default_dtype()
    dtype('float64')
    """
    return _default_dtype


def set_default_dtype(dtype: DTypeLike) -> None:
    """Set the dtype of tensors that are made from Python floats without a `dtype`.

    Parameters
    ----------
    dtype : float32 or float64

    Raises
    ------
    TypeError
        If it is another dtype.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_default_dtype("float32")
    >>> tg.tensor([1.0]).dtype
    dtype('float32')
    >>> tg.set_default_dtype("float64")
    """
    global _default_dtype
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"only floating-point types are supported as the default type, but got {dtype}")
    if dtype == _default_dtype:
        return  # what is known of operations stays
    _default_dtype = dtype
    for tell in on_change:
        tell()


def check_range(number: Any, dtype: np.dtype) -> None:
    """Raise RuntimeError if a dtype cannot hold a Python number; unsigned ones wrap negative integers around."""
    if not isinstance(number, (builtins.int, builtins.float)):
        if isinstance(number, builtins.complex) and dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {number} is complex")
        return
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        wraps = dtype.kind == "u" and isinstance(number, builtins.int)
        fits = (-limits.max if wraps else limits.min) <= number <= limits.max  # nan is in no range
    else:
        fits = dtype.char not in "fF" or not _LARGEST_SINGLE < abs(number) < math.inf
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow; it is {number}")


def check_list(array: np.ndarray, dtype: np.dtype) -> None:
    """Raise RuntimeError as `check_range` does if a dtype of integers cannot hold the numbers of a list."""
    if dtype.kind in "iu" and array.dtype.kind in "iuf" and array.size and array.dtype != dtype:
        whole = array.dtype.kind != "f"
        for number in (array.min(), array.max()):  # nan, if there is one
            check_range(number.item() if whole else builtins.float(number), dtype)


def are_floats(data: Any) -> builtins.bool:
    """Whether data are a float, floats in a list, or such lists of one length: what most tensors are made of.

    >>> are_floats([1.0, 2.0]), are_floats([[1.0], [2.0]]), are_floats([[1.0], [2]])
    (True, True, False)
    """
    if data.__class__ is not list or not data:
        return data.__class__ is builtins.float
    rows = data if data[0].__class__ is list else [data]
    length = len(rows[0])
    for row in rows:
        if row.__class__ is not list or len(row) != length:
            return False
        for item in row:
            if item.__class__ is not builtins.float:
                return False
    return length > 0


def dtypes_in(data: Any) -> set[np.dtype]:
    """Return the dtypes of what stands in nested lists, where Python's numbers have the default ones.

    >>> sorted(map(str, dtypes_in([np.float32(1), [2, True]])))
    ['bool', 'float32', 'int64']
    """
    if not isinstance(data, (list, tuple)):
        own = getattr(data, "dtype", None)
        if own is None:
            own = np.asarray(data).dtype
            own = np.result_type(_default_dtype, np.complex64) if own.kind == "c" else own
            own = _default_dtype if own.kind == "f" else own
        return {own}
    found: set[np.dtype] = set()
    kinds = set(map(builtins.type, data))  # where there is one kind of numbers, one number tells
    for kind in kinds:
        one_tells = issubclass(kind, (np.generic, builtins.bool, builtins.int, builtins.float, builtins.complex))
        for item in data:
            if item.__class__ is kind:
                found |= dtypes_in(item)
                if one_tells:
                    break
    return found


def check_dtype(dtype: np.dtype) -> None:
    """Raise TypeError unless a tensor can have this dtype."""
    if dtype not in _ALLOWED:
        raise TypeError(
            f"can't make a tensor of dtype {dtype}; the supported types are {', '.join(map(str, _ALLOWED))}. "
            f"Convert the array first"
        )


def canonical(dtype: np.dtype) -> np.dtype:
    """Return the object that stands for a dtype. NumPy has others that are equal, e.g. of arrays that were unpickled.

    >>> canonical(np.dtype(np.float64).newbyteorder("=")) is float64
    True
    """
    return _ALLOWED.get(dtype, dtype)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real parts of numbers of a dtype.

    >>> real_dtype(np.dtype("complex64")), real_dtype(np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    return np.empty(0, dtype).real.dtype


#: PyTorch's names of dtypes in messages.
TORCH_NAMES = {
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip

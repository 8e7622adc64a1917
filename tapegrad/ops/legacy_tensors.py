"""Creation: PyTorch's older functions, named after a dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dtypes import set_default_dtype
from tapegrad.ops.creation import tensor
from tapegrad.ops.fill import empty
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


class _Kind:
    """A function that makes tensors of a dtype, and of which those are instances."""

    def __init__(self, call: Callable[..., Tensor], dtype: str) -> None:
        functools.update_wrapper(self, call)
        self._call, self.dtype = call, np.dtype(dtype)

    def __call__(self, *data: Any) -> Tensor:
        return self._call(*data)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == self.dtype

    def __repr__(self) -> str:
        return f"<class 'tapegrad.{self.__name__}'>"  # type: ignore[attr-defined]


def _legacy(name: str, dtype: str) -> Callable[..., Tensor]:
    def call(*data: Any) -> Tensor:
        is_shape = len(data) != 1 or isinstance(data[0], int)
        return empty(*data, dtype=dtype) if is_shape else tensor(data[0], dtype=dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Return a new {dtype} tensor with a copy of the data; today one writes `tensor` with a `dtype`.

    Parameters
    ----------
    *data : nested list or array, or int
        Numbers are the shape of a tensor whose elements are not set to anything.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.{name}([1, 2]).dtype
    dtype('{dtype}')
    """
    return _Kind(call, dtype)


FloatTensor = public()(_legacy("FloatTensor", "float32"))
DoubleTensor = public()(_legacy("DoubleTensor", "float64"))
LongTensor = public()(_legacy("LongTensor", "int64"))
IntTensor = public()(_legacy("IntTensor", "int32"))
ShortTensor = public()(_legacy("ShortTensor", "int16"))
CharTensor = public()(_legacy("CharTensor", "int8"))
ByteTensor = public()(_legacy("ByteTensor", "uint8"))
BoolTensor = public()(_legacy("BoolTensor", "bool"))


def set_default_tensor_type(kind: Any) -> None:
    """Set the default dtype to that of a kind of tensors; today one writes `set_default_dtype`.

    Parameters
    ----------
    kind : callable or str
        `FloatTensor` or `DoubleTensor`, or the name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_default_tensor_type(tg.FloatTensor)
    >>> tg.ones(1).dtype
    dtype('float32')
    >>> tg.set_default_tensor_type("torch.DoubleTensor")
    """
    name = kind.rpartition(".")[2] if isinstance(kind, str) else getattr(kind, "__name__", kind)
    dtypes = {"FloatTensor": "float32", "DoubleTensor": "float64"}
    if name not in dtypes:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, not {name}")
    set_default_dtype(dtypes[name])

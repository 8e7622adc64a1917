"""Creation: PyTorch's older functions, named after a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.ops.creation import tensor
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


def _legacy(name: str, dtype: str) -> Callable[[Any], Tensor]:
    def call(data: Any) -> Tensor:
        return tensor(data, dtype=dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Return a new {dtype} tensor with a copy of the data; today one writes `tensor` with a `dtype`.

    Parameters
    ----------
    data : nested list or array

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.{name}([1, 2]).dtype
    dtype('{dtype}')
    """
    return call


FloatTensor = public()(_legacy("FloatTensor", "float32"))
DoubleTensor = public()(_legacy("DoubleTensor", "float64"))
LongTensor = public()(_legacy("LongTensor", "int64"))
IntTensor = public()(_legacy("IntTensor", "int32"))
ShortTensor = public()(_legacy("ShortTensor", "int16"))
CharTensor = public()(_legacy("CharTensor", "int8"))
ByteTensor = public()(_legacy("ByteTensor", "uint8"))
BoolTensor = public()(_legacy("BoolTensor", "bool"))

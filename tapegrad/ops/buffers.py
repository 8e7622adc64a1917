"""Creation: tensors over the memory of other objects, by Python's buffers and by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.devices import DeviceLike, check_device
from tapegrad.dtypes import DTypeLike
from tapegrad.ops.creation import from_numpy
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


@public()
def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a vector over the memory of a buffer; a copy if that may not be written to.

    Parameters
    ----------
    buffer : object
        A bytearray, an array of the standard library, memory that is mapped to a file.
    dtype : dtype
    count : int
        How many elements; default all.
    offset : int
        How many bytes stand before them.
    requires_grad : bool

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If there are not as many bytes, or no element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.frombuffer(bytearray([1, 0, 0, 0, 2, 0, 0, 0]), dtype=tg.int32).tolist()
    [1, 2]
    """
    wanted, length = np.dtype(dtype), memoryview(buffer).nbytes
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    rest = length - offset
    if count < 0 and rest % wanted.itemsize:
        raise ValueError(
            f"buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({wanted.itemsize})"
        )
    if count * wanted.itemsize > rest:
        raise ValueError(
            f"requested buffer length ({count} * {wanted.itemsize} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({length} bytes)"
        )
    array = np.frombuffer(buffer, wanted, count, offset)
    return from_numpy(array if array.flags.writeable else array.copy()).requires_grad_(requires_grad)


@public()
def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of another library's array or tensor, by the DLPack protocol.

    Parameters
    ----------
    ext_tensor : object
        With a method ``__dlpack__``, in the memory of the CPU.
    device : device, optional
        Only the CPU.
    copy : bool, optional
        Copy the memory, or raise an error if that is needed; default only if it is needed.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import numpy as np, tapegrad as tg
    >>> tg.from_dlpack(np.arange(3.0))
    tensor([0., 1., 2.])
    """
    check_device(device)
    array = np.from_dlpack(ext_tensor)
    if copy is False and not array.flags.writeable:
        raise BufferError("from_dlpack(): the memory is read-only, so it must be copied; leave out copy=False")
    return from_numpy(array.copy() if copy or not array.flags.writeable else array)

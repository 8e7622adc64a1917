"""Types of PyTorch for what NumPy and Python have already: sizes, and the limits of dtypes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tapegrad.dtypes import DTypeLike, default_dtype

__all__ = [
    "Size", "channels_last", "channels_last_3d", "contiguous_format", "finfo", "iinfo", "layout", "memory_format",
    "preserve_format", "strided",
]  # fmt: skip


class _IsTuple(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, tuple)


class Size(tuple[int, ...], metaclass=_IsTuple):
    """A tuple of lengths. Shapes of tensors are plain tuples, and count as instances.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.Size([2, 3]).numel(), isinstance(tg.ones(2, 3).shape, tg.Size)
    (6, True)
    """

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)


class memory_format:  # noqa: N801  # PyTorch's name
    """The order of elements in memory, which programs of PyTorch name. Memory has NumPy's order, whatever they say.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.zeros_like(tg.ones(2), memory_format=tg.preserve_format), tg.preserve_format
    (tensor([0., 0.]), tapegrad.preserve_format)
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tapegrad.{self.name}"


class layout(memory_format):  # noqa: N801  # PyTorch's name
    """How elements are kept: all tensors are dense, which PyTorch calls strided.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).layout is tg.strided
    True
    """


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
strided = layout("strided")


class _Limits:
    """What NumPy says of a dtype, as Python's numbers."""

    _numpy: ClassVar[Any]
    _kinds: ClassVar[str]
    _fields: ClassVar[tuple[str, ...]]
    _wrong: ClassVar[str]

    def __init__(self, type: DTypeLike | None = None) -> None:
        dtype = default_dtype() if type is None else np.dtype(type)
        if dtype.kind not in self._kinds:
            raise TypeError(f"{self._wrong}; this one is {dtype}")
        limits = self._numpy(dtype)
        self.bits, self.dtype = int(limits.bits), limits.dtype.name
        for name in self._fields:
            value = getattr(limits, name)
            setattr(self, name, value.item() if isinstance(value, np.generic) else value)

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__ and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name):.6g}" for name in self._fields]
        return f"{self.__class__.__name__}({', '.join(fields)}, dtype={self.dtype})"


class finfo(_Limits):  # noqa: N801  # PyTorch's name
    """The limits of a floating dtype.

    Parameters
    ----------
    type : dtype, optional
        By default the default dtype; of a complex one, that of its parts.

    Attributes
    ----------
    bits : int
    resolution, min, max, eps, smallest_normal, tiny : float
    dtype : str

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.finfo(tg.float32).eps
    1.1920928955078125e-07
    """

    _numpy, _kinds = np.finfo, "fc"
    _fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
    _wrong = "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"


class iinfo(_Limits):  # noqa: N801  # PyTorch's name
    """The limits of a dtype of integers.

    Parameters
    ----------
    type : dtype

    Attributes
    ----------
    bits, min, max : int
    dtype : str

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.iinfo(tg.int8).max
    127
    """

    _numpy, _kinds, _fields = np.iinfo, "iu", ("min", "max")
    _wrong = "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"

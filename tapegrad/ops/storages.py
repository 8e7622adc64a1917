"""The memory behind tensors, as PyTorch shows it: ``x.storage()`` and ``x.untyped_storage()``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.devices import CPU
from tapegrad.ops.table.public import public
from tapegrad.tape import versions
from tapegrad.tensor import Tensor

__all__ = ["TypedStorage", "UntypedStorage"]

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


def _memory_of(tensor: Tensor) -> np.ndarray:
    """Return all elements of the memory that a tensor is a view of, in the order in which they lie."""
    modes.tell("looked", tensor)
    owner = versions.owner_of(tensor._array())
    first, last = np.lib.array_utils.byte_bounds(owner)
    start = owner.ctypes.data - first  # not 0 where strides are negative
    corner = owner[tuple(slice(None, None, -1 if step < 0 else 1) for step in owner.strides)] if start else owner
    count = (last - first) // owner.itemsize if owner.size else 0
    return np.lib.stride_tricks.as_strided(corner, (count,), (owner.itemsize,))


class UntypedStorage:
    """The bytes of a tensor's memory: `Tensor.untyped_storage` returns them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
    (48, True)
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._elements = _memory_of(tensor)
        self._shown = self._elements.view(np.uint8)

    @property
    def device(self) -> Any:
        """Where the memory is: the CPU."""
        return CPU

    def data_ptr(self) -> int:
        """Return the address of the memory."""
        return int(self._elements.ctypes.data)

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return int(self._elements.nbytes)

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return int(self._shown.itemsize)

    def size(self) -> int:
        """Return how many elements there are."""
        return len(self)

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._shown.tolist()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._shown)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self._shown[index]
        return found.tolist() if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._tensor.requires_grad and modes.is_grad_enabled():
            raise RuntimeError(errors.NUMPY_OF_GRAD)
        self._shown[index] = value
        versions.note(self._tensor._array())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr() and self._shown.dtype == other._shown.dtype

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        kind = "" if type(self) is UntypedStorage else f"dtype={self._shown.dtype.name}, "
        lines = "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[tapegrad.{type(self).__name__}({kind}device=cpu) of size {len(self)}]"


class TypedStorage(UntypedStorage):
    """The elements of a tensor's memory, whatever the tensor's shape: `Tensor.storage` returns them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.TypedStorage(x.t())
     1.0
     2.0
     3.0
     4.0
    [tapegrad.TypedStorage(dtype=float64, device=cpu) of size 4]
    """

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor)
        self._shown = self._elements

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._shown.dtype

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage(self._tensor)


@public(namespaces=(), method=True)
def untyped_storage(input: Tensor) -> UntypedStorage:
    """Return the bytes of the memory that the tensor, and all that share its memory, look at.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).untyped_storage().nbytes()
    48
    """
    return UntypedStorage(input)


@public(namespaces=(), method=True)
def storage(input: Tensor) -> TypedStorage:
    """Return the elements of the memory that the tensor looks at; PyTorch has deprecated it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     tg.tensor([[1.0, 2.0], [3.0, 4.0]])[1].storage().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    warnings.warn(_DEPRECATED, UserWarning, stacklevel=2)
    return TypedStorage(input)


@public()
def is_storage(obj: Any) -> bool:
    """Whether an object is the memory of a tensor.

    Parameters
    ----------
    obj : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_storage(tg.ones(2).untyped_storage()), tg.is_storage(tg.ones(2))
    (True, False)
    """
    return isinstance(obj, UntypedStorage)


@public(namespaces=(), method=True)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors show the same elements of the same memory, in the same shape.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2)
    >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
    (True, False)
    """
    first, second = input._array(), tensor._array()
    layouts = input._layout.plain is tensor._layout.plain
    return layouts and first.ctypes.data == second.ctypes.data


@public(namespaces=(), method=True)
def set_(input: Tensor, source: Tensor) -> Tensor:
    """Let the tensor show the memory of another one, with its shape, as ``x.data = source`` does.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y = tg.zeros(2), tg.ones(3)
    >>> x.set_(y)
    tensor([1., 1., 1.])
    """
    input.data = source
    return input

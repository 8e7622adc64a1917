"""Facts about a tensor: its kind, and how its elements lie in memory. None has a gradient."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.public import public
from tapegrad.tape import versions
from tapegrad.tape.graph import edge_of
from tapegrad.tape.layout import InferenceLayout
from tapegrad.tape.views import base_of, renewed, root_of
from tapegrad.tensor import Tensor


@public()
def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Parameters
    ----------
    obj : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> tg.is_tensor(tg.ones(2)), tg.is_tensor(np.ones(2))
    (True, False)
    """
    return isinstance(obj, Tensor)


@public()
def typename(obj: Any, /) -> str:
    """Return the name of the type of an object, with its module; of a tensor PyTorch's name of its type.

    Parameters
    ----------
    obj : object

    Returns
    -------
    str

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.typename(tg.tensor([1, 2])), tg.typename(tg.nn.Parameter), tg.typename(1.0)
    ('torch.LongTensor', 'tapegrad.nn.parameter.Parameter', 'float')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    own = obj if hasattr(obj, "__name__") else type(obj)
    name, module = getattr(own, "__qualname__", own.__name__), getattr(own, "__module__", "")
    return name if module in ("", None, "builtins") else f"{module}.{name}"


@public(method=True)
def is_inference(input: Any) -> bool:
    """Whether a tensor was computed in `inference_mode`.

    Parameters
    ----------
    input : Tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.inference_mode():
    ...     x = tg.ones(2) * 2
    >>> tg.is_inference(x), x.clone().is_inference()
    (True, False)
    """
    return isinstance(input._layout.plain, InferenceLayout)


@public(method=True)
def is_nonzero(input: Any) -> bool:
    """Whether the only element is not zero.

    Parameters
    ----------
    input : Tensor or array

    Returns
    -------
    bool

    Raises
    ------
    RuntimeError
        If there is no element, or there are several.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_nonzero(tg.tensor([0.5]))
    True
    """
    return bool(as_operand(input, "is_nonzero", "input", 1))


@public(method=True)
def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers.

    Parameters
    ----------
    input : Tensor or array

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_signed(tg.ones(2)), tg.is_signed(tg.tensor([True]))
    (True, False)
    """
    return as_operand(input, "is_signed", "input", 1).dtype.kind in "ifc"


@public(method=True)
def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape.

    Parameters
    ----------
    input, other : Tensor or array

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_same_size(tg.ones(2), tg.ones(2, 1))
    False
    """
    x, y = as_operand(input, "is_same_size", "input", 1), as_operand(other, "is_same_size", "other", 2)
    return x.shape == y.shape


@public(namespaces=(), method=True)
def is_contiguous(input: Tensor) -> bool:
    """Whether the elements lie in memory in their order.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2, 3)
    >>> x.is_contiguous(), x.T.is_contiguous()
    (True, False)
    """
    return input._layout.contiguous


@public(namespaces=(), method=True)
def nelement(input: Tensor) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).nelement()
    6
    """
    return input.numel()


@public(namespaces=(), method=True)
def ndimension(input: Tensor) -> int:
    """Return the number of dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).ndimension()
    2
    """
    return input.ndim


@public(namespaces=(), attribute=True)
def _version(input: Tensor) -> int:
    """Return how often the memory was written to in place; views and `detach` share it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(2)
    >>> x.add_(1.0).mul_(2.0)._version
    2
    """
    if is_inference(input):
        raise RuntimeError("Inference tensors do not track version counter.")
    return versions.version(input._array())


@public(namespaces=(), attribute=True)
def output_nr(input: Tensor) -> int:
    """Return which result of its `grad_fn` the tensor is, counted from 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([3.0, 1.0], requires_grad=True)
    >>> values, _ = tg.sort(x)
    >>> values.output_nr
    0
    """
    node = renewed(input)._node
    return 0 if node is None else edge_of(node)[1]


@public(namespaces=(), method=True)
def _is_view(input: Tensor) -> bool:
    """Whether the memory belongs to another tensor, of whose history this one's is a part.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(3)
    >>> x._is_view(), x[1:]._is_view()
    (False, True)
    """
    return hasattr(input, "_viewed")


@public(namespaces=(), attribute=True)
def _base(input: Tensor) -> Tensor | None:
    """Return the tensor of which a view shows a part; None if the tensor is no view.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(3)
    >>> x[1:]._base is x, x._base
    (True, None)
    """
    return base_of(input)


@public(namespaces=(), attribute=True)
def itemsize(input: Tensor) -> int:
    """Return the size of an element in bytes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, dtype=tg.float32).itemsize
    4
    """
    return input.dtype.itemsize


@public(namespaces=(), method=True)
def element_size(input: Tensor) -> int:
    """Return the size of an element in bytes, as `itemsize`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).element_size()
    8
    """
    return itemsize(input)


@public(namespaces=(), attribute=True)
def nbytes(input: Tensor) -> int:
    """Return the size of all elements in bytes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).nbytes
    48
    """
    return input.numel() * itemsize(input)


@public(namespaces=(), method=True)
def data_ptr(input: Tensor) -> int:
    """Return the address of the first element, 0 if there is none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.ones(3)
    >>> x[1:].data_ptr() - x.data_ptr()
    8
    """
    return int(input._array().ctypes.data) if input.numel() else 0


@public(namespaces=(), method=True)
def stride(input: Tensor, dim: int | None = None) -> Any:
    """Return the strides in elements, or that of one dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, 3).stride(), tg.ones(2, 3).T.stride(0)
    ((3, 1), 1)
    """
    layout = input._layout
    strides = _in_elements(layout.strides, layout.dtype.itemsize)
    return strides if dim is None else strides[dim]


@functools.lru_cache(maxsize=1024)
def _in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple([step // itemsize for step in strides])


@public(namespaces=(), method=True)
def storage_offset(input: Tensor) -> int:
    """Return how many elements of the memory stand before the first one: 0 if the tensor is no view.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(5)[2:].storage_offset()
    2
    """
    first, last = np.lib.array_utils.byte_bounds(root_of(input)._array())
    address = data_ptr(input)
    return (address - first) // input.dtype.itemsize if first <= address < last else 0

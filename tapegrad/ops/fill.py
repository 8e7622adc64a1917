"""Creation: tensors of one value, of a given shape or like another tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.devices import DeviceLike
from tapegrad.dtypes import DTypeLike, check_range, default_dtype
from tapegrad.ops.broadcasting import clone
from tapegrad.ops.creation import array_of, as_tensor, dtype_or_default, made, shape_of, tensor
from tapegrad.ops.table import docs
from tapegrad.ops.table.callers import into
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


@public(common=docs.CREATED)
def empty(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return a tensor whose elements are not set to anything.

    Parameters
    ----------
    *shape : int
        The shape, as integers or as one sequence.
    size : sequence of int, optional
        The same by name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.empty(2, 3).shape
    (2, 3)
    """
    if out is not None:
        return into(out, "empty", lambda kind: empty(*shape, size=size, dtype=kind), (dtype,), 0)  # type: ignore[no-any-return]
    return made(np.empty(shape_of("empty", shape, size), dtype_or_default(dtype)), requires_grad, device)


@public(common=docs.NEW_TENSOR)
def scalar_tensor(
    s: Any, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor without dimensions.

    Parameters
    ----------
    s : number

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.scalar_tensor(2)
    tensor(2.)
    """
    return made(np.full((), s, dtype_or_default(dtype)), requires_grad, device)


@public()
def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    copy: bool | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return data as a tensor: as `as_tensor` does, or as a copy.

    Parameters
    ----------
    obj : Tensor, array, number or sequence
    dtype : dtype, optional
    copy : bool, optional
        Whether to copy; default only where it must be. A copy of a tensor is recorded.
    device : device, optional
        Only the CPU.
    requires_grad : bool
        Of a result that is not recorded.

    Raises
    ------
    ValueError
        If `copy` is False, and it must be copied.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.asarray([1, 2], dtype=tg.float64)
    tensor([1., 2.])
    """
    x = as_tensor(obj, dtype, device)
    source = getattr(obj, "_data", obj)
    shares = isinstance(source, np.ndarray) and (x is obj or np.may_share_memory(x._array(), source))
    if copy is False and not shares:
        raise ValueError("can't alias the data of an object of this kind or dtype without a copy: asarray(copy=False)")
    if copy and shares:
        x = clone(x)
    return x.requires_grad_() if requires_grad and x.is_leaf else x


@public(common=docs.CREATED)
def zeros(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    *shape : int
        The shape, as integers or as one sequence.
    size : sequence of int, optional
        The same by name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.zeros(2)
    tensor([0., 0.])
    """
    if out is not None:
        return into(out, "zeros", lambda kind: zeros(*shape, size=size, dtype=kind), (dtype,), 0)  # type: ignore[no-any-return]
    return made(np.zeros(shape_of("zeros", shape, size), dtype_or_default(dtype)), requires_grad, device)


@public(common=docs.CREATED)
def ones(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return a tensor of ones.

    Parameters
    ----------
    *shape : int
        The shape, as integers or as one sequence.
    size : sequence of int, optional
        The same by name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2)
    tensor([1., 1.])
    """
    if out is not None:
        return into(out, "ones", lambda kind: ones(*shape, size=size, dtype=kind), (dtype,), 0)  # type: ignore[no-any-return]
    array = np.empty(shape_of("ones", shape, size), dtype_or_default(dtype))
    array.fill(1)
    return made(array, requires_grad, device)


@public()
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of one value.

    Parameters
    ----------
    size : int or sequence of int
    fill_value : number
    dtype : dtype, optional
        By default that of ``tensor(fill_value)``.
    device : device, optional
        Only the CPU.
    requires_grad : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.full((2,), 0.5)
    tensor([0.5000, 0.5000])
    """
    value, kind = fill_value, default_dtype() if dtype is None else np.dtype(dtype)
    if dtype is not None:
        check_range(value, kind)
    if value.__class__ is not float or kind.char not in "fd":  # else it is what `array_of` would return
        value = array_of("full", value, dtype, True)
        kind = value.dtype
    array = np.empty(shape_of("full", (size,)), kind)
    array[...] = value
    return made(array, requires_grad, device)


def _shape_and_dtype(name: str, input: Any, dtype: DTypeLike | None) -> tuple[tuple[int, ...], np.dtype]:
    if not isinstance(input, (Tensor, np.ndarray, np.generic)):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.shape, input.dtype if dtype is None else np.dtype(dtype)


_LIKE = docs.NEW_TENSOR._replace(
    parameters="input : Tensor or array",
    options=f"{docs.NEW_TENSOR.options}\n    Not taken over from `input`.\nmemory_format : optional\n"
    "    For PyTorch's programs: memory has NumPy's order.",
)


def _like(name: str, create: Callable[..., Tensor], what: str, shown: str) -> Callable[..., Tensor]:
    def call(
        input: Any,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        shape, kind = _shape_and_dtype(name, input, dtype)
        return create(shape, dtype=kind, device=device, requires_grad=requires_grad)

    call.__name__ = call.__qualname__ = name
    summary = f"Return a tensor of {what}, of the shape and dtype of another."
    call.__doc__ = docs.docstring(summary, _LIKE, example=f">>> tg.{name}(tg.tensor([3.0, 4.0])){shown}")
    return call


empty_like = public()(_like("empty_like", empty, "elements that are not set to anything", ".shape\n(2,)"))
zeros_like = public()(_like("zeros_like", zeros, "zeros", "\ntensor([0., 0.])"))
ones_like = public()(_like("ones_like", ones, "ones", "\ntensor([1., 1.])"))


@public(common=_LIKE)
def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of one value, of the shape and dtype of another.

    Parameters
    ----------
    fill_value : number

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.full_like(tg.tensor([3.0, 4.0]), 7)
    tensor([7., 7.])
    """
    shape, kind = _shape_and_dtype("full_like", input, dtype)
    return full(shape, fill_value, dtype=kind, device=device, requires_grad=requires_grad)


# Methods ---------------------------------------------------------------------------------------------------------


def _new(name: str, create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(
        input: Tensor,
        *shape: Any,
        size: Any = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
    ) -> Tensor:
        kind = input.dtype if dtype is None else np.dtype(dtype)
        return create(shape_of(name, shape, size), dtype=kind, device=device, requires_grad=requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Return a tensor as `{create.__name__}` does, by default of this tensor's dtype.\n\nExamples\n--------\n"
        f">>> import tapegrad as tg\n>>> tg.ones(2, dtype=tg.float32).{name}(3, 4).dtype\ndtype('float32')"
    )
    return call


for _name, _create in (("new_empty", empty), ("new_zeros", zeros), ("new_ones", ones)):
    public(namespaces=(), method=True)(_new(_name, _create))


@public(namespaces=(), method=True)
def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor as `full` does, by default of this tensor's dtype.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, dtype=tg.float32).new_full((2,), 3.0)
    tensor([3., 3.], dtype=float32)
    """
    return full(
        size, fill_value, dtype=input.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


@public(namespaces=(), method=True)
def new_tensor(
    input: Tensor, data: Any, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor with a copy of the data, by default of this tensor's dtype.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2, dtype=tg.float32).new_tensor([1, 2])
    tensor([1., 2.], dtype=float32)
    """
    if dtype is None and isinstance(data, (Tensor, np.ndarray)):
        return tensor(data, device=device, requires_grad=requires_grad)
    return made(array_of("new_tensor", data, dtype or input.dtype, True), requires_grad, device)

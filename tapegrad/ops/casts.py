"""Ops: conversion to another dtype; gradients are converted back."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from tapegrad.devices import DeviceLike, check_device, is_device
from tapegrad.dtypes import TORCH_NAMES, DTypeLike, check_dtype
from tapegrad.kernels.elementwise import loop_step
from tapegrad.modes import INTERCEPTORS, mode
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, Op, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout, contiguous_strides
from tapegrad.tensor import Tensor, from_array


def _forward(x: Any, source: np.dtype, dtype: np.dtype) -> Any:
    x = np.asarray(x) if not isinstance(x, (np.ndarray, np.generic)) else x
    return (x.real if source.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)


def _forward_for(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    """Return NumPy's own method where a real array is converted."""
    if layouts[0].inline or layouts[0].dtype.kind == "c":
        return functools.partial(_forward, **attrs)
    return operator.methodcaller("astype", attrs["dtype"])


def _identity(ct: Any) -> Any:
    return ct


def _bind(input: Any, dtype: Any) -> Any:
    x = as_operand(input, "to", "input", 1)
    dtype = np.dtype(dtype)
    if x._layout.dtype is dtype and not x._layout.weak:
        return x
    check_dtype(dtype)
    return Bound((x,), {"source": x._layout.dtype, "dtype": dtype})


def _step(plan: Plan, operand: int) -> Step | None:
    own, result = plan.layouts[operand].dtype, plan.result.dtype
    if own.kind == "c" and result.kind != "c":
        return None  # the rule, in Python
    shape = plan.result.shape
    # Of a complex cotangent, a real operand gets the real parts, which stand first in each element.
    read = result if own.kind == "c" or result.kind != "c" else np.dtype(f"f{result.itemsize // 2}")
    operands = [((CT, 0), read.name, contiguous_strides(shape, result.itemsize))]
    target = (own.name, contiguous_strides(shape, own.itemsize))
    return loop_step("cast", _identity, shape, operands, target, casts=(own.name,))


cast_row = Op(
    name="cast",
    operands=("x",),
    forward=_forward,
    prepare_forward=_forward_for,
    bind=_bind,
    vjp=(lambda ct, source: xp.cast(ct, source),),
    family="cast",
    linear=True,
    step=_step,
    attrs=("source", "dtype"),
    node_name="ToCopyBackward0",
    call=lambda x, source, dtype: cast(x, dtype),
    oracle=lambda x, source, dtype: np.asarray(x).astype(dtype),
    samples=tuple(
        Sample((shape,), {"source": np.dtype(np.float64), "dtype": np.dtype(dtype)})
        for shape in ((), (3,), (2, 3), (0, 3))
        for dtype in (np.float32, np.complex128)
    ),
)
connect(cast_row, 1)


def cast(input: Any, dtype: DTypeLike) -> Tensor:
    """Return the tensor converted to another dtype; itself if it has that dtype.

    Parameters
    ----------
    input : Tensor or array
    dtype : dtype
        Complex numbers lose their imaginary part where it is real.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If tensors cannot have that dtype.

    Notes
    -----
    Derivative: the cotangent converted back.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.ops.casts import cast
    >>> cast(tg.tensor([1.5]), "int64")
    tensor([1])
    """
    if input.__class__ is Tensor and not mode.value & INTERCEPTORS:
        layout = input._layout
        if layout.dtype is dtype and not layout.weak:
            return input
    return cast_row.plans.call(input, dtype)


xp.cast = cast


@public(namespaces=(), method=True)
@composite(
    (Sample(((2, 3),), {"dtype": "float64"}), Sample(((3,),), {"dtype": "complex128"})),
    lambda input, dtype: input.astype(dtype), real_only=True,
)  # fmt: skip
def to(
    input: Tensor, *args: Any, dtype: Any = None, device: DeviceLike = None, non_blocking: bool = False,
    copy: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Return the tensor converted to another dtype; itself if it has that dtype.

    Parameters
    ----------
    *args : dtype, device or Tensor
        As in PyTorch: a dtype; a device, and a dtype behind it; or a tensor, whose dtype is taken. Then `non_blocking`
        and `copy`.
    dtype : dtype, optional
    device : device, optional
        Only the CPU.
    non_blocking : bool
        Without effect.
    copy : bool
        Return a copy also where the dtype is the same.
    memory_format : optional
        Without effect: memory is in the order of elements.

    Raises
    ------
    TypeError
        If tensors cannot have that dtype.
    AssertionError
        If it is another device.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0], requires_grad=True)
    >>> x.to("cpu", tg.float32).sum().backward()
    >>> x.grad
    tensor([1.])
    """
    if args:
        first, *rest = args
        if is_device(first) or (first is None and rest):
            device = first
            if rest:
                dtype, *rest = rest
        else:
            dtype = first.dtype if isinstance(first, (Tensor, np.ndarray)) else first
        copy = rest[1] if len(rest) > 1 else copy
    if device is not None:
        check_device(device)
    try:
        result = input if dtype is None else cast(input, dtype)
    except TypeError:
        if not isinstance(dtype, str) or dtype in np.sctypeDict:
            raise
        raise RuntimeError(
            f"Expected one of cpu, cuda, ipu, ... device type at start of device string: {dtype}; nor is that a dtype"
        ) from None
    return xp.clone(result) if copy and result is input else result


@public(namespaces=(), method=True)
@composite(
    (Sample(((2, 3), ()), values=(None, np.complex128(1))), Sample(((3,), ()), values=(None, np.complex64(1)))),
    lambda input, other: input.astype(other.dtype),
)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor converted to the dtype of another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([1.5, 2.5]).type_as(tg.tensor([1])).dtype
    dtype('int64')
    """
    return cast(input, other.dtype)


@public(namespaces=(), method=True)
@composite(
    (Sample(((2, 3),), {"dtype": "float64"}), Sample(((3,),), {"dtype": "complex128"})),
    lambda input, dtype: input.astype(dtype), real_only=True,
)  # fmt: skip
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return PyTorch's name of the tensor's type; or the tensor converted to a dtype, as `to` does.

    Parameters
    ----------
    dtype : dtype, str or `FloatTensor` and its kin, optional
        Such a name too.
    non_blocking : bool
        Without effect.

    Raises
    ------
    ValueError
        If there is no type of that name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ones(2).type(), tg.ones(2).type(tg.float32).dtype
    ('torch.DoubleTensor', dtype('float32'))
    """
    if dtype is None:
        return f"torch.{TORCH_NAMES[input.dtype.name]}Tensor"
    if isinstance(dtype, str) and dtype.endswith("Tensor"):
        named = {f"torch.{name}Tensor": own for own, name in TORCH_NAMES.items()}
        if dtype not in named:
            raise ValueError(f"invalid type: {dtype!r}; there are {', '.join(named)}")
        dtype = named[dtype]
    if isinstance(dtype, str) and dtype not in np.sctypeDict:
        raise ValueError(f"invalid type: {dtype!r}; give a dtype")
    return cast(input, getattr(dtype, "dtype", dtype))


@public(namespaces=(), method=True, functions=("astype",))
@composite(
    (Sample(((2, 3),), {"dtype": "float64"}), Sample(((3,),), {"dtype": "complex128"})),
    lambda input, dtype: input.astype(dtype), real_only=True,
)  # fmt: skip
def astype(input: Tensor, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
    """Return a copy of the tensor in a dtype, as NumPy's arrays do.

    Parameters
    ----------
    dtype : dtype
    copy : bool
        False returns the tensor itself if it has that dtype.

    Raises
    ------
    TypeError
        If tensors cannot have that dtype.

    Notes
    -----
    Derivative: the cotangent converted back.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([1.5, 2.5]).astype(int)
    tensor([1, 2])
    """
    result = cast(input, dtype)
    return xp.clone(result) if copy and result is input else result


def conversion(name: str, dtype: str) -> Any:
    """Return the method that converts to one dtype."""
    of_elements = np.dtype(dtype)

    def call(input: Tensor) -> Tensor:
        return cast(input, of_elements)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return the tensor converted to {dtype}; itself if it has that dtype."
    return call


CONVERSIONS = {
    name: conversion(name, dtype)
    for name, dtype in {
        "float": "float32", "double": "float64", "cfloat": "complex64", "cdouble": "complex128", "long": "int64",
        "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
    }.items()
}  # fmt: skip


def viewed_as(x: Tensor, dtype: np.dtype) -> Tensor:
    """Return the bytes of a tensor as elements of another dtype, for `view`: they have no gradient."""
    sizes = x.dtype.itemsize, dtype.itemsize
    if not x.ndim and sizes[0] != sizes[1]:
        raise RuntimeError(f"self.dim() cannot be 0 to view {x.dtype} as {dtype} (different element sizes)")
    try:
        return x if dtype == x.dtype else from_array(x._array().view(dtype))
    except ValueError as error:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {max(sizes[1] // sizes[0], 1)} to view {x.dtype} as {dtype}, and "
            f"contiguous; it has shape {list(x.shape)}: {error}"
        ) from None


xp.viewed_as = viewed_as

"""Creation: tensors from data."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.devices import DeviceLike, check_device
from tapegrad.dtypes import DTypeLike, are_floats, check_dtype, check_list, default_dtype, dtypes_in
from tapegrad.errors import check_bool, not_numbers
from tapegrad.modes import INTERCEPTORS, mode
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.promotion import common_dtype
from tapegrad.ops.table.public import public
from tapegrad.pass_modes import is_inference_mode_enabled
from tapegrad.recording.leaves import makers, remember
from tapegrad.recording.marking import detached
from tapegrad.recording.native import as_method
from tapegrad.tape.layout import inference, intern, layout_of
from tapegrad.tensor import Tensor, from_array


def _owner(array: np.ndarray, bucket: int = -1) -> Tensor:
    check_dtype(array.dtype)
    result = from_array(array)
    if bucket >= 0:
        remember(bucket, array, result._layout)
    return result


def _borrower(ndarray: np.ndarray, bucket: int = -1) -> Tensor:
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__}); tapegrad.tensor(data) takes other data")
    if not (ndarray.dtype.isnative and ndarray.flags.aligned):
        problem = "is not aligned" if ndarray.dtype.isnative else f"has byte order {ndarray.dtype.byteorder!r}"
        raise TypeError(
            f"from_numpy(): the array {problem}, and compiled code reads its memory; copy it: "
            f"tapegrad.tensor(array.astype({ndarray.dtype.newbyteorder('=').str!r}))"
        )
    check_dtype(ndarray.dtype)
    result = _lent(ndarray if ndarray.__class__ is np.ndarray else np.asarray(ndarray))
    if bucket >= 0:
        remember(bucket, ndarray, result._layout)
    return result


def _lent(array: np.ndarray) -> Tensor:
    """Return a constant tensor over a view of a user's array: users may change the array's own shape."""
    result: Tensor = object.__new__(Tensor)
    result._data = array[...]
    result._layout = intern(array.shape, array.strides, array.dtype)
    result._node = result._grad = None
    return result


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set, in place, whether backward passes compute a gradient for this leaf.

    Raises
    ------
    RuntimeError
        If the dtype is neither floating nor complex, or if the tensor is not a leaf and `requires_grad` is False.
    """
    check_bool("requires_grad_", "requires_grad", requires_grad)
    self._require(requires_grad, errors.ONLY_REAL)
    return self


_compiled: Final = makers(_owner, _borrower, requires_grad_, detached)
#: Methods of Tensor in compiled code, made when they are first used.
COMPILED_METHODS: Final[dict[str, Callable[[], Any]]] = {
    "detach": lambda: as_method(_compiled.detached),
    "requires_grad_": lambda: as_method(_compiled.leaf),
}


def made(array: np.ndarray, requires_grad: bool = False, device: DeviceLike = None) -> Tensor:
    """Return a leaf over a new array."""
    if device is not None:
        check_device(device)
    result = _compiled.owner(array)
    if mode.value & INTERCEPTORS and is_inference_mode_enabled() and not requires_grad:
        result._layout = inference(result._layout)
    elif requires_grad is True and result._layout.floating:
        _compiled.leaf(result)
    elif requires_grad:
        result._require(True)
    return result


def dtype_or_default(dtype: DTypeLike | None) -> np.dtype:
    """Return the dtype that a caller asked for, by default that of Python floats."""
    return default_dtype() if dtype is None else np.dtype(dtype)


def shape_of(call: str, size: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Return the shape that was given as several integers or as one sequence of them, or by name.

    >>> shape_of("zeros", (2, 3)), shape_of("zeros", ((2, 3),))
    ((2, 3), (2, 3))
    """
    if named is not None:
        size = (*size, named)
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for length in size:
        if length.__class__ is not int or length < 0:
            break
    else:
        return size
    try:
        shape = tuple(map(operator.index, size))
    except TypeError:
        kinds = ", ".join(type(length).__name__ for length in size)
        raise TypeError(f"{call}(): argument 'size' must be tuple of ints, but got ({kinds})") from None
    if min(shape, default=0) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}; {call}() needs lengths >= 0"
        )
    return shape


# From data ---------------------------------------------------------------------------------------------------------


def _plain(data: Any) -> Any:
    """Return nested lists with arrays in place of tensors."""
    if isinstance(data, Tensor):
        if data.requires_grad:
            errors.warn(
                "To copy construct from a tensor that requires grad, it is recommended to use .detach().clone(): the "
                "new tensor is a constant. To keep the gradient use clone(), or stack() for a list of tensors."
            )
        return data._looked_at()
    if isinstance(data, (list, tuple)) or (hasattr(data, "__getitem__") and _is_sequence(data)):
        return [_plain(item) for item in data]
    return data


def _is_sequence(data: Any) -> bool:
    """Whether an object with elements is a sequence, as ranges and deques are."""
    return (
        not isinstance(data, (np.ndarray, np.generic, str, bytes, dict))
        and not (hasattr(data, "__array__") or hasattr(data, "__array_interface__") or hasattr(data, "__buffer__"))
        and hasattr(data, "__len__")
    )


def _check_ragged(data: Any) -> None:
    """Raise PyTorch's error for nested lists whose lengths differ."""

    def visit(item: Any, shape: list[int], dim: int) -> None:
        is_sequence = isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim > 0)
        if dim == len(shape):
            if is_sequence:
                raise TypeError(f"'{type(item).__name__}' object at dim {dim} is no number; {repair}")
            return
        if not is_sequence:
            raise TypeError(f"not a sequence of length {shape[dim]} at dim {dim}, but {item!r}; {repair}")
        if len(item) != shape[dim]:
            raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(item)}); {repair}")
        for part in item:
            visit(part, shape, dim + 1)

    repair = "a tensor is rectangular: give all rows one length, e.g. by padding them"
    shape = []
    first = data
    while isinstance(first, (list, tuple)) or (isinstance(first, np.ndarray) and first.ndim > 0):
        shape.append(len(first))
        if not len(first):
            break
        first = first[0]
    visit(data, shape, 0)


def array_of(call: str, data: Any, dtype: DTypeLike | None, copy: bool | None) -> np.ndarray:
    """Return data as an array of a dtype that a tensor can have, C-contiguous where it is copied."""
    if copy and isinstance(data, Tensor):
        errors.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tapegrad.tensor(sourceTensor): the new "
            "tensor is a constant. To keep the gradient use sourceTensor.clone()."
        )
        data = data._looked_at()
    data = _plain(data)
    if not isinstance(data, (np.ndarray, np.generic, list, tuple, str, bool, int, float, complex)) and not (
        hasattr(data, "__array__") or hasattr(data, "__array_interface__") or hasattr(data, "__buffer__")
    ):
        raise not_numbers(call, data)
    if dtype is not None:
        check_dtype(np.dtype(dtype))
    try:
        array = np.array(data, copy=copy, order="C" if copy else "K")
    except ValueError:
        _check_ragged(data)
        raise
    kind = array.dtype.kind
    if kind not in "biufc":
        raise not_numbers(call, data)
    if kind == "c" and np.dtype(dtype or complex).kind not in "cb":
        raise TypeError(f"{call}(): can't convert complex numbers to {np.dtype(dtype)}; take their real part first")
    if dtype is not None:
        if isinstance(data, (list, tuple, int, float)):
            check_list(array, np.dtype(dtype))
        return array.astype(dtype, copy=False)
    if kind in "fc" and isinstance(data, (list, tuple, int, float, complex)) and not isinstance(data, np.generic):
        return array.astype(common_dtype(tuple(dtypes_in(data))) if array.size else default_dtype(), copy=False)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


@public()
def tensor(
    data: Any, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Return a new leaf tensor with a copy of the data.

    Parameters
    ----------
    data : number, nested list, array or Tensor
    dtype : dtype, optional
        By default Python floats get the default dtype, integers int64, and arrays keep their own.
    device : device, optional
        Only the CPU.
    requires_grad : bool
        Compute a gradient for this tensor in backward passes.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If the data are not numbers.
    ValueError
        If nested lists are ragged.
    RuntimeError
        If `requires_grad` is set and the dtype is neither floating nor complex.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    tensor([[1., 2.],
            [3., 4.]], requires_grad=True)
    """
    if dtype is None and are_floats(data):
        return made(np.array(data, default_dtype()), requires_grad, device)
    if data.__class__ is np.ndarray and dtype is None and data.dtype.isnative and data.dtype.kind in "biufc":
        return made(data.copy(), requires_grad, device)
    return made(array_of("tensor", data, dtype, True), requires_grad, device)


@public()
@composite(
    (Sample(((2, 3),)), Sample(((3,),), {"dtype": "complex128"})), lambda data, dtype=None: np.array(data, dtype)
)
def as_tensor(data: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Tensor:
    """Return data as a tensor, sharing memory where that is possible.

    Parameters
    ----------
    data : number, nested list, array or Tensor
    dtype : dtype, optional
    device : device, optional
        Only the CPU.

    Returns
    -------
    Tensor
        `data` itself if it is a tensor of that dtype. A tensor of another dtype is converted, and the conversion is
        recorded. An array that is not aligned, or not of native byte order, e.g. one from a file, is copied.

    Examples
    --------
    >>> import numpy as np, tapegrad as tg
    >>> array = np.zeros(2)
    >>> t = tg.as_tensor(array)
    >>> array[0] = 1.0
    >>> t
    tensor([1., 0.])
    """
    if device is not None:
        check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    is_usual = data.__class__ is np.ndarray and dtype is None and data.dtype.isnative and data.dtype.kind in "biufc"
    array = data if is_usual else array_of("as_tensor", data, dtype, None)
    return _compiled.borrower(array if array.flags.aligned else array.copy())


@public()
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Of a dtype that tensors have, aligned, and of native byte order: compiled code reads its memory.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If it is no such array.

    Examples
    --------
    >>> import numpy as np, tapegrad as tg
    >>> tg.from_numpy(np.arange(3.0))
    tensor([0., 1., 2.])
    """
    if ndarray.__class__ is np.ndarray and not ndarray.flags.writeable:
        errors.warn(
            "The given NumPy array is not writable, so operations that write to the tensor raise an error. Copy the "
            "array to write to it, e.g. by tapegrad.tensor(array)."
        )
    return _compiled.borrower(ndarray)


def init(self: Tensor, *data: Any) -> None:
    """Make ``Tensor(data)``, always of the default dtype. Only users call it: operations call ``Tensor.__new__``.

    Integers are a shape, as in PyTorch, and the elements are not set to anything: ``Tensor(2, 3)``.

    Raises
    ------
    TypeError
        If a floating number is given.
    """
    if data and all(isinstance(length, int) for length in data):
        array = np.empty(data, default_dtype())
    elif len(data) > 1 or isinstance(data[0] if data else (), (int, float)):
        raise TypeError(
            f"Tensor() takes a list or an array, or integers that are a shape, not {data}: write "
            f"tapegrad.tensor({data[0]!r}) for that number"
        )
    else:
        array = array_of("Tensor", data[0] if data else (), default_dtype(), True)
    self._data, self._layout, self._node, self._grad = array, layout_of(array), None, None

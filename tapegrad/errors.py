"""Errors and their messages: PyTorch's words first, then the call, the shapes and the repair."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any, Final

import numpy as np

SECOND_BACKWARD: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)
LEAF_IN_PLACE: Final = (
    "a leaf Variable that requires grad is being used in an in-place operation. "
    "Write under no_grad(), or to .data, or make a new tensor."
)
LEAF_VIEW_IN_PLACE: Final = f"a view of {LEAF_IN_PLACE}"
ONLY_FLOATING: Final = "Only Tensors of floating point and complex dtype"
ONLY_REAL: Final = "only Tensors of floating point dtype"  # so `requires_grad_` says
RESULT_FLAG: Final = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)
GRAD_OF_RESULT: Final = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor."
)
INFERENCE_SAVED: Final = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `no_grad()` instead of `inference_mode()`."
)
UNRECORDED_VIEW: Final = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case "
    "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
    "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
    "the inplace to be tracked)."
)
INFERENCE_WRITTEN: Final = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
    "tensor before doing inplace update."
)
INFERENCE_FLAG: Final = (
    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Make a clone of it first."
)
NUMPY_OF_GRAD: Final = (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. To join tensors, np.stack "
    "and np.concatenate are recorded (np.array and np.r_ are not), to fill, np.full_like is (np.full is not). SciPy's "
    "functions in Python, e.g. scipy.special.softmax, convert to arrays: call tapegrad's."
)
NUMBER_OF_GRAD: Final = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
    "tensor.detach() first, or item(): the number is a constant."
)


_FIND_IT: Final = (
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "tapegrad.autograd.set_detect_anomaly(True, check_nan=False). "
)


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """The error of a matrix without inverse, factors or eigenvalues: NumPy's class, and a RuntimeError as PyTorch's.

    Examples
    --------
    >>> import tapegrad as tg
    >>> try:
    ...     tg.linalg.inv(tg.zeros(2, 2))
    ... except tg.linalg.LinAlgError:
    ...     print("singular")
    singular
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for tell in on_failure:
            tell()


#: What is called when an operation fails by its values: a function that is traced may catch the error.
on_failure: Final[list[Callable[[], None]]] = []

_PACKAGE: Final = __file__.removesuffix("errors.py")


class ConversionError(RuntimeError, ValueError):
    """The error of a number asked of a tensor that has not one element: of `item` in PyTorch, and of `float`."""


def one_number(tensor: Any) -> Any:
    """Return the only element of a tensor as a Python number."""
    if tensor._layout.size != 1:
        raise ConversionError(
            "only one element tensors can be converted to Python scalars: a Tensor with "
            f"{tensor._layout.size} elements cannot be converted to Scalar; use tolist()"
        )
    return tensor.item()


def real_number(tensor: Any, kind: str) -> Any:
    """Return the only element of a tensor as a real number, which is converted to a type of C++ in PyTorch."""
    number = one_number(tensor)
    if number.__class__ is complex:
        if number.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow; take its .real or .abs()")
        return number.real
    return number


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called the library, however deep the call is in it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_bool(call: str, name: str, value: object) -> None:
    """Raise PyTorch's TypeError if an argument that is a flag is no bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{call}(): argument '{name}' must be bool, not {type(value).__name__}")


def part_written(function: str, number: int, is_custom: bool = False, *, of_base: bool = False) -> RuntimeError:
    """Return the error of a recorded write to a view that a function returned, or to its base."""
    written = "its base or another view of its base has been" if of_base else "is being"
    start = f"Output {number} of {function} is a view and {written} modified inplace. This view "
    if is_custom:
        return RuntimeError(
            f"{start}was created inside a custom Function (or because an input was returned as-is) and the autograd "
            "logic to handle view+inplace would override the custom backward associated with the custom Function, "
            "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of "
            "the custom Function."
        )
    return RuntimeError(
        f"{start}is the output of a function that returns multiple views. Such functions do not allow the output views "
        "to be modified inplace. You should replace the inplace operation by an out-of-place one."
    )


def second_backward(entry: str) -> RuntimeError:
    """Return the error of a sweep that reaches a consumed entry."""
    return RuntimeError(f"{SECOND_BACKWARD} The first freed entry that was reached is {entry}.")


def unused(index: int) -> RuntimeError:
    """Return the error of an input on which the roots do not depend."""
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
        "Set allow_unused=True if this is the desired behavior."
    )


def not_scalar(call: str, index: int, shape: Sequence[int]) -> RuntimeError:
    """Return the error of a root of several elements without a gradient."""
    return RuntimeError(
        f"grad can be implicitly created only for scalar outputs; {call} got root {index} of shape {list(shape)}. "
        f"Reduce it to one element, e.g. with .sum(), or pass a gradient of that shape."
    )


def no_grad_fn(call: str, index: int) -> RuntimeError:
    """Return the error of a root that was computed from nothing that requires grad."""
    return RuntimeError(
        f"element {index} of tensors does not require grad and does not have a grad_fn; {call} needs a result "
        f"computed, with grad mode on, from tensors made with requires_grad=True."
    )


def gradient_shape(call: str, index: int, gradient: Sequence[int], output: Sequence[int]) -> RuntimeError:
    """Return the error of a gradient whose shape is not its root's."""
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {list(gradient)} and output[{index}] has a shape of "
        f"{list(output)}. A gradient given to {call} is never broadcast: give it the output's shape."
    )


def gradient_kind(kind: str) -> TypeError:
    """Return the error of a gradient that is no tensor."""
    return TypeError(f"gradients can be either Tensors or None, but got {kind}; make it one with tapegrad.tensor(...)")


def modified(
    dtype: str,
    shape: Sequence[int],
    saver: str | None,
    version: int,
    expected: int,
    called: str = "",
    written: str = "",
) -> RuntimeError:
    """Return the error of a residual that was written to after it was saved; anomaly mode knows where that was."""
    output = f", which is {saver}," if saver else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{dtype} {list(shape)}]{output} is at version {version}; expected version {expected} instead. Hint: "
        + (f"the operation that saved it was called here:\n{called}" if called else _FIND_IT)
        + (f"It was last written to here:\n{written}" if written else "")
        + "Write to a clone() of it, or do the in-place operation before it is used."
    )


def _sizes_that_differ(first: Sequence[int], second: Sequence[int]) -> str:
    """Return PyTorch's words for the lengths of two shapes that do not broadcast; "" if all do."""
    for dim in range(1, max(len(first), len(second)) + 1):
        a = first[-dim] if dim <= len(first) else 1
        b = second[-dim] if dim <= len(second) else 1
        if a != b and 1 not in (a, b):
            position = max(len(first), len(second)) - dim
            where = f"at non-singleton dimension {position}"
            return f"The size of tensor a ({a}) must match the size of tensor b ({b}) {where}"
    return ""


def broadcast_mismatch(call: str, first: Sequence[int], second: Sequence[int]) -> RuntimeError:
    """Return the error of two shapes that do not broadcast."""
    sizes = _sizes_that_differ(first, second)
    if not sizes:
        return RuntimeError(f"{call} cannot broadcast shapes {list(first)} and {list(second)}")
    return RuntimeError(
        f"{sizes}; {call} got shapes {list(first)} and {list(second)}. Insert dimensions of size 1 with "
        f"unsqueeze() where they should broadcast."
    )


def reshaped(what: str, first: Sequence[int], second: Sequence[int]) -> RuntimeError:
    """Return the error of a backward pass after `data` or `grad` was replaced by one of another shape."""
    start = _sizes_that_differ(first, second)
    if not start:
        start = f"output with shape {list(first)} doesn't match the broadcast shape {list(second)}"
    return RuntimeError(f"{start}; `data` or `grad` of {what} was replaced by one of another shape")


def not_a_tensor(call: str, argument: str, position: int, value: object) -> TypeError:
    """Return the error of an operand that is neither tensor nor array nor number."""
    return TypeError(
        f"{call}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}; "
        f"make it one with tapegrad.tensor(...)"
    )


def dim_out_of_range(call: str, ndim: int, dim: int) -> IndexError:
    """Return the error of a dimension that the tensor does not have."""
    bound = max(ndim, 1)
    return IndexError(
        f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim}); "
        f"{call} got a tensor of {ndim} dimensions"
    )


def assigned_grad(shape: Sequence[int], dtype: str, own_shape: Sequence[int], own_dtype: str) -> RuntimeError:
    """Return the error of assigning a gradient that does not fit its tensor."""
    if shape != own_shape:
        return RuntimeError(
            f"attempting to assign a gradient of size '{list(shape)}' to a tensor of size '{list(own_shape)}'. "
            f"Please ensure that the gradient and the tensor are the same size"
        )
    return RuntimeError(
        f"attempting to assign a gradient with dtype '{dtype.lower()}' to a tensor with grad_dtype '{own_dtype}'. "
        f"Please ensure that the gradient and the tensor have the same dtype"
    )


def tangent_shape(shape: Sequence[int], given: Sequence[int]) -> RuntimeError:
    """Return the error of a tangent of another shape than its tensor's."""
    return RuntimeError(
        f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(shape)} while the given forward gradient is of size {list(given)}."
    )


def elements(data: Any) -> Iterator[Any]:
    """Return what stands in nested lists."""
    if not isinstance(data, (list, tuple)):
        yield data
    else:
        for own in data:
            yield from elements(own)


def not_numbers(call: str, data: Any) -> Exception:
    """Return PyTorch's error of data that has no dtype: text has another one than the rest."""
    found = elements(data.tolist() if hasattr(data, "tolist") else data)
    kind = type(next((own for own in found if not isinstance(own, Number)), data))
    if issubclass(kind, (str, bytes)):
        return TypeError(f"{call}(): invalid data type '{kind.__name__}'; tensors hold numbers and bools")
    expected = "a number, a nested list of numbers, an array or a tensor"
    return RuntimeError(f"Could not infer dtype of {kind.__name__}: {call}() expects {expected}")

"""The arguments of pools, and PyTorch's errors of those that do not fit: each of its pools has words of its own."""

from __future__ import annotations

from typing import Any

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import integer
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


def numbers(call: str, name: str, value: Any, n: int) -> Shape:
    """Return a number for each of `n` dimensions.

    Raises
    ------
    RuntimeError, TypeError
        If there are others than one or `n`, or one is no integer.
    """
    if value.__class__ is int:
        return (value,) * n
    values = tuple([integer(call, name, one) for one in (value if isinstance(value, (tuple, list)) else (value,))])
    if len(values) not in (1, n):
        raise RuntimeError(f"{call}: {name} must either be a single int, or a tuple of {n} ints; got {values}")
    return values * n if len(values) == 1 else values


def images(call: str, input: Any, n: int, integers: str = "") -> Tensor:
    """Return an operand of `n` dimensions of space, of floats or of integers of these characters.

    Raises
    ------
    RuntimeError
        If it has others.
    """
    x = as_operand(input, call, "input", 1)
    if x.ndim not in (n + 1, n + 2):
        if call == "max_pool1d":
            raise _unfit(call, x.shape, 1)
        if n == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {x.ndim}-dimensional tensor for argument #1 'self' (while "
                f"checking arguments for {call})"
            )
        if call.startswith("adaptive"):
            raise RuntimeError(f"{call}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(x.shape)}")
        raise RuntimeError(
            f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input; {call}() got {list(x.shape)}"
        )
    if x.dtype.kind != "f" and x.dtype.char not in integers:
        raise NotImplementedError(f'"{call}" not implemented for {TORCH_NAMES[x.dtype.name]!r}; convert it first')
    return x


def _unfit(call: str, shape: Shape, n: int) -> RuntimeError:
    """Return the error of images without elements."""
    if n == 3:
        return RuntimeError(
            f"{call}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(shape)}"
        )
    first, dims = ("max_pool1d: ", 2) if call == "max_pool1d" else ("", 3)
    return RuntimeError(
        f"{first}Expected {dims}D or {dims + 1}D (batch mode) tensor with optional 0 dim batch size for input, but "
        f"got:{list(shape)}"
    )


def pool_counts(
    call: str, x: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    """Return how many windows there are in each dimension.

    Raises
    ------
    RuntimeError
        If a number is out of range, or there is no window.
    """
    of_signals = call == "max_pool1d"
    for name, values, words in (
        ("kernel_size", kernel, "kernel size should be greater than zero"),
        ("stride", stride, "stride should not be zero" if 0 in stride else "stride should be greater than zero"),
        ("dilation", dilation, "dilation should be greater than zero"),
    ):
        if min(values) < 1:
            words = f"{call}() {name} must be greater than zero" if of_signals else words
            raise RuntimeError(f"{words}, but got {name}: {list(values)}" + ("" if of_signals else f" in {call}()"))
    space, counts = x.shape[-len(kernel) :], []
    for n, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p} in {call}()")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
        count = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        counts.append(count - (ceil_mode and (count - 1) * s >= n + p))  # the last begins on the data
    if 0 in x.shape[-len(kernel) - 1 :]:
        raise _unfit(call, x.shape, len(kernel))
    if min(counts) < 1:
        if of_signals:
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {counts[0]}")
        raise RuntimeError(
            f"Given input size: {list(x.shape)}. Calculated output size: {counts}. Output size is too small: {call}() "
            f"has no place for its window"
        )
    return tuple(counts)


def output_sizes(call: str, input: Any, size: Any, n: int) -> tuple[Tensor, Shape]:
    """Return the operand of an adaptive pool, and the lengths that it gives; None stands for that of the operand.

    Raises
    ------
    RuntimeError, TypeError, ValueError
        If one is negative or no integer, or there are others than one or `n`; if there are more than the operand has
        dimensions.
    """
    values = tuple(size) if isinstance(size, (tuple, list)) else (size,) * n
    x = as_operand(input, call, "input", 1)
    if n > 1 and isinstance(size, (tuple, list)) and x.ndim <= len(values):
        raise ValueError(f"Input dimension should be at least {len(values) + 1}; {call}() got {list(x.shape)}")
    x = images(call, x, n)
    if len(values) != n:
        words = ": output_size must be" if n > 1 else "() argument 'output_size' should contain one int, not"
        raise RuntimeError(f"{call}{words} {n if n > 1 else len(values)}; got {values}")
    found = tuple(
        own if value is None else integer(call, "output_size", value)
        for value, own in zip(values, x.shape[-n:], strict=True)
    )
    if min(found) < 0:
        raise RuntimeError(
            f"{call}: elements of output_size must be greater than or equal to 0 but received {list(found)}"
        )
    if 0 in x.shape[-n:]:
        raise RuntimeError(
            f"{call}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(x.shape)}"
        )
    return x, found

"""Composites: parts along a dimension to which writes are recorded, which those of `split` and its kin refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.ops.splitting import chunk, split, split_with_sizes
from tapegrad.ops.table.composites import Composite, composite, composites
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


def _as_of(name: str, step: int = 1) -> Callable[[Any], Any]:
    """Return the decorator of a composite with samples and the oracle of another; only parameters differ."""
    one: Composite = composites[name]
    return composite(
        one.samples[::step], one.oracle, call=lambda function, x, **attrs: function(x, *attrs.values())[-1]
    )


def _writable(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    for part in parts:
        del part._part_of
    return parts


@public(method=True)
@_as_of("split", 2)  # it takes one length
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of a length; see `split`. Writes to them are recorded.

    Parameters
    ----------
    input : Tensor or array
    split_size : int
    dim : int

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> first, second = tg.unsafe_split(x * 1, 1)
    >>> first.mul_(3).backward()
    >>> x.grad
    tensor([3., 0.])
    """
    return _writable(split(input, split_size, dim))


@public(method=True)
@_as_of("split_with_sizes")
def unsafe_split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of these lengths; see `split_with_sizes`. Writes to them are recorded.

    Parameters
    ----------
    input : Tensor or array
    split_sizes : sequence of int
    dim : int

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unsafe_split_with_sizes(tg.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return _writable(split_with_sizes(input, split_sizes, dim))


@public(method=True)
@_as_of("chunk")
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into a number of views; see `chunk`. Writes to them are recorded.

    Parameters
    ----------
    input : Tensor or array
    chunks : int
    dim : int

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unsafe_chunk(tg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _writable(chunk(input, chunks, dim))

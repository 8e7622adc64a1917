"""The largest elements of windows, put back where they were: an op on rows, and composites of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.chosen import placed
from tapegrad.kernels.chosen import step_by_indices
from tapegrad.ops.movement import reshape
from tapegrad.ops.pool_arguments import numbers
from tapegrad.ops.pooling import input_of, nested_in, publish_composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.structural import operation
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _output_size(given: Any, space: Sequence[int], kernel: Any, stride: Any, padding: Any) -> tuple[int, ...]:
    """Return the lengths of the result."""
    plain = tuple([(n - 1) * s + k - 2 * p for n, k, s, p in zip(space, kernel, stride, padding, strict=True)])
    if given is None:
        return plain
    size, n = tuple(given), len(kernel)
    size = size[2:] if len(size) == n + 2 else size
    if len(size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(size)}'"
        )
    for dim, (own, default, s) in enumerate(zip(size, plain, stride, strict=True)):
        if not default - s < own < default + s:
            raise ValueError(
                f'invalid output_size "{size}" (dim {dim} must be between {default - s} and {default + s})'
            )
    return size


def _by_numpy(input: Any, indices: Any, kernel_size: int, stride: int | None = None, padding: int = 0,
              output_size: Any = None) -> Any:  # fmt: skip
    stride = kernel_size if stride is None else stride
    n = input.ndim - 2
    plain = [(length - 1) * stride + kernel_size - 2 * padding for length in input.shape[2:]]
    space = plain if output_size is None else output_size[-n:]
    out = np.zeros((*input.shape[:2], math.prod(space)), input.dtype)
    np.put_along_axis(out, indices.reshape(*input.shape[:2], -1), input.reshape(*input.shape[:2], -1), -1)
    return out.reshape(*input.shape[:2], *space)


def _placed(x: Any, places: Any, space: tuple[int, ...]) -> np.ndarray:
    length = math.prod(space)
    bad = places[(places < 0) | (places >= length)]
    if bad.size:
        raise RuntimeError(
            f"Found an invalid max index: {bad[0]} (output volumes are of size {'x'.join(map(str, space))})"
        )
    out = np.zeros((len(x), length), x.dtype)
    np.put_along_axis(out, places, x, 1)
    return out


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    space = attrs["space"]
    x, places = layouts
    return placed(x, places, math.prod(space), lambda x, places: _placed(x, places, space))


@operation(
    "unpooled", operands=("x", "places"), family="indexing", forward=_placed, prepare_forward=_prepare, linear=True,
    vjp=(lambda ct, places: xp.gather(ct, 1, places), NOT_DIFFERENTIABLE), attrs=("space",),
    step=lambda plan, operand: step_by_indices(plan, 1, "places", "gather"),
    oracle=lambda x, places, space: np.where(
        places[..., None] == np.arange(math.prod(space)), x[..., None], 0
    ).sum(1),
    samples=(Sample(((2, 3), (2, 3)), {"space": (2, 2)}, (None, np.array([[0, 2, 3], [1, 0, 3]]))),),
    errors=(ErrorSample(
        lambda: xp.unpooled(np.ones((1, 1)), np.array([[4]]), (2, 2)), RuntimeError, "Found an invalid max index: 4"
    ),),
)  # fmt: skip
def unpooled(x: Any, places: Any, space: tuple[int, ...]) -> Bound:
    """Rows of zeros with the elements of other rows at places; the last one, where several go to one place."""
    return Bound((as_operand(x, "unpooled", "x", 1), as_operand(places, "unpooled", "places", 2)), {"space": space})


_DOC: Final = """\
{n}-dimensional signals with elements put where indices say, as by `scatter`: what `max_pool{n}d` lost is 0.

Parameters
----------
{input}
indices : Tensor or array of int64, of that shape
    Places in each flat result, as `max_pool{n}d` returns them.
kernel_size : int or tuple of int
stride : int or tuple of int, optional
    Default the size of the window.
padding : int or tuple of int
output_size : sequence of int, optional
    The lengths of the result, which several lengths of its operand lead to.

Returns
-------
Tensor

Raises
------
RuntimeError
    If shapes do not fit, or a place does not exist.
ValueError
    If `output_size` does not fit.

Notes
-----
Derivative: the cotangent at the indices.

Examples
--------
>>> import tapegrad as tg
>>> y, indices = tg.nn.functional.max_pool{n}d(tg.tensor({data}), {kernel}, return_indices=True)
>>> tg.nn.functional.max_unpool{n}d(y, indices, {kernel}).tolist()
{value}
"""


def _function(n: int) -> None:
    """Make the function of `n` dimensions."""
    name = f"max_unpool{n}d"

    def call(
        input: Any,
        indices: Any,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        x, places = as_operand(input, name, "input", 1), as_operand(indices, name, "indices", 2)
        kernel, pads = numbers(name, "kernel_size", kernel_size, n), numbers(name, "padding", padding, n)
        strides = kernel if stride is None or stride in ([], ()) else numbers(name, "stride", stride, n)
        if x.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {x.ndim} "
                "dimensions."
            )
        if x.dtype.kind not in "fc":
            raise NotImplementedError(f"{name} not implemented for dtype {x.dtype}; convert with .to(...) first")
        if places.dtype != np.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {places.dtype} in {name}()")
        if places.shape != x.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices "
                f"tensor with shape: {list(places.shape)}"
            )
        size = _output_size(output_size, x.shape[-n:], kernel, strides, pads)
        outer = x.shape[:-n]
        rows = (math.prod(outer), math.prod(x.shape[-n:]))
        return reshape(unpooled(reshape(x, rows), reshape(places, rows), size), (*outer, *size))

    doc = _DOC.format(
        n=n, input=input_of(n), data=nested_in([1.0, 3.0], n), kernel=(1,) * (n - 1) + (2,) if n > 1 else 2,
        value=nested_in([0.0, 3.0], n),
    )  # fmt: skip
    shape, more = (1, 2, *(2,) * n), (1, 1, *(1,) * (n - 1), 2)
    every = np.tile(np.arange(4**n).reshape((4,) * n)[(slice(1, None, 2),) * n], (1, 2, *(1,) * n))
    ends = np.array([1, 4]).reshape(more)
    samples = [
        Sample((shape, shape), {"kernel_size": 2}, (None, every)),
        Sample((more, more), {"kernel_size": 2, "stride": 2, "output_size": (*(2,) * (n - 1), 5)}, (None, ends)),
    ]
    publish_composite(name, call, doc, samples, _by_numpy)


for _n in (1, 2, 3):
    _function(_n)

"""Largest elements of windows whose distances vary at random, of images and volumes: an op, and its functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.windows import geometry_of_random_windows, random_windows_address
from tapegrad.ops.casts import cast
from tapegrad.ops.max_pooling import ValuesIndices, forward_of_chosen, rule_of_chosen, step_of_chosen
from tapegrad.ops.movement import reshape
from tapegrad.ops.pool_arguments import images, numbers
from tapegrad.ops.pooling import pool_doc, publish_composite
from tapegrad.ops.random import rand
from tapegrad.ops.table.composites import first_of_several
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import repeated
from tapegrad.recording.plan_cache import with_known
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

# Of a dimension: its length, how many windows it has, and their size.
Windows = tuple[tuple[int, int, int], ...]


def _begins(n: int, count: int, size: int, draws: np.ndarray) -> np.ndarray:
    """Return where windows along a dimension begin, (channels, count): the last one at its end.

    The sequence is the pseudorandom one of B. Graham, as PyTorch computes it.
    """
    if count == 1:
        return np.full((len(draws), 1), n - size)
    alpha = draws.dtype.type((n - size) / (count - 1))
    steps = ((np.arange(count, dtype=draws.dtype) + draws[:, None]) * alpha).astype(np.int64)
    begins: np.ndarray = steps - (draws * alpha).astype(np.int64)[:, None]
    begins[:, -1] = n - size
    return begins


def _places(space: Sequence[int], counts: Sequence[int], kernel: Sequence[int], draws: np.ndarray) -> np.ndarray:
    """Return the flat indices of the elements of all windows: (channels, windows, elements)."""
    found = np.zeros((len(draws), 1, 1), np.int64)
    order = draws if len(space) == 3 else draws[:, ::-1]  # of images the width is drawn first
    for n, count, size, own in zip(space, counts, kernel, order.T, strict=True):
        line = _begins(n, count, size, own)[:, :, None] + np.arange(size)
        grown = found[:, :, None, :, None] * n + line[:, None, :, None, :]
        found = grown.reshape(len(draws), found.shape[1] * count, found.shape[2] * size)
    return found


def _forward(x: np.ndarray, draws: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    if not ((draws >= 0) & (draws <= 1)).all():
        raise RuntimeError("fractional_max_pool() expects numbers from 0 to 1 in _random_samples")
    space, counts, kernel = zip(*windows, strict=True)
    places = _places(space, counts, kernel, draws)
    elements = np.take_along_axis(x.reshape(len(places), 1, -1), places, -1)
    chosen = elements.argmax(-1)[..., None]
    shape = (*x.shape[: -len(windows)], *counts)
    return tuple([np.take_along_axis(own, chosen, -1).reshape(shape) for own in (elements, places)])  # type: ignore[return-value]


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    layout, windows = layouts[0], attrs["windows"]
    by_numpy = functools.partial(_forward, windows=windows)
    if not has_kernel(layout) or not layout.size:
        return by_numpy
    space, counts, kernel = zip(*windows, strict=True)
    outer, dtype = layout.shape[: -len(windows)], layout.dtype
    geometry = geometry_of_random_windows(math.prod(outer), space, counts, kernel, dtype)
    shape = (*outer, *counts)
    return forward_of_chosen(random_windows_address(dtype.name), geometry, space, shape, dtype, by_numpy)


@operation(
    "fractionally_pooled",
    operands=("x", "draws"),
    forward=_forward,
    vjp=(rule_of_chosen, NOT_DIFFERENTIABLE),
    prepare_forward=_prepare,
    step=step_of_chosen,
    family="pooling",
    real_only=True,
    check_dtypes=only_floats("fractionally_pooled"),
    attrs=("windows",),
    results=("values", "indices"),
    result_type=ValuesIndices,
    oracle=lambda x, draws, windows: _oracle(x[None], windows[0][2], windows[0][1], draws[None])[0],
    samples=(Sample(((2, 5), (2, 1)), {"windows": ((5, 3, 2),)}, (None, repeated(0.1, 0.6))),),
    errors=(ErrorSample(lambda: xp.fractionally_pooled(None, None, ()), TypeError, "fractionally_pooled"),),
)
def fractionally_pooled(input: Any, draws: Any, windows: Windows) -> Bound:
    """Return the largest element of windows whose distances follow from a number of each channel and dimension."""
    x, drawn = (
        as_operand(input, "fractionally_pooled", "input", 1),
        as_operand(draws, "fractionally_pooled", "draws", 2),
    )
    n = len(windows)
    if drawn.shape != (math.prod(x.shape[:-n]), n):
        raise RuntimeError(
            f"fractionally_pooled() expects {n} numbers for each of {math.prod(x.shape[:-n])} channels, but got "
            f"{list(drawn.shape)}"
        )
    return Bound((x, drawn if drawn.dtype == x.dtype else cast(drawn, x.dtype)), {"windows": windows})


def _sizes(call: str, x: Tensor, size: Any, ratio: Any, n: int) -> tuple[int, ...]:
    if size is not None:
        return numbers(call, "output_size", size, n)
    if ratio is None:
        raise ValueError(f"{call} requires specifying either an output_size or an output_ratio")
    ratios = tuple(ratio) if isinstance(ratio, (tuple, list)) else (ratio,) * n
    if len(ratios) != n:
        raise ValueError(f"{call} requires output_ratio to either be a single number or {n}, but got {ratios}")
    return tuple([int(length * part) for length, part in zip(x.shape[-n:], ratios, strict=True)])


def _draws(call: str, samples: Any, x: Tensor, n: int) -> Tensor:
    """Return a number from 0 to 1 for each channel and each dimension."""
    batch, channels = x.shape[0] if x.ndim == n + 2 else 1, x.shape[-n - 1]
    if samples is None:
        return rand(batch * channels, n, dtype=x.dtype)
    given = as_operand(samples, call, "_random_samples", 6)
    if given.ndim != 3 or given.shape[0] < batch:
        raise RuntimeError(
            f"Expect _random_samples.size(0) no less then input batch size. {call}() needs [{batch}, {channels}, {n}] "
            f"and got {list(given.shape)}"
        )
    if given.shape[1:] != (channels, n):
        raise RuntimeError(
            f"Expect _random_samples to have shape {[batch, channels, n]}, but {call}() got {list(given.shape)}"
        )
    return reshape(given if given.shape[0] == batch else given[:batch], (batch * channels, n))


def _oracle(input: Any, kernel_size: Any, output_size: Any, _random_samples: Any, return_indices: bool = False) -> Any:
    n = input.ndim - 2
    kernel, counts = np.broadcast_to(kernel_size, n), np.broadcast_to(output_size, n)
    out = np.empty((*input.shape[:2], *counts), input.dtype)
    for at in np.ndindex(*out.shape):
        draws = _random_samples[at[:2]][:: 1 if n == 3 else -1].astype(input.dtype)
        part = []
        for k, count, size, length, u in zip(at[2:], counts, kernel, input.shape[2:], draws, strict=True):
            step = (length - size) / (count - 1 or 1)
            first = length - size if k == count - 1 else int((k + u) * step) - int(u * step)
            part.append(slice(first, first + size))
        out[at] = input[(*at[:2], *part)].max()
    return out


_PARAMETERS: Final = """\
kernel_size : int or tuple of int
    Of the window.
output_size : int or tuple of int, optional
    How many windows there are in each dimension.
output_ratio : float or tuple of float, optional
    Or what part of the lengths that is.
return_indices : bool
    Whether to return the places of the elements, too.
_random_samples : Tensor or array, (n, channels, dimensions), optional
    Numbers from 0 to 1, on which the places of the windows depend; default drawn."""

_DERIVATIVE: Final = """\
the cotangent goes to the element that was chosen.

B. Graham, "Fractional max-pooling" (2014)."""


def _pool_of(n: int) -> None:
    """Make the function of `n` dimensions."""
    name = f"fractional_max_pool{n}d"
    call_pooled = connect_as(f"FractionalMaxPool{n}DBackward0", op_table["fractionally_pooled"], 3)

    def pool(
        input: Any,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Tensor:
        x = images(name, input, n)
        kernel, counts = numbers(name, "kernel_size", kernel_size, n), _sizes(name, x, output_size, output_ratio, n)
        windows = tuple(zip(x.shape[-n:], counts, kernel, strict=True))
        for at, (length, count, size) in enumerate(windows):
            if size < 1 or count < 1:
                raise RuntimeError(
                    f"{name}() expects kernel_size and output_size greater than zero: {kernel}, {counts}"
                )
            if size + count - 1 > length:
                what = ("time", "height", "width")[at - n]
                raise RuntimeError(f"{name}(): pool {what} {size} too large relative to input {what} {length}")
        draws = _draws(name, _random_samples, x, n)
        found = call_pooled(x, draws, with_known(windows))
        result: Any = tuple(found) if return_indices else found[0]
        return result  # type: ignore[no-any-return]

    call: Callable[..., Tensor] = pool
    draws = np.array([[[0.1, 0.9, 0.5][:n], [0.6, 0.3, 0.8][:n]]])
    shape = (1, 2, 4, 5, 4)[: n + 2]
    samples = (
        Sample((shape,), {"kernel_size": 2, "output_size": 2, "_random_samples": draws}),
        Sample((shape,), {"kernel_size": (2, 1, 1)[:n], "output_size": (1, 4, 3)[:n], "_random_samples": draws}),
    )
    doc = pool_doc(
        name, n, f"Largest elements of windows at random places, as of `max_pool{n}d`.",
        _PARAMETERS, _DERIVATIVE, 2, 3.0, [0.0, 1.0], ", output_size=1",
    )  # fmt: skip
    publish_composite(name, call, doc, samples, _oracle, call=first_of_several)


for _n in (2, 3):
    _pool_of(_n)

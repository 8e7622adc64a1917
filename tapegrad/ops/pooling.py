"""Averages over windows of signals, images and volumes: composites of `resampled`; the documentation of pools."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.casts import cast
from tapegrad.ops.pool_arguments import Shape, images, numbers, output_sizes, pool_counts
from tapegrad.ops.resampling import Key, adaptive_range, resampled, times_matrices
from tapegrad.ops.rounding import trunc
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import connect_as
from tapegrad.ops.table.op import Bound, Sample, op_table
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.tensor import Tensor

_LETTERS: Final = {
    1: "(n, channels, length)",
    2: "(n, channels, height, width)",
    3: "(n, channels, depth, height, width)",
}
_WINDOW: Final = """\
kernel_size : int or tuple of int
    Of the window.
stride : int or tuple of int, optional
    How far it moves; default its size.
padding : int or tuple of int
    How many elements stand around each {what}; at most half of the window."""


def input_of(n: int) -> str:
    """Return the line of a docstring on an operand of `n` dimensions of space."""
    return f"input : Tensor or array, {_LETTERS[n]}\n    The first dimension may be missing."


def over_windows(x: Any, windows: Sequence[Sequence[slice]], function: Callable[[Any], Any]) -> Any:
    """Return a function of each window: `windows` has those of each dimension."""
    n = len(windows)
    parts = [function(x[(..., *at)].reshape(*x.shape[:-n], -1)) for at in itertools.product(*windows)]
    return np.stack(parts, -1).reshape(*x.shape[:-n], *map(len, windows))


def windows_of(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> list[slice]:
    """Return the windows along a dimension, but for padding."""
    found = []
    for first in range(-padding, n + padding, stride):
        end = first + dilation * (kernel - 1) + 1
        if end <= n + padding or (
            ceil_mode and first < n and (first + padding) % stride == 0 and end - n - padding < stride
        ):
            begin = first + dilation * max(-(first // dilation), 0)
            found.append(slice(begin, min(end, n), dilation))
    return found


def _avg_oracle(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    n = x.ndim - 2
    kernel, padding = np.broadcast_to(kernel_size, n), np.broadcast_to(padding, n)
    stride = np.broadcast_to(kernel if stride is None else stride, n)
    room = [(0, 0), (0, 0), *((p, p) for p in padding)]
    windows = [windows_of(m + 2 * p, k, s, 0, 1, ceil_mode)
               for m, k, s, p in zip(x.shape[2:], kernel, stride, padding, strict=True)]  # fmt: skip
    sums = over_windows(np.pad(x, room), windows, lambda own: own.sum(-1))
    ones = np.pad(np.ones_like(x), room, constant_values=float(count_include_pad))
    return sums / (divisor_override or over_windows(ones, windows, lambda own: own.sum(-1)))


def _adaptive_oracle(x: Any, output_size: Any) -> Any:
    return over_windows(x, adaptive_windows(x.shape[2:], output_size), lambda own: own.mean(-1))


def adaptive_windows(shape: Shape, size: Any) -> list[list[slice]]:
    """Return the windows of adaptive pools along each dimension."""
    return [[slice(*adaptive_range(j, n, count)) for j in range(count)]
            for n, count in zip(shape, np.broadcast_to(size, len(shape)), strict=True)]  # fmt: skip


def _average(
    call: str, n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool,
    divisor: int | None,
) -> Bound | Tensor:  # fmt: skip
    x = images(call, input, n, "lq")
    kernel = numbers(call, "kernel_size", kernel_size, n)
    strides = kernel if stride is None or stride in ([], ()) else numbers(call, "stride", stride, n)
    pads = numbers(call, "padding", padding, n)
    counts = pool_counts(call, x, kernel, strides, pads, (1,) * n, ceil_mode)
    if divisor == 0:
        raise RuntimeError(f"divisor must be not zero; {call}() got divisor_override=0")
    rest = 0 if include else None
    keys: tuple[Key, ...] = tuple([
        ("pool", *sizes, rest if divisor is None else divisor if place == 0 else 1)
        for place, sizes in enumerate(zip(x.shape[-n:], counts, kernel, strides, pads, strict=True))
    ])  # fmt: skip
    if x.dtype.kind != "f":
        means = resampled(cast(x, np.float64), keys)  # a few bits from what integers would be
        return cast(trunc(means * (1.0 + 2.0**-48)), x.dtype)
    return times_matrices(x, keys)


def _to_size(call: str, n: int, input: Any, output_size: Any) -> Bound:
    x, sizes = output_sizes(call, input, output_size, n)
    return times_matrices(x, tuple([("adaptive", *pair) for pair in zip(x.shape[-n:], sizes, strict=True)]))


_OF_WINDOW: Final = r"""with windows of m elements, the stride s and the padding p,
:math:`\bar x_i = \frac{1}{m} \sum_j [s j - p \le i] [i < s j - p + m] \bar y_j`."""
_OF_WINDOWS: Final = r"""for an image :math:`Y = A X B^T`, :math:`\bar X = A^T \bar Y B`. With windows of m rows, the
stride s and the padding p, :math:`A_{ij} = \frac{1}{m} [s i - p \le j < s i - p + m]`. B is the same for columns, and a
volume has a third matrix."""
_OF_ADAPTIVE: Final = r"""with :math:`a_j = \lfloor j n/m \rfloor` and :math:`b_j = \lceil (j + 1) n/m \rceil`,
:math:`\bar x_i = \sum_j [a_j \le i] [i < b_j] \frac{1}{b_j - a_j} \bar y_j` in each dimension, from n elements to m."""
_DOC: Final = """{sentence}

Parameters
----------
{parameters}

Returns
-------
Tensor

Raises
------
RuntimeError
    If shapes or numbers do not fit.

Notes
-----
Derivative: {derivative}

Examples
--------
>>> import tapegrad as tg
>>> x = tg.tensor({data}, requires_grad=True)
>>> y = tg.nn.functional.{name}(x, {argument})
>>> y.tolist()
{value}
>>> y.sum().backward()
>>> x.grad.tolist()
{grad}
"""


def pool_doc(
    name: str, n: int, sentence: str, parameters: str, derivative: str, argument: Any, value: float, grad: list[float],
    more: str = "",
) -> str:  # fmt: skip
    """Return the docstring of a pool of `n` dimensions, with an example on two channels of two elements."""
    argument = argument if n == 1 else (1,) * (n - 1) + (argument,)
    return _DOC.format(
        sentence=sentence, parameters=f"{input_of(n)}\n{parameters}", derivative=derivative, name=name,
        data=nested_in([1.0, 3.0], n), argument=f"{argument}{more}", value=nested_in([value], n),
        grad=nested_in(grad, n),
    )  # fmt: skip


def nested_in(values: Any, n: int) -> Any:
    """Return a list in `n` lists: a channel."""
    for _ in range(n):
        values = [values]
    return values


ALSO_AT_TOP: Final = (FUNCTIONAL, TOP)  # where PyTorch has some of the pools too
SHAPES: Final = {1: (2, 2, 5), 2: (1, 2, 4, 5), 3: (1, 1, 2, 3, 4)}


def _pools_of(n: int) -> None:
    """Make the functions of `n` dimensions."""
    shape = SHAPES[n]
    name, adaptive = f"avg_pool{n}d", f"adaptive_avg_pool{n}d"
    what = ("signal", "image", "volume")[n - 1]
    options: list[dict[str, Any]] = [
        {"kernel_size": 2},
        {"kernel_size": 2, "stride": 1, "padding": 1, "count_include_pad": False},
        {"kernel_size": 2, "stride": 3, "ceil_mode": True} | ({} if n == 1 else {"divisor_override": 3}),
    ]

    call_average = connect_as(
        f"AvgPool{n}DBackward0", op_table["resampled"], 6, name=name, bind=functools.partial(_average, name, n)
    )
    bind = functools.partial(_to_size, adaptive, n)
    call_to_size = connect_as(f"AdaptiveAvgPool{n}DBackward0", op_table["resampled"], 1, name=adaptive, bind=bind)

    def average(
        input: Any,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        result: Tensor = call_average(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
        return result

    def average_of_signals(
        input: Any,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        result: Tensor = call_average(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)
        return result

    def to_size(input: Any, output_size: Any) -> Tensor:
        result: Tensor = call_to_size(input, output_size)
        return result

    dimensions = f"{('one', 'two', 'three')[n - 1]} dimension{'s' if n > 1 else ''}"
    more = (
        "ceil_mode : bool\n    The last window may reach beyond the padding.\ncount_include_pad : bool\n"
        "    Whether the padding counts as elements."
    )
    if n > 1:
        more += "\ndivisor_override : int, optional\n    What sums are divided by, in place of the count."
    parameters = f"{_WINDOW.format(what=what)}\n{more}"
    function: Callable[..., Tensor] = average_of_signals if n == 1 else average
    sentence, derivative = f"Mean of each window of {what}s, of {dimensions}.", _OF_WINDOW if n == 1 else _OF_WINDOWS
    doc = pool_doc(name, n, sentence, parameters, derivative, 2, 2.0, [0.5, 0.5])
    samples = [Sample((shape,), own) for own in options]
    publish_composite(name, function, doc, samples, _avg_oracle, ALSO_AT_TOP if n == 1 else (FUNCTIONAL,))
    size = f"output_size : int or tuple of int\n    Of the result; None in it stands for that of the {what}s."
    doc = pool_doc(
        adaptive, n, f"Means of {what}s over windows, as many of {dimensions} as asked for, which may overlap.",
        size, _OF_ADAPTIVE, 1, 2.0, [0.5, 0.5],
    )  # fmt: skip
    samples = [Sample((shape,), {"output_size": own}) for own in (2, 3)]
    publish_composite(adaptive, to_size, doc, samples, _adaptive_oracle, ALSO_AT_TOP if n == 1 else (FUNCTIONAL,))


def publish_composite(
    name: str, function: Callable[..., Any], doc: str, samples: Sequence[Sample], oracle: Callable[..., Any],
    namespaces: tuple[str, ...] = (FUNCTIONAL,), **options: Any,
) -> None:  # fmt: skip
    """Make a function of real numbers public, and a composite, under a name."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public(namespaces=namespaces)(composite(samples, oracle, real_only=True, **options)(function))


for _n in (1, 2, 3):
    _pools_of(_n)

"""Largest elements of windows of signals, images and volumes: an op, whose cotangent goes where the indices say."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.chosen import along_address, chosen_address
from tapegrad.kernels.windows import geometry_of_windows, windows_address
from tapegrad.ops.pool_arguments import images, numbers, output_sizes, pool_counts
from tapegrad.ops.pooling import ALSO_AT_TOP, adaptive_windows, over_windows, pool_doc, publish_composite, windows_of
from tapegrad.ops.resampling import adaptive_range
from tapegrad.ops.table.composites import first_of_several
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import ARRAY, CT, Step
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]
# Of a dimension: its length, how many windows it has, and their size, stride, padding and dilation. Without these four
# they are adaptive.
Windows = tuple[tuple[int, ...], ...]


class ValuesIndices(NamedTuple):
    """Largest elements, and their places in the flat signal, image or volume."""

    values: Tensor
    indices: Tensor


@functools.lru_cache(maxsize=64)
def _elements(windows: Windows) -> np.ndarray:
    """Return the flat indices of the elements of each window, in their order; short windows repeat their first."""
    lines = []
    for n, count, *rest in windows:
        if rest:
            size, stride, padding, dilation = rest
            table = np.arange(count)[:, None] * stride - padding + np.arange(size) * dilation
            inside = (table >= 0) & (table < n)
        else:
            ends = [adaptive_range(j, n, count) for j in range(count)]
            first = np.array([begin for begin, _ in ends], np.int64)[:, None]
            table = first + np.arange(max((end - begin for begin, end in ends), default=0))
            inside = table < np.array([end for _, end in ends])[:, None]
        first = np.take_along_axis(table, inside.argmax(1)[:, None], 1)
        lines.append(np.where(inside, table, first))
    found = np.zeros((1, 1), np.int64)
    for (n, *_), line in zip(windows, lines, strict=True):
        # (windows before, 1, elements before, 1) and (1, windows, 1, elements)
        grown = found[:, None, :, None] * n + line[None, :, None, :]
        found = grown.reshape(len(found) * len(line), -1)
    return found


def _forward(x: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    outer, counts = x.shape[: -len(windows)], tuple([count for _, count, *_ in windows])
    if 0 in (*outer, *counts):
        return np.empty((*outer, *counts), x.dtype), np.empty((*outer, *counts), np.int64)
    places = _elements(windows)
    flat = x.reshape(math.prod(outer), -1)
    # NumPy says where the first of the largest stands, or the first nan.
    chosen = flat.take(places, axis=1).argmax(-1)
    indices = places.ravel()[chosen + np.arange(0, places.size, places.shape[1])]
    shape = (*outer, *counts)
    return np.take_along_axis(flat, indices, 1).reshape(shape), indices.reshape(shape)


@functools.lru_cache(maxsize=64)
def _lines(windows: Windows) -> list[list[tuple[int, int, int]]]:
    """Return for each dimension, and for those that are missing, the windows as the kernel reads them."""
    lines = [[(0, 1, 1)]] * (3 - len(windows))
    for n, count, *rest in windows:
        line = []
        for j in range(count):
            if rest:
                size, stride, padding, dilation = rest
                inside = [at for at in range(j * stride - padding, j * stride - padding + size * dilation, dilation)
                          if 0 <= at < n]  # fmt: skip
                line.append((inside[0] if inside else 0, len(inside), dilation))
            else:
                begin, end = adaptive_range(j, n, count)
                line.append((begin, end - begin, 1))
        lines.append(line)
    return lines


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    layout, windows = layouts[0], attrs["windows"]
    by_numpy = functools.partial(_forward, windows=windows)
    outer, space = layout.shape[: -len(windows)], layout.shape[-len(windows) :]
    counts = tuple(one[1] for one in windows)
    if not has_kernel(layout) or not layout.size or not math.prod(counts):
        return by_numpy
    missing = (1,) * (3 - len(windows))
    geometry = geometry_of_windows(math.prod(outer), (*missing, *space), _lines(windows))
    if geometry is None:
        return by_numpy
    dtype, shape = layout.dtype, (*outer, *counts)
    return forward_of_chosen(windows_address(dtype.name), geometry, space, shape, dtype, by_numpy)


def forward_of_chosen(
    kernel: int, geometry: list[int], space: Shape, shape: Shape, dtype: np.dtype, by_numpy: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the forward: a kernel finds where in volumes the elements stand, another one takes them."""
    n = math.prod(shape[-len(space) :])
    indices = computed(
        kernel, geometry, shape, np.dtype(np.int64), lambda *operands: by_numpy(*operands)[1], by_status=True
    )
    values = computed(
        chosen_address("gather", dtype.name), [0, math.prod(shape) // n, n, 1, math.prod(space)], shape, dtype,
        lambda x, places: x.reshape(-1, math.prod(space))[np.arange(len(x))[:, None], places], by_status=True,
    )  # fmt: skip

    def forward(x: np.ndarray, *more: np.ndarray) -> tuple[Any, Any]:
        places = indices(x, *more)
        return values(x, places), places

    return forward


def step_of_chosen(plan: Plan, operand: int) -> Step | None:
    """Return the step that puts the cotangent where the indices say."""
    layout, windows = plan.layouts[0], plan.attrs["windows"]
    if not has_kernel(layout) or not layout.size:
        return None
    outer, n = math.prod(layout.shape[: -len(windows)]), math.prod(layout.shape[-len(windows) :])
    geometry = [0, outer, math.prod(one[1] for one in windows), 1, n]
    sources = [(CT, 0), (ARRAY, plan.position("indices"))]
    return Step(functools.partial(along_address, layout.dtype.name, True), geometry, sources, into_view=True)


def rule_of_chosen(ct: Any, indices: Any, x_shape: Shape, windows: Windows) -> Any:
    """Return the rule that does so."""
    outer, n = x_shape[: -len(windows)], math.prod(x_shape[-len(windows) :])
    flat = (math.prod(outer), math.prod(one[1] for one in windows))
    return xp.reshape(xp.put_along(xp.reshape(ct, flat), xp.reshape(indices, flat), 1, n), x_shape)


def _oracle(x: Any, windows: Windows) -> Any:
    n, count, *rest = windows[0]
    ranges = windows_of(n, rest[0], rest[1], rest[2], rest[3], False) if rest else adaptive_windows((n,), count)[0]
    return over_windows(x, [ranges], lambda own: own.max(-1))


@operation(
    "pooled",
    forward=_forward,
    vjp=(rule_of_chosen,),
    prepare_forward=_prepare,
    step=step_of_chosen,
    family="pooling",
    real_only=True,
    attrs=("windows",),
    results=("values", "indices"),
    result_type=ValuesIndices,
    oracle=_oracle,
    samples=(
        Sample(((2, 5),), {"windows": ((5, 3, 2, 2, 1, 1),)}),
        Sample(((2, 5),), {"windows": ((5, 3),)}),
    ),
    errors=(ErrorSample(lambda: xp.pooled(None, ()), TypeError, "pooled"),),
)
def pooled(input: Any, windows: Windows) -> Bound:
    """Return the largest element of each window, and where it stands."""
    return Bound((as_operand(input, "pooled", "input", 1),), {"windows": windows})


# Functions ---------------------------------------------------------------------------------------------------------

_WINDOW: Final = """\
kernel_size : int or tuple of int
    Of the window.
stride : int or tuple of int, optional
    How far it moves; default its size.
padding : int or tuple of int
    How many elements, which are never the largest, stand around; at most half of the window.
dilation : int or tuple of int
    How far the elements of a window stand from each other.
ceil_mode : bool
    The last window may reach beyond the padding.
"""
_INDICES: Final = "return_indices : bool\n    Whether to return the places of the elements, too."
_SHAPES: Final = {1: (2, 2, 5), 2: (1, 2, 4, 5), 3: (1, 1, 2, 3, 4)}


def _max_oracle(
    x: Any, kernel_size: int, stride: int | None = None, padding: int = 0, dilation: int = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    stride = kernel_size if stride is None else stride
    windows = [windows_of(n, kernel_size, stride, padding, dilation, ceil_mode) for n in x.shape[2:]]
    return over_windows(x, windows, lambda own: own.max(-1))


def _adaptive_oracle(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    return over_windows(x, adaptive_windows(x.shape[2:], output_size), lambda own: own.max(-1))


def _windows(
    call: str, n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Bound:
    x = images(call, input, n, "" if n == 1 else np.typecodes["AllInteger"])
    kernel = numbers(call, "kernel_size", kernel_size, n)
    strides = kernel if stride is None or stride in ([], ()) else numbers(call, "stride", stride, n)
    pads, dilations = numbers(call, "padding", padding, n), numbers(call, "dilation", dilation, n)
    counts = pool_counts(call, x, kernel, strides, pads, dilations, ceil_mode)
    return Bound((x,), {"windows": tuple(zip(x.shape[-n:], counts, kernel, strides, pads, dilations, strict=True))})


def _windows_to_size(call: str, n: int, input: Any, output_size: Any) -> Bound:
    x, sizes = output_sizes(call, input, output_size, n)
    return Bound((x,), {"windows": tuple(zip(x.shape[-n:], sizes, strict=True))})


def _functions(n: int) -> None:
    """Make the functions of `n` dimensions."""
    name, adaptive = f"max_pool{n}d", f"adaptive_max_pool{n}d"
    names = ("signals, of one dimension", "images, of two dimensions", "volumes, of three dimensions")[n - 1]

    call_largest = connect_as(
        f"MaxPool{n}DWithIndicesBackward0", op_table["pooled"], 5, name=name,
        bind=functools.partial(_windows, name, n),
    )  # fmt: skip
    call_to_size = connect_as(
        f"AdaptiveMaxPool{n}DBackward0", op_table["pooled"], 1, name=adaptive,
        bind=functools.partial(_windows_to_size, adaptive, n),
    )  # fmt: skip

    def largest(
        input: Any,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor:
        found = call_largest(input, kernel_size, stride, padding, dilation, ceil_mode)
        result: Any = tuple(found) if return_indices else found[0]
        return result  # type: ignore[no-any-return]

    def to_size(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
        found = call_to_size(input, output_size)
        result: Any = tuple(found) if return_indices else found[0]
        return result  # type: ignore[no-any-return]

    derivative = """the cotangent goes to the element that was chosen, the first of those that tie; with the indices p,
:math:`\\bar x_i = \\sum_j [p_j = i] \\bar y_j`."""
    options: tuple[dict[str, Any], ...] = (
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 2, "stride": 3, "ceil_mode": n < 3},
    )  # fmt: skip
    samples = [Sample((_SHAPES[n],), own) for own in options]
    sentence = f"Largest element of each window of {names}."
    doc = pool_doc(name, n, sentence, _WINDOW + _INDICES, derivative, 2, 3.0, [0.0, 1.0])
    publish_composite(name, largest, doc, samples, _max_oracle, ALSO_AT_TOP, call=first_of_several)
    size = f"output_size : int or tuple of int\n    Of the result; None in it stands for that of the input.\n{_INDICES}"
    sentence = f"Largest elements of windows, as many as asked for, of {names}."
    doc = pool_doc(adaptive, n, sentence, size, derivative, 1, 3.0, [0.0, 1.0])
    samples = [Sample((_SHAPES[n],), {"output_size": own}) for own in (2, 3)]
    publish_composite(adaptive, to_size, doc, samples, _adaptive_oracle, call=first_of_several)


for _n in (1, 2, 3):
    _functions(_n)

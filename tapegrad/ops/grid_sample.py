"""Images and volumes interpolated at places that a grid says."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.sampling import CUBIC, MODES, PADDING, sampling_address
from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import abs, add, div, mul, sub, where
from tapegrad.ops.movement import reshape
from tapegrad.ops.rounding import floor
from tapegrad.ops.sampling import aligned
from tapegrad.ops.standard import affine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor, from_array

Shape = tuple[int, ...]

_AROUND: Final = {"bilinear": (0, 2), "nearest": (0, 1), "bicubic": (-1, 3)}  # the neighbours along each dimension


def _inside(at: Tensor, space: Shape, padding: str, align: bool) -> Tensor:
    """Return coordinates brought to an image; those that were outside have no derivative."""
    for_all = np.array(space[::-1])
    if padding == "reflection":
        low, span = (0.0, for_all - 1.0) if align else (-0.5, for_all * 1.0)
        data = np.where(span > 0, span, 1.0).astype(at.dtype)
        apart = abs(sub(at, low))
        turns = floor(div(apart, from_array(data)))
        rest = sub(apart, mul(turns, from_array(data)))
        at = add(where(turns % 2 == 0, rest, sub(from_array(data), rest)), low)
        at = at if (span > 0).all() else mul(at, from_array((span > 0).astype(at.dtype)))
    top = from_array((for_all - 1).astype(at.dtype))
    result: Tensor = where(at > 0, where(at < top, at, top), 0.0)
    return result


# Interpolation -----------------------------------------------------------------------------------------------------


def _weights(near: Any, mode: str) -> Any:
    """Return the weights of the neighbours along each dimension, of coordinates from the first one on."""
    if mode == "nearest":
        return np.ones((*near.shape, 1), near.dtype)
    if mode == "bilinear":
        return xp.stack([1.0 - near, near], -1)
    a, far = CUBIC, 1.0 - near
    left, right = (((a + 2) * t - (a + 3)) * t * t + 1.0 for t in (near, far))
    first, last = (((t - 5.0) * t + 8.0) * t * a - 4 * a for t in (near + 1.0, far + 1.0))
    return xp.stack([first, left, right, last], -1)


def _slopes(near: Any, mode: str) -> Any:
    """Return the derivatives of the weights."""
    if mode == "nearest":
        return np.zeros((*near.shape, 1), near.dtype)
    if mode == "bilinear":
        return np.broadcast_to(np.array([-1, 1], near.dtype), (*near.shape, 2))
    a, far = CUBIC, 1.0 - near
    left, right = ((3 * (a + 2) * t - 2 * (a + 3)) * t for t in (near, far))
    first, last = (((3.0 * t - 10.0) * t + 8.0) * a for t in (near + 1.0, far + 1.0))
    return xp.stack([first, left, -right, -last], -1)


def _combined(each: Any) -> Any:
    """Return the products of weights along each dimension, given from the last dimension on."""
    total = each[-1]
    for further in each[-2::-1]:
        total = xp.reshape(xp.unsqueeze(total, -1) * xp.unsqueeze(further, -2), (*total.shape[:-1], -1))
    return total


def _around(at: Any, space: Shape, mode: str, padding: str, align: bool) -> tuple[Any, Any]:
    """Return the flat places of the elements around coordinates, and the coordinates from the first of them on."""
    first = xp.round(at) if mode == "nearest" else xp.floor(at)
    return xp.neighbours(first, space, _AROUND[mode], padding, align), at - first


def _rule(ct: Any, x: Any, at: Any, mode: str, padding: str, align: bool, wanted: tuple[bool, bool]) -> tuple[Any, Any]:
    (count, channels, *space), n = x.shape, at.shape[-1]
    length = math.prod(space)
    places, near = _around(at, tuple(space), mode, padding, align)  # (count, sites, neighbours)
    inside, some = places >= 0, places.shape[2]
    flat = xp.expand(xp.reshape(xp.where(inside, places, 0), (count, 1, -1)), (count, channels, at.shape[1] * some))
    weights = [_weights(near[..., dim], mode) for dim in range(n)]
    of_x = of_at = None
    if wanted[0]:
        terms = xp.unsqueeze(ct, -1) * xp.unsqueeze(xp.where(inside, _combined(weights), 0.0), 1)
        of_x = xp.reshape(xp.put_along(xp.reshape(terms, flat.shape), flat, 2, length), x.shape)
    if wanted[1]:
        values = xp.reshape(xp.gather(xp.reshape(x, (count, channels, length)), 2, flat), (*ct.shape, some))
        sums = xp.where(inside, xp.sum(xp.unsqueeze(ct, -1) * values, 1), 0.0)
        slopes = [_slopes(near[..., dim], mode) for dim in range(n)]
        towards = [xp.sum(sums * _combined([*weights[:d], slopes[d], *weights[d + 1 :]]), -1) for d in range(n)]
        of_at = xp.stack(towards, -1)
    return of_x, of_at


def _geometry(x: Layout, at: Layout, attrs: Mapping[str, Any]) -> list[int] | None:
    """Return the geometry of the kernels; None if they do not take such operands."""
    if not (has_kernel(x) and has_kernel(at) and x.size and at.size):
        return None
    (count, channels, *space), (_, sites, n) = x.shape, at.shape
    missing = [1] * (3 - n)
    return [0, count, channels, *missing, *space, sites, PADDING.index(attrs["padding"]), int(attrs["align"])]


def _kernel(what: str, at: Layout, attrs: Mapping[str, Any]) -> int:
    return sampling_address(at.dtype.name, what, MODES.index(attrs["mode"]), at.shape[2])


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    x, at = layouts
    geometry, by_copies = _geometry(x, at, attrs), functools.partial(_forward, **attrs)
    if geometry is None:
        return by_copies
    shape = (*x.shape[:2], at.shape[1])
    return computed(_kernel("values", at, attrs), geometry, shape, x.dtype, by_copies, by_status=True)


def _forward(x: Any, at: Any, **attrs: Any) -> Any:
    """Compute what the kernel does not take: operands that are not contiguous."""
    if not (x.size and at.size):
        return np.zeros((*x.shape[:2], at.shape[1]), x.dtype)
    # Copies: NumPy calls an array contiguous whatever its strides along dimensions of length 1 are; layouts do not.
    x, at = x.copy(), at.copy()
    return _prepare((layout_of(x), layout_of(at)), attrs)(x, at)


def _step(plan: Plan, operand: int) -> Step | None:
    x, at = plan.layouts
    geometry = _geometry(x, at, plan.attrs)
    if geometry is None:
        return None
    names, what = (("ct", "at"), "elements") if operand == 0 else (("ct", "x", "at"), "places")
    sources = [plan.source(name) for name in names]
    return Step(functools.partial(_kernel, what, at, plan.attrs), geometry, sources, into_view=operand == 0)


def _interpolated_oracle(x: Any, at: Any, mode: str, padding: str, align: bool) -> Any:
    lengths = np.array(x.shape[:1:-1])
    grid = 2 * at / (lengths - 1) - 1
    sites = grid.reshape(len(x), -1, *[1] * (x.ndim - 3), at.shape[-1])
    found = _by_numpy(x, sites, mode, padding, True)
    return found.reshape(*x.shape[:2], -1).astype(x.dtype)


def _some_places(shape: Shape, dtype: Any, rng: Any) -> np.ndarray:
    return np.asarray(rng.integers(-1, 3, shape) + rng.uniform(0.1, 0.4, shape), dtype)


@operation(
    "interpolated_at", operands=("x", "at"), family="sampling", forward=_forward, prepare_forward=_prepare, vjp=_rule,
    step=_step, attrs=("mode", "padding", "align"), node_name="GridSampler2DBackward0", real_only=True, kinks=(),
    check_dtypes=only_floats("grid_sample"),
    oracle=_interpolated_oracle,
    samples=tuple(
        Sample(shapes, {"mode": mode, "padding": "zeros", "align": True}, (None, _some_places))
        for mode in MODES
        for shapes in (((2, 2, 3, 4), (2, 3, 2)), ((1, 2, 2, 3, 2), (1, 2, 3)))
        if mode != "bicubic" or len(shapes[0]) == 4
    ),
    errors=(
        ErrorSample(lambda: xp.interpolated_at(None, None, "nearest", "zeros", True), TypeError, "grid_sample"),
        ErrorSample(
            lambda: xp.interpolated_at(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2), np.float32), "nearest", "zeros", True),
            RuntimeError, "expected scalar type Double but found Float",
        ),
    ),
)  # fmt: skip
def interpolated_at(input: Any, at: Any, mode: str, padding: str, align: bool) -> Bound:
    """Interpolate images at places, whose coordinates count elements, that along the width first."""
    x, places = as_operand(input, "grid_sample", "input", 1), as_operand(at, "grid_sample", "grid", 2)
    if x.dtype != places.dtype:
        found, wanted = TORCH_NAMES[places.dtype.name], TORCH_NAMES[x.dtype.name]
        raise RuntimeError(f"expected scalar type {wanted} but found {found}; grid_sample() does not promote")
    return Bound((x, places), {"mode": mode, "padding": padding, "align": align})


def _by_numpy(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """Interpolate place by place."""
    space, n = input.shape[2:], input.ndim - 2
    out = np.zeros((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    for where_, at in ((place, grid[place]) for place in np.ndindex(*grid.shape[:-1])):
        total = 0
        places = [((1 + g) * m - 1) / 2 if not align_corners else (g + 1) / 2 * (m - 1)
                  for g, m in zip(at[::-1], space, strict=True)]  # fmt: skip

        def mirrored(own: float, m: int) -> float:
            low, high = (0, m - 1) if align_corners else (-0.5, m - 0.5)
            while not low <= own <= high and high > low:
                own = 2 * low - own if own < low else 2 * high - own
            return own

        def brought(own: float, m: int) -> float:
            own = mirrored(own, m) if padding_mode == "reflection" else own
            return own if padding_mode == "zeros" else min(max(own, 0), m - 1)

        if mode != "bicubic":
            places = [brought(own, m) for own, m in zip(places, space, strict=True)]
        first = [int(np.rint(own) if mode == "nearest" else np.floor(own)) for own in places]
        low, high = {"bilinear": (0, 2), "nearest": (0, 1), "bicubic": (-1, 3)}[mode]
        for steps in np.ndindex(*(high - low,) * n):
            own = [at + step + low for at, step in zip(first, steps, strict=True)]
            apart = [np.abs(p - q) for p, q in zip(own, places, strict=True)]
            if mode == "bilinear":
                factor = np.prod([1 - d for d in apart])
            elif mode == "nearest":
                factor = 1.0
            else:
                factor = np.prod([
                    1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3 for d in apart
                ])  # fmt: skip
                own = [int(brought(p, m)) for p, m in zip(own, space, strict=True)]
            if all(0 <= p < m for p, m in zip(own, space, strict=True)):
                total = total + factor * input[(where_[0], slice(None), *own)]
        out[(where_[0], slice(None), *where_[1:])] = total
    return out


@functools.lru_cache(maxsize=64)
def _scale_and_shift(space: Shape, align: bool, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return what makes coordinates from -1 to 1 numbers of elements, the width first."""
    lengths = np.array(space[::-1])
    return ((lengths - 1 if align else lengths) / 2).astype(dtype), ((lengths - 1) / 2).astype(dtype)


def _grids(shape: Shape, dtype: Any, rng: Any) -> np.ndarray:
    """Draw coordinates of which none is between two elements' middles for lengths of 3 and 4, or on an edge."""
    values = (rng.integers(-7, 7, shape) * 2 + rng.uniform(0.6, 1.4, shape)) / 10.5
    return np.asarray(values, dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((2, 2, 3, 4), (2, 2, 3, 2)), {"align_corners": False}, (None, _grids)),
        Sample(((1, 2, 3, 4), (1, 2, 3, 2)), {"padding_mode": "border", "align_corners": True}, (None, _grids)),
        Sample(((1, 1, 2, 3, 4), (1, 2, 1, 2, 3)), {"padding_mode": "reflection", "align_corners": False},
               (None, _grids)),
        Sample(((1, 2, 3, 4), (1, 2, 3, 2)), {"mode": "nearest", "align_corners": False}, (None, _grids)),
        Sample(((1, 2, 3, 4), (1, 2, 3, 2)), {"mode": "bicubic", "align_corners": False}, (None, _grids)),
        Sample(((1, 1, 3, 4), (1, 2, 3, 2)), {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True},
               (None, _grids)),
    ),
    _by_numpy, real_only=True, kinks=(),
)  # fmt: skip
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    r"""Interpolate images or volumes at places that a grid says.

    Parameters
    ----------
    input : Tensor or array, (n, channels, height, width) or (n, channels, depth, height, width)
    grid : Tensor or array, (n, ..., 2) or (n, ..., 3)
        Coordinates, that along the width first: -1 and 1 are the ends of a dimension.
    mode : {"bilinear", "nearest", "bicubic"}
    padding_mode : {"zeros", "border", "reflection"}
        What stands around: zeros, the elements at the border, or the image mirrored.
    align_corners : bool, optional
        Whether -1 and 1 are the middles of the first and the last elements, or their edges.

    Returns
    -------
    Tensor, (n, channels, ...)

    Raises
    ------
    RuntimeError, ValueError
        If shapes or modes do not fit.

    Notes
    -----
    Derivative: with :math:`y = \sum_{ij} a_i b_j X_{ij}`, where a and b are the weights of the interpolation at the
    place of a result, :math:`\bar X_{ij} = a_i b_j \bar y`. For `grid` it is the slope of the interpolation: 0 for
    "nearest", and outside of an image with a border. M. Jaderberg et al., "Spatial transformer networks" (2015).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, grid = tg.tensor([[[[1.0, 3.0]]]]), tg.tensor([[[[0.0, 0.0], [-0.5, 0.0]]]])
    >>> tg.nn.functional.grid_sample(x, grid, align_corners=True)
    tensor([[[[2.0000, 1.5000]]]])
    """
    call = "grid_sample"
    x, at = floating(call, input), floating(call, grid)
    n = x.ndim - 2
    if mode not in MODES:
        raise ValueError(f"{call}(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in PADDING:
        raise ValueError(
            f"{call}(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if n not in (2, 3) or at.ndim != x.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(x.shape)} and grid with sizes {list(at.shape)}"
        )
    if x.shape[0] != at.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(x.shape)} and grid with sizes {list(at.shape)}"
        )
    if at.shape[-1] != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes "
            f"{list(at.shape)}"
        )
    if 0 in x.shape[2:]:
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions; got {list(x.shape)}")
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    align, space = aligned(call, align_corners), x.shape[2:]
    count, channels, sites = x.shape[0], x.shape[1], at.shape[1:-1]
    at = affine(reshape(at, (count, -1, n)), *map(from_array, _scale_and_shift(space, align, at.dtype)))
    if padding_mode != "zeros" and mode != "bicubic":
        at = _inside(at, space, padding_mode, align)
    found = interpolated_at(x, at, mode, padding_mode, align)
    return reshape(found, (count, channels, *sites))

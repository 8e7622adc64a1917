"""Images and volumes interpolated at places that a grid says."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import abs, add, clamp, div, mul, sub, where
from tapegrad.ops.broadcasting import expand, unsqueeze
from tapegrad.ops.concat import stack
from tapegrad.ops.gather import gather
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import sum
from tapegrad.ops.rounding import floor, round
from tapegrad.ops.sampling import aligned, neighbours
from tapegrad.ops.standard import affine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor, from_array

Shape = tuple[int, ...]

_MODES: Final = {"bilinear": (0, 2), "nearest": (0, 1), "bicubic": (-1, 3)}  # the neighbours along each dimension
_PADDING: Final = ("zeros", "border", "reflection")
_CUBIC: Final = -0.75


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


def _weights(near: Tensor, mode: str) -> Any:
    """Return the weights of the neighbours along each dimension, of coordinates from the first one on."""
    if mode != "bicubic":
        return stack([sub(1.0, near), near], -1)
    a = _CUBIC

    def inner(t: Any) -> Any:
        return add(mul(mul(sub(mul(t, a + 2), a + 3), t), t), 1.0)

    def outer(t: Any) -> Any:
        return sub(mul(add(mul(sub(mul(t, a), 5 * a), t), 8 * a), t), 4 * a)

    far = sub(1.0, near)
    return stack([outer(add(near, 1.0)), inner(near), inner(far), outer(add(far, 1.0))], -1)


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
    """Interpolate images or volumes at places that a grid says.

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
    Derivative: by `input` the weights of its elements, by `grid` the slope of the interpolation: 0 for "nearest", and
    outside of an image with a border. M. Jaderberg et al., "Spatial transformer networks" (2015).

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
    if mode not in _MODES:
        raise ValueError(f"{call}(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in _PADDING:
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
    lengths = np.array(space[::-1])
    at = reshape(at, (count, -1, n))
    scale, shift = ((lengths - 1 if align else lengths) / 2, (lengths - 1) / 2)
    at = affine(at, from_array(scale.astype(at.dtype)), from_array(shift.astype(at.dtype)))
    if padding_mode != "zeros" and mode != "bicubic":
        at = _inside(at, space, padding_mode, align)
    first = (round if mode == "nearest" else floor)(at)
    places = neighbours(first, space, _MODES[mode], padding_mode, align)
    values = _values(reshape(x, (count, channels, math.prod(space))), places)  # (n, channels, sites, neighbours)
    if mode == "nearest":
        return reshape(values, (count, channels, *sites))
    each = _weights(sub(at, first), mode)  # (n, sites, dimensions, neighbours along one)
    weights = getitem(each, (slice(None), slice(None), n - 1))
    for dim in range(n - 2, -1, -1):
        further = getitem(each, (slice(None), slice(None), dim))
        weights = reshape(mul(unsqueeze(weights, -1), unsqueeze(further, -2)), (count, at.shape[1], -1))
    return reshape(sum(mul(values, unsqueeze(weights, 1)), -1), (count, channels, *sites))


def _values(x: Tensor, places: Tensor) -> Any:
    """Return the elements at places, 0 for those outside."""
    count, channels, _ = x.shape
    flat = reshape(clamp(places, 0), (count, 1, -1))
    found = gather(x, 2, expand(flat, (count, channels, flat.shape[2])))
    found = reshape(found, (count, channels, *places.shape[1:]))
    return where(unsqueeze(places >= 0, 1), found, 0.0)

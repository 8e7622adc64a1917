"""Grids of places in images and volumes, and the op that finds the elements around them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.along import floating
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import transpose
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import integer, operation
from tapegrad.tensor import Tensor, from_array

Shape = tuple[int, ...]


def aligned(call: str, align_corners: bool | None) -> bool:
    """Return whether corners are aligned; warn, as PyTorch does, if nothing is said."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            f"specify align_corners=True if the old behavior is desired in {call}().",
            UserWarning,
            stacklevel=3,
        )
    return bool(align_corners)


# Grids -------------------------------------------------------------------------------------------------------------


def _places(space: Sequence[int], align: bool, dtype: np.dtype) -> np.ndarray:
    """Return the coordinates of all places from -1 to 1, those of the last dimension first, and 1."""
    places = np.ones((*space, len(space) + 1), dtype)
    for dim, n in enumerate(space):
        line = np.arange(1 - n, n, 2) / max(n - 1 if align else n, 1)
        places[..., len(space) - 1 - dim] = line.reshape(-1, *(1,) * (len(space) - 1 - dim))
    return places


def _affine_by_numpy(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    lines = [np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) if n > 1 else np.zeros(n) for n in size[2:]]
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
    return np.einsum("...i,nji->n...j", grid, theta).astype(theta.dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((2, 2, 3),), {"size": (2, 1, 3, 4), "align_corners": False}),
        Sample(((1, 3, 4),), {"size": (1, 2, 2, 4, 3), "align_corners": True}),
    ),
    _affine_by_numpy, real_only=True,
)  # fmt: skip
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    r"""Return the grid of `grid_sample` by which images are moved, turned and scaled.

    Derivative: with :math:`G = P \theta^T`, where a row of P is (x, y, 1) of a place, :math:`\bar \theta = \bar G^T P`.

    Parameters
    ----------
    theta : Tensor or array, (n, 2, 3) or (n, 3, 4)
        Of each image a matrix, and what is added to its products.
    size : sequence of int
        The shape of the images that are to come: (n, channels, height, width), or that of volumes.
    align_corners : bool, optional
        Whether -1 and 1 are the middles of the first and the last elements, or their edges.

    Returns
    -------
    Tensor, (n, height, width, 2) or (n, depth, height, width, 3)

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    M. Jaderberg et al., "Spatial transformer networks" (2015).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.affine_grid(tg.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    x, sizes = floating("affine_grid", theta), tuple([integer("affine_grid", "size", length) for length in size])
    n = len(sizes) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{sizes}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    if x.shape[1:] != (n, n + 1) or x.shape[0] != sizes[0]:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {sizes}. Got {list(x.shape)}."
        )
    base = _places(sizes[2:], aligned("affine_grid", align_corners), x.dtype).reshape(-1, n + 1)
    return reshape(matmul(from_array(base), transpose(x, -1, -2)), (sizes[0], *sizes[2:], n))


# Neighbours --------------------------------------------------------------------------------------------------------


def _reflected(at: Any, n: int, align: bool) -> Any:
    """Return coordinates mirrored at the edges, or at the middles of the first and last elements if `align`."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0:
        return np.zeros_like(at)
    rest = np.mod(at - low, 2 * span)
    return np.minimum(rest, 2 * span - rest) + low


def _neighbours(x: np.ndarray, space: Shape, around: tuple[int, int], padding: str, align: bool) -> np.ndarray:
    """Return the flat indices of the elements around places, the last dimension slowest; -1 for those outside."""
    found: Any = np.zeros((*x.shape[:-1], 1), np.int64)
    outside = np.zeros((*x.shape[:-1], 1), bool)
    for n, at in zip(space, np.moveaxis(x, -1, 0)[::-1], strict=True):
        own = at[..., None] + np.arange(*around)
        if padding == "reflection":
            own = _reflected(own, n, align)
        if padding != "zeros":
            own = np.clip(own, 0, n - 1)
        inside = (own >= 0) & (own <= n - 1)
        own = np.where(inside, own, 0).astype(np.int64)
        found = (found[..., :, None] * n + own[..., None, :]).reshape(*x.shape[:-1], -1)
        outside = (outside[..., :, None] | ~inside[..., None, :]).reshape(*x.shape[:-1], -1)
    return np.where(outside, -1, found)


def _neighbours_oracle(x: Any, space: Any, around: Any, padding: str, align: bool = False) -> Any:
    out = []
    for at in x.reshape(-1, x.shape[-1]):
        for steps in np.ndindex(*(around[1] - around[0],) * len(space)):
            place = [int(own) + step + around[0] for own, step in zip(at[::-1], steps, strict=True)]
            inside = all(0 <= own < n for own, n in zip(place, space, strict=True))
            if padding == "border":
                place, inside = [min(max(own, 0), n - 1) for own, n in zip(place, space, strict=True)], True
            out.append(np.ravel_multi_index(place, space) if inside else -1)
    return np.array(out, np.int64).reshape(*x.shape[:-1], -1)


_PLACES: Final = np.array([[[0.0, 1.0], [-1.0, 0.0], [2.0, 1.0]]])


@operation(
    "neighbours",
    forward=_neighbours,
    vjp=(NOT_DIFFERENTIABLE,),
    family="sampling",
    attrs=("space", "around", "padding", "align"),
    oracle=_neighbours_oracle,
    samples=(
        Sample(((1, 3, 2),), {"space": (2, 3), "around": (0, 2), "padding": "zeros"}, (_PLACES,)),
        Sample(((1, 3, 2),), {"space": (2, 3), "around": (-1, 3), "padding": "border"}, (_PLACES,)),
    ),
    errors=(ErrorSample(lambda: xp.neighbours(None, (2,), (0, 2), "zeros"), TypeError, "neighbours"),),
    real_only=True,
)
def neighbours(input: Any, space: Shape, around: tuple[int, int], padding: str, align: bool = False) -> Bound:
    """Return the flat indices of the elements around places; -1 for those outside."""
    x = as_operand(input, "neighbours", "input", 1)
    return Bound((x,), {"space": space, "around": around, "padding": padding, "align": align})

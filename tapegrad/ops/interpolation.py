"""Interpolation of signals, images and volumes: composites of `resampled`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.errors import check_bool
from tapegrad.ops.pooling import adaptive_windows, over_windows
from tapegrad.ops.resampling import Key, times_matrices
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, Sample, op_table, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor

_ANY: Final = (1, 2, 3)
# The dimensions of space of each mode.
_MODES: Final = {
    "nearest": _ANY, "nearest-exact": _ANY, "area": _ANY, "linear": (1,), "bilinear": (2,), "bicubic": (2,),
    "trilinear": (3,),
}  # fmt: skip
_ALIGNED: Final = ("linear", "bilinear", "bicubic", "trilinear")


def _key(mode: str, n: int, count: int, factor: float | None, align: bool, antialias: bool) -> Key:
    """Return the matrix that interpolates along a dimension."""
    scale = n / count if factor is None else 1 / factor
    if mode == "area":
        return ("adaptive", n, count)
    if mode.startswith("nearest"):
        return ("nearest", n, count, scale, 0.5 if mode == "nearest-exact" else 0.0)
    if align:
        scale = (n - 1) / (count - 1) if count > 1 else 0.0
    return ("antialiased" if antialias else "smooth", n, count, 3 if mode == "bicubic" else 1, scale, align)


def _counts(x: Tensor, size: Any, factors: list[float] | None) -> tuple[int, ...]:
    """Return the lengths of the result."""
    space = x.shape[2:]
    if factors is not None:
        if len(factors) != len(space):
            raise ValueError(
                f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(space)} and scale_factor of shape {tuple(factors)}"
            )
        return tuple([math.floor(n * factor) for n, factor in zip(space, factors, strict=True)])
    counts = tuple(map(int, size)) if isinstance(size, (tuple, list)) else (int(size),) * len(space)
    if len(counts) != len(space):
        raise ValueError(
            f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(space)} and output size of {counts}"
        )
    return counts


def _oracle(x: Any, size: int, mode: str = "nearest", align_corners: bool = False) -> Any:
    """Interpolate to the same length in all dimensions, by NumPy's interpolation and choices."""
    if mode == "area":
        return over_windows(x, adaptive_windows(x.shape[2:], size), lambda own: own.mean(-1))
    for dim in range(2, x.ndim):
        n = x.shape[dim]
        if mode.startswith("nearest"):
            at = np.floor((np.arange(size) + (0.5 if mode == "nearest-exact" else 0)) * n / size).astype(int)
            x = np.take(x, at, dim)
        else:
            at = np.linspace(0, n - 1, size) if align_corners else (np.arange(size) + 0.5) * n / size - 0.5
            lines = np.moveaxis(x, dim, -1).reshape(-1, n)
            lines = np.stack([np.interp(at, np.arange(n), line) for line in lines]).astype(x.dtype)
            x = np.moveaxis(lines.reshape(*np.moveaxis(x, dim, -1).shape[:-1], size), -1, dim)
    return x


_SAMPLES: Final = (
    Sample(((1, 2, 4),), {"size": 3}),
    Sample(((1, 2, 3, 4),), {"size": 5, "mode": "nearest-exact"}),
    Sample(((1, 2, 3, 4),), {"size": 5, "mode": "bilinear", "align_corners": True}),
    Sample(((2, 1, 3, 4),), {"size": 2, "mode": "bilinear", "align_corners": False}),
    Sample(((1, 1, 3, 4, 2),), {"size": 3, "mode": "trilinear", "align_corners": False}),
    Sample(((1, 1, 3, 4),), {"size": 2, "mode": "area"}),
)


def _bind(
    input: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any, recompute_scale_factor: Any, antialias: Any
) -> Bound:
    x = as_operand(input, "interpolate", "input", 1)
    n = x.ndim - 2
    if mode not in _MODES or n not in _ANY:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {x.ndim}D) for the modes: "
            f"{' | '.join(_MODES)} (got {mode})"
        )
    if n not in _MODES[mode]:
        raise NotImplementedError(f"Got {x.ndim}D input, but {mode} mode needs {_MODES[mode][0] + 2}D input")
    if mode not in _ALIGNED and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    for name, flag in (("align_corners", align_corners), ("antialias", antialias)):
        if flag is not None:
            check_bool("interpolate", name, flag)
    if antialias and (mode not in ("bilinear", "bicubic")):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor")
    if (size is None) is (scale_factor is None):
        few = size is None
        raise ValueError(f"{'either' if few else 'only one of'} size or scale_factor should be defined")
    several = isinstance(scale_factor, (tuple, list))
    factors: Any = None if scale_factor is None else list(scale_factor) if several else [scale_factor] * n
    counts = _counts(x, size, factors)
    if min(counts) < 1 or min(x.shape[2:]) < 1:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(x.shape[2:])} output {list(counts)}"
        )
    if x.dtype.kind != "f":
        raise NotImplementedError(f"interpolate() not implemented for dtype {x.dtype}; convert it first")
    if factors is None or recompute_scale_factor:
        factors = [None] * n
    keys = tuple([
        _key(mode, length, count, factor, bool(align_corners), antialias)
        for length, count, factor in zip(x.shape[2:], counts, factors, strict=True)
    ])  # fmt: skip
    return times_matrices(x, keys)


_call = connect(op_table["resampled"], 6, name="interpolate", bind=_bind)


@public(namespaces=(FUNCTIONAL,))
@composite(_SAMPLES, _oracle, real_only=True)
def interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    r"""Interpolate signals, images or volumes to another size.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
        With 1, 2 or 3 further dimensions.
    size : int or tuple of int, optional
        Lengths of the result; or give `scale_factor`.
    scale_factor : float or tuple of float, optional
        How much longer the result is.
    mode : str
        "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area" (means of windows).
    align_corners : bool, optional
        Whether the first and the last elements, or the edges of the grid, stay where they are.
    recompute_scale_factor : bool, optional
        Whether the distance of elements follows from the lengths, in place of `scale_factor`.
    antialias : bool
        Of "bilinear" and "bicubic": whether smaller results are means of all elements.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If not exactly one of `size` and `scale_factor` is given, or does not fit, or an option not to the mode.
    NotImplementedError
        If there is no such mode for so many dimensions.

    Notes
    -----
    Each dimension is multiplied by a matrix, for an image :math:`Y = A X B^T`; for pictures of uint8 the result is
    rounded. Derivative: :math:`\bar X = A^T \bar Y B`.

    From n elements to m, element i of the result lies at :math:`u_i = (i + 1/2)\, n/m - 1/2` of the input, and at
    :math:`u_i = i\, (n - 1)/(m - 1)` if corners are aligned; what lies outside is moved to the end. Linear
    interpolation has :math:`A_{ij} = \max(0, 1 - |u_i - j|)`; "nearest" takes element
    :math:`\lfloor i\, n/m \rfloor`, and "nearest-exact" :math:`\lfloor (i + 1/2)\, n/m \rfloor`. Cubic interpolation
    is that of Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -3/4.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[[1.0, 3.0]]], requires_grad=True)
    >>> y = tg.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    >>> y.tolist()
    [[[1.0, 2.0, 3.0]]]
    >>> y.sum().backward()
    >>> x.grad.tolist()
    [[[1.5, 1.5]]]
    """
    options = size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    if getattr(input, "dtype", None) == np.uint8:  # of pictures: rounded, and as white as white is
        levels = _call(xp.cast(as_operand(input, "interpolate", "input", 1), np.dtype(np.float64)), *options)
        result: Tensor = xp.cast(xp.clamp(xp.floor(levels + 0.5), 0.0, 255.0), np.dtype(np.uint8))
    else:
        result = _call(input, *options)
    return result


@public(namespaces=(FUNCTIONAL,))
@composite(_SAMPLES, _oracle, real_only=True)
def upsample(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Interpolate signals, images or volumes: a former name of `interpolate`, which has the parameters.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample(tg.tensor([[[1.0, 3.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 3.0, 3.0]]]
    """
    return interpolate(as_operand(input, "upsample", "input", 1), size, scale_factor, mode, align_corners)


@public(namespaces=(FUNCTIONAL,))
@composite(_SAMPLES[:1], _oracle, real_only=True)
def upsample_nearest(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Repeat elements: a former name of `interpolate` with mode "nearest", which has the parameters.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample_nearest(tg.tensor([[[1.0, 3.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 3.0, 3.0]]]
    """
    return interpolate(as_operand(input, "upsample_nearest", "input", 1), size, scale_factor)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((1, 2, 3, 4),), {"size": 5}),),
    lambda x, size: _oracle(x, size, "bilinear", True),
    real_only=True,
)
def upsample_bilinear(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Interpolate images linearly: a former name of `interpolate` with mode "bilinear" and aligned corners.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample_bilinear(tg.tensor([[[[1.0, 3.0]]]]), size=(1, 3)).tolist()
    [[[[1.0, 2.0, 3.0]]]]
    """
    x = as_operand(input, "upsample_bilinear", "input", 1)
    return interpolate(x, size, scale_factor, "bilinear", align_corners=True)

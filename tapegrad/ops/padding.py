"""Ops and composites: elements added at the ends of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import check_range
from tapegrad.kernels.structural import gather_step
from tapegrad.ops.broadcasting import clone
from tapegrad.ops.indexing import getitem
from tapegrad.ops.splitting import index_at
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.table.structural import integer, operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime import state
from tapegrad.tensor import Tensor

Pads = tuple[tuple[int, int], ...]  # for each dimension how many elements are added before and behind


def _inside(pads: Pads) -> tuple[Any, ...]:
    """Return the index of the old elements in the padded array."""
    return (..., *(slice(max(low, 0), -high if high > 0 else None) for low, high in pads))


def _kept(pads: Pads) -> tuple[Any, ...]:
    """Return the index of the elements that negative lengths leave."""
    return (..., *(slice(max(-low, 0), high if high < 0 else None) for low, high in pads))


def _padded(x: np.ndarray, pads: Pads, value: Any) -> np.ndarray:
    shape = [length + low + high for length, (low, high) in zip(x.shape, pads, strict=True)]
    out = np.full(shape, np.asarray(value).astype(x.dtype)) if value else np.zeros(shape, x.dtype)
    out[_inside(pads)] = x[_kept(pads)]
    return out


def _step(plan: Plan, operand: int) -> Step | None:
    pads = plan.attrs["pads"]
    if any(length < 0 for pair in pads for length in pair):
        return None
    return gather_step(plan, lambda x: x[_inside(pads)])


def in_torch_order(pads: Sequence[tuple[int, int]]) -> list[int]:
    """Return lengths as users give them: last dimension first."""
    return [length for pair in reversed(pads) for length in pair]


def pads_of(call: str, shape: Sequence[int], pad: Sequence[int]) -> Pads:
    """Return for each dimension how many elements are added before and behind.

    Raises
    ------
    RuntimeError
        If there are not two numbers a dimension, or too many, or more is taken away than there is.
    """
    lengths = [integer("pad", "pad", length) for length in pad]
    if len(lengths) % 2:
        raise RuntimeError(
            f"Padding length must be divisible by 2: Length of pad must be even but instead it equals {len(lengths)}; "
            f"{call}() got {lengths}"
        )
    if len(lengths) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(lengths)} and input of dimension {len(shape)}"
        )
    pairs = list(zip(lengths[::2], lengths[1::2], strict=True))[::-1]
    pads = ((0, 0),) * (len(shape) - len(pairs)) + tuple(pairs)
    for length, (low, high) in zip(shape, pads, strict=True):
        if length + low + high < 0 or min(low, 0) + min(high, 0) + length < 0:
            raise RuntimeError(
                f"The input size {length}, plus negative padding {low} and {high}, resulted in a negative output size, "
                f"which is invalid (narrow(): length must be non-negative.); {call}() got shape {list(shape)}"
            )
    return pads


def _oracle(x: np.ndarray, pad: Sequence[int], value: Any = 0) -> np.ndarray:
    if not pad:
        return x
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    for dim, (low, high) in enumerate(pairs):
        x = np.take(x, range(max(-low, 0), x.shape[dim] + min(high, 0)), dim)
    return np.pad(x, [(max(low, 0), max(high, 0)) for low, high in pairs], constant_values=value)


@public(namespaces=(TOP,))
@operation(
    "constant_pad_nd",
    forward=_padded,
    vjp=(lambda ct, pads: xp.constant_pad_nd(ct, in_torch_order([(-low, -high) for low, high in pads])),),
    family="padding",
    step=_step,
    attrs=("pads", "value"),
    oracle=_oracle,
    samples=(
        Sample(((),), {"pad": ()}),
        Sample(((3,),), {"pad": (1, 2)}),
        Sample(((2, 3),), {"pad": (0, 1, 2, 0), "value": 2.5}),
        Sample(((2, 3, 2),), {"pad": (1, -1, 0, -2)}),
        Sample(((0, 2),), {"pad": (0, 0, 1, 1)}),
    ),
    errors=(
        ErrorSample(lambda: xp.constant_pad_nd(np.ones(3), (1,)), RuntimeError, "Length of pad must be even"),
        ErrorSample(
            lambda: xp.constant_pad_nd(np.ones(3), (1, 1, 1, 1)), RuntimeError, "two times the input dimension"
        ),
        ErrorSample(lambda: xp.constant_pad_nd(np.ones(3), (-2, -2)), RuntimeError, "negative output size"),
    ),
    common=docs.MOVEMENT,
)
def constant_pad_nd(input: Any, pad: Sequence[int], value: float = 0) -> Bound:
    r"""Add a number at the ends of dimensions; negative lengths take elements away.

    Parameters
    ----------
    pad : sequence of int
        How many elements before and behind, of the last dimension, then of the one before it, and so on.
    value : number

    Raises
    ------
    RuntimeError
        If there are not two lengths a dimension, or too many, or more is taken away than there is.

    Notes
    -----
    Derivative: with :math:`y_i = x_{i-p} + [i < p] c + [i \ge p + m] c`, where p is added at the beginning, x has m
    elements, and is 0 outside, :math:`\bar x_i = \bar y_{i+p}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.constant_pad_nd(tg.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    """
    x = as_operand(input, "constant_pad_nd", "input", 1)
    x._array()
    check_range(value, x.dtype)
    return Bound((x,), {"pads": pads_of("constant_pad_nd", x.shape, pad), "value": value})


# Copies of elements ------------------------------------------------------------------------------------------------

#: NumPy's name of each of PyTorch's modes.
MODES: Final = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_MANY = 10_000


def _places(length: int, low: int, high: int, mode: str) -> np.ndarray:
    """Return for each place of the padded dimension which element stands there."""
    kept, added = slice(max(-low, 0), length + max(low, 0) + high), (max(low, 0), max(high, 0))
    if mode == "wrap":  # what is left comes in again
        return np.pad(np.arange(max(-low, 0), length + min(high, 0)), added, mode)  # type: ignore[call-overload,no-any-return]
    return np.pad(np.arange(length), added, mode)[kept]  # type: ignore[call-overload,no-any-return]


_known_places = lru_cache(maxsize=256)(_places)
state.register("ops.padding: places", lambda: _known_places.cache_info().currsize, _known_places.cache_clear)


def pad_with_copies(x: Tensor, pads: Pads, mode: str) -> Tensor:
    """Add copies of elements at the ends of dimensions, in a mode of np.pad; a new tensor."""
    out = x
    for dim, (low, high) in enumerate(pads):
        if low or high:
            length = out.shape[dim]
            places_of = _known_places if length + low + high < _MANY else _places
            out = getitem(out, index_at(dim, places_of(length, low, high, mode)))
    return clone(x) if out is x else out


def _pad_oracle(input: np.ndarray, pad: Sequence[int], mode: str = "constant", value: Any = 0) -> np.ndarray:
    if mode == "constant":
        return _oracle(input, pad, value)
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return np.pad(input, pairs, MODES[mode])  # type: ignore[call-overload,no-any-return]


@public(namespaces=(FUNCTIONAL,), common=docs.MOVEMENT)
@composite(
    (
        Sample(((2, 3),), {"pad": (1, 2)}),
        Sample(((2, 3),), {"pad": (1, 0), "value": 2.0}),
        Sample(((1, 4),), {"pad": (3, 1), "mode": "reflect"}),
        Sample(((1, 2, 3),), {"pad": (2, 1, 1, 1), "mode": "replicate"}),
        Sample(((1, 2, 3),), {"pad": (3, 1, 0, 2), "mode": "circular"}),
    ),
    _pad_oracle,
)
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add elements at the ends of dimensions; negative lengths take elements away.

    Derivative: of the mode "constant" as of `constant_pad_nd`; of the others as of `index_select`, by which they choose
    elements.

    Parameters
    ----------
    pad : sequence of int
        How many elements before and behind, of the last dimension, then of the one before it, and so on.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is added: a number, the elements mirrored at the last one, the last one, those from the other end.
    value : number, optional
        That number; default 0.

    Raises
    ------
    NotImplementedError
        If there is no such mode.
    RuntimeError
        If the lengths do not fit: more elements are mirrored, or come from the other end, than there are.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.pad(tg.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if mode == "constant":
        return constant_pad_nd(input, pad, value or 0)  # type: ignore[no-any-return]
    x = as_operand(input, "pad", "input", 1)
    pads = pads_of("pad", x.shape, pad)
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}; pad() has constant, {', '.join(MODES)}")
    count = len(pad) // 2
    if not 1 <= count <= 3 or x.ndim not in (count + 1, count + 2):
        raise NotImplementedError(
            f"Padding size {2 * count} is not supported for {x.ndim}D input tensor. Supported combinations for "
            "non-constant padding: 2 numbers for 2D or 3D input, 4 for 3D or 4D, 6 for 4D or 5D (the last dimensions)"
        )
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    for dim, (low, high) in enumerate(pads):
        length, most = x.shape[dim], max(low, high)
        if most <= 0:
            continue
        if mode == "reflect" and most >= length:
            raise RuntimeError(
                "Padding size should be less than the corresponding input dimension, but got: padding "
                f"({low}, {high}) at dimension {dim} of input {list(x.shape)}"
            )
        if mode == "circular" and most > length:
            raise RuntimeError(
                f"Padding value causes wrapping around more than once: padding ({low}, {high}) at dimension {dim} of "
                f"input {list(x.shape)}"
            )
        if not length:
            raise RuntimeError(f"pad() in mode {mode} expects non-zero dimensions for input, but got: {list(x.shape)}")
    return pad_with_copies(x, pads, MODES[mode])

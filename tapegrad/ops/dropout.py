"""Functions that set elements, or whole channels, to zero at random."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import add, mul
from tapegrad.ops.generators import drawn
from tapegrad.ops.inplace import in_place
from tapegrad.ops.movement import reshape
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.tensor import Tensor

_SAME = {"training": False}
_ELEMENTS = docs.Common(
    docs.INPUT,
    "p : float\n    The probability that one is set to zero.\ntraining : bool\n    Otherwise `input` is returned.\n"
    "inplace : bool\n    Write the result to `input`.",
    "Tensor\n    Of the operand's shape.",
    "ValueError\n    If `p` is no probability.",
)


def _mask(call: str, input: Any, p: float, of_channels: bool, scale: float = 1.0) -> Tensor:
    """Return a number, and zeros with probability `p`: of elements, or of channels, with lengths 1 elsewhere."""
    x = as_operand(input, call, "input", 1)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:])) if of_channels else x.shape
    dtype = x.dtype

    def draw(rng: np.random.Generator) -> np.ndarray:
        mask = np.asarray(rng.random(shape, np.float32) >= p).astype(dtype)
        if scale != 1.0:
            mask *= dtype.type(scale)
        return mask

    return drawn(None, draw)


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _scaled_mask(call: str, input: Any, p: float, inplace: bool, of_channels: bool) -> Tensor:
    mask = _mask(call, input, p, of_channels, 1 / (1 - p) if p < 1 else 1.0)
    return (in_place(mul) if inplace else mul)(input, mask)


@public(namespaces=(TOP, FUNCTIONAL), common=_ELEMENTS)
@composite((Sample(((2, 3),), _SAME),), lambda input, training: input)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    r"""Set elements to zero at random, and divide the others by the probability to stay, which keeps the mean.

    Derivative: with :math:`y_i = m_i x_i/(1 - p)` and a random mask m, which is 0 with the probability p,
    :math:`\bar x_i = m_i \bar y_i/(1 - p)`.

    Notes
    -----
    N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout(tg.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    _check(p)
    if not training or p == 0:
        return as_operand(input, "dropout", "input", 1) if not isinstance(input, Tensor) else input
    return _scaled_mask("dropout", input, p, inplace, False)


def _of_channels(call: str, input: Any, p: float, training: bool, inplace: bool, is_item: bool) -> Tensor:
    _check(p)
    if not training or p == 0:
        return as_operand(input, call, "input", 1) if not isinstance(input, Tensor) else input
    if is_item:  # an item without a batch: the first dimension is that of the channels
        x = as_operand(input, call, "input", 1)
        mask = _mask(call, np.empty((1, x.shape[0]), x.dtype), p, True, 1 / (1 - p) if p < 1 else 0.0)
        mask = reshape(mask, (-1, *(1 for _ in x.shape[1:])))
        return (in_place(mul) if inplace else mul)(input, mask)
    return _scaled_mask(call, input, p, inplace, True)


def _ndim(input: Any) -> int:
    return len(shape_of(input))


def _warn_of_channels(call: str, ndim: int, which: str) -> None:
    warnings.warn(
        f"{call}: Received a {ndim}-D input to {call}; its {which} dimension is taken as that of the channels",
        UserWarning,
        stacklevel=3,
    )


@public(namespaces=(FUNCTIONAL,), common=_ELEMENTS)
@composite((Sample(((2, 3, 2),), _SAME),), lambda input, training: input)
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of signals, (n, channels, length) or (channels, length).

    Raises
    ------
    RuntimeError
        If `input` has another number of dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout1d(tg.ones(1, 2), p=1.0)
    tensor([[0., 0.]])
    """
    ndim = _ndim(input)
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _of_channels("dropout1d", input, p, training, inplace, ndim == 2)


@public(namespaces=(FUNCTIONAL,), common=_ELEMENTS)
@composite((Sample(((2, 3, 2, 2),), _SAME),), lambda input, training: input)
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of images, (n, channels, height, width).

    Warns
    -----
    UserWarning
        If `input` has another number of dimensions: the second is that of the channels, as in PyTorch.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout2d(tg.ones(1, 1, 1, 2), p=1.0)
    tensor([[[[0., 0.]]]])
    """
    ndim = _ndim(input)
    if ndim != 4:
        _warn_of_channels("dropout2d", ndim, "second")
    return _of_channels("dropout2d", input, p, training, inplace, False)


@public(namespaces=(FUNCTIONAL,), common=_ELEMENTS)
@composite((Sample(((2, 3, 1, 2, 2),), _SAME),), lambda input, training: input)
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of volumes, (n, channels, depth, height, width) or without n.

    Warns
    -----
    UserWarning
        If `input` has another number of dimensions: the first is that of the channels, as in PyTorch.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout3d(tg.ones(1, 1, 1, 2), p=1.0)
    tensor([[[[0., 0.]]]])
    """
    ndim = _ndim(input)
    if ndim not in (4, 5):
        _warn_of_channels("dropout3d", ndim, "first")
    return _of_channels("dropout3d", input, p, training, inplace, ndim != 5)


@public(common=_ELEMENTS)
@composite((Sample(((2, 3, 2),), {"p": 0.5, "train": False}),), lambda input, p, train: input)
def feature_dropout(input: Any, p: float, train: bool) -> Tensor:
    """`dropout` of whole channels, which are the second dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.feature_dropout(tg.ones(1, 2), 1.0, True)
    tensor([[0., 0.]])
    """
    if train and p and _ndim(input) < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input; it has {_ndim(input)}")
    return _of_channels("feature_dropout", input, p, train, False, False)


def _alpha(call: str, input: Any, p: float, training: bool, inplace: bool, of_channels: bool) -> Tensor:
    _check(p)
    if not training or p == 0:
        return as_operand(input, call, "input", 1) if not isinstance(input, Tensor) else input
    if p == 1:
        return _scaled_mask(call, input, p, inplace, of_channels)
    low = -1.7580993408473766  # the limit of `selu`, which the elements are set to
    scale = ((low * low * p + 1) * (1 - p)) ** -0.5
    mask = _mask(call, input, p, of_channels)
    shift = (1 - p - mask) * (scale * low)
    factor = mask * scale
    if inplace:
        return in_place(lambda x: add(mul(x, factor), shift))(input)
    return add(mul(input, factor), shift)


@public(namespaces=(TOP, FUNCTIONAL), common=_ELEMENTS)
@composite((Sample(((2, 3),)),), lambda input: input, real_only=True)
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    r"""Set elements to the lower limit of `selu` at random, and keep mean 0 and variance 1 by a scale and a shift.

    Derivative: with :math:`y_i = a (m_i x_i + (1 - m_i) c) + b`, a random mask m, the limit c, and the scale a and
    shift b that keep mean and variance, :math:`\bar x_i = a m_i \bar y_i`.

    Notes
    -----
    G. Klambauer et al., "Self-normalizing neural networks" (2017).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.alpha_dropout(tg.ones(2), p=0.25)
    tensor([1., 1.])
    """
    return _alpha("alpha_dropout", input, p, training, inplace, False)


@public(namespaces=(TOP, FUNCTIONAL), common=_ELEMENTS)
@composite((Sample(((2, 3, 2),)),), lambda input: input, real_only=True)
def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, which are the second dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.feature_alpha_dropout(tg.ones(1, 2), p=0.25)
    tensor([[1., 1.]])
    """
    return _alpha("feature_alpha_dropout", input, p, training, inplace, True)

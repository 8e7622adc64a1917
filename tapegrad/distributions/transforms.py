"""Transforms of numbers and vectors: exponentials, powers, affine functions, shares of a stick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.composition import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
    widened,
)
from tapegrad.distributions.distribution import sum_rightmost
from tapegrad.distributions.joined_transforms import (
    CatTransform,
    CumulativeDistributionTransform,
    ReshapeTransform,
    StackTransform,
)
from tapegrad.distributions.matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from tapegrad.nn.functional import pad, softmax, softplus
from tapegrad.ops.fill import zeros_like
from tapegrad.ops.ranges import arange
from tapegrad.tensor import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class ExpTransform(Transform):
    r""":math:`y = e^x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.ExpTransform()(tg.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """Powers of positive numbers.

    Parameters
    ----------
    exponent : Tensor or float
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.PowerTransform(2.0)(tg.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:  # that of the exponent
        """The sign of the exponent."""
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1, self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        power: Tensor = x**self.exponent
        return power

    def _inverse(self, y: Tensor) -> Tensor:
        root: Tensor = y ** (1 / self.exponent)
        return root

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log: Tensor = (self.exponent * y / x).abs().log()
        return log


def _inside(shares: Tensor) -> Tensor:
    """Return shares that are neither 0 nor 1, so that they have finite log odds."""
    limits = np.finfo(shares.dtype)
    return shares.clamp(float(limits.tiny), 1 - float(limits.eps))


class SigmoidTransform(Transform):
    r""":math:`y = 1/(1 + e^{-x})`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.SigmoidTransform()(tg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    r""":math:`y = \log(1 + e^x)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.SoftplusTransform()(tg.tensor([0.0, 1.0]))
    tensor([0.6931, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    r""":math:`y = \tanh x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.TanhTransform()(tg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - softplus(-2 * x))  # log(1 - tanh^2), which does not cancel


class AbsTransform(Transform):
    """Absolute values, of which the inverse is the positive number.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.AbsTransform()(tg.tensor([-2.0, 1.0]))
    tensor([2., 1.])
    """

    codomain = constraints.nonnegative
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """Multiplication by a scale, and addition of a location.

    Parameters
    ----------
    loc, scale : Tensor or float
    event_dim : int
        How many of the last dimensions are one argument.
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.AffineTransform(loc=1.0, scale=2.0)(tg.tensor([0.0, 1.0]))
    tensor([1., 3.])
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.domain = self.codomain = widened(constraints.real, event_dim)

    @property
    def sign(self) -> Any:  # that of the scale
        """The sign of the scale."""
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        image: Tensor = self.loc + self.scale * x
        return image

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = (y - self.loc) / self.scale
        return found

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost((zeros_like(x) + self.scale).abs().log(), self.event_dim)

    def _with_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        values = (value for value in (self.loc, self.scale) if isinstance(value, Tensor))
        return _broadcast(shape, *(value.shape for value in values))

    forward_shape = inverse_shape = _with_shape


def _broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*map(tuple, shapes)))


class SoftmaxTransform(Transform):
    """Shares that are proportional to exponentials; of many arguments the same, so without a determinant.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.SoftmaxTransform()(tg.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Shares of a stick, of which each number says how much of the rest is broken off (Stan's reference, 10.7).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.StickBreakingTransform()(tg.tensor([0.0, 0.0]))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _offsets(self, x: Tensor) -> Tensor:
        return arange(x.shape[-1], 0, -1, dtype=x.dtype).log()

    def _call(self, x: Tensor) -> Tensor:
        broken = _inside((x - self._offsets(x)).sigmoid())
        rest = (1 - broken).cumprod(-1)
        return pad(broken, [0, 1], value=1.0) * pad(rest, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(float(np.finfo(y.dtype).tiny))
        return head.log() - rest.log() + self._offsets(head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - self._offsets(x)
        total: Tensor = (-softplus(shifted) + y[..., :-1].log()).sum(-1)
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)

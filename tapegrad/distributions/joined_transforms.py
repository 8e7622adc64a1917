"""Transforms of parts along a dimension, of other shapes, and by distribution functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.composition import Transform
from tapegrad.distributions.distribution import Distribution, sum_rightmost
from tapegrad.ops.concat import cat, stack
from tapegrad.tensor import Tensor

__all__ = ["CatTransform", "CumulativeDistributionTransform", "ReshapeTransform", "StackTransform"]


class _Joined(Transform):
    """Several transforms, each of its part along a dimension."""

    transforms: list[Transform]
    dim: int

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([own(part) for own, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([own._inv_call(part) for own, part in zip(self.transforms, self._parts(y), strict=True)])

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # that of all parts
        """Whether there is one argument for each image."""
        return all(own.bijective for own in self.transforms)


class StackTransform(_Joined):
    """Several transforms, of the elements one after the other along a dimension.

    Parameters
    ----------
    tseq : sequence of Transform
    dim : int
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.transforms import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform])(tg.zeros(2))
    tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.domain = constraints.stack([own.domain for own in self.transforms], dim)
        self.codomain = constraints.stack([own.codomain for own in self.transforms], dim)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        return value.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        found: Tensor = stack(parts, self.dim)
        return found

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._join([own.log_abs_det_jacobian(*both) for own, *both in pairs])


class CatTransform(_Joined):
    """Several transforms, each of so many elements along a dimension.

    Parameters
    ----------
    tseq : sequence of Transform
    dim : int
    lengths : sequence of int, optional
        How many elements each one gets; 1 by default.
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.transforms import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[2, 1])(tg.zeros(3))
    tensor([1., 1., 0.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = constraints.cat([own.domain for own in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([own.codomain for own in self.transforms], dim, self.lengths)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        return value.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        found: Tensor = cat(parts, self.dim)
        return found

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        dims = self.domain.event_dim
        terms = [
            sum_rightmost(own.log_abs_det_jacobian(*both), dims - own.domain.event_dim)
            for own, *both in zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        ]
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        if dim + dims < 0:  # the dimension is one of the batch
            found: Tensor = cat(terms, dim + dims)
            return found
        total: Tensor = sum(terms[1:], terms[0])
        return total


class ReshapeTransform(Transform):
    """Another shape of the last dimensions.

    Parameters
    ----------
    in_shape, out_shape : sequence of int
        Of as many elements.
    cache_size : int

    Raises
    ------
    ValueError
        If the numbers of elements differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.ReshapeTransform((4,), (2, 2))(tg.zeros(3, 4)).shape
    (3, 2, 2)
    """

    def __init__(self, in_shape: Iterable[int], out_shape: Iterable[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape}, {self.out_shape}"
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._replaced(shape, self.out_shape, self.in_shape)

    def _replaced(self, shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != old:
            raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {old}")
        return (*shape[:cut], *new)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution, whose inverse gives quantiles.

    Parameters
    ----------
    distribution : Distribution
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> D = tg.distributions
    >>> D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))(tg.tensor(0.0))
    tensor(0.5000)
    """

    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution: Any = distribution

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """The values that samples may have."""
        support: constraints.Constraint = self.distribution.support
        return support

    def _call(self, x: Tensor) -> Tensor:
        image: Tensor = self.distribution.cdf(x)
        return image

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = self.distribution.icdf(y)
        return found

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log: Tensor = self.distribution.log_prob(x)
        return log

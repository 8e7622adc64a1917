"""The base of transforms, their inverses, and transforms made of others."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import sum_rightmost
from tapegrad.ops.fill import zeros_like
from tapegrad.tensor import Tensor

__all__ = ["ComposeTransform", "IndependentTransform", "Transform", "identity_transform"]


class Transform:
    """The base class of transforms. A subclass states `_call`, `_inverse` and `log_abs_det_jacobian`.

    Parameters
    ----------
    cache_size : int
        1 if the transform is to keep its last argument and result. Then the inverse of this result is this argument
        itself, also where a result was rounded: `TanhTransform` gives 1 for 20, whose inverse would be infinite.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.transforms import ExpTransform
    >>> ExpTransform().inv(tg.tensor(1.0))
    tensor(0.)
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective: bool = True
    sign: Any = 1  # of the derivative, of monotonic functions

    _cache_size = 0
    _cached: tuple[Any, Any] = (None, None)  # the last argument and its image
    _inverted: Transform | None = None  # what this is the inverse of

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached[0]:
            self._cached = x, self._call(x)
        image: Tensor = self._cached[1]
        return image

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached[1]:
            self._cached = self._inverse(y), y
        argument: Tensor = self._cached[0]
        return argument

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the determinant's absolute value, at an argument and its image."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_abs_det_jacobian")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _InverseTransform(self) if self._inverted is None else self._inverted

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform, which keeps its last argument and result, or does not."""
        if cache_size == self._cache_size:
            return self
        twin = copy.copy(self)
        Transform.__init__(twin, cache_size)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cached"}

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the image of an argument of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the argument of an image of this shape."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(_own(self), _own(other))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _own(transform: Transform) -> dict[str, Any]:
    """Return what makes a transform what it is."""
    return {name: value for name, value in vars(transform).items() if name not in vars(Transform)}


def _same(mine: dict[str, Any], other: dict[str, Any]) -> bool:
    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return a is b or bool(zeros_like(a - b).eq(a - b).all())
        return bool(a == b)

    return mine.keys() == other.keys() and all(equal(value, other[name]) for name, value in mine.items())


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._of = self._inverted = transform
        self.domain, self.codomain = transform.codomain, transform.domain
        self.bijective, self.sign = transform.bijective, transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._of.with_cache(cache_size).inv

    def _call(self, x: Tensor) -> Tensor:
        return self._of._inv_call(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._of!r})"


class ComposeTransform(Transform):
    """Several transforms, one after the other; none is the identity.

    Parameters
    ----------
    parts : sequence of Transform
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.transforms import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(tg.tensor(0.0))
    tensor(1.)
    """

    def __init__(self, parts: Iterable[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        if self.parts:
            self.domain = widened(self.parts[0].domain, self._event_dims()[0])
            self.codomain = widened(self.parts[-1].codomain, self._event_dims()[1])

    def _event_dims(self) -> tuple[int, int]:
        """Return how many dimensions an argument and an image have that belong together."""
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        end = dims
        for part in self.parts:
            end += part.codomain.event_dim - part.domain.event_dim
        return dims, end

    @property
    def bijective(self) -> bool:  # type: ignore[override]  # that of all parts
        """Whether there is one argument for each image."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The sign of the derivative."""
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        if self._inverted is not None:
            return self._inverted
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inverted = self
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = zeros_like(x) if not self.parts else 0.0
        dims = self.domain.event_dim
        for part in self.parts:
            image = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, image), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = image
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {parts}\n)"


identity_transform = ComposeTransform([])


def widened(constraint: Constraint, dims: int) -> Constraint:
    """Return a set for values of so many dimensions."""
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


class IndependentTransform(Transform):
    """A transform of elements as one of arrays, whose determinant is the product over some of the last dimensions.

    Parameters
    ----------
    base_transform : Transform
    reinterpreted_batch_ndims : int
    cache_size : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> rows = tg.distributions.IndependentTransform(tg.distributions.ExpTransform(), 1)
    >>> x = tg.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> rows.log_abs_det_jacobian(x, rows(x))
    tensor([1., 5.])
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)
        self.bijective, self.sign = base_transform.bijective, base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def with_cache(self, cache_size: int = 1) -> Transform:
        own = self.base_transform, self.reinterpreted_batch_ndims
        return self if cache_size == self._cache_size else IndependentTransform(*own, cache_size)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

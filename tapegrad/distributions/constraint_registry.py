"""From a set of values to a transform of all real numbers into it: `biject_to` and `transform_to`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.composition import ComposeTransform, IndependentTransform, Transform, identity_transform
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.joined_transforms import CatTransform, StackTransform
from tapegrad.distributions.matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from tapegrad.distributions.transforms import (
    AffineTransform,
    ExpTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions from a set of values to a transform into it, by the set's class.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions import constraints, transform_to
    >>> transform_to(constraints.interval(-1.0, 3.0))(tg.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._factories: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Transform] | None = None) -> Any:
        """Note the function that makes the transform into sets of a class; without a function, return a decorator.

        Raises
        ------
        TypeError
            If the first argument is no constraint, nor a class of them.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints; give a transform with register()"
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _for_both(*kinds: type[Constraint]) -> Callable[[Callable[..., Transform]], None]:
    """Return a decorator of the function that makes the transform of both registries into sets of these classes."""

    def register(make: Callable[..., Transform]) -> None:
        for kind in kinds:
            for registry in (biject_to, transform_to):
                registry.register(kind, functools.partial(make, registry=registry))

    return register


@_for_both(type(constraints.real))
def _of_real(_: Any, registry: ConstraintRegistry) -> Transform:
    return identity_transform


@_for_both(constraints.greater_than, constraints.greater_than_eq)
def _above(own: Any, registry: ConstraintRegistry) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(own.lower_bound, 1)])


@_for_both(constraints.less_than)
def _below(own: Any, registry: ConstraintRegistry) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(own.upper_bound, -1)])


@_for_both(constraints.interval, constraints.half_open_interval)
def _between(own: Any, registry: ConstraintRegistry) -> Transform:
    low, high = own.lower_bound, own.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


@_for_both(constraints.independent)
def _each(own: Any, registry: ConstraintRegistry) -> Transform:
    return IndependentTransform(registry(own.base_constraint), own.reinterpreted_batch_ndims)


@_for_both(constraints.cat)
def _joined(own: Any, registry: ConstraintRegistry) -> Transform:
    return CatTransform([registry(part) for part in own.cseq], own.dim, own.lengths)


@_for_both(constraints.stack)
def _stacked(own: Any, registry: ConstraintRegistry) -> Transform:
    return StackTransform([registry(part) for part in own.cseq], own.dim)


@_for_both(type(constraints.corr_cholesky))
def _correlated(_: Any, registry: ConstraintRegistry) -> Transform:
    return CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda _: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: PositiveDefiniteTransform())

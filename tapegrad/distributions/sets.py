"""Kinds of constraints: sets of values that are described by numbers, or made of other sets.

As in PyTorch, such a set is a class (``isinstance(support, greater_than)``); others, in `constraints`, are instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.ops.concat import cat as joined
from tapegrad.ops.concat import stack as stacked
from tapegrad.tensor import Tensor

__all__ = [
    "Constraint", "cat", "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "multinomial", "stack",
]  # fmt: skip


class Constraint:
    """The base class of sets of values. A subclass states `check`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.positive.check(tg.tensor([-1.0, 1.0]))
    tensor([False,  True])
    """

    is_discrete: bool = False
    event_dim: int = 0  # how many of the last dimensions make one value

    def check(self, value: Tensor) -> Tensor:
        """Return which values are in the set: truth values, without the dimensions of a value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement check")

    def holds_for_all(self, value: Tensor) -> bool:
        """Return whether all values are in the set."""
        result = self.check(value.detach())
        return bool(result if result.numel() == 1 else result.all())

    def __repr__(self) -> str:
        name = type(self).__name__.lstrip("_")
        return f"{name.title().replace('_', '') if name.islower() else name}({self._details()})"

    def _details(self) -> str:
        return ", ".join([f"{key}={value}" for key, value in vars(self).items() if key.endswith("_bound")])


class Dependent(Constraint):
    """A set that depends on other values, so that it cannot be checked."""

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, Dependent):
    """A property that is a set of values, as the support of a distribution that depends on its parameters.

    Parameters
    ----------
    fn : callable, optional
    is_discrete : bool
    event_dim : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions import Distribution, constraints
    >>> class Above(Distribution):
    ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return constraints.greater_than(1.0)
    >>> Above().support, constraints.is_dependent(Above.support)
    (GreaterThan(lower_bound=1.0), True)
    """

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether a set depends on other values, so that it cannot be checked.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.is_dependent(tg.distributions.constraints.positive)
    False
    """
    return isinstance(constraint.base_constraint if isinstance(constraint, independent) else constraint, Dependent)


class greater_than(Constraint):
    """Numbers above a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.greater_than(0).check(tg.tensor([0.0, 1.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Any:
        return value > self.lower_bound


class greater_than_eq(greater_than):
    """Numbers that are at least a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.greater_than_eq(0).check(tg.tensor([0.0, -1.0]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Any:
        return value >= self.lower_bound


class less_than(Constraint):
    """Numbers below a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.less_than(1).check(tg.tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Any:
        return value < self.upper_bound


class interval(Constraint):
    """Numbers from one bound to another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.interval(0, 1).check(tg.tensor([0.5, 2.0]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class half_open_interval(interval):
    """Numbers from one bound to another, without the latter.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.half_open_interval(0, 1).check(tg.tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


def _is_whole(value: Tensor) -> Any:
    return True if value.dtype.kind in "iub" else value % 1 == 0


class integer_interval(interval):
    """Integers, of any dtype, from one bound to another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.integer_interval(0, 3).check(tg.tensor([3.0, 0.5]))
    tensor([ True, False])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return super().check(value) & _is_whole(value)


class IntegerGreaterThan(greater_than_eq):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return super().check(value) & _is_whole(value)


class independent(Constraint):
    """Values of which each is several values of another set, along the last dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> pairs = tg.distributions.constraints.independent(tg.distributions.constraints.positive, 1)
    >>> pairs.check(tg.tensor([[1.0, 2.0]]))
    tensor([True])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete

    def check(self, value: Tensor) -> Any:
        each = self.base_constraint.check(value)
        return each.reshape(*each.shape[: each.ndim - self.reinterpreted_batch_ndims], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class multinomial(Constraint):
    """Vectors of counts with a given sum.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.multinomial(3).check(tg.tensor([1, 2]))
    tensor(True)
    """

    is_discrete, event_dim = True, 1

    def __init__(self, total_count: int) -> None:
        self.total_count = total_count

    def check(self, value: Tensor) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.total_count)


class stack(Constraint):
    """Values that are in several sets, one after the other along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> constraints = tg.distributions.constraints
    >>> constraints.stack([constraints.positive, constraints.real]).check(tg.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(own.is_discrete for own in self.cseq)
        self.event_dim = max(own.event_dim for own in self.cseq) + (dim < 0)

    def check(self, value: Tensor) -> Any:
        each = [own.check(part) for own, part in zip(self.cseq, value.unbind(self.dim), strict=True)]
        return stacked(each, self.dim)


class cat(Constraint):
    """Values of which a number each are in several sets, along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> constraints = tg.distributions.constraints
    >>> constraints.cat([constraints.positive, constraints.real], lengths=[1, 2]).check(-tg.ones(3))
    tensor([False,  True,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(own.is_discrete for own in self.cseq)
        self.event_dim = max(own.event_dim for own in self.cseq)

    def check(self, value: Tensor) -> Any:
        each = [own.check(part) for own, part in zip(self.cseq, value.split(self.lengths, self.dim), strict=True)]
        return joined(each, self.dim)

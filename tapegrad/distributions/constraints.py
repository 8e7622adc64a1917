"""Constraints: which values parameters and samples may have, with PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.tensor import Tensor

__all__ = [
    "Constraint", "boolean", "dependent", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "real", "real_vector",
    "simplex", "unit_interval",
]  # fmt: skip

_NEARLY: Final = 1e-6  # what sums of probabilities and transposed elements may differ by, as in PyTorch


class Constraint:
    """A set of values.

    Parameters
    ----------
    text : str or callable
        What `repr` shows; a function makes it when it is asked for, since bounds may be large tensors.
    holds : callable, optional
        From a tensor to truth values; of these, each for `event_dim` dimensions of the tensor. Without one the
        set depends on other values, and nothing is checked.
    event_dim : int
        How many of the last dimensions make one value.
    is_discrete : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.positive.check(tg.tensor([-1.0, 1.0]))
    tensor([False,  True])
    """

    def __init__(
        self,
        text: str | Callable[[], str],
        holds: Callable[[Tensor], Any] | None = None,
        event_dim: int = 0,
        is_discrete: bool = False,
    ) -> None:
        self._text, self._holds = text, holds
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Return which values are in the set: truth values, without the dimensions of a value.

        Raises
        ------
        ValueError
            If the set depends on other values.
        """
        if self._holds is None:
            raise ValueError("Cannot determine validity of dependent constraint")
        result: Tensor = self._holds(value.detach())
        return result

    def holds_for_all(self, value: Tensor) -> bool:
        """Return whether all values are in the set."""
        result = self.check(value)
        return bool(result if result.numel() == 1 else result.all())

    def __repr__(self) -> str:
        return self._text if isinstance(self._text, str) else self._text()


def is_dependent(constraint: Constraint) -> bool:
    """Return whether a set depends on other values, so that it cannot be checked.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.is_dependent(tg.distributions.constraints.positive)
    False
    """
    return constraint._holds is None


def _bounds(name: str, **bounds: Any) -> Callable[[], str]:
    return lambda: f"{name}({', '.join([f'{key}={value}' for key, value in bounds.items()])})"


def _is_whole(value: Tensor) -> Any:
    return True if value.dtype.kind in "iub" else value % 1 == 0


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.greater_than(0).check(tg.tensor([0.0, 1.0]))
    tensor([False,  True])
    """
    return Constraint(_bounds("GreaterThan", lower_bound=lower_bound), lambda value: value > lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers that are at least a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.greater_than_eq(0).check(tg.tensor([0.0, -1.0]))
    tensor([ True, False])
    """
    return Constraint(_bounds("GreaterThanEq", lower_bound=lower_bound), lambda value: value >= lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.less_than(1).check(tg.tensor([0.0, 1.0]))
    tensor([ True, False])
    """
    return Constraint(_bounds("LessThan", upper_bound=upper_bound), lambda value: value < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.interval(0, 1).check(tg.tensor([0.5, 2.0]))
    tensor([ True, False])
    """
    text = _bounds("Interval", lower_bound=lower_bound, upper_bound=upper_bound)
    return Constraint(text, lambda value: (value >= lower_bound) & (value <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to another, without the latter.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.half_open_interval(0, 1).check(tg.tensor([0.0, 1.0]))
    tensor([ True, False])
    """
    text = _bounds("HalfOpenInterval", lower_bound=lower_bound, upper_bound=upper_bound)
    return Constraint(text, lambda value: (value >= lower_bound) & (value < upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Integers, of any dtype, from one bound to another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.integer_interval(0, 3).check(tg.tensor([3.0, 0.5]))
    tensor([ True, False])
    """
    text = _bounds("IntegerInterval", lower_bound=lower_bound, upper_bound=upper_bound)
    return Constraint(
        text, lambda value: (value >= lower_bound) & (value <= upper_bound) & _is_whole(value), is_discrete=True
    )


def _integers_from(lower_bound: int) -> Constraint:
    text = _bounds("IntegerGreaterThan", lower_bound=lower_bound)
    return Constraint(text, lambda value: (value >= lower_bound) & _is_whole(value), is_discrete=True)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Values of which each is several values of another set, along the last dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> pairs = tg.distributions.constraints.independent(tg.distributions.constraints.positive, 1)
    >>> pairs.check(tg.tensor([[1.0, 2.0]]))
    tensor([True])
    """

    def holds(value: Tensor) -> Any:
        each = base_constraint.check(value)
        return each.reshape(*each.shape[: each.ndim - reinterpreted_batch_ndims], -1).all(-1)

    return Constraint(
        f"IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})",
        None if is_dependent(base_constraint) else holds,
        base_constraint.event_dim + reinterpreted_batch_ndims,
        base_constraint.is_discrete,
    )


def multinomial(total_count: int) -> Constraint:
    """Vectors of counts with a given sum.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.constraints.multinomial(3).check(tg.tensor([1, 2]))
    tensor(True)
    """
    return Constraint(
        "Multinomial()", lambda value: (value >= 0).all(-1) & (value.sum(-1) <= total_count), 1, is_discrete=True
    )


def _is_share(value: Tensor) -> Any:
    return (value > 0) & (value <= 1)


def _is_symmetric(value: Tensor) -> Any:
    return ((value - value.mT).abs() <= _NEARLY).all(-1).all(-1)


def _is_positive_definite(value: Tensor) -> Any:
    from tapegrad.linalg import cholesky_ex

    if value.shape[-1] != value.shape[-2]:
        return value.new_zeros(value.shape[:-2], dtype=np.dtype(bool))
    return _is_symmetric(value) & (cholesky_ex(value)[1] == 0)


def _is_lower_cholesky(value: Tensor) -> Any:
    return (value.tril() == value).all(-1).all(-1) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


dependent: Final = Constraint("Dependent()")
real: Final = Constraint("Real()", lambda value: value == value)
boolean: Final = Constraint("Boolean()", lambda value: (value == 0) | (value == 1), is_discrete=True)
positive: Final = greater_than(0.0)
nonnegative: Final = greater_than_eq(0.0)
unit_interval: Final = interval(0.0, 1.0)
nonnegative_integer: Final = _integers_from(0)
positive_integer: Final = _integers_from(1)
positive_share: Final = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", _is_share)
real_vector: Final = independent(real, 1)
one_hot: Final = Constraint(
    "OneHot()",
    lambda value: ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1),
    1,
    is_discrete=True,
)
simplex: Final = Constraint("Simplex()", lambda value: (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < _NEARLY), 1)
positive_definite: Final = Constraint("PositiveDefinite()", _is_positive_definite, 2)
lower_cholesky: Final = Constraint("LowerCholesky()", _is_lower_cholesky, 2)

"""The base of distributions: shapes, checks, and what follows from a distribution's formulas."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any, ClassVar, Self

import numpy as np

from tapegrad.distributions.constraints import Constraint, is_dependent
from tapegrad.dtypes import default_dtype
from tapegrad.modes import no_grad
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.grids import broadcast_tensors
from tapegrad.ops.random import rand
from tapegrad.tensor import Tensor
from tapegrad.type_info import Size

__all__ = ["Distribution"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return numbers, arrays and tensors as tensors of one shape; numbers get the dtype of the first tensor.

    Raises
    ------
    ValueError
        If one is none of these.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import broadcast_all
    >>> broadcast_all(1.0, tg.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if all([value.__class__ is Tensor for value in values]):  # noqa: C419  # a generator takes twice as long
        tensors = list(values)
    elif all(isinstance(value, (Tensor, np.ndarray, Number)) for value in values):
        dtypes = (value.dtype for value in values if isinstance(value, (Tensor, np.ndarray)))
        dtype = next(dtypes, default_dtype())
        tensors = [as_tensor(value, dtype) if isinstance(value, Number) else as_tensor(value) for value in values]
    else:
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__; "
            f"got {', '.join([type(value).__name__ for value in values])}"
        )
    shapes = [own.shape for own in tensors]
    shape = max(shapes, key=len)
    if shapes.count(shape) == len(shapes):
        return tuple(tensors)
    if any(own not in (shape, ()) for own in shapes):
        return tuple(broadcast_tensors(*tensors))
    return tuple([own if own.shape == shape else own.expand(shape) for own in tensors])


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sums over so many of the last dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def _invalid(what: str, value: Tensor, relation: str) -> ValueError:
    kind = f"({type(value).__name__} of shape {tuple(value.shape)})"
    return ValueError(f"Expected {what} {kind} {relation}, but found invalid values:\n{value}")


class Distribution:
    """The base class of distributions.

    A subclass states the sets of its parameters, its `support`, and its formulas: `_log_prob`, `_cdf`, `_icdf`, which
    get values that were checked, and ``rsample`` or ``sample``. One that has `_icdf` draws by it.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of the parameters: so many distributions are one object.
    event_shape : tuple of int
        The shape of one sample of one of them.
    validate_args : bool, optional
        Whether parameters and values are checked; by default so, unless `set_default_validate_args` says otherwise.

    Raises
    ------
    ValueError
        If a parameter is not in its set.

    Examples
    --------
    >>> import tapegrad as tg
    >>> normal = tg.distributions.Normal(tg.zeros(3), 1.0)
    >>> normal.batch_shape, normal.event_shape, normal.sample((2,)).shape
    ((3,), (), (2, 3))
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__
    _given: tuple[str, ...] = ()  # the parameters, of those that can be computed from each other the one stated

    def __init_subclass__(cls, **parameters: Constraint) -> None:
        """Note the sets of the parameters: ``class Normal(Distribution, loc=real, scale=positive)``."""
        if parameters:
            cls.arg_constraints = parameters

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check parameters and values that were not told to or not to."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args() expects True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Iterable[int] = (), event_shape: Iterable[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            parameters = vars(self)
            for name, constraint in self.arg_constraints.items():
                value = parameters.get(name)
                if value is not None and not is_dependent(constraint) and not constraint.holds_for_all(value):
                    relation = f"of distribution {self!r} to satisfy the constraint {constraint!r}"
                    raise _invalid(f"parameter {name}", value, relation)

    def _take(self, validate_args: bool | None, **parameters: Any) -> None:
        """Set the parameters, all with single numbers for values, and all else that follows from them."""
        vars(self).update(zip(parameters, broadcast_all(*parameters.values()), strict=True))
        self._given = tuple(parameters)
        Distribution.__init__(self, vars(self)[self._given[0]].shape, (), validate_args)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """The set of values that samples may have."""
        raise NotImplementedError(f"{type(self)} does not define `support`")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self)} does not implement mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self)} does not implement variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def _extended_shape(self, sample_shape: Iterable[int] = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Return samples, of shape ``sample_shape + batch_shape + event_shape``, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Return samples that are differentiable functions of the parameters, as `sample` has them.

        Raises
        ------
        NotImplementedError
            If `has_rsample` is False.
        """
        if type(self)._icdf is Distribution._icdf or not self.has_rsample:
            raise NotImplementedError(f"{type(self)} does not implement rsample: its samples have no gradient")
        return self._icdf(self._uniform(sample_shape))

    def _uniform(self, sample_shape: Iterable[int]) -> Tensor:
        """Return uniform numbers, none 0, of the shape of samples."""
        dtype = vars(self)[self._given[0]].dtype
        return rand(self._extended_shape(sample_shape), dtype=dtype).clamp(min=float(np.finfo(dtype).tiny))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, of each value.

        Raises
        ------
        ValueError
            If checks are on, and a value is outside of the support or has another shape.
        """
        self._validate_sample(value)
        return self._log_prob(value)

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability that a sample is at most a value."""
        self._validate_sample(value)
        return self._cdf(value)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantiles of probabilities: the inverse of `cdf`."""
        return self._icdf(value)

    def _log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement log_prob")

    def _cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement cdf")

    def _icdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement icdf")

    def entropy(self) -> Tensor:
        """Return the entropies, in nats; of continuous distributions the differential ones."""
        raise NotImplementedError(f"{type(self)} does not implement entropy")

    def perplexity(self) -> Tensor:
        """Return e to the power of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along the first dimension."""
        raise NotImplementedError(f"{type(self)} does not implement enumerate_support")

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.reshape(-1, *(1 for _ in self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Self:
        """Return the distributions with parameters that are expanded to another batch shape."""
        if not self._given:
            raise NotImplementedError(f"{type(self)} must define expand()")
        new, shape = copy.copy(self), Size(batch_shape)
        derived = [name for name in self.arg_constraints if name not in self._given]
        for name in derived:  # what was computed from others and kept
            vars(new).pop(name, None)
        for name in self._given:
            value = vars(self)[name]
            event = value.shape[value.ndim - self.arg_constraints[name].event_dim :]
            vars(new)[name] = value.expand(*shape, *event)
        new._batch_shape = shape
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return a new object for `expand` of a subclass, as PyTorch's classes get it."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return object.__new__(type(self)) if _instance is None else _instance

    def _validate_sample(self, value: Any, support: Constraint | None = None) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, not {type(value).__name__}")
        shape, expected = value.shape, (*self._batch_shape, *self._event_shape)
        if shape[len(shape) - len(self._event_shape) :] != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {shape} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if 1 not in (i, j) and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        support = self.support if support is None else support
        if not support.holds_for_all(value):
            relation = f"to be within the support ({support!r}) of the distribution {self!r}"
            raise _invalid("value argument", value, relation)

    def __repr__(self) -> str:
        shown = ((name, vars(self)[name]) for name in self.arg_constraints if name in vars(self))
        parts = [f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in shown]
        return f"{type(self).__name__}({', '.join(parts)})"

"""Samplers: in which order items are taken, and which of them make a batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from tapegrad.ops.creation import as_tensor
from tapegrad.ops.drawing import multinomial
from tapegrad.ops.generators import Generator
from tapegrad.ops.random import randint, randperm

T_co = TypeVar("T_co", covariant=True)
_PIECE = 32  # numbers that are drawn at a time


class Sampler(Generic[T_co]):
    """Base class of samplers: a subclass defines ``__iter__``, which yields indices or lists of them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Backwards(tg.utils.data.Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...
    ...     def __len__(self):
    ...         return len(self.data)
    ...
    ...     def __iter__(self):
    ...         return iter(reversed(range(len(self.data))))
    >>> list(tg.utils.data.DataLoader([10, 20, 30], sampler=Backwards([10, 20, 30])))
    [tensor([30]), tensor([20]), tensor([10])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class SequentialSampler(Sampler[int]):
    """All indices in order.

    Parameters
    ----------
    data_source : Dataset

    Examples
    --------
    >>> import tapegrad as tg
    >>> list(tg.utils.data.SequentialSampler([10, 20, 30]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All indices in random order, or indices drawn one by one.

    Parameters
    ----------
    data_source : Dataset
    replacement : bool
        Whether an index may be drawn several times.
    num_samples : int, optional
        How many are drawn; by default as many as there are.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> sorted(tg.utils.data.RandomSampler([10, 20, 30]))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        left, total = self.num_samples, len(self.data_source)
        while left:
            if self.replacement:
                drawn = randint(total, (min(_PIECE, left),), generator=self.generator)
            else:
                drawn = randperm(total, generator=self.generator)[:left]
            yield from drawn.tolist()
            left -= len(drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices in random order.

    Parameters
    ----------
    indices : sequence of int
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Examples
    --------
    >>> import tapegrad as tg
    >>> sorted(tg.utils.data.SubsetRandomSampler([2, 5]))
    [2, 5]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given probabilities.

    Parameters
    ----------
    weights : sequence of float
        Proportional to the probabilities.
    num_samples : int
    replacement : bool
        Whether an index may be drawn several times.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Raises
    ------
    ValueError
        If an argument is of another type, or out of range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> list(tg.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=np.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of so many indices of another sampler.

    Parameters
    ----------
    sampler : Sampler or iterable
    batch_size : int
    drop_last : bool
        Leave out a last list that is shorter.

    Raises
    ------
    ValueError
        If an argument is of another type, or out of range.

    Examples
    --------
    >>> from tapegrad.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        items = iter(self.sampler)
        while batch := list(itertools.islice(items, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        count, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return count + (rest > 0 and not self.drop_last)

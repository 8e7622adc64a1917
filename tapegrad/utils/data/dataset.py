"""Datasets: items by number, or one after the other; parts and combinations of datasets."""

from __future__ import annotations

import abc
import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tapegrad.ops.generators import Generator
from tapegrad.ops.random import randperm
from tapegrad.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets whose items have numbers: a subclass defines ``__getitem__``, and mostly ``__len__``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Squares(tg.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets whose items come one after the other: a subclass defines ``__iter__``.

    With several workers each iterates over all of it, unless ``__iter__`` asks `get_worker_info`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Numbers(tg.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> list(tg.utils.data.DataLoader(Numbers(), batch_size=2))
    [tensor([0, 1]), tensor([2, 3])]
    """

    @abc.abstractmethod
    def __iter__(self) -> Iterator[T_co]: ...

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The items are those of tensors along their first dimension, as a tuple.

    Parameters
    ----------
    *tensors : Tensor
        Of one length.

    Raises
    ------
    AssertionError
        If the lengths differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.utils.data import TensorDataset
    >>> dataset = TensorDataset(tg.arange(4.0), tg.tensor([0, 1, 0, 1]))
    >>> len(dataset), dataset[1]
    (4, (tensor(1.), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError(f"Size mismatch between tensors: {[list(tensor.shape) for tensor in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """The items of several datasets, as tuples or dicts.

    Parameters
    ----------
    *args : Dataset
    **kwargs : Dataset
        Either these or those.

    Raises
    ------
    ValueError
        If lengths differ, or there is no dataset.

    Examples
    --------
    >>> import tapegrad as tg
    >>> pairs = tg.utils.data.StackDataset([1, 2], ["a", "b"])
    >>> pairs[1]
    (2, 'b')
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        lengths = [len(dataset) for dataset in kwargs.values() or args]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """The items of several datasets, one dataset after the other; ``a + b`` makes one too.

    Parameters
    ----------
    datasets : iterable of Dataset

    Raises
    ------
    AssertionError
        If there is none, or one of them is iterable only.

    Examples
    --------
    >>> import tapegrad as tg
    >>> both = tg.utils.data.ConcatDataset([[1, 2], [3, 4, 5]])
    >>> len(both), both[3]
    (5, 4)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; ChainDataset does")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < -len(self):
            raise ValueError("absolute value of index should not exceed dataset length")
        index += len(self) if index < 0 else 0
        place = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[place][index - (self.cumulative_sizes[place - 1] if place else 0)]


class ChainDataset(IterableDataset[Any]):
    """The items of several iterable datasets, one dataset after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Numbers(tg.utils.data.IterableDataset):
    ...     def __init__(self, first, last):
    ...         self.range = range(first, last)
    ...
    ...     def __iter__(self):
    ...         return iter(self.range)
    >>> list(tg.utils.data.ChainDataset([Numbers(0, 2), Numbers(5, 7)]))
    [0, 1, 5, 6]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset; ConcatDataset takes the others")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """Some of the items of a dataset.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int

    Examples
    --------
    >>> import tapegrad as tg
    >>> part = tg.utils.data.Subset([10, 20, 30], [2, 0])
    >>> list(part)
    [30, 10]
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[one] for one in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Return random parts of a dataset, which have no item in common.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int or of float
        Of the parts; or fractions, whose sum is 1.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the lengths do not fit.

    Examples
    --------
    >>> from tapegrad.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for place, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {place} is not between 0 and 1")
        counts = [math.floor(total * fraction) for fraction in lengths]
        for place in range(total - sum(counts)):
            counts[place % len(counts)] += 1
        lengths = counts
        for place, length in enumerate(lengths):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {place} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    numbers = iter(randperm(total, generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(numbers, int(length)))) for length in lengths]

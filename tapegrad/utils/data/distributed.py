"""Shares of a dataset, for several processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized

from tapegrad.ops.generators import Generator
from tapegrad.ops.random import randperm
from tapegrad.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """One of several equal shares of the indices of a dataset.

    Parameters
    ----------
    dataset : Dataset
    num_replicas, rank : int
        How many shares there are, and which one this is.
    shuffle : bool
        Order all indices at random, for each epoch anew.
    seed : int
    drop_last : bool
        Leave indices out where shares would not be equal; otherwise some come twice.

    Raises
    ------
    RuntimeError
        If `num_replicas` or `rank` is missing: there is one process.
    ValueError
        If there is no such share.

    Examples
    --------
    >>> from tapegrad.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise RuntimeError("Requires distributed package to be available, or num_replicas and rank to be given")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        own = itertools.islice(itertools.cycle(indices), self.total_size)
        return itertools.islice(own, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch begins: each is in another order."""
        self.epoch = epoch

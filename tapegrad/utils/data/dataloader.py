"""`DataLoader`: batches of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tapegrad.ops.generators import Generator
from tapegrad.ops.random import randint
from tapegrad.utils.data.collate import default_collate, default_convert, rows_of
from tapegrad.utils.data.dataset import IterableDataset
from tapegrad.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from tapegrad.utils.data.workers import END, Workers


class DataLoader:
    """Iterate over the batches of a dataset; each iteration is one epoch.

    Parameters
    ----------
    dataset : Dataset
        Anything with ``__getitem__`` and ``__len__``, or an `IterableDataset`.
    batch_size : int, optional
        None for single items.
    shuffle : bool, optional
        Take the items in random order, another one in each epoch.
    sampler : Sampler or iterable, optional
        The order of items.
    batch_sampler : Sampler or iterable, optional
        Lists of indices, one for each batch.
    num_workers : int
        How many threads fetch batches ahead; 0: they are fetched when they are wanted. Threads share the dataset, and
        help where it waits, or computes in functions that release Python's lock.
    collate_fn : callable, optional
        Makes a batch of a list of items; by default `default_collate`.
    pin_memory, pin_memory_device, multiprocessing_context, in_order
        Accepted, without effect: all memory is the CPU's, and batches come in order.
    drop_last : bool
        Leave out a last batch that is smaller.
    timeout : float
        Seconds to wait for a worker; 0: forever.
    worker_init_fn : callable, optional
        Called in each worker, with its number.
    generator : Generator, optional
        By default the one that `manual_seed` seeds.
    prefetch_factor : int, optional
        How many batches each worker fetches ahead; by default 2.
    persistent_workers : bool
        Keep the threads after an epoch.

    Raises
    ------
    ValueError
        If arguments contradict each other.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(tg.arange(5.0), tg.arange(5)), batch_size=2)
    >>> for x, y in loader:
    ...     print(x, y)
    tensor([0., 1.]) tensor([0, 1])
    tensor([2., 3.]) tensor([2, 3])
    tensor([4.]) tensor([4])
    >>> len(loader)
    3
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        is_iterable = isinstance(dataset, IterableDataset)
        if is_iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = (
                itertools.repeat(None) if is_iterable
                else RandomSampler(dataset, generator=generator) if shuffle
                else SequentialSampler(dataset)
            )  # fmt: skip
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.multiprocessing_context = multiprocessing_context
        by_default: Callable[[Any], Any] = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn or by_default
        self._workers: Workers | None = None

    def _fetcher(self, _: int = 0) -> Callable[[Any], Any]:
        """Return the function that fetches the batch of a list of indices, or the item of one index."""
        dataset, collate = self.dataset, self.collate_fn
        if isinstance(dataset, IterableDataset):
            items = iter(dataset)

            def fetch(indices: Any) -> Any:
                if self.batch_sampler is None:
                    item = next(items, END)
                    return END if item is END else collate(item)
                batch = list(itertools.islice(items, len(indices)))
                return collate(batch) if batch and not (self.drop_last and len(batch) < len(indices)) else END

        elif self.batch_sampler is None:

            def fetch(indices: Any) -> Any:
                return collate(dataset[indices])

        else:
            batch_of = rows_of(dataset) if collate is default_collate else None

            def fetch(indices: Any) -> Any:
                if batch_of is not None and set(map(type, indices)) == {int}:
                    return batch_of(indices)
                if hasattr(dataset, "__getitems__") and dataset.__getitems__:
                    return collate(dataset.__getitems__(indices))
                return collate([dataset[index] for index in indices])

        return fetch

    def __iter__(self) -> Iterator[Any]:
        keys: Iterator[Any] = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        if not self.num_workers:
            return itertools.takewhile(lambda batch: batch is not END, map(self._fetcher(), keys))
        seed = int(randint(2**62, (), generator=self.generator).item())
        workers = self._workers or Workers(self.num_workers, self.dataset, seed, self.worker_init_fn)
        if self.persistent_workers:
            self._workers = workers
        return workers.run(self._fetcher, keys, self.prefetch_factor or 0, self.timeout)

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 for no threads.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: let num_workers > 0, otherwise set "
            "prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")

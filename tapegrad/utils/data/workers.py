"""Workers of a loader: threads that fetch batches ahead, each its own, in the order in which they are wanted."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tapegrad.runtime.named_tuples import NamedTuple

END = object()  # what a worker returns that has no more items


class WorkerInfo(NamedTuple):
    """What a dataset may ask in a worker.

    Attributes
    ----------
    id, num_workers : int
        Which worker it is, and of how many.
    seed : int
        Another one in each worker and in each epoch.
    dataset : Dataset
        The same object in all workers, as they are threads.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_local = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Return what a worker is, in a worker; None elsewhere.

    Examples
    --------
    >>> from tapegrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return getattr(_local, "info", None)


class Workers:
    """The threads of a loader.

    Parameters
    ----------
    count : int
    dataset : Dataset
    seed : int
    begin : callable, optional
        Called in each thread, with the number of the worker.
    """

    def __init__(self, count: int, dataset: Any, seed: int, begin: Callable[[int], object] | None) -> None:
        def initialize(number: int) -> None:
            _local.info = WorkerInfo(number, count, seed + number, dataset)

        self.threads = [
            ThreadPoolExecutor(1, f"tapegrad-worker-{number}", initialize, (number,)) for number in range(count)
        ]
        # A thread would wait for work forever.
        weakref.finalize(self, _stop, self.threads)
        self.begun = [one.submit(begin, number) for number, one in enumerate(self.threads) if begin is not None]

    def run(
        self, tasks: Callable[[int], Callable[[Any], Any]], keys: Iterator[Any], ahead: int, timeout: float
    ) -> Iterator[Any]:
        """Yield what the workers fetch, in order.

        Parameters
        ----------
        tasks : callable
            Called in each worker with its number: returns the function that fetches what belongs to a key, or `END`.
        keys : iterator
        ahead : int
            How many keys each worker gets before the first result is wanted.
        timeout : float
            Seconds to wait for a result; 0: forever.
        """
        fetchers = [one.submit(tasks, number) for number, one in enumerate(self.threads)]

        def fetch(number: int, key: Any) -> Any:
            return fetchers[number].result()(key)

        for begun in self.begun:
            begun.result()
        waiting: deque[tuple[int, Future[Any]]] = deque()

        def send(number: int) -> None:
            for key in keys:
                waiting.append((number, self.threads[number].submit(fetch, number, key)))
                return

        try:
            for _ in range(max(ahead, 1)):
                for number in range(len(self.threads)):
                    send(number)
            ended = set()
            while waiting:
                number, future = waiting.popleft()
                try:
                    result = future.result(timeout or None)
                except TimeoutError:
                    if future.done():
                        raise  # the dataset's own
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None
                if result is END:
                    ended.add(number)
                if number not in ended:
                    send(number)
                if result is not END:
                    yield result
        finally:
            for _, future in waiting:
                future.cancel()


def _stop(threads: list[ThreadPoolExecutor]) -> None:
    for thread in threads:
        thread.shutdown(wait=False, cancel_futures=True)

"""Threads: large work is cut into ranges, which the caller and a few Python threads take one after the other.

The work itself is compiled code or a NumPy function that runs without the GIL. No threading layer of Numba's is used:
those end the process when several threads of the user call them at once, or after a fork.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tapegrad.runtime.locks import in_child, module_lock

if TYPE_CHECKING:
    from queue import SimpleQueue

Work = Callable[[int, int, int], object]

# Elements times steps of a run from which on two threads gain: waking one and waiting for it takes 30 µs, a step 0.4 ns
# an element, and memory is shared.
SHARED_WORK: Final = 1 << 20
_RANGES: Final = 4  # for each thread, so that one that is held up leaves its share to the others


class _Job:
    """Work on some ranges, which whoever joins takes from the list."""

    def __init__(self, work: Work, ranges: list[tuple[int, int]]) -> None:
        self.work, self.ranges = work, ranges
        self.lock = threading.Lock()
        self.left = threading.Condition(self.lock)
        self.joined, self.active, self.closed = 1, 0, False  # the caller has number 0
        self.error: BaseException | None = None

    def take_ranges(self, number: int) -> None:
        """Work until no range is left."""
        while True:
            try:
                first, end = self.ranges.pop()
            except IndexError:
                return
            self.work(first, end, number)

    def help(self) -> None:
        """Work as another thread, if the caller has not done it all by now."""
        with self.lock:
            if self.closed:
                return
            number = self.joined
            self.joined += 1
            self.active += 1
        try:
            self.take_ranges(number)
        except BaseException as error:
            self.error = error
        finally:
            with self.lock:
                self.active -= 1
                self.left.notify()

    def wait(self) -> None:
        """Let nobody join any more, and wait for those who did."""
        with self.lock:
            self.closed = True
            while self.active:
                self.left.wait()


class _Pool:
    """Threads that wait for jobs. They are daemons: blocked in C, they do not hold up the end of the process."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[contextvars.Context, _Job]]  # made for the first thread
        self.size = 0
        self.lock = module_lock()

    def grow(self, size: int) -> None:
        """Have at least this many threads."""
        with self.lock:
            if not self.size:
                from queue import SimpleQueue  # of no use to most programs, and the slowest import of all

                self.jobs = SimpleQueue()
            while self.size < size:
                self.size += 1
                threading.Thread(target=self._serve, name=f"tapegrad-{self.size}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            context, job = self.jobs.get()
            context.run(job.help)
            del context, job  # nothing is held while waiting


_pool = _Pool()


def _renew() -> None:
    global _pool
    _pool = _Pool()


in_child(_renew)


def share(work: Work, elements: int, unit: int, threads: int) -> None:
    """Call ``work(first, end, thread)`` for ranges that make up all elements, in several threads at once.

    Parameters
    ----------
    work : callable
        Gets numbers of threads below `threads`; nobody else has the same while it works.
    elements : int
    unit : int
        Ranges begin at multiples of it.
    threads : int

    Raises
    ------
    BaseException
        What `work` raised in one of the threads, or a signal's handler in this one. No thread works any more then.
    """
    size = max(-(-elements // (unit * _RANGES * threads)), 1) * unit
    ranges = [(first, min(first + size, elements)) for first in range(0, elements, size)]
    ranges.reverse()
    job = _Job(work, ranges)
    helpers = min(threads, len(ranges)) - 1
    error: BaseException | None = None
    while True:
        # Whatever a Ctrl-C cuts short, the others have left before this returns.
        try:
            if helpers > 0:
                _pool.grow(helpers)
            while helpers > 0:
                helpers -= 1
                _pool.jobs.put((contextvars.copy_context(), job))
            job.take_ranges(0)
            job.wait()
            break
        except BaseException as raised:
            error = error or raised
            helpers = 0
            del ranges[:]
    error = error or job.error
    if error is not None:
        try:
            raise error
        finally:
            error = job.error = None  # it holds this frame: then the two would die only when garbage is collected

"""The library's threads: large work is cut into ranges, and the caller and a few Python threads take them in turn.

The work is compiled code or a NumPy function, which runs without the GIL. Numba's threading layers are not used: they
end the process when several threads of the user call them at once, or after a fork.
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

# Two threads gain from this many elements times kernel calls on: waking a thread and waiting for it takes 30 µs, a
# kernel call 0.4 ns an element, and both threads share the memory's bandwidth.
SHARED_WORK: Final = 1 << 20
_RANGES: Final = 4  # for each thread: others take the ranges of a thread that is held up


class _Job:
    """Work on ranges of elements. Threads that join take ranges from the list."""

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
        """Join the work as another thread, unless the caller has finished it."""
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
        """Let no more threads join, and wait for those that did."""
        with self.lock:
            self.closed = True
            while self.active:
                self.left.wait()


class _Pool:
    """Threads that wait for jobs. They are daemons, so that the process can end while they wait."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[contextvars.Context, _Job]]  # made for the first thread
        self.size = 0
        self.lock = module_lock()

    def grow(self, size: int) -> None:
        """Start threads until there are at least this many."""
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
    """Call ``work(first, end, thread)`` for ranges that cover all elements, in several threads at once.

    Parameters
    ----------
    work : callable
        Its third argument is the number of the thread, below `threads`. No two calls at a time have the same.
    elements : int
    unit : int
        Every range begins at a multiple of it.
    threads : int

    Raises
    ------
    BaseException
        The error of `work` in any thread, or of a signal handler in this one. No thread works on it any more then.
    """
    size = max(-(-elements // (unit * _RANGES * threads)), 1) * unit
    ranges = [(first, min(first + size, elements)) for first in range(0, elements, size)]
    ranges.reverse()
    job = _Job(work, ranges)
    helpers = min(threads, len(ranges)) - 1
    error: BaseException | None = None
    while True:
        # Even after a Ctrl-C, the other threads have left the work before this function returns.
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
            error = job.error = None  # the traceback refers to this frame: only garbage collection would free the cycle

"""Parts of a program's machine code that LLVM makes in threads, while Python writes the text of others.

Python needs longer for the text of a stage than LLVM for its object code, or the other way round; both at once take as
long as the longer. LLVM runs in as many threads as there are other processors.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Final

from tapegrad.runtime.locks import hold_while_forking, in_child, module_lock
from tapegrad.runtime.signals import start

__all__ = ["Part", "begin", "making", "parts"]

_CPUS: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: One for each thread in which LLVM works: no child process begins with half of its work done.
_turns: Final = [module_lock() for _ in range(_CPUS - 1)]
for _turn in _turns:
    hold_while_forking(_turn)


class Part:
    """Object code that is made by whoever comes first: a thread, or who asks for it."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make, self._claim, self._done = make, threading.Lock(), threading.Event()
        self._code: bytes | BaseException = b""

    def work(self) -> None:
        """Make the object code, unless somebody does it already."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            self._code = self._make()
        except BaseException as error:  # raised where the code is asked for
            self._code = error
        self._done.set()

    def code(self) -> bytes:
        """Return the object code; wait for it if it is being made."""
        self.work()
        self._done.wait()
        if isinstance(self._code, BaseException):
            raise self._code
        return self._code


#: Seconds after which Python lets another thread go on that waits. LLVM returns to Python between any two steps.
_SWITCH: Final = 0.0005


class _Making:
    """How many threads make machine code, and how long others waited for Python before that."""

    count = 0
    before = 0.0
    lock = module_lock()


def _forget() -> None:
    if _Making.count:  # by threads that a child process does not have
        _Making.count = 0
        sys.setswitchinterval(_Making.before)


in_child(_forget)


class _Here(threading.local):
    parts: dict[str, Part] | None = None
    turns: Iterator[AbstractContextManager[bool]]


_here: Final = _Here()


@contextlib.contextmanager
def making() -> Generator[None]:
    """Let LLVM begin with parts in a ``with`` block, whose machine code is asked for in it."""
    before = _here.parts
    _here.parts, _here.turns = {}, itertools.cycle(_turns)
    with _Making.lock:
        _Making.count += 1
        if _Making.count == 1:
            _Making.before = sys.getswitchinterval()
            sys.setswitchinterval(min(_SWITCH, _Making.before))
    try:
        yield
    finally:
        with _Making.lock:
            _Making.count -= 1
            if _Making.count == 0:  # in a child process, it may be less
                sys.setswitchinterval(_Making.before)
        _here.parts = before


def begin(name: str, make: Callable[[], bytes]) -> None:
    """Begin to make the object code of a part, if there is a processor for it."""
    known = _here.parts
    if known is None or name in known or not _turns:
        return
    part, turn = Part(make), next(_here.turns)

    def work() -> None:
        with turn:
            part.work()

    known[name] = part
    with contextlib.suppress(RuntimeError):  # the interpreter ends, and starts no thread any more
        start(work, "tapegrad-ahead")


def parts() -> Mapping[str, Part]:
    """Return the parts that were begun in this ``with`` block, by their names."""
    return dict(_here.parts or {})

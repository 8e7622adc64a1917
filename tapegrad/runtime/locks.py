"""Locks that are free in a forked child, which has only the thread that forked; other things a child makes anew."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tapegrad.runtime.platform import has


def in_child(function: Callable[[], object]) -> None:
    """Call a function in every child process that is forked from now on."""
    if has("fork"):
        os.register_at_fork(after_in_child=function)


def before_forking(function: Callable[[], object]) -> None:
    """Call a function before every fork from now on, and before those that were given earlier."""
    if has("fork"):
        os.register_at_fork(before=function)


_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def _renew() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as `logging` does


in_child(_renew)


def module_lock() -> AbstractContextManager[bool]:
    """Return a lock that is free in a forked child, even if a thread of the parent held it.

    The lock is reentrant: garbage collection may start anywhere and run a finalizer that computes.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def hold_while_forking(lock: AbstractContextManager[bool]) -> None:
    """Let every fork wait for a lock of `module_lock`, so that no child starts with half of the guarded work done."""
    if has("fork"):
        os.register_at_fork(before=lock.__enter__, after_in_parent=lambda: lock.__exit__(None, None, None))

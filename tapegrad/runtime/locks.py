"""Locks, and what else must be made anew in a child process: no thread but the one that forked is in it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def in_child(function: Callable[[], object]) -> None:
    """Call a function in every child process that is forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def _renew() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as `logging` does


in_child(_renew)


def module_lock() -> AbstractContextManager[bool]:
    """Return a reentrant lock that is free in a child though a thread held it in the parent.

    Reentrant, as a collection of garbage may run a finalizer that computes, at any place.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def hold_while_forking(lock: AbstractContextManager[bool]) -> None:
    """Let every fork wait for a lock of `module_lock`, so that what it guards is not half done in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.__enter__, after_in_parent=lambda: lock.__exit__(None, None, None))

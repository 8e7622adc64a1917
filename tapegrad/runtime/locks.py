"""Locks of modules, and what else must be made anew in a child process: no thread but the one that forked is in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager


def in_child(function: Callable[[], object]) -> None:
    """Call a function in every child process that is forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def module_lock() -> AbstractContextManager[bool]:
    """Return a reentrant lock for the life of the process, free in a child though a thread held it in the parent."""
    lock = threading.RLock()
    in_child(getattr(lock, "_at_fork_reinit"))  # noqa: B009  # as `logging` does; the type stubs lack it
    return lock

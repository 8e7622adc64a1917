"""Work that no signal handler interrupts: it runs in a thread of its own, as Python calls handlers in the main one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STACK: int = 1 << 24  # bytes; LLVM needs more than some systems give to a thread


def start(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a thread with a stack for LLVM; the process does not exit before it ends.

    Raises
    ------
    RuntimeError
        If the interpreter ends.
    """
    thread = threading.Thread(target=work, name=name, daemon=False)
    before = threading.stack_size(_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


def undisturbed(work: Callable[[], T]) -> T:
    """Call a function where no signal handler interrupts it; return what it returns, or raise what it raises.

    A handler that raises ends only the waiting. The work goes on to its end, and the process does not exit before.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised in the main thread
            errors.append(error)

    try:
        thread = start(run, "tapegrad-undisturbed")
    except RuntimeError:  # the interpreter ends, and starts no thread any more
        return work()
    thread.join()
    try:
        if errors:
            raise errors[0]
        return results[0]
    finally:
        errors.clear()  # an error's traceback refers to this frame

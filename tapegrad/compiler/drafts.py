"""Drafts: machine code that LLVM makes in a tenth of the time, and that runs until better code stands behind it.

A process that finds nothing in the cache waits for long functions before its first gradient. A draft of them is not
optimised, and half as fast. A thread makes what the cache keeps, and then calls of the draft jump there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from tapegrad.compiler.assembly import checked, emitted, parsed
from tapegrad.runtime.locks import in_child, module_lock
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.signals import start

__all__ = ["BETTER", "Draft", "behind", "draft_of", "finish", "put_off", "turn"]

BETTER: Final = "tapegrad_better"  # the word that has the address to which calls of a draft jump
_OWN: Final = "tapegrad_draft"


class Draft(NamedTuple):
    """Object code of a draft, and what makes the object code that replaces it."""

    code: bytes
    better: Callable[[], bytes]


def draft_of(ir: str, symbol: str, count: int, machine: Any) -> bytes:
    """Return the object code of a draft.

    Parameters
    ----------
    ir : str
        LLVM's IR.
    symbol : str
        The function in it that is wanted.
    count : int
        The number of its arguments, which are words.
    machine : llvmlite.binding.TargetMachine
        Whose code generator makes little effort.

    Raises
    ------
    tapegrad.compiler.assembly.JitError
        If it needs what no library here defines.
    """
    words = ", ".join(["i64"] * count)
    jump = f"""
        @{BETTER} = global ptr @{_OWN}
        define i64 @{symbol}({words}) {{
            %better = load atomic ptr, ptr @{BETTER} monotonic, align 8
            %result = musttail call i64 %better({", ".join(f"i64 %{at}" for at in range(count))})
            ret i64 %result
        }}
    """
    module = parsed(ir.replace(f'@"{symbol}"', f'@"{_OWN}"') + jump, symbol, machine)
    return checked(emitted(module, machine), symbol)


# --- work that waits --------------------------------------------------------------------------------------------------

#: Seconds in which nothing was compiled, after which the thread begins: it would slow down who compiles.
_QUIET: Final = 0.2
_waiting: Final[deque[Callable[[], object]]] = deque()
_lock = module_lock()
#: Held while LLVM makes what replaces a draft.
turn: Final = module_lock()


class _State:
    """Who works, when something was compiled, and whether somebody waits for the work."""

    worker: threading.Thread | None = None
    last = 0.0
    is_urgent = False


def behind(work: Callable[[], object]) -> None:
    """Do work in a thread, when no more comes. The process does not exit before it is done."""
    with _lock:
        _waiting.append(work)
        put_off()
        if _State.worker is None:
            try:
                _State.worker = start(_work, "tapegrad-drafts")
            except RuntimeError:  # the interpreter ends: drafts are good enough for what is left
                _waiting.clear()


def put_off() -> None:
    """Let the thread begin later: something else is compiled now."""
    _State.last = monotonic()


def _work() -> None:
    program = threading.main_thread()
    while True:
        while monotonic() - _State.last < _QUIET and program.is_alive() and not _State.is_urgent:
            program.join(0.02)
        with _lock:
            if not _waiting:
                _State.worker = None
                return
            work = _waiting.popleft()
        with turn:
            work()


def finish() -> None:
    """Wait until all drafts of this process have been replaced."""
    worker = _State.worker
    if worker is not None:
        _State.is_urgent = True
        worker.join()
        _State.is_urgent = False


def _forget() -> None:
    _State.worker = None
    _waiting.clear()


in_child(_forget)

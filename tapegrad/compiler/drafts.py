"""Drafts: machine code that LLVM makes in a tenth of the time, and that runs until better code stands behind it.

A process that finds nothing in the cache waits for long functions before its first gradient. A draft of them is not
optimised, and half as fast. A thread makes what the cache keeps, and then calls of the draft jump there.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from tapegrad.compiler.ahead import Part
from tapegrad.compiler.assembly import checked, emitted, parsed
from tapegrad.compiler.object_files import packed
from tapegrad.runtime.locks import in_child, module_lock
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.signals import start

__all__ = ["Draft", "behind", "draft_code", "draft_of", "finish", "held", "put_off", "turn"]


class Draft(NamedTuple):
    """Object code of drafts of some functions.

    Attributes
    ----------
    code : bytes
    symbols : list of tuple of str
        For each function its symbol, and that of the word which has the address to which its calls jump.
    better : list of callable
        For each function, what makes the object code that replaces the draft.
    """

    code: bytes
    symbols: list[tuple[str, str]]
    better: list[Callable[[], bytes]]


def draft_of(
    ir: str,
    counts: Mapping[str, int],
    better: list[Callable[[], bytes]],
    machine: Any,
    parts: Sequence[Part] = (),
    names: Iterable[str] = (),
) -> Draft:
    """Return drafts.

    Parameters
    ----------
    ir : str
        LLVM's IR.
    counts : mapping of int
        For each function in it that is wanted, by name, the number of its arguments, which are words.
    better : list of callable
        For each, what makes the object code that replaces the draft.
    machine : llvmlite.binding.TargetMachine
        Whose code generator makes little effort.
    parts : sequence of Part
        Object code of functions that it only declares.
    names : iterable of str
        Their names.

    Raises
    ------
    tapegrad.compiler.assembly.JitError
        If it needs what no library here defines.
    """
    symbols = [(f"tapegrad_draft_{number}", f"tapegrad_better_{number}") for number in range(len(counts))]
    for (name, count), (symbol, word) in zip(counts.items(), symbols, strict=True):
        words = ", ".join(["i64"] * count)
        ir += f"""
            @{word} = global ptr @"{name}"
            define i64 @{symbol}({words}) {{
                %better = load atomic ptr, ptr @{word} monotonic, align 8
                %result = musttail call i64 %better({", ".join(f"i64 %{at}" for at in range(count))})
                ret i64 %result
            }}
        """
    code = draft_code(ir, ", ".join(counts), machine, frozenset(names))
    return Draft(packed([code, *[part.code() for part in reversed(parts)]]), symbols, better)


def draft_code(ir: str, name: str, machine: Any, imports: frozenset[str] = frozenset()) -> bytes:
    """Return object code, which is not optimised; the name is for messages."""
    return checked(emitted(parsed(ir, machine), machine), name, imports)


# --- work that waits --------------------------------------------------------------------------------------------------

#: Seconds in which nothing was compiled, after which the thread begins: it would slow down who compiles.
_QUIET: Final = 0.2
#: Seconds for which a trace, or the machine code of a program, holds it up.
_LONGEST: Final = 10.0
_waiting: Final[deque[Callable[[], object]]] = deque()
_lock = module_lock()
#: Held while LLVM makes what replaces a draft.
turn: Final = module_lock()


class _State:
    """Who works, when something is or was compiled, and whether somebody waits for the work."""

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


def put_off(seconds: float = 0.0) -> None:
    """Let the thread begin later: something else is compiled now, or will be for some time."""
    _State.last = max(_State.last, monotonic() + seconds)


@contextlib.contextmanager
def held() -> Generator[None]:
    """Let the thread wait in a ``with`` block, or a function: it would take the GIL, and LLVM's lock."""
    put_off(_LONGEST)
    try:
        yield
    finally:
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

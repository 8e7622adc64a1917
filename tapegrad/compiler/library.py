"""The functions of this library that it compiles for itself: their fingerprints, worked out once for all processes.

A process loads some twenty of them before its first gradient. To walk through all that they call takes as long as the
rest of the work, so a file of the cache keeps the fingerprints, under a digest of the library's files as they are.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np

from tapegrad.compiler import drafts, files
from tapegrad.compiler.fingerprint import environment, fingerprint, sha256
from tapegrad.runtime.locks import module_lock

__all__ = ["fingerprint_of_own", "known_fingerprint", "name_of", "state_of_files", "words_of"]

_PACKAGE: Final = __name__.partition(".")[0]
_lock = module_lock()


@cache
def state_of_files() -> bytes:
    """Return a digest of the library's files, by their times and sizes, and of NumPy's version."""
    known: list[tuple[str, int, int]] = []
    waiting = [os.path.dirname(os.path.dirname(__file__))]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for own in found:
                if own.name.endswith(".py"):
                    status = own.stat()
                    known.append((own.path, status.st_mtime_ns, status.st_size))
                elif own.name != "__pycache__" and own.is_dir():
                    waiting.append(own.path)
    return sha256(repr((sorted(known), np.__version__)).encode()).digest()


def fingerprint_of_own(function: Callable[..., Any], signature: tuple[str, ...]) -> str:
    """Return the fingerprint of a function; it is looked up if the function stands in a module of this library."""
    name = name_of(function, signature)
    if name is None:
        return fingerprint(function, signature, {})
    found = _known().get(name)
    if found is None:
        found = fingerprint(function, signature, {})
        with _lock:
            _known()[name] = found
            if not _new:  # all at once: a process that compiles one function needs others, too
                drafts.behind(partial(_write, files.path_of_program(_digest()), _digest()))
            _new[name] = found
    return found


def known_fingerprint(function: Callable[..., Any], signature: tuple[str, ...]) -> str | None:
    """Return the fingerprint of a function of this library if it was worked out before, by any process."""
    name = name_of(function, signature)
    return None if name is None else _known().get(name)


def words_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the signature of a function of words."""
    return ("int64",) * function.__code__.co_argcount


def name_of(function: Callable[..., Any], signature: tuple[str, ...]) -> str | None:
    """Return what names a function of this library in every process; None if it is none, or was made by another one."""
    if not isinstance(function, types.FunctionType):
        return None
    module = function.__module__ or ""
    is_own = module.partition(".")[0] == _PACKAGE
    if not is_own or getattr(sys.modules.get(module), function.__qualname__, None) is not function:
        return None
    return f"{module}.{function.__qualname__} {' '.join(signature)}"


# ---- the file: lines of names and fingerprints


@cache
def _digest() -> str:
    """Return what names the file: all that may change a fingerprint without another file of the library."""
    variables = sorted(
        (name, value) for name, value in os.environ.items() if name.startswith(("TAPEGRAD_WITHOUT", "NUMBA_"))
    )
    parts = state_of_files(), environment(), sys.version.encode(), repr(variables).encode()
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


def _read(path: str | None, digest: str) -> dict[str, str]:
    raw = files.read(path, digest)
    pairs = (line.rpartition(" ") for line in raw.decode().splitlines()) if raw is not None else ()
    return {name: found for name, _, found in pairs}


@cache
def _known() -> dict[str, str]:
    return _read(files.path_of_program(_digest()), _digest())


#: Fingerprints that were worked out since the file was written.
_new: Final[dict[str, str]] = {}


def _write(path: str | None, digest: str) -> None:
    with _lock:
        new = dict(_new)
        _new.clear()
    if path is not None:
        lines = [f"{name} {found}" for name, found in (_read(path, digest) | new).items()]  # others have written too
        files.write(path, digest, "\n".join(lines).encode())

"""Files of machine code: the folder of kernels, and in it the one of programs.

A folder of machine code is a folder of programs: a folder that other users can write to is never used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import warnings

from tapegrad.compiler.fingerprint import sha256
from tapegrad.runtime.platform import has

__all__ = ["folder", "kept", "path_of_kernel", "path_of_program", "read", "write"]

_PROGRAMS = "programs"
_MOST_PROGRAMS = 2048  # a kernel is made for an op; programs come and go as users write them
_MAGIC = b"tapegrad kernel 1\n"
_KEY_BYTES = 32
_warned: set[str] = set()


def kept(path: str) -> dict[str, int]:
    """Return the fingerprints of the functions in a folder, with the sizes of their files."""
    with os.scandir(path) as entries:
        return {entry.name[:-2]: entry.stat().st_size for entry in entries if entry.name.endswith(".o")}


def folder() -> str | None:
    """Return the folder of the cache, and make it if necessary; None if there is no safe one."""
    path = os.environ.get("TAPEGRAD_CACHE_DIR")
    if not path:
        from platformdirs import user_cache_dir

        path = user_cache_dir("tapegrad", appauthor=False)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    fault = _fault(status)
    if fault and path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"tapegrad does not use its kernel cache {path}: {fault}, and whoever writes there decides what "
            "code runs here. Kernels are compiled anew in every process. "
            f"Repair: chmod 700 {path} (if it is yours), or set TAPEGRAD_CACHE_DIR to a folder of your own.",
            RuntimeWarning,
            stacklevel=5,
        )
    return None if fault else path


def _fault(status: os.stat_result) -> str:
    """Return why a file or folder is unsafe: another user owns it, or may write to it; "" if it is safe."""
    if not has("owners"):
        return ""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def path_of_kernel(key: str) -> str | None:
    """Return the path of a function's file, which may not exist yet; None without a folder.

    Operations with the same rule share a file. So it has no name of an operation: to find one whose name is not known
    takes 50 ms in a folder of 20,000 files.
    """
    parent = folder()
    return os.path.join(parent, f"{key}.o") if parent else None


def path_of_program(key: str) -> str | None:
    """Return the path of a program's file, which may not exist yet; None without a folder.

    Its time says when it was last asked for.
    """
    parent = folder()
    if not parent:
        return None
    parent = os.path.join(parent, _PROGRAMS)
    path = os.path.join(parent, f"{key}.o")
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        if _fault(os.stat(parent)):
            return None
        os.utime(path)
    except FileNotFoundError:
        _trim(parent)
    except OSError:  # a read-only folder
        pass
    return path


def _trim(parent: str) -> None:
    """Where a folder has too many files, remove the half of them that was asked for longest ago."""
    try:
        if len(os.listdir(parent)) < _MOST_PROGRAMS:  # to ask for the time of each takes 10 ms
            return
        with os.scandir(parent) as entries:
            files = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    except OSError:  # another process removes them
        return
    for _, path in sorted(files)[: len(files) // 2]:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _seal(key: str, code: bytes) -> bytes:
    return sha256(key.encode() + code).digest()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file. If it is a named pipe, do not wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(path: str | None, key: str) -> bytes | None:
    """Return the object code at ``path``; None if it is absent, broken, of another key, or not ours, or has no path."""
    if path is None:
        return None
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or _fault(status):
                return None
            raw = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + _KEY_BYTES
    code = raw[start:]
    return code if raw[:start] == _MAGIC + _seal(key, code) else None


def write(path: str, key: str, code: bytes) -> None:
    """Write object code to disk. Other processes see all of it or nothing. A read-only folder is no error."""
    import tempfile  # here, as it takes 10 ms, and a warm process writes nothing

    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".tmp")  # mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _seal(key, code) + code)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            try:
                os.unlink(temporary)
            except OSError:
                pass

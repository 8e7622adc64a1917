"""The cache of machine code: a kernel is looked up in this process, then on disk by its fingerprint, or compiled.

So are functions of modules of LLVM's IR, of which programs are made. Only compiling a kernel imports numba. LLVM's
linker loads each object file into a library of its own (0.3 ms).

A folder of machine code is a folder of programs: a folder that other users can write to is never used.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, SimpleNamespace
from typing import Any

from tapegrad.compiler import jit
from tapegrad.compiler.fingerprint import fingerprint, fingerprint_of_ir, sha256
from tapegrad.runtime.locks import hold_while_forking, module_lock
from tapegrad.runtime.signals import undisturbed

__all__ = ["Stats", "address_of", "address_of_ir", "folder", "kept", "known", "on_compile", "stats"]

_PROGRAMS = "programs"  # the folder in the folder for `address_of_ir`
_MOST_PROGRAMS = 2048  # a kernel is made for an op; programs come and go as users write them
_MAGIC = b"tapegrad kernel 1\n"
_KEY_BYTES = 32


class Stats(SimpleNamespace):
    """How many kernels this process compiled, and how many it loaded from disk."""

    compiled: int
    loaded: int

    def __init__(self, compiled: int = 0, loaded: int = 0) -> None:
        super().__init__(compiled=compiled, loaded=loaded)


stats = Stats()
#: Functions that are called with a kernel's name just before it is compiled.
on_compile: list[Callable[[str], object]] = []

_addresses: dict[str, int] = {}
_linked: list[Any] = []  # LLVM frees the code when its tracker dies
_names = (f"kernel{number}" for number in itertools.count())  # LLVM accepts no name twice, not even if linking failed
_warned: set[str] = set()
_lock = module_lock()
_llvm = module_lock()  # held while LLVM works, as LLVM's own locks would never be released in a forked child
hold_while_forking(_llvm)


def address_of(
    name: str,
    function: Callable[..., Any],
    signature: tuple[str, ...] = ("int64",) * 3,
    bind: Mapping[str, object] | None = None,
) -> int:
    """Return the address of the C function ``int64 f(signature...)`` compiled from ``function``.

    Parameters
    ----------
    name : str
        The name of the kernel in messages and file names. It is no part of the fingerprint.
    function, signature, bind
        As for `tapegrad.compiler.jit.compile_function`.

    Returns
    -------
    int
        Valid for the life of the process.

    Raises
    ------
    tapegrad.compiler.jit.JitError, numba.core.errors.NumbaError
        If the function cannot become a kernel.
    TypeError
        If it refers to an object that has no fingerprint, such as an array or an instance of a class.

    Examples
    --------
    >>> import ctypes
    >>> address = address_of("add", lambda a, b, c: a + b + c)
    >>> ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)(address)(1, 2, 3)
    6
    """
    key = fingerprint(function, signature, bind or {})
    address = _addresses.get(key)
    if address is not None:
        return address
    return _obtain(name, key, lambda: _path(name, key), lambda: jit.compile_function(function, signature, bind))


def address_of_ir(
    name: str,
    key: str | bytes,
    make_ir: Callable[[], str],
    symbol: str = jit.SYMBOL,
    *,
    imports: Mapping[str, int] | None = None,
    slp: bool = False,
) -> int:
    """Return the address of a function of a module of LLVM's IR.

    Parameters
    ----------
    name : str
        What it is, in messages. It is no part of the fingerprint.
    key : str or bytes
        Whatever decides the text, or the text. The compiler, its options, the CPU and the version count anyway.
    make_ir : callable
        Returns the text. It is called only if neither this process nor the folder has the machine code.
    symbol : str
        The function. All others of the module are internal.
    imports : mapping, optional
        Addresses of functions of this process, by the names of their declarations in the text. Addresses do not count.
    slp : bool
        Whether LLVM looks for vectors in straight lines: see `tapegrad.compiler.modules.assemble_module`.

    Returns
    -------
    int
        Valid for the life of the process.

    Raises
    ------
    tapegrad.compiler.jit.JitError
        If the text is no module that LLVM takes, or needs a function that is nowhere.

    Examples
    --------
    >>> import ctypes
    >>> text = "define i64 @twice(i64 %x) { %y = add i64 %x, %x ret i64 %y }"
    >>> address = address_of_ir("twice", text, lambda: text, "twice")
    >>> ctypes.CFUNCTYPE(*[ctypes.c_int64] * 2)(address)(21)
    42
    """
    imports = imports or {}
    digest = fingerprint_of_ir(key.encode() if isinstance(key, str) else key, (symbol, sorted(imports), slp))

    def make() -> bytes:
        from tapegrad.compiler.modules import assemble_module

        return assemble_module(make_ir(), symbol, frozenset(imports), slp=slp)

    return _obtain(name, digest, lambda: _path_of_module(digest), make, symbol, imports)


def _obtain(
    name: str,
    key: str,
    find: Callable[[], str | None],
    make: Callable[[], bytes],
    symbol: str = jit.SYMBOL,
    imports: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Return the address of a function of this key: known, linked from disk, or made."""
    address = _addresses.get(key)
    if address is not None:
        return address
    path = find()
    # A signal handler that raises in the middle would leave LLVM's memory broken.
    return undisturbed(lambda: _load(name, key, path, make, symbol, imports))


def _load(
    name: str, key: str, path: str | None, make: Callable[[], bytes], symbol: str, imports: Mapping[str, int]
) -> int:
    """Link a function's object code from disk, or make it, and return its address."""
    with _lock:
        if key in _addresses:  # another thread was faster
            return _addresses[key]
        with _llvm:
            code = _read(path, key) if path else None
            address = _link(code, symbol, imports) if code is not None else None
            if address is None:
                for tell in on_compile:
                    tell(name)
                code = make()
                address = _link(code, symbol, imports)
                if address is None:
                    raise jit.JitError(f"{name}: LLVM cannot link the object code that it made")
                stats.compiled += 1
                if path:
                    _write(path, key, code)
            else:
                stats.loaded += 1
            _addresses[key] = address
        return _addresses[key]


def known() -> frozenset[str]:
    """Return the fingerprints of the functions that this process has loaded or compiled."""
    return frozenset(_addresses)


# ---- the folder


def kept(path: str) -> dict[str, int]:
    """Return the fingerprints of the functions in a folder, with the sizes of their files."""
    with os.scandir(path) as entries:
        files = [(entry.name, entry.stat().st_size) for entry in entries if entry.name.endswith(".o")]
    sizes: dict[str, int] = {}
    for name, size in files:
        key = name[:-2].rpartition("-")[2]
        sizes[key] = sizes.get(key, 0) + size
    return sizes


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
            stacklevel=4,
        )
    return None if fault else path


def _fault(status: os.stat_result) -> str:
    """Return why a file or folder is unsafe: another user owns it, or may write to it; "" if it is safe."""
    if not hasattr(os, "geteuid"):
        return ""  # Windows: a user's folders have access lists
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _path(name: str, key: str) -> str | None:
    """Return the path of a function's file, which may not exist yet; None without a folder.

    Operations with the same rule share a file. It has the name of the operation that came first.
    """
    parent = folder()
    if not parent:
        return None
    path = os.path.join(parent, f"{re.sub(r'[^A-Za-z0-9_.]+', '_', name)[:80]}-{key}.o")
    if not os.path.exists(path):
        try:
            names = [entry for entry in os.listdir(parent) if entry.endswith(f"-{key}.o")]
        except OSError:
            names = []
        return os.path.join(parent, names[0]) if names else path
    return path


def _path_of_module(key: str) -> str | None:
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
        with os.scandir(parent) as entries:
            files = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    except OSError:  # another process removes them
        return
    if len(files) >= _MOST_PROGRAMS:
        for _, path in sorted(files)[: len(files) // 2]:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _seal(key: str, code: bytes) -> bytes:
    return sha256(key.encode() + code).digest()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file. If it is a named pipe, do not wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _read(path: str, key: str) -> bytes | None:
    """Return the object code at ``path``; None if it is absent, broken, of another key, or not ours."""
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


def _write(path: str, key: str, code: bytes) -> None:
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


# ---- the loader


@cache
def _linker() -> Any:
    """Return LLVM's just-in-time linker, to which libm is known."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # We try names, each right on one kind of system, as ctypes.util.find_library runs a compiler.
    for name in ("libm.so.6", "libm.so", "libSystem.B.dylib", "msvcrt.dll"):
        try:
            llvm.load_library_permanently(name)
            break
        except RuntimeError:
            continue
    # JITLink puts code and constants into one block, so that code is never too far from its data.
    return llvm.create_lljit_compiler(use_jit_link=True)


def _link(code: bytes, symbol: str, imports: Mapping[str, int]) -> int | None:
    """Load object code and return the address of its function; None if the linker refuses it."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.link(_linker(), next(_names))
    except RuntimeError:
        return None
    _linked.append(tracker)
    return int(tracker[symbol])

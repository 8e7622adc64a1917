"""The cache of machine code: a kernel is looked up in this process, then on disk by its fingerprint, or compiled.

So are functions of modules of LLVM's IR, of which programs are made. LLVM's linker loads each object file into a
library of its own (0.3 ms).
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from tapegrad.compiler import drafts, files, jit
from tapegrad.compiler.ahead import Part
from tapegrad.compiler.drafts import Draft
from tapegrad.compiler.fingerprint import fingerprint, fingerprint_of_ir
from tapegrad.compiler.library import fingerprint_of_own
from tapegrad.compiler.object_files import packed, unpacked
from tapegrad.runtime.locks import before_forking, hold_while_forking, module_lock
from tapegrad.runtime.signals import undisturbed

__all__ = [
    "Stats", "address_of", "address_of_ir", "address_of_made", "digest_of_ir", "known", "make_together", "on_compile",
    "stats",
]  # fmt: skip


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
_programs: set[str] = set()  # the keys of `address_of_ir`
_linked: list[Any] = []  # LLVM frees the code when its tracker dies
_names = (f"kernel{number}" for number in itertools.count())  # LLVM accepts no name twice, not even if linking failed
_lock = module_lock()
_llvm = module_lock()  # held while LLVM works, as LLVM's own locks would never be released in a forked child
hold_while_forking(_llvm)
hold_while_forking(drafts.turn)  # later, so that it is taken before the other, as by who makes what replaces a draft
before_forking(drafts.finish)


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
        The name of the kernel in messages. It is no part of the fingerprint.
    function, signature, bind
        As for `tapegrad.compiler.jit.compile_function`.

    Returns
    -------
    int
        Valid for the life of the process.

    Raises
    ------
    tapegrad.compiler.jit.JitError
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
    key = fingerprint(function, signature, bind) if bind else fingerprint_of_own(function, signature)
    address = _addresses.get(key)
    if address is not None:
        return address
    make = partial(jit.draft_function, function, signature, bind)
    return _obtain(name, key, partial(files.path_of_kernel, key), make)


def address_of_ir(
    name: str,
    key: str | bytes,
    make_ir: Callable[[], str],
    symbol: str = jit.SYMBOL,
    *,
    imports: Mapping[str, int] = MappingProxyType({}),
    parts: Mapping[str, Part] = MappingProxyType({}),
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
    parts : mapping of Part, optional
        Object code of functions that the text only declares, by their names.

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
    digest = digest_of_ir(key, symbol, imports)
    _programs.add(digest)

    def make() -> bytes:
        from tapegrad.compiler.modules import assemble_module

        code = assemble_module(make_ir(), symbol, frozenset(imports) | parts.keys())
        # The last one is the most likely that nobody has begun with.
        return packed([code, *[part.code() for part in reversed([*parts.values()])]])

    return _obtain(name, digest, partial(files.path_of_program, digest), make, symbol, imports)


def digest_of_ir(key: str | bytes, symbol: str, imports: Iterable[str] = ()) -> str:
    """Return the fingerprint of a function of a module; the arguments are those of `address_of_ir`."""
    return fingerprint_of_ir(key.encode() if isinstance(key, str) else key, (symbol, sorted(imports)))


def address_of_made(digest: str, symbol: str, imports: Mapping[str, int]) -> int | None:
    """Return the address of a function of a module that was made before, by its fingerprint; None if it is gone."""
    path = files.path_of_program(digest)
    if digest not in _addresses and (path is None or not os.path.exists(path)):
        return None

    def make() -> bytes:
        raise FileNotFoundError

    _programs.add(digest)
    try:
        return _obtain("program", digest, lambda: path, make, symbol, imports)
    except FileNotFoundError:  # it was removed meanwhile, or is broken
        return None


def _obtain(
    name: str,
    key: str,
    find: Callable[[], str | None],
    make: Callable[[], bytes | Draft],
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
    name: str,
    key: str,
    path: str | None,
    make: Callable[[], bytes | Draft],
    symbol: str,
    imports: Mapping[str, int],
) -> int:
    """Link a function's object code from disk, or make it, and return its address."""
    with _lock:
        if key in _addresses:  # another thread was faster
            return _addresses[key]
        with _llvm:
            code = files.read(path, key) if path else None
            linked = _link(code, [symbol], imports) if code is not None else None
            if linked is None:
                _tell([name])
                made = make()
                if isinstance(made, Draft):
                    _link_drafts(made, [(name, key, path)])
                else:
                    linked = _link(made, [symbol], imports)
                    if linked is None:
                        raise jit.JitError(_REFUSED.format(name))
                    if path:
                        files.write(path, key, made)
                stats.compiled += 1
            else:
                stats.loaded += 1
            if linked is not None:
                _addresses[key] = int(linked[symbol])
        return _addresses[key]


_REFUSED: Final = "{}: LLVM cannot link the object code that it made"


def _tell(names: Iterable[str]) -> None:
    """Say what is about to be compiled."""
    for name in names:
        for tell in on_compile:
            tell(name)
    drafts.put_off()


def _link_drafts(made: Draft, functions: Sequence[tuple[str, str, str | None]]) -> None:
    """Link drafts of functions with these names, fingerprints and files; what replaces them is made later."""
    linked = _link(made.code, list(itertools.chain(*made.symbols)))
    if linked is None:
        raise jit.JitError(_REFUSED.format(", ".join(name for name, *_ in functions)))
    for (_, key, path), (symbol, word), better in zip(functions, made.symbols, made.better, strict=True):
        _addresses[key] = int(linked[symbol])
        drafts.behind(partial(_replace, int(linked[word]), key, path, better))


def make_together(functions: Sequence[types.FunctionType]) -> None:
    """Make drafts of functions of words, which stand in modules of this library, as one module.

    Nothing is made of those that this process or the folder has, nor if the folder has the first one.
    """
    missing = {}
    for function in functions:
        key = fingerprint_of_own(function, ("int64",) * function.__code__.co_argcount)
        path = files.path_of_kernel(key)
        if key not in _addresses and not (path and os.path.exists(path)):
            missing[key] = function, path
        elif not missing:
            return
    undisturbed(lambda: _make_together(missing))


def _make_together(missing: Mapping[str, tuple[types.FunctionType, str | None]]) -> None:
    with _lock, _llvm:
        left = {key: own for key, own in missing.items() if key not in _addresses}  # another thread was faster
        if not left:
            return
        _tell(function.__name__ for function, _ in left.values())
        try:
            made = jit.draft_together([function for function, _ in left.values()])
        except jit.JitError:  # raised again for one of them, when it is asked for
            return
        _link_drafts(made, [(function.__name__, key, path) for key, (function, path) in left.items()])
        stats.compiled += len(left)


def _replace(jump: int, key: str, path: str | None, make: Callable[[], bytes]) -> None:
    """Make the code that replaces a draft, write it to disk, and let calls of the draft jump to it."""
    code = make()
    if path:
        files.write(path, key, code)
    with _llvm:
        linked = _link(code)
    if linked is not None:
        ctypes.c_int64.from_address(jump).value = int(linked[jit.SYMBOL])


def known() -> frozenset[str]:
    """Return the fingerprints of the kernels that this process has loaded or compiled."""
    return frozenset(_addresses.keys() - _programs)


# ---- the loader


@cache
def _linker() -> Any:
    """Return LLVM's just-in-time linker, to which libm is known."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # We try names, each right on one kind of system, as ctypes.util.find_library runs a compiler.
    for name in ("libm.so.6", "libm.so", "libSystem.B.dylib", "ucrtbase.dll"):
        try:
            llvm.load_library_permanently(name)
            break
        except RuntimeError:
            continue
    # JITLink puts code and constants into one block, so that code is never too far from its data.
    return llvm.create_lljit_compiler(use_jit_link=True)


def _link(
    code: bytes, symbols: Sequence[str] = (jit.SYMBOL,), imports: Mapping[str, int] = MappingProxyType({})
) -> Any:
    """Load object code and return the addresses of its symbols; None if the linker refuses it."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    for own in unpacked(code):
        builder.add_object_img(own)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    if sys.platform == "win32":
        builder.import_symbol("_fltused", 1)  # says that the code has floating numbers; nobody reads it
    for name, address in imports.items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.link(_linker(), next(_names))
    except RuntimeError:
        return None
    _linked.append(tracker)
    return tracker

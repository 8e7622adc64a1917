"""The cache of machine code: a kernel is looked up in this process, then on disk by its fingerprint, or compiled.

So are functions of modules of LLVM's IR, of which programs are made.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from tapegrad.compiler import drafts, files, jit
from tapegrad.compiler.ahead import Part
from tapegrad.compiler.drafts import Draft
from tapegrad.compiler.fingerprint import fingerprint, fingerprint_of_ir
from tapegrad.compiler.library import fingerprint_of_own, known_fingerprint, words_of
from tapegrad.compiler.loader import link
from tapegrad.compiler.object_files import packed
from tapegrad.runtime.locks import before_forking, hold_while_forking, module_lock
from tapegrad.runtime.signals import start, undisturbed

__all__ = [
    "Stats", "address_of", "address_of_ir", "address_of_made", "digest_of_ir", "is_linked", "known", "make_together",
    "on_compile", "stats",
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
_drafted: dict[Callable[..., Any], int] = {}  # the addresses of functions that were made together
_drafting: dict[Callable[..., Any], threading.Thread] = {}  # who makes them
_programs: set[str] = set()  # the keys of `address_of_ir`
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
    if not bind and function in _drafting:
        _drafting[function].join()
        if function in _drafted:
            return _drafted[function]
    key = fingerprint(function, signature, bind) if bind else fingerprint_of_own(function, signature)
    address = _addresses.get(key)
    if address is not None:
        return address
    make = partial(jit.draft_function, function, signature, bind)
    return _obtain(name, key, partial(files.path_of_kernel, key), make, jit.symbol_of(function, signature, bind))


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
    name: str, key: str, path: str | None, make: Callable[[], bytes | Draft], symbol: str, imports: Mapping[str, int]
) -> int:
    """Link a function's object code from disk, or make it, and return its address."""
    with _lock:
        if key in _addresses:  # another thread was faster
            return _addresses[key]
        with _llvm:
            code = files.read(path, key)
            linked = link(code, [symbol], imports) if code is not None else None
            if linked is None:
                _tell([name])
                made = make()
                if isinstance(made, Draft):
                    (_addresses[key], jump), *_ = _link_drafts(made, [name])
                    drafts.behind(partial(_replace, jump, key, path, made.better[0], symbol))
                else:
                    linked = link(made, [symbol], imports)
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


def _link_drafts(made: Draft, names: Iterable[str]) -> list[tuple[int, int]]:
    """Link drafts; return for each its address, and where the word stands to which its calls jump."""
    linked = link(made.code, list(itertools.chain(*made.symbols)))
    if linked is None:
        raise jit.JitError(_REFUSED.format(", ".join(names)))
    return [(int(linked[symbol]), int(linked[word])) for symbol, word in made.symbols]


def make_together(functions: Sequence[types.FunctionType]) -> bool:
    """Let a thread make drafts of functions of words as one module; `address_of` waits for them.

    They stand in modules of this library. Nothing is made, and the result is false, if this process or the folder has
    the last one: the folder has the others then, as they are written first, and all are linked at once. Else it is
    true: Python may go on while LLVM works.
    """
    last = functions[-1]
    if last in _drafting:
        return False
    if _is_made(fingerprint_of_own(last, words_of(last))):
        undisturbed(partial(_link_together, functions))
        return False
    # To work out all fingerprints takes a tenth of the time in which the functions are made.
    missing = [own for own in functions if not _is_made(known_fingerprint(own, words_of(own)))]
    is_written = threading.Event()

    def work() -> None:
        try:
            _make_together(missing, is_written.set)
        finally:
            is_written.set()

    try:
        thread = start(work, "tapegrad-together")
    except RuntimeError:  # the interpreter ends: each is made alone
        return False
    _drafting.update(dict.fromkeys(missing, thread))
    is_written.wait()
    return True


def _link_together(functions: Sequence[types.FunctionType]) -> None:
    """Link functions that the folder has as one library: half of the time that it takes for a library each."""
    with _lock, _llvm:
        symbols = {known_fingerprint(own, words_of(own)): jit.symbol_of(own, words_of(own)) for own in functions}
        missing = [key for key in symbols if key is not None and key not in _addresses]
        codes = {key: files.read(files.path_of_kernel(key), key) for key in missing}
        found = {key: code for key, code in codes.items() if code is not None}
        linked = link(packed([*found.values()]), [symbols[key] for key in found]) if found else None
        if linked is not None:
            _addresses.update({key: int(linked[symbols[key]]) for key in found})
            stats.loaded += len(found)


def _is_made(key: str | None) -> bool:
    """Whether this process or the folder has a kernel; its fingerprint may be unknown."""
    path = None if key is None else files.path_of_kernel(key)
    return key in _addresses or (path is not None and os.path.exists(path))


def _make_together(functions: Sequence[types.FunctionType], tell: Callable[[], object]) -> None:
    """Make drafts; tell when their text is written, and only LLVM has work left."""
    with _lock, _llvm:
        if functions[-1] in _drafted:  # another thread was faster
            return
        names = [function.__name__ for function in functions]
        _tell(names)
        try:
            made = jit.draft_together(functions, tell)
        except jit.JitError:  # raised again for one of them, when it is asked for
            return
        for function, (address, jump), better in zip(functions, _link_drafts(made, names), made.better, strict=True):
            _drafted[function] = address
            drafts.behind(partial(_replace_own, jump, function, better))
        stats.compiled += len(functions)


def _replace_own(jump: int, function: types.FunctionType, make: Callable[[], bytes]) -> None:
    """Replace the draft of a function of this library, of which nobody knows the fingerprint yet."""
    key, symbol = fingerprint_of_own(function, words_of(function)), jit.symbol_of(function, words_of(function))
    _addresses[key] = _drafted[function]
    _replace(jump, key, files.path_of_kernel(key), make, symbol)


def _replace(jump: int, key: str, path: str | None, make: Callable[[], bytes], symbol: str) -> None:
    """Let calls of a draft jump to the code that replaces it: another process has written it to disk, or it is made."""
    code = files.read(path, key)
    if code is None:
        code = make()
        if path:
            files.write(path, key, code)
    with _llvm:
        linked = link(code, [symbol])
    if linked is not None:
        ctypes.c_int64.from_address(jump).value = int(linked[symbol])


def is_linked(function: Callable[..., int]) -> bool:
    """Whether this process has the machine code of a function of words of this library."""
    return function in _drafted or known_fingerprint(function, words_of(function)) in _addresses


def known() -> frozenset[str]:
    """Return the fingerprints of the kernels that this process has loaded or compiled."""
    return frozenset(_addresses.keys() - _programs)

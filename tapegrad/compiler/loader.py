"""The loader: LLVM's linker loads object code into this process. A file takes 0.2 ms, among others of a library 0.1."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from tapegrad.compiler.object_files import unpacked

__all__ = ["link"]

_linked: Final[list[Any]] = []  # LLVM frees the code when its tracker dies
_names: Final = (f"kernel{number}" for number in itertools.count())  # LLVM takes no name twice, not even after an error


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


def link(code: bytes, symbols: Sequence[str], imports: Mapping[str, int] = MappingProxyType({})) -> Any:
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

"""What this platform has and others lack. Each part has a fallback, and is asked for here, by name.

======================= =============================================================================================
part                    without it
======================= =============================================================================================
``affinity``            all cores of the machine are counted, not those that the process may use
``fenv``                flags of floating errors are read and set in the CPU's register, not by the C library
                        (and `set_flush_denormal` has no effect)
``fork``                nothing guards locks and threads, as no child process begins as a copy of this one
``hugepages``           large buffers are ordinary memory of NumPy's
``linux_files``         the last level of the cache counts as small; memory is looked at by system calls
``numpy_blas``          BLAS and LAPACK are SciPy's, as the names in NumPy's library are hidden
``owners``              nobody asks to whom a cache folder belongs, as other users cannot write to it
``vector_names``        LLVM does not vectorise loops with calls of functions of `tapegrad.vmath`
``x86``                 no instruction is asked for by its name: fences and scaling by powers of 2 are LLVM's
                        (without ``fenv`` too, floating errors are not told)
======================= =============================================================================================

``TAPEGRAD_WITHOUT=hugepages,fork`` leaves parts out, so that tests run the fallbacks where the parts are there.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
import time
from functools import cache
from typing import Any, Final

__all__ = ["FLOAT_ERRORS", "PARTS", "STARTED", "c_library", "copy_of", "has", "of_machine_code"]

#: When this library was imported, in ns: before any file with functions that it compiles.
STARTED: Final = time.time_ns()

_WINDOWS: Final = sys.platform == "win32"
_ARM: Final = platform.machine().lower() in ("aarch64", "arm64")

PARTS: Final = {
    "affinity": hasattr(os, "sched_getaffinity"),
    "fenv": not _WINDOWS,  # its C library has some of the functions in the header only
    "fork": hasattr(os, "register_at_fork"),
    "hugepages": hasattr(mmap, "MADV_HUGEPAGE"),
    "linux_files": sys.platform == "linux",
    "numpy_blas": not _WINDOWS,  # where a library's handle does not find what the library depends on
    "owners": hasattr(os, "geteuid"),
    "vector_names": True,
    "x86": platform.machine().lower() in ("x86_64", "amd64"),
}
_LEFT_OUT: Final = frozenset(os.environ.get("TAPEGRAD_WITHOUT", "").replace(",", " ").split())
if _LEFT_OUT - PARTS.keys():
    raise ImportError(
        f"TAPEGRAD_WITHOUT={os.environ['TAPEGRAD_WITHOUT']} names {', '.join(sorted(_LEFT_OUT - PARTS.keys()))}; "
        f"the parts of a platform are {', '.join(PARTS)}"
    )

#: The numbers of NumPy's floating errors "invalid", "divide", "over" and "under" in <fenv.h>, or in the CPU's register.
FLOAT_ERRORS: Final = (1, 2, 4, 8) if _ARM else (1, 4, 8, 16)


def has(part: str) -> bool:
    """Return whether the platform has a part, and the environment does not leave it out.

    Examples
    --------
    >>> has("vector_names") in (True, False)
    True
    """
    return PARTS[part] and part not in _LEFT_OUT


def of_machine_code() -> list[bool]:
    """Return whether the platform has each of the parts that machine code depends on."""
    return [has(part) for part in ("fenv", "vector_names", "x86")]


@cache
def c_library() -> Any:
    """Return the process's C library."""
    return ctypes.CDLL("ucrtbase" if _WINDOWS else None)


def copy_of(address: int, size: int) -> bytes:
    """Return up to 4096 bytes at an address, fewer or none where no memory is mapped."""
    if sys.platform == "win32":
        copy, count = ctypes.create_string_buffer(size), ctypes.c_size_t()
        process = ctypes.c_void_p(-1)  # this one
        place = ctypes.c_void_p(address)
        ctypes.windll.kernel32.ReadProcessMemory(process, place, copy, ctypes.c_size_t(size), ctypes.byref(count))
        return copy.raw[: count.value]
    end, begin = os.pipe()  # writing from a wrong address is an error of the system call, and no signal
    try:
        written = c_library().write(begin, ctypes.c_void_p(address), ctypes.c_size_t(size))
        return os.read(end, size) if written > 0 else b""
    finally:
        os.close(begin)
        os.close(end)

"""Subnormal numbers, nearer to zero than the smallest normal one: whether the CPU computes with them.

The mode is in bits of the register that controls floating-point arithmetic (x86: MXCSR, arm64: FPCR). The C library
reads and writes this register as a part of the floating-point environment.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Final

from tapegrad.runtime.platform import c_library, has

__all__ = ["set_flush_denormal"]

_ZEROS_X86: Final = 0x8040  # results are flushed to zero, and operands are taken as zeros
_ZEROS_ARM: Final = 1 << 24  # both

#: By system and machine: which 32-bit word of `fenv_t` is the control register, and its bits.
_REGISTERS: Final = {
    ("linux", "x86_64"): (7, _ZEROS_X86),
    ("darwin", "x86_64"): (1, _ZEROS_X86),
    ("linux", "aarch64"): (0, _ZEROS_ARM),
    ("darwin", "arm64"): (2, _ZEROS_ARM),
}
_WORDS: Final = 16  # more than any `fenv_t` has


def set_flush_denormal(mode: bool) -> bool:
    """Let the CPU take subnormal numbers as zeros, or compute with them again.

    Subnormal numbers are those nearer to zero than 2.2e-308 (float32: 1.2e-38).

    Parameters
    ----------
    mode : bool
        True: results and operands that are subnormal become zeros. False, as at first: they do not.

    Returns
    -------
    bool
        Whether the platform has this mode: Linux and macOS have it, on x86-64 and arm64.

    Raises
    ------
    TypeError
        If `mode` is no bool.

    Notes
    -----
    The mode belongs to the calling thread: threads that run already, those of the library too, keep theirs. On Linux a
    new thread begins with the mode of the thread that starts it. The mode holds for all floating-point arithmetic of
    the thread, of NumPy's functions too.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.set_flush_denormal(True)
    True
    >>> tg.tensor(1e-300) * 1e-10
    tensor(0.)
    >>> tg.set_flush_denormal(False)
    True
    >>> bool(tg.tensor(1e-300) * 1e-10 > 0)
    True
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    place = _REGISTERS.get((sys.platform, platform.machine()))
    library = c_library()
    if place is None or not has("fenv") or not hasattr(library, "fesetenv"):
        return False
    word, bits = place
    environment = (ctypes.c_uint32 * _WORDS)()
    if library.fegetenv(environment) != 0:
        return False
    environment[word] = environment[word] | bits if mode else environment[word] & ~bits
    return bool(library.fesetenv(environment) == 0)

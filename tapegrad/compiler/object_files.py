"""Object files of Linux (ELF), macOS (Mach-O) and Windows (COFF): which symbols they leave to the linker.

Several object files of one library stand in one file, behind a head that has their lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["packed", "undefined_symbols", "unpacked"]

_SEVERAL: Final = b"several\0"


def packed(codes: Sequence[bytes]) -> bytes:
    """Return object files as one.

    Examples
    --------
    >>> unpacked(packed([b"one", b"two"]))
    [b'one', b'two']
    """
    if len(codes) == 1:
        return codes[0]
    lengths = struct.pack(f"<{1 + len(codes)}Q", len(codes), *map(len, codes))
    return b"".join([_SEVERAL, lengths, *codes])


def unpacked(code: bytes) -> list[bytes]:
    """Return the object files that stand in one."""
    if not code.startswith(_SEVERAL):
        return [code]
    (count,) = struct.unpack_from("<Q", code, len(_SEVERAL))
    found, at = [], len(_SEVERAL) + 8 * (1 + count)
    for length in struct.unpack_from(f"<{count}Q", code, len(_SEVERAL) + 8):
        found.append(code[at : at + length])
        at += length
    return found


def undefined_symbols(code: bytes) -> set[str]:
    """Return the names that an object file of 64 bits leaves to the linker, as C writes them.

    Raises
    ------
    ValueError
        If it is no object file of these formats.

    Examples
    --------
    >>> undefined_symbols(b"no object file")
    Traceback (most recent call last):
    ValueError: not an object file of 64 bits: it begins with b'no o'
    """
    if code[:5] == b"\x7fELF\2":
        return set(_of_elf(code))
    if code[:4] == b"\xcf\xfa\xed\xfe":
        return {name.removeprefix("_") for name in _of_mach_o(code)}
    if code[:2] in (b"\x64\x86", b"\x64\xaa"):  # for x86-64 and for ARM64
        return set(_of_coff(code))
    raise ValueError(f"not an object file of 64 bits: it begins with {code[:4]!r}")


def _string(code: bytes, begin: int, end: int | None = None) -> str:
    return code[begin : code.index(b"\0", begin, end)].decode()


def _of_elf(code: bytes) -> Iterator[str]:
    """Read the tables of symbols. System V ABI, "Object Files"."""
    order = "<" if code[5] == 1 else ">"
    (start,) = struct.unpack_from(order + "Q", code, 0x28)
    size, count = struct.unpack_from(order + "HH", code, 0x3A)
    # Section header: name, type, flags, address, offset, size, link, ... ; type 2 is the symbol table.
    sections = [struct.unpack_from(order + "IIQQQQII", code, start + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, _ in sections:
        for at in range(offset + 24, offset + length, 24) if kind == 2 else ():
            name, _, _, section = struct.unpack_from(order + "IBBH", code, at)
            if section == 0 and name:
                yield _string(code, sections[link][4] + name)


def _of_mach_o(code: bytes) -> Iterator[str]:
    """Read the table of symbols. Apple's <mach-o/loader.h> and <mach-o/nlist.h>."""
    (count,) = struct.unpack_from("<I", code, 16)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:  # LC_SYMTAB
            table, symbols, strings = struct.unpack_from("<III", code, at + 8)
            for place in range(table, table + 16 * symbols, 16):
                name, kind = struct.unpack_from("<IB", code, place)
                if kind & 0xEF == 1:  # no entry of a debugger; external, and in no section
                    yield _string(code, strings + name)
        at += size


def _of_coff(code: bytes) -> Iterator[str]:
    """Read the table of symbols. Microsoft's "PE Format", "COFF Symbol Table"."""
    table, count = struct.unpack_from("<II", code, 8)
    strings, at = table + 18 * count, table
    while at < strings:
        zeros, offset, value, section, _, kind, more = struct.unpack_from("<IIIhHBB", code, at)
        if section == 0 and kind == 2 and value == 0:  # external, and in no section
            yield code[at : at + 8].rstrip(b"\0").decode() if zeros else _string(code, strings + offset)
        at += 18 * (1 + more)

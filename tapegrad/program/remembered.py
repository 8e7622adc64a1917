"""Programs whose machine code a process has made before: it is found by the list of operations, which is not lowered.

A file of the cache, named by a digest of the list, says which machine code computes it and what it needs: memory,
routines, and calls of operations that are not fused.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler import files
from tapegrad.compiler.cache import address_of_made, digest_of_ir
from tapegrad.compiler.fingerprint import fingerprint_of_ir, sha256
from tapegrad.compiler.library import state_of_files
from tapegrad.program.batch import takes_way_op
from tapegrad.program.lists import detach_op, rewritten_op
from tapegrad.program.machine_code import SYMBOL
from tapegrad.program.program import Program
from tapegrad.program.refusals import OPERATIONS
from tapegrad.program.routines import address_of_routine
from tapegrad.program.stops import CALL, Stop, load_stop
from tapegrad.tape.layout import Layout

__all__ = ["Remembered", "digest_of", "remember", "remembered"]

#: Operations of the library that stand in no file of `tapegrad.ops`; those of users do neither.
_OF_PROGRAMS: Final = frozenset((detach_op, rewritten_op, takes_way_op, *OPERATIONS))
_FAMILIES: Final = ("batch", "scan")
_PLAIN: Final = (int, float, complex, bool, str, type(None), type(Ellipsis))


class Remembered:
    """Machine code that was made before; used like `tapegrad.program.fuse.Fused`, but for what can be read of it.

    Parameters
    ----------
    address : int
    scratch_bytes : int
    stages : sequence of int
    may_fail : bool
    calls : sequence of Stop
        The operations that it calls.
    """

    def __init__(
        self, address: int, scratch_bytes: int, stages: Sequence[int], may_fail: bool, calls: Sequence[Stop]
    ) -> None:
        self._address, self.scratch_bytes, self.stages, self.may_fail = address, scratch_bytes, stages, may_fail
        self._calls = calls  # the machine code knows the addresses of their words
        self.stops: list[np.ndarray] = [words for own in calls for words in own.stops]

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        return self._address


def remembered(digest: str | None) -> Remembered | str | None:
    """Return the machine code of a program, given by its digest, or why it is refused, if that was found out before."""
    path = files.path_of_program(digest) if digest is not None else None
    if digest is None or path is None:
        return None
    raw = files.read(path, digest)
    if raw is None:
        return None
    found = json.loads(raw)
    if "refused" in found:
        return str(found["refused"])
    address = address_of_made(found["code"], SYMBOL, {name: _import(name) for name in found["imports"]})
    if address is None:  # it was removed
        return None
    calls = [Stop(Program.parse(text), reason) for text, reason in found["calls"]]
    return Remembered(address, found["scratch_bytes"], tuple(found["stages"]), found["may_fail"], calls)


def remember(digest: str | None, code: Any) -> None:
    """Keep what machine code computes a program, or why it is refused, for other processes."""
    path = files.path_of_program(digest) if digest is not None else None
    if digest is None or path is None:
        return
    if isinstance(code, str):
        found: dict[str, Any] = {"refused": code}
    else:
        try:
            calls = [(own.program.text(), own.reason) for own in _calls(code)]
        except TypeError:  # a Python function is a part of one
            return
        found = {
            "code": digest_of_ir(code.key, SYMBOL, code.imports),
            "imports": sorted(code.imports),
            "scratch_bytes": code.scratch_bytes,
            "stages": list(code.stages),
            "may_fail": code.may_fail,
            "calls": calls,
        }
    files.write(path, digest, json.dumps(found).encode())


def _calls(code: Any) -> list[Stop]:
    """Return the operations that code calls, in the order of their words."""
    if isinstance(code, Stop):
        return [code]
    return [call for own in getattr(code, "codes", ()) for call in _calls(own)]


def _import(name: str) -> int:
    return load_stop() if name == CALL else address_of_routine(name)


# ---- the digest of a list


def digest_of(program: Program, kind: object) -> str | None:
    """Return what names a program's file; None if a function of the user is a part of it.

    Parameters
    ----------
    program : Program
    kind : object
        What else decides the machine code.
    """
    try:
        return fingerprint_of_ir(_token(program) + state_of_files(), kind)
    except TypeError:
        return None


def _token(program: Program) -> bytes:
    """Return a digest of what decides the machine code of a program.

    Raises
    ------
    TypeError
        If a function of the user is a part of it.
    """
    codes, examples = program.kinds
    known: dict[bytes, int] = {}
    numbers = np.array([known.setdefault(_kind_token(program, place), len(known)) for place in examples], np.int32)
    digest = sha256()
    for part in known:
        digest.update(part)
    digest.update(numbers[codes].tobytes() if examples else b"")
    for value in program.constants.values():
        data = np.asarray(value)
        digest.update(f"{value.__class__.__name__}{data.dtype.str}{data.shape}".encode() + data.tobytes())
    digest.update(repr(_layouts(program, program.inputs)).encode())
    counts = len(program.inputs), len(program.constants), len(program.outputs), len(program.guards)
    ends = [*program.inputs, *program.constants, *program.outputs, *[own.value for own in program.guards]]
    order = _in_order(np.concatenate([np.array(ends, np.int64), program.columns.numbers]))
    digest.update(repr(counts).encode())
    digest.update(order.data)
    return digest.digest()


def _in_order(numbers: np.ndarray) -> np.ndarray:
    """Return numbers by where they first stand: those of values depend on what was traced before."""
    places = np.arange(len(numbers), dtype=np.int32)
    firsts = np.zeros(numbers.max(initial=0) + 1, np.int32)
    firsts[numbers[::-1]] = places[::-1]  # the last one that is written stays
    order: np.ndarray = firsts[numbers]
    return order


def _kind_token(program: Program, place: int) -> bytes:
    """Return a digest of an entry's operation, attributes and layouts."""
    op, operands, attrs, index_arrays, results, _ = program.entries[place]
    if not op.file and op not in _OF_PROGRAMS and op.family not in _FAMILIES:
        raise TypeError(f"{op.name} is an operation of the user")
    words = [(name, _attribute(value)) for name, value in attrs.items()]
    layouts = [_layouts(program, own) for own in (operands, index_arrays, results)]
    return sha256(repr((op.file, op.name, words, layouts)).encode()).digest()


def _layouts(program: Program, numbers: Sequence[int]) -> list[str]:
    return [_layout(own) for own in map(program.layouts.__getitem__, numbers)]


@functools.lru_cache(maxsize=256)
def _layout(layout: Layout) -> str:
    return repr((layout.shape, layout.dtype.str, layout.weak))


def _attribute(value: Any) -> str:
    """Return the text of an attribute; of its programs, digests."""
    if _is_plain(value):
        return repr(value)
    # At call time: it imports what reads and writes programs, and most attributes are plain.
    from tapegrad.program.files.literals import parts_of, shown

    parts = {id(own): _token(own).hex() for own in parts_of(value)}
    return f"shown {shown(value, names=parts)}"


def _is_plain(value: Any) -> bool:
    """Whether the ``repr`` of a value is different from those of all others."""
    if value.__class__ is tuple:
        return all(map(_is_plain, value))
    return value.__class__ in _PLAIN or isinstance(value, np.dtype)

"""LLVM's IR of functions of this library, which the package ships: the front end has made it once for all processes.

It would take a third of the time to a program's first result, in a process that finds nothing in the cache. Each
function has a digest of all that its text depends on, so that nothing stale is used: the front end makes what differs.
`python -m tools.shipped` writes the file.
"""

from __future__ import annotations

import bz2
import json
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

from tapegrad.compiler.assembly import marks_loops
from tapegrad.compiler.fingerprint import (
    FRONT_END,
    Walk,
    attribute_names,
    code_token,
    references,
    sha256,
    sources,
    token_of,
)
from tapegrad.compiler.intrinsics import OfPlatform
from tapegrad.compiler.library import name_of, words_of
from tapegrad.compiler.together import Pieces, Together
from tapegrad.compiler.trees import text_around
from tapegrad.runtime.platform import STARTED
from tapegrad.runtime.structs import layout_token, struct_hints

__all__ = ["BLOCK", "FILE", "NO_VALUE", "digest_of", "name_in_file", "shipped"]

FILE: Final = os.path.join(os.path.dirname(__file__), "shipped.bz2")


def shipped(
    functions: Sequence[types.FunctionType],
    machine: Any,
    begin: Callable[[str, frozenset[str]], object] | None = None,
    tell: Callable[[], object] = lambda: None,
) -> Together | None:
    """Return what `tapegrad.compiler.frontend.lower_together` returns, None if the file has it not.

    Parameters
    ----------
    functions, machine, begin
        As there.
    tell : callable
        Called when the pieces are handed on: LLVM is at work while digests are compared.
    """
    names = [name_in_file(own) for own in functions]
    if not all(names) or (file := _read()) is None or not file["wanted"].keys() >= {*names}:
        return None
    found = [file["wanted"][name] for name in names]
    wanted, calls = [name for name, _ in found], file["calls"]
    called = {*wanted}
    for name in (waiting := [*wanted]):  # which grows
        waiting += [other for other in calls.get(name, ()) if other not in called]
        called.update(calls.get(name, ()))
    texts = {name: text for name, text in file["functions"].items() if name in called}
    both = Together(file["around"], texts, calls, wanted, [])
    pieces = Pieces(texts, calls, lambda: both, begin)
    for name in texts:
        pieces.add(name)
    tell()
    is_stale = [digest for _, digest in found] != [digest_of(own, machine.triple) for own in functions]
    return None if is_stale else both._replace(left=pieces.left)


def name_in_file(function: types.FunctionType) -> str:
    """Return the name of a function of this library, "" if it has none."""
    return name_of(function, words_of(function)) or ""


@cache
def _read() -> Mapping[str, Any] | None:
    """Return what the file has; None, if it is broken, or newer than this process, whose functions may be older."""
    try:
        status = os.stat(FILE)
        with bz2.open(FILE) as file:
            head, distances, *lines = file.read().decode().split("\0")
    except (OSError, EOFError):
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) >= STARTED:
        return None
    found: dict[str, Any] = json.loads(head)
    numbers = map(int, distances.split())
    texts = {name: _text(own, numbers) for name, own in zip(found["functions"], lines, strict=True)}
    return found | {"functions": texts}


#: How lines begin that compute no value.
NO_VALUE: Final = ("store ", "br ", "ret ", "call void ", "unreachable", "}")
BLOCK: Final = ":"  # a line


def _text(lines: str, distances: Iterator[int]) -> str:
    """Return LLVM's IR of a function, given its lines without the numbers of values, and how far back each stands.

    Values and blocks have no names: LLVM numbers them in their order, behind the parameters.
    """
    head, *others = lines.split("\n")
    parameters = head[head.rindex("(") :]
    count, texts = parameters.count(",") + (parameters != "()"), [head, "{"]
    for line in others:
        if line == BLOCK:
            count += 1
            continue
        if "%" in line:
            first, *parts = line.split("%")
            texts.append(first + "".join([f"%{count - next(distances)}{part}" for part in parts]))
        else:
            texts.append(line)
        count += not line.startswith(NO_VALUE)
    return "\n".join([*texts, ""])


# ---- the digest of a function: the same in all versions of Python, whose code differs


def digest_of(function: types.FunctionType, triple: str) -> str:
    """Return a digest of all that a function's LLVM's IR depends on."""
    digest, met = sha256(_digest_of_front_end(marks_loops(triple))), dict.fromkeys([function])
    for own in (waiting := [function]):  # which grows
        token, others = _token(own)
        digest.update(token)
        waiting += [other for other in others if other not in met]
        met.update(dict.fromkeys(others))
    return digest.hexdigest()[:32]


@cache
def _digest_of_front_end(marks: bool) -> bytes:
    return sha256(repr((sources(FRONT_END), marks)).encode()).digest()


@cache
def _token(function: types.FunctionType) -> tuple[bytes, list[types.FunctionType]]:
    """Return a digest of what a function is, without the functions that it refers to, and these."""
    walk, code = _OneFunction({}), function.__code__
    text = text_around(function)
    is_alone = bool(text) and code.co_name != "<lambda>"  # else other functions may have this text
    walk.digest.update(text.encode() if is_alone else code_token(code))
    walk.digest.update(token_of((code.co_name, function.__defaults__)))
    attributes = tuple(sorted(attribute_names(code)))
    for name, _, value in sorted(references(function, {}), key=itemgetter(0)):
        walk.digest.update(name.encode())
        walk.value(value, attributes)
    for name, kind in struct_hints(function).items():
        walk.digest.update(name.encode() + layout_token(kind))
    return walk.digest.digest(), walk.others


class _OneFunction(Walk):
    """A walk that does not enter other functions, and knows by its name what depends on the platform."""

    def __init__(self, bind: Mapping[str, object]) -> None:
        super().__init__(bind)
        self.others: list[types.FunctionType] = []

    def value(self, value: Any, attributes: tuple[str, ...]) -> None:
        if isinstance(value, OfPlatform):
            self.digest.update(value.name.encode())
        else:
            super().value(value, attributes)

    def function(self, function: Any) -> None:
        self.digest.update(b"function")
        self.others.append(function)

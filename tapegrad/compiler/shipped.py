"""LLVM's IR of functions of this library, which the package ships: the front end has made it once for all processes.

It would take a third of the time to a program's first result, in a process that finds nothing in the cache. Each
function has a digest of all that its text depends on, so that nothing stale is used: the front end makes what differs.
`python -m tools.shipped` writes the file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

from tapegrad.compiler.assembly import marks_loops
from tapegrad.compiler.fingerprint import Walk, attribute_names, code_token, references, sha256, sources, token_of
from tapegrad.compiler.intrinsics import OfPlatform
from tapegrad.compiler.library import name_of
from tapegrad.compiler.together import Pieces, Together
from tapegrad.compiler.trees import text_around
from tapegrad.runtime.platform import STARTED
from tapegrad.runtime.structs import layout_token, struct_hints

__all__ = ["FILE", "shipped", "text_of_file"]

FILE: Final = os.path.join(os.path.dirname(__file__), "shipped.gz")
_FRONT_END: Final = (
    "frontend.py", "trees.py", "translation.py", "expressions.py", "mathematics.py", "values.py", "arithmetic.py",
    "variables.py", "builder.py", "intrinsics.py", "elements.py", "together.py",
    os.path.join("..", "runtime", "structs.py"),
)  # fmt: skip


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
    names = [_name(own) for own in functions]
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
    is_stale = [digest for _, digest in found] != [_digest(own, machine.triple) for own in functions]
    return None if is_stale else both._replace(left=pieces.left)


def text_of_file(functions: Sequence[types.FunctionType], both: Together, machine: Any) -> str:
    """Return what the file has for functions, of which the front end has made LLVM's IR.

    The texts stand behind all else, with zeros between: JSON would take as long as to read the file.
    """
    pairs = zip(functions, both.wanted, strict=True)
    head = {
        "wanted": {_name(own): (name, _digest(own, machine.triple)) for own, name in pairs},
        "around": re.sub("^target .*\n", "", both.around, flags=re.MULTILINE),
        "calls": {name: list(called) for name, called in both.calls.items()},
        "functions": list(both.functions),
    }
    return "\0".join([json.dumps(head, indent=0), *both.functions.values()])


def _name(function: types.FunctionType) -> str:
    """Return the name of a function of this library, "" if it has none."""
    return name_of(function, ("int64",) * function.__code__.co_argcount) or ""


@cache
def _read() -> Mapping[str, Any] | None:
    """Return what the file has; None, if it is broken, or newer than this process, whose functions may be older."""
    try:
        status = os.stat(FILE)
        with gzip.open(FILE) as file:
            head, *texts = file.read().decode().split("\0")
    except (OSError, EOFError, zlib.error):
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) >= STARTED:
        return None
    found: dict[str, Any] = json.loads(head)
    return found | {"functions": dict(zip(found["functions"], texts, strict=True))}


# ---- the digest of a function: the same in all versions of Python, whose code differs


def _digest(function: types.FunctionType, triple: str) -> str:
    """Return a digest of all that a function's LLVM's IR depends on."""
    digest, met = sha256(_digest_of_front_end(marks_loops(triple))), dict.fromkeys([function])
    for own in (waiting := [function]):  # which grows
        token, others = _token(own)
        digest.update(token)
        waiting += [other for other in others if other not in met]
        met.update(dict.fromkeys(others))
    return digest.hexdigest()


@cache
def _digest_of_front_end(marks: bool) -> bytes:
    return sha256(repr((sources(_FRONT_END), marks)).encode()).digest()


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

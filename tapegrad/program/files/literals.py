"""Values in the text of programs: how each is written, and read back.

Numbers, strings, tuples, lists and dicts are written as in Python; all else as a call: ``dtype("float64")``.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.parts import Part
from tapegrad.program.batch import Batch
from tapegrad.program.checkpoints import Checkpointed
from tapegrad.program.files.makers import MAKERS, array_text
from tapegrad.program.implicit import Equations
from tapegrad.program.program import Program
from tapegrad.program.returned import Number
from tapegrad.program.scan import Scan
from tapegrad.program.signature import Slot

__all__ = ["Tokens", "literal", "parts_of", "read", "shown"]

_DEEPEST: Final = 40  # levels of containers
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<number>-?(?:inf|nan|[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)(?![0-9a-zA-Z_.]))
    |(?P<name>[A-Za-z%_][A-Za-z0-9_]*)
    |(?P<sign>\.\.\.|==|->|[()\[\]{}<>,:=@]))""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Final[Mapping[str, Any]] = {"None": None, "True": True, "False": False}


# Written -------------------------------------------------------------------------------------------------------------


def shown(value: Any, array: Callable[[np.ndarray], str] = array_text, names: Mapping[int, str] | None = None) -> str:
    """Return how a value is written.

    Parameters
    ----------
    value : object
    array : callable
        Writes an array.
    names : mapping
        Names of programs, by their identity.

    Raises
    ------
    TypeError
        If it is no value of this kind, e.g. a function.
    """
    kind = type(value)
    if value is None or kind in (bool, int):
        return str(value)
    if kind is float:
        return "nan" if value != value else repr(value)
    if kind is complex:
        return f"complex({shown(value.real)}, {shown(value.imag)})"
    if kind is str:
        return json.dumps(value)
    if kind is bytes:
        return f'bytes("{value.hex()}")'
    if value is Ellipsis:
        return "..."
    if kind is Slot:
        return f"<{value.number}>"

    def several(values: Any) -> str:
        return ", ".join([shown(own, array, names) for own in values])

    if kind is tuple:
        return f"({several(value)}{',' * (len(value) == 1)})"
    if kind is list:
        return f"[{several(value)}]"
    if kind in (dict, OrderedDict):
        pairs = [f"{shown(key)}: {shown(own, array, names)}" for key, own in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if kind is Number:
        return f"number({several(value)})"
    if kind is Part:
        return f"Part({several(value)})"
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return f"named({shown(kind.__name__)}, {shown(kind._fields)}, ({several(value)}{',' * (len(value) == 1)}))"
    if isinstance(value, np.dtype):
        return f'dtype("{value.name}")'
    if isinstance(value, np.generic):
        return f"scalar({array_text(np.asarray(value))})"
    if kind is np.ndarray:
        return array(value)
    if kind is Batch:
        if value.dims != (0, 0):
            raise TypeError("a batch along its last dimension")
        ways = [names[id(way)] for way in value.ways] if names else []
        return f"batch(({', '.join(ways)},), {shown(value.mapped)}, {value.flags})"
    if kind is Equations:  # functions of Python: a program from a file has the root, and no derivative of it
        return "None"
    if kind is Scan:
        programs = [names[id(own)] for own in parts_of(value)] if names else []
        options = [value.counts, value.length, value.reverse, value.counted, value.kept]
        examples = tuple([np.array(own, order="C") for own in value.examples])
        more = f", {value.slots}" if value.slots else ""
        return f"scan(({', '.join(programs)},), {several(options)}, {shown(examples, array)}{more})"
    if kind is Checkpointed:
        return f"back({several((value.scan, value.kept, value.back, value.slots))})"
    raise TypeError(
        f"a {kind.__module__}.{kind.__qualname__}{_of_name(value)}, which is no number, string or container"
    )


def parts_of(value: Any) -> Sequence[Program]:
    """Return the programs that are parts of an attribute."""
    if isinstance(value, Scan):
        return [value.body] if value.condition is None else [value.body, value.condition]
    if isinstance(value, Checkpointed):
        return [*parts_of(value.scan), *parts_of(value.back)]
    return value.ways if isinstance(value, Batch) else ()


def _of_name(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return f" {name!r}" if isinstance(name, str) else ""


# Read ----------------------------------------------------------------------------------------------------------------


class Tokens:
    """The parts of a line."""

    def __init__(self, line: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        line = line.rstrip()
        while place < len(line):
            match = _TOKEN.match(line, place)
            if match is None or match.lastgroup is None:
                raise ValueError(f"cannot read {line[place:].strip()[:40]!r}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self._place = 0

    def peek(self) -> str:
        """Return the next part; "" at the end."""
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def next(self, kind: str = "") -> str:
        """Return the next part, of a kind, and go on."""
        if self._place == len(self._tokens):
            raise ValueError("the line ends too early")
        found, text = self._tokens[self._place]
        if kind and found != kind:
            raise ValueError(f"expected a {kind}, but got {text[:40]!r}")
        self._place += 1
        return text

    def take(self, sign: str) -> None:
        """Go on behind a sign."""
        text = self.next()
        if text != sign:
            raise ValueError(f"expected {sign!r}, but got {text[:40]!r}")

    def skip(self, sign: str) -> bool:
        """Go on behind a sign if it comes next; return whether it did."""
        is_next = self.peek() == sign
        self._place += is_next
        return is_next

    def kind(self) -> str:
        """Return the kind of the next part."""
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def end(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise ValueError(f"{self.peek()[:40]!r} is too much")


def read(text: str) -> Any:
    """Return the value of a text.

    Examples
    --------
    >>> read(shown({"a": (1, 2.5, None), "b": [True, "x"]}))
    {'a': (1, 2.5, None), 'b': [True, 'x']}
    """
    tokens = Tokens(text)
    value = literal(tokens)
    tokens.end()
    return value


def literal(
    tokens: Tokens, arrays: Callable[[Any], np.ndarray] | None = None, programs: Mapping[str, Program] | None = None,
    depth: int = 0,
) -> Any:  # fmt: skip
    """Return the value that comes next.

    Parameters
    ----------
    tokens : Tokens
    arrays : callable, optional
        From the number of an array to it, if arrays do not stand in the text.
    programs : mapping, optional
        Those that may be referred to.

    Raises
    ------
    ValueError, TypeError
        If there is none.
    """
    if depth > _DEEPEST:
        raise ValueError(f"containers are nested more than {_DEEPEST} deep")

    def inner() -> Any:
        return literal(tokens, arrays, programs, depth + 1)

    kind, text = tokens.kind(), tokens.next()
    if kind == "string":
        return json.loads(text, strict=False)
    if kind == "number":
        return int(text) if text.lstrip("-").isdigit() else float(text)
    if kind == "name":
        if tokens.skip("("):
            return _made(text, _items(tokens, ")", inner), arrays)
        if text in _WORDS:
            return _WORDS[text]
        if programs is not None and text in programs:
            return programs[text]
        raise ValueError(f"{text[:40]!r} is unknown")
    if text == "...":
        return ...
    if text == "<":
        number = int(tokens.next("number"))
        tokens.take(">")
        return Slot(number)
    if text == "(":
        before = tokens.peek()
        items = _items(tokens, ")", inner)
        if len(items) == 1 and not items.ends_with_comma and before != ")":
            raise ValueError("parentheses around one value: a tuple has a comma")
        return tuple(items)
    if text == "[":
        return list(_items(tokens, "]", inner))
    if text == "{":
        return _dict(tokens, inner)
    raise ValueError(f"expected a value, but got {text[:40]!r}")


class _Items(list[Any]):
    ends_with_comma = False


def _items(tokens: Tokens, closing: str, inner: Callable[[], Any]) -> _Items:
    """Return values up to a closing sign."""
    items = _Items()
    while not tokens.skip(closing):
        if items and not items.ends_with_comma:
            raise ValueError(f"expected a comma, but got {tokens.peek()[:40]!r}")
        items.append(inner())
        items.ends_with_comma = tokens.skip(",")
    return items


def _dict(tokens: Tokens, inner: Callable[[], Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    while not tokens.skip("}"):
        key = inner()
        tokens.take(":")
        if key in found:
            raise ValueError(f"the key {key!r} stands there twice")
        found[key] = inner()
        if not tokens.skip(",") and tokens.peek() != "}":
            raise ValueError(f"expected a comma, but got {tokens.peek()[:40]!r}")
    return found


def _made(name: str, args: list[Any], arrays: Callable[[Any], np.ndarray] | None) -> Any:
    """Return what a call stands for."""
    make = MAKERS.get(name)
    if name == "array" and arrays is not None:
        make = arrays
    if make is None:
        raise ValueError(f"{name[:40]!r} is unknown")
    return make(*args)

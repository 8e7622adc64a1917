"""Values of compiled functions: numbers, addresses, tuples, and what is known beforehand.

A value has a kind and LLVM's values, its parts: one for a number, two for a complex one, those of all elements for a
tuple, none for what is known when a function is compiled, such as a function or the name of a dtype. Kinds are

- the name of a dtype, for a number,
- a struct (`tapegrad.runtime.structs`), for its address, a word,
- `Pointer`, for the address of elements of a dtype,
- a tuple of kinds,
- `Known`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from tapegrad.runtime.named_tuples import NamedTuple

__all__ = [
    "Known", "NotCompilableError", "Pointer", "Value", "common", "constant", "count_of", "dtype_of", "elements_of",
    "is_complex", "is_float", "is_word", "known", "known_as", "number_of", "packed", "part_of", "parts", "pointer_to",
    "promoted", "stored_type", "type_of", "types_of", "word",
]  # fmt: skip

Kind = Any


class NotCompilableError(Exception):
    """A function uses what its translation to LLVM does not know."""


class Pointer(NamedTuple):
    """The kind of an address of elements."""

    dtype: str


class Known:
    """The kind of a value that is known: a function, a namespace, a type, a string, None."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and (self.value is other.value or self.value == other.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, str) else id(self.value)


class Value(NamedTuple):
    """A kind, and LLVM's values."""

    kind: Kind
    parts: tuple[Any, ...] = ()

    @property
    def one(self) -> Any:
        """LLVM's value of a number that is not complex, of a word or of a pointer."""
        (part,) = self.parts
        return part


# --- kinds ------------------------------------------------------------------------------------------------------------


@cache
def _ir() -> Any:
    from llvmlite import ir

    return ir


def is_word(kind: Kind) -> bool:
    """Whether a value is an integer of 64 bits, or the address of a struct."""
    return kind == "int64" or isinstance(kind, type)


@cache
def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype(kind)


def is_complex(kind: Kind) -> bool:
    """Whether a value is a complex number."""
    return isinstance(kind, str) and kind.startswith("complex")


def is_float(kind: Kind) -> bool:
    """Whether a value is a real number with a fraction."""
    return kind in ("float32", "float64")


def part_of(kind: str) -> str:
    """Return the dtype of the real and of the imaginary part of a complex dtype."""
    return "float64" if kind == "complex128" else "float32"


@cache
def type_of(kind: Kind) -> Any:
    """Return LLVM's type of a value that has one part."""
    ir = _ir()
    if isinstance(kind, type):
        return ir.IntType(64)
    if isinstance(kind, Pointer):
        return stored_type(part_of(kind.dtype) if is_complex(kind.dtype) else kind.dtype).as_pointer()
    if kind == "bool":
        return ir.IntType(1)
    return stored_type(kind)


@cache
def stored_type(dtype: str) -> Any:
    """Return LLVM's type of a real number in memory."""
    ir = _ir()
    if is_float(dtype):
        return ir.FloatType() if dtype == "float32" else ir.DoubleType()
    if _dtype(dtype).kind not in "biu":
        raise NotCompilableError(f"numbers of {dtype}")
    return ir.IntType(8 * _dtype(dtype).itemsize)


@cache
def pointer_to(kind: Any) -> Any:
    """Return LLVM's type of the address of a type."""
    return kind.as_pointer()


def types_of(kind: Kind) -> list[Any]:
    """Return LLVM's types of all parts of a value."""
    if isinstance(kind, Known):
        return []
    if type(kind) is tuple:
        return [own for each in kind for own in types_of(each)]
    return [type_of(part_of(kind))] * 2 if is_complex(kind) else [type_of(kind)]


def count_of(kind: Kind) -> int:
    """Return how many parts a value of a kind has."""
    return len(types_of(kind))


def common(kinds: Any) -> Kind:
    """Return the kind that holds values of all of these kinds; of words, as addresses of structs, that of the first."""
    first, *others = kinds
    for other in others:
        if first == other or (is_word(first) and is_word(other)):
            continue
        first = "int64" if isinstance(first, type) else first
        other = "int64" if isinstance(other, type) else other
        if isinstance(first, str) and isinstance(other, str):
            first = promoted(first, other)
        elif type(first) is type(other) is tuple and len(first) == len(other):
            first = tuple(common(pair) for pair in zip(first, other, strict=True))
        else:
            raise NotCompilableError(f"a value of two kinds, {first} and {other}")
    return first


@cache
def promoted(one: str, other: str) -> str:
    """Return the dtype that holds numbers of two."""
    return str(np.promote_types(one, other))


# --- values -----------------------------------------------------------------------------------------------------------


def word(number: int) -> Value:
    """Return an integer that is known."""
    return _word(number)


@lru_cache(maxsize=1024, typed=True)
def _word(number: int) -> Value:
    return Value("int64", (type_of("int64")(number),))


def known(value: Any) -> Value:
    """Return a Python object as a value: numbers as constants."""
    if type(value) is bool or isinstance(value, np.bool_):
        return Value("bool", (type_of("bool")(int(value)),))
    if type(value) is int:
        if -(1 << 63) <= value < 1 << 63:
            return word(value)
        if 0 < value < 1 << 64:
            return Value("uint64", (type_of("int64")(value - (1 << 64)),))
        if abs(value) >= 1 << 1000:
            raise NotCompilableError(f"{value} is no number of 64 bits")
        return known(float(value))  # beyond 64 bits only floats follow Python
    if isinstance(value, (float, complex, np.number)):
        kind = str(np.dtype(type(value)))
        if is_complex(kind):
            part = type_of(part_of(kind))
            return Value(kind, (part(float(value.real)), part(float(value.imag))))
        return Value(kind, (type_of(kind)(value.item() if isinstance(value, np.number) else value),))
    if isinstance(value, tuple):
        own = [known(element) for element in value]
        return packed(own)
    return Value(Known(value))


def packed(values: Any) -> Value:
    """Return a tuple of values."""
    return Value(tuple(own.kind for own in values), tuple(part for own in values for part in own.parts))


def elements_of(value: Value) -> list[Value]:
    """Return the values in a tuple."""
    if type(value.kind) is not tuple:
        raise NotCompilableError(f"{value.kind} is no tuple")
    found, first = [], 0
    for kind in value.kind:
        last = first + count_of(kind)
        found.append(Value(kind, value.parts[first:last]))
        first = last
    return found


def number_of(part: Any) -> int | None:
    """Return the integer that one of LLVM's values is, if it is known."""
    number = getattr(part, "constant", None)
    return int(number) if isinstance(number, int) else None


def constant(value: Value) -> int | None:
    """Return an integer or a truth value that is known; None for any other value."""
    if len(value.parts) != 1 or not (is_word(value.kind) or value.kind == "bool"):
        return None
    return number_of(value.parts[0])


def dtype_of(value: Value) -> str:
    """Return a dtype that is known by its name."""
    if not isinstance(value.kind, Known) or not isinstance(value.kind.value, str):
        raise NotCompilableError("a dtype must be a constant string")
    return value.kind.value


def parts(value: Value) -> tuple[Value, Value]:
    """Return the real and the imaginary part of a number."""
    if not is_complex(value.kind):
        return value, known_as(0, value.kind)
    kind = part_of(value.kind)
    return Value(kind, value.parts[:1]), Value(kind, value.parts[1:])


def known_as(number: complex, kind: str) -> Value:
    """Return a number of a kind that is not complex."""
    return Value(kind, (type_of(kind)(float(number.real) if is_float(kind) else int(number.real)),))

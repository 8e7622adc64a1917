"""Structs: names and types for the words at an address, which compiled code reads and writes.

A struct is an integer, its address, and has fields::

    class Entry(Struct):
        plan: PlanFields
        operands: Array[int] = embedded(3)
        flags: int


    entry.flags |= CONSUMED

`tapegrad.compiler.expressions` lowers each access to a load or a store. The offset of a field follows from the order of
the fields. The interpreter runs the same expressions in Python: they go through `tapegrad.runtime.memory`, which checks
every access.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from tapegrad.runtime import memory

__all__ = [
    "WORD",
    "Array",
    "Field",
    "Struct",
    "Table",
    "embedded",
    "int32",
    "layout_token",
    "sizeof",
    "slot",
    "struct_hints",
]

WORD: Final = 8  # bytes of a plain field


class Field:
    """A field of a struct: its offset and its type.

    Attributes
    ----------
    offset, size : int
        Bytes from the address of the struct; bytes of one value, 8 or 4.
    is_embedded : bool
        The field is memory inside the struct. Its value is the address of that memory.
    """

    __slots__ = ("is_embedded", "name", "offset", "owner", "size")

    def __init__(self, owner: type[Struct], name: str, offset: int, size: int, is_embedded: bool) -> None:
        self.owner, self.name, self.offset, self.size, self.is_embedded = owner, name, offset, size, is_embedded

    @property
    def type(self) -> type[int]:
        """What the field holds: int, or a struct that it points to."""
        return _types(self.owner)[self.name]

    def __get__(self, struct: Struct | None, owner: object = None) -> Any:
        if struct is None:
            return self
        value = int(struct) + self.offset
        if not self.is_embedded:
            value = memory.read(struct, self.offset, self.size)
        kind = self.type
        return value if kind is int else kind(value)

    def __set__(self, struct: Struct, value: int) -> None:
        if self.is_embedded:
            raise AttributeError(
                f"{self.owner.__name__}.{self.name} is memory inside the struct; write to its elements"
            )
        memory.write(struct, self.offset, self.size, value)


class _Form:
    """The form of a field that is no plain word: the default value in the class body says it."""

    __slots__ = ("count", "size", "slot")

    def __init__(self, size: int, count: int | None, slot: str = "") -> None:
        self.size, self.count, self.slot = size, count, slot


def embedded(words: int = 0) -> Any:
    """Declare a field that is memory inside the struct, of this many words; 0: all words that follow."""
    return _Form(WORD, words)


def int32() -> Any:
    """Declare a field that is a C int of 32 bits."""
    return _Form(4, None)


def slot(name: str) -> Any:
    """Declare a field that is a slot, of this name, of the class that the struct describes."""
    return _Form(WORD, None, name)


class Struct(int):
    """An address whose fields have names; subclasses list them with their types.

    Parameters of a subclass
    ------------------------
    of : type, optional
        A class with ``__slots__``, whose fields made by `slot` stand where CPython put them.
    """

    _size: ClassVar[int] = 0  # bytes of all fields

    def __init_subclass__(cls, of: type | None = None) -> None:
        super().__init_subclass__()
        offset = cls._size
        for name, annotation in inspect.get_annotations(cls).items():
            if str(annotation).startswith("ClassVar"):
                continue
            form = cls.__dict__.get(name)
            form = form if isinstance(form, _Form) else _Form(WORD, None)
            if form.slot:
                assert of is not None
                start = _offset_of_slot(of, form.slot)
            else:
                start = -(-offset // form.size) * form.size
                offset = start + form.size * (1 if form.count is None else form.count)
            setattr(cls, name, Field(cls, name, start, form.size, form.count is not None))
        cls._size = -(-offset // WORD) * WORD

    @classmethod
    def fields(cls) -> Sequence[Field]:
        """Return the fields, those of base classes first."""
        key = "fields", cls
        if key not in _cache:
            bases = [base for base in reversed(cls.__mro__) if issubclass(base, Struct)]
            items = [base.__dict__.get(name) for base in bases for name in inspect.get_annotations(base)]
            _cache[key] = [item for item in items if isinstance(item, Field)]
        known: Sequence[Field] = _cache[key]
        return known

    @classmethod
    def field(cls, name: str) -> Field | None:
        """Return the field of this name, None if there is none."""
        field = getattr(cls, name, None)
        return field if isinstance(field, Field) else None

    @classmethod
    def word(cls, name: str) -> int:
        """Return the number of the word in which a field begins, for Python's views of the same memory."""
        field = cls.field(name)
        assert field is not None, name
        return field.offset // WORD


def sizeof(kind: type[Struct]) -> int:
    """Return the size of a struct in bytes."""
    return kind._size


T = TypeVar("T", bound=int)


class Array(Struct, Generic[T]):
    """The address of consecutive words. Each word is a T: an integer, or the address of a struct."""

    element: ClassVar[type[int]] = int

    def __getitem__(self, index: int) -> T:
        value = memory.read(self, WORD * index, WORD)
        return cast(T, value if self.element is int else self.element(value))

    def __setitem__(self, index: int, value: T) -> None:
        memory.write(self, WORD * index, WORD, value)

    def unchecked(self, index: int) -> int:
        """Return a word of memory that is not watched, 0 if no memory is mapped there; for Python only."""
        return int.from_bytes(memory.peek(self + WORD * index), sys.byteorder)

    def at(self, index: int) -> Array[T]:
        """Return the address of an element."""
        return self.__class__(int(self) + WORD * index)


class Table(Struct, Generic[T]):
    """The address of consecutive structs. An element is the struct itself, not an address that is stored there."""

    element: ClassVar[type[Struct]] = Struct

    def __getitem__(self, index: int) -> T:
        return cast(T, self.element(int(self) + sizeof(self.element) * index))


if not TYPE_CHECKING:
    # typing would store the type of the elements in the alias, where instances do not find it.
    Array.__class_getitem__ = classmethod(lambda cls, element: _of(cls, element))
    Table.__class_getitem__ = classmethod(lambda cls, element: _of(cls, element))


_cache: dict[Any, Any] = {}  # fields, their types, types of arrays and tables, and tokens


def _of(kind: type[Any], element: type[int]) -> Any:
    key = kind, element
    if key not in _cache:
        _cache[key] = type(f"{kind.__name__}[{element.__name__}]", (kind,), {"element": element})
    return _cache[key]


_ITEM: Final = re.compile(r"(\w+)\[(\w+)\]")


def _types(owner: type[Struct]) -> Mapping[str, type[int]]:
    """Return the types of a class's fields. They are resolved at the first use, as structs refer to each other."""
    kinds: Mapping[str, type[int]] | None = _cache.get(owner)
    if kinds is None:
        space = vars(sys.modules[owner.__module__])
        kinds = {name: _resolve(text, space) for name, text in inspect.get_annotations(owner).items()}
        _cache[owner] = kinds
    return kinds


def _resolve(annotation: Any, space: Mapping[str, Any]) -> type[int]:
    """Return the struct that an annotation names; int for any other."""
    if isinstance(annotation, str):
        if annotation.isidentifier():
            annotation = space.get(annotation)
        elif (item := _ITEM.fullmatch(annotation)) and space.get(item[1]) in (Array, Table) and item[2] in space:
            annotation = space[item[1]][space[item[2]]]  # as `eval`, which takes 30 us
        else:
            try:
                annotation = eval(annotation, dict(space))
            except NameError:  # imported for type checkers only, so it is no struct
                return int
    return annotation if isinstance(annotation, type) and issubclass(annotation, Struct) else int


@cache
def struct_hints(function: FunctionType) -> Mapping[str, type[int]]:
    """Return the structs among the types of a function's parameters, and of its result under "return"."""
    kinds = {name: _resolve(text, function.__globals__) for name, text in function.__annotations__.items()}
    return {name: kind for name, kind in kinds.items() if kind is not int}


def _offset_of_slot(kind: type, name: str) -> int:
    """Return the offset of a slot in an instance, in bytes, as CPython's PyMemberDef has it."""
    word = ctypes.c_int64.from_address
    definition = word(id(kind.__dict__[name]) + 40).value
    return word(definition + 16).value


def layout_token(kind: type[int]) -> bytes:
    """Return a token of all fields that can be reached from a struct: it changes whenever machine code would."""
    key = "token", kind
    if key in _cache:
        return bytes(_cache[key])
    seen, parts = {kind: 0}, list[Any]()
    waiting = [kind]
    for own in waiting:  # which grows
        text, types = _described(own)
        parts.append(text)
        for other in types:
            if other not in seen:
                seen[other] = len(waiting)
                waiting.append(other)
            parts.append(seen[other])
    _cache[key] = repr(parts).encode()
    return bytes(_cache[key])


def _described(kind: type[int]) -> tuple[str, Sequence[type[int]]]:
    """Return all of a struct but the types that stand in it, as text, and these."""
    if not issubclass(kind, Struct):
        return "", ()
    key = "described", kind
    if key not in _cache:
        _cache[key] = _described_anew(kind)
    found: tuple[str, Sequence[type[int]]] = _cache[key]
    return found


def _described_anew(kind: type[Struct]) -> tuple[str, Sequence[type[int]]]:
    element = getattr(kind, "element", None)
    fields = kind.fields()
    text = repr(
        (kind._size, issubclass(kind, Array), issubclass(kind, Table), element is None,
         [(own.name, own.offset, own.size, own.is_embedded) for own in fields])
    )  # fmt: skip
    return text, [*([] if element is None else [element]), *[own.type for own in fields]]

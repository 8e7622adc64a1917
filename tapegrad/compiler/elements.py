"""What a kernel does with elements of a dtype: intrinsics to read and write them, importable without llvmlite.

`as_pointer` gives an address a dtype, once and outside the loop; `load` and `store` then index it in elements, and
LLVM vectorises the loop. `load_at` and `store_at` take a byte offset, for arrays with strides. dtypes are constants:
"float32", "complex128", "int64", "bool" (one byte), ...
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import cast
from tapegrad.compiler.intrinsics import intrinsic
from tapegrad.compiler.values import Pointer, Value

__all__ = ["as_pointer", "load", "load_at", "pointer_at", "read", "store", "store_at", "stream_at", "write"]

LINE = 64  # bytes of a line of the cache


def read(builder: Any, dtype: str, pointer: Any) -> Value:
    """Emit the load of one value of a dtype."""
    # align=1: an array may sit at any address; x86 and ARM pay nothing for it, and vectors still form.
    if values.is_complex(dtype):
        # Two loads: LLVM vectorises them as an interleaved group, a load of a struct it does not.
        return Value(dtype, tuple(builder.load(at, align=1, typ=kind) for at, kind in _pair(builder, dtype, pointer)))
    stored = values.stored_type(dtype)
    number = builder.load(pointer, align=1, typ=stored)
    return Value(dtype, (builder.trunc(number, values.type_of(dtype)) if dtype == "bool" else number,))


def write(builder: Any, dtype: str, pointer: Any, value: Value) -> None:
    """Emit the store of one value as a dtype."""
    value = cast(builder, value, dtype)
    if values.is_complex(dtype):
        for (at, _), part in zip(_pair(builder, dtype, pointer), value.parts, strict=True):
            builder.store(part, at, align=1)
    else:
        number = builder.zext(value.one, values.stored_type(dtype)) if dtype == "bool" else value.one
        builder.store(number, pointer, align=1)


def _pair(builder: Any, dtype: str, pointer: Any) -> list[tuple[Any, Any]]:
    """Return the places of the real and the imaginary part, with their type."""
    kind = values.type_of(values.part_of(dtype))
    index = values.type_of("int32")
    return [(builder.gep(pointer, [index(place)], inbounds=True, source_etype=kind), kind) for place in range(2)]


def _element(builder: Any, pointer: Value, index: Value) -> Any:
    """Emit the place of an element. Only inbounds can LLVM rule out that an address wraps around, and vectorise."""
    dtype = pointer.kind.dtype
    at = cast(builder, index, "int64").one
    if values.is_complex(dtype):
        at = builder.mul(at, at.type(2))
        return builder.gep(pointer.one, [at], inbounds=True, source_etype=values.type_of(values.part_of(dtype)))
    return builder.gep(pointer.one, [at], inbounds=True, source_etype=values.stored_type(dtype))


def pointer_at(builder: Any, dtype: str, address: Value, offset: Value) -> Any:
    """Emit the pointer to a value that lies some bytes after an address."""
    byte = values.type_of("int8")
    start, distance = (cast(builder, own, "int64").one for own in (address, offset))
    at = builder.gep(builder.inttoptr(start, byte.as_pointer()), [distance], inbounds=True, source_etype=byte)
    return builder.bitcast(at, values.type_of(Pointer(dtype)))


@intrinsic
def as_pointer(builder: Any, address: Value, dtype: Value) -> Value:
    """Return ``address`` as a pointer to elements of the constant ``dtype``; once, outside the loop."""
    kind = Pointer(values.dtype_of(dtype))
    return Value(kind, (builder.inttoptr(cast(builder, address, "int64").one, values.type_of(kind)),))


@intrinsic
def load(builder: Any, pointer: Value, index: Value) -> Value:
    """Return element ``index`` of a pointer from `as_pointer`."""
    return read(builder, pointer.kind.dtype, _element(builder, pointer, index))


@intrinsic
def store(builder: Any, pointer: Value, index: Value, value: Value) -> None:
    """Write ``value`` as element ``index``, cast to the pointer's dtype (complex to real: the real part)."""
    write(builder, pointer.kind.dtype, _element(builder, pointer, index), value)


@intrinsic
def load_at(builder: Any, address: Value, offset: Value, dtype: Value) -> Value:
    """Return the ``dtype`` value that lies ``offset`` bytes after the integer ``address``."""
    name = values.dtype_of(dtype)
    return read(builder, name, pointer_at(builder, name, address, offset))


@intrinsic
def store_at(builder: Any, address: Value, offset: Value, value: Value, dtype: Value) -> None:
    """Write ``value`` as ``dtype``, ``offset`` bytes after the integer ``address``."""
    name = values.dtype_of(dtype)
    write(builder, name, pointer_at(builder, name, address, offset), value)


@intrinsic
def stream_at(builder: Any, address: Value, offset: Value, value: Value, dtype: Value) -> None:
    """Write ``value`` as a real ``dtype`` past the caches; in a loop over neighbours from the begin of a line on.

    LLVM makes vectors of such stores only where their alignment is that of vectors. A line's is said of each element;
    of vectors it is true.
    """
    name = values.dtype_of(dtype)
    at = pointer_at(builder, name, address, offset)
    new = builder.store(cast(builder, value, name).one, at, align=LINE)
    new.set_metadata("nontemporal", builder.module.add_metadata([values.type_of("int32")(1)]))

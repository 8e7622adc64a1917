"""What a kernel does with elements of a dtype: intrinsics to read, write and divide them, importable without numba.

`as_pointer` gives an address a dtype, once and outside the loop; `load` and `store` then index it in elements, and
LLVM vectorises the loop. `load_at` and `store_at` take a byte offset, for arrays with strides. dtypes are constants:
"float32", "complex128", "int64", "bool" (one byte), ... The bodies import numba, and only `jit.py` runs them.
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.intrinsics import intrinsic

__all__ = ["as_pointer", "divide", "load", "load_at", "store", "store_at", "stream_at"]

LINE = 64  # bytes of a line of the cache


def _dtype(literal: Any) -> Any:
    from numba.core import errors

    name = getattr(literal, "literal_value", None)
    if not isinstance(name, str):
        raise errors.TypingError("a dtype must be a constant string (a literal, a global or a closure cell)")
    return numba_dtype(name)


def numba_dtype(name: str) -> Any:
    """Return numba's type of a dtype's name."""
    from numba.core import types as nb

    return nb.boolean if name == "bool" else getattr(nb, name)


def read(context: Any, builder: Any, dtype: Any, pointer: Any) -> Any:
    """Emit the load of one value of a dtype."""
    from llvmlite import ir
    from numba.core import types as nb

    # align=1: an array may sit at any address; x86 and ARM pay nothing for it, and vectors still form.
    if not isinstance(dtype, nb.Complex):
        raw = builder.load(pointer, align=1, typ=context.get_data_type(dtype))
        return context.data_model_manager[dtype].from_data(builder, raw)
    # Two scalar loads: LLVM vectorises them as an interleaved group, a load of the struct it does not.
    part = context.get_value_type(dtype.underlying_float)
    pair = builder.bitcast(pointer, part.as_pointer())
    value = context.make_complex(builder, dtype)
    value.real = builder.load(pair, align=1, typ=part)
    value.imag = builder.load(
        builder.gep(pair, [ir.Constant(ir.IntType(32), 1)], inbounds=True, source_etype=part),
        align=1,
        typ=part,
    )
    return value._getvalue()


def _cast(context: Any, builder: Any, value: Any, source: Any, dtype: Any) -> Any:
    """Return a number as one of another dtype; of a complex number the real part, for a real dtype."""
    from numba.core import types as nb

    if isinstance(source, nb.Complex) and not isinstance(dtype, nb.Complex):
        value = context.make_complex(builder, source, value=value).real
        source = source.underlying_float
    return context.cast(builder, value, source, dtype)


def _write(context: Any, builder: Any, dtype: Any, pointer: Any, source: Any, value: Any) -> None:
    from llvmlite import ir
    from numba.core import types as nb

    value = _cast(context, builder, value, source, dtype)
    if not isinstance(dtype, nb.Complex):
        builder.store(context.data_model_manager[dtype].as_data(builder, value), pointer, align=1)
        return
    part = context.get_value_type(dtype.underlying_float)
    pair = builder.bitcast(pointer, part.as_pointer())
    number = context.make_complex(builder, dtype, value=value)
    builder.store(number.real, pair, align=1)
    second = builder.gep(pair, [ir.Constant(ir.IntType(32), 1)], inbounds=True, source_etype=part)
    builder.store(number.imag, second, align=1)


def _element(context: Any, builder: Any, dtype: Any, pointer: Any, index: Any) -> Any:
    # inbounds: without it LLVM cannot rule out that the address wraps around, and does not vectorise.
    return builder.gep(pointer, [index], inbounds=True, source_etype=context.get_data_type(dtype))


def byte_address(context: Any, builder: Any, dtype: Any, address: Any, offset: Any) -> Any:
    """Emit the pointer to a value that lies some bytes after an address."""
    from llvmlite import ir

    byte = ir.IntType(8)
    at = builder.gep(builder.inttoptr(address, byte.as_pointer()), [offset], inbounds=True, source_etype=byte)
    return builder.bitcast(at, context.get_data_type(dtype).as_pointer())


@intrinsic
def as_pointer(typingctx: Any, address: Any, dtype: Any) -> Any:
    """Return ``address`` as a pointer to elements of the constant ``dtype``; once, outside the loop."""
    from numba.core import types as nb

    pointer = nb.CPointer(_dtype(dtype))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(nb.int64, dtype), codegen


@intrinsic
def load(typingctx: Any, pointer: Any, index: Any) -> Any:
    """Return element ``index`` of a pointer from `as_pointer`."""
    from numba.core import types as nb

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _element(context, builder, pointer.dtype, args[0], args[1])
        return read(context, builder, pointer.dtype, at)

    return pointer.dtype(pointer, nb.int64), codegen


@intrinsic
def store(typingctx: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Write ``value`` as element ``index``, cast to the pointer's dtype (complex to real: the real part)."""
    from numba.core import types as nb

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _element(context, builder, pointer.dtype, args[0], args[1])
        _write(context, builder, pointer.dtype, at, signature.args[2], args[2])
        return context.get_dummy_value()

    return nb.void(pointer, nb.int64, nb.unliteral(value)), codegen


@intrinsic
def load_at(typingctx: Any, address: Any, offset: Any, dtype: Any) -> Any:
    """Return the ``dtype`` value that lies ``offset`` bytes after the integer ``address``."""
    from numba.core import types as nb

    element = _dtype(dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return read(context, builder, element, byte_address(context, builder, element, args[0], args[1]))

    return element(nb.int64, nb.int64, dtype), codegen


@intrinsic
def store_at(typingctx: Any, address: Any, offset: Any, value: Any, dtype: Any) -> Any:
    """Write ``value`` as ``dtype``, ``offset`` bytes after the integer ``address``."""
    from numba.core import types as nb

    element = _dtype(dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = byte_address(context, builder, element, args[0], args[1])
        _write(context, builder, element, at, signature.args[2], args[2])
        return context.get_dummy_value()

    return nb.void(nb.int64, nb.int64, nb.unliteral(value), dtype), codegen


@intrinsic
def stream_at(typingctx: Any, address: Any, offset: Any, value: Any, dtype: Any) -> Any:
    """Write ``value`` as a real ``dtype`` past the caches; in a loop over neighbours from the begin of a line on.

    LLVM makes vectors of such stores only where their alignment is that of vectors. A line's is said of each element;
    of vectors it is true.
    """
    from llvmlite import ir
    from numba.core import types as nb

    element = _dtype(dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = byte_address(context, builder, element, args[0], args[1])
        new = builder.store(_cast(context, builder, args[2], signature.args[2], element), at, align=LINE)
        new.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return nb.void(nb.int64, nb.int64, nb.unliteral(value), dtype), codegen


@intrinsic
def divide(typingctx: Any, a: Any, b: Any) -> Any:
    """Return ``a / b`` as NumPy does: numba's complex division raises at zero, so jit puts this for ``/``.

    Smith's method (R. L. Smith, Algorithm 116, 1962), without branches so that loops vectorise; zero divisors
    as in NumPy's loops: both parts of ``a`` are divided by +0.
    """
    import operator

    from llvmlite import ir
    from numba.core import types as nb

    a, b = nb.unliteral(a), nb.unliteral(b)
    plain = typingctx.resolve_function_type(operator.truediv, (a, b), {})
    if plain is None:
        return None
    kind = plain.return_type

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not isinstance(kind, nb.Complex):
            values = [context.cast(builder, x, t, want) for x, t, want in zip(args, (a, b), plain.args, strict=True)]
            return context.get_function(operator.truediv, plain)(builder, values)
        top, under = (
            context.make_complex(builder, kind, value=context.cast(builder, x, t, kind))
            for x, t in zip(args, (a, b), strict=True)
        )
        part = under.real.type
        zero, one = ir.Constant(part, 0.0), ir.Constant(part, 1.0)
        fabs = builder.module.declare_intrinsic("llvm.fabs", [part])
        real_leads = builder.fcmp_ordered(">=", builder.call(fabs, [under.real]), builder.call(fabs, [under.imag]))

        def lead(x: Any, y: Any) -> Any:
            return builder.select(real_leads, x, y)

        p, q = lead(under.real, under.imag), lead(under.imag, under.real)
        x, y = lead(top.real, top.imag), lead(top.imag, top.real)
        by_zero = builder.and_(builder.fcmp_ordered("==", p, zero), builder.fcmp_ordered("==", q, zero))
        ratio = builder.fdiv(q, builder.select(by_zero, one, p))
        # For zero divisors the scale is 1 / +0, whatever their signs, and the parts are not mixed (inf * 0).
        scale = builder.fdiv(one, builder.select(by_zero, zero, builder.fadd(p, builder.fmul(q, ratio))))
        real = builder.select(by_zero, x, builder.fadd(x, builder.fmul(y, ratio)))
        imag = builder.select(by_zero, y, builder.fsub(y, builder.fmul(x, ratio)))
        out = context.make_complex(builder, kind)
        out.real = builder.fmul(real, scale)
        out.imag = builder.fmul(lead(imag, builder.fneg(imag)), scale)
        return out._getvalue()

    return kind(a, b), codegen

"""What a kernel may do with memory: numba intrinsics over integer addresses, importable without numba.

Addresses are int64. `as_pointer` gives one a dtype, once and outside the loop; `load` and `store` then index
it in elements, and LLVM vectorises the loop. `load_at` and `store_at` take a byte offset, for arrays with
strides. dtypes are constants: "float32", "complex128", "int64", "bool" (one byte), ... The bodies import
numba, and only `tapegrad.jit` runs them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = [
    "VECTORISABLE",
    "Intrinsic",
    "Words",
    "as_pointer",
    "call",
    "call_void",
    "clear_float_errors",
    "clz",
    "divide",
    "external",
    "float_errors",
    "intrinsic",
    "load",
    "load_at",
    "memcpy",
    "memset",
    "raise_float_errors",
    "stack",
    "store",
    "store_at",
    "words",
]


#: How names of functions in object code begin that LLVM replaces by others, of vectors (vmath/functions.py).
VECTORISABLE = "tapegrad_v_"


class Intrinsic:
    """A definition in the form of `numba.extending.intrinsic`, plain Python until something is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        """Refuse: there is no Python version."""
        raise TypeError(f"{self.__name__}() exists only inside compiled kernels; it was called from Python")

    def compiled(self) -> Any:
        """Return numba's intrinsic, made once."""
        if self._compiled is None:
            from numba.extending import intrinsic as numba_intrinsic

            # prefer_literal: dtypes and sizes are wanted as constants, never as runtime values.
            self._compiled = numba_intrinsic(prefer_literal=True)(self.function)
        return self._compiled


def intrinsic(function: Callable[..., Any]) -> Intrinsic:
    """Mark ``def name(typingctx, ...): return signature, codegen`` as an intrinsic of kernels."""
    return Intrinsic(function)


class Words(Intrinsic):
    """An intrinsic over words (int64) alone, from which LLVM it emits: numba and `tapegrad.words` both take it."""

    def __init__(self, function: Callable[..., Any], constants: bool = False) -> None:
        super().__init__(function)
        self.constants = constants

    def compiled(self) -> Any:
        """Return numba's intrinsic, made once."""
        if self._compiled is None:
            from numba.extending import intrinsic as numba_intrinsic

            self._compiled = numba_intrinsic(prefer_literal=True)(_definition(self.function, self.constants))
        return self._compiled


def words(function: Callable[..., Any]) -> Words:
    """Mark ``def name(builder, ...)``, which emits LLVM over words and returns a word or None, as an intrinsic."""
    return Words(function)


def _definition(emit: Callable[..., Any], constants: bool) -> Callable[..., Any]:
    """Return numba's definition of an intrinsic over words.

    Its signature keeps constants as such only if they are all that it takes: numba makes code for each anew.
    """
    signature = inspect.signature(emit)
    first, *others = signature.parameters.values()
    packed = bool(others) and others[-1].kind is inspect.Parameter.VAR_POSITIONAL  # numba makes one tuple of *args

    def definition(typingctx: Any, *types: Any) -> Any:
        from llvmlite import ir
        from numba.core import types as nb

        kinds = types if constants else [nb.int64] * len(types)
        if packed:
            alone = len(others) - 1
            kinds = [*kinds[:alone], nb.StarArgTuple(kinds[alone:])]

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = list(values)
            if packed:
                *given, rest = values
                given += [builder.extract_value(rest, place) for place in range(len(types) - len(given))]
            word = ir.IntType(64)
            if constants:
                given = [word(kind.literal_value) for kind in types]
            out = emit(builder, *given)
            return word(0) if out is None else out

        return nb.int64(*kinds), codegen

    definition.__name__ = emit.__name__
    parameters = [first.replace(name="typingctx"), *others]
    definition.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return definition


# ---- memory


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


def _write(context: Any, builder: Any, dtype: Any, pointer: Any, source: Any, value: Any) -> None:
    from llvmlite import ir
    from numba.core import types as nb

    if isinstance(source, nb.Complex) and not isinstance(dtype, nb.Complex):
        value = context.make_complex(builder, source, value=value).real
        source = source.underlying_float
    value = context.cast(builder, value, source, dtype)
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


@words
def get(builder: Any, address: Any, index: Any) -> Any:
    """Return word ``index`` (int64) behind ``address``."""
    return builder.load(_word(builder, address, index), typ=index.type)


@words
def put(builder: Any, address: Any, index: Any, value: Any) -> None:
    """Write word ``index`` (int64) behind ``address``."""
    builder.store(value, _word(builder, address, index))


def _word(builder: Any, address: Any, index: Any) -> Any:
    word = index.type
    return builder.gep(builder.inttoptr(address, word.as_pointer()), [index], inbounds=True, source_etype=word)


def _stack(builder: Any, nbytes: Any) -> Any:
    """Return the address of ``nbytes`` (constant) raw bytes, aligned to 64, gone when the caller returns."""
    from llvmlite import ir

    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.constant))
    memory.align = 64
    return builder.ptrtoint(memory, nbytes.type)


stack = Words(_stack, constants=True)


@words
def memset(builder: Any, address: Any, nbytes: Any) -> None:
    """Fill ``nbytes`` bytes at ``address`` with zeros."""
    from llvmlite import ir

    byte = ir.IntType(8)
    function = builder.module.declare_intrinsic("llvm.memset", [byte.as_pointer(), nbytes.type])
    target = builder.inttoptr(address, byte.as_pointer())
    builder.call(function, [target, byte(0), nbytes, ir.IntType(1)(0)])


@words
def memcpy(builder: Any, target: Any, source: Any, nbytes: Any) -> None:
    """Copy ``nbytes`` bytes between two addresses whose ranges do not overlap."""
    from llvmlite import ir

    pointer = ir.IntType(8).as_pointer()
    function = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, nbytes.type])
    places = [builder.inttoptr(address, pointer) for address in (target, source)]
    builder.call(function, [*places, nbytes, ir.IntType(1)(0)])


# ---- calls and bits


@words
def call(builder: Any, address: Any, *args: Any) -> Any:
    """Call the C function ``int64 f(int64, ...)`` at ``address`` and return its result."""
    from llvmlite import ir

    kind = ir.FunctionType(address.type, [address.type] * len(args))
    return builder.call(builder.inttoptr(address, kind.as_pointer()), args)


@words
def call_void(builder: Any, address: Any, *args: Any) -> None:
    """Call the C function ``void f(int64 or pointer, ...)`` at ``address``: BLAS takes only pointers."""
    from llvmlite import ir

    kind = ir.FunctionType(ir.VoidType(), [address.type] * len(args))
    builder.call(builder.inttoptr(address, kind.as_pointer()), args)


def external(name: str, count: int) -> Words:
    """Return an intrinsic that calls the C function ``int64 name(int64, ...)`` of this process; pointers are int64."""

    @words
    def function(builder: Any, *args: Any) -> Any:
        from llvmlite import ir

        word = ir.IntType(64)
        assert len(args) == count
        return builder.call(_declared(builder.module, name, ir.FunctionType(word, [word] * count)), args)

    return function


def _declared(module: Any, name: str, kind: Any) -> Any:
    """Return the function of this name, declared if need be."""
    from llvmlite import ir

    return module.globals.get(name) or ir.Function(module, kind, name)


def _fenv(builder: Any, name: str, which: Any) -> Any:
    """Emit the call of ``int name(int)`` of <fenv.h>."""
    from llvmlite import ir

    number = ir.IntType(32)
    function = _declared(builder.module, name, ir.FunctionType(number, [number]))
    return builder.zext(builder.call(function, [builder.trunc(which, number)]), which.type)


@words
def float_errors(builder: Any, which: Any) -> Any:
    """Return which flags of floating errors the CPU has set, by their numbers in <fenv.h>."""
    return _fenv(builder, "fetestexcept", which)


@words
def clear_float_errors(builder: Any, which: Any) -> Any:
    """Clear flags of floating errors, which NumPy looks at after each of its loops."""
    return _fenv(builder, "feclearexcept", which)


@words
def raise_float_errors(builder: Any, which: Any) -> Any:
    """Set flags of floating errors."""
    return _fenv(builder, "feraiseexcept", which)


@words
def clz(builder: Any, x: Any) -> Any:
    """Return the number of leading zero bits of a word; 64 for zero."""
    from llvmlite import ir

    return builder.ctlz(x, ir.IntType(1)(0))


# ---- arithmetic


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

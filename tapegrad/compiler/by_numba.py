"""Kernels that numba compiles: those in which users write what our front end does not know, such as arrays."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from typing import Any

from tapegrad.compiler import values
from tapegrad.compiler.assembly import RAISED, JitError
from tapegrad.compiler.fingerprint import attribute_names, is_namespace, references
from tapegrad.compiler.intrinsics import Intrinsic
from tapegrad.compiler.values import Known, Pointer, Value

__all__ = ["as_numbas", "lower", "type_of"]

# Options of numba, each with its reason.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",  # x / 0 is inf or nan as in NumPy: a kernel never raises
    "nogil": True,  # kernels touch no Python object
    "fastmath": {"contract"},  # allows fma and nothing else: nan, inf and signed zeros must survive
    "no_cpython_wrapper": True,  # we call by address
    "no_cfunc_wrapper": True,  # it needs numba's runtime (numba_gil_ensure); ours below does not
    "_nrt": False,  # no allocation: numba refuses, at compile time, whatever would need its runtime
}

_ENTRY = "tapegrad_entry"  # by which the function is found among those of numba's module


def lower(function: types.FunctionType, signature: tuple[str, ...], bind: Mapping[str, object], symbol: str) -> str:
    """Return LLVM's IR of the C function ``int64 symbol(signature...)``, callees included."""
    import numba

    disabled, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 0  # njit would return the function itself
    try:
        entry = _Builder(bind).function(function)
        entry.__name__ = entry.__qualname__ = _ENTRY
        compiled = numba.njit(entry, **_OPTIONS)
        compiled.compile(f"int64({', '.join(signature)})")
        ir: str = compiled.inspect_llvm(compiled.signatures[0])
    finally:
        numba.config.DISABLE_JIT = disabled
    natives = re.findall(r"^define [^\n]*?i32 @\"?([\w.$]+)\"?\([^\n]*%retptr", ir, re.MULTILINE)
    native = next(name for name in natives if f"{len(_ENTRY)}{_ENTRY}B" in name)
    return ir + _wrapper(signature, symbol, native)


def _wrapper(signature: tuple[str, ...], symbol: str, native: str) -> str:
    parameters = ", ".join(f"{_LLVM_TYPES[name]} %a{i}" for i, name in enumerate(signature))
    return _WRAPPER.format(symbol=symbol, native=native, parameters=parameters, raised=RAISED)


_LLVM_TYPES = {"int64": "i64", "uint64": "i64", "int32": "i32", "float64": "double", "float32": "float"}
# numba's calling convention is `int32 f(result*, exception**, args...)`; a status other than 0 says "raised".
# If the optimiser cannot prove that this never happens, the call below survives, and `assemble` refuses the code.
_WRAPPER = """
declare void @{raised}()
define i64 @"{symbol}"({parameters}) {{
  %result = alloca i64
  %exception = alloca ptr
  store i64 0, ptr %result
  %status = call i32 @"{native}"(ptr %result, ptr %exception, {parameters})
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %raised
raised:
  call void @{raised}()
  br label %done
done:
  %value = load i64, ptr %result
  ret i64 %value
}}
"""


class _Builder:
    """Rebuilds functions so that their globals are objects that numba can compile."""

    def __init__(self, bind: Mapping[str, object]) -> None:
        self.bind = bind
        self.open: set[types.FunctionType] = set()
        self.made: dict[types.FunctionType, Any] = {}

    def value(self, value: Any, attributes: tuple[str, ...]) -> Any:
        if isinstance(value, Intrinsic):
            return value.compiled()
        if isinstance(value, types.FunctionType):
            if value not in self.made:
                import numba

                if value in self.open:
                    raise JitError(f"{value.__name__} calls itself, and returns something else than an integer")
                self.open.add(value)
                self.made[value] = numba.njit(self.function(value), **_OPTIONS)
            return self.made[value]
        if is_namespace(value):
            module = types.ModuleType(getattr(value, "__name__", "namespace"))
            for name in attributes:
                if hasattr(value, name):
                    setattr(module, name, self.value(getattr(value, name), attributes))
            return module
        return value

    def function(self, function: types.FunctionType) -> types.FunctionType:
        code = function.__code__
        attributes = attribute_names(code)
        values: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
        cells = []
        for name, in_cell, value in references(function, self.bind):
            new = self.value(value, attributes)
            if in_cell:
                cells.append(types.CellType(new))
            else:
                values[name] = new
        built = types.FunctionType(code, values, function.__name__, function.__defaults__, tuple(cells) or None)
        built.__module__, built.__qualname__ = function.__module__, function.__qualname__
        return built


def as_numbas(own: Intrinsic) -> Any:
    """Return an intrinsic in numba's form. To know its result's type, it is emitted once in vain."""
    from llvmlite import ir
    from numba.core import types as nb
    from numba.extending import intrinsic

    first, *others = inspect.signature(own.function).parameters.values()
    is_packed = bool(others) and others[-1].kind is inspect.Parameter.VAR_POSITIONAL  # numba makes a tuple of *args
    alone = len(others) - 1

    def definition(typingctx: Any, *types: Any) -> Any:
        kinds = [_kind(each) for each in types]
        trial = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "trial").append_basic_block())

        def known(kind: Any, each: Any) -> Value:
            """Return the value that numba's type stands for, or one that is not defined."""
            number = getattr(each, "literal_value", 0)
            if own.constants:
                return values.word(number)
            return Value(kind, tuple(ir.Constant(part, ir.Undefined) for part in values.types_of(kind)))

        result = type_of(own.emit(trial, *map(known, kinds, types)).kind)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = list(args)
            if is_packed:
                *given, rest = args
                given += [builder.extract_value(rest, place) for place in range(len(types) - alone)]
            pairs = zip(kinds, given, strict=True)
            found = [Value(kind, tuple(_parts(builder, kind, each))) for kind, each in pairs]
            return _joined(
                context, builder, result, own.emit(builder, *(map(known, kinds, types) if own.constants else found))
            )

        # numba makes code anew for each constant of a signature, so that it keeps those that are needed.
        kept = [
            each if own.constants or isinstance(kind, Known) else nb.unliteral(each)
            for each, kind in zip(types, kinds, strict=True)
        ]
        if is_packed:
            kept = [*kept[:alone], nb.StarArgTuple(kept[alone:])]
        return result(*kept), codegen

    definition.__name__ = own.__name__
    parameters = [first.replace(name="typingctx"), *others]
    definition.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # prefer_literal: dtypes and sizes are wanted as constants, never as runtime values.
    return intrinsic(prefer_literal=True)(definition)


def _kind(own: Any) -> Any:
    """Return the kind of values of a type of numba's."""
    from numba.core import types as nb

    if isinstance(own, nb.StringLiteral):
        return Known(own.literal_value)
    own = nb.unliteral(own)
    if own == nb.none:
        return Known(None)
    if isinstance(own, nb.CPointer):
        return Pointer(str(own.dtype))
    if isinstance(own, nb.BaseTuple):
        return tuple(map(_kind, own))
    return str(own)


def type_of(kind: Any) -> Any:
    """Return numba's type of values of a kind."""
    from numba.core import types as nb

    if isinstance(kind, Pointer):
        return nb.CPointer(type_of(kind.dtype))
    if type(kind) is tuple:
        return nb.Tuple([type_of(own) for own in kind])
    return nb.boolean if kind == "bool" else getattr(nb, kind)


def _parts(builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return the parts of one of numba's values."""
    if isinstance(kind, Known):
        return []
    if type(kind) is tuple:
        return [part for place, own in enumerate(kind)
                for part in _parts(builder, own, builder.extract_value(value, place))]  # fmt: skip
    if values.is_complex(kind):
        return [builder.extract_value(value, place) for place in range(2)]
    return [builder.bitcast(value, values.type_of(kind)) if isinstance(kind, Pointer) else value]


def _joined(context: Any, builder: Any, own: Any, value: Value) -> Any:
    """Return a value as numba's."""
    if type(value.kind) is tuple:
        elements = zip(own, values.elements_of(value), strict=True)
        return context.make_tuple(builder, own, [_joined(context, builder, *each) for each in elements])
    if values.is_complex(value.kind):
        made = context.make_complex(builder, own)
        made.real, made.imag = value.parts
        return made._getvalue()
    return builder.bitcast(value.one, context.get_value_type(own)) if isinstance(value.kind, Pointer) else value.one

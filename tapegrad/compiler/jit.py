"""Compile a plain Python function over addresses to object code.

`compile_function` imports numba. A process that finds its kernels on disk (`tapegrad.compiler.cache`) never pays for
the import, and functions of words (`tapegrad.compiler.words`) do not need numba.

A kernel is a function of integers that returns an integer. It reads and writes memory through
`tapegrad.compiler.elements`. Dtypes are compile-time constants: literals, or strings in a global or a closure cell (not
arguments of a helper function, where numba forgets the value)::

    def make(rule, dtype):
        def kernel(args, block, accumulate):  # operand addresses, (n, steps...), 0 or 1
            table = as_pointer(args, "int64")
            ct = as_pointer(load(table, 0), dtype)
            x = as_pointer(load(table, 1), dtype)
            out = as_pointer(load(table, 2), dtype)
            for i in range(load(as_pointer(block, "int64"), 0)):
                store(out, i, rule(load(ct, i), load(x, i)))
            return 0

        return kernel


    code = compile_function(make(lambda ct, x: ct * xp.cos(x), "float64"), ("int64",) * 3, {"xp": vmath})
"""

from __future__ import annotations

import gc
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from tapegrad.compiler import numba_parts
from tapegrad.compiler.assembly import RAISED, JitError, assemble, target_machine
from tapegrad.compiler.fingerprint import attribute_names, fingerprint, is_namespace, references
from tapegrad.compiler.intrinsics import Intrinsic
from tapegrad.runtime.locks import module_lock

__all__ = ["SYMBOL", "JitError", "compile_function"]

SYMBOL = "tapegrad_kernel"
_lock = module_lock()  # numba's compiler is not reentrant


# ---- compilation

# Options of numba, each with its reason.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",  # x / 0 is inf or nan as in NumPy: a kernel never raises
    "nogil": True,  # kernels touch no Python object
    "fastmath": {"contract"},  # allows fma and nothing else: nan, inf and signed zeros must survive
    "no_cpython_wrapper": True,  # we call by address
    "no_cfunc_wrapper": True,  # it needs numba's runtime (numba_gil_ensure); ours below does not
    "_nrt": False,  # no allocation: numba refuses, at compile time, whatever would need its runtime
}


# Functions that kernels call, as numba's objects, by the function that makes such an object and by fingerprint. Many
# kernels share them.
_callees: dict[tuple[Callable[..., Any], str], Any] = {}
# The errors that mean that numba's private parts are not as expected (or that NUMBA_DISABLE_JIT is set).
_MOVED: Final = (AttributeError, ImportError, TypeError)


class _Builder:
    """Rebuilds functions so that their globals are objects that numba can compile."""

    def __init__(self, bind: Mapping[str, object], callee: Callable[[types.FunctionType], Any]) -> None:
        self.bind, self.callee = bind, callee

    def value(self, value: Any, attributes: tuple[str, ...]) -> Any:
        if isinstance(value, Intrinsic):
            return value.compiled()
        if isinstance(value, types.FunctionType):
            token = self.callee, fingerprint(value, (), self.bind)
            if token not in _callees:
                _callees[token] = self.callee(self.function(value))
            return _callees[token]
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


def compile_function(
    function: Callable[..., Any],
    signature: tuple[str, ...],
    bind: Mapping[str, object] | None = None,
    *,
    symbol: str = SYMBOL,
) -> bytes:
    """Compile ``function`` to an object file with one symbol, the C function ``int64 symbol(signature...)``.

    Parameters
    ----------
    function : function
        A plain Python function that returns an integer. Functions, lambdas and intrinsics that it reaches
        through globals, closure cells and namespaces (``xp.cos``) are compiled with it.
    signature : tuple of str
        The types of its arguments, by numba's names: normally all ``"int64"``.
    bind : mapping, optional
        Values that replace globals and closure cells of these names, in the function and all that it calls.
    symbol : str
        The name of the C function.

    Raises
    ------
    JitError
        If the code may raise a Python exception, or needs a symbol that is not in `tapegrad.compiler.assembly.ALLOWED`.
    numba.core.errors.NumbaError
        If numba cannot compile it.

    Examples
    --------
    >>> def add(a, b, c):
    ...     return a + b + c
    >>> len(compile_function(add, ("int64", "int64", "int64"))) > 100
    True
    """
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"compile_function() takes a plain Python function, not {type(function).__name__}")
    from tapegrad.compiler import frontend  # at call time: a process that finds its kernels compiles nothing

    with _lock:
        machine = target_machine()
        try:
            ir, walks = frontend.lower(function, signature, bind or {}, symbol, machine)
            return assemble(ir, symbol, machine, walks=walks)
        except frontend.NotCompilableError as error:
            if frontend.uses_structs(function, bind or {}):
                raise JitError(
                    f"{function.__name__}: a function over structs is made from its source text, not by numba. {error}"
                ) from error
        collects = gc.isenabled()
        gc.disable()  # collecting numba's hundreds of thousands of objects would take 10 % of the time, for nothing
        try:
            try:
                ir = _lower(_Builder(bind or {}, _callee).function(function), signature, symbol)
            except _MOVED:
                ir = _lower_publicly(function, signature, bind or {}, symbol)
            return assemble(ir, symbol, machine)
        finally:
            if collects:
                gc.enable()


def _callee(function: types.FunctionType) -> Any:
    """Return numba's object for a function that compiled code calls.

    `njit` would not do: it optimises each callee and emits machine code, which we do not need (a third of the time of a
    compilation), and under NUMBA_DISABLE_JIT=1 it returns the function itself.
    """
    from numba.core import compiler, dispatcher
    from numba.core.registry import CPUDispatcher
    from numba.core.types import unliteral

    class Compiler(dispatcher._FunctionCompiler):  # type: ignore[misc]
        def _compile_core(self, args: Any, return_type: Any) -> Any:
            flags = compiler.Flags()
            self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
            flags.no_compile = True
            typing, target = self.targetdescr.typing_context, self.targetdescr.target_context
            library = numba_parts.library()(target.codegen(), function.__qualname__)
            result = compiler.compile_extra(
                typing, target, function, args, return_type, flags, self.locals,
                library=library, pipeline_class=self.pipeline_class,
            )  # fmt: skip
            result = result._replace(entry_point=object())  # the key by which callers find the code
            target.insert_user_function(result.entry_point, result.fndesc, [result.library])
            return result

    class Callee(CPUDispatcher):  # type: ignore[misc]
        def get_call_template(self, args: Any, kws: Any) -> Any:
            # One variant for all constants: LLVM sees them where it inlines the function.
            return super().get_call_template([unliteral(own) for own in args], kws)

        def add_overload(self, result: Any) -> None:
            self.overloads[tuple(result.signature.args)] = result  # Python never calls it

    options = {"nopython": True, "boundscheck": None, **_OPTIONS}
    callee = Callee(function, targetoptions=options, pipeline_class=numba_parts.pipeline())
    callee._compiler = Compiler(function, callee.targetdescr, options, callee.locals, numba_parts.pipeline())
    return callee


def _lower(function: types.FunctionType, signature: tuple[str, ...], symbol: str) -> str:
    """Return unoptimised LLVM IR of the C function, callees included.

    `njit` would optimise twice, and emit machine code into its own engine, which we do not need.
    """
    from numba.core import compiler
    from numba.core import types as nb
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    pipeline = numba_parts.pipeline()
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {"nopython": True, **_OPTIONS})
    flags.no_compile = True
    with global_compiler_lock:
        library = numba_parts.library()(target.codegen(), function.__qualname__)
        library.is_callee = False
        args = tuple(getattr(nb, name) for name in signature)
        result = compiler.compile_extra(
            typing, target, function, args, nb.int64, flags, {}, library=library, pipeline_class=pipeline
        )
        library.finalize()
        ir: str = library.get_llvm_str()
        return ir + _wrapper(signature, symbol, result.fndesc.llvm_func_name)


def _public_callee(function: types.FunctionType) -> Any:
    """Return numba's own compiled function."""
    import numba

    options: dict[str, Any] = dict(_OPTIONS)
    try:
        options["pipeline_class"] = numba_parts.pipeline()
    except _MOVED:
        pass  # without the pass a complex division may raise, and `assemble` refuses such a kernel
    return numba.njit(function, **options)


def _lower_publicly(
    function: types.FunctionType, signature: tuple[str, ...], bind: Mapping[str, object], symbol: str
) -> str:
    """Do the same as `_lower` with numba's public functions only: half as fast, as they emit machine code too."""
    import numba

    disabled, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 0  # njit would return the function itself
    try:
        compiled = _public_callee(_Builder(bind, _public_callee).function(function))
        compiled.compile(f"int64({', '.join(signature)})")
        ir: str = compiled.inspect_llvm(compiled.signatures[0])
    finally:
        numba.config.DISABLE_JIT = disabled
    natives = re.findall(r"^define [^\n]*?i32 @\"?([\w.$]+)\"?\([^\n]*%retptr", ir, re.MULTILINE)
    native = next(name for name in natives if f"{len(function.__name__)}{function.__name__}B" in name)
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

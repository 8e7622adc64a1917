"""What compiled code may do besides arithmetic: intrinsics, and those over words (int64), importable without numba.

Addresses are words. The bodies import llvmlite, and only what compiles runs them. `elements.py` has the intrinsics over
elements of a dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import cast
from tapegrad.compiler.values import Value
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.runtime.platform import has

__all__ = [
    "VECTORISABLE",
    "Intrinsic",
    "OfPlatform",
    "Words",
    "call",
    "call_void",
    "clear_float_errors",
    "clz",
    "external",
    "float_errors",
    "for_this_platform",
    "intrinsic",
    "memcpy",
    "memset",
    "raise_float_errors",
    "end_streams",
    "stack",
    "words",
]


#: How names of functions in object code begin that LLVM replaces by others, of vectors (vmath/functions.py).
VECTORISABLE = "tapegrad_v_"
_HAS_FENV, _IS_X86 = has("fenv"), has("x86")  # numbers, of which a fingerprint can be made


class Intrinsic:
    """A function that emits LLVM: from a builder and values (`tapegrad.compiler.values`) to a value, or None."""

    constants = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        """Refuse: there is no Python version."""
        raise TypeError(f"{self.__name__}() exists only inside compiled kernels; it was called from Python")

    def emit(self, builder: Any, *args: Value) -> Value:
        """Emit it; without a value, it is 0."""
        found = self.function(builder, *args)
        return values.word(0) if found is None else found

    def compiled(self) -> Any:
        """Return numba's intrinsic, made once."""
        if self._compiled is None:
            from tapegrad.compiler.by_numba import as_numbas

            self._compiled = as_numbas(self)
        return self._compiled


def intrinsic(function: Callable[..., Any]) -> Intrinsic:
    """Mark ``def name(builder, ...)``, which emits LLVM over values and returns one or None, as an intrinsic."""
    return Intrinsic(function)


class NumbasOwn(Intrinsic):
    """A definition in the form of `numba.extending.intrinsic`, over what only numba knows."""

    def emit(self, builder: Any, *args: Value) -> Value:
        """Refuse."""
        raise values.NotCompilableError(f"{self.__name__} is numba's")

    def compiled(self) -> Any:
        """Return numba's intrinsic, made once."""
        if self._compiled is None:
            from numba.extending import intrinsic as numba_intrinsic

            self._compiled = numba_intrinsic(prefer_literal=True)(self.function)
        return self._compiled


class Words(Intrinsic):
    """An intrinsic over words (int64) alone: its function has LLVM's values themselves.

    Parameters
    ----------
    function : callable
    constants : bool
        Whether its arguments must be known.
    """

    def __init__(self, function: Callable[..., Any], constants: bool = False) -> None:
        super().__init__(function)
        self.constants = constants
        self.symbol = ""  # of the C function that it calls
        self._in_python: Callable[..., int] | None = None

    def __call__(self, *args: Any) -> Any:
        """Do the same in Python, if compiled functions are interpreted."""
        if self._in_python is None:
            if not INTERPRETS:
                return super().__call__()
            from tapegrad.compiler.interpreter import meaning_of

            self._in_python = meaning_of(self.__name__, self.symbol)
        return self._in_python(*args)

    def emit(self, builder: Any, *args: Value) -> Value:
        """Emit it; without a value, it is 0."""
        found = self.function(builder, *[cast(builder, own, "int64").one for own in args])
        return values.word(0) if found is None else Value("int64", (found,))


def words(function: Callable[..., Any]) -> Words:
    """Mark ``def name(builder, ...)``, which emits LLVM over words and returns a word or None, as an intrinsic."""
    return Words(function)


# ---- memory


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


@words
def end_streams(builder: Any) -> None:
    """Have what was streamed stand in memory before anything that is written from now on."""
    if _IS_X86:  # a fence for all that is read and written takes longer
        _sse(builder, "sfence")
    else:
        builder.fence("release")


# ---- calls and bits


@words
def call(builder: Any, address: Any, *args: Any) -> Any:
    """Call the C function ``int64 f(int64 or pointer, ...)`` at ``address`` and return its result."""
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

    function.symbol = name
    return function


class OfPlatform:
    """A word that is computed from another one, in a way that depends on the platform.

    In the text of a function it is a call, so that the function has the same text on all platforms.

    Parameters
    ----------
    name : str
        The function that seems to be called.
    text : str
        LLVM's IR in place of the call. ``{result}`` begins the last line, which computes the result: values may have no
        names. ``{word}`` is the word, and ``{n}`` a number for the names of other values.
    """

    by_name: ClassVar[dict[str, OfPlatform]] = {}

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.by_name[name] = self

    def emit(self, builder: Any, word: Any) -> Any:
        """Emit it."""
        from llvmlite import ir

        return builder.call(_declared(builder.module, self.name, ir.FunctionType(word.type, [word.type])), [word])


def for_this_platform(ir: str) -> str:
    """Return LLVM's IR of functions with what this platform computes in place of these calls."""
    for name, own in OfPlatform.by_name.items():
        texts = ir.replace(f'declare i64 @"{name}"(i64 %".1")\n', "").split(f'call i64 @"{name}"(i64 ')
        for place in range(1, len(texts)):
            before, _, result = texts[place - 1].rpartition("\n")
            word, _, texts[place] = texts[place].partition(")")
            texts[place - 1] = f"{before}\n{own.text.format(result=result, word=word, n=place)}"
        ir = "".join(texts)
    return ir


def _declared(module: Any, name: str, kind: Any) -> Any:
    """Return the function of this name, declared if need be."""
    from llvmlite import ir

    return module.globals.get(name) or ir.Function(module, kind, name)


def _fenv(builder: Any, name: str, which: Any) -> Any:
    """Emit the call of ``int name(int)`` of <fenv.h>, or what stands for it; nothing does but on x86."""
    from llvmlite import ir

    number = ir.IntType(32)
    flags = builder.trunc(which, number)
    if _HAS_FENV:
        function = _declared(builder.module, name, ir.FunctionType(number, [number]))
        return builder.zext(builder.call(function, [flags]), which.type)
    if not _IS_X86:
        return which.type(0)
    # The register MXCSR has the flags at the places that <fenv.h> gives them on x86.
    with builder.goto_entry_block():
        register = builder.alloca(number)
    builder.fence("seq_cst", "singlethread")  # results are computed, and stand in memory, on either side of this
    _sse(builder, "stmxcsr", register)
    before = builder.load(register, typ=number)
    if name != "fetestexcept":
        changed = builder.or_(before, flags) if name == "feraiseexcept" else builder.and_(before, builder.not_(flags))
        builder.store(changed, register)
        _sse(builder, "ldmxcsr", register)
    builder.fence("seq_cst", "singlethread")
    return builder.zext(builder.and_(before, flags), which.type)


def _sse(builder: Any, name: str, *places: Any) -> None:
    """Emit an instruction of SSE, which all CPUs of x86 with 64 bits have."""
    from llvmlite import ir

    kind = ir.FunctionType(ir.VoidType(), [place.type for place in places])
    builder.call(_declared(builder.module, f"llvm.x86.sse.{name}", kind), places)


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

"""From LLVM's IR to object code for this CPU, which needs neither Python nor the compiler to run."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from tapegrad.compiler import cpu
from tapegrad.compiler.intrinsics import VECTORISABLE
from tapegrad.compiler.object_files import undefined_symbols

__all__ = [
    "ALLOWED",
    "FEW_PASSES",
    "MARK",
    "JitError",
    "assemble",
    "checked",
    "emitted",
    "hide",
    "improve_functions",
    "inline",
    "marked",
    "marks_loops",
    "parsed",
    "target_machine",
]

#: Lines from which on loops are not repeated for each way that a condition outside of them can go.
_MANY: Final = 500
#: Lines from which on a module of tiles gets few passes: eigenvalues are computed as fast after half of the time.
_LONG: Final = 1900
#: Lines from which on a function of such a module is not repeated where it is called; and is no part of one caller.
_MUCH: Final = 120
_VERY_MUCH: Final = 700
RAISED: Final = "tapegrad_raised"  # what code calls where a Python exception would be raised
MARK: Final = "tapegrad.tiles"  # metadata of modules whose loops have vectors already, as many as registers hold


# A function that is defined: its name in quotes or not, its parameters, and what stands before its attributes.
_DEFINED: Final = re.compile(
    r'^define [^@\n]*@("[^"\n]*"|[\w.$-]+)\((?:[^()"]|"[^"]*"|\((?:[^()]|\([^()]*\))*\))*\)'
    r"(?: (?:local_)?unnamed_addr)?",
    re.MULTILINE,
)


_WHOLE: Final = re.compile(r'^define [^@\n]*@("[^"\n]*"|[\w.$-]+)\(.*?^}', re.MULTILINE | re.DOTALL)
_CALLED: Final = re.compile(r'call [^@\n]*@("[^"\n]+"|[\w.$-]+)\(')


def marked(ir: str, attribute: Callable[[str], str | None]) -> str:
    """Return LLVM's IR with an attribute, where there is one, for the name of each function that is defined.

    It is written as text: llvmlite 0.46 and 0.47 mark what a function returns, in place of the function, which LLVM
    refuses or ignores.

    >>> marked("define i64 @f(i64 %x) {", lambda name: "alwaysinline")
    'define i64 @f(i64 %x) alwaysinline {'
    """
    return _DEFINED.sub(lambda found: f"{found[0]} {attribute(found[1].strip(chr(34))) or ''}".rstrip(), ir)


def _apart(ir: str) -> set[str]:
    """Return the functions that are long, with those that they call, and called at several places, or very long.

    LLVM looks for addresses in each loop anew, in all loops within it: functions have fewer that surround them.
    """
    texts = {found[1].strip('"'): found[0] for found in _WHOLE.finditer(ir)}
    calls = {name: [own.strip('"') for own in _CALLED.findall(text)] for name, text in texts.items()}
    places = Counter(itertools.chain.from_iterable(calls.values()))
    found: set[str] = set()

    @cache
    def lines(name: str) -> int:
        count = texts[name].count("\n") + sum(lines(own) for own in calls[name] if own in texts and own != name)
        if count < (_MUCH if places[name] > 1 else _VERY_MUCH):
            return count
        found.add(name)
        return 1

    for name in texts:
        lines(name)
    return found


# Names of passes, as llvmlite has them; the first are those that pay in any code.
FEW_PASSES: Final = ("sroa", "instruction_combine", "simplify_cfg")
_BEHIND_INLINING: Final = (
    "sroa", "loop_simplify", "lcssa", "loop_rotate", "simplify_cfg", "new_gvn", "instruction_combine",
    "jump_threading", "dead_store_elimination", "simplify_cfg", "instruction_combine", "simplify_cfg",
)  # fmt: skip


def marks_loops(triple: str) -> bool:
    """Whether the front end marks the loops to unroll. For ARM, LLVM would print which it leaves as they are."""
    return triple.startswith("x86")


def inline(module: Any, passes: Any) -> None:
    """Inline the functions that are marked `alwaysinline`, and drop those that nothing calls."""
    import llvmlite.binding as llvm

    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_global_dead_code_eliminate_pass()
    manager.run(module, passes)


def improve_functions(module: Any, passes: Any, names: Sequence[str]) -> None:
    """Run passes, given their names, on each function by itself."""
    import llvmlite.binding as llvm

    manager = llvm.create_new_function_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, passes)


class JitError(TypeError):
    """A function cannot become a kernel: it may raise, or it needs a symbol that no library here defines."""


def assemble(ir: str, symbol: str, machine: Any, *, walks: bool = False, unrolls: bool = False) -> bytes:
    """Return the object code of LLVM's IR: inlined, optimised and assembled.

    Parameters
    ----------
    ir : str
    symbol : str
        The function that is wanted; all others are parts of it.
    machine : llvmlite.binding.TargetMachine
    walks : bool
        It walks over words and has no loops to unroll or to vectorise: few passes make code as good in a third of
        the time.
    unrolls : bool
        LLVM judges which loops it unrolls. Else these are the ones that the front end has marked: others are as fast as
        they are, and modules are compiled in two thirds of the time.

    Raises
    ------
    JitError
        If the code cannot run without Python, or needs what no library here defines.
    """
    import llvmlite.binding as llvm

    # Functions of vectors, which nothing calls before LLVM vectorises a loop, would be dropped as dead.
    kept = re.findall(rf'^define .*(@"?{VECTORISABLE}\w+"?)\(', ir, re.MULTILINE)
    used = f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(f'ptr {name}' for name in kept)}], "
    ir += used + 'section "llvm.metadata"\n' if kept else ""
    lines = ir.count("\n")
    has_tiles = f"!{MARK} = " in ir
    is_long = has_tiles and lines >= _LONG
    apart = {symbol, *(_apart(ir) if is_long else ())}
    # LLVM's own judgement would leave long rules as calls, and a loop with a call is not vectorised.
    ir = marked(ir, lambda name: "" if name in apart or name.startswith(VECTORISABLE) else "alwaysinline")
    module = parsed(ir, machine)
    hide((*module.functions, *module.global_variables), symbol)
    options = llvm.create_pipeline_tuning_options(speed_level=3 if lines < _MANY else 2)
    # Without vectors of straight lines, softmax in single precision takes 1.2 times as long.
    options.loop_vectorization, options.slp_vectorization = True, not has_tiles
    options.loop_unrolling = unrolls or not marks_loops(machine.triple)
    if kept:
        # Several vectors a turn would be spilled around each call of a function of vectors: 1.6 times as slow.
        options.loop_interleaving = False
    passes = llvm.create_pass_builder(machine, options)
    if walks or is_long:
        improve_functions(module, passes, FEW_PASSES)
        inline(module, passes)
        improve_functions(module, passes, _BEHIND_INLINING)
    else:
        passes.getModulePassManager().run(module, passes)
    if any(item.name == RAISED for item in module.functions):
        raise JitError(
            f"{symbol}: the compiled code may raise a Python exception, and a kernel must not; "
            "return a status instead (numba's integer powers raise, for one)"
        )
    return checked(emitted(module, machine), symbol)


def parsed(ir: str, machine: Any) -> Any:
    """Return LLVM's module of a text.

    The context is its own: what threads do with modules of different contexts is nothing to one another.
    """
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(ir, llvm.create_context())
    module.verify()  # else LLVM would end the process
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


def hide(items: Iterable[Any], symbol: str) -> None:
    """Make functions and variables of a module internal, but the one that is wanted and those that LLVM looks for."""
    for item in items:
        if not item.is_declaration and item.name != symbol and not item.name.startswith("llvm."):
            item.linkage = "internal"


def emitted(module: Any, machine: Any) -> bytes:
    """Return the object code of a module, as ``machine.emit_object`` does.

    llvmlite lets one thread into LLVM at a time. This is where LLVM works longest, and other threads may use it.
    """
    from llvmlite.binding import ffi

    emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as message:
        memory = getattr(emit, "_cfn", emit)(machine, module, 1, message)
        if not memory:
            raise JitError(str(message))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def checked(code: bytes, symbol: str, imports: frozenset[str] = frozenset()) -> bytes:
    """Return object code; raise if it needs functions besides those of this process that it may call, and imports."""
    foreign = sorted(undefined_symbols(code) - ALLOWED - imports)
    if foreign:
        raise JitError(f"{symbol}: the object code needs {', '.join(foreign)}, which no library here defines")
    return code


def target_machine(effort: int = 3) -> Any:
    """Return LLVM's description of the CPU, for position-independent code; `effort` is its code generator's, 0 to 3.

    On Intel's CPUs with AVX-512 LLVM would use half of each register: the functions of `tapegrad.vmath` have no variant
    of that width, and a loop over them in double precision would not be vectorised at all.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu.name(),
        features=f"{cpu.flat()},-prefer-256-bit" if cpu.features().get("avx512f") else cpu.flat(),
        opt=effort,
        reloc="pic",
        codemodel="default",
    )


def _names(plain: str, both: str) -> frozenset[str]:
    return frozenset(plain.split()) | {name + end for name in both.split() for end in ("", "f")}


# Memory functions of libc, floating flags, libm in double and float, what `tapegrad.recording.native` needs of CPython,
# and what LLVM adds on macOS and on Windows: `tapegrad.compiler.cache` resolves them by name.
ALLOWED = _names(
    "memset memcpy memmove memcmp bcmp bzero feclearexcept feraiseexcept fetestexcept "
    "Py_IncRef Py_DecRef _Py_Dealloc PyType_GenericAlloc PyList_New PyTuple_New PyList_Append "
    "PyType_IsSubtype PyObject_GetAttr PyObject_SetAttr PyObject_GenericGetDict PyObject_GenericSetDict "
    "PyDict_DelItem PyDict_GetItem PyDict_Next PyDict_SetItem PyErr_Fetch PyErr_Restore "
    "PyBytes_FromStringAndSize PyLong_AsSsize_t PyLong_AsLongLongAndOverflow PyLong_FromSsize_t PyNumber_Add "
    "PyNumber_Float PyObject_Vectorcall PyEval_SaveThread PyEval_RestoreThread PyErr_ExceptionMatches PyErr_Clear "
    "PyObject_GetItem PyWeakref_NewRef PyCFunction_NewEx memset_pattern4 memset_pattern8 memset_pattern16 __chkstk "
    "_fltused",
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs "
    "fdim floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 logb modf nearbyint "
    "nextafter pow remainder rint round roundeven scalbn sin sincos sinh sqrt tan tanh tgamma trunc",
)

"""Fingerprints: the digest of everything that the machine code of a function depends on; it names the cached file.

That is the function's code and, recursively, every function, constant and namespace attribute that the code reads from
outside; and the compiler, its options, the CPU and the version of Python. File names, line numbers, docstrings and the
names of functions do not count. So nothing stale is ever loaded, and an edit elsewhere recompiles nothing.
"""

from __future__ import annotations

import opcode
import os
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad._version import __version__
from tapegrad.compiler import cpu
from tapegrad.compiler.intrinsics import Intrinsic, OfPlatform
from tapegrad.runtime.platform import of_machine_code
from tapegrad.runtime.structs import Struct, layout_token, struct_hints

if TYPE_CHECKING:
    import hashlib

__all__ = [
    "FRONT_END", "Walk", "attribute_names", "code_token", "environment", "fingerprint", "fingerprint_of_ir",
    "global_names", "is_namespace", "references", "sha256", "sources", "token_of",
]  # fmt: skip


def sha256(data: bytes = b"") -> hashlib._Hash:
    """Return the digest of data, to which more can be added."""
    import hashlib  # at call time: it loads OpenSSL, which takes 3 ms, and importing tapegrad needs no digest

    return hashlib.sha256(data)


# ---- the names that a function refers to

_LOAD_GLOBAL = opcode.opmap["LOAD_GLOBAL"]
_EXTENDED_ARG = opcode.EXTENDED_ARG
_SHIFT = 1 if sys.version_info >= (3, 11) else 0  # since 3.11 the lowest bit says "push a NULL"


@cache
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the globals that ``code`` and the functions defined inside it read, in order and once each."""
    names: dict[str, None] = {}
    raw = code.co_code
    at = raw.find(_LOAD_GLOBAL)
    while at >= 0:
        if at % 2 == 0:  # else it is an argument
            number, shift, before = raw[at + 1], 8, at - 2
            while before >= 0 and raw[before] == _EXTENDED_ARG:
                number, shift, before = number | raw[before + 1] << shift, shift + 8, before - 2
            names[code.co_names[number >> _SHIFT]] = None
        at = raw.find(_LOAD_GLOBAL, at + 1)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(global_names(constant)))
    return tuple(names)


@cache
def attribute_names(code: types.CodeType) -> tuple[str, ...]:
    """Return every name that may be an attribute in ``code`` and the functions inside it."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(attribute_names(constant)))
    return tuple(names)


def references(function: types.FunctionType, bind: Mapping[str, object]) -> Iterator[tuple[str, bool, object]]:
    """Yield (name, is it a closure cell, value) for each value that a function reads from outside, except builtins."""
    for name in global_names(function.__code__):
        if name in bind:
            yield name, False, bind[name]
        elif name in function.__globals__:
            yield name, False, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, True, bind.get(name, cell.cell_contents)


def is_namespace(value: object) -> bool:
    """Whether the attributes of a value are functions that we compile; those of `math` or `numpy` are not."""
    if isinstance(value, types.ModuleType):
        top = value.__name__.partition(".")[0]
        return top not in sys.stdlib_module_names and top not in ("numpy", "numba", "llvmlite", "scipy")
    return isinstance(value, types.SimpleNamespace)


# ---- the digest

#: Instructions that load the first constant, as numbers of 16 bits.
_FIRST_CONSTANT = frozenset(int.from_bytes((op, 0), sys.byteorder) for op in opcode.hasconst if op < 256)
_FLAGS = 0xFFFF  # but those of ``from __future__ import``, which tell nothing of what code does


@cache
def code_token(code: types.CodeType) -> bytes:
    """Return a digest of what code does, without file name, line numbers and docstring."""
    constants = list(code.co_consts)
    raw = code.co_code
    if constants and isinstance(constants[0], str) and _FIRST_CONSTANT.isdisjoint(memoryview(raw).cast("H")):
        constants[0] = None  # a docstring is the first constant, and no instruction loads it
    parts = (
        len(raw),
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags & _FLAGS,
        code.co_varnames,
        code.co_names,
        code.co_freevars,
        code.co_cellvars,
        getattr(code, "co_exceptiontable", b""),
        b"".join(token_of(item) for item in constants),
    )
    return sha256(repr(parts).encode() + raw).digest()


def token_of(value: Any) -> bytes:
    """Return a digest of an immutable value. -0.0 differs from 0.0, and True from 1; sets have no order."""
    kind = type(value).__name__
    if isinstance(value, types.CodeType):
        body = code_token(value)
    elif isinstance(value, tuple):
        body = b"".join(map(token_of, value))
    elif isinstance(value, frozenset):
        body = b"".join(sorted(map(token_of, value)))
    elif isinstance(value, slice):  # a constant of code since Python 3.14
        body = token_of((value.start, value.stop, value.step))
    elif value is None or value is ... or isinstance(value, (bool, int, float, complex, str, bytes)):
        body = repr(value).encode("utf-8", "surrogatepass")
    else:
        raise TypeError(
            f"a kernel refers to {value!r}, a {kind}, which has no fingerprint; "
            "use numbers, strings, tuples, plain functions, intrinsics and namespaces of them"
        )
    return sha256(kind.encode() + b":" + body).digest()


class Walk:
    """A walk over all that a function reaches. A function that is reached again is named by the number of its visit.

    Attributes
    ----------
    digest : hashlib.sha256
        Of what was visited.
    """

    def __init__(self, bind: Mapping[str, object]) -> None:
        self.bind = bind
        self.met: dict[int, int] = {}
        self.digest = sha256()

    def value(self, value: Any, attributes: tuple[str, ...]) -> None:
        """Add a value that code refers to; of a namespace those of these attributes that it has."""
        add = self.digest.update
        module = getattr(value, "__module__", None) or getattr(value, "__name__", None)
        is_code = isinstance(value, (types.FunctionType, types.ModuleType, type)) and isinstance(module, str)
        if is_code and module in _OF_COMPILER and not getattr(value, "__closure__", None):
            add(f"ours {module} {getattr(value, '__qualname__', '')}".encode())  # `environment` has their text
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, Intrinsic):
            add(b"intrinsic")
            self.function(value.function)
        elif isinstance(value, OfPlatform):
            add(b"of platform" + value.text.encode())
        elif isinstance(value, type) and issubclass(value, Struct):
            add(b"struct" + layout_token(value))
        elif is_namespace(value):
            add(b"namespace")
            for name in attributes:
                if hasattr(value, name):
                    add(name.encode())
                    self.value(getattr(value, name), attributes)
            add(b"end")
        elif isinstance(value, types.ModuleType):
            add(b"module" + value.__name__.encode())
            for name in attributes:  # constants of other libraries change with their versions
                own = getattr(value, name, None)
                if isinstance(own, (int, float, complex)):
                    add(name.encode() + token_of(own))
        elif isinstance(value, (types.BuiltinFunctionType, type)):
            add(f"builtin {value.__module__}.{value.__qualname__}".encode())
        elif isinstance(value, np.ufunc) and value in vars(np).values():
            add(f"ufunc {value}".encode())
        else:
            add(token_of(value))

    def function(self, function: types.FunctionType | Callable[..., Any]) -> None:
        """Add a function, and all that it refers to."""
        assert isinstance(function, types.FunctionType)
        add = self.digest.update
        seen = self.met.get(id(function))
        if seen is not None:
            add(b"again %d" % seen)
            return
        self.met[id(function)] = len(self.met)
        code = function.__code__
        add(code_token(code))
        attributes = attribute_names(code)
        add(token_of((function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))))
        for name, in_cell, value in references(function, self.bind):
            add(b"\0%d" % in_cell + name.encode() + b"\0")
            self.value(value, attributes)
        for name, kind in struct_hints(function).items():
            add(b"points to" + name.encode() + layout_token(kind))
        add(b"end")


def fingerprint(function: Callable[..., Any], signature: tuple[str, ...], bind: Mapping[str, object]) -> str:
    """Return the hex digest that names the machine code of ``function`` on this machine."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"a kernel is made from a plain Python function, not from a {type(function).__name__}")
    walk = Walk(bind)
    walk.digest.update(environment() + repr(signature).encode())
    walk.digest.update(repr([os.environ.get(name) for name in _VARIABLES]).encode())
    walk.function(function)
    return walk.digest.hexdigest()


# Environment variables that change numba's code.
_VARIABLES = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT")


# The names of modules of our own compiler that compiled functions, or intrinsics, refer to.
_OF_COMPILER = frozenset({
    "tapegrad.compiler.arithmetic", "tapegrad.compiler.cpu", "tapegrad.compiler.elements",
    "tapegrad.compiler.mathematics", "tapegrad.compiler.values",
    "tapegrad.vmath.functions", "tapegrad.vmath.pairs",
})  # fmt: skip
#: The files of what makes LLVM's IR of functions, and of the rest of the compiler.
FRONT_END = (
    "frontend.py", "trees.py", "translation.py", "expressions.py", "mathematics.py", "values.py", "arithmetic.py",
    "variables.py", "builder.py", "intrinsics.py", "elements.py", "together.py",
    os.path.join("..", "runtime", "structs.py"),
)  # fmt: skip
_COMPILER = (
    *FRONT_END, "jit.py", "by_numba.py", "shipped.py", "assembly.py", "cpu.py",
    *(os.path.join("..", "vmath", f"{name}.py") for name in (
        "lanes", "avx512", "functions", "pairs", "formats", "exponential", "logarithm", "trigonometric", "far",
    )),
)  # fmt: skip


def fingerprint_of_ir(key: bytes, options: object) -> str:
    """Return the hex digest that names the machine code of a module of LLVM's IR on this machine.

    Parameters
    ----------
    key : bytes
        The text, or what decides it.
    options : object
        What else decides the machine code: its ``repr`` counts.
    """
    parts = b"module", environment(), *sources(_OF_MODULES), repr(options).encode(), key
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


_OF_MODULES = ("modules.py",)  # beside those of `_COMPILER`


def sources(names: Sequence[str]) -> list[bytes]:
    """Return the source files of our own compiler."""
    texts = []
    for name in names:
        try:
            with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
                texts.append(file.read())
        except OSError:  # the install has no source files: the version has to do
            continue
    return texts


@cache
def environment() -> bytes:
    """Return a digest of the versions of compilers, of our own compiler's source, and of the CPU."""
    import llvmlite
    import llvmlite.binding as llvm

    # Changes of numba's options, of our wrapper, or of an intrinsic's helper count.
    source = [sha256(text).digest() for text in sources(_COMPILER)]
    parts = (
        __version__,
        sys.version_info[:2],
        _numba_version(),
        llvmlite.__version__,
        llvm.get_process_triple(),
        cpu.name(),
        cpu.flat(),
        of_machine_code(),
        source,
    )
    return sha256(repr(parts).encode()).digest()


def _numba_version() -> str:
    """Return the version of the installed numba without importing it."""
    import importlib.util

    spec = importlib.util.find_spec("numba")
    if spec is None or spec.origin is None:
        return "absent"
    # The name of the dist-info folder has it: importing importlib.metadata would take 20 ms.
    site = os.path.dirname(os.path.dirname(spec.origin))
    found = [entry for entry in os.listdir(site) if entry.startswith("numba-")]
    names = sorted(entry for entry in found if re.fullmatch(r"numba-[^-]+\.(dist|egg)-info", entry))
    if names:
        return " ".join(names)
    from importlib.metadata import version

    return version("numba")

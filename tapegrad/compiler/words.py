"""Functions of words: Python over 64-bit words becomes LLVM without numba. Recording, find and the sweep are such.

A function of words uses only integers of 64 bits, structs (`tapegrad.runtime.structs`) to which some of them point,
intrinsics over words (`tapegrad.compiler.intrinsics.words`), and other functions of words. So there are no types to
infer, and its syntax tree becomes LLVM in a twentieth of the time that numba takes. `translation.py` and
`expressions.py` define the syntax that it may use. Numba compiles all other functions, with the same meaning: integers
wrap around, ``//`` and ``%`` round down, and both are 0 if the divisor is 0. As numba does not know structs, a function
over structs can only be compiled from its source text.
"""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tapegrad.compiler.expressions import NotOfWordsError
from tapegrad.compiler.fingerprint import code_token, references
from tapegrad.compiler.intrinsics import Words
from tapegrad.compiler.translation import Function
from tapegrad.runtime.structs import Struct, struct_hints

__all__ = ["NotOfWordsError", "lower", "uses_structs"]

_NAMES = {"int64"}  # the types that a signature may have


def lower(
    function: types.FunctionType,
    signature: tuple[str, ...],
    bind: Mapping[str, object],
    symbol: str,
    machine: Any,
) -> str:
    """Return LLVM's unoptimised IR of the C function ``int64 symbol(int64, ...)``.

    Parameters
    ----------
    function, signature, bind, symbol
        As for `tapegrad.compiler.jit.compile_function`.
    machine : llvmlite.binding.TargetMachine

    Raises
    ------
    NotOfWordsError
    """
    if set(signature) - _NAMES or len(signature) != function.__code__.co_argcount:
        raise NotOfWordsError
    module = _Module(bind, machine)
    module.check(function)
    module.function(function, symbol).linkage = ""
    return str(module.ir)


def uses_structs(function: types.FunctionType, bind: Mapping[str, object], seen: set[Any] | None = None) -> bool:
    """Whether a function, or one that it calls, uses structs, which numba does not know."""
    seen = set() if seen is None else seen
    if function in seen:
        return False
    seen.add(function)
    values = [value for _, _, value in references(function, bind)]
    return (
        bool(struct_hints(function))
        or any(isinstance(value, type) and issubclass(value, Struct) for value in values)
        or any(isinstance(value, types.FunctionType) and uses_structs(value, bind, seen) for value in values)
    )


class _Module:
    """LLVM's module: a function, and the functions that it calls, each once."""

    def __init__(self, bind: Mapping[str, object], machine: Any) -> None:
        from llvmlite import ir

        self.ir = ir.Module()
        self.ir.triple, self.ir.data_layout = machine.triple, str(machine.target_data)
        self.bind = bind
        self.checked: dict[types.FunctionType, dict[str, Any]] = {}
        self.done: dict[types.FunctionType, Any] = {}

    def check(self, function: types.FunctionType) -> None:
        """Check that a function only refers to words, structs and functions of words, before any source is read."""
        if function in self.checked:
            return
        self.checked[function] = values = {"min": min, "max": max, "range": range, "int": int}
        for name, _, value in references(function, self.bind):
            values[name] = value
            if isinstance(value, types.FunctionType):
                self.check(value)
            elif not isinstance(value, (int, Words)) and not (isinstance(value, type) and issubclass(value, Struct)):
                raise NotOfWordsError(f"{function.__name__} refers to {name}")

    def function(self, function: types.FunctionType, name: str = "") -> Any:
        """Return LLVM's function for a Python function."""
        from llvmlite import ir

        if function not in self.done:
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [word] * function.__code__.co_argcount)
            name = name or f"{function.__name__}.{len(self.done)}"
            self.done[function] = lowered = ir.Function(self.ir, kind, name)
            lowered.linkage = "internal"
            Function(lowered, self.checked[function], self.function, struct_hints(function)).define(_tree(function))
        return self.done[function]


# --- the syntax tree of a function ------------------------------------------------------------------------------------


def _tree(function: types.FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function; raise if its file has changed since the function was made."""
    code = function.__code__
    try:
        by_name = _functions(code.co_filename, "".join(linecache.getlines(code.co_filename, function.__globals__)))
    except (SyntaxError, ValueError):
        raise NotOfWordsError(f"{code.co_filename} cannot be read") from None
    tree, compiled = by_name.get((code.co_firstlineno, code.co_name), (None, None))
    if tree is None or compiled is None or code_token(compiled) != code_token(code):
        raise NotOfWordsError(f"{code.co_filename} does not say what {code.co_name} does")
    return tree


@lru_cache(maxsize=32)
def _functions(path: str, source: str) -> Mapping[tuple[int, str], tuple[ast.FunctionDef, types.CodeType]]:
    """Return the syntax tree and the code object of each function of a file, by first line and name."""
    tree = ast.parse(source, path)
    codes = {
        (code.co_firstlineno, code.co_name): code for code in _codes(compile(tree, path, "exec", dont_inherit=True))
    }
    trees = {(node.lineno, node.name): node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {key: (trees[key], codes[key]) for key in trees.keys() & codes.keys()}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)

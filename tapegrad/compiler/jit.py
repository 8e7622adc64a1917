"""Compile a plain Python function over addresses to object code.

`tapegrad.compiler.frontend` makes LLVM's IR of it. What users write in kernels of their own and the front end does not
know, such as arrays, numba compiles; it is imported for nothing else.

A kernel is a function of integers that returns an integer. It reads and writes memory through
`tapegrad.compiler.elements`. Dtypes are compile-time constants: literals, or strings in a global or a closure cell::

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

import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tapegrad.compiler import ahead
from tapegrad.compiler.assembly import JitError, assemble, target_machine
from tapegrad.compiler.drafts import Draft, draft_code, draft_of
from tapegrad.compiler.library import name_of, words_of
from tapegrad.runtime import garbage
from tapegrad.runtime.locks import module_lock

if TYPE_CHECKING:
    from tapegrad.compiler.together import Together

__all__ = ["SYMBOL", "JitError", "compile_function", "draft_function", "draft_together", "ir_of", "symbol_of"]

SYMBOL = "tapegrad_kernel"  # the C function of a kernel: see `symbol_of`
_LONG = 50  # lines of LLVM's IR from which on a draft comes first
_lock = module_lock()  # neither numba's compiler nor LLVM's text of a module is made by two threads at once


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
        The types of its arguments: normally all ``"int64"``.
    bind : mapping, optional
        Values that replace globals and closure cells of these names, in the function and all that it calls.
    symbol : str
        The name of the C function.

    Raises
    ------
    JitError
        If neither the front end nor numba can compile it, if the code may raise a Python exception, or if it needs a
        symbol that is not in `tapegrad.compiler.assembly.ALLOWED`.

    Examples
    --------
    >>> def add(a, b, c):
    ...     return a + b + c
    >>> len(compile_function(add, ("int64", "int64", "int64"))) > 100
    True
    """
    with _lock:
        machine = target_machine()
        ir, how = _lowered(function, signature, bind or {}, symbol, machine)
        return assemble(ir, symbol, machine, **how)


def symbol_of(
    function: Callable[..., Any], signature: tuple[str, ...], bind: Mapping[str, object] | None = None
) -> str:
    """Return the name of a kernel's C function: functions of words of this library can be linked together."""
    is_named = not bind and signature == words_of(function) and name_of(function, signature) is not None
    return f"{SYMBOL}.{function.__module__}.{function.__name__}" if is_named else SYMBOL


def draft_function(
    function: Callable[..., Any], signature: tuple[str, ...], bind: Mapping[str, object] | None = None
) -> bytes | Draft:
    """Return what `compile_function` does, or a draft where that takes long; the parameters are the same."""
    with _lock:
        quick, symbol = target_machine(0), symbol_of(function, signature, bind)
        ir, how = _lowered(function, signature, bind or {}, symbol, quick)

        def make() -> bytes:
            return assemble(ir, symbol, target_machine(), **how)

        if "walks" not in how or ir.count("\n") < _LONG or set(signature) != {"int64"}:
            return make()
        return draft_of(ir, {symbol: len(signature)}, [make], quick)


@garbage.kept()
def draft_together(functions: Sequence[types.FunctionType], tell: Callable[[], object] = lambda: None) -> Draft:
    """Return drafts of functions of words, made as one module; tell when LLVM has all of it.

    Raises
    ------
    JitError
        If the front end does not know one of them, or finds elements of arrays in it.
    """
    from tapegrad.compiler.shipped import shipped

    with _lock:
        found = _drafts(functions, shipped, tell) or _drafts(functions, _lowered_together, tell)
    assert found is not None
    return found


def _drafts(
    functions: Sequence[types.FunctionType], lower: Callable[..., Together | None], tell: Callable[[], object]
) -> Draft | None:
    """Return drafts of what `lower` returns, and None if that is None."""
    pieces: list[Callable[[], bytes]] = []

    def begin(text: str, others: frozenset[str]) -> None:
        pieces.append(partial(draft_code, text, "drafts", target_machine(0), others))
        ahead.begin(str(len(pieces)), pieces[-1])

    def make(name: str, function: types.FunctionType, both: Together) -> bytes:
        symbol = symbol_of(function, words_of(function))
        return assemble(both.alone(name, symbol), symbol, target_machine(), walks=True)

    with ahead.making():
        quick = target_machine(0)
        both = lower(functions, quick, begin, tell)
        if both is None:
            return None
        wanted = [*zip(both.wanted, functions, strict=True)]
        counts = {name: own.__code__.co_argcount for name, own in wanted}
        begun = ahead.parts()
        parts = [begun.get(str(place)) or ahead.Part(own) for place, own in enumerate(pieces, 1)]
        names = both.functions.keys() - {*both.left}
        return draft_of(both.last, counts, [partial(make, *own, both) for own in wanted], quick, parts, names)


def _lowered_together(
    functions: Sequence[types.FunctionType], machine: Any, begin: Callable[..., object], tell: Callable[[], object]
) -> Together:
    from tapegrad.compiler import frontend

    try:
        both = frontend.lower_together(functions, machine, begin)
    except frontend.NotCompilableError as error:
        raise JitError(str(error)) from error
    tell()
    return both


@garbage.paused()  # nothing that is made is kept
def _lowered(
    function: Callable[..., Any], signature: tuple[str, ...], bind: Mapping[str, object], symbol: str, machine: Any
) -> tuple[str, dict[str, bool]]:
    """Return LLVM's IR of a function, and named arguments of `tapegrad.compiler.assembly.assemble`."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"compile_function() takes a plain Python function, not {type(function).__name__}")
    from tapegrad.compiler.shipped import shipped  # at call time: a process that finds its kernels compiles nothing

    is_own = not bind and signature == words_of(function)
    if is_own and (both := shipped([function], machine)) is not None:
        return both.alone(both.wanted[0], symbol), {"walks": True}
    from tapegrad.compiler import by_numba, frontend

    try:
        ir, walks = frontend.lower(function, signature, bind, symbol, machine)
        return ir, {"walks": True} if walks else {}
    except frontend.NotCompilableError as error:
        if frontend.uses_structs(function, bind):
            raise JitError(
                f"{function.__name__}: a function over structs is made from its source text, not by numba. {error}"
            ) from error
        try:
            return by_numba.lower(function, signature, bind, symbol), {"unrolls": True}
        except Exception as other:
            raise JitError(f"{function.__name__} cannot be compiled: {error}; numba says: {other}") from other


def ir_of(function: Any, signature: tuple[str, ...], symbol: str) -> str:
    """Return LLVM's IR of a function that the front end knows."""
    from tapegrad.compiler import frontend

    with _lock:
        return frontend.lower(function, signature, {}, symbol, target_machine())[0]

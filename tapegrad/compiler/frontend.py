"""From a Python function to LLVM, without numba: its syntax tree, with the kinds of its arguments, is emitted at once.

A function that is compiled uses numbers of NumPy's dtypes, addresses, structs (`tapegrad.runtime.structs`), tuples,
intrinsics, namespaces and other such functions; ``if``, ``while``, ``for`` over ranges, and functions of `math` and
NumPy on numbers. `translation.py` and `expressions.py` define the syntax, `arithmetic.py` what numbers do. A function
is emitted once for the kinds of arguments that it is called with. Integers wrap around, ``//`` and ``%`` round down,
and both are 0 if the divisor is 0.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapegrad.compiler import values
from tapegrad.compiler.builder import Names, text_of
from tapegrad.compiler.expressions import Inner
from tapegrad.compiler.fingerprint import references
from tapegrad.compiler.library import words_of
from tapegrad.compiler.together import Pieces, Together
from tapegrad.compiler.translation import Function
from tapegrad.compiler.trees import assigned, tree_of
from tapegrad.compiler.values import NotCompilableError, Value, known
from tapegrad.compiler.variables import KindsChangedError
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.structs import Struct, struct_hints

__all__ = ["NotCompilableError", "lower", "lower_together", "uses_structs"]


def lower(
    function: types.FunctionType,
    signature: tuple[str, ...],
    bind: Mapping[str, object],
    symbol: str,
    machine: Any,
) -> tuple[str, bool]:
    """Return LLVM's unoptimised IR of the C function ``int64 symbol(signature...)``, and whether it knows only words.

    Parameters
    ----------
    function, signature, bind, symbol
        As for `tapegrad.compiler.jit.compile_function`.
    machine : llvmlite.binding.TargetMachine

    Raises
    ------
    NotCompilableError
    """
    module = Module(bind, machine)
    name = module.wanted(function, signature)
    return module.parts([name]).alone(name, symbol), not module.has_elements


def lower_together(
    functions: Sequence[types.FunctionType], machine: Any, begin: Callable[[str, frozenset[str]], object] | None = None
) -> Together:
    """Return LLVM's unoptimised IR of C functions of words that return one.

    If `begin` is given, it gets pieces of it as they are finished, all but the last one, and the names of the functions
    of others.
    """
    module = Module({}, machine, begin)
    names = [module.wanted(own, words_of(own)) for own in functions]
    if module.has_elements:
        raise NotCompilableError("functions of elements, which LLVM vectorises, have no drafts")
    return module.parts(names)


def uses_structs(function: types.FunctionType, bind: Mapping[str, object], seen: set[Any] | None = None) -> bool:
    """Whether a function, or one that it calls, uses structs, which numba does not know."""
    seen = set() if seen is None else seen
    if function in seen:
        return False
    seen.add(function)
    found = [value for _, _, value in references(function, bind)]
    return (
        bool(struct_hints(function))
        or any(isinstance(value, type) and issubclass(value, Struct) for value in found)
        or any(isinstance(value, types.FunctionType) and uses_structs(value, bind, seen) for value in found)
    )


class Module:
    """LLVM's module: a function, and the functions that it calls, each once for the kinds of its arguments.

    Attributes
    ----------
    has_elements : bool
        Whether it works with elements of dtypes, in loops that LLVM may vectorise.
    """

    def __init__(
        self,
        bind: Mapping[str, object],
        machine: Any,
        begin: Callable[[str, frozenset[str]], object] | None = None,
    ) -> None:
        from llvmlite import ir

        self.ir = ir.Module()
        self.ir.triple, self.ir.data_layout = machine.triple, str(machine.target_data)
        self.bind = bind
        self.has_elements = False
        self.sources: dict[Any, _Source] = {}
        self.open: set[Any] = set()
        self.calls_itself: set[Any] = set()
        self.made: dict[Any, tuple[Any, Any]] = {}  # LLVM's function and the kind of its result
        self.texts: dict[str, str] = {}  # of functions, by their names
        self.calls: dict[str, dict[str, None]] = {}  # by the names of functions, what they call
        self.pieces = Pieces(self.texts, self.calls, lambda: self.parts(()), begin)

    def parts(self, names: Sequence[str]) -> Together:
        """Return LLVM's IR; these functions are wanted."""
        own = {made.name for made, _ in self.made.values()}
        every, self.ir.globals = self.ir.globals, {name: it for name, it in self.ir.globals.items() if name not in own}
        around, self.ir.globals = f"{self.ir}\n", every
        return Together(around, dict(self.texts), self.calls, names, self.pieces.left)

    def wanted(self, function: types.FunctionType, signature: tuple[str, ...]) -> str:
        """Return the name of a function that is called from outside; it may have been emitted already."""
        made, kind = self.define(function, signature)
        if not values.is_word(kind):
            raise NotCompilableError(f"{function.__name__} returns {kind}")
        return str(made.name)

    def source(self, function: types.FunctionType | Inner) -> _Source:
        """Return what is to be known of a function, found once."""
        if function not in self.sources:
            self.sources[function] = _source(function, self.bind)
        return self.sources[function]

    def call(self, builder: Any, function: types.FunctionType | Inner, args: list[Value]) -> Value:
        """Emit the call of a Python function."""
        source = self.source(function)
        count = len(source.parameters)
        alone = count - source.packs
        missing, rest = max(alone - len(args), 0), args[alone:]
        if missing > len(source.defaults) or (rest and not source.packs):
            raise NotCompilableError(f"{source.name} does not take {len(args)} arguments")
        args = args[:alone] + [known(value) for value in source.defaults[len(source.defaults) - missing :]]
        args += [values.packed(rest)] if source.packs else []
        kinds = tuple(
            source.hints.get(name, "int64") if values.is_word(own.kind) else own.kind
            for name, own in zip(source.parameters, args, strict=True)
        )
        key = function, kinds
        if key in self.open:
            self.calls_itself.add(key)
        made, kind = self.made.get(key) or self.define(function, kinds)
        self.calls.setdefault(builder.function.name, {})[made.name] = None
        result = builder.plain_call(made, [part for own in args for part in own.parts])
        count = values.count_of(kind)
        if count == 1:
            return Value(kind, (result,))
        return Value(kind, tuple(builder.extract_value(result, place) for place in range(count)))

    def define(self, function: types.FunctionType | Inner, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
        """Emit a function for the kinds of its arguments, if it is not there yet."""
        from llvmlite import ir

        source = self.source(function)
        if len(source.parameters) != len(kinds):
            raise NotCompilableError(f"{source.name} does not take {len(kinds)} arguments")
        kinds = tuple(source.hints.get(own, kind) for own, kind in zip(source.parameters, kinds, strict=True))
        key = function, kinds
        if key in self.made:
            return self.made[key]
        parameters = [own for kind in kinds for own in values.types_of(kind)]
        kind_of_made = ir.FunctionType(ir.IntType(64), parameters)
        made = ir.Function(self.ir, kind_of_made, f"{source.name}.{len(self.made)}")
        made.linkage, made.scope = "internal", Names(made.scope, len(parameters) + 1)  # the result has a name, too
        self.open.add(key)
        self.made[key] = made, source.hints.get("return", "int64")  # what a call in the function itself takes for it
        body, result = self.emit(made, source, kinds)
        kind = source.hints.get("return", result.kind) if values.is_word(result.kind) else result.kind
        if not values.is_word(kind) and key in self.calls_itself:
            raise NotCompilableError(f"{source.name} calls itself, and returns {kind}")
        self.made[key] = made, kind
        self.open.discard(key)
        parts_of_result, returned = values.types_of(kind), result.parts[0] if result.parts else None
        if len(parts_of_result) != 1:
            parts_of_result = [ir.LiteralStructType(parts_of_result)]
            returned = parts_of_result[0](ir.Undefined)
            for place, part in enumerate(result.parts):
                returned = body.builder.insert_value(returned, part, place)
        body.builder.ret(returned)
        # What a function returns is known at its end only.
        made.ftype = ir.FunctionType(parts_of_result[0], parameters)
        made.type = made.ftype.as_pointer()
        made.return_value = ir.values.ReturnValue(made, parts_of_result[0])
        self.texts[made.name] = text_of(made)
        self.pieces.add(made.name)
        for block in made.blocks:  # else only a garbage collection would free them
            block.instructions.clear()
        return made, kind

    def emit(self, made: Any, source: _Source, kinds: tuple[Any, ...]) -> tuple[Function, Value]:
        """Emit the body of a function, anew until the kinds of all its variables are known."""
        wider: dict[str, Any] = {}
        while True:
            rest, args = iter(made.args), {}
            for own, kind in zip(source.parameters, kinds, strict=True):
                args[own] = Value(kind, tuple(next(rest) for _ in values.types_of(kind)))
            body = Function(made, wider, source.outside, self)
            try:
                return body, body.define(source.tree, args, source.assigned)
            except KindsChangedError:
                made.blocks.clear()


class _Source(NamedTuple):
    """What is to be known of a Python function.

    Attributes
    ----------
    name : str
    tree : ast.FunctionDef or ast.Lambda
    parameters : tuple of str
    packs : bool
        Whether the last parameter takes all arguments that are left, as a tuple.
    defaults : tuple
    hints : mapping
        The structs to which parameters, and the result, point.
    outside : mapping
        The values of names that are no variables.
    assigned : frozenset of str
        The names to which it assigns.
    """

    name: str
    tree: Any
    parameters: tuple[str, ...]
    packs: bool
    defaults: tuple[Any, ...]
    hints: Mapping[str, Any]
    outside: Mapping[str, Any]
    assigned: frozenset[str]


def _source(function: types.FunctionType | Inner, bind: Mapping[str, object]) -> _Source:
    hints: Mapping[str, Any] = {}
    defaults: tuple[Any, ...] = ()
    if isinstance(function, Inner):
        name, tree, outside = "lambda", function.tree, function.outside
        names = assigned(tree, True)
    else:
        name, hints, defaults = function.__name__, struct_hints(function), function.__defaults__ or ()
        tree, text = tree_of(function)
        names = assigned(tree, ":=" in text)
        outside = {**_BUILTINS, **{own: value for own, _, value in references(function, bind)}}
    given = tree.args
    if given.kwonlyargs or given.kwarg or given.posonlyargs or (given.defaults and isinstance(function, Inner)):
        raise NotCompilableError(f"{name} has parameters of another kind than positions and names")
    packed = [given.vararg.arg] if given.vararg else []
    parameters = *[own.arg for own in given.args], *packed
    return _Source(name, tree, parameters, bool(packed), defaults, hints, outside, names)


_BUILTINS = {name: getattr(builtins, name) for name in (
    "abs", "bool", "complex", "float", "int", "isinstance", "len", "max", "min", "range",
)}  # fmt: skip

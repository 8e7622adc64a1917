"""From a Python function to LLVM, without numba: its syntax tree, with the kinds of its arguments, is emitted at once.

A function that is compiled uses numbers of NumPy's dtypes, addresses, structs (`tapegrad.runtime.structs`), tuples,
intrinsics, namespaces and other such functions; ``if``, ``while``, ``for`` over ranges, and functions of `math` and
NumPy on numbers. `translation.py` and `expressions.py` define the syntax, `arithmetic.py` what numbers do. A function
is emitted once for the kinds of arguments that it is called with. Integers wrap around, ``//`` and ``%`` round down,
and both are 0 if the divisor is 0.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import functools
import linecache
import operator
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tapegrad.compiler import values
from tapegrad.compiler.expressions import Inner
from tapegrad.compiler.fingerprint import code_token, references
from tapegrad.compiler.translation import Function
from tapegrad.compiler.values import NotCompilableError, Value, known
from tapegrad.compiler.variables import KindsChangedError
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.structs import Struct, struct_hints

__all__ = ["NotCompilableError", "lower", "uses_structs"]


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
    made, kind = module.define(function, signature, symbol)
    if not values.is_word(kind):
        raise NotCompilableError(f"{function.__name__} returns {kind}")
    made.linkage = ""
    return str(module.ir), not module.has_elements


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

    def __init__(self, bind: Mapping[str, object], machine: Any) -> None:
        from llvmlite import ir

        self.ir = ir.Module()
        self.ir.triple, self.ir.data_layout = machine.triple, str(machine.target_data)
        self.bind = bind
        self.has_elements = False
        self.sources: dict[Any, _Source] = {}
        self.open: set[Any] = set()
        self.calls_itself: set[Any] = set()
        self.made: dict[Any, tuple[Any, Any]] = {}  # LLVM's function and the kind of its result

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
        made, kind = self.made.get(key) or self.define(function, kinds, "")
        result = builder.call(made, [part for own in args for part in own.parts])
        count = values.count_of(kind)
        if count == 1:
            return Value(kind, (result,))
        return Value(kind, tuple(builder.extract_value(result, place) for place in range(count)))

    def define(self, function: types.FunctionType | Inner, kinds: tuple[Any, ...], name: str) -> tuple[Any, Any]:
        """Emit a function for the kinds of its arguments."""
        from llvmlite import ir

        source = self.source(function)
        if len(source.parameters) != len(kinds):
            raise NotCompilableError(f"{source.name} does not take {len(kinds)} arguments")
        kinds = tuple(source.hints.get(own, kind) for own, kind in zip(source.parameters, kinds, strict=True))
        parameters = [own for kind in kinds for own in values.types_of(kind)]
        name = name or f"{source.name}.{len(self.made)}"
        made = ir.Function(self.ir, ir.FunctionType(ir.IntType(64), parameters), name)
        made.linkage = "internal"
        key = function, kinds
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
    else:
        name, tree, hints, defaults = (
            function.__name__,
            _tree(function),
            struct_hints(function),
            function.__defaults__ or (),
        )
        outside = {**_BUILTINS, **{own: value for own, _, value in references(function, bind)}}
    given = tree.args
    if given.kwonlyargs or given.kwarg or given.posonlyargs or (given.defaults and isinstance(function, Inner)):
        raise NotCompilableError(f"{name} has parameters of another kind than positions and names")
    packed = [given.vararg.arg] if given.vararg else []
    parameters = *[own.arg for own in given.args], *packed
    assigned = frozenset(own.id for own in _nodes(tree) if own.__class__ is ast.Name and own.ctx.__class__ is ast.Store)
    return _Source(name, tree, parameters, bool(packed), defaults, hints, outside, assigned)


_BUILTINS = {name: getattr(builtins, name) for name in (
    "abs", "bool", "complex", "float", "int", "isinstance", "len", "max", "min", "range",
)}  # fmt: skip


# --- the syntax tree of a function ------------------------------------------------------------------------------------

#: The flags of code that say which features of later versions its text has.
_FUTURE: Final = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_WITHIN: Final = " \t\f\r\n#)]}"  # with which no statement begins


def _tree(function: types.FunctionType) -> Any:
    """Return the syntax tree of a function; raise if its file has changed since the function was made."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    for source in (_statement(lines, code.co_firstlineno - 1), "".join(lines)):
        try:
            by_name = _functions(code.co_filename, source, code.co_flags & _FUTURE)
        except (SyntaxError, ValueError):
            continue
        for tree, compiled in by_name.get((code.co_firstlineno, code.co_name), ()):
            if code_token(compiled) == code_token(code):
                return tree
    raise NotCompilableError(f"{code.co_filename} does not say what {code.co_name} does")


def _statement(lines: list[str], place: int) -> str:
    """Return the text of the outermost statement around a line, behind one import: quicker parsed than a file.

    What Python makes of calls depends on which names are imported. All other lines are empty. Where lines of a string
    are taken for statements, this is no text of Python's, or does not say what the function does.
    """
    first = end = max(min(place, len(lines) - 1), 0)
    while first > 0 and lines[first][0] in _WITHIN:
        first -= 1
    while end < len(lines) and lines[end][0] == "@":
        end += 1
    end += 1
    while end < len(lines) and lines[end][0] in _WITHIN:
        end += 1
    kept, is_open = [], False
    for line in lines[:first]:
        is_import = is_open or line.startswith(("import ", "from "))
        is_open = is_import and ("(" in line or is_open) and ")" not in line
        kept += [line] * is_import
    return "".join([_imports("".join(kept)), "\n" * first, *lines[first:end]])


@functools.lru_cache(maxsize=256)
def _imports(text: str) -> str:
    """Return one line that imports the names that some imports give; nothing, if they are cut off."""
    try:
        statements: list[Any] = ast.parse(text).body
    except SyntaxError:
        return ""
    names = [own.asname or own.name.partition(".")[0] for statement in statements for own in statement.names]
    return "import " + ", ".join(dict.fromkeys(names)) if names and "*" not in names else ""


@functools.lru_cache(maxsize=512)
def _functions(path: str, source: str, future: int) -> Mapping[tuple[int, str], list[tuple[Any, types.CodeType]]]:
    """Return the syntax trees and the code objects of the functions of a text, by first line and name.

    The text has the features of ``from __future__ import`` that flags say.
    """
    tree: Any = compile(source, path, "exec", future | ast.PyCF_ONLY_AST, dont_inherit=True)
    trees: dict[tuple[int, str], list[Any]] = {}
    for node in _nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = min([node.lineno, *[own.lineno for own in getattr(node, "decorator_list", ())]])
            trees.setdefault((first, getattr(node, "name", "<lambda>")), []).append(node)
    found: dict[tuple[int, str], list[tuple[Any, types.CodeType]]] = {}
    for code in _codes(compile(tree, path, "exec", future, dont_inherit=True)):
        key = code.co_firstlineno, code.co_name
        around = [node for node in trees.get(key, ()) if len(trees[key]) == 1 or _lies_within(code, node)]
        if around:  # of nested lambdas, the innermost
            found.setdefault(key, []).append((min(around, key=_extent), code))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a syntax tree, in half of the time of `ast.walk`."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for own in node.__dict__.values():
            if isinstance(own, ast.AST):
                left.append(own)
            elif isinstance(own, list):
                left += [each for each in own if isinstance(each, ast.AST)]


def _lies_within(code: types.CodeType, node: Any) -> bool:
    """Whether all instructions of a lambda are from its text: several may begin in one line."""
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [((line, column), (last, after)) for line, last, column, after in code.co_positions() if after]
    return bool(places) and all(start <= first and last <= end for first, last in places)


def _extent(node: Any) -> tuple[int, int]:
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)

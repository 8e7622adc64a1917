"""The syntax tree of a Python function, from the text of its file, and what stands in it."""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import operator
import os
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tapegrad.compiler.fingerprint import code_token
from tapegrad.compiler.values import NotCompilableError
from tapegrad.runtime.platform import STARTED

__all__ = ["assigned", "text_around", "tree_of"]

#: The flags of code that say which features of later versions its text has.
_FUTURE: Final = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_WITHIN: Final = " \t\f\r\n#)]}"  # with which no statement begins


_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_COARSE: Final = 2_000_000_000  # ns in which a file system may not tell times apart


def tree_of(function: types.FunctionType) -> tuple[Any, str]:
    """Return the syntax tree of a function, and its text; raise if the file has changed since the function was made."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = _believed(code, lines) if code.co_filename.startswith(_PACKAGE) else None
    if found is not None:
        return found
    for source in (_statement(lines, code.co_firstlineno - 1), "".join(lines)):
        try:
            by_name = _functions(code.co_filename, source, code.co_flags & _FUTURE)
        except (SyntaxError, ValueError):
            continue
        for tree, compiled in by_name.get((code.co_firstlineno, code.co_name), ()):
            if compiled == code or code_token(compiled) == code_token(code):  # the digest leaves out where lines are
                return tree, source
    raise NotCompilableError(f"{code.co_filename} does not say what {code.co_name} does")


def _believed(code: types.CodeType, lines: list[str]) -> tuple[Any, str] | None:
    """Return the syntax tree of a function of this library, and its text, if its file is older than this process.

    To make code of the text, which shows that it is the function's, takes as long as to parse it.
    """
    try:
        status = os.stat(code.co_filename)
    except OSError:
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) > STARTED - _COARSE:
        return None
    first, end = _around(lines, code.co_firstlineno - 1)
    return _parsed(code.co_filename, code.co_name, code.co_firstlineno, "\n" * first + "".join(lines[first:end]))


@functools.lru_cache(maxsize=512)
def _parsed(path: str, name: str, line: int, text: str) -> tuple[Any, str] | None:
    """Return the syntax tree of a text and the text itself, if it is one function of this name that begins there."""
    try:
        tree: Any = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError:
        return None
    match tree.body:
        case [ast.FunctionDef() as function] if (function.name, _first_line(function)) == (name, line):
            return function, text
    return None


def text_around(function: types.FunctionType) -> str:
    """Return the text of the outermost statement around a function in its file; nothing, if there is no such file."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    return "".join(lines[slice(*_around(lines, function.__code__.co_firstlineno - 1))])


def _around(lines: list[str], place: int) -> tuple[int, int]:
    """Return the first and the last line of the outermost statement around a line."""
    first = end = max(min(place, len(lines) - 1), 0)
    while first > 0 and lines[first][0] in _WITHIN:
        first -= 1
    while end < len(lines) and lines[end][0] == "@":
        end += 1
    end += 1
    while end < len(lines) and lines[end][0] in _WITHIN:
        end += 1
    return first, end


def _statement(lines: list[str], place: int) -> str:
    """Return the text of the outermost statement around a line, behind one import: quicker parsed than a file.

    What Python makes of calls depends on which names are imported. All other lines are empty. Where lines of a string
    are taken for statements, this is no text of Python's, or does not say what the function does.
    """
    first, end = _around(lines, place)
    kept, is_open = [], False
    for line in lines[:first]:
        is_import = is_open or line.startswith(("import ", "from "))
        is_open = is_import and ("(" in line or is_open) and ")" not in line
        kept += [line] * is_import
    text = "".join(lines[first:end])
    names = sorted(name for name in _imports("".join(kept)) if name in text)
    return ("import " + ", ".join(names) if names else "") + "\n" * first + text


@functools.lru_cache(maxsize=256)
def _imports(text: str) -> frozenset[str]:
    """Return the names that some imports give; nothing, if they are cut off."""
    try:
        statements: list[Any] = ast.parse(text).body
    except SyntaxError:
        return frozenset()
    names = [own.asname or own.name.partition(".")[0] for statement in statements for own in statement.names]
    return frozenset(names if "*" not in names else ())


@functools.lru_cache(maxsize=512)
def _functions(path: str, source: str, future: int) -> Mapping[tuple[int, str], list[tuple[Any, types.CodeType]]]:
    """Return the syntax trees and the code objects of the functions of a text, by first line and name.

    The text has the features of ``from __future__ import`` that flags say.
    """
    tree: Any = compile(source, path, "exec", future | ast.PyCF_ONLY_AST, dont_inherit=True)
    trees: dict[tuple[int, str], list[Any]] = {}
    codes = list(_codes(compile(tree, path, "exec", future, dont_inherit=True)))
    has_lambdas = any(code.co_name == "<lambda>" for code in codes)
    for node in _nodes(tree) if has_lambdas else _nodes(tree, (ast.expr,)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            trees.setdefault((_first_line(node), getattr(node, "name", "<lambda>")), []).append(node)
    found: dict[tuple[int, str], list[tuple[Any, types.CodeType]]] = {}
    for code in codes:
        key = code.co_firstlineno, code.co_name
        around = [node for node in trees.get(key, ()) if len(trees[key]) == 1 or _lies_within(code, node)]
        if around:  # of nested lambdas, the innermost
            found.setdefault(key, []).append((min(around, key=_extent), code))
    return found


def assigned(tree: ast.FunctionDef | ast.Lambda, in_expressions: bool) -> frozenset[str]:
    """Return the names to which a function assigns, by statements and perhaps in expressions."""
    if in_expressions:
        places: Iterable[Any] = (tree,)
    else:
        statements = list(_nodes(tree, (ast.expr,)))
        places = [place for own in statements for place in getattr(own, "targets", ())]
        places += [own.target for own in statements if hasattr(own, "target")]
    names = (own for place in places for own in _nodes(place) if isinstance(own, ast.Name))
    return frozenset(own.id for own in names if isinstance(own.ctx, ast.Store))


def _nodes(tree: ast.AST, leaves: tuple[type[ast.AST], ...] = (ast.operator, ast.expr_context)) -> Iterator[ast.AST]:
    """Yield the nodes of a syntax tree, quicker than `ast.walk`; none of some classes, nor below them."""
    left: list[Any] = [tree]
    while left:
        node = left.pop()
        yield node
        for name in node._fields:
            own = getattr(node, name, None)
            if own.__class__ is list:
                left += [each for each in own if isinstance(each, ast.AST) and not isinstance(each, leaves)]
            elif isinstance(own, ast.AST) and not isinstance(own, leaves):
                left.append(own)


def _first_line(node: Any) -> int:
    lines: list[int] = [node.lineno, *[own.lineno for own in getattr(node, "decorator_list", ())]]
    return min(lines)


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

"""Changes of one place in a source file, found in its syntax tree: what `tools.mutate` tries on the tests."""

from __future__ import annotations

import ast
import marshal
from dataclasses import dataclass

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&", ast.MatMult: "*",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.And: "or", ast.Or: "and",
}  # fmt: skip


# Arguments of a row of the op table that only tests read.
_DATA_OF_TESTS = {"samples", "errors", "domain", "special"}


@dataclass(frozen=True, order=True)
class Mutant:
    """A file with one place changed: at ``start`` to ``end``, offsets in bytes, stands ``text``."""

    file: str
    line: int
    start: int
    end: int
    text: str
    before: str
    context: str = ""

    @property
    def last_line(self) -> int:
        return self.line + self.before.count("\n")

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        before, after, context = (" ".join(text.split())[:100] for text in (self.before, self.text, self.context))
        return f"{self.file}:{self.line}: {before}  ->  {after}" + (f"    in: {context}" if context != before else "")


class _Finder(ast.NodeVisitor):
    """Collects the changes of a file; not those of annotations, messages, imports, checks of types and ``__all__``."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source, self.found = file, source, list[Mutant]()
        self.assigned: list[list[str]] = [[]]  # of each function around: the names that it binds, once for each place
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def change(self, node: ast.expr | ast.stmt, text: str, start: int = -1, end: int = -1) -> None:
        if start < 0:
            start, end = self.span(node)
        line = self.source[:start].count(b"\n") + 1
        context = self.source[self.starts[line - 1] : self.starts[line]].decode()
        self.found.append(Mutant(self.file, line, start, end, text, self.source[start:end].decode(), context))

    def between(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        """Change the operator that stands between two operands, whatever brackets and spaces surround it."""
        start, end = self.span(left)[1], self.span(right)[0]
        middle = self.source[start:end].decode()
        text = middle.strip("() \n\\")
        if "#" not in middle and text:  # shown with its operands
            shown = self.source[self.span(left)[0] : self.span(right)[1]].decode()
            new = shown[: len(self.source[self.span(left)[0] : start].decode())]
            new += middle.replace(text, _OPERATORS[type(operator)])
            new += self.source[end : self.span(right)[1]].decode()
            self.change(left, new, self.span(left)[0], self.span(right)[1])

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.between(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, node.comparators, node.ops, strict=False):
            self.between(left, right, operator)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        # All operators of a chain at once, as `a and b or c` would bind otherwise.
        start, text, position = *self.span(node)[:1], "", self.span(node)[0]
        for left, right in zip(node.values, node.values[1:], strict=False):
            end, begin = self.span(left)[1], self.span(right)[0]
            middle = self.source[end:begin].decode()
            word = "and" if isinstance(node.op, ast.And) else "or"
            text += self.source[position:end].decode() + middle.replace(word, _OPERATORS[type(node.op)], 1)
            position = begin
        text += self.source[position : self.span(node)[1]].decode()
        self.change(node, f"({text})", start, self.span(node)[1])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            start, end = self.span(node.operand)
            self.change(node, f"({self.source[start:end].decode()})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value is True or node.value is False:
            self.change(node, str(not node.value))
        elif isinstance(node.value, int):
            self.change(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self.change(node, repr(node.value * 1.5 or 1.0))

    def negate(self, test: ast.expr) -> None:
        if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
            start, end = self.span(test)
            self.change(test, f"(not ({self.source[start:end].decode()}))")
            self.visit(test)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.negate(node.test)
        self.statements(node.body)
        self.statements(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.negate(node.test)
        self.statements(node.body)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is None:
                self.change(item.context_expr, "__import__('contextlib').nullcontext()")
            self.visit(item.context_expr)
        self.statements(node.body)

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring, or an ellipsis
            if self.can_go(statement):
                self.change(statement, "pass")
            elif isinstance(statement, ast.Return) and statement.value is not None:
                self.change(statement, "return None")
            elif isinstance(statement, (ast.Break, ast.Continue)):
                self.change(statement, "continue" if isinstance(statement, ast.Break) else "break")
            self.visit(statement)

    def can_go(self, statement: ast.stmt) -> bool:
        """Say whether a statement can be removed, and no name is missing for it."""
        if isinstance(statement, ast.Assign):
            names = [name.id for target in statement.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            stored = [self.assigned[-1].count(name) > 1 for name in names]
            return not isinstance(statement.targets[0], (ast.Name, ast.Tuple)) or all(stored)
        return isinstance(statement, (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete))

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave messages alone: the types and words of errors have tests, their numbers hardly matter."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave what is only true."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not (isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(found, ast.Name) and found.id == "overload" for found in node.decorator_list):
            return
        for expression in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(expression)
        self.assigned.append(_stored(node))
        self.statements(node.body)
        self.assigned.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in ("Sample", "ErrorSample")):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _DATA_OF_TESTS:
            self.visit(node.value)

    def visit_Module(self, node: ast.Module) -> None:
        self.statements(node.body)

    def generic_visit(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.statements(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST):
                self.visit(value)


def _stored(function: ast.FunctionDef) -> list[str]:
    """Return the names that a function binds: its parameters, and what it assigns to."""
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return stored + [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]


def changes(file: str, source: bytes) -> list[Mutant]:
    """Return the changes of a file; some are not valid Python, or the same code (`matters`)."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found))


def matters(mutant: Mutant, source: bytes) -> bool:
    """Say whether a change is valid Python, and other code than the file's own."""
    try:
        old, new = (compile(text, mutant.file, "exec", dont_inherit=True) for text in (source, mutant.apply(source)))
    except (SyntaxError, SyntaxWarning):
        return False
    return marshal.dumps(old) != marshal.dumps(new)

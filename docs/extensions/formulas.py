"""Formulas of elementwise operations in LaTeX, read from the source of the op table's rules and forwards.

Operands are x, y and z, and a result is the next letter. A bar over a letter is the derivative of the loss by it.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from tapegrad.ops.table import public
from tapegrad.ops.table.op import Op

FAMILIES: Final = ("unary", "binary", "elementwise")
LONGEST: Final = 260  # characters; what is longer is better read in the source
_CASES, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)  # how tightly an expression holds together


class Tex(NamedTuple):
    """A part of a formula, and how tightly it holds together."""

    text: str
    level: int = _ATOM


class NoFormulaError(Exception):
    """A source that has something which is no formula."""


_GREEK: Final = ("alpha", "beta", "gamma", "delta", "lambda", "mu", "sigma", "tau", "theta", "eta")
_NAMED: Final = {
    "exp": "e^{%s}", "expm1": "e^{%s} - 1", "exp2": "2^{%s}", "sqrt": r"\sqrt{%s}", "rsqrt": r"\frac{1}{\sqrt{%s}}",
    "abs": r"\left|%s\right|", "absolute": r"\left|%s\right|", "fabs": r"\left|%s\right|",
    "floor": r"\lfloor %s \rfloor", "ceil": r"\lceil %s \rceil", "log1p": r"\log(1 + %s)",
    "square": r"\left(%s\right)^2", "reciprocal": r"\frac{1}{%s}",
    "floor_divide": r"\left\lfloor \frac{%s}{%s} \right\rfloor", "trunc_divide": r"\operatorname{trunc}\frac{%s}{%s}",
    "pow": r"{\left(%s\right)}^{%s}",
}  # fmt: skip
_LEVELS: Final = {
    "expm1": _SUM, "exp": _POWER, "exp2": _POWER, "square": _POWER, "pow": _POWER, "rsqrt": _PRODUCT,
    "reciprocal": _PRODUCT, "trunc_divide": _PRODUCT,
}  # fmt: skip
_FUNCTIONS: Final = {
    **{name: rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log")},
    "log2": r"\log_2", "log10": r"\log_{10}", "sigmoid": r"\sigma", "gamma": r"\Gamma", "digamma": r"\psi",
    "lgamma": r"\log\Gamma", "trigamma": r"\psi'", "zeta": r"\zeta", "maximum": r"\max", "minimum": r"\min",
    "asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan", "sign": r"\operatorname{sgn}",
    "sgn": r"\operatorname{sgn}", "copysign": r"\operatorname{copysign}", "beta": r"\mathrm{B}",
    **{f"{kind}{order}": f"{kind.upper()}_{order}" for kind in "jyik" for order in "01"},
    **{f"bessel_{kind}2": f"{kind.upper()}_2" for kind in "jyik"}, "airy_ai_prime": r"\operatorname{Ai}'",
}  # fmt: skip
_WITHOUT_PARENTHESES: Final = {rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log")}
_CHOICE: Final = r"\begin{cases}"
_OPERATORS: Final = {ast.Lt: "<", ast.LtE: r"\le", ast.Gt: ">", ast.GtE: r"\ge", ast.Eq: "=", ast.NotEq: r"\ne"}
# Numbers that formulas have: what they are made of.
_NUMBERS: Final = {
    math.sqrt(math.pi) / 2: r"\tfrac{\sqrt\pi}{2}", 2 / math.sqrt(math.pi): r"\tfrac{2}{\sqrt\pi}",
    math.sqrt(2 / math.pi): r"\sqrt{2/\pi}", 1 / math.sqrt(2 * math.pi): r"\tfrac{1}{\sqrt{2\pi}}",
    math.sqrt(2 * math.pi): r"\sqrt{2\pi}", math.log(2): r"\log 2", math.log(10): r"\log 10", math.pi: r"\pi",
    math.sqrt(0.5): r"\tfrac{1}{\sqrt 2}", math.sqrt(2): r"\sqrt 2", 1 / math.pi: r"\tfrac{1}{\pi}",
    math.sqrt(math.pi): r"\sqrt\pi", 1 / math.log(2): r"\tfrac{1}{\log 2}", math.pi / 2: r"\tfrac{\pi}{2}",
}  # fmt: skip


@functools.cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


def _definition(code: CodeType) -> ast.Lambda | ast.FunctionDef:
    """Return the source of a function as a tree: that of its arguments which spans its instructions."""
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    for node in ast.walk(_tree(code.co_filename)):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            own = [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
            first, last = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
            named = isinstance(node, ast.Lambda) or node.name == code.co_name
            if own == names and named and all(first <= place <= last for place in places):
                return node
    raise NoFormulaError


def _number(value: float) -> Tex:
    if math.isnan(value):
        return Tex(r"\mathrm{nan}")
    for known, text in _NUMBERS.items():
        if math.isclose(abs(value), known, rel_tol=1e-12):
            return Tex(f"-{text}", _SIGN) if value < 0 else Tex(text, _PRODUCT)
    if math.isinf(value):
        return Tex(r"\infty") if value > 0 else Tex(r"-\infty", _SIGN)
    digits, _, exponent = f"{value:.6g}".partition("e")
    text = rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits
    return Tex(text.replace(r"1 \cdot 10", "10"), _SIGN if value < 0 else _PRODUCT if exponent else _ATOM)


def _held(part: Tex, level: int) -> str:
    """Return a part as it stands within something that holds together as tightly as `level`."""
    if part.level == _CASES:
        return rf"{_CHOICE} {part.text} \end{{cases}}"
    return part.text if part.level >= level else rf"\left({part.text}\right)"


def _joined(factors: list[Tex], signed: bool = False) -> str:
    """Return a product as text: numbers first, equal factors as a power."""
    factors = sorted((part for part in factors if part.text != "1"), key=lambda part: not part.text[:1].isdigit())
    if len(factors) == 1 and not signed:
        return _held(factors[0], _SUM)
    texts: list[str] = []
    for part in dict.fromkeys(factors):
        count = factors.count(part)
        text = f"{{{_held(part, _ATOM)}}}^{{{count}}}" if count > 1 else _held(part, _PRODUCT)
        texts.append(rf"\cdot {text}" if texts and text[:1].isdigit() else text)
    return r"\,".join(texts).replace(r"\,\cdot", r"\cdot")


class _Reader:
    """Reads the expressions of one function, whose names mean `known`."""

    def __init__(self, function: FunctionType, known: Mapping[str, Tex], depth: int = 0) -> None:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.space = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.known, self.depth = dict(known), depth
        self.answers: dict[str, bool] = {}  # of the choices around

    def read(self, node: ast.AST) -> Tex:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise NoFormulaError
        return method(node)

    def _constant(self, node: ast.Constant) -> Tex:
        if not isinstance(node.value, (int, float)) or isinstance(node.value, bool):
            raise NoFormulaError
        return _number(node.value)

    def _name(self, node: ast.Name) -> Tex:
        if node.id in self.known:
            return self.known[node.id]
        value = self.space.get(node.id)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _number(value)
        raise NoFormulaError

    def _attribute(self, node: ast.Attribute) -> Tex:
        if isinstance(node.value, ast.Name) and node.value.id in ("math", "np"):
            value = getattr(math, node.attr, None)
            if isinstance(value, float):
                return _number(value)
        raise NoFormulaError

    def _within(self, node: ast.AST) -> Tex:
        """Read a part that stands in a function, a fraction or an exponent, where there is no room for a choice."""
        part = self.read(node)
        if part.level == _CASES or _CHOICE in part.text:
            raise NoFormulaError
        return part

    def _unaryop(self, node: ast.UnaryOp) -> Tex:
        if isinstance(node.op, ast.USub):
            return self._product(node)
        if isinstance(node.op, ast.Invert):
            return Tex(rf"\neg {_held(self._within(node.operand), _POWER)}", _SIGN)
        raise NoFormulaError

    def _binop(self, node: ast.BinOp) -> Tex:
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return self._product(node)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self.read(node.left), self.read(node.right)
            sign, level = ("+", _SUM) if isinstance(node.op, ast.Add) else ("-", _PRODUCT)
            if right.level == _SIGN:
                sign, right = ("-" if sign == "+" else "+"), Tex(right.text.removeprefix("-"), _PRODUCT)
            return Tex(f"{_held(left, _SUM)} {sign} {_held(right, level)}", _SUM)
        left, right = self._within(node.left), self._within(node.right)
        if isinstance(node.op, ast.Pow):
            return Tex(f"{{{_held(left, _ATOM)}}}^{{{right.text}}}", _POWER)
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            sign = r"\wedge" if isinstance(node.op, ast.BitAnd) else r"\vee"
            return Tex(f"{left.text} {sign} {right.text}", _SUM)
        raise NoFormulaError

    def _product(self, node: ast.AST) -> Tex:
        """Read a product or quotient of any number of factors: numbers first, equal factors as a power."""
        above: list[Tex] = []
        below: list[Tex] = []
        negative = self._collect(node, above, below)
        if below:
            if any(part.level == _CASES or _CHOICE in part.text for part in (*above, *below)):
                raise NoFormulaError
            top = _joined(above) or "1"
            text = rf"\frac{{{top}}}{{{_joined(below)}}}"
        else:
            text = _joined(above, negative) or "1"
        return Tex(f"-{text}", _SIGN) if negative else Tex(text, _PRODUCT)

    def _collect(self, node: ast.AST, above: list[Tex], below: list[Tex]) -> bool:
        """Put the factors of an expression into two lists; return whether its sign is negative."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return not self._collect(node.operand, above, below)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._collect(node.left, above, below) ^ self._collect(node.right, above, below)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._collect(node.left, above, below) ^ self._collect(node.right, below, above)
        part = self.read(node)
        if part.level == _SIGN and part.text.startswith("-"):
            above.append(Tex(part.text.removeprefix("-"), _PRODUCT))
            return True
        above.append(part)
        return False

    def _compare(self, node: ast.Compare) -> Tex:
        text = self._within(node.left).text
        for operator, right in zip(node.ops, node.comparators, strict=True):
            other = self._within(right).text
            if type(operator) not in _OPERATORS:
                raise NoFormulaError
            if text == other:
                return Tex(rf"{text} \text{{ is {'not ' * isinstance(operator, ast.Eq)}nan}}", _SUM)
            text += f" {_OPERATORS[type(operator)]} {other}"
        return Tex(text, _SUM)

    def _ifexp(self, node: ast.IfExp) -> Tex:
        return self._where(node.test, node.body, node.orelse)

    def _where(self, test: ast.AST, yes: ast.AST, no: ast.AST) -> Tex:
        """Read a choice. Within a branch the same question has the same answer: it keeps the other branch finite."""
        question = self._within(test).text
        if question in self.answers:
            return self.read(yes if self.answers[question] else no)
        parts = []
        for answer, branch in ((True, yes), (False, no)):
            self.answers[question] = answer
            parts.append(self.read(branch))
            del self.answers[question]
        first, other = parts
        if first == other:
            return first
        if first.level == _CASES:
            raise NoFormulaError
        rest = other.text if other.level == _CASES else rf"{other.text} & \text{{else}}"
        return Tex(rf"{first.text} & {question} \\ {rest}", _CASES)

    def _call(self, node: ast.Call) -> Tex:
        if node.keywords:
            raise NoFormulaError
        if isinstance(node.func, ast.Name):
            return self._called(node.func.id, node.args)
        if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
            raise NoFormulaError
        name, module = node.func.attr, node.func.value.id
        if module == "math" and all(isinstance(one, ast.Constant) for one in node.args):
            return _number(getattr(math, name)(*map(ast.literal_eval, node.args)))
        if module not in ("xp", "np", "math"):
            raise NoFormulaError
        if name == "where":
            return self._where(*node.args)
        if name == "flat_by":  # says something about the graph, and nothing about the value
            return self.read(node.args[0])
        return self._function(name, [self._within(one) for one in node.args])

    def _function(self, name: str, arguments: list[Tex]) -> Tex:
        texts = [one.text for one in arguments]
        if name == "conj":
            return Tex(f"{{{_held(arguments[0], _ATOM)}}}^*", _POWER)
        if name in _NAMED:
            return Tex(_NAMED[name] % tuple(texts), _LEVELS.get(name, _ATOM))
        if len(arguments) == 2 and re.fullmatch("[jyik]v", name):
            return Tex(f"{name[0].upper()}_{{{texts[0]}}}({texts[1]})")
        shown = _FUNCTIONS.get(name)
        if shown is None and any(public.find(space, name) for space in public.NAMESPACES):
            shown = rf"\operatorname{{{name}}}".replace("_", r"\_")
        if shown is None:
            raise NoFormulaError
        if len(texts) == 1 and len(texts[0]) == 1 and shown in _WITHOUT_PARENTHESES:
            return Tex(f"{shown} {texts[0]}", _PRODUCT)
        large = any(tall in text for text in texts for tall in (r"\frac", r"\left", "^"))
        left, right = (r"\left(", r"\right)") if large else ("(", ")")
        return Tex(f"{shown}{left}{', '.join(texts)}{right}")

    def _called(self, name: str, arguments: list[ast.expr]) -> Tex:
        """Read the body of a function of the same file, with the arguments in place of its parameters."""
        function = self.space.get(name)
        if not isinstance(function, FunctionType) or self.depth > 3:
            raise NoFormulaError
        values = [self._within(one) for one in arguments]
        if hasattr(function, "op"):
            return self._function(function.__name__, values)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        return _body(function, dict(zip(names, values, strict=False)), self.depth + 1)


def _body(function: FunctionType, known: Mapping[str, Tex], depth: int = 0) -> Tex:
    """Read what a function returns: an expression, or assignments and an expression."""
    node = _definition(function.__code__)
    reader = _Reader(function, known, depth)
    if isinstance(node, ast.Lambda):
        return reader.read(node.body)
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            reader.known[statement.targets[0].id] = reader.read(statement.value)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            return reader.read(statement.value)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            raise NoFormulaError
    raise NoFormulaError


def _known(op: Op) -> dict[str, Tex]:
    result = result_of(op)
    known = {name: Tex(letter_of(name)) for name in (*op.operands, *op.attrs)}
    return {**known, "out": Tex(result), "ct": Tex(rf"\bar{{{result}}}")}


def letter_of(name: str) -> str:
    """Return how the name of an operand or parameter is written."""
    if name in _GREEK:
        return rf"\{name}"
    text = name.replace("_", r"\_")
    return rf"\mathit{{{text}}}" if len(name) > 1 else name


def result_of(op: Op) -> str:
    """Return the letter of the result."""
    return next(letter for letter in "yzw" if letter not in op.operands)


def _of(function: Callable[..., Any] | None, op: Op, names: Collection[str]) -> str | None:
    """Return a formula with the operands that users know, or None."""
    if not isinstance(function, FunctionType):
        return None
    known = _known(op)
    for name in {*op.operands, *op.attrs} - {*"xyz", *names}:
        del known[name]
    try:
        text = _held(_body(function, known), _SUM)
    except (NoFormulaError, OSError, SyntaxError):
        return None
    return text if len(text) <= LONGEST else None


def value(op: Op, names: Collection[str] = ()) -> str | None:
    """Return the formula of the result, if the op has one; `names` are the parameters that users know."""
    found = _of(op.fx, op, names)
    return found and f"{result_of(op)} = {found}"


def derivatives(op: Op, names: Collection[str] = ()) -> list[str]:
    """Return the rules of an elementwise op as formulas of its operands' cotangents, as far as they are formulas."""
    if op.family not in FAMILIES or callable(op.vjp):
        return []
    pairs = [(name, _of(rule, op, names)) for name, rule in zip(op.operands, op.vjp, strict=True) if callable(rule)]
    return [rf"\bar{{{_known(op)[name].text}}} = {text}" for name, text in pairs if text]

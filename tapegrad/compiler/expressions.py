"""From the expressions of a function of words to LLVM; `translation.py` emits the statements."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from tapegrad.compiler.intrinsics import Words
from tapegrad.runtime.structs import WORD, Array, Field, Struct, Table, sizeof, struct_hints

__all__ = ["Expressions", "NotOfWordsError", "constant", "method_for"]

_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OPERATIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip


class NotOfWordsError(Exception):
    """The function is no function of words, or its source text is missing."""


class Expressions:
    """Emits the expressions of one function. A variable stands on the stack; LLVM makes it a register.

    A method with the name of a class in `ast` emits that syntax.

    Parameters
    ----------
    function : llvmlite.ir.Function
        Without a body.
    outside : mapping
        The values of the function's global names and closure cells.
    callee : callable
        From a Python function that it calls to LLVM's function.
    kinds : mapping
        The structs to which parameters point. The structs of variables follow from their first values.
    """

    def __init__(
        self,
        function: Any,
        outside: Mapping[str, Any],
        callee: Callable[[types.FunctionType], Any],
        kinds: Mapping[str, type[int]],
    ) -> None:
        from llvmlite import ir

        self.function, self.outside, self.callee, self.kinds = function, outside, callee, dict(kinds)
        self.word, self.half, self.bit = ir.IntType(64), ir.IntType(32), ir.IntType(1)
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.places: dict[str, Any] = {}

    # --- structs -----------------------------------------------------------------------------------------------------

    def kind(self, node: ast.expr) -> type[int]:
        """Return the struct to which an expression points; int if there is none."""
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, int)
        if isinstance(node, ast.Attribute):
            return self.field(node).type
        if isinstance(node, ast.Subscript):
            element: type[int] = self.sequence(node.value).element
            return element
        if isinstance(node, ast.IfExp):
            one, other = self.kind(node.body), self.kind(node.orelse)
            return one if one is other else int
        if isinstance(node, ast.Call):
            if self.is_step(node):
                assert isinstance(node.func, ast.Attribute)
                return self.kind(node.func.value)
            function = self.called(node)
            if isinstance(function, type) and issubclass(function, Struct):
                return function
            if isinstance(function, types.FunctionType):
                return struct_hints(function).get("return", int)
        return int

    def field(self, node: ast.Attribute) -> Field:
        kind = self.kind(node.value)
        field = kind.field(node.attr) if issubclass(kind, Struct) else None
        if field is None:
            raise NotOfWordsError(f"line {node.lineno}: {kind.__name__} has no field {node.attr}")
        return field

    def sequence(self, node: ast.expr) -> Any:
        kind = self.kind(node)
        if not issubclass(kind, (Array, Table)):
            raise NotOfWordsError(f"line {node.lineno}: {kind.__name__} is neither an Array nor a Table")
        return kind

    def is_step(self, node: ast.Call) -> bool:
        """Whether an expression is ``array.at(index)``."""
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "at" or len(node.args) != 1:
            return False
        return issubclass(self.kind(function.value), Array)

    def pointer(self, node: ast.expr) -> tuple[Any, Any]:
        """Return the pointer to a variable, a field or an element, and its type in LLVM."""
        if isinstance(node, ast.Name):
            return self.places[node.id], self.word
        if isinstance(node, ast.Attribute) and not self.field(node).is_embedded:
            field = self.field(node)
            kind = self.word if field.size == WORD else self.half
            return self.behind(self.value(node.value), self.word(field.offset // field.size), kind), kind
        if isinstance(node, ast.Subscript) and issubclass(self.sequence(node.value), Array):
            return self.behind(self.value(node.value), self.value(node.slice), self.word), self.word
        raise NotOfWordsError(f"line {node.lineno}: {ast.unparse(node)} is no word")

    def behind(self, address: Any, index: Any, kind: Any) -> Any:
        pointer = self.builder.inttoptr(address, kind.as_pointer())
        return self.builder.gep(pointer, [index], inbounds=True, source_etype=kind)

    def read(self, pointer: Any, kind: Any) -> Any:
        value = self.builder.load(pointer, typ=kind)
        return value if kind == self.word else self.builder.sext(value, self.word)

    def write(self, value: Any, pointer: Any, kind: Any) -> None:
        self.builder.store(value if kind == self.word else self.builder.trunc(value, kind), pointer)

    def Attribute(self, node: ast.Attribute) -> Any:
        field = self.field(node)
        if field.is_embedded:
            return self.builder.add(self.value(node.value), self.word(field.offset))
        return self.read(*self.pointer(node))

    def Subscript(self, node: ast.Subscript) -> Any:
        kind = self.sequence(node.value)
        if issubclass(kind, Table):
            return self.step(node.value, node.slice, sizeof(kind.element))
        return self.read(*self.pointer(node))

    def step(self, base: ast.expr, index: ast.expr, size: int) -> Any:
        start = self.value(base)
        return self.builder.add(start, self.builder.mul(self.value(index), self.word(size)))

    # --- values ------------------------------------------------------------------------------------------------------

    def any(self, node: ast.expr) -> Any:
        """Emit an expression: a word, or a bit if it is a truth value."""
        return method_for(self, node)(node)

    def value(self, node: ast.expr) -> Any:
        """Emit an expression as a word."""
        return self.as_word(self.any(node))

    def as_word(self, value: Any) -> Any:
        return value if value.type == self.word else self.builder.zext(value, self.word)

    def truth(self, node: ast.expr) -> Any:
        """Emit an expression as a bit."""
        value = self.any(node)
        return value if value.type == self.bit else self.builder.icmp_signed("!=", value, self.word(0))

    def Constant(self, node: ast.Constant) -> Any:
        return self.literal(node.value)

    def literal(self, value: Any) -> Any:
        if not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
            raise NotOfWordsError
        return self.word(int(value))

    def Name(self, node: ast.Name) -> Any:
        if node.id in self.places:
            return self.builder.load(self.places[node.id], typ=self.word)
        return self.literal(self.outside.get(node.id))

    def BinOp(self, node: ast.BinOp) -> Any:
        return self.operation(node.op, self.value(node.left), self.value(node.right))

    def operation(self, operator: ast.operator, a: Any, b: Any) -> Any:
        name = _OPERATIONS.get(type(operator))
        if name is not None:
            return getattr(self.builder, name)(a, b)
        if not isinstance(operator, (ast.FloorDiv, ast.Mod)):
            raise NotOfWordsError
        divides = isinstance(operator, ast.FloorDiv)
        divisor = constant(b)
        if divisor and divisor > 0 and divisor & (divisor - 1) == 0:
            power = self.word(divisor.bit_length() - 1)
            return self.builder.ashr(a, power) if divides else self.builder.and_(a, self.word(divisor - 1))
        return self.floor(a, b, divides)

    def floor(self, a: Any, b: Any, divides: bool) -> Any:
        """Emit a division that rounds down, or its remainder. The CPU may trap if the divisor is 0 or -1."""
        builder, zero = self.builder, self.word(0)
        special = builder.icmp_unsigned("<=", builder.add(b, self.word(1)), self.word(1))
        divisor = builder.select(special, self.word(1), b)
        quotient, rest = builder.sdiv(a, divisor), builder.srem(a, divisor)
        signs_differ = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
        down = builder.and_(builder.icmp_signed("!=", rest, zero), signs_differ)
        if divides:
            result = builder.sub(quotient, builder.zext(down, self.word))
            return builder.select(special, builder.mul(a, b), result)  # by -1 or by 0
        return builder.select(down, builder.add(rest, divisor), rest)

    def UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.builder.not_(self.truth(node.operand))
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            number = constant(value)
            return self.builder.neg(value) if number is None else self.literal(-number)
        if isinstance(node.op, ast.Invert):
            return self.builder.not_(value)
        raise NotOfWordsError

    def Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARISONS:
            raise NotOfWordsError
        left, right = self.value(node.left), self.value(node.comparators[0])
        return self.builder.icmp_signed(_COMPARISONS[type(node.ops[0])], left, right)

    def BoolOp(self, node: ast.BoolOp) -> Any:
        """Emit ``and`` or ``or``: the first value that decides, or the last."""
        first, *others = node.values
        value = self.any(first)
        for other in others:
            value = self.either(value, other, isinstance(node.op, ast.Or))
        return value

    def either(self, value: Any, other: ast.expr, decides: bool) -> Any:
        word = self.as_word(value)
        truth = value if value.type == self.bit else self.builder.icmp_signed("!=", value, self.word(0))
        more, after = self.function.append_basic_block(), self.function.append_basic_block()
        start = self.builder.block
        self.builder.cbranch(truth, after, more) if decides else self.builder.cbranch(truth, more, after)
        self.builder.position_at_end(more)
        second = self.any(other)
        both_bits = value.type == second.type == self.bit
        second = second if both_bits else self.as_word(second)
        end = self.builder.block
        self.builder.branch(after)
        self.builder.position_at_end(after)
        return self.phi((value if both_bits else word, start), (second, end))

    def IfExp(self, node: ast.IfExp) -> Any:
        yes, no, after = (self.function.append_basic_block() for _ in range(3))
        self.builder.cbranch(self.truth(node.test), yes, no)
        sides = []
        for block, expr in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            sides.append((self.value(expr), self.builder.block))
            self.builder.branch(after)
        self.builder.position_at_end(after)
        return self.phi(*sides)

    def phi(self, *sides: tuple[Any, Any]) -> Any:
        phi = self.builder.phi(sides[0][0].type)
        for value, block in sides:
            phi.add_incoming(value, block)
        return phi

    def called(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):  # Array[Entry](...)
            kind, element = self.outside.get(node.func.value.id), self.outside.get(ast.unparse(node.func.slice))
            if kind in (Array, Table) and element is not None:
                return kind[element]
        if not isinstance(node.func, ast.Name) or node.keywords or node.func.id in self.places:
            raise NotOfWordsError
        return self.outside.get(node.func.id)

    def Call(self, node: ast.Call) -> Any:
        if self.is_step(node):
            assert isinstance(node.func, ast.Attribute)
            return self.step(node.func.value, node.args[0], WORD)
        function = self.called(node)
        args = [self.value(arg) for arg in node.args]
        if isinstance(function, type) and issubclass(function, Struct) and len(args) == 1:
            return args[0]
        if isinstance(function, Words):
            out = function.function(self.builder, *args)
            return self.word(0) if out is None else out
        if function in (min, max) and len(args) > 1:
            best = args[0]
            for other in args[1:]:
                is_better = self.builder.icmp_signed("<" if function is min else ">", other, best)
                best = self.builder.select(is_better, other, best)
            return best
        if not isinstance(function, types.FunctionType) or len(args) != function.__code__.co_argcount:
            raise NotOfWordsError
        return self.builder.call(self.callee(function), args)


def method_for(owner: object, node: ast.AST) -> Callable[..., Any]:
    """Return the method that emits a syntax node: it has the name of the node's class."""
    method: Callable[..., Any] | None = getattr(owner, type(node).__name__, None)
    if method is None:
        raise NotOfWordsError
    return method


def constant(value: Any) -> int | None:
    """Return the number of an LLVM value that is a constant; None for any other value."""
    number = getattr(value, "constant", None)
    return number if isinstance(number, int) else None

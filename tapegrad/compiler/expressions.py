"""From the expressions of a function that is compiled to LLVM; `translation.py` emits the statements."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import arithmetic, cast, compared, divided, negated, quotient, truth
from tapegrad.compiler.fingerprint import is_namespace
from tapegrad.compiler.intrinsics import Intrinsic, Words
from tapegrad.compiler.mathematics import FUNCTIONS, power
from tapegrad.compiler.values import Known, NotCompilableError, Value, constant, known, word
from tapegrad.compiler.variables import Variables
from tapegrad.runtime.structs import WORD, Array, Field, Struct, Table, sizeof

__all__ = ["Expressions", "Inner", "method_for"]

_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OPERATIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip


class Inner:
    """A lambda within a function that is compiled: its tree, and the values of names that it reads from outside."""

    def __init__(self, tree: ast.Lambda, outside: Mapping[str, Any]) -> None:
        self.tree, self.outside = tree, outside


class Expressions(Variables):
    """Emits the expressions of one function. A method with the name of a class in `ast` emits that syntax.

    Parameters
    ----------
    function, wider
        As for `Variables`.
    outside : mapping
        The values of the function's global names and closure cells.
    module : tapegrad.compiler.frontend.Module
        Has the functions that it calls.
    """

    def __init__(self, function: Any, wider: dict[str, Any], outside: Mapping[str, Any], module: Any) -> None:
        super().__init__(function, wider)
        self.outside, self.module = outside, module
        self.full, self.half = values.type_of("int64"), values.type_of("int32")

    # --- structs -----------------------------------------------------------------------------------------------------

    def pointer(self, node: ast.expr) -> tuple[Any, Any, Any]:
        """Return the pointer to a field or an element, its type in LLVM, and the kind of what stands there."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.within(self.value(node.value), node)
        raise NotCompilableError(f"line {node.lineno}: {ast.unparse(node)} is no place for a value")

    def within(self, owner: Value, node: ast.Attribute | ast.Subscript) -> tuple[Any, Any, Any]:
        """Return the same of a struct or an array that was emitted already."""
        if isinstance(node, ast.Attribute):
            field = _field(owner, node)
            if not field.is_embedded:
                stored, place = self.full if field.size == WORD else self.half, word(field.offset // field.size).one
                return self.behind(owner.one, place, stored), stored, _of_type(field.type)
        elif _is(owner.kind, Array):
            index = self.word(node.slice)
            return self.behind(owner.one, index, index.type), index.type, _of_type(owner.kind.element)
        raise NotCompilableError(f"line {node.lineno}: {ast.unparse(node)} is no place for a value")

    def behind(self, address: Any, index: Any, kind: Any) -> Any:
        pointer = self.pointer_at(address, kind)
        if values.number_of(index) == 0:
            return pointer
        return self.builder.gep(pointer, [index], inbounds=True, source_etype=kind)

    def read(self, pointer: Any, stored: Any, kind: Any) -> Value:
        number = self.builder.load(pointer, typ=stored)
        return Value(kind, (number if stored != self.half else self.builder.sext(number, self.full),))

    def write(self, value: Value, pointer: Any, stored: Any, kind: Any) -> None:
        number = cast(self.builder, value, "int64").one
        self.builder.store(number if stored != self.half else self.builder.trunc(number, stored), pointer)

    def Attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if isinstance(owner.kind, Known):
            space, root = owner.kind.value, node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name) or root.id in self.names:
                raise NotCompilableError(f"line {node.lineno}: {ast.unparse(node)}, a namespace as a value")
            if (is_namespace(space) or isinstance(space, types.ModuleType)) and hasattr(space, node.attr):
                return known(getattr(space, node.attr))
        elif node.attr in ("real", "imag") and isinstance(owner.kind, str):
            return values.parts(owner)[node.attr == "imag"]
        elif isinstance(owner.kind, type):
            field = _field(owner, node)
            if field.is_embedded:
                return Value(_of_type(field.type), (self.builder.add(owner.one, word(field.offset).one),))
            return self.read(*self.within(owner, node))
        raise NotCompilableError(f"line {node.lineno}: {ast.unparse(node)}")

    def Subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if type(owner.kind) is tuple:
            own = values.elements_of(owner)
            if isinstance(node.slice, ast.Slice):
                places = (node.slice.lower, node.slice.upper, node.slice.step)
                return values.packed(own[slice(*map(self.index, places))])
            place = self.index(node.slice)
            if not -len(own) <= place < len(own):
                raise NotCompilableError(f"line {node.lineno}: element {place} of {len(own)}")
            chosen: Value = own[place]
            return chosen
        if _is(owner.kind, Table):
            return self.step(owner, node.slice, sizeof(owner.kind.element), _of_type(owner.kind.element))
        if isinstance(owner.kind, Known) and owner.kind.value in (Array, Table):  # Array[Entry](...)
            element = self.value(node.slice).kind
            return known(owner.kind.value[element.value])
        return self.read(*self.within(owner, node))

    def index(self, node: Any) -> Any:
        """Return an index into a tuple, which must be known."""
        if node is None:
            return None
        number = constant(self.value(node))
        if number is None:
            raise NotCompilableError(f"line {node.lineno}: an index of a tuple that is not known")
        return number

    def step(self, base: Value, index: ast.expr, size: int, kind: Any) -> Value:
        distance = self.builder.mul(self.word(index), word(size).one)
        return Value(kind, (self.builder.add(base.one, distance),))

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """Emit an expression."""
        found: Value = (getattr(self, node.__class__.__name__, None) or method_for(self, node))(node)
        return found

    def word(self, node: ast.expr) -> Any:
        """Emit an expression as a word."""
        return cast(self.builder, self.value(node), "int64").one

    def truth(self, node: ast.expr) -> Any:
        """Emit an expression as a bit."""
        return truth(self.builder, self.value(node))

    def go_by(self, test: ast.expr, yes: Any, no: Any) -> None:
        """Emit the jump to one of two blocks, and on the way only as much of a test as decides.

        A block to which there are no `ways` is not emitted: what would stand there may not even make sense.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.go_by(test.operand, no, yes)
        elif isinstance(test, ast.BoolOp):
            first, *others = test.values
            rest = others[0] if len(others) == 1 else ast.BoolOp(test.op, others)
            more = self.function.append_basic_block()
            self.go_by(first, *((yes, more) if isinstance(test.op, ast.Or) else (more, no)))
            if self.goes_on_at(more):
                self.go_by(rest, yes, no)
        else:
            bit = self.truth(test)
            number = values.number_of(bit)
            if number is None:
                self.builder.cbranch(bit, yes, no)
                self.come_from(self.builder.block, yes, no)
            else:
                self.builder.branch(yes if number else no)
                self.come_from(self.builder.block, yes if number else no)

    def Constant(self, node: ast.Constant) -> Value:
        return known(node.value)

    def Tuple(self, node: ast.Tuple) -> Value:
        return values.packed([self.value(own) for own in node.elts])

    def Name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.load(node.id)
        if node.id in self.outside:
            return known(self.outside[node.id])
        raise NotCompilableError(f"line {node.lineno}: {node.id} is not known")

    def BinOp(self, node: ast.BinOp) -> Value:
        return self.operation(node.op, self.value(node.left), self.value(node.right))

    def operation(self, operator: ast.operator, a: Value, b: Value) -> Value:
        name = _OPERATIONS.get(type(operator))
        if name is not None:
            return arithmetic(self.builder, name, a, b)
        if isinstance(operator, ast.Div):
            return divided(self.builder, a, b)
        if isinstance(operator, ast.Pow):
            return power(self.builder, a, b)
        if isinstance(operator, (ast.FloorDiv, ast.Mod)):
            return quotient(self.builder, a, b, isinstance(operator, ast.FloorDiv))
        raise NotCompilableError(type(operator).__name__)

    def UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value("bool", (negated(self.builder, self.truth(node.operand)),))
        value = self.value(node.operand)
        number = constant(value)
        if isinstance(node.op, ast.USub) and number is not None:
            return known(-number)
        if isinstance(node.op, ast.USub) and (values.is_float(value.kind) or values.is_complex(value.kind)):
            return Value(value.kind, tuple(map(self.builder.fneg, value.parts)))
        if isinstance(node.op, ast.USub):
            return arithmetic(self.builder, "sub", word(0), value)
        if isinstance(node.op, ast.Invert):
            return arithmetic(self.builder, "xor", value, known(True) if value.kind == "bool" else word(-1))
        return value

    def Compare(self, node: ast.Compare) -> Value:
        """Emit a comparison; of several in a row, all are computed."""
        own = [self.value(each) for each in (node.left, *node.comparators)]
        first, *others = map(self.compared, node.ops, own, own[1:])
        for other in others:
            first = arithmetic(self.builder, "and", first, other)
        return first

    def compared(self, sign: ast.cmpop, left: Value, right: Value) -> Value:
        are_known = isinstance(left.kind, Known) or isinstance(right.kind, Known)
        if isinstance(sign, (ast.Is, ast.IsNot)) and not are_known:
            raise NotCompilableError("the identity of numbers")
        if isinstance(sign, (ast.Is, ast.IsNot)) or (are_known and isinstance(sign, (ast.Eq, ast.NotEq))):
            return known((are_known and left.kind == right.kind) == isinstance(sign, (ast.Is, ast.Eq)))
        if type(sign) not in _COMPARISONS:
            raise NotCompilableError(type(sign).__name__)
        return compared(self.builder, _COMPARISONS[type(sign)], left, right)

    def BoolOp(self, node: ast.BoolOp) -> Value:
        """Emit ``and`` or ``or``: the first value that decides, or the last."""
        first, *others = node.values
        value = self.value(first)
        for other in others:
            value = self.either(value, other, isinstance(node.op, ast.Or))
        return value

    def either(self, value: Value, other: ast.expr, decides: bool) -> Value:
        bit = truth(self.builder, value)
        number = values.number_of(bit)
        if number is not None:
            return value if bool(number) == decides else self.value(other)
        more, after = (self.function.append_basic_block() for _ in range(2))
        ends = [(value, self.builder.block)]
        self.builder.cbranch(bit, *((after, more) if decides else (more, after)))
        self.come_from(self.builder.block, more)
        self.go_on_at(more)
        ends.append((self.value(other), self.builder.block))
        self.builder.branch(after)
        return self.joined(ends, after)

    def IfExp(self, node: ast.IfExp) -> Value:
        blocks = [self.function.append_basic_block() for _ in range(2)]
        self.go_by(node.test, *blocks)
        after, ends = self.function.append_basic_block(), []
        for block, expr in zip(blocks, (node.body, node.orelse), strict=True):
            if self.goes_on_at(block):
                ends.append((self.value(expr), self.builder.block))
                self.builder.branch(after)
        return self.joined(ends, after)

    def NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.assign(node.target.id, value)
        return value

    def Lambda(self, node: ast.Lambda) -> Value:
        """Return a function that knows what is outside of this one, but none of its variables."""
        names = {own.id for own in ast.walk(node) if isinstance(own, ast.Name)} - {own.arg for own in node.args.args}
        if names & self.names:
            raise NotCompilableError(f"line {node.lineno}: a lambda that knows variables of a function")
        return known(Inner(node, self.outside))

    def Call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "at" and len(node.args) == 1:
            owner = self.value(node.func.value)
            if _is(owner.kind, Array):
                return self.step(owner, node.args[0], WORD, owner.kind)
        kind = self.value(node.func).kind
        if not isinstance(kind, Known) or node.keywords:
            raise NotCompilableError(f"line {node.lineno}: a call of {ast.unparse(node.func)}")
        args: list[Value] = []
        for own in node.args:
            if isinstance(own, ast.Starred):
                args += values.elements_of(self.value(own.value))
            else:
                args.append(self.value(own))
        return self.called(kind.value, args)

    def called(self, function: Any, args: list[Value]) -> Value:
        """Emit a call of a function that is known."""
        if isinstance(function, Intrinsic):
            self.module.has_elements |= not isinstance(function, Words)
            return function.emit(self.builder, *args)
        if isinstance(function, (types.FunctionType, Inner)):
            result: Value = self.module.call(self.builder, function, args)
            return result
        if isinstance(function, type) and issubclass(function, Struct) and len(args) == 1:
            return cast(self.builder, args[0], function)
        if isinstance(function, type) and issubclass(function, np.generic) and len(args) == 1:
            return cast(self.builder, args[0], str(np.dtype(function)))
        found = FUNCTIONS.get(function)
        if found is None:
            raise NotCompilableError(f"a call of {function!r}")
        try:
            signature(found).bind(self.builder, *args)
        except TypeError:
            raise NotCompilableError(f"{len(args)} arguments of {function!r}") from None
        return found(self.builder, *args)


def _is(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _of_type(kind: type[int]) -> Any:
    return "int64" if kind is int else kind


def _field(owner: Value, node: ast.Attribute) -> Field:
    field: Field | None = owner.kind.field(node.attr) if _is(owner.kind, Struct) else None
    if field is None:
        name = getattr(owner.kind, "__name__", owner.kind)
        raise NotCompilableError(f"line {node.lineno}: {name} has no field {node.attr}")
    return field


def method_for(owner: object, node: ast.AST) -> Callable[..., Any]:
    """Return the method that emits a syntax node: it has the name of the node's class."""
    method: Callable[..., Any] | None = getattr(owner, type(node).__name__, None)
    if method is None:
        raise NotCompilableError(f"line {getattr(node, 'lineno', 0)}: {type(node).__name__}")
    return method

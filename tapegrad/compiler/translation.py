"""From the statements of a function that is compiled to LLVM; `expressions.py` emits the expressions in them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from typing import Any, Final

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import cast
from tapegrad.compiler.assembly import marks_loops
from tapegrad.compiler.expressions import Expressions, method_for
from tapegrad.compiler.values import Known, NotCompilableError, Value, is_float, is_word, word

__all__ = ["Function"]

_FEW_TURNS: Final = 16  # of an innermost loop that is unrolled if their number is known

RESULT = "return"  # a variable for what the function returns: no other has the name of a keyword


class Function(Expressions):
    """Emits one function; its parameters are those of `Expressions`.

    A method with the name of a class in `ast` emits that statement.
    """

    def __init__(self, function: Any, wider: dict[str, Any], outside: Mapping[str, Any], module: Any) -> None:
        super().__init__(function, wider, outside, module)
        self.end = function.append_basic_block()
        self.returns_nothing = False
        self.loops: list[tuple[Any, Any]] = []  # where continue and break go

    def define(self, tree: ast.FunctionDef | ast.Lambda, args: Mapping[str, Value], assigned: Set[str]) -> Value:
        """Emit the body, which assigns to these names, and return its result."""
        self.names = {*args, *assigned}
        self.fixed = {name: value for name, value in args.items() if name not in assigned}
        # The first block holds the variables and all other memory on the stack.
        body = self.function.append_basic_block()
        self.builder.branch(body)
        self.builder.position_at_end(body)
        for name, value in args.items():
            if name in assigned:
                self.assign(name, value)
        if isinstance(tree, ast.Lambda):
            self.leave(self.value(tree.body))
        else:
            self.body(tree.body)
        if not self.builder.block.is_terminated:
            self.returns_nothing = True
            self.builder.branch(self.end)
        self.builder.position_at_end(self.end)
        result = self.load(RESULT)
        if self.returns_nothing and not is_word(result.kind):
            raise NotCompilableError("a function that returns a number on some ways through it only")
        return result

    # --- statements --------------------------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return  # behind return, break or continue
            method_for(self, statement)(statement)

    def Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def Pass(self, node: ast.Pass) -> None: ...

    def Return(self, node: ast.Return) -> None:
        self.returns_nothing |= node.value is None
        self.leave(self.value(node.value) if node.value is not None else word(0))

    def leave(self, value: Value) -> None:
        self.assign(RESULT, value)
        self.builder.branch(self.end)

    def Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.put(target, value)

    def put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            own = values.elements_of(value)
            if len(own) != len(target.elts):
                raise NotCompilableError(f"line {target.lineno}: {len(own)} values for {len(target.elts)} names")
            for each, one in zip(target.elts, own, strict=True):
                self.put(each, one)
        else:
            self.write(value, *self.pointer(target))

    def AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.put(node.target, self.value(node.value))

    def AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            before = self.load(node.target.id)
            self.assign(node.target.id, self.operation(node.op, before, self.value(node.value)))
        else:
            pointer = self.pointer(node.target)
            value = self.value(node.value)
            self.write(self.operation(node.op, self.read(*pointer), value), *pointer)

    def If(self, node: ast.If) -> None:
        body, *others = (self.function.append_basic_block() for _ in range(2 if node.orelse else 1))
        after = self.function.append_basic_block()
        self.go_by(node.test, body, *(others or [after]))
        for block, statements in zip([body, *others], [node.body, node.orelse], strict=False):
            if self.goes_on_at(block):
                self.body(statements)
                self.go_to(after)
        self.go_on_at(after)
        if after not in self.ways:
            self.builder.unreachable()

    def While(self, node: ast.While) -> None:
        test, turn, after = (self.function.append_basic_block() for _ in range(3))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        self.go_by(node.test, turn, after)
        self.go_on_at(turn)
        self.loop(node, test, after)

    def For(self, node: ast.For) -> None:
        call = node.iter
        is_range = isinstance(call, ast.Call) and self.value(call.func).kind == Known(range)
        if not (
            is_range and isinstance(call, ast.Call) and 0 < len(call.args) < 4 and isinstance(node.target, ast.Name)
        ):
            raise NotCompilableError(f"line {node.lineno}: a loop over something else than a range")
        given = [self.value(arg) for arg in call.args]
        if any(is_float(own.kind) for own in given):
            raise NotCompilableError(f"line {node.lineno}: a range of numbers that are no integers")
        args = [cast(self.builder, own, "int64").one for own in given]
        start, stop, step = (word(0).one, *args, word(1).one) if len(args) == 1 else (*args, word(1).one)[:3]
        advance = values.number_of(step)
        # The body may assign to the variable, so the loop counts in a variable of its own.
        with self.builder.goto_entry_block():
            counter = self.builder.alloca(start.type)
        self.builder.store(start, counter)
        test, turn, next_turn, after = (self.function.append_basic_block() for _ in range(4))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        at = self.builder.load(counter, typ=start.type)
        if advance is not None:
            goes_on = self.builder.icmp_signed("<" if advance > 0 else ">", at, stop)
        else:
            is_up = self.builder.icmp_signed(">", step, step.type(0))
            up, down = (self.builder.icmp_signed(sign, at, stop) for sign in "<>")
            goes_on = self.builder.select(is_up, up, down)
        self.builder.cbranch(goes_on, turn, after)
        self.come_from(self.builder.block, turn, after)
        self.builder.position_at_end(next_turn)
        following = self.builder.add(self.builder.load(counter, typ=start.type), step, flags=("nsw",))
        self.builder.store(following, counter)
        back = self.builder.branch(test)
        numbers = [number for own in (start, stop, step) if (number := values.number_of(own)) is not None]
        is_short = len(numbers) == 3 and numbers[2] and len(range(*numbers)) <= _FEW_TURNS
        is_short = is_short and marks_loops(self.builder.module.triple)
        if is_short and not any(isinstance(own, (ast.For, ast.While)) for each in node.body for own in ast.walk(each)):
            back.set_metadata("llvm.loop", _unrolled(self.builder.module))
        self.go_on_at(turn)
        self.assign(node.target.id, Value("int64", (at,)))
        self.loop(node, next_turn, after)

    def loop(self, node: ast.For | ast.While, again: Any, after: Any) -> None:
        """Emit the turn of a loop, which begins here."""
        if node.orelse:
            raise NotCompilableError(f"line {node.lineno}: the else of a loop")
        self.loops.append((again, after))
        self.body(node.body)
        self.go_to(again)
        self.loops.pop()
        self.go_on_at(after)
        if after not in self.ways:
            self.builder.unreachable()  # `while True` without a break

    def Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])

    def Break(self, node: ast.Break) -> None:
        self.go_to(self.loops[-1][1])

    def go_to(self, block: Any) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)
            self.come_from(self.builder.block, block)


def _unrolled(module: Any) -> Any:
    """Return the metadata of a loop whose turns stand one behind the other; LLVM knows it by naming itself first."""
    from llvmlite import ir

    node = ir.MDValue(module, [module.add_metadata(["llvm.loop.unroll.full"])], str(len(module.metadata)))
    node.operands = (node, *node.operands)
    return node

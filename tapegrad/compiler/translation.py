"""From the statements of a function of words to LLVM; `expressions.py` emits the expressions in them."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from tapegrad.compiler.expressions import Expressions, NotOfWordsError, constant, method_for

__all__ = ["Function"]


class Function(Expressions):
    """Emits one function. A method with the name of a class in `ast` emits that statement.

    Parameters
    ----------
    function, outside, callee, kinds
        As for `Expressions`.
    """

    def __init__(
        self,
        function: Any,
        outside: Mapping[str, Any],
        callee: Callable[[types.FunctionType], Any],
        kinds: Mapping[str, type[int]],
    ) -> None:
        super().__init__(function, outside, callee, kinds)
        self.loops: list[tuple[Any, Any]] = []  # where continue and break go

    def define(self, tree: ast.FunctionDef) -> None:
        """Emit the body."""
        names = [node.arg for node in tree.args.args]
        names += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        values = [*self.function.args, *(self.word(0) for _ in names)]
        for name, value in zip(names, values, strict=False):
            if name not in self.places:
                self.places[name] = self.builder.alloca(self.word)
                self.builder.store(value, self.places[name])
        self.infer(tree)
        # The first block holds the variables and all other memory on the stack.
        body = self.function.append_basic_block()
        self.builder.branch(body)
        self.builder.position_at_end(body)
        self.body(tree.body)
        if not self.builder.block.is_terminated:
            self.builder.ret(self.word(0))

    def infer(self, tree: ast.FunctionDef) -> None:
        """Find the structs that variables point to: the kinds of their first values, from top to bottom."""
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        for node in sorted(assigned, key=lambda node: (node.lineno, node.col_offset)):
            (target,) = node.targets[:1]
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for one, value in pairs:
                if isinstance(one, ast.Name) and one.id not in self.kinds:
                    self.kinds[one.id] = self.kind(value)

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
        self.builder.ret(self.value(node.value) if node.value is not None else self.word(0))

    def Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if isinstance(first, ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets, values = first.elts, [self.value(source) for source in node.value.elts]
            if len(targets) != len(values) or len(node.targets) > 1:
                raise NotOfWordsError
        else:
            targets, values = node.targets, [self.value(node.value)] * len(node.targets)
        for target, value in zip(targets, values, strict=True):
            pointer, kind = self.pointer(target)
            self.write(value, pointer, kind)

    def AugAssign(self, node: ast.AugAssign) -> None:
        pointer, kind = self.pointer(node.target)
        value = self.value(node.value)
        self.write(self.operation(node.op, self.read(pointer, kind), value), pointer, kind)

    def If(self, node: ast.If) -> None:
        yes, no, after = (self.function.append_basic_block() for _ in range(3))
        self.builder.cbranch(self.truth(node.test), yes, no)
        for block, statements in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            self.body(statements)
            self.go_to(after)
        self.builder.position_at_end(after)
        if not after.is_terminated and not any(_targets(block, after) for block in self.function.blocks):
            self.builder.unreachable()

    def While(self, node: ast.While) -> None:
        test, turn, after = (self.function.append_basic_block() for _ in range(3))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        self.builder.cbranch(self.truth(node.test), turn, after)
        self.loop(node, turn, test, after)

    def For(self, node: ast.For) -> None:
        call = node.iter
        if not (isinstance(call, ast.Call) and self.called(call) is range and 0 < len(call.args) < 4):
            raise NotOfWordsError
        args = [self.value(arg) for arg in call.args]
        start, stop, step = (self.word(0), *args, self.word(1)) if len(args) == 1 else (*args, self.word(1))[:3]
        advance = constant(step)
        if not advance:
            raise NotOfWordsError
        if not isinstance(node.target, ast.Name):
            raise NotOfWordsError
        place = self.places[node.target.id]
        # The body may assign to the variable, so the loop counts in a variable of its own.
        with self.builder.goto_entry_block():
            counter = self.builder.alloca(self.word)
        self.builder.store(start, counter)
        test, turn, next_turn, after = (self.function.append_basic_block() for _ in range(4))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        at = self.builder.load(counter, typ=self.word)
        self.builder.cbranch(self.builder.icmp_signed("<" if advance > 0 else ">", at, stop), turn, after)
        self.builder.position_at_end(next_turn)
        self.builder.store(self.builder.add(self.builder.load(counter, typ=self.word), step), counter)
        self.builder.branch(test)
        self.builder.position_at_end(turn)
        self.builder.store(at, place)
        self.loop(node, turn, next_turn, after)

    def loop(self, node: ast.For | ast.While, turn: Any, again: Any, after: Any) -> None:
        if node.orelse:
            raise NotOfWordsError
        self.loops.append((again, after))
        self.builder.position_at_end(turn)
        self.body(node.body)
        self.go_to(again)
        self.loops.pop()
        self.builder.position_at_end(after)

    def Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])

    def Break(self, node: ast.Break) -> None:
        self.builder.branch(self.loops[-1][1])

    def go_to(self, block: Any) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)


def _targets(block: Any, other: Any) -> bool:
    return block.is_terminated and any(operand is other for operand in block.terminator.operands)

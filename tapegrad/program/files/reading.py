"""From text to a program: nothing of it runs, and each line is checked by the rules of its operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.func.trees import flatten
from tapegrad.program.files.checks import constant_layout, input_layout, results_of
from tapegrad.program.files.literals import Tokens, literal
from tapegrad.program.files.operations import operation
from tapegrad.program.files.writing import HEAD, MAIN
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.program.signature import Signature, Slot
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

__all__ = ["parsed"]


def parsed(text: str, arrays: Callable[[Any], np.ndarray] | None = None) -> Program:
    """Return the program of a text.

    Parameters
    ----------
    text : str
    arrays : callable, optional
        From the number of an array to it, if arrays do not stand in the text.

    Raises
    ------
    ValueError
        If something is wrong; the message names the line.
    """
    if type(text) is not str:
        raise ValueError(f"a program is written as a string, not {type(text).__name__}")
    reader = _Reader(text.rstrip().splitlines(), None if arrays is None else lambda number: _row_by_row(arrays(number)))
    try:
        return reader.program()
    except Exception as error:  # what an operation's functions raise of operands that no call gives them
        line = reader.lines[reader.at - 1] if 0 < reader.at <= len(reader.lines) else ""
        what = str(error) or type(error).__name__
        raise ValueError(f"this is no program: line {reader.at}, {line.strip()[:80]!r}: {what}") from error


class _Body:
    """A program while it is read."""

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self.constants: dict[int, Any] = {}
        self.inputs: list[int] = []
        self.entries: list[Entry] = []
        self.guards: list[Guard] = []
        self.numbers: dict[str, int] = {}

    def new(self, name: str, layout: Layout) -> int:
        """Add a value."""
        if name in self.numbers:
            raise ValueError(f"{name} has a value already")
        number = self.numbers[name] = len(self.layouts)
        self.layouts.append(layout)
        return number

    def number(self, name: str) -> int:
        """Return the number of a value."""
        if name not in self.numbers:
            raise ValueError(f"{name[:40]!r} has no value yet")
        return self.numbers[name]


class _Reader:
    """Reads lines.

    Attributes
    ----------
    at : int
        How many lines are read.
    """

    def __init__(self, lines: Sequence[str], arrays: Callable[[Any], np.ndarray] | None) -> None:
        self.lines, self.arrays, self.at = lines, arrays, 0
        self.programs: dict[str, Program] = {}
        self.known: dict[Any, list[Layout]] = {}  # the results of operations

    def line(self) -> str:
        """Return the next line."""
        if self.at == len(self.lines):
            self.at += 1
            raise ValueError("the text ends too early")
        self.at += 1
        return self.lines[self.at - 1]

    def program(self) -> Program:
        """Return the program of all lines."""
        if self.line().strip() != HEAD:
            raise ValueError(f"the first line should be {HEAD!r}")
        while MAIN not in self.programs:
            tokens = Tokens(self.line())
            name = tokens.next("name")
            if name in self.programs or not (name == MAIN or name.startswith("item")):
                raise ValueError(f"expected a new item, or {MAIN!r}, but got {name[:40]!r}")
            self.programs[name] = self.body(tokens)
        program = self.programs[MAIN]
        fields = {}
        while self.at < len(self.lines):
            tokens = Tokens(self.line())
            name = tokens.next("name")
            tokens.take("=")
            fields[name] = literal(tokens, self.arrays)
            tokens.end()
        if fields:
            program.signature = _signature(program, fields)
        return program

    def body(self, head: Tokens) -> Program:
        """Return the program whose first line begins with a name, which was read."""
        body = _Body()
        head.take("(")
        while not head.skip(")"):
            name = head.next("name")
            head.take(":")
            body.inputs.append(body.new(name, _layout(head)))
            if not head.skip(",") and head.peek() != ")":
                raise ValueError("expected a comma")
        head.take(":")
        head.end()
        while True:
            tokens = Tokens(self.line())
            if tokens.skip("return"):
                outputs = []
                while tokens.peek():
                    outputs.append(body.number(tokens.next("name")))
                    if tokens.peek():
                        tokens.take(",")
                return Program(body.layouts, body.inputs, body.constants, body.entries, outputs, body.guards)
            if tokens.skip("guard"):
                self.guard(body, tokens)
            else:
                self.value(body, tokens)

    def guard(self, body: _Body, tokens: Tokens) -> None:
        """Read a guard."""
        number = body.number(tokens.next("name"))
        tokens.take("==")
        outcome = literal(tokens, self.arrays)
        tokens.take("@")
        where = literal(tokens)
        tokens.end()
        layout = body.layouts[number]
        if not isinstance(outcome, np.ndarray) or type(where) is not str:
            raise ValueError("a guard has an array and a place in a program")
        if (outcome.shape, outcome.dtype) != (layout.shape, layout.dtype):
            raise ValueError(f"the guarded value is {layout}, and its outcome {outcome.dtype}{list(outcome.shape)}")
        body.guards.append(Guard(number, outcome, where))

    def value(self, body: _Body, tokens: Tokens) -> None:
        """Read a constant, or an operation."""
        name = tokens.next("name")
        if tokens.skip("="):
            value = literal(tokens, self.arrays)
            tokens.end()
            body.constants[body.new(name, constant_layout(value))] = value
            return
        names, layouts = [name], []
        tokens.take(":")
        layouts.append(_layout(tokens))
        while tokens.skip(","):
            names.append(tokens.next("name"))
            tokens.take(":")
            layouts.append(_layout(tokens))
        tokens.take("=")
        op_name = tokens.next("name")
        tokens.take("(")
        operands, arrays, attrs = self.arguments(body, tokens)
        records = tokens.skip("->")
        if records:
            tokens.take("grad")
        tokens.end()
        op = operation(op_name, len(operands), len(names), attrs)
        found = results_of(op, body.layouts, body.constants, operands, attrs, arrays, self.known)
        if len(found) != len(names):
            raise ValueError(f"{op_name}() has {len(found)} results")
        for given, own in zip(layouts, found, strict=True):
            if given is not own:
                raise ValueError(f"{op_name}() gives {own}, not {given}")
        if records and not any(own.floating for own in found):
            raise ValueError("no gradient goes through results that are not floating")
        results = tuple([body.new(own, layout) for own, layout in zip(names, layouts, strict=True)])
        body.entries.append(Entry(op, operands, attrs, arrays, results, records))

    def arguments(self, body: _Body, tokens: Tokens) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
        """Return the operands, index arrays and attributes of a call."""
        operands: list[int] = []
        arrays: list[int] = []
        attrs: dict[str, Any] = {}
        while not tokens.skip(")"):
            if tokens.skip("@"):
                arrays.append(body.number(tokens.next("name")))
            else:
                name = tokens.next()  # `nan` is an attribute too
                if tokens.skip("="):
                    if name in attrs:
                        raise ValueError(f"{name[:40]!r} is given twice")
                    attrs[name] = literal(tokens, self.arrays, self.programs)
                else:
                    operands.append(body.number(name))
            if not tokens.skip(",") and tokens.peek() != ")":
                raise ValueError("expected a comma")
        return tuple(operands), tuple(arrays), attrs


def _row_by_row(array: np.ndarray) -> np.ndarray:
    """Return an array of a file as code takes it: truth values are the bytes 0 and 1."""
    array = np.array(array, order="C")
    return np.asarray(array.view(np.uint8) != 0) if array.dtype.kind == "b" else array


def _layout(tokens: Tokens) -> Layout:
    """Return the layout that comes next: the name of a dtype, and lengths."""
    dtype = tokens.next("name")
    tokens.take("[")
    lengths = []
    while not tokens.skip("]"):
        lengths.append(tokens.next("number"))
        if not tokens.skip(",") and tokens.peek() != "]":
            raise ValueError("expected a comma")
    return input_layout(dtype, [int(own) for own in lengths])


def _signature(program: Program, fields: dict[str, Any]) -> Signature:
    """Return the signature of these fields."""
    if set(fields) != {"name", *Signature._fields}:
        raise ValueError(f"a signature has {', '.join(Signature._fields)}; got {', '.join(fields)}")
    name, arguments, result, wanted, captured = (fields[own] for own in Signature._fields)
    if type(name) is not str:
        raise ValueError("the name should be a string")
    if not (
        type(arguments) is tuple and len(arguments) == 2
        and type(arguments[0]) is tuple and type(arguments[1]) is dict
        and all(type(key) is str for key in arguments[1])
    ):  # fmt: skip
        raise ValueError("the arguments should be a tuple, and a dict of those with names")
    if type(captured) is not tuple or not all(type(own) is tuple and len(own) == 2 for own in captured):
        raise ValueError("captured tensors are pairs of an array, and whether it requires grad")
    count = len(program.inputs) - len(captured)
    _check_slots("arguments", arguments, count)
    _check_slots("result", result, len(program.outputs))
    if type(wanted) is not tuple or len(wanted) != count or not all(type(own) is bool for own in wanted):
        raise ValueError("`wanted` says for each input whether it requires grad")
    tensors = tuple([_tensor(*own) for own in captured])
    for number, tensor in zip(program.inputs[count:], tensors, strict=True):
        layout = program.layouts[number]
        if (tensor.shape, tensor.dtype) != (layout.shape, layout.dtype):
            raise ValueError(f"an input is {layout}, but the captured tensor {tensor.dtype}{list(tensor.shape)}")
    return Signature(name, arguments, result, wanted, tensors)


def _check_slots(name: str, tree: Any, count: int) -> None:
    leaves = flatten(tree)
    if [own.number for own in leaves if isinstance(own, Slot)] != list(range(count)):
        raise ValueError(f"the {name} should have the {count} values <0>, <1>, ... in this order")
    for leaf in leaves:
        hash(leaf)


def _tensor(array: Any, requires_grad: Any) -> Tensor:
    if not isinstance(array, np.ndarray) or type(requires_grad) is not bool:
        raise ValueError("captured tensors are pairs of an array, and whether it requires grad")
    return from_array(array).requires_grad_(requires_grad)

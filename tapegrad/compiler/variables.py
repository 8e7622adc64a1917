"""The variables of a function that is compiled, and values that come from one of several blocks.

Each variable stands on the stack, and LLVM makes it a register.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import cast
from tapegrad.compiler.builder import Builder
from tapegrad.compiler.values import Value

__all__ = ["KindsChangedError", "Variables"]


class KindsChangedError(Exception):
    """A variable has values of other kinds than were known when an expression was emitted."""


class Variables:
    """Emits what reads variables, and assigns to them.

    Parameters
    ----------
    function : llvmlite.ir.Function
        Without a body.
    wider : dict
        The kinds of variables that hold values of several kinds. If another one is met, it is added, and
        `KindsChangedError` raised: what was emitted before took the variable for something else.

    Attributes
    ----------
    names : set of str
        Of all variables.
    """

    def __init__(self, function: Any, wider: dict[str, Any]) -> None:
        self.function, self.wider = function, wider
        self.builder = Builder(function.append_basic_block())
        self.names: set[str] = set()
        self.fixed: Mapping[str, Value] = {}  # parameters to which nothing assigns
        self.variables: dict[str, tuple[Any, list[Any]]] = {}  # the kind of each, and its places on the stack
        self.unknown: set[str] = set()  # variables that were read before anything was assigned
        # What is known in each block: variables as they were last read or written, and addresses as pointers.
        self.values_in: dict[Any, dict[Any, Any]] = {}
        self.ways: dict[Any, list[Any]] = {}  # the blocks that jump to a block

    def place(self, name: str, kind: Any) -> None:
        """Make places on the stack for a variable."""
        kind = self.wider.get(name, kind)
        self.variables[name] = kind, [self.builder.variable(own) for own in values.types_of(kind)]

    def load(self, name: str) -> Value:
        """Emit what reads a variable."""
        if name in self.fixed:
            return self.fixed[name]
        if name not in self.variables:  # what assigns to it comes later in the text, or never
            self.place(name, "int64")
            self.unknown.add(name)
        here = self.here()
        value: Value | None = here.get(name)
        if value is None:
            kind, places = self.variables[name]
            pairs = zip(places, values.types_of(kind), strict=True)
            value = here[name] = Value(kind, tuple([self.builder.load(at, typ=part) for at, part in pairs]))
        return value

    def assign(self, name: str, value: Value) -> None:
        """Emit what assigns to a variable."""
        if name not in self.variables:
            self.place(name, value.kind)
        kind, places = self.variables[name]
        both = value.kind if name in self.unknown and name not in self.wider else values.common([kind, value.kind])
        if both != kind and not (values.is_word(both) and values.is_word(kind)):
            self.wider[name] = both
            raise KindsChangedError
        value = cast(self.builder, value, kind)
        for part, at in zip(value.parts, places, strict=True):
            self.builder.store(part, at)
        self.here()[name] = value

    def pointer_at(self, address: Any, kind: Any) -> Any:
        """Emit an address as a pointer to a type."""
        here, key = self.here(), (address.get_reference(), kind)
        if key not in here:
            here[key] = self.builder.inttoptr(address, values.pointer_to(kind))
        return here[key]

    def here(self) -> dict[Any, Any]:
        """Return what is known in the block in which instructions are emitted."""
        block = self.builder.block
        known = self.values_in.get(block)
        if known is None:
            known = self.values_in[block] = {}
        return known

    def come_from(self, before: Any, *blocks: Any) -> None:
        """Note that a block jumps to others."""
        for block in blocks:
            self.ways.setdefault(block, []).append(before)

    def goes_on_at(self, block: Any) -> bool:
        """Go on in a block, if it is reached; else remove it."""
        if block in self.ways:
            self.go_on_at(block)
        else:
            self.function.blocks.remove(block)
        return block in self.ways

    def go_on_at(self, block: Any) -> None:
        """Go on in a block to which no further jumps are emitted; behind a single one, all is known that was before."""
        self.builder.position_at_end(block)
        ways = self.ways.get(block, ())
        if len(ways) == 1:
            self.values_in[block] = dict(self.values_in.get(ways[0], ()))

    def joined(self, ends: list[tuple[Value, Any]], after: Any) -> Value:
        """Emit the value that the end of one of some blocks brings to a block."""
        kind = values.common([value.kind for value, _ in ends])
        parts = []
        for value, block in ends:
            self.builder.position_before(block.terminator)
            parts.append(cast(self.builder, value, kind).parts)
        self.builder.position_at_end(after)
        blocks = [block for _, block in ends]
        return Value(kind, tuple(self.phi(zip(own, blocks, strict=True)) for own in zip(*parts, strict=True)))

    def phi(self, sides: Any) -> Any:
        """Emit the part of a value that one of some blocks brings."""
        first, *others = sides
        phi = self.builder.phi(first[0].type)
        for part, block in (first, *others):
            phi.add_incoming(part, block)
        return phi

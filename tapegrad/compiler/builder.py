"""What emits the commonest instructions as lines of LLVM's IR, in a third of the time that llvmlite takes for them.

All other instructions are llvmlite's own. The text is the one that llvmlite would make, byte for byte.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir

__all__ = ["Builder", "Names", "text_of"]

_BIT, _VOID = ir.IntType(1), ir.VoidType()
_SIGNS: Final = {">": "gt", "<": "lt", "==": "eq", "!=": "ne", ">=": "ge", "<=": "le"}


class Names:
    """The names in a function: most values have numbers, which need not be looked up.

    Parameters
    ----------
    scope : object
        llvmlite's, for the names that are given.
    count : int
        How many values have numbers already.
    """

    def __init__(self, scope: Any, count: int) -> None:
        self.scope, self.count = scope, count

    def register(self, name: str, deduplicate: bool = False) -> str:
        """Return the name of the next value."""
        if name:
            return str(self.scope.register(name, deduplicate))
        self.count = count = self.count + 1
        return f".{count}"


class _Line(ir.Instruction):
    """An instruction that is a line of text; metadata may follow."""

    def __init__(self, block: Any, kind: Any, name: str, reference: str, text: str) -> None:
        # Not as in the base class, which takes most of the time.
        self.parent, self.type, self._name, self.reference, self.text = block, kind, name, reference, text

    @functools.cached_property
    def metadata(self) -> dict[str, Any]:
        """What `set_metadata` has added."""
        return {}

    def get_reference(self) -> str:
        """Return what stands for the value in other lines."""
        return self.reference

    def __str__(self) -> str:
        return self.text if self.is_plain() else self.text + self._stringify_metadata(leading_comma=True)

    def is_plain(self) -> bool:
        """Whether it has no metadata."""
        return "metadata" not in self.__dict__


class _Jump(_Line, ir.instructions.PredictableInstr):
    """The end of a block."""


def _operation(opname: str) -> Callable[..., Any]:
    def emit(self: Builder, a: Any, b: Any, name: str = "", flags: Sequence[str] = ()) -> Any:
        kind = a.type
        if kind is not b.type and kind != b.type:
            raise ValueError(f"{opname} of {kind} and {b.type}")
        full = f"{opname} {' '.join(flags)}" if flags else opname
        return self.line(kind, f"{full} {kind} {a.get_reference()}, {b.get_reference()}")

    return emit


def _conversion(opname: str) -> Callable[..., Any]:
    def emit(self: Builder, value: Any, kind: Any, name: str = "") -> Any:
        if value.type is kind or value.type == kind:
            return value
        return self.line(kind, f"{opname} {value.type} {value.get_reference()} to {kind}")

    return emit


class Builder(ir.IRBuilder):
    """llvmlite's builder. Instructions have no names of their own; a load and an address say of which type they are."""

    def line(self, kind: Any, text: str) -> _Line:
        """Insert an instruction."""
        block = self._block
        name = block.scope.register("")
        reference = f'%"{name}"'
        made = _Line(block, kind, name, reference, text if kind is _VOID else f"{reference} = {text}")
        block.instructions.insert(self._anchor, made)
        self._anchor += 1
        return made

    add, sub, mul = map(_operation, ("add", "sub", "mul"))
    and_, or_, xor = map(_operation, ("and", "or", "xor"))
    fadd, fsub, fmul, fdiv = map(_operation, ("fadd", "fsub", "fmul", "fdiv"))
    trunc, zext, sext, inttoptr, ptrtoint = map(_conversion, ("trunc", "zext", "sext", "inttoptr", "ptrtoint"))

    def _icmp(self, prefix: str, sign: str, a: Any, b: Any, name: str) -> Any:
        if isinstance(a.type, ir.VectorType):
            return super()._icmp(prefix, sign, a, b, name)
        order = _SIGNS[sign] if sign in ("==", "!=") else prefix + _SIGNS[sign]
        return self.line(_BIT, f"icmp {order} {a.type} {a.get_reference()}, {b.get_reference()}")

    def load(self, place: Any, name: str = "", align: int | None = None, typ: Any = None) -> Any:
        """Emit the load of a value of a type."""
        if typ is None:
            return super().load(place, name, align)
        aligned = "" if align is None else f", align {align}"
        return self.line(typ, f"load {typ}, {place.type} {place.get_reference()}{aligned}")

    def store(self, value: Any, place: Any, align: int | None = None) -> Any:
        """Emit the store of a value."""
        aligned = "" if align is None else f", align {align}"
        kind, target = value.type, place.type
        text = f"store {kind} {value.get_reference()}, {target} {place.get_reference()}{aligned}"
        if not target.is_opaque and target.pointee is not kind and target.pointee != kind:
            raise TypeError(text)
        return self.line(_VOID, text)

    def gep(
        self, base: Any, places: Sequence[Any], inbounds: bool = False, name: str = "", source_etype: Any = None
    ) -> Any:
        """Emit an address."""
        if source_etype is None or len(places) != 1:
            return super().gep(base, places, inbounds, name, source_etype)
        (place,) = places
        kind = base.type
        address = f"{kind} {base.get_reference()}, {place.type} {place.get_reference()}"
        return self.line(kind, f"getelementptr {'inbounds ' if inbounds else ''}{source_etype}, {address}")

    def variable(self, kind: Any) -> Any:
        """Emit a place on the stack that holds 0 when the function begins."""
        block = self.function.entry_basic_block
        (name, last), place = (block.scope.register("", True) for _ in range(2)), kind.as_pointer()
        reference = f'%"{name}"'
        made = _Line(block, place, name, reference, f"{reference} = alloca {kind}")
        zero = _Line(block, _VOID, last, "", f"store {kind} {kind.null}, {place} {reference}")
        end = len(block.instructions) - block.is_terminated
        block.instructions[end:end] = made, zero
        self.position_at_end(self.block)
        return made

    def plain_call(self, function: Any, args: Sequence[Any]) -> Any:
        """Emit a call of a function of the module, without attributes."""
        result, expected = function.ftype.return_type, function.ftype.args
        if len(args) != len(expected) or any(own.type != kind for own, kind in zip(args, expected, strict=True)):
            raise TypeError(f"arguments of {function.name}: {[str(own.type) for own in args]}")
        given = ", ".join(f"{own.type} {own.get_reference()}" for own in args)
        kind = _VOID if isinstance(result, ir.VoidType) else result
        return self.line(kind, f"call {result} {function.get_reference()}({given})")

    def branch(self, target: Any) -> Any:
        """Emit a jump."""
        return self._jump(f"br label {target.get_reference()}")

    def cbranch(self, bit: Any, yes: Any, no: Any) -> Any:
        """Emit a jump to one of two blocks."""
        bit_text = f"{bit.type} {bit.get_reference()}"
        return self._jump(f"br {bit_text}, label {yes.get_reference()}, label {no.get_reference()}")

    def _jump(self, text: str) -> Any:
        made = _Jump(self.block, _VOID, self.block.scope.register(""), "", text)
        return self._set_terminator(made)


def text_of(function: Any) -> str:
    """Return LLVM's IR of a function."""
    lines: list[str] = []
    function.descr_prototype(lines)
    lines.append("{\n")
    for block in function.blocks:
        lines.append(f"{block.name}:\n")
        lines += [f"  {own.text if isinstance(own, _Line) and own.is_plain() else own}\n" for own in block.instructions]
    lines.append("}\n")
    return "".join(lines)

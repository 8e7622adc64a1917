"""The instructions that tapegrad writes itself are the text that llvmlite makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from llvmlite import ir

from tapegrad.compiler import frontend, jit, variables
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at, stream_at
from tapegrad.program import calling
from tapegrad.recording import record
from tapegrad.sweep import find


def of_elements(x: Any, out: Any, count: Any) -> int:
    """Loops, all kinds of numbers, jumps and metadata."""
    numbers, bits = as_pointer(x, "complex64"), as_pointer(out, "bool")
    total = 0.0
    for i in range(count):
        value = load(numbers, i)
        if value.real > 1 or (value.imag <= 0 and i % 2 == 0):
            store(bits, i, value != 0)
        else:
            total -= abs(load_at(x, 4 * i, "float32")) / 3
    for k in range(4):
        store_at(out, 8 * k, (total + k) * 2 if k != 3 else -total, "float64")
        stream_at(out, 64 + 8 * k, total, "float64")
    return count >> 2 & 7 | count ^ 3


class Builder(ir.IRBuilder):
    """llvmlite's builder, with what it has not."""

    def variable(self, kind: Any) -> Any:
        with self.goto_entry_block():
            place = self.alloca(kind)
            self.store(kind(None), place)
        return place

    def plain_call(self, function: Any, args: Any) -> Any:
        return self.call(function, args)


@pytest.mark.parametrize("function", [of_elements, calling.run, record.record, find.find])
def test_the_text_is_llvmlites(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ("int64",) * function.__code__.co_argcount, {}, jit.SYMBOL, jit.target_machine()
    found = frontend.lower(function, *args)
    with monkeypatch.context() as patch:
        patch.setattr(variables, "Builder", Builder)
        patch.setattr(frontend, "Names", lambda scope, count: scope)
        assert found == frontend.lower(function, *args)


def test_wrong_types_are_refused() -> None:
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [ir.IntType(64), ir.IntType(32)]), "f")
    builder = variables.Builder(function.append_basic_block())
    word, half = function.args
    with pytest.raises(ValueError, match="add of i64 and i32"):
        builder.add(word, half)
    place = builder.alloca(word.type)
    with pytest.raises(TypeError, match="store i32"):
        builder.store(half, place)
    with pytest.raises(TypeError, match="arguments of f"):
        builder.plain_call(function, [half, half])
    assert builder.zext(word, word.type) is word

"""What formulas call of AVX-512's instructions; where the CPU has them not, others give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.compiler import cpu
from tapegrad.runtime.platform import has
from tapegrad.vmath.lanes import Lanes

__all__ = ["can_scale", "chosen", "has_avx512", "scaled"]

_IS_X86 = has("x86")


def _in_halves(function: Callable[..., Lanes], *args: Lanes) -> Lanes:
    """Return what a function returns of each half of vectors, as one vector."""
    from llvmlite import ir

    builder, count = args[0].builder, args[0].width

    def places(first: int, end: int) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(32), end - first), [*range(first, end)])

    halves = [places(0, count // 2), places(count // 2, count)]
    one, two = (
        function(*[Lanes(builder, builder.shuffle_vector(own.value, own.value, half)) for own in args]).value
        for half in halves
    )
    return Lanes(builder, builder.shuffle_vector(one, two, places(0, count)))


def _instruction(builder: Any, name: str, kind: Any, values: Sequence[Any]) -> Any:
    """Call what LLVM knows as an instruction of one kind of CPU."""
    from llvmlite import ir

    known = builder.module.globals.get(name)
    if known is None:
        known = ir.Function(builder.module, ir.FunctionType(kind, [value.type for value in values]), name)
    return builder.call(known, values)


def scaled(x: Lanes, n: Lanes) -> Lanes:
    """Return ``x * 2**n`` for numbers n without a fraction, rounded once, by one instruction: see `can_scale`."""
    from llvmlite import ir

    # LLVM's own ldexp takes integers, which the instruction does not.
    builder, (size, kind) = x.builder, (32, "s") if x.single else (64, "d")
    count, lane = x.width or 128 // size, ir.IntType(32)
    if count * size > 512:  # float64 numbers made of a register of float32
        return _in_halves(scaled, x, n)
    vector, mask = ir.VectorType(x.element, count), ir.IntType(max(count, 8))
    values = [x.value, n.value]
    if not x.width:
        values = [builder.insert_element(ir.Constant(vector, ir.Undefined), value, lane(0)) for value in values]
    values += [ir.Constant(vector, None), ir.Constant(mask, -1)]
    if count * size == 512 or not x.width:
        values.append(lane(4))  # rounding as it is set
    name = f"llvm.x86.avx512.mask.scalef.{f'p{kind}.{count * size}' if x.width else f's{kind}'}"
    result = _instruction(builder, name, vector, values)
    return Lanes(builder, result if x.width else builder.extract_element(result, lane(0)))


def can_scale(x: Lanes) -> bool:
    """Return whether the CPU has AVX-512, and a number or vector is of a size that `scaled` takes."""
    return x.width * (32 if x.single else 64) != 64 and has_avx512()


def has_avx512() -> bool:
    """Return whether the CPU has registers of 512 bits."""
    return _IS_X86 and bool(cpu.features().get("avx512f"))


def chosen(index: Lanes, numbers: Sequence[float]) -> Lanes:
    """Return which of 16 float64 numbers the lowest four bits of integers choose."""
    from llvmlite import ir

    builder, width, lane = index.builder, index.width, ir.IntType(32)
    if not has_avx512() or not width:
        return _loaded(index, numbers)
    if width > 8:
        return _in_halves(lambda half: chosen(half, numbers), index)
    vector, value = ir.VectorType(ir.DoubleType(), 8), index.value
    if width < 8:
        whole = ir.Constant(ir.VectorType(lane, 8), [*range(width)] * (8 // width))
        value = builder.shuffle_vector(value, value, whole)
    low, high = (
        ir.Constant(vector, [ir.Constant(ir.DoubleType(), c) for c in half]) for half in (numbers[:8], numbers[8:])
    )
    result = _instruction(builder, "llvm.x86.avx512.vpermi2var.pd.512", vector, [low, value, high])
    if width < 8:
        result = builder.shuffle_vector(result, result, ir.Constant(ir.VectorType(lane, width), [*range(width)]))
    return Lanes(builder, result)


def _loaded(index: Lanes, numbers: Sequence[float]) -> Lanes:
    """Return the same, loaded from memory one by one."""
    from llvmlite import ir

    builder, width, double = index.builder, index.width, ir.DoubleType()
    module, kind = builder.module, ir.ArrayType(double, len(numbers))
    table = ir.GlobalVariable(module, kind, module.get_unique_name("numbers"))
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(kind, [ir.Constant(double, number) for number in numbers])
    place, zero = (index & (len(numbers) - 1)).value, ir.Constant(ir.IntType(64), 0)
    if not width:
        return Lanes(builder, builder.load(builder.gep(table, [zero, place])))
    found = ir.Constant(ir.VectorType(double, width), ir.Undefined)
    for lane in (ir.Constant(ir.IntType(32), lane) for lane in range(width)):
        number = builder.load(builder.gep(table, [zero, builder.extract_element(place, lane)]))
        found = builder.insert_element(found, number, lane)
    return Lanes(builder, found)

"""How far an angle of any size lies from a multiple of pi/2: M. Payne & R. Hanek, SIGNUM Newsletter 18 (1983).

A number is m 2**e with an integer m of 53 bits. Bits of 2/pi that give multiples of 4 when multiplied by it do not
count, and the next 256 bits are enough: no float64 is nearer than 2**-62 to a multiple of pi/2 (Muller, 11.3.2).
"""

from __future__ import annotations

from typing import Any

from tapegrad.vmath.formats import DOUBLE
from tapegrad.vmath.lanes import Lanes, fma

__all__ = ["far"]

# 1280 bits of 2/pi behind the point, after 64 zeros.
TWO_OVER_PI = (
    "0000000000000000"
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
)


def far(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return r, what is to be added to it, and n, so that x = n pi/2 + r but for multiples of 2 pi; for one float64."""
    from llvmlite import ir

    builder = x.builder
    word, large, huge, double = ir.IntType(64), ir.IntType(256), ir.IntType(320), ir.DoubleType()

    def constant(value: int, kind: Any = word) -> Any:
        return ir.Constant(kind, value)

    raw = builder.bitcast(x.value, word)
    exponent = builder.and_(builder.lshr(raw, constant(52)), constant(2047))
    integer = builder.or_(builder.and_(raw, constant(2**52 - 1)), constant(2**52))
    # The first bit of the table that counts; lanes that are not asked for hold zeros, whose place would be negative.
    place = builder.sub(exponent, constant(1013))
    place = builder.select(builder.icmp_signed("<", place, constant(0)), constant(0), place)
    window = constant(0, huge)
    for number in range(5):
        index = builder.add(builder.lshr(place, constant(6)), constant(number))
        own = builder.load(builder.gep(_table(builder.module), [index], source_etype=word), typ=word)
        window = builder.or_(builder.shl(window, constant(64, huge)), builder.zext(own, huge))
    window = builder.shl(window, builder.zext(builder.and_(place, constant(63)), huge))
    window = builder.trunc(builder.lshr(window, constant(64, huge)), large)
    # In units of 2**-254 quarters of a turn; whole turns overflow.
    angle = builder.mul(builder.zext(integer, large), window)
    quarter = builder.lshr(builder.add(angle, constant(2**253, large)), constant(254, large))
    rest = builder.sub(angle, builder.shl(quarter, constant(254, large)))
    negative = builder.icmp_signed("<", rest, constant(0, large))
    size = builder.select(negative, builder.sub(constant(0, large), rest), rest)
    zeros = builder.ctlz(size, ir.Constant(ir.IntType(1), 0))
    size = builder.shl(size, zeros)
    first = builder.trunc(builder.lshr(size, constant(192, large)), word)
    second = builder.trunc(builder.lshr(size, constant(128, large)), word)
    second = builder.or_(builder.shl(first, constant(53)), builder.lshr(second, constant(11)))
    high = Lanes(builder, builder.uitofp(builder.lshr(first, constant(11)), double)) * 2.0**-53
    low = Lanes(builder, builder.uitofp(second, double)) * 2.0**-117
    scale = builder.shl(builder.sub(constant(1025), builder.trunc(zeros, word)), constant(52))
    unit = Lanes(builder, builder.bitcast(scale, double))
    behind = builder.icmp_signed("<", raw, constant(0))
    signed = Lanes(builder, builder.select(builder.xor(negative, behind), (-unit).value, unit.value))
    r = high * DOUBLE.half_pi[0]
    r_low = fma(high, DOUBLE.half_pi[0], -r) + fma(high, DOUBLE.half_pi[1], low * DOUBLE.half_pi[0])
    count = builder.trunc(quarter, word)
    count = builder.select(behind, builder.sub(constant(0), count), count)
    return r * signed + x * 0.0, r_low * signed, Lanes(builder, count)  # nan of infinities


def _table(module: Any) -> Any:
    """Return the words of 2/pi in a module."""
    from llvmlite import ir

    name = "tapegrad_two_over_pi"
    known = module.globals.get(name)
    if known is None:
        words = [int(TWO_OVER_PI[i : i + 16], 16) for i in range(0, len(TWO_OVER_PI), 16)]
        kind = ir.ArrayType(ir.IntType(64), len(words))
        known = ir.GlobalVariable(module, kind, name)
        known.linkage, known.global_constant, known.initializer = "internal", True, ir.Constant(kind, words)
    return known

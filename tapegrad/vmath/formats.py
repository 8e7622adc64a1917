"""What formulas need to know of float64 and float32, and how both scale and split numbers by their bits."""

from __future__ import annotations

from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.vmath import avx512
from tapegrad.vmath.lanes import Lanes, absolute, bits, fma, number, where


class Format(NamedTuple):
    """A binary format: plain numbers, so that a kernel's fingerprint covers them."""

    shift: int  # bits of the fraction
    bias: int  # of the exponent
    magic: float  # 1.5 * 2**shift: added to a number it leaves the nearest integer in the lowest bits
    lowest: float  # exp of less is 0
    highest: float  # half of exp of more is inf, and 2**1025 or 2**129 is more
    one: float  # tanh of more is 1
    ln2: tuple[float, float]  # high and low part
    pi: tuple[float, float, float]
    half_pi: tuple[float, float, float]
    half_root: int  # the bits of sqrt(1/2)
    normal: float  # the smallest normal number
    far: float  # larger angles go another way, number by number


DOUBLE = Format(
    52, 1023, 1.5 * 2.0**52, -746.0, 710.6, 20.0,
    (0.6931471805599453, 2.3190468138462996e-17),
    (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    0x3FE6A09E667F3BCD, 2.0**-1022, 2.0**27,
)  # fmt: skip
SINGLE = Format(
    23, 127, 1.5 * 2.0**23, -104.0, 89.6, 10.0,
    (0.6931471824645996, -1.904654323148236e-09),
    (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    0x3F3504F3, 2.0**-126, 2.0**14,
)  # fmt: skip


def power_of_two(n: Lanes, form: Format) -> Lanes:
    """Return 2**n for integers whose lowest bits hold n, if that is a normal number."""
    return number((n << form.shift) + (form.bias << form.shift))


def times_power_of_two(x: Lanes, n: Lanes, form: Format) -> Lanes:
    """Return x * 2**n also where that overflows or is subnormal: in two steps, of which the second one rounds.

    n is the bits of a number that `Format.magic` was added to.
    """
    if avx512.can_scale(x):
        return avx512.scaled(x, number(n) - form.magic)
    half = n >> 1
    return x * power_of_two(half, form) * power_of_two(n - half, form)


def split(x: Lanes, form: Format) -> tuple[Lanes, Lanes, Lanes]:
    """Return k and m in [sqrt(1/2), sqrt(2)) so that a normal x is 2**k m; and the biased exponent of x."""
    shifted = bits(x) + ((form.bias << form.shift) - form.half_root)
    exponent = shifted >> form.shift
    # The exponent becomes a number as the lowest bits of 2**shift.
    k = number(exponent | ((form.bias + form.shift) << form.shift)) - (2.0**form.shift + form.bias)
    return k, number((shifted & ((1 << form.shift) - 1)) + form.half_root), exponent


def quotient(high: Lanes, low: Lanes | None, under: Lanes, under_low: Lanes) -> Lanes:
    """Return (high + low) / (under + under_low) to little more than half an ulp."""
    inverse = 1.0 / under
    q = high * inverse
    rest = fma(-q, under, high)
    if low is not None:
        rest = rest + low
    return fma(fma(-q, under_low, rest), inverse, q)


def keep_tiny(x: Lanes, result: Lanes, form: Format) -> Lanes:
    """Return x itself where it is so near to 0 that f(x) = x: -0.0 keeps its sign, subnormal numbers their bits."""
    return where(absolute(x) < 2.0 ** -(form.shift + 2), x, result)

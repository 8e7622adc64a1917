"""Functions of complex numbers as functions of their real and imaginary parts, for kernels and for programs.

Source: W. Kahan, Branch cuts for complex elementary functions (1987). They agree with NumPy up to rounding, and have
its branch cuts. Parts are numbers of a kernel (`tapegrad.vmath.functions`), or values of a program
(`tapegrad.program.pairs.writer`).
"""

from __future__ import annotations

import math
from typing import Any

from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Pair", "Part", "absolute", "cos", "cosh", "exp", "exp2", "log", "sin", "sinh", "sqrt", "tan", "tanh"]


class Part:
    """A real value, with the operators of numbers. `of` of a subclass has the functions."""

    __slots__ = ()

    @property
    def is_double(self) -> bool:
        """Whether it is a float64."""
        raise NotImplementedError

    def of(self, name: str, *others: Any) -> Any:
        """Return what an elementwise operation makes of this value, and of others."""
        raise NotImplementedError

    def where(self, x: Any, y: Any) -> Any:
        """Return x where this truth value is true, else y."""
        return self.of("where", x, y)

    def __add__(self, other: Any) -> Any:
        return self.of("add", other)

    def __sub__(self, other: Any) -> Any:
        return self.of("sub", other)

    def __mul__(self, other: Any) -> Any:
        return self.of("mul", other)

    def __truediv__(self, other: Any) -> Any:
        return self.of("div", other)

    def __neg__(self) -> Any:
        return self.of("neg")

    def __abs__(self) -> Any:
        return self.of("abs")


class Pair(NamedTuple):
    """The real and the imaginary part of a complex value."""

    real: Any
    imag: Any


def absolute(x: Pair) -> Any:
    """Scale by the larger part, so that no square overflows."""
    a, b = abs(x.real), abs(x.imag)
    large, small = a.of("maximum", b), a.of("minimum", b)
    ratio = small / large.of("eq", 0.0).where(1.0, large)
    size = large * (ratio * ratio + 1.0).of("sqrt")
    return a.of("eq", math.inf).of("logical_or", b.of("eq", math.inf)).where(math.inf, size)


def exp(x: Pair) -> Pair:
    """Take a factor out where the exponential of the real part alone would overflow."""
    top = 700.0 if x.real.is_double else 80.0
    is_large = x.real.of("gt", top)
    size = is_large.where(x.real - top, x.real).of("exp")
    is_zero = size.of("eq", 0.0)

    def turned(name: str) -> Any:
        part = size * x.imag.of(name)
        return is_zero.where(0.0, is_large.where(part * math.exp(top), part))

    return Pair(turned("cos"), x.imag.of("eq", 0.0).where(x.imag, turned("sin")))


def exp2(x: Pair) -> Pair:
    """Return exp(x log 2)."""
    return exp(Pair(x.real * math.log(2), x.imag * math.log(2)))


def log(x: Pair) -> Pair:
    """Near the unit circle take the logarithm of what the square of the size is more than 1."""
    a, b = abs(x.real), abs(x.imag)
    large, small = a.of("maximum", b), a.of("minimum", b)
    is_near = large.of("gt", 0.5).of("logical_and", large.of("lt", 2.0))
    more = is_near.where((large - 1.0) * (large + 1.0) + small * small, 0.0)
    size = is_near.where(more.of("log1p") * 0.5, absolute(x).of("log"))
    return Pair(size, x.imag.of("atan2", x.real))


def sqrt(x: Pair) -> Pair:
    """Take the root of the larger part, which does not cancel, and divide by it for the other."""
    root = (abs(x.real) * 0.5 + absolute(x) * 0.5).of("sqrt")
    half = abs(x.imag) / root.of("eq", 0.0).where(1.0, root * 2.0)
    is_right = x.real.of("ge", 0.0)
    is_far = abs(x.imag).of("eq", math.inf)
    real = is_far.where(math.inf, is_right.where(root, half))
    imag = is_right.where(half, root).of("copysign", x.imag)
    return Pair(real, is_far.where(x.imag, imag))


def _times(size: Any, part: Any) -> Any:
    """Return a product that is 0, with its sign, where the second factor is: the first may have overflowed."""
    is_zero = abs(size).of("eq", math.inf).of("logical_and", part.of("eq", 0.0))
    return is_zero.where(size.of("ge", 0.0).where(part, -part), size * part)


def sin(x: Pair) -> Pair:
    """Take the sine of a sum of a real and an imaginary angle."""
    return Pair(_times(x.imag.of("cosh"), x.real.of("sin")), x.real.of("cos") * x.imag.of("sinh"))


def cos(x: Pair) -> Pair:
    """Take the cosine of a sum of a real and an imaginary angle."""
    return Pair(x.real.of("cos") * x.imag.of("cosh"), -_times(x.imag.of("sinh"), x.real.of("sin")))


def sinh(x: Pair) -> Pair:
    """Take the hyperbolic sine of such a sum."""
    return Pair(x.real.of("sinh") * x.imag.of("cos"), _times(x.real.of("cosh"), x.imag.of("sin")))


def cosh(x: Pair) -> Pair:
    """Take the hyperbolic cosine of such a sum."""
    return Pair(x.real.of("cosh") * x.imag.of("cos"), _times(x.real.of("sinh"), x.imag.of("sin")))


def tanh(x: Pair) -> Pair:
    """Divide by the square of the larger exponential: nothing overflows, and nothing cancels."""
    size, sin, cos = abs(x.real), x.imag.of("sin"), x.imag.of("cos")
    less, small = (size * -2.0).of("expm1"), (size * -2.0).of("exp") * 4.0
    below = less * less + small * cos * cos
    real = -(size * -4.0).of("expm1") / below
    return Pair(real.of("copysign", x.real), small * sin * cos / below)


def tan(x: Pair) -> Pair:
    """Turn the hyperbolic tangent of the number that is turned the other way."""
    turned = tanh(Pair(-x.imag, x.real))
    return Pair(turned.imag, -turned.real)

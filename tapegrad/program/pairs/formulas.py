"""Functions of complex numbers, as functions of their real and imaginary parts.

Sources: R. L. Smith, Algorithm 116: Complex division, Comm. ACM 5 (1962); W. Kahan, Branch cuts for complex elementary
functions (1987). They agree with NumPy up to rounding, and have its branch cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.program.pairs.writer import Pair, Real

__all__ = ["FORMULAS", "REAL_FORMULAS", "power"]

_MOST: Final = 100  # the largest whole exponent that is served by products


def _add(x: Pair, y: Pair) -> Pair:
    return Pair(x.real + y.real, x.imag + y.imag)


def _sub(x: Pair, y: Pair) -> Pair:
    return Pair(x.real - y.real, x.imag - y.imag)


def _mul(x: Pair, y: Pair) -> Pair:
    return Pair(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def _div(x: Pair, y: Pair) -> Pair:
    """Divide by the larger part of the divisor first, so that no square overflows."""
    first = abs(y.real).of("ge", abs(y.imag))
    large, small = first.where(y.real, y.imag), first.where(y.imag, y.real)
    is_zero = large.of("eq", 0.0)
    ratio = small / is_zero.where(1.0, large)
    whole = is_zero.where(abs(large), large + small * ratio)
    one, two = first.where(x.real, x.imag), first.where(x.imag, x.real)
    imag = (two - one * ratio) / whole
    return Pair((one + two * ratio) / whole, first.where(imag, -imag))


def _neg(x: Pair) -> Pair:
    return Pair(-x.real, -x.imag)


def _conj(x: Pair) -> Pair:
    return Pair(x.real, -x.imag)


def _same(x: Pair) -> Pair:
    return x


def _abs(x: Pair) -> Real:
    """Scale by the larger part, so that no square overflows."""
    a, b = abs(x.real), abs(x.imag)
    large, small = a.of("maximum", b), a.of("minimum", b)
    ratio = small / large.of("eq", 0.0).where(1.0, large)
    size = large * (ratio * ratio + 1.0).of("sqrt")
    return a.of("eq", math.inf).of("logical_or", b.of("eq", math.inf)).where(math.inf, size)


def _exp(x: Pair) -> Pair:
    """Take a factor out where the exponential of the real part alone would overflow."""
    top = 700.0 if x.real.layout.dtype.itemsize == 8 else 80.0
    is_large = x.real.of("gt", top)
    size = is_large.where(x.real - top, x.real).of("exp")
    is_zero = size.of("eq", 0.0)

    def turned(name: str) -> Real:
        part = size * x.imag.of(name)
        return is_zero.where(0.0, is_large.where(part * math.exp(top), part))

    return Pair(turned("cos"), x.imag.of("eq", 0.0).where(x.imag, turned("sin")))


def _log(x: Pair) -> Pair:
    """Near the unit circle take the logarithm of what the square of the size is more than 1."""
    a, b = abs(x.real), abs(x.imag)
    large, small = a.of("maximum", b), a.of("minimum", b)
    is_near = large.of("gt", 0.5).of("logical_and", large.of("lt", 2.0))
    more = is_near.where((large - 1.0) * (large + 1.0) + small * small, 0.0)
    size = is_near.where(more.of("log1p") * 0.5, _abs(x).of("log"))
    return Pair(size, x.imag.of("atan2", x.real))


def _sqrt(x: Pair) -> Pair:
    root = (abs(x.real) * 0.5 + _abs(x) * 0.5).of("sqrt")
    half = abs(x.imag) / root.of("eq", 0.0).where(1.0, root * 2.0)
    is_right = x.real.of("ge", 0.0)
    is_far = abs(x.imag).of("eq", math.inf)
    real = is_far.where(math.inf, is_right.where(root, half))
    imag = is_right.where(half, root).of("copysign", x.imag)
    return Pair(real, is_far.where(x.imag, imag))


def _sin(x: Pair) -> Pair:
    return Pair(x.real.of("sin") * x.imag.of("cosh"), x.real.of("cos") * x.imag.of("sinh"))


def _cos(x: Pair) -> Pair:
    return Pair(x.real.of("cos") * x.imag.of("cosh"), -(x.real.of("sin") * x.imag.of("sinh")))


def _sinh(x: Pair) -> Pair:
    return Pair(x.real.of("sinh") * x.imag.of("cos"), x.real.of("cosh") * x.imag.of("sin"))


def _cosh(x: Pair) -> Pair:
    return Pair(x.real.of("cosh") * x.imag.of("cos"), x.real.of("sinh") * x.imag.of("sin"))


def _tanh(x: Pair) -> Pair:
    """Divide by the square of the larger exponential: nothing overflows, and nothing cancels."""
    size, sin, cos = abs(x.real), x.imag.of("sin"), x.imag.of("cos")
    less, small = (size * -2.0).of("expm1"), (size * -2.0).of("exp") * 4.0
    below = less * less + small * cos * cos
    real = -(size * -4.0).of("expm1") / below
    return Pair(real.of("copysign", x.real), small * sin * cos / below)


def _tan(x: Pair) -> Pair:
    turned = _tanh(Pair(-x.imag, x.real))
    return Pair(turned.imag, -turned.real)


def power(x: Pair, y: Pair, exponent: Any = None) -> Pair:
    """Return a power, of which the exponent may be a number that is known."""
    if exponent is not None and np.imag(exponent) == 0 and abs(exponent) <= _MOST:
        whole = int(np.real(exponent))
        if whole == np.real(exponent) and whole != 0:
            found = _whole_power(x, abs(whole))
            return found if whole > 0 else _div(_one_like(x), found)
    found = _exp(_mul(y, _log(x)))
    is_flat = y.real.of("eq", 0.0).of("logical_and", y.imag.of("eq", 0.0))
    return Pair(is_flat.where(1.0, found.real), is_flat.where(0.0, found.imag))


def _whole_power(x: Pair, exponent: int) -> Pair:
    """Return a power by squares."""
    found: Pair | None = None
    while True:
        if exponent & 1:
            found = x if found is None else _mul(found, x)
        exponent >>= 1
        if not exponent:
            assert found is not None
            return found
        x = _mul(x, x)


def _one_like(x: Pair) -> Pair:
    dtype = x.real.layout.dtype
    return Pair(*[x.real.writer.constant(np.array(value, dtype)) for value in (1.0, 0.0)])


def _reciprocal_of_sqrt(x: Pair) -> Pair:
    return _div(_one_like(x), _sqrt(x))


def _eq(x: Pair, y: Pair) -> Real:
    return x.real.of("eq", y.real).of("logical_and", x.imag.of("eq", y.imag))


def _ne(x: Pair, y: Pair) -> Real:
    return x.real.of("ne", y.real).of("logical_or", x.imag.of("ne", y.imag))


#: From pairs to a pair, by names of operations.
FORMULAS: Final[dict[str, Callable[..., Pair]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "conj": _conj, "detach": _same, "exp": _exp,
    "log": _log, "sqrt": _sqrt, "rsqrt": _reciprocal_of_sqrt, "sin": _sin, "cos": _cos, "tan": _tan, "sinh": _sinh,
    "cosh": _cosh, "tanh": _tanh, "rewritten": lambda x, value: value,
}  # fmt: skip
#: From pairs to a real value.
REAL_FORMULAS: Final[dict[str, Callable[..., Real]]] = {
    "real": lambda x: x.real, "imag": lambda x: x.imag, "abs": _abs, "eq": _eq, "ne": _ne,
    "isnan": lambda x: x.real.of("isnan").of("logical_or", x.imag.of("isnan")),
}  # fmt: skip

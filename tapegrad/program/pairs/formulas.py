"""Functions of complex numbers, as functions of their real and imaginary parts.

Source: R. L. Smith, Algorithm 116: Complex division, Comm. ACM 5 (1962). They agree with NumPy up to rounding, and have
its branch cuts. `tapegrad.vmath.pairs` has those that kernels need too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.program.pairs.writer import Real
from tapegrad.vmath import pairs
from tapegrad.vmath.pairs import Pair

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


def power(x: Pair, y: Pair, exponent: Any = None) -> Pair:
    """Return a power, of which the exponent may be a number that is known."""
    if exponent is not None and np.imag(exponent) == 0 and abs(exponent) <= _MOST:
        whole = int(np.real(exponent))
        if whole == np.real(exponent) and whole != 0:
            found = _whole_power(x, abs(whole))
            return found if whole > 0 else _div(_one_like(x), found)
    found = pairs.exp(_mul(y, pairs.log(x)))
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
    return _div(_one_like(x), pairs.sqrt(x))


def _eq(x: Pair, y: Pair) -> Any:
    return x.real.of("eq", y.real).of("logical_and", x.imag.of("eq", y.imag))


def _ne(x: Pair, y: Pair) -> Any:
    return x.real.of("ne", y.real).of("logical_or", x.imag.of("ne", y.imag))


#: From pairs to a pair, by names of operations.
FORMULAS: Final[dict[str, Callable[..., Pair]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "conj": _conj, "detach": _same,
    "rsqrt": _reciprocal_of_sqrt, "rewritten": lambda x, value: value,
    **{name: getattr(pairs, name) for name in (
        "cos", "cosh", "exp", "log", "sin", "sinh", "sqrt", "tan", "tanh",
    )},
}  # fmt: skip
#: From pairs to a real value.
REAL_FORMULAS: Final[dict[str, Callable[..., Real]]] = {
    "real": lambda x: x.real, "imag": lambda x: x.imag, "abs": pairs.absolute, "eq": _eq, "ne": _ne,
    "isnan": lambda x: x.real.of("isnan").of("logical_or", x.imag.of("isnan")),
}  # fmt: skip

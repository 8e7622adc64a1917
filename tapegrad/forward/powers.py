"""The forward of powers: a faster function for some exponents, e.g. square for 2, else our power on vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import get
from tapegrad.forward.results import Draft, Words
from tapegrad.forward.ufuncs import Function
from tapegrad.recording.native import DATA, load, vectorcall
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import FLOAT, Layout, contiguous_layout
from tapegrad.vmath.powers import power

# What computes a power of which the exponent is this number.
_FASTER: Final[dict[float, np.ufunc]] = {2.0: np.square, 0.5: np.sqrt, -1.0: np.reciprocal, 1.0: np.positive}
_POWER: Final = Function("power", np.power, (), "invalid divide over under", lambda x, y: power(x, y))
# Words of a forward: what computes squares, and all other powers.
SQUARE, OTHERWISE = range(2)
TWO: Final = int(np.float64(2.0).view(np.int64))

Prepare = Callable[[Callable[..., Any], Sequence[Layout], Layout], Callable[..., Any]]


def check_exponent(x: Any, y: Any) -> None:
    """Raise if integers are to be raised to a negative integer power.

    NumPy's loop raises midway, and a conversion to unsigned integers hides the sign.
    """
    exponent = np.asarray(y)
    if exponent.dtype.kind == "i" and np.asarray(x).dtype.kind in "iu" and np.size(x) and (exponent < 0).any():
        raise RuntimeError("Integers to negative integer powers are not allowed.")


class Power:
    """The forward of ``**``: a call gives the same bits as the function that is prepared for a plan."""

    def __call__(self, x: Any, y: Any) -> Any:
        """Return ``x**y``."""
        if x.__class__ is float and y.dtype.kind == "f":
            return _of_number(np.exp2, _POWER.of(y.dtype))(x, y)
        if y.__class__ is float and x.dtype.kind == "f":
            return _raised(x, y, x.dtype, lambda function, of_square=False: function)
        dtype = np.result_type(x, y)
        if dtype.kind == "f":
            return _POWER.ufunc(dtype.name)(x, y)
        if dtype.kind == "c" and x.__class__ in (int, float, complex) and x == 1:
            return np.ones(y.shape, dtype) if y.ndim else dtype.type(1)  # to any power, also nan, as in PyTorch
        if dtype.kind in "iu":
            check_exponent(x, y)
        return x**y

    def prepared(self, layouts: Sequence[Layout], result: Layout, prepare: Prepare) -> Callable[..., Any]:
        """Return the forward for a plan; `prepare` makes the functions that it calls."""
        if result.dtype.kind != "f":
            return self
        if layouts[1] is FLOAT and layouts[0] is not FLOAT:
            return _prepared_to_number(layouts[0], result, prepare)
        if layouts[0] is FLOAT:
            exp2 = prepare(np.exp2, layouts[1:], result)
            return _of_number(exp2, prepare(_POWER.of(result.dtype), layouts, result))
        return prepare(_POWER.ufunc(result.dtype.name), layouts, result)


class _ToNumber:
    """Raises an operand to a number. The function of an exponent is made when it is first used."""

    __slots__ = ("_made", "_prepare", "_result", "_x")

    def __init__(self, x: Layout, result: Layout, prepare: Prepare) -> None:
        self._x, self._result, self._prepare = x, result, prepare
        self._made: dict[tuple[np.ufunc, tuple[Layout, ...]], Callable[..., Any]] = {}

    def __call__(self, x: Any, y: float) -> Any:
        """Return ``x**y``."""
        return _raised(x, y, self._result.dtype, self.prepared)

    def prepared(self, function: np.ufunc, of_square: bool = False) -> Callable[..., Any]:
        """Return a ufunc as a function of the operand, of the operand and a number, or of its square and the operand.

        The square has the result's strides, which may be others than the operand's.
        """
        layouts = (self._x,) if function.nin == 1 else (self._result, self._x) if of_square else (self._x, FLOAT)
        made = self._made.get((function, layouts))
        if made is None:
            made = self._made[function, layouts] = self._prepare(function, layouts, self._result)
        return made


def _prepared_to_number(x: Layout, result: Layout, prepare: Prepare) -> Callable[..., Any]:
    """Return the function that raises an operand to a number."""
    to_number = _ToNumber(x, result, prepare)
    square: Any = to_number.prepared(np.square)
    if isinstance(square, Draft):  # for all lengths, and nobody calls it
        return Raising(square, prepare)  # type: ignore[return-value]
    return _loaded(square, to_number)


class Raising(NamedTuple):
    """A forward for contiguous operands and a number as exponent, before the words of the square are in memory."""

    square: Draft
    prepare: Prepare

    def made(self) -> Callable[..., Any]:
        """Return the forward."""
        shape, dtype = self.square.shape, self.square.dtype
        layout = contiguous_layout(shape, dtype)
        return _loaded(self.square.made(), _ToNumber(layout, layout, self.prepare))


def _loaded(square: Callable[..., Any], to_number: Callable[..., Any]) -> Callable[..., Any]:
    words = np.array([id(square), id(to_number)]).view(Words)
    words.kept = square, to_number
    return load(run_power, words)


def _of_number(exp2: Callable[..., Any], power: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that raises a number to the elements of an operand."""
    return lambda x, y: exp2(y) if x == 2.0 else power(x, y)


def _raised(x: Any, y: float, dtype: np.dtype, prepared: Callable[..., Callable[..., Any]]) -> Any:
    """Return an operand raised to a number; cubes as two products, which take a tenth of the time of NumPy's power.

    For whole exponents, ours: NumPy's loop for AVX-512 calls libm for each negative number, in 30 times the time.
    """
    if y in _FASTER:
        return prepared(_FASTER[y])(x)
    if y == 3.0:
        return prepared(np.multiply, True)(prepared(np.square)(x), x)
    return prepared(_POWER.ufunc(dtype.name) if y.is_integer() else _POWER.of(dtype))(x, y)


def run_power(self: int, args: int, nargs: int) -> int:
    """Return an operand raised to a float; 0 if Python raised."""
    words = get(self, DATA)
    is_square = get(get(args, 1), DATA) == TWO
    function = get(words, SQUARE if is_square else OTHERWISE)
    result: int = vectorcall(function, args, 1 if is_square else 2, 0)
    return result

"""Ops: rounding to integers, and divisions whose quotients are rounded. Rounding has slope 0 where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward.ufuncs import Function
from tapegrad.kernels.elementwise import elementwise_step
from tapegrad.ops.arithmetic import div as true_divide
from tapegrad.ops.arithmetic import flat
from tapegrad.ops.table import docs
from tapegrad.ops.table.elementwise import binary, unary
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import forward_for, no_bools, only_floats
from tapegrad.ops.table.public import SPECIAL, TOP, Names, public
from tapegrad.ops.table.structural import operation
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

Binary = Callable[[Any, Any], Tensor]


def _rounding(name: str, forward: np.ufunc, doc: str, *aliases: str) -> Callable[[Any], Tensor]:
    return unary(
        name, forward, flat, doc=f"{doc}; integers stay as they are.", derivative="0.", to_float=False, real_only=True,
        oracle=forward, check_dtypes=no_bools(f"{name} not implemented for 'Bool'; there is nothing to round"),
        names=Names(aliases, method=True, inplace=True),
    )  # fmt: skip


floor = _rounding("floor", np.floor, "The largest integer that is not larger")
ceil = _rounding("ceil", np.ceil, "The smallest integer that is not smaller")
trunc = _rounding("trunc", np.trunc, "The number without its fraction", "fix")

frac = unary(
    "frac", lambda x: x - np.trunc(x), lambda ct: ct,
    doc="Fraction of a number, of its sign.", derivative="1.", to_float=False, real_only=True,
    oracle=lambda x: np.fmod(x, 1), check_dtypes=only_floats("frac"),
    names=Names(method=True, inplace=True),
)  # fmt: skip


def _prepare_round(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    decimals = attrs["decimals"]
    if decimals or not layouts[0].floating:
        return lambda x: np.round(x, decimals)
    return _to_integers(layouts, {})


_to_integers: Final = forward_for(np.rint, None, False)


@public(namespaces=(TOP, SPECIAL), method=True, inplace=True, ufuncs=("rint",))
@operation(
    "round",
    forward=lambda x, decimals: np.round(x, decimals),
    prepare_forward=_prepare_round,
    vjp=(flat,),
    step=elementwise_step,
    family="rounding",
    attrs=("decimals",),
    real_only=True,
    check_dtypes=no_bools("round not implemented for 'Bool'; there is nothing to round"),
    samples=(Sample(((3,),)), Sample(((2, 3),), {"decimals": 2}), Sample(((),), {"decimals": -1})),
    oracle=lambda x, decimals=0: (np.rint(x * 10.0**decimals) / 10.0**decimals).astype(np.result_type(x)),
    errors=(
        ErrorSample(
            lambda: from_array(np.arange(3)).round(decimals=1), RuntimeError, "round not implemented for integers"
        ),
    ),
    common=docs.UNARY,
)
def round(input: Any, decimals: int | None = None) -> Bound:
    r"""Round to the nearest integer, halves to the even one; integers stay as they are.

    Parameters
    ----------
    decimals : int, optional
        Digits behind the point to keep, default 0; negative numbers count digits before it.

    Raises
    ------
    RuntimeError
        If integers are rounded to decimals.

    Notes
    -----
    Derivative: with :math:`y = 10^{-d} \operatorname{round}(10^{d} x)`, where d is `decimals`, :math:`\bar x = 0`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.round(tg.tensor([0.5, 1.5, 2.567]))
    tensor([0., 2., 3.])
    >>> tg.round(tg.tensor([2.567]), decimals=1)
    tensor([2.6000])
    """
    x = as_operand(input, "round", "input", 1)
    if decimals and not x._layout.floating:
        raise RuntimeError("round not implemented for integers with decimals; convert with .to(...) first")
    return Bound((x,), {"decimals": decimals or 0})


# Division ----------------------------------------------------------------------------------------------------------


class _Quotient:
    """A division; of integers, one that refuses to divide by 0."""

    def __init__(
        self, name: str, formula: Callable[..., Any], other: Callable[..., Any], of_integers: Any, errors: str = ""
    ) -> None:
        self.name, self.of_integers, self.other = name, of_integers, other
        self.of_floats = Function(name, other, (), errors, formula)

    def of(self, dtype: np.dtype) -> Callable[..., Any]:
        return self._of_integers if dtype.kind in "iu" else self.of_floats.of(dtype)

    def __call__(self, x: Any, y: Any) -> Any:
        return self.of(np.result_type(x, y))(x, y)

    def _of_integers(self, x: Any, y: Any) -> Any:
        if np.size(x) and not np.all(y):
            raise RuntimeError(f"ZeroDivisionError: {self.name} of integers by 0")
        return self.of_integers(x, y)


def _truncated(x: Any, y: Any) -> Any:
    quotient = np.floor_divide(x, y)
    return quotient + ((np.multiply(quotient, y) != x) & (np.less(x, 0) != np.less(y, 0)))


_DIVISOR = ErrorSample(lambda: xp.remainder(np.arange(3), np.arange(3)), RuntimeError, "ZeroDivisionError")


def _division(name: str, forward: _Quotient, vjp: Any, doc: str, derivative: str, **fields: Any) -> Binary:
    return binary(
        name, forward, vjp, doc=doc, derivative=derivative, real_only=True, domain=(0.3, 3.0), extra_errors=(_DIVISOR,),
        check_dtypes=no_bools("", f"{name} not implemented for 'Bool'; convert with .to(...) first"), **fields,
    )  # fmt: skip


remainder = _division(
    "remainder", _Quotient("remainder", lambda x, y: xp.remainder(x, y), np.remainder, np.remainder, "invalid"),
    (lambda ct: ct, lambda ct, x, y: -ct * xp.floor_divide(x, y)),
    "Remainder of a division, of the sign of `other`: Python's ``%``.",
    ":math:`1` and :math:`-\\lfloor x/y \\rfloor`.", oracle=np.mod,
    special={(5.0, 3.0): (1.0, -1.0), (-5.0, 3.0): (1.0, 2.0)},
    names=Names(method=True, inplace=True),
)  # fmt: skip

fmod = _division(
    "fmod", _Quotient("fmod", lambda x, y: xp.fmod(x, y), np.fmod, np.fmod, "invalid"),
    (lambda ct: ct, lambda ct, x, y: -ct * xp.trunc_divide(x, y)),
    "Remainder of a division, of the sign of `input`: that of C.",
    ":math:`1` and minus the truncated quotient.", oracle=np.fmod,
    special={(5.0, 3.0): (1.0, -1.0), (-5.0, 3.0): (1.0, 1.0)},
    names=Names(method=True, inplace=True),
)  # fmt: skip

floor_divide = _division(
    "floor_divide",
    _Quotient(
        "floor_divide", lambda x, y: xp.floor_divide(x, y), np.floor_divide, np.floor_divide, "divide invalid"
    ),
    (flat, flat),
    "The largest integer that is not larger than the quotient: Python's ``//``.", "0; PyTorch has none.",
    oracle=np.floor_divide, names=Names(method=True, inplace=True),
)  # fmt: skip

_trunc_divide = _division(
    "trunc_divide",
    _Quotient(
        "trunc_divide", lambda x, y: xp.trunc_divide(x, y), lambda x, y: np.trunc(np.true_divide(x, y)), _truncated,
        "divide invalid over",
    ),
    (flat, flat),
    "The quotient without its fraction.", "0.", oracle=lambda x, y: np.trunc(x / y), names=None,
)  # fmt: skip


@public(aliases=("divide", "true_divide"), method=True, common=docs.BINARY, of=true_divide)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    r"""Divide `input` by `other`; integers give the default dtype unless they are rounded.

    Parameters
    ----------
    rounding_mode : str, optional
        ``"trunc"`` rounds quotients toward 0, ``"floor"`` down.

    Raises
    ------
    RuntimeError
        If `rounding_mode` is another, or integers are divided by 0 and rounded.

    Notes
    -----
    Derivative: :math:`1/y` and :math:`-(x/y)/y`; 0 if quotients are rounded.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.div(tg.tensor([7.0, -7.0]), 2.0)
    tensor([ 3.5000, -3.5000])
    >>> tg.div(tg.tensor([7.0, -7.0]), 2.0, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return _trunc_divide(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}")

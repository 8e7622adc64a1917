"""Ops: choices between two values, and numbers in place of nan and infinities, elementwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import check_range
from tapegrad.forward.ufuncs import Function
from tapegrad.kernels.elementwise import elementwise_step
from tapegrad.ops.arithmetic import flat
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import binary, elementwise
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import no_numbers, only_floats, promote
from tapegrad.ops.table.public import Names, public
from tapegrad.ops.table.structural import operation
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

_EVERYWHERE = Names(method=True, inplace=True)


def _choice(name: str, forward: np.ufunc, is_first: Callable[..., Any], which: str) -> Callable[[Any, Any], Tensor]:
    return binary(
        name, forward,
        (
            lambda ct, x, y: xp.where(is_first(x, y) | (y != y), ct, 0.0),
            lambda ct, x, y: xp.where(is_first(x, y) | (y != y), 0.0, ct),
        ),
        doc=f"The {which} of the two; the other one where one is nan.",
        derivative="1 for the one that is chosen, 0 for the other; `input` is chosen where they are equal.",
        real_only=True, check_dtypes=no_numbers(name, "input", "other"), oracle=forward,
        special={(1.0, 1.0): (1.0, 0.0), (np.nan, 1.0): (0.0, 1.0), (1.0, np.nan): (1.0, 0.0)},
        names=Names(method=True),
    )  # fmt: skip


fmax = _choice("fmax", np.fmax, lambda x, y: x >= y, "larger")
fmin = _choice("fmin", np.fmin, lambda x, y: x <= y, "smaller")


copysign = binary(
    # The quotient of the two has a second derivative, which is rounding errors near 0, and nan at it.
    "copysign", np.copysign, (lambda ct, x, out: ct * (xp.sgn(x) * xp.sgn(out)), flat),
    doc="The size of `input` with the sign of `other`.", derivative="the change of sign, 0 at 0; and 0.",
    real_only=True, to_float=True, special={(0.0, -1.0): (0.0, 0.0), (2.0, -1.0): (-1.0, 0.0)}, names=_EVERYWHERE,
)  # fmt: skip

nextafter = binary(
    "nextafter", Function("nextafter", np.nextafter, errors="over", formula=lambda x, y: xp.nextafter(x, y)),
    (lambda ct, x, y: xp.where(x == y, 0.0, ct), flat),
    doc="The floating-point number next to `input` in the direction of `other`.",
    derivative="1, 0 where they are equal; and 0.",
    real_only=True, check_dtypes=only_floats("nextafter", "input", "other"), names=_EVERYWHERE,
)  # fmt: skip


def _of_input_and_values(input: Any, values: Any) -> Any: ...


heaviside = binary(
    "heaviside",
    Function(
        "heaviside", lambda x, y: np.where(x == 0, y, np.where(x != x, x, x > 0)),
        formula=lambda x, y: xp.where(x == 0, y, xp.where(x != x, x, xp.where(x > 0, 1.0, 0.0))),
    ),
    (flat, lambda ct, x: xp.where(x == 0, ct, 0.0)),
    doc="Step function: 0 where `input` is negative, 1 where it is positive, `values` where it is 0.",
    signature=_of_input_and_values,
    derivative="0; and 1 where `input` is 0. PyTorch has none.", real_only=True,
    check_dtypes=no_numbers("heaviside", "input", "values"), oracle=np.heaviside, special={(0.0, 0.5): (0.0, 1.0)},
    names=_EVERYWHERE,
)  # fmt: skip


def _nan_by_numpy(x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    return np.nan_to_num(x, True, nan, posinf, neginf)


_finite: Final = Function(
    "finite", lambda x, nan, largest: _nan_by_numpy(x, nan, largest, -largest),
    formula=lambda x, nan, largest: xp.where(
        x != x, nan, xp.where(x == np.inf, largest, xp.where(x == -np.inf, -largest, x))
    ),
)  # fmt: skip


def _prepare_nan(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    """Return the forward: one pass where both infinities become the largest numbers."""
    dtype, nan = layouts[0].dtype, attrs["nan"]
    if dtype.kind != "f" or attrs["posinf"] is not None or attrs["neginf"] is not None:
        return partial(_nan_by_numpy, **attrs)
    function, numbers = _finite.of(dtype), (dtype.type(nan), np.finfo(dtype).max)
    return lambda x: function(x, *numbers)


@public(method=True, inplace=True)
@operation(
    "nan_to_num",
    forward=_nan_by_numpy,
    prepare_forward=_prepare_nan,
    vjp=(lambda ct, x: xp.where(x - x == 0, ct, 0.0),),
    step=elementwise_step,
    family="choice",
    attrs=("nan", "posinf", "neginf"),
    samples=(
        Sample(((5,),)),
        Sample(((2, 3),), {"nan": 3.0, "posinf": 1.0, "neginf": -1.0}),
    ),
    oracle=lambda x, nan=0.0, posinf=None, neginf=None: _replaced(x, nan, posinf, neginf),
    errors=(ErrorSample(lambda: xp.nan_to_num("nan"), TypeError, "argument 'input' (position 1) must be Tensor"),),
    common=docs.UNARY,
)
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Bound:
    r"""Replace nan and infinities by numbers.

    Parameters
    ----------
    nan : float, optional
        In place of nan; default 0.
    posinf, neginf : float, optional
        In place of the infinities; default the largest and the least number of the dtype.

    Notes
    -----
    Derivative: with :math:`y = x` for finite elements, :math:`\bar x = \bar y`; 0 for the others.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nan_to_num(tg.tensor([1.0, tg.nan, tg.inf]), posinf=5.0)
    tensor([1., 0., 5.])
    """
    x = as_operand(input, "nan_to_num", "input", 1)
    return Bound((x,), {"nan": 0.0 if nan is None else nan, "posinf": posinf, "neginf": neginf})


def _replaced(x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    if np.asarray(x).dtype.kind not in "fc":
        return x
    limits = np.finfo(np.asarray(x).dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    parts = [
        np.select([np.isnan(part), np.isposinf(part), np.isneginf(part)], [nan, high, low], part)
        for part in ((x.real, x.imag) if np.iscomplexobj(x) else (x,))
    ]
    return (parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]).astype(np.asarray(x).dtype)


def _clamped(x: Any, min: Any, max: Any) -> Any:
    raised = xp.where((x < min) | (min != min), min, x)  # a bound that is nan makes nan
    return xp.where((raised > max) | (max != max), max, raised)


_NUMBERS: Final = (int, float)


def _are_bounds(dtype: np.dtype, low: Any, high: Any) -> bool:
    """Whether these are bounds that floating elements have without a conversion: numbers, or one a tensor."""
    if dtype.kind != "f":
        return False
    if low is None or high is None:
        one = high if low is None else low
        return one.__class__ in _NUMBERS or (one.__class__ is Tensor and one._layout.dtype is dtype)
    return low.__class__ in _NUMBERS and high.__class__ in _NUMBERS


_clamp = elementwise(
    "clamp", ("x", "min", "max"),
    Function("clamp", lambda x, min, max: np.minimum(np.maximum(x, min), max), formula=_clamped),
    (
        lambda ct, x, min, max: xp.where((x >= min) & (x <= max), ct, 0.0),
        # With equal bounds, the lower has the slope; PyTorch gives it to neither.
        lambda ct, x, min, max: xp.where((x < min) & (min <= max), ct, 0.0),
        lambda ct, x, min, max: xp.where((x > max) | (max < min), ct, 0.0),
    ),
    real_only=True, fx=_clamped,
    samples=(
        Sample(((5,), (), ()), values=(None, -1.0, 1.0)),
        Sample(((2, 3), (3,), (2, 1)), values=(None, np.array([-1.0, -0.5, -2.0]), np.array([[1.0], [0.5]]))),
    ),
    special={(1.0, -1.0, 1.0): (1.0, 0.0, 0.0), (2.0, -1.0, 1.0): (0.0, 0.0, 1.0)},
    oracle=np.clip, call=lambda input, low, high: clip_to(input, low, high),
)  # fmt: skip


@public(aliases=("clip",), method=True, inplace=True, of=_clamp, is_op=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    r"""Limit elements to the range from `min` to `max`: :math:`\min(\max(x, \mathit{min}), \mathit{max})`.

    Parameters
    ----------
    input : Tensor or array
    min, max : Tensor, array or number, optional
        One of them is needed. Where `min` is larger than `max`, the result is `max`.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If neither bound is given.

    Notes
    -----
    Derivative: 1 inside and at the bounds, 0 outside and for nan. A bound that is a tensor gets the cotangents of the
    elements that it replaces.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.clamp(tg.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if input.__class__ is Tensor and _are_bounds(input._layout.dtype, min, max):
        return _clamp(input, -np.inf if min is None else min, np.inf if max is None else max)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    numbers = [isinstance(bound, (bool, int, float)) for bound in (min, max) if bound is not None]
    if len(numbers) == 2 and numbers[0] != numbers[1] and len(shape_of(max if numbers[0] else min)):
        raise TypeError(
            "clamp() received an invalid combination of arguments: a number and a tensor as bounds; make the number a "
            "tensor with tapegrad.tensor(...)"
        )
    return clip_to(input, min, max)


def clip_to(input: Any, low: Any, high: Any) -> Tensor:
    """Limit elements as `clamp` does; one bound may be a number and the other a tensor, as NumPy allows."""
    given = (("input", input), ("min", low), ("max", high))
    dtype = promote([
        as_operand(value, "clamp", name, place)._layout
        for place, (name, value) in enumerate(given, 1)
        if place == 1 or value is not None
    ])  # fmt: skip
    if dtype.kind == "b":
        raise RuntimeError("clamp not implemented for 'Bool'; use logical operations")
    if dtype.kind in "iu":  # infinite bounds would make it floating
        limits = np.iinfo(dtype)
        for bound in (low, high):
            if isinstance(bound, int):
                check_range(bound, dtype)
        return _clamp(input, int(limits.min) if low is None else low, int(limits.max) if high is None else high)
    return _clamp(input, -np.inf if low is None else low, np.inf if high is None else high)


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((2, 3),), {"min": -0.5}),), lambda x, min: np.maximum(x, min), real_only=True)
def clamp_min(input: Any, min: Any) -> Tensor:
    """Raise elements to at least `min`; see `clamp`.

    Parameters
    ----------
    min : Tensor, array or number

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.clamp_min(tg.tensor([-2.0, 2.0]), 0)
    tensor([0., 2.])
    """
    return clamp(input, min, None)


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((2, 3),), {"max": 0.5}),), lambda x, max: np.minimum(x, max), real_only=True)
def clamp_max(input: Any, max: Any) -> Tensor:
    """Lower elements to at most `max`; see `clamp`.

    Parameters
    ----------
    max : Tensor, array or number

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.clamp_max(tg.tensor([-2.0, 2.0]), 0)
    tensor([-2.,  0.])
    """
    return clamp(input, None, max)

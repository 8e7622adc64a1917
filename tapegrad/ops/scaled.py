"""Sums with a factor, and between two values: functions of several operands, made of ops; `lerp` is an op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops import arithmetic
from tapegrad.ops.arithmetic import mul, pow
from tapegrad.ops.casts import cast
from tapegrad.ops.table import docs
from tapegrad.ops.table.callers import into
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.promotion import only_floats, promote
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor, from_array

ADD: Final[Op] = arithmetic.add.op  # type: ignore[attr-defined]
SUB: Final[Op] = arithmetic.sub.op  # type: ignore[attr-defined]
_add, _sub = ADD.plans, SUB.plans


def are_alike(tensors: tuple[Any, ...], factor: Any) -> bool:
    """Whether these are tensors of one floating dtype, none of them traced, and the factor is a number of Python."""
    if factor.__class__ not in (int, float):
        return False
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or tensor.is_traced or tensor._layout.weak:
            return False
    dtype = tensors[0]._layout.dtype
    return dtype.kind == "f" and all(tensor._layout.dtype is dtype for tensor in tensors)


def _with_multiple(name: str, node_name: str, sign: int, doc: str) -> Callable[..., Tensor]:
    """Make the op that adds or subtracts a multiple in one pass."""
    return elementwise(
        name, ("x", "y", "factor"), None,
        (lambda ct: ct, lambda ct, factor: ct * (sign * factor), NOT_DIFFERENTIABLE),
        fx=lambda x, y, factor: x + sign * factor * y, oracle=lambda x, y, factor: x + sign * factor * y,
        samples=[Sample((*own, ()), values=(None, None, 0.3)) for own in (((3,), (3,)), ((2, 3), (3,)), ((), (3,)))],
        node_name=node_name, real_only=True, doc=doc,
    )  # fmt: skip


_added_multiple = _with_multiple("added_multiple", "AddBackward0", 1, "Add a multiple.")
_less_multiple = _with_multiple("less_multiple", "SubBackward0", -1, "Subtract a multiple.")


def times(op: Op, factor: Any, *operands: Any) -> Tensor:
    """Return the last operand of a sum or difference times a factor, of a kind that the operands can hold."""
    tensors = [as_operand(value, op.name, "other", place) for place, value in enumerate(operands, 1)]
    layouts = tuple(tensor._layout for tensor in tensors)
    if op.check_dtypes:
        op.check_dtypes(layouts)  # of the operands as they are given
    last = tensors[-1]
    if factor == 1:
        return last
    dtype = promote(layouts)
    if isinstance(factor, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(factor, complex) and dtype.kind == "f":
        raise RuntimeError(
            f"For non-complex input tensors, argument alpha must not be a complex number; {op.name} got {factor}"
        )
    if dtype.kind in "biu" and isinstance(factor, (float, complex)):
        raise RuntimeError(
            f"For integral input tensors, argument alpha must not be a floating point number; {op.name} got {factor}"
        )
    if not last._layout.weak:
        last = cast(last, dtype)  # so that small integers do not wrap around
    result: Tensor = mul(last, bool(factor) if dtype.kind == "b" else factor)
    return result


@public(method=True, common=docs.BINARY, of=arithmetic.add, is_op=True, with_keyword=("alpha", _added_multiple))
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """Add `other`, times a factor.

    Parameters
    ----------
    alpha : number
        The factor.
    out : Tensor, optional
        What the result is written to.

    Notes
    -----
    Derivative: 1 and `alpha`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.add(tg.tensor([1.0, 2.0]), 0.5, alpha=2)
    tensor([2., 3.])
    """
    if alpha != 1 and out is None and are_alike((input, other), alpha):
        return _added_multiple(input, other, alpha)
    last = other if alpha == 1 else times(ADD, alpha, input, other)
    result: Tensor = _add.call(input, last) if out is None else into(out, "add", _add.call, (input, last))
    return result


@public(aliases=("subtract",), method=True, common=docs.BINARY, of=arithmetic.sub, is_op=True,
        with_keyword=("alpha", _less_multiple))  # fmt: skip
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """Subtract `other`, times a factor.

    Parameters
    ----------
    alpha : number
        The factor.
    out : Tensor, optional
        What the result is written to.

    Notes
    -----
    Derivative: 1 and minus `alpha`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.sub(tg.tensor([1.0, 2.0]), 0.5, alpha=2)
    tensor([0., 1.])
    """
    if alpha != 1 and out is None and are_alike((input, other), alpha):
        return _less_multiple(input, other, alpha)
    last = other if alpha == 1 else times(SUB, alpha, input, other)
    result: Tensor = _sub.call(input, last) if out is None else into(out, "sub", _sub.call, (input, last))
    return result


@public(common=docs.BINARY)
@composite((Sample(((2, 3), (3,))), Sample(((3,), ()), {"alpha": 2.0})), lambda x, y, alpha=1: y - alpha * x)
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    r"""Subtract `input`, times a factor, from `other`.

    Derivative: with :math:`z = y - a x`, where a is `alpha`, :math:`\bar x = -a \bar z` and :math:`\bar y = \bar z`.

    Parameters
    ----------
    alpha : number
        The factor.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.rsub(tg.tensor([1.0, 2.0]), 3.0)
    tensor([2., 1.])
    """
    return sub(other, input, alpha=alpha)


def _between(start: Any, end: Any, weight: Any) -> Any:
    difference = end - start
    return np.where(np.abs(weight) < 0.5, start + weight * difference, end - difference * (1 - weight))


_lerp = elementwise(
    "lerp", ("start", "end", "weight"), None,
    (
        lambda ct, weight: ct * xp.conj(1 - weight),
        lambda ct, weight: ct * xp.conj(weight),
        lambda ct, start, end: ct * xp.conj(end - start),
    ),
    # From the nearer end, so that the result is that end where the weight is 0 or 1.
    fx=lambda start, end, weight: xp.where(
        abs(weight) < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight)
    ),
    samples=(Sample(((3,), (3,), ()), values=(None, None, 0.25)), Sample(((2, 3), (3,), (2, 1)))),
    oracle=_between, check_dtypes=lambda layouts: only_floats("lerp")(layouts[:2]),
    extra_errors=(
        ErrorSample(
            lambda: from_array(np.ones(3)).lerp(np.ones(3, np.float32), 0.5), RuntimeError, "expected dtype float64 for"
        ),
    ),
)  # fmt: skip


@public(method=True, inplace=True, of=_lerp, is_op=True)
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """Linear interpolation, ``input + weight * (end - input)``.

    Parameters
    ----------
    input, end : Tensor or array
        Of one dtype.
    weight : Tensor, array or number

    Raises
    ------
    RuntimeError
        If the dtypes differ, or the shapes do not broadcast.

    Notes
    -----
    Derivative: `weight` less than 1, `weight`, and ``end - input``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.lerp(tg.tensor([0.0, 2.0]), tg.tensor([4.0, 4.0]), 0.25)
    tensor([1.0000, 2.5000])
    """
    x = as_operand(input, "lerp", "input", 1)
    for place, (name, value) in enumerate((("end", end), ("weight", weight)), 2):
        other = as_operand(value, "lerp", name, place)
        if other.dtype != x.dtype and not (name == "weight" and not other._layout.ndim):
            raise RuntimeError(f"expected dtype {x.dtype} for `{name}` but got dtype {other.dtype} in lerp")
    return _lerp(x, end, weight)


@public(method=True, inplace=True, common=docs.BINARY)
@composite((Sample(((2, 3), (3,))),), lambda x, y: x * np.exp2(y))
def ldexp(input: Any, other: Any) -> Tensor:
    r"""Multiply `input` by 2 to the power `other`.

    Derivative: with :math:`z = x 2^{y}`, :math:`\bar x = 2^{y} \bar z` and :math:`\bar y = \bar z z \log(2)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ldexp(tg.tensor([1.0, 3.0]), tg.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    x, y = as_operand(input, "ldexp", "input", 1), as_operand(other, "ldexp", "other", 2)
    if not x._layout.floating or y.dtype.kind in "fc":
        result: Tensor = mul(x, pow(2.0, y))
        return result
    for power in _powers_of_two(np.asarray(y._data, dtype=np.int64), x.dtype):
        x = mul(x, from_array(power))
    return x


def _powers_of_two(exponents: np.ndarray, dtype: np.dtype) -> list[np.ndarray]:
    """Return numbers that are finite, whose product is 2 to these powers; for complex numbers one, as in PyTorch."""
    one = dtype.type(1).real
    most = np.finfo(dtype).maxexp - 2
    if dtype.kind == "c" or not (np.abs(exponents) > most).any():
        return [np.asarray(np.ldexp(one, exponents))]
    powers = []
    for _ in range(3):  # with which the least number becomes infinite, and the largest 0
        part = np.clip(exponents, -most, most)
        exponents = exponents - part
        powers.append(np.asarray(np.ldexp(one, part)))
    return powers


def double_of(*operands: Tensor) -> np.dtype:
    """Return the dtype of powers in double precision."""
    return np.result_type(np.float64, *(np.complex64 for one in operands if one.dtype.kind == "c"))


@public(method=True, inplace=True)
@composite((Sample(((2, 3), (3,))),), np.float_power, domain=(0.3, 3.0))
def float_power(input: Any, exponent: Any) -> Tensor:
    """Raise `input` to the power `exponent` in double precision.

    Derivative: as of `pow`.

    Parameters
    ----------
    input, exponent : Tensor, array or number

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.float_power(tg.tensor([2, 3]), 2)
    tensor([4., 9.])
    """
    x, y = as_operand(input, "float_power", "input", 1), as_operand(exponent, "float_power", "exponent", 2)
    double = double_of(x, y)
    return pow(*(one if one._layout.weak and one is y else cast(one, double) for one in (x, y)))


@public(method=True, inplace=True, ufuncs=("radians",), common=docs.UNARY)
@composite((Sample(((2, 3),)),), np.deg2rad, real_only=True)
def deg2rad(input: Any) -> Tensor:
    r"""Convert degrees to radians.

    Derivative: with :math:`y = \frac{\pi}{180} x`, :math:`\bar x = \frac{\pi}{180} \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.deg2rad(tg.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """
    return _real_times("deg2rad", input, math.pi / 180)


@public(method=True, inplace=True, ufuncs=("degrees",), common=docs.UNARY)
@composite((Sample(((2, 3),)),), np.rad2deg, real_only=True)
def rad2deg(input: Any) -> Tensor:
    r"""Convert radians to degrees.

    Derivative: with :math:`y = \frac{180}{\pi} x`, :math:`\bar x = \frac{180}{\pi} \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.rad2deg(tg.tensor([3.14159265]))
    tensor([180.0000])
    """
    return _real_times("rad2deg", input, 180 / math.pi)


def _real_times(call: str, input: Any, factor: float) -> Tensor:
    x = as_operand(input, call, "input", 1)
    if x.dtype.kind == "c":
        raise RuntimeError(f"{call} is not supported for complex tensors; angles are real")
    return mul(x, factor)

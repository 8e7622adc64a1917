"""Ops: arithmetic, comparison and choice, elementwise."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dtypes import check_range
from tapegrad.forward.powers import Power
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import binary, elementwise, unary
from tapegrad.ops.table.gateway import is_complex
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample, xp
from tapegrad.ops.table.promotion import no_bools, no_numbers
from tapegrad.ops.table.public import Names, public
from tapegrad.tensor import Tensor

add = binary(
    "add", np.add, (lambda ct: ct, lambda ct: ct),
    doc="Add.", derivative=":math:`1` and :math:`1`.", scalar=operator.add, linear=True, names=None,
)  # fmt: skip

sub = binary(
    "sub", np.subtract, (lambda ct: ct, lambda ct: -ct),
    doc="Subtract `other` from `input`.", derivative=":math:`1` and :math:`-1`.",
    scalar=operator.sub, oracle=np.subtract, linear=True,
    check_dtypes=no_bools(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.",
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` operator instead.",
    ),
    names=None,
)  # fmt: skip

mul = binary(
    "mul", np.multiply, (lambda ct, y: ct * xp.conj(y), lambda ct, x: ct * xp.conj(x)),
    doc="Multiply.", derivative=":math:`y` and :math:`x`.",
    scalar=operator.mul, oracle=np.multiply, bilinear=True,
    names=Names(("multiply",), method=True),
)  # fmt: skip

div = binary(
    "div", np.true_divide,
    # Both divide the cotangent, which is one division then; and what a mask hides stays 0 where out / y would overflow.
    (lambda ct, y: ct / xp.conj(y), lambda ct, y, out: -(ct / xp.conj(y)) * xp.conj(out)),
    doc="Divide `input` by `other`; integers give the default dtype.",
    derivative=":math:`1/y` and :math:`-(x/y)/y`.",
    scalar=operator.truediv, oracle=np.true_divide, to_float=True,
    special={(1.0, 0.0): (np.inf, -np.inf)}, names=None,  # the public ones of add, sub and div take more
)  # fmt: skip


def _base_rule(ct: Any, x: Any, y: Any) -> Any:
    # Two masks: the cotangent may be infinite, and x**-1, of which a mask would hide the value, but not the slopes.
    return xp.where(y == 0, 0.0, ct) * xp.conj(y * xp.pow(x, xp.where(y == 0, 1.0, y) - 1))


def _exponent_rule(ct: Any, x: Any, y: Any, out: Any) -> Any:
    flat = (x == 0) & (xp.real(y) >= 0)
    return xp.where(flat, 0.0, ct) * xp.conj(out * xp.log(xp.where(flat, 1.0, xp.alike(x, out))))


def _of_base_and_exponent(input: Any, exponent: Any) -> Any: ...


pow = binary(
    "pow", Power(), (_base_rule, _exponent_rule), signature=_of_base_and_exponent,
    doc="Raise `input` to the power `exponent`.",
    derivative=":math:`y x^{y-1}` and :math:`x^y \\log x`; 0 for both at :math:`0^0`, as in PyTorch.",
    scalar=operator.pow, oracle=np.power, domain=(0.1, 3.0),
    special={
        (0.0, 0.0): (0.0, 0.0), (0.0, 1.0): (1.0, 0.0), (0.0, 2.0): (0.0, 0.0),
        (0.0, 0.5): (np.inf, 0.0), (0.0, -1.0): (-np.inf, -np.inf),
    },
    names=Names(method=True, inplace=True, ufuncs=("power",)),
)  # fmt: skip

neg = unary(
    "neg", np.negative, lambda ct: -ct,
    doc="Negate.", derivative=":math:`-1`.", to_float=False, oracle=np.negative, linear=True,
    check_dtypes=no_bools(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead."
    ),
    names=Names(("negative",), method=True, inplace=True),
)  # fmt: skip

abs = unary(
    "abs", np.absolute, lambda ct, x: ct * xp.sgn(x),
    doc="Absolute value.",
    derivative=":math:`\\operatorname{sign}(x)`, 0 at 0; :math:`x/|x|` for complex numbers.",
    to_float=False, special={0.0: 0.0}, oracle=np.absolute, check_dtypes=no_bools("abs not implemented for 'Bool'"),
    names=Names(("absolute",), method=True, inplace=True, ufuncs=("fabs",)),
)  # fmt: skip


def flat(ct: Any) -> Any:
    """Rule of a function whose slope is 0 everywhere: not 0 * ct, which is nan where that is infinite."""
    return xp.where(ct == ct, 0.0, 0.0)


def _sign(x: Any) -> Any:
    return xp.where(x > 0, 1.0, xp.where(x < 0, -1.0, xp.where(x == 0, 0.0, x)))


sign = unary(
    "sign", Function("sign", np.sign, formula=_sign), flat,
    doc="Sign of a real number; 0 at 0.", derivative="0.", to_float=False, special={0.0: 0.0}, real_only=True,
    oracle=lambda x: np.where(x > 0, 1, np.where(x < 0, -1, x)).astype(np.result_type(x)),
)  # fmt: skip


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((),)), Sample(((2, 3),))), lambda input: (input / np.abs(input)).astype(input.dtype))
def sgn(input: Any) -> Tensor:
    """Sign; :math:`x/|x|` for complex numbers, 0 at 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.sgn(tg.tensor([3 + 4j, -2.0]))
    tensor([ 0.6000+0.8000j, -1.0000+0.0000j])
    """
    if is_complex(input):
        size = abs(input)
        zero = eq(size, 0.0)
        return where(zero, 0.0, input / where(zero, 1.0, size))
    return sign(input)


maximum = binary(
    "maximum", np.maximum,
    (
        lambda ct, x, y: xp.where(x == y, ct / 2, xp.where(x < y, 0.0, ct)),
        lambda ct, x, y: xp.where(x == y, ct / 2, xp.where(y < x, 0.0, ct)),
    ),
    real_only=True, check_dtypes=no_numbers("maximum", "input", "other"),
    doc="The larger of the two; nan if one is.", derivative="1 for the larger, 0 for the other, half each for ties.",
    special={(1.0, 1.0): (0.5, 0.5)},
    names=Names(method=True),
)  # fmt: skip

minimum = binary(
    "minimum", np.minimum,
    (
        lambda ct, x, y: xp.where(x == y, ct / 2, xp.where(x > y, 0.0, ct)),
        lambda ct, x, y: xp.where(x == y, ct / 2, xp.where(y > x, 0.0, ct)),
    ),
    real_only=True, check_dtypes=no_numbers("minimum", "input", "other"),
    doc="The smaller of the two; nan if one is.", derivative="1 for the smaller, 0 for the other, half each for ties.",
    special={(1.0, 1.0): (0.5, 0.5)},
    names=Names(method=True),
)  # fmt: skip


def _positive(x: Any) -> Any:
    return xp.where(x < 0, 0.0, x)


relu = unary(
    "relu", Function("relu", lambda x: np.maximum(0, x), formula=_positive),  # of two zeros the second: -0.0 stays
    lambda ct, out: xp.flat_by(xp.where(out <= 0, 0.0, ct), out),
    doc="The larger of `input` and 0.", derivative="1 where positive, 0 elsewhere, also at 0.",
    to_float=False, special={0.0: 0.0}, oracle=lambda x: np.where(x <= 0, 0, x), real_only=True,
    fx=_positive,
    check_dtypes=no_bools("Boolean inputs not supported for relu"),
    names=Names((), method=True, inplace=True),
)  # fmt: skip

_where = elementwise(
    "where", ("condition", "x", "y"), np.where,
    (
        NOT_DIFFERENTIABLE,
        lambda ct, condition: xp.where(condition, ct, 0.0),
        lambda ct, condition: xp.where(condition, 0.0, ct),
    ),
    promoted=(1, 2), linear=True,
    samples=(
        Sample(((3,), (3,), (3,)), values=(np.array([True, False, True]), None, None)),
        Sample(((2, 1), (3,), ()), values=(np.array([[True], [False]]), None, None)),
    ),
)  # fmt: skip


def _method_where(input: Tensor, condition: Any, other: Any) -> Tensor:
    """Choose elements of the tensor where the condition holds, of `other` elsewhere."""
    return where(condition, input, other)


@public(method=_method_where, of=_where)
def where(condition: Any, input: Any = None, other: Any = None) -> Tensor:
    """Choose elements of `input` where the condition holds, of `other` elsewhere.

    Without these return the places where it holds: for each dimension a tensor of indices.

    Parameters
    ----------
    condition : Tensor or array of bool
    input, other : Tensor, array or number
        Broadcast with the condition.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the condition is not of dtype bool, or the shapes do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([-1.0, 2.0])
    >>> tg.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        from tapegrad.ops.finding import nonzero  # at call time: few programs look for places

        return nonzero(condition, as_tuple=True)  # type: ignore[no-any-return]
    dtype = condition.dtype if isinstance(condition, Tensor) else np.asarray(condition).dtype
    if dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {dtype}; "
            f"compare, e.g. condition != 0"
        )
    if (input.__class__ is int) is not (other.__class__ is int):
        number, tensor = (input, other) if input.__class__ is int else (other, input)
        if tensor.__class__ is Tensor:
            check_range(number, tensor.dtype)
    return _where(condition, input, other)


def _where_in_rules(condition: Any, input: Any, other: Any) -> Any:
    """Choose; of a number's condition, at once, so that nothing is recorded that the choice would only mask."""
    if condition.__class__ is bool or isinstance(condition, np.bool_):
        chosen, masked = (input, other) if condition else (other, input)
        if isinstance(chosen, Tensor) or not isinstance(masked, Tensor):
            return chosen
    return _where(condition, input, other)


xp.where, xp.sgn = _where_in_rules, sgn


def _comparison(
    name: str, forward: np.ufunc, which: str, formula: str, alias: str = "", **kwargs: Any
) -> Callable[[Any, Any], Tensor]:
    names = Names((alias,) if alias else (), method=True, inplace=True, ufuncs=(forward.__name__,))
    kwargs["doc"] = f"Whether {which}, :math:`z = {formula}`."
    return binary(name, forward, (NOT_DIFFERENTIABLE,) * 2, oracle=forward, names=names, **kwargs)


eq = _comparison("eq", np.equal, "elements are equal", "[x = y]")
ne = _comparison("ne", np.not_equal, "elements differ", r"[x \ne y]", "not_equal")
lt = _comparison("lt", np.less, "`input` is less than `other`", "[x < y]", "less", real_only=True)
le = _comparison("le", np.less_equal, "`input` is at most `other`", r"[x \le y]", "less_equal", real_only=True)
gt = _comparison("gt", np.greater, "`input` is greater than `other`", "[x > y]", "greater", real_only=True)
ge = _comparison("ge", np.greater_equal, "`input` is at least `other`", r"[x \ge y]", "greater_equal", real_only=True)
logical_and = _comparison(
    "logical_and", np.logical_and, "both are nonzero", r"[x \ne 0] [y \ne 0]",
    check_dtypes=no_numbers("logical_and", "input", "other"),
)  # fmt: skip
logical_or = _comparison(
    "logical_or", np.logical_or, "one is nonzero", "1 - [x = 0] [y = 0]",
    check_dtypes=no_numbers("logical_or", "input", "other"),
)  # fmt: skip
logical_not = unary(
    "logical_not", np.logical_not, NOT_DIFFERENTIABLE, doc="Whether an element is zero, :math:`y = [x = 0]`.",
    to_float=False, names=Names(method=True, inplace=True),
)  # fmt: skip

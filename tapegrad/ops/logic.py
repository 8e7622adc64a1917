"""Logic: operations on bits and truth values, which have no gradient, and comparisons of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.errors import check_bool
from tapegrad.ops.followed import is_close, is_followed
from tapegrad.ops.table import docs
from tapegrad.ops.table.elementwise import check_broadcast, elementwise
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor, from_array


def _check_bits(call: str, x: Tensor, kinds: str = "biu") -> None:
    if x.dtype.kind not in kinds:
        bools = " and bools" if "b" in kinds else ""
        raise NotImplementedError(f"{call} is not implemented for dtype {x.dtype}; it takes integers{bools}")


def _bitwise(
    name: str, function: np.ufunc, what: str, shown: str, kinds: str = "biu", sentence: str = ""
) -> Callable[[Any, Any], Tensor]:
    integers = Sample(((3,), (3,)), values=(np.array([12, 10, 7]), np.array([10, 1, 3])))
    op = elementwise(name, ("x", "y"), function, (NOT_DIFFERENTIABLE,) * 2, oracle=function, samples=(integers,))
    del op_table[name]  # it takes no floating numbers, of which tests of the table are

    def call(input: Any, other: Any) -> Tensor:
        x, y = as_operand(input, name, "input", 1), as_operand(other, name, "other", 2)
        for operand in (x, y):
            _check_bits(name, operand, kinds)
        return op(x, y)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{sentence or f"Combine integers bit by bit, or truth values: {what}."}

    Parameters
    ----------
    input, other : Tensor, array or number
        Of an integer dtype{" or bool" if "b" in kinds else ""}; broadcast together.

    Returns
    -------
    Tensor

    Raises
    ------
    NotImplementedError
        If the dtype is another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.{name}(tg.tensor([12, 10]), 10)
    tensor({shown})
    """
    return call


_TOO = public(method=True, inplace=True)
bitwise_and = _TOO(
    _bitwise("bitwise_and", np.bitwise_and, r"1 where both are, :math:`z = \sum_k 2^k x_k y_k`", "[ 8, 10]")
)
bitwise_or = _TOO(
    _bitwise("bitwise_or", np.bitwise_or, r"1 where one is, :math:`z = \sum_k 2^k (x_k + y_k - x_k y_k)`", "[14, 10]")
)
bitwise_xor = _TOO(
    _bitwise("bitwise_xor", np.bitwise_xor, r"1 where they differ, :math:`z = \sum_k 2^k [x_k \ne y_k]`", "[6, 0]")
)
gcd = _TOO(_bitwise("gcd", np.gcd, "", "[ 2, 10]", "iu", r"Greatest common divisor, :math:`z = \gcd(x, y) \ge 0`."))
lcm = _TOO(_bitwise("lcm", np.lcm, "", "[60, 10]", "iu", r"Least common multiple, :math:`z = |x y| / \gcd(x, y)`."))
bitwise_left_shift = public(method=True, inplace=True, ufuncs=("left_shift",))(
    _bitwise(
        "bitwise_left_shift",
        np.left_shift,
        "",
        "[12288, 10240]",
        "iu",
        "Integers times powers of two, :math:`z = x 2^{y}`.",
    )
)
bitwise_right_shift = public(method=True, inplace=True, ufuncs=("right_shift",))(
    _bitwise(
        "bitwise_right_shift",
        np.right_shift,
        "",
        "[0, 0]",
        "iu",
        r"Integers by powers of two, :math:`z = \lfloor x / 2^{y} \rfloor`.",
    )
)


_inverted = elementwise(
    "bitwise_not", ("x",), np.invert, (NOT_DIFFERENTIABLE,), oracle=np.invert,
    samples=(Sample(((3,),), values=(np.array([12, -10, 0]),)), Sample(((2,),), values=(np.array([True, False]),))),
)  # fmt: skip


del op_table["bitwise_not"]


@public(method=True, inplace=True, ufuncs=("invert",))
def bitwise_not(input: Any) -> Tensor:
    """Invert integers bit by bit, or truth values.

    Formula: :math:`y = -1 - x` of integers.

    Parameters
    ----------
    input : Tensor or array
        Of an integer dtype or bool.

    Returns
    -------
    Tensor

    Raises
    ------
    NotImplementedError
        If the dtype is another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bitwise_not(tg.tensor([True, False]))
    tensor([False,  True])
    """
    x = as_operand(input, "bitwise_not", "input", 1)
    _check_bits("bitwise_not", x)
    return _inverted(x)


def _check_tolerances(rtol: float, atol: float) -> None:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")


@public(method=True)
def equal(input: Any, other: Any) -> bool:
    r"""Whether two tensors have the same shape and the same elements.

    Formula: :math:`y = \prod_i [x_i = z_i]`.

    Parameters
    ----------
    input, other : Tensor or array

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.equal(tg.tensor([1, 2]), tg.tensor([1, 2]))
    True
    """
    x, y = as_operand(input, "equal", "input", 1), as_operand(other, "equal", "other", 2)
    if is_followed(x, y):
        return x.shape == y.shape and bool(xp.all(x == y))
    return x._layout.shape == y._layout.shape and not np.count_nonzero(x._data != y._data)


@public(method=True)
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within ``atol + rtol * abs(other)``.

    Formula: the product of what `isclose` returns.

    Parameters
    ----------
    input, other : Tensor, array or number
        Broadcast together.
    rtol, atol : float
    equal_nan : bool
        Whether nan equals nan.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.allclose(tg.tensor([1.0]), tg.tensor([1.0 + 1e-9]))
    True
    """
    x, y = as_operand(input, "allclose", "input", 1), as_operand(other, "allclose", "other", 2)
    _check_tolerances(rtol, atol)
    check_bool("allclose", "equal_nan", equal_nan)
    check_broadcast("allclose", (x, y))
    if is_followed(x, y):
        return bool(xp.all(is_close(x, y, rtol, atol, equal_nan)))
    return bool(np.allclose(x._data, y._data, rtol, atol, equal_nan))


@public(method=True, common=docs.BINARY)
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    r"""Whether elements are equal within ``atol + rtol * abs(other)``.

    Formula: :math:`y_i = [\left|x_i - z_i\right| \le a + r \left|z_i\right|]` with `atol` a and `rtol` r.

    Parameters
    ----------
    rtol, atol : float
        At least 0.
    equal_nan : bool
        Whether nan equals nan.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or a tolerance is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.isclose(tg.tensor([1.0, 2.0]), tg.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    x, y = as_operand(input, "isclose", "input", 1), as_operand(other, "isclose", "other", 2)
    if x.dtype != y.dtype:
        raise RuntimeError(f"isclose(): {x.dtype} did not match {y.dtype}; convert one with .to(...)")
    _check_tolerances(rtol, atol)
    check_bool("isclose", "equal_nan", equal_nan)
    check_broadcast("isclose", (x, y))
    if is_followed(x, y):
        return is_close(x, y, rtol, atol, equal_nan)
    return from_array(np.asarray(np.isclose(x._data, y._data, rtol, atol, equal_nan)))

"""Sums of a value and a product or quotient, in one pass over tensors of one floating dtype; of others, made of ops."""

from __future__ import annotations

from typing import Any

from tapegrad.ops.arithmetic import div as true_divide
from tapegrad.ops.arithmetic import mul
from tapegrad.ops.casts import cast
from tapegrad.ops.scaled import ADD, times
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.promotion import promote
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_with_product, _with_quotient = connect_as("AddcmulBackward0", ADD), connect_as("AddcdivBackward0", ADD)
_SAMPLES = (Sample(((3,), (3,), (3,))), Sample(((2, 3), (3,), (2, 1))), Sample(((3,), (), (3,))))

_addcmul = elementwise(
    "added_product", ("x", "y", "z"), None,
    (lambda ct: ct, lambda ct, z: ct * xp.conj(z), lambda ct, y: ct * xp.conj(y)),
    fx=lambda x, y, z: x + y * z, samples=_SAMPLES, oracle=lambda x, y, z: x + y * z, node_name="AddcmulBackward0",
    doc="Add a product to a value.",
)  # fmt: skip

_addcdiv = elementwise(
    "added_quotient", ("x", "y", "z"), None,
    (lambda ct: ct, lambda ct, z: ct / xp.conj(z), lambda ct, y, z: -(ct / xp.conj(z)) * xp.conj(y / z)),
    fx=lambda x, y, z: x + y / z, samples=_SAMPLES, oracle=lambda x, y, z: x + y / z, domain=(0.5, 3.0),
    node_name="AddcdivBackward0", doc="Add a quotient to a value.",
)  # fmt: skip


def _are_alike(x: Any, y: Any, z: Any, factor: Any) -> bool:
    """Whether all are plain tensors of one floating dtype, and the factor is a number of Python."""
    if not (x.__class__ is y.__class__ is z.__class__ is Tensor) or factor.__class__ not in (int, float):
        return False
    layout, second, third = x._layout, y._layout, z._layout
    return layout.dtype is second.dtype is third.dtype and layout.dtype.kind == "f" and not layout.weak


_THREE = (Sample(((2, 3), (3,), (2, 1))), Sample(((3,), (), (3,)), {"value": 0.5}))
_OPERANDS = docs.Common("input, tensor1, tensor2 : Tensor or array", returns="Tensor", raises=docs.BINARY.raises)


@public(method=True, inplace=True, common=_OPERANDS, of=_addcmul, is_op=True)
@composite(_THREE, lambda x, y, z, value=1: x + value * y * z)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    r"""Add a product, times a factor: ``input + value * tensor1 * tensor2``.

    Parameters
    ----------
    value : number
        The factor.

    Notes
    -----
    Derivative: with :math:`y = x + c u v`, :math:`\bar x = \bar y`, :math:`\bar u = \bar y c^* v^*` and
    :math:`\bar v = \bar y c^* u^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addcmul(tg.tensor([1.0]), tg.tensor([2.0]), tg.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    if _are_alike(input, tensor1, tensor2, value):
        return _addcmul(input, tensor1 if value == 1 else mul(tensor1, value), tensor2)
    product = mul(tensor1, tensor2)
    result: Tensor = _with_product(input, product if value == 1 else times(ADD, value, input, product))
    return result


@public(method=True, inplace=True, common=_OPERANDS, of=_addcdiv, is_op=True)
@composite(_THREE, lambda x, y, z, value=1: x + value * y / z, domain=(0.5, 3.0))
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    r"""Add a quotient, times a factor: ``input + value * tensor1 / tensor2``.

    Parameters
    ----------
    value : number
        The factor.

    Raises
    ------
    RuntimeError
        If all are integers.

    Notes
    -----
    Derivative: with :math:`y = x + c u / v`, :math:`\bar x = \bar y`, :math:`\bar u = \bar y c^* / v^*` and
    :math:`\bar v = - \bar u u^* / v^*`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addcdiv(tg.tensor([1.0]), tg.tensor([3.0]), tg.tensor([2.0]))
    tensor([2.5000])
    """
    if _are_alike(input, tensor1, tensor2, value):
        return _addcdiv(input, tensor1 if value == 1 else mul(tensor1, value), tensor2)
    given = [as_operand(one, "addcdiv", "tensor", place) for place, one in enumerate((input, tensor1, tensor2), 1)]
    if not any(one._layout.floating for one in given[1:]):
        raise RuntimeError("Integer division with addcdiv is no longer supported; convert with .to(...) first")
    first, second = given[1:]
    if value != 1:  # before the division, as PyTorch does: a quotient that is infinite is not multiplied
        dtype = promote(tuple(one._layout for one in given))
        first = mul(cast(first, dtype), value)
    result: Tensor = _with_quotient(given[0], true_divide(first, second))
    return result

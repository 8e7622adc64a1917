"""Sums of a value and a product or quotient, in one pass over tensors of one floating dtype; of others, made of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.dtypes import check_range
from tapegrad.ops.arithmetic import div as true_divide
from tapegrad.ops.arithmetic import mul
from tapegrad.ops.casts import cast
from tapegrad.ops.scaled import ADD, are_alike, times
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import elementwise
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample
from tapegrad.ops.table.promotion import promote
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_with_product, _with_quotient = connect_as("AddcmulBackward0", ADD), connect_as("AddcdivBackward0", ADD)


def _fused(name: str, node_name: str, fx: Callable[..., Any], *rules: Any, **fields: Any) -> Callable[..., Tensor]:
    """Make the op that adds a product or a quotient, times a number, in one pass."""
    shapes = ((3,), (3,), (3,)), ((2, 3), (3,), (2, 1)), ((3,), (), (3,))
    return elementwise(
        name, ("x", "y", "z", "factor"), None, (lambda ct: ct, *rules, NOT_DIFFERENTIABLE), fx=fx, oracle=fx,
        samples=[Sample((*own, ()), values=(None, None, None, 0.3)) for own in shapes], node_name=node_name,
        real_only=True, **fields,
    )  # fmt: skip


_addcmul = _fused(
    "added_product", "AddcmulBackward0", lambda x, y, z, factor: x + factor * y * z,
    lambda ct, z, factor: ct * factor * z, lambda ct, y, factor: ct * factor * y, doc="Add a multiple of a product.",
)  # fmt: skip
_addcdiv = _fused(
    "added_quotient", "AddcdivBackward0", lambda x, y, z, factor: x + factor * y / z,
    lambda ct, z, factor: ct * factor / z, lambda ct, y, z, factor: -(ct * factor / z) * (y / z), domain=(0.5, 3.0),
    doc="Add a multiple of a quotient.",
)  # fmt: skip

_THREE = (Sample(((2, 3), (3,), (2, 1))), Sample(((3,), (), (3,)), {"value": 0.5}))
_OPERANDS = docs.Common("input, tensor1, tensor2 : Tensor or array", returns="Tensor", raises=docs.BINARY.raises)


@public(method=True, inplace=True, common=_OPERANDS, of=_addcmul, with_keyword=("value", _addcmul))
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
    if are_alike((input, tensor1, tensor2), value):
        return _addcmul(input, tensor1, tensor2, value)
    product = mul(tensor1, tensor2)
    result: Tensor = _with_product(input, product if value == 1 else times(ADD, value, input, product))
    return result


@public(method=True, inplace=True, common=_OPERANDS, of=_addcdiv, with_keyword=("value", _addcdiv))
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
    if are_alike((input, tensor1, tensor2), value):
        return _addcdiv(input, tensor1, tensor2, value)
    given = [as_operand(one, "addcdiv", "tensor", place) for place, one in enumerate((input, tensor1, tensor2), 1)]
    if not any(one._layout.floating for one in given[1:]):
        raise RuntimeError("Integer division with addcdiv is no longer supported; convert with .to(...) first")
    first, second = given[1:]
    if value != 1:  # before the division, as PyTorch does: a quotient that is infinite is not multiplied
        dtype = promote(tuple(one._layout for one in given))
        check_range(value, dtype)
        first = mul(cast(first, dtype), value)
    result: Tensor = _with_quotient(given[0], true_divide(first, second))
    return result

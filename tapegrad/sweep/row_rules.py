"""Rules for many cotangents at once, which stand along a leading dimension.

The rule of an elementwise op takes such a batch as it is, since residuals broadcast. The rules of ops that move or
reduce elements take it with shapes and dimensions moved by one. All other rules are called for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.table.op import ELEMENTWISE, xp
from tapegrad.ops.table.rules import arguments_of, cotangents, fit, rule_calls
from tapegrad.recording.plan import Plan
from tapegrad.tape.entries import PLAN_OBJECT, TapeNode
from tapegrad.tape.layout import Layout, contiguous_layout
from tapegrad.tensor import Tensor

_FAMILIES: Final = (*ELEMENTWISE, "cast", "rounding")
#: Ops whose rule for a batch is that of the same op with each dimension moved by one, and residuals that broadcast.
_MOVED: Final = frozenset(
    ("clone", "cumsum", "expand", "flatten", "flip", "getitem", "log_softmax", "mean", "permute",
     "reshape", "softmax", "squeeze", "stack", "sum", "unsqueeze")
)  # fmt: skip
_WHOLE: Final = (None, None, None)  # a slice of all elements, in keys of indices
_ARRAYS: Final = (ARRAY, "true", "false")  # what NumPy takes for arrays in keys


def takes_rows(plan: Plan) -> bool:
    """Whether the rules of an entry take all rows at once, as far as its plan tells."""
    return rule_calls(plan).is_simple and _rule_of_rows(plan) is not None


def cotangents_of_rows(node: TapeNode, operands: Sequence[int], ct: Any, count: int) -> list[tuple[int, Tensor]]:
    """Return what `cotangents` does, for so many cotangents of each result along the first dimension."""
    plan = node[PLAN_OBJECT]
    rule = _rule_of_rows(plan) if takes_rows(plan) else None
    if rule is None:
        return _one_by_one(node, operands, ct, count)
    batches = []
    for operand in operands:
        value = rule(plan, operand, arguments_of(node, operand, ct), count)
        if value is None or value.ndim < 1 + len(plan.layouts[operand].shape):
            return _one_by_one(node, operands, ct, count)
        batches.append((operand, _fit_rows(value, plan.layouts[operand], count)))
    return batches


RowRule = Callable[[Plan, int, dict[str, Any], int], Any]


def _rule_of_rows(plan: Plan) -> RowRule | None:
    name, family = plan.op.name, plan.op.family
    if family in _FAMILIES:
        return _elementwise
    if name in _MOVED:
        return _moved
    return _matmul if name == "matmul" else None


def _one_by_one(node: TapeNode, operands: Sequence[int], ct: Any, count: int) -> list[tuple[int, Tensor]]:
    """Call the rules for each row."""
    rows = []
    for k in range(count):
        row = tuple([part if part is None else part[k] for part in ct]) if isinstance(ct, tuple) else ct[k]
        rows.append(dict(cotangents(node, operands, row)))
    return [(n, xp.stack([row[n] for row in rows])) for n in rows[0]]


def _fit_rows(value: Tensor, layout: Layout, count: int) -> Tensor:
    """Do for each row as `fit` does."""
    extra = value.ndim - 1 - len(layout.shape)
    if extra > 0:
        value = xp.sum(value, tuple(range(1, 1 + extra)))
    return fit(value, contiguous_layout((count, *layout.shape), layout.dtype))


def _by_rule(plan: Plan, operand: int, *arguments: Any) -> Any:
    rule = plan.op.rule(operand)
    assert callable(rule)
    return rule(*arguments)


def _elementwise(plan: Plan, operand: int, given: dict[str, Any], count: int) -> Any:
    if any(name == "number" or name.endswith("shape") or name == "shapes" for name in given):
        return None
    value = _by_rule(plan, operand, *given.values())
    return value if isinstance(value, Tensor) and value.ndim == given["ct"].ndim else None


def _moved(plan: Plan, operand: int, given: dict[str, Any], count: int) -> Any:
    name, values = plan.op.name, []
    if not plan.layouts[operand].shape:  # dimensions of a number are none, or its only one
        return None
    if name == "expand":
        return given["ct"]
    for argument, value in given.items():
        if argument == "key":
            if any(item in _ARRAYS for item in value):
                return None
            value = (_WHOLE, *value)
        elif argument.endswith("shape"):
            value = (count, *value)
        elif argument in ("dim", "dims"):
            value = _behind(value)
            if name == "permute":
                value = (0, *value)
        elif argument != "ct" and isinstance(value, Tensor):
            value = xp.unsqueeze(value, 0)
        values.append(value)
    return _by_rule(plan, operand, *values)


def _behind(dim: Any) -> Any:
    """Return dimensions as they are with one more in front."""
    if isinstance(dim, tuple):
        return tuple([_behind(one) for one in dim])
    return dim + 1 if dim >= 0 else dim


def _matmul(plan: Plan, operand: int, given: dict[str, Any], count: int) -> Any:
    ct, other, shape = given.values()  # (count, ..., m, n), without m or n for a vector
    if operand == 0:
        if len(shape) == 1 and other.ndim > 2:  # a row vector: (..., 1, n) @ (..., n, k)
            value = xp.matmul(xp.unsqueeze(ct, -2), xp.conj(xp.transpose(other, -2, -1)))
            return xp.reshape(value, (*value.shape[:-2], value.shape[-1]))
        return _by_rule(plan, 0, ct, other, shape)
    if other.ndim == 1:
        other = xp.conj(other)
        if len(shape) == 1:
            return xp.mul(xp.unsqueeze(ct, -1), other)
        return xp.mul(xp.unsqueeze(ct, -2), xp.unsqueeze(other, -1))  # an outer product
    if len(shape) > 1:
        return _by_rule(plan, 1, ct, other, shape)
    if other.ndim == 2:
        return xp.matmul(ct, xp.conj(other))  # (count, m) @ (m, k)
    value = xp.matmul(xp.unsqueeze(ct, -2), xp.conj(other))  # (count, ..., 1, m) @ (..., m, k)
    return xp.reshape(value, (*value.shape[:-2], value.shape[-1]))

"""The short way of forward mode: tangents of one result of tensors, by calls of compiled code.

`tapegrad.autograd.jvp` serves any operation, with arguments that are bound and plans that are looked up in Python,
which takes some 25 µs. Nearly all operations are of three kinds that need none of that: linear and bilinear ones, where
the operation itself is called with tangents, and elementwise ones of real numbers, where the rule is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Op, op_table, xp
from tapegrad.tensor import Tensor, from_array

__all__ = ["kind_of", "tangent_of_call"]

Call = Callable[..., Any]
Tangents = Sequence[Tensor | None]


class Kind:
    """How tangents follow an operation.

    Attributes
    ----------
    call : callable
        The compiled function of the operation.
    n_operands : int
    is_linear, is_bilinear : bool
    rules : tuple of (callable, tuple of int or None)
        Of an elementwise operation, for each operand: the rule, and which values it takes; see `_values_of`.
    """

    def __init__(self, op: Op, call: Call) -> None:
        self.call, self.n_operands = call, len(op.operands)
        self.is_linear, self.is_bilinear = op.linear, op.bilinear
        self.rules: tuple[tuple[Call, tuple[int, ...]], ...] = ()
        if not (op.linear or op.bilinear):
            names = ("ct", "out", *op.operands)
            self.rules = tuple([(rule, tuple(map(names.index, rule_parameters(rule)))) for rule in _rules_of(op)])


def _rules_of(op: Op) -> list[Any]:
    return [op.rule(operand) for operand in range(len(op.operands))]


def _is_simple(op: Op) -> bool:
    """Whether tangents follow an operation by calls of it, or of its rules with operands and the result."""
    if op.variadic or len(op.results) != 1 or any(rule is NOT_DIFFERENTIABLE for rule in _rules_of(op)):
        return False
    if op.linear or op.bilinear:
        return len(op.operands) <= 2
    known = {"ct", "out", *op.operands}
    return op.is_elementwise and all(
        callable(rule) and known.issuperset(rule_parameters(rule)) for rule in _rules_of(op)
    )


_kinds: Final[dict[Call, Kind | None]] = {}


def kind_of(call: Call) -> Kind | None:
    """Return how tangents follow the operation that a compiled function computes; None if the short way serves not."""
    try:
        return _kinds[call]
    except KeyError:
        for op in op_table.values():
            own = getattr(op.plans, "call", None)
            if own is call:
                _kinds[call] = Kind(op, call) if _is_simple(op) else None
        return _kinds.setdefault(call, None)


def tangent_of_call(kind: Kind, args: tuple[Any, ...], tangents: Tangents, out: Tensor) -> Tensor | None:
    """Return the tangent of a result, None if the short way does not serve."""
    dtype, count = out._layout.dtype, kind.n_operands
    for value in args[:count]:
        if isinstance(value, Tensor):
            if value._layout.dtype is not dtype:
                return None
        elif value.__class__ not in (int, float):
            return None
    rest = args[count:]
    if kind.is_linear:
        own = [_zeros(value) if tangent is None else tangent for value, tangent in zip(args, tangents, strict=False)]
        return kind.call(*own, *rest)  # type: ignore[no-any-return]
    terms = []
    for operand, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if kind.is_bilinear:
            terms.append(kind.call(*args[:operand], tangent, *args[operand + 1 :]))
        elif dtype.kind == "f" and not rest:
            rule, places = kind.rules[operand]
            values = (tangent, out, *args)
            terms.append(rule(*[values[place] for place in places]))
        else:
            return None
    total: Tensor = terms[0] if len(terms) == 1 else xp.add(terms[0], terms[1])
    if any(total is own for own in tangents):
        total = total.clone()  # a write to the one is none to the other
    if len(terms) > 2 or total._layout.shape != out._layout.shape or total._layout.dtype is not dtype:
        return None
    return total


def _zeros(like: Any) -> Any:
    if not isinstance(like, Tensor):
        return 0.0
    return from_array(np.zeros(like._layout.shape, like._layout.dtype))

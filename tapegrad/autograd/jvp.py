"""Forward mode of one op, derived from what the op table says: the tangent of its result.

No op has a second formula. The tangent follows from the first of these that applies:

1. a linear op: the forward of the tangents;
2. a bilinear op: the forward with each operand in turn replaced by its tangent, summed;
3. an elementwise op: the VJP rule with the tangent as cotangent. The Jacobian is diagonal, so that it is its own
   transpose; complex tangents are conjugated before and after;
4. any other: a VJP rule is linear in the cotangent, so its transpose is the rule differentiated by the cotangent
   (J. Bradbury et al., "You only linearize once", POPL 2023, derive the one from the other the other way round).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad
from tapegrad.kernels.rules import rule_parameters
from tapegrad.modes import enable_grad
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op, xp
from tapegrad.ops.table.rules import fit, is_converted
from tapegrad.tensor import Tensor, from_array

__all__ = ["jvp"]

Tangents = Sequence[Tensor | None]
ELEMENTWISE = ("unary", "binary", "elementwise")


def jvp(op: Op, bound: Bound, out: Any, tangents: Tangents) -> Any:
    """Return the tangent of an op's result.

    Parameters
    ----------
    op : Op
    bound : Bound
        The call.
    out : Tensor, or tuple of Tensor
        What the call returned.
    tangents : sequence of (Tensor or None)
        Of the operands, each of its operand's shape and dtype; None stands for zeros.

    Returns
    -------
    Tensor, or tuple of (Tensor or None)
        Of the shape and dtype of `out`; of several results a tuple, with None for those that are no floating numbers.
        It is computed by ops, so that it can be differentiated.
    """
    if op.linear:
        return compute(op, bound._replace(operands=_with_zeros(op, bound.operands, tangents)))[0]
    if op.bilinear:
        return _sum([compute(op, bound._replace(operands=each))[0] for each in _one_replaced(bound.operands, tangents)])
    if op.family in ELEMENTWISE:
        return _along_the_diagonal(op, bound, out, tangents)
    return _by_transposition(op, bound, out, tangents)


def _with_zeros(op: Op, operands: Sequence[Tensor], tangents: Tangents) -> list[Tensor]:
    """Return the tangents, zeros where there is none, and operands without derivatives, e.g. indices, as they are."""
    found = []
    for number, (x, tangent) in enumerate(zip(operands, tangents, strict=True)):
        constant = op.rule(number) is NOT_DIFFERENTIABLE
        found.append(tangent if tangent is not None else x if constant else _zeros(x))
    return found


def _zeros(like: Tensor) -> Tensor:
    return from_array(np.zeros(like._layout.shape, like._layout.dtype))


def _one_replaced(operands: Sequence[Tensor], tangents: Tangents) -> list[list[Tensor]]:
    """Return the operands once for each tangent, with that one in the place of its operand."""
    return [
        [*operands[:number], tangent, *operands[number + 1 :]]
        for number, tangent in enumerate(tangents)
        if tangent is not None
    ]


def _sum(terms: Sequence[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = xp.add(total, term)
    return total


def _along_the_diagonal(op: Op, bound: Bound, out: Tensor, tangents: Tangents) -> Tensor:
    terms = []
    for number, tangent in enumerate(tangents):
        if tangent is not None:
            term = _rule_value(op, number, bound, (out,), xp.conj(tangent))
            terms.append(xp.conj(term))
    return fit(xp.expand(_sum(terms), out._layout.shape), out._layout)


def _by_transposition(op: Op, bound: Bound, out: Any, tangents: Tangents) -> Any:
    """Return d/dct <rule(ct), tangents>, which is the tangent of the result, as the rule is linear in ct."""
    results = out if isinstance(out, tuple) else (out,)
    floating = [result for result in results if result._layout.floating]
    wanted = tuple(tangent is not None for tangent in tangents)
    with enable_grad():
        cts = [_zeros(result).requires_grad_() for result in floating]
        ct = tuple(cts) if len(cts) > 1 else cts[0]
        if callable(op.vjp):
            values = _rule_value(op, 0, bound, results, ct, wanted)
        else:
            values = [_rule_value(op, number, bound, results, ct) if own else None for number, own in enumerate(wanted)]
        pairs = [
            (fit(value, x._layout), tangent)
            for value, x, tangent in zip(values, bound.operands, tangents, strict=True)
            if value is not None and tangent is not None and value.requires_grad
        ]
        found = grad(
            [value for value, _ in pairs],
            cts,
            [tangent for _, tangent in pairs],
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
    if not isinstance(out, tuple):
        return found[0]
    rest = iter(found)
    return tuple(next(rest) if result._layout.floating else None for result in results)


def _rule_value(
    op: Op, operand: int, bound: Bound, results: Sequence[Tensor], ct: Any, wanted: tuple[bool, ...] = ()
) -> Any:
    """Call the rule of an operand with what it asks for."""
    rule: Callable[..., Any] = op.rule(operand)  # type: ignore[assignment]  # only operands with a rule have tangents
    known = {
        **{f"{name}_shape": x._layout.shape for name, x in zip(op.operands, bound.operands, strict=False)},
        **{name: _residual(op, x, results[0]) for name, x in zip(op.operands, bound.operands, strict=False)},
        **dict(zip(op.results, results, strict=True)),
        **bound.attrs,
        "ct": ct,
        "number": operand,
        "shapes": tuple(x._layout.shape for x in bound.operands),
        "index_arrays": bound.index_arrays,
        "wanted": wanted,
    }
    return rule(*[known[name] for name in rule_parameters(rule)])


def _residual(op: Op, x: Tensor, out: Tensor) -> Any:
    """Return an operand as rules get it."""
    if x._layout.weak:
        return x._data
    return xp.cast(x, out._layout.dtype) if is_converted(op, x._layout) else x

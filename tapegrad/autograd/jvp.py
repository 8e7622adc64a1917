"""Forward mode of one op: the tangent of its result, derived from the op's forward and rules.

No op has a second formula. The first of these cases that applies gives the tangent:

1. a linear op: the forward of the tangents;
2. a bilinear op: the forward with each operand in turn replaced by its tangent, summed;
3. an elementwise op: the VJP rule with the tangent as cotangent. The Jacobian is diagonal, so it is its own transpose;
   complex tangents are conjugated before and after;
4. any other op: a VJP rule is linear in the cotangent, so its transpose is the derivative of the rule with respect to
   the cotangent (J. Bradbury et al., "You only linearize once", POPL 2023, transpose in the other direction).
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
from tapegrad.tape.entries import private_leaf
from tapegrad.tensor import Tensor, from_array

__all__ = ["jvp"]

Tangents = Sequence[Tensor | None]


def jvp(op: Op, bound: Bound, out: Any, tangents: Tangents) -> Any:
    """Return the tangent of an op's result.

    Parameters
    ----------
    op : Op
    bound : Bound
        The arguments of the call.
    out : Tensor, or tuple of Tensor
        The result of the call.
    tangents : sequence of (Tensor or None)
        The tangents of the operands, each of its operand's shape and dtype; None stands for zeros.

    Returns
    -------
    Tensor, or tuple of (Tensor or None)
        The tangent, of the shape and dtype of `out`; for several results a tuple, with None for integer results. Ops
        compute it, so that it can be differentiated.
    """
    if op.linear:
        return compute(op, bound._replace(operands=_with_zeros(op, bound.operands, tangents)))[0]
    if op.bilinear:
        return _sum([compute(op, bound._replace(operands=each))[0] for each in _one_replaced(bound.operands, tangents)])
    if op.is_elementwise:
        return _along_the_diagonal(op, bound, out, tangents)
    return _by_transposition(op, bound, out, tangents)


def _with_zeros(op: Op, operands: Sequence[Tensor], tangents: Tangents) -> list[Tensor]:
    """Return the tangents: zeros where there is none, and the operand itself if it has no derivative, as indices."""
    filled = []
    for operand, (x, tangent) in enumerate(zip(operands, tangents, strict=True)):
        constant = op.rule(operand) is NOT_DIFFERENTIABLE
        filled.append(tangent if tangent is not None else x if constant else _zeros(x))
    return filled


def _zeros(like: Tensor) -> Tensor:
    return from_array(np.zeros(like._layout.shape, like._layout.dtype))


def _one_replaced(operands: Sequence[Tensor], tangents: Tangents) -> list[list[Tensor]]:
    """Return the operands once for each tangent, with the tangent in place of its operand."""
    return [
        [*operands[:index], tangent, *operands[index + 1 :]]
        for index, tangent in enumerate(tangents)
        if tangent is not None
    ]


def _sum(terms: Sequence[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = xp.add(total, term)
    return total


def _along_the_diagonal(op: Op, bound: Bound, out: Tensor, tangents: Tangents) -> Tensor:
    terms = []
    for operand, tangent in enumerate(tangents):
        if tangent is not None:
            term = _rule_value(op, operand, bound, (out,), xp.conj(tangent))
            terms.append(xp.conj(term))
    return fit(xp.expand(_sum(terms), out._layout.shape), out._layout)


def _by_transposition(op: Op, bound: Bound, out: Any, tangents: Tangents) -> Any:
    """Return d/dct <rule(ct), tangents>, which is the tangent of the result, as the rule is linear in ct."""
    results = out if isinstance(out, tuple) else (out,)
    floating = [result for result in results if result._layout.floating]
    wanted = tuple(tangent is not None for tangent in tangents)
    with enable_grad():
        cts = [private_leaf(_zeros(result)) for result in floating]
        ct = tuple(cts) if len(cts) > 1 else cts[0]
        if callable(op.vjp):
            values = _rule_value(op, 0, bound, results, ct, wanted)
        else:
            values = [
                _rule_value(op, operand, bound, results, ct) if is_wanted else None
                for operand, is_wanted in enumerate(wanted)
            ]
        pairs = [
            (fit(value, x._layout), tangent)
            for value, x, tangent in zip(values, bound.operands, tangents, strict=True)
            if value is not None and tangent is not None and value.requires_grad
        ]
        slopes = grad(
            [value for value, _ in pairs],
            cts,
            [tangent for _, tangent in pairs],
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
    if not isinstance(out, tuple):
        return slopes[0]
    rest = iter(slopes)
    return tuple(next(rest) if result._layout.floating else None for result in results)


def _rule_value(
    op: Op, operand: int, bound: Bound, results: Sequence[Tensor], ct: Any, wanted: tuple[bool, ...] = ()
) -> Any:
    """Call the rule of an operand with the arguments that it names."""
    rule: Callable[..., Any] = op.rule(operand)  # type: ignore[assignment]  # only operands with a rule have tangents
    arguments = {
        **{f"{name}_shape": x._layout.shape for name, x in zip(op.operands, bound.operands, strict=False)},
        **{name: _residual(op, x, results[0]) for name, x in zip(op.operands, bound.operands, strict=False)},
        **dict(zip(op.results, results, strict=True)),
        "out": next((result for result in results if result._layout.floating), results[0]),
        **bound.attrs,
        "ct": ct,
        "number": operand,
        "shapes": tuple(x._layout.shape for x in bound.operands),
        "index_arrays": bound.index_arrays,
        "wanted": wanted,
    }
    return rule(*[arguments[name] for name in rule_parameters(rule)])


def _residual(op: Op, x: Tensor, out: Tensor) -> Any:
    """Return an operand as it is passed to rules."""
    if x._layout.weak:
        return x._data
    return xp.cast(x, out._layout.dtype) if is_converted(op, x._layout) else x

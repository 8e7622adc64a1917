"""Roots as an operation: a value, and the equations that it solves, from which its derivatives follow."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from tapegrad import modes
from tapegrad.func.products import linearize, vjp
from tapegrad.modes import enable_grad
from tapegrad.ops.table.gateway import apply
from tapegrad.ops.table.op import Bound, Op, op_table
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.scan_packs import Pack, packs
from tapegrad.program.trace import trace
from tapegrad.program.traced import example
from tapegrad.tape.entries import MAX_SAVED
from tapegrad.tensor import Tensor

Solve = Callable[[Callable[..., list[Tensor]], list[Tensor]], list[Tensor]]


class Equations:
    """What a root solves.

    Attributes
    ----------
    program : Program
        From the leaves of a point, and parameters, to as many values, which are zero at the root.
    leaves : Pack
        Where the leaves stand in the root, which is a vector.
    parameters : list of Pack
        Where parameters stand in the operands; none if they are operands as they are.
    solve : callable
        From a linear function of leaves, and leaves, to those for which the function returns them.
    """

    def __init__(self, program: Program, leaves: Pack, parameters: list[Pack], solve: Solve) -> None:
        self.program, self.leaves, self.parameters, self.solve = program, leaves, parameters, solve

    def __repr__(self) -> str:
        return f"<equations of {len(self.program.entries)} operations>"

    def values(self, leaves: Sequence[Tensor], operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the values of the equations."""
        own = list(operands)
        if self.parameters:
            own = [None] * (len(self.program.inputs) - len(leaves))  # type: ignore[list-item]
            for pack, operand in zip(self.parameters, operands, strict=True):
                pack.put(operand, own)
        return tuple(replay(self.program, [*leaves, *own])[0])

    def point(self, root: Tensor) -> list[Tensor]:
        """Return the leaves of a root."""
        found: list[Any] = [None] * len(self.leaves.shapes)
        self.leaves.put(root, found)
        return found


def attached(equations: Callable[..., list[Tensor]], leaves: Sequence[Tensor], solve: Solve) -> list[Tensor]:
    """Return a root as a function of what its equations take from outside."""
    program, captured = trace(equations, [example(own) for own in leaves], [True] * len(leaves))
    if not any(own.requires_grad for own in captured):
        return list(leaves)
    if program.guards and modes.interceptor() is not None:
        equations(*leaves)  # what it looks at is looked at in the program around, too
    (whole,) = packs([own._layout for own in leaves]) if len({own.dtype for own in leaves}) == 1 else (None,)
    if whole is None:
        shown = ", ".join(str(own.dtype) for own in leaves)
        raise TypeError(f"custom_root: all values of the guess must have one dtype, got {shown}")
    kinds, operands = [], list(captured)
    if len(captured) > MAX_SAVED:
        kinds = packs([own._layout for own in captured])
        operands = [own.joined(captured) for own in kinds]
    found = Equations(program, whole, kinds, solve)
    root = apply(root_op(len(operands) + 1), Bound([*operands, whole.joined(leaves)], {"equations": found}))
    return found.point(root)


def _rule(
    cts: Tensor, equations: Equations | None, wanted: Sequence[bool], operands: Sequence[Tensor], root: Tensor
) -> Any:
    """Return the cotangents of parameters: by the transposed of the solution of the linearised equations."""
    if equations is None:
        raise NotImplementedError(
            "the derivative of custom_root() calls its tangent_solve, which is Python, and no part of a file; save the "
            "program of the derivative, e.g. of func.grad(f)"
        )
    point = equations.point(root)
    with enable_grad():
        _, slope = linearize(lambda *leaves: equations.values(leaves, operands), *point)
        seeds = equations.point(cts)
        _, transposed = vjp(lambda *y: tuple(equations.solve(slope, list(y))), *seeds)
        solved = transposed(tuple(seeds))
        _, back = vjp(lambda *own: equations.values(point, own), *operands)
        found = back(tuple([-own for own in solved]))
    return (*[own if is_wanted else NO_COTANGENT for own, is_wanted in zip(found, wanted, strict=False)], NO_COTANGENT)


@functools.cache
def root_op(n_operands: int) -> Op:
    """Return the operation with so many operands: parameters, and the root."""
    operands = (*[f"x{k}" for k in range(n_operands - 1)], "root")

    def rule(ct: Tensor, equations: Equations | None, wanted: tuple[bool, ...], out: Tensor, *own: Tensor) -> Any:
        return _rule(ct, equations, wanted, own, out)

    names = ("ct", "equations", "wanted", "out", *operands[:-1])
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    op = Op(
        name="custom_root", operands=operands, forward=lambda *arrays, equations: arrays[-1], vjp=rule,
        family="custom_root", attrs=("equations",),
    )  # fmt: skip
    del op_table[op.name]  # its public function is `tapegrad.func.custom_root`
    return op


__all__: Final = ["Equations", "attached", "root_op"]

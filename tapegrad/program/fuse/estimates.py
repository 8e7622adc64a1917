"""How long code would be, before a program is lowered: what would be refused anyway is refused in no time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from tapegrad.ops.table.op import ELEMENTWISE, NOT_DIFFERENTIABLE
from tapegrad.program.program import Entry, Program

__all__ = [
    "SPARSE",
    "fewest_scalars",
    "loaded_scalars",
    "products_of_convolutions",
    "unrolled_calls",
    "unrolled_scalars",
]

#: Kinds of ops whose zeros are terms that nothing was added to.
SPARSE: Final = frozenset(("index_scatter_add", "strided_put", "strided_sum", "scatter_add", "diag_embed", "put_along"))
_SUMS: Final = frozenset(("index_scatter_add", "scatter_add", "diag_embed"))  # of which no element overwrites another
_ALL_ELEMENTS: Final = ELEMENTWISE | {"reduction"}
_INSTRUCTIONS: Final = frozenset((
    "abs", "add", "affine", "ceil", "clamp", "copysign", "div", "eq", "floor", "fmax", "fmin", "ge", "gt",
    "hardtanh", "huber_loss", "l1_loss", "le", "leaky_relu", "lerp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "neg", "pow", "relu", "rsqrt", "sign", "sqrt", "sub",
    "threshold", "trunc", "where",
))  # fmt: skip
_CONVOLUTIONS: Final = frozenset(("conv2d", "conv2d_biased", "conv2d_transposed", "conv2d_kernels"))
_CHOOSING: Final = frozenset(("where", "pow"))  # a constant may say that elements are not needed


def unrolled_scalars(program: Program, long: int) -> int:
    """Return about how many scalars a program has if dimensions longer than this are axes."""
    return sum(
        math.prod([length for length in program.layouts[number].shape if length <= long])
        for entry in program.entries
        for number in entry.results
    )


def unrolled_calls(program: Program, long: int) -> int:
    """Return about how many of these scalars are computed by functions, each of them a part of straight code."""
    return sum(
        math.prod([length for length in program.layouts[entry.results[0]].shape if length <= long])
        for entry in program.entries
        if (entry.op.is_elementwise and entry.op.name not in _INSTRUCTIONS) or entry.op.family == "along"
    )


def loaded_scalars(program: Program, long: int) -> int:
    """Return how many scalars are made of the inputs."""
    return sum(
        math.prod([length for length in program.layouts[number].shape if length <= long]) for number in program.inputs
    )


def products_of_convolutions(program: Program, long: int) -> int:
    """Return how many products the largest convolution of a program adds up: of an image if more than `long` are."""
    most = 0
    for entry in program.entries:
        if entry.op.name not in _CONVOLUTIONS:
            continue
        one, two, *_, result = (program.layouts[number].shape for number in (*entry.operands, *entry.results))
        places, kernels = {"conv2d_transposed": (one, two), "conv2d_kernels": (one, result)}.get(
            entry.op.name, (result, two)
        )
        images = places[0] if len(places) == 4 and places[0] > long else 1
        most = max(most, math.prod(places) * math.prod(kernels[1:]) // images)
    return most


def fewest_scalars(program: Program, long: int, moves: Callable[[Entry], np.ndarray | None]) -> int:
    """Return how many scalars straight code has at least: elements of inputs that are needed, and of outputs.

    Parameters
    ----------
    program : Program
        Without batches.
    long : int
        Dimensions longer than this are axes: what has one is not counted.
    moves : callable
        Of `tapegrad.program.fuse.lowering`.
    """
    layouts = program.layouts
    results = [*program.outputs, *[guard.value for guard in program.guards]]
    needed, taken = _needed(program, results, moves), 0
    if not any(length > long for layout in layouts for length in layout.shape):
        taken = sum(math.prod(layouts[number].shape) for number in results)
    shapes = [layouts[number].shape for number in program.inputs if number in needed]
    return taken + sum(math.prod(shape) for shape in shapes if all(length <= long for length in shape))


def _needed(program: Program, results: list[int], moves: Callable[[Entry], np.ndarray | None]) -> set[int]:
    """Return values of which every element is needed; not all of them, but those that are easy to see."""
    needed, sparse = set(results), _sparse(program)
    for entry in reversed(program.entries):
        op, operands = entry.op, entry.operands
        if needed.isdisjoint(entry.results) or 0 in program.layouts[entry.results[0]].shape:
            continue
        if op.name == "matmul" or (op.family in _ALL_ELEMENTS and op.name not in _CHOOSING):
            if op.name in ("add", "sub") or sparse.isdisjoint(operands):
                needed.update(
                    number for k, number in enumerate(operands)
                    if op.rule(k) is not NOT_DIFFERENTIABLE and program.layouts[number].dtype.kind == "f"
                )  # fmt: skip
        elif op.name in _SUMS and len(operands) == 1:
            needed.update(operands)
        elif len(operands) == 1 and (positions := moves(entry)) is not None:
            size = math.prod(program.layouts[operands[0]].shape)
            if positions.size >= size and np.bincount(positions.reshape(-1), minlength=size + 1)[1:].all():
                needed.update(operands)
    return needed


def _sparse(program: Program) -> set[int]:
    """Return the values that may have elements to which nothing was added: what they are multiplied with is dropped."""
    found: set[int] = set()
    for entry in program.entries:
        if entry.op.name in SPARSE or not found.isdisjoint(entry.operands):
            found.update(entry.results)
    return found

"""Kernels along one dimension, which call a function for each line, or for each block of lines; and their steps.

A kernel goes over contiguous arrays of shape ``(outer, n, inner)``, that is over `outer * inner` lines of n elements.
The elements of a line are `inner` apart; if `inner` is 1, LLVM sees a constant distance. Arguments with one element a
line are contiguous arrays of shape ``(outer, inner)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.exponentials import BLOCKS, SHORT, Block, each
from tapegrad.kernels.lines import LINES
from tapegrad.recording.steps import ARRAY, TERMS, Step
from tapegrad.tape.layout import Layout

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan


def _kernel(block: Block, size: int) -> Callable[..., int]:
    """Return the kernel that calls a function for every block; the kernel returns how many lines it could not do."""
    terms, short = TERMS, SHORT

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        failed, most = 0, terms // max(n, 1) if n < short else 1
        if inner == 1:
            for i in range(0, outer, most):
                failed += block(args, i * n * size, i, min(most, outer - i), n, n * size, size, accumulate)
            return failed
        for i in range(outer):
            for j in range(0, inner, most):
                at, number = (i * n * inner + j) * size, i * inner + j
                failed += block(args, at, number, min(most, inner - j), n, size, inner * size, accumulate)
        return failed

    return kernel


@cache
def kernel_along(name: str, dtype: str) -> int:
    """Return the address of the kernel of a function in `BLOCKS` or `LINES`."""
    size = np.dtype(dtype).itemsize
    block = BLOCKS[name](dtype, size) if name in BLOCKS else each(LINES[name](dtype, size))
    return address_of(f"{name}-{dtype}", _kernel(block, size))


def geometry_along(shape: Sequence[int], dims: Sequence[int]) -> list[int] | None:
    """Return the geometry of a kernel along neighbouring dimensions; None if they are no neighbours.

    >>> geometry_along((2, 3, 4), (1,))
    [0, 2, 3, 4]
    """
    if list(dims) != list(range(dims[0], dims[-1] + 1)) if dims else len(shape):
        return None
    first, last = (dims[0], dims[-1] + 1) if dims else (0, 0)
    return [0, *(math.prod(part) for part in (shape[:first], shape[first:last], shape[last:]))]


def has_kernel(layout: Layout) -> bool:
    """Whether there are kernels for an operand of this layout."""
    return layout.dtype.name in ("float32", "float64") and layout.contiguous and not layout.inline


def step_along(plan: Plan, dims: Sequence[int], sources: Sequence[str]) -> Step | None:
    """Return the step of the kernel with the name of the op; None if the operand is not contiguous.

    Parameters
    ----------
    plan : Plan
    dims : sequence of int
    sources : sequence of str
        Names of the residuals that the kernel takes after the cotangent.
    """
    layout = plan.layouts[0]
    geometry = geometry_along(layout.shape, dims)
    if geometry is None or not has_kernel(layout):
        return None
    places = [
        (ARRAY, plan.position(name)) if name.startswith("index_array") else plan.source(name)
        for name in ("ct", *sources)
    ]
    return Step(partial(kernel_along, f"{plan.name}-back", layout.dtype.name), geometry, places)

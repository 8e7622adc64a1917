"""The ops, and functions made of them.

A function says itself under which names it is public (see `tapegrad.ops.table.public`). The files that have public
functions are imported here.
"""

from tapegrad.ops import (
    along,
    arithmetic,
    bessel,
    broadcasting,
    casts,
    class_losses,
    complex,
    composite,
    concat,
    convolution,
    creation,
    cumulative,
    diagonals,
    eigen,
    einsum,
    entropy,
    error_functions,
    extrema,
    extremes,
    fill,
    gamma_functions,
    incomplete,
    linalg,
    logic,
    losses,
    matrices,
    movement,
    numbers,
    ordering,
    permutations,
    random,
    ranges,
    reductions,
    rounding,
    scaled,
    transcendental,
    variance,
)
from tapegrad.ops.table import public

_functions = public.functions(public.TOP)
__all__ = list(_functions)
globals().update(_functions)  # some have the name of their file

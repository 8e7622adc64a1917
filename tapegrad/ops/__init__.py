"""The op table: one row per operation, and the functions that record them.

What is public, and under which names, is said where a function stands (see `tapegrad.ops.table.public`); here are the
files that have such functions.
"""

from tapegrad.ops import (
    along,
    arithmetic,
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
    extrema,
    fill,
    linalg,
    logic,
    losses,
    matrices,
    movement,
    ordering,
    permutations,
    random,
    ranges,
    reductions,
    transcendental,
    variance,
)
from tapegrad.ops.table import public

_functions = public.functions(public.TOP)
__all__ = list(_functions)
globals().update(_functions)  # some have the name of their file

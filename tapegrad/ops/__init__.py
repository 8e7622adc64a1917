"""The ops, and functions made of them.

A function says itself under which names it is public (see `tapegrad.ops.table.public`). The files that have public
functions are imported here.
"""

from tapegrad.ops import (
    along,
    arithmetic,
    broadcasting,
    casts,
    class_losses,
    complex,
    complex_parts,
    composite,
    concat,
    convolution,
    convolutions,
    creation,
    cumulative,
    diagonals,
    differences,
    eigen,
    einsum,
    extrema,
    extremes,
    fill,
    fourier,
    frequencies,
    grids,
    indices,
    interpolation,
    joining,
    linalg,
    logic,
    losses,
    matrices,
    max_pooling,
    movement,
    ordering,
    padding,
    permutations,
    pooling,
    random,
    ranges,
    reductions,
    repeating,
    replaced,
    resampling,
    rounding,
    scaled,
    sections,
    shuffles,
    splitting,
    strided,
    transcendental,
    triangles,
    turning,
    variance,
)
from tapegrad.ops.table import public

_functions = public.functions(public.TOP)
__all__ = list(_functions)
globals().update(_functions)  # some have the name of their file

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
    composite,
    concat,
    convolution,
    creation,
    cumulative,
    diagonals,
    eigen,
    einsum,
    embedding,
    extrema,
    extremes,
    fill,
    flat_index,
    gather,
    index_dim,
    linalg,
    logic,
    losses,
    masks,
    matrices,
    movement,
    ordering,
    permutations,
    positions,
    quantiles,
    random,
    ranges,
    ranks,
    reductions,
    rounding,
    scaled,
    scans,
    scatter,
    topk,
    transcendental,
    variance,
    without_nan,
)
from tapegrad.ops.table import public

_functions = public.functions(public.TOP)
__all__ = list(_functions)
globals().update(_functions)  # some have the name of their file

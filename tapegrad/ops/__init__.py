"""The ops, and functions made of them.

A function says itself under which names it is public (see `tapegrad.ops.table.public`). The files that have public
functions are imported here.
"""

from tapegrad.ops import (
    activations,
    addmm,
    along,
    arithmetic,
    broadcasting,
    casts,
    cholesky,
    class_losses,
    complex,
    composite,
    concat,
    convolution,
    covariance,
    creation,
    crosses,
    cumulative,
    determinants,
    diagonals,
    distances,
    eigen,
    eigenvalues,
    einsum,
    extrema,
    extremes,
    fill,
    gates,
    inverses,
    likelihoods,
    linalg,
    logic,
    losses,
    lu,
    lu_solve,
    matrices,
    matrix_functions,
    matrix_norms,
    movement,
    norms,
    older,
    ordering,
    permutations,
    piecewise,
    products,
    pseudoinverses,
    qr,
    random,
    ranges,
    reductions,
    rounding,
    scaled,
    shrink,
    svd,
    transcendental,
    triangular,
    variance,
)
from tapegrad.ops.table import public

_functions = public.functions(public.TOP)
__all__ = list(_functions)
globals().update(_functions)  # some have the name of their file

"""The op table: one row per operation, and the functions that record them."""

from tapegrad.ops import arithmetic, complex, transcendental
from tapegrad.ops.along import log_softmax, logsumexp, softmax, var
from tapegrad.ops.arithmetic import *
from tapegrad.ops.broadcasting import (
    broadcast_to,
    clone,
    contiguous,
    expand,
    expand_as,
    flip,
    squeeze,
    sum_to_size,
    unsqueeze,
)
from tapegrad.ops.complex import *
from tapegrad.ops.composite import addmm, positive, reciprocal, square
from tapegrad.ops.concat import cat, stack
from tapegrad.ops.creation import DoubleTensor, FloatTensor, as_tensor, from_numpy, tensor
from tapegrad.ops.cumulative import cumsum, prod
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.einsum import einsum
from tapegrad.ops.extrema import amax, amin, argmax, argmin, max, min
from tapegrad.ops.fill import empty, empty_like, eye, full, full_like, ones, ones_like, zeros, zeros_like
from tapegrad.ops.linalg import bmm, dot, matmul, mm, mv, outer
from tapegrad.ops.logic import allclose, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, equal
from tapegrad.ops.movement import (
    flatten,
    movedim,
    permute,
    ravel,
    reshape,
    reshape_as,
    swapaxes,
    t,
    transpose,
    view,
    view_as,
)
from tapegrad.ops.ordering import sort
from tapegrad.ops.random import (
    Generator,
    bernoulli,
    manual_seed,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from tapegrad.ops.ranges import arange, linspace, logspace
from tapegrad.ops.reductions import all, any, mean, sum
from tapegrad.ops.transcendental import *

# Aliases.
absolute = abs
multiply, subtract, divide, true_divide, negative = mul, sub, div, div, neg
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
clip = clamp
concat = concatenate = cat
moveaxis, swapdims = movedim, swapaxes

__all__ = [
    # creation
    "tensor", "as_tensor", "from_numpy", "FloatTensor", "DoubleTensor",
    "empty", "zeros", "ones", "full", "eye", "arange", "linspace", "logspace",
    "empty_like", "zeros_like", "ones_like", "full_like",
    "Generator", "manual_seed", "rand", "rand_like", "randn", "randn_like", "randint", "randperm", "normal",
    "bernoulli",
    # elementwise, beside the rows that are listed where they stand
    "absolute", "subtract", "multiply", "divide", "true_divide", "negative", "square", "reciprocal", "positive",
    "clip", "equal", "allclose", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    # reductions
    "sum", "mean", "var", "amax", "amin", "max", "min", "any", "all", "argmax", "argmin", "sort", "logsumexp",
    "softmax", "log_softmax", "prod", "cumsum",
    # shapes
    "reshape", "flatten", "ravel", "transpose", "t", "permute", "movedim", "moveaxis", "swapaxes",
    "swapdims", "squeeze", "unsqueeze", "view", "view_as", "reshape_as", "expand", "expand_as", "broadcast_to",
    "sum_to_size", "contiguous", "flip", "diagonal", "clone", "cat", "concat", "concatenate", "stack",
    # linear algebra
    "matmul", "mm", "bmm", "mv", "dot", "outer", "addmm", "einsum",
]  # fmt: skip
__all__ += arithmetic.__all__
__all__ += transcendental.__all__
__all__ += complex.__all__

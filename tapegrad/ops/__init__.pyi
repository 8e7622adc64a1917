"""The ops, and functions made of them.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.ops.ordering import ValuesIndices
from tapegrad.ops.random import Generator as Generator
from tapegrad.tensor import Tensor

__all__ = ["mul", "multiply", "pow", "neg", "negative", "abs", "absolute", "sign", "sgn", "maximum", "minimum", "relu", "where", "clamp", "clip", "eq", "ne", "not_equal", "lt", "less", "le", "less_equal", "gt", "greater", "ge", "greater_equal", "logical_and", "logical_or", "logical_not", "conj", "real", "imag", "sum", "mean", "any", "all", "sort", "amax", "amin", "argmax", "argmin", "max", "min", "reshape", "view", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "logit", "logaddexp", "hypot", "erf", "softmax", "log_softmax", "logsumexp", "expand", "broadcast_to", "expand_as", "sum_to_size", "squeeze", "unsqueeze", "clone", "contiguous", "flip", "permute", "transpose", "swapaxes", "swapdims", "t", "movedim", "moveaxis", "complex", "polar", "angle", "view_as_real", "view_as_complex", "conj_physical", "resolve_conj", "resolve_neg", "matmul", "mm", "bmm", "mv", "dot", "outer", "square", "positive", "reciprocal", "addmm", "cat", "concat", "concatenate", "stack", "tensor", "as_tensor", "from_numpy", "FloatTensor", "DoubleTensor", "empty", "zeros", "ones", "full", "eye", "empty_like", "zeros_like", "ones_like", "full_like", "floor", "ceil", "trunc", "fix", "frac", "round", "remainder", "fmod", "floor_divide", "div", "divide", "true_divide", "prod", "cumsum", "diagonal", "narrow", "select", "unbind", "split", "unsafe_split", "split_with_sizes", "chunk", "unsafe_chunk", "diff", "gradient", "trapezoid", "trapz", "cumulative_trapezoid", "einsum", "fmax", "fmin", "copysign", "nextafter", "heaviside", "nan_to_num", "clamp_min", "clamp_max", "atleast_1d", "atleast_2d", "atleast_3d", "hstack", "vstack", "row_stack", "dstack", "column_stack", "block_diag", "broadcast_tensors", "meshgrid", "cartesian_prod", "combinations", "tril_indices", "triu_indices", "is_complex", "is_floating_point", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "equal", "allclose", "constant_pad_nd", "Generator", "manual_seed", "rand", "rand_like", "randn", "randn_like", "randint", "randperm", "normal", "bernoulli", "arange", "linspace", "logspace", "tile", "repeat_interleave", "as_strided", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "add", "sub", "subtract", "rsub", "addcmul", "addcdiv", "lerp", "ldexp", "float_power", "deg2rad", "rad2deg", "tensor_split", "hsplit", "vsplit", "dsplit", "roll", "rot90", "fliplr", "flipud", "channel_shuffle", "tril", "triu", "diag_embed", "diag", "diagflat", "var"]  # fmt: skip

def mul(input: Any, other: Any) -> Tensor:
    """Multiply."""

def multiply(input: Any, other: Any) -> Tensor:
    """Multiply."""

def pow(input: Any, other: Any) -> Tensor:
    """Raise `input` to the power `other`."""

def neg(input: Any) -> Tensor:
    """Negate."""

def negative(input: Any) -> Tensor:
    """Negate."""

def abs(input: Any) -> Tensor:
    """Absolute value."""

def absolute(input: Any) -> Tensor:
    """Absolute value."""

def sign(input: Any) -> Tensor:
    """Sign of a real number; 0 at 0."""

def sgn(input: Any) -> Tensor:
    """Sign; :math:`x/|x|` for complex numbers, 0 at 0."""

def maximum(input: Any, other: Any) -> Tensor:
    """The larger of the two; nan if one is."""

def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of the two; nan if one is."""

def relu(input: Any) -> Tensor:
    """The larger of `input` and 0."""

def where(condition: Any, input: Any, other: Any) -> Tensor:
    """Choose elements of `input` where the condition holds, of `other` elsewhere."""

def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to the range from `min` to `max`."""

def clip(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to the range from `min` to `max`."""

def eq(input: Any, other: Any) -> Tensor:
    """Whether the two are equal, element by element."""

def ne(input: Any, other: Any) -> Tensor:
    """Whether the two differ, element by element."""

def not_equal(input: Any, other: Any) -> Tensor:
    """Whether the two differ, element by element."""

def lt(input: Any, other: Any) -> Tensor:
    """Whether `input` is less than `other`."""

def less(input: Any, other: Any) -> Tensor:
    """Whether `input` is less than `other`."""

def le(input: Any, other: Any) -> Tensor:
    """Whether `input` is at most `other`."""

def less_equal(input: Any, other: Any) -> Tensor:
    """Whether `input` is at most `other`."""

def gt(input: Any, other: Any) -> Tensor:
    """Whether `input` is greater than `other`."""

def greater(input: Any, other: Any) -> Tensor:
    """Whether `input` is greater than `other`."""

def ge(input: Any, other: Any) -> Tensor:
    """Whether `input` is at least `other`."""

def greater_equal(input: Any, other: Any) -> Tensor:
    """Whether `input` is at least `other`."""

def logical_and(input: Any, other: Any) -> Tensor:
    """Whether both are nonzero."""

def logical_or(input: Any, other: Any) -> Tensor:
    """Whether one is nonzero."""

def logical_not(input: Any) -> Tensor:
    """Whether an element is zero."""

def conj(input: Any) -> Tensor:
    """Complex conjugate; of real numbers the tensor itself."""

def real(input: Any) -> Tensor:
    """Real part; of real numbers the tensor itself."""

def imag(input: Any) -> Tensor:
    """Imaginary part of complex numbers."""

def sum(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Sum of the elements."""

def mean(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Mean of the elements; nan if there is none."""

def any(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Whether an element is nonzero; False if there is none. Of dtype bool, or uint8 for uint8."""

def all(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Whether all elements are nonzero; True if there is none. Of dtype bool, or uint8 for uint8."""

def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: int | None = None
) -> ValuesIndices:
    """Sort the elements, of a real dtype, along a dimension; nan counts as the largest."""

def amax(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Largest element; nan if there is one."""

def amin(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Smallest element; nan if there is one."""

def argmax(input: Any, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """Index of the first largest element, or of the first nan, in the flat tensor or along a dimension."""

def argmin(input: Any, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """Index of the first smallest element, or of the first nan, in the flat tensor or along a dimension."""

def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element; along a dimension, with its index; of two tensors, element by element."""

def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; along a dimension, with its index; of two tensors, element by element."""

def reshape(input: Any, shape: int | Sequence[int], *rest: int) -> Tensor:
    """Give the elements, in their order, another shape; a view if that is possible, else a copy."""

def view(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Give the elements another shape without copying them."""

def view_as(input: Any, other: Tensor) -> Tensor:
    """Give the elements the shape of another tensor without copying them; see `view`."""

def reshape_as(input: Any, other: Tensor) -> Tensor:
    """Give the elements the shape of another tensor; see `reshape`."""

def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join neighbouring dimensions into one."""

def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Tensor:
    """Give one dimension another shape, as a view."""

def ravel(input: Any) -> Tensor:
    """Join all dimensions into one; a view if that is possible."""

def exp(input: Any) -> Tensor:
    """Exponential."""

def exp2(input: Any) -> Tensor:
    """Power of 2."""

def expm1(input: Any) -> Tensor:
    """Exponential less 1, precise near 0."""

def log(input: Any) -> Tensor:
    """Natural logarithm."""

def log2(input: Any) -> Tensor:
    """Logarithm to base 2."""

def log10(input: Any) -> Tensor:
    """Logarithm to base 10."""

def log1p(input: Any) -> Tensor:
    """Natural logarithm of 1 + x, precise near 0."""

def sqrt(input: Any) -> Tensor:
    """Square root."""

def rsqrt(input: Any) -> Tensor:
    """Reciprocal of the square root."""

def sin(input: Any) -> Tensor:
    """Sine of an angle in radians."""

def cos(input: Any) -> Tensor:
    """Cosine of an angle in radians."""

def tan(input: Any) -> Tensor:
    """Tangent of an angle in radians."""

def asin(input: Any) -> Tensor:
    """Angle in radians of a sine."""

def acos(input: Any) -> Tensor:
    """Angle in radians of a cosine."""

def atan(input: Any) -> Tensor:
    """Angle in radians of a tangent."""

def atan2(input: Any, other: Any) -> Tensor:
    """Angle in radians of the point with ordinate `input` and abscissa `other`."""

def sinh(input: Any) -> Tensor:
    """Hyperbolic sine."""

def cosh(input: Any) -> Tensor:
    """Hyperbolic cosine."""

def tanh(input: Any) -> Tensor:
    """Hyperbolic tangent."""

def asinh(input: Any) -> Tensor:
    """Inverse hyperbolic sine."""

def acosh(input: Any) -> Tensor:
    """Inverse hyperbolic cosine."""

def atanh(input: Any) -> Tensor:
    """Inverse hyperbolic tangent."""

def sigmoid(input: Any) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def logit(input: Any, eps: float | None = None) -> Tensor:
    """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

def logaddexp(input: Any, other: Any) -> Tensor:
    """Logarithm of the sum of exponentials."""

def hypot(input: Any, other: Any) -> Tensor:
    """Length :math:`\\sqrt{x^2 + y^2}`."""

def erf(input: Any) -> Tensor:
    """Error function."""

def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def logsumexp(input: Any, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows."""

def expand(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat along dimensions of length 1 and along new ones in front, as a view that may not be written to."""

def broadcast_to(input: Any, size: Sequence[int]) -> Tensor:
    """Repeat to a shape; see `expand`."""

def expand_as(input: Any, other: Tensor) -> Tensor:
    """Repeat to the shape of another tensor; see `expand`."""

def sum_to_size(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Sum over the dimensions that broadcasting from a shape would have made or stretched."""

def squeeze(input: Any, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Drop dimensions of length 1, as a view."""

def unsqueeze(input: Any, dim: int) -> Tensor:
    """Insert a dimension of length 1, as a view."""

def clone(input: Any) -> Tensor:
    """Copy, recorded: gradients flow back to `input`."""

def contiguous(input: Any) -> Tensor:
    """Return the tensor itself if its elements lie in memory in their order, else a copy that is so."""

def flip(input: Any, dims: int | Sequence[int], *rest: int) -> Tensor:
    """Reverse the order of the elements along dimensions, in a copy."""

def permute(input: Any, dims: int | Sequence[int], *rest: int) -> Tensor:
    """Put the dimensions into another order, as a view."""

def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions, as a view."""

def swapaxes(input: Any, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions, as a view."""

def swapdims(input: Any, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions, as a view."""

def t(input: Any) -> Tensor:
    """Transpose a matrix, as a view; fewer dimensions stay as they are."""

def movedim(input: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move dimensions to other positions, as a view; the others keep their order."""

def moveaxis(input: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move dimensions to other positions, as a view; the others keep their order."""

def complex(real: Any, imag: Any) -> Tensor:
    """Complex numbers with these real and imaginary parts."""

def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers with these absolute values and angles."""

def angle(input: Any) -> Tensor:
    """Angle of complex numbers, in radians; 0 or pi of real ones."""

def view_as_real(input: Any) -> Tensor:
    """Real and imaginary parts along a new last dimension, as a view."""

def view_as_complex(input: Any) -> Tensor:
    """Complex numbers whose real and imaginary parts stand along the last dimension, as a view."""

def conj_physical(input: Any) -> Tensor:
    """Complex conjugate; the same as `conj`."""

def resolve_conj(input: Any) -> Tensor:
    """Return the tensor itself: conjugates are computed at once here."""

def resolve_neg(input: Any) -> Tensor:
    """Return the tensor itself: conjugates are computed at once here."""

def matmul(input: Any, other: Any) -> Tensor:
    """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

def mm(input: Any, mat2: Any) -> Tensor:
    """Product of two matrices; see `matmul`."""

def bmm(input: Any, mat2: Any) -> Tensor:
    """Products of two batches of matrices, which do not broadcast; see `matmul`."""

def mv(input: Any, vec: Any) -> Tensor:
    """Product of a matrix and a vector; see `matmul`."""

def dot(input: Any, tensor: Any) -> Tensor:
    """Product of two vectors, without conjugation."""

def outer(input: Any, vec2: Any) -> Tensor:
    """Products of each element of one vector with each of another."""

def square(input: Any) -> Tensor:
    """Elementwise square."""

def positive(input: Any) -> Tensor:
    """Return the tensor itself: what ``+x`` computes."""

def reciprocal(input: Any) -> Tensor:
    """Elementwise reciprocal, :math:`1/x`."""

def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of two matrices, times `alpha`, plus `beta` times a matrix."""

def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Join tensors along a dimension that they have."""

def concat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Join tensors along a dimension that they have."""

def concatenate(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Join tensors along a dimension that they have."""

def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Join tensors of one shape along a new dimension."""

def tensor(data: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a new leaf tensor with a copy of the data."""

def as_tensor(data: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return data as a tensor, sharing memory where that is possible."""

def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array."""

def FloatTensor(data: Any) -> Tensor:
    """Return a new float32 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def DoubleTensor(data: Any) -> Tensor:
    """Return a new float64 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def empty(*size: Any, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor whose elements are not set to anything."""

def zeros(*size: Any, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros."""

def ones(*size: Any, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones."""

def full(size: Any, fill_value: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of one value."""

def eye(n: int, m: int | None = None, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a matrix with ones on its diagonal and zeros elsewhere."""

def empty_like(input: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of elements that are not set to anything, of the shape and dtype of another."""

def zeros_like(input: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros, of the shape and dtype of another."""

def ones_like(input: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones, of the shape and dtype of another."""

def full_like(input: Any, fill_value: Any, *, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of one value, of the shape and dtype of another."""

def floor(input: Any) -> Tensor:
    """The largest integer that is not larger; integers stay as they are."""

def ceil(input: Any) -> Tensor:
    """The smallest integer that is not smaller; integers stay as they are."""

def trunc(input: Any) -> Tensor:
    """The number without its fraction; integers stay as they are."""

def fix(input: Any) -> Tensor:
    """The number without its fraction; integers stay as they are."""

def frac(input: Any) -> Tensor:
    """Fraction of a number, of its sign."""

def round(input: Any, *, decimals: int | None = None) -> Tensor:
    """Round to the nearest integer, halves to the even one; integers stay as they are."""

def remainder(input: Any, other: Any) -> Tensor:
    """Remainder of a division, of the sign of `other`: Python's ``%``."""

def fmod(input: Any, other: Any) -> Tensor:
    """Remainder of a division, of the sign of `input`: that of C."""

def floor_divide(input: Any, other: Any) -> Tensor:
    """The largest integer that is not larger than the quotient: Python's ``//``."""

def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def true_divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def prod(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Product of the elements; 1 if there is none."""

def cumsum(input: Any, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Cumulative sums along a dimension: of each element and those before it."""

def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Diagonal of each matrix that two dimensions form, as a view."""

def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    """Return some neighbouring indices of a dimension, as a view."""

def select(input: Any, dim: int, index: Any) -> Tensor:
    """Return one index of a dimension, as a view without that dimension."""

def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return each index of a dimension, as views without that dimension."""

def split(tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views."""

def unsafe_split(tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views."""

def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of these lengths; see `split`."""

def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of one length, of which the last may be shorter."""

def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of one length, of which the last may be shorter."""

def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along a dimension: each element less the one before it."""

def gradient(
    input: Any, *, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Slopes along dimensions, by differences of neighbours."""

def trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integral along a dimension, by the trapezoidal rule."""

def trapz(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integral along a dimension, by the trapezoidal rule."""

def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integrals along a dimension from its beginning to each later point, by the trapezoidal rule; see `trapezoid`."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of elements over labels of dimensions, as Einstein wrote it."""

def fmax(input: Any, other: Any) -> Tensor:
    """The larger of the two; the other one where one is nan."""

def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of the two; the other one where one is nan."""

def copysign(input: Any, other: Any) -> Tensor:
    """The size of `input` with the sign of `other`."""

def nextafter(input: Any, other: Any) -> Tensor:
    """The floating-point number next to `input` in the direction of `other`."""

def heaviside(input: Any, other: Any) -> Tensor:
    """Step function: 0 where `input` is negative, 1 where it is positive, `other` where it is 0."""

def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace nan and infinities by numbers."""

def clamp_min(input: Any, min: Any) -> Tensor:
    """Raise elements to at least `min`; see `clamp`."""

def clamp_max(input: Any, max: Any) -> Tensor:
    """Lower elements to at most `max`; see `clamp`."""

def atleast_1d(*tensors: Any) -> Any:
    """Return tensors as views with at least one dimension: one tensor, or a tuple if there are several."""

def atleast_2d(*tensors: Any) -> Any:
    """Return tensors as views with at least two dimensions, new ones in front; see `atleast_1d`."""

def atleast_3d(*tensors: Any) -> Any:
    """Return tensors as views with at least three dimensions; vectors of shape (1, n, 1). See `atleast_1d`."""

def hstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 1, vectors along their only one; see `cat`."""

def vstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 0, vectors as rows of a matrix; see `cat`."""

def row_stack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 0, vectors as rows of a matrix; see `cat`."""

def dstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 2, after `atleast_3d`; see `cat`."""

def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Join matrices along dimension 1, vectors as columns; see `cat`."""

def block_diag(*tensors: Any) -> Tensor:
    """Matrix that has matrices as blocks on its diagonal, and zeros elsewhere."""

def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Repeat tensors to the shape that they broadcast to, as views; see `expand`."""

def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return coordinates of the points of a grid, as views: one tensor for each vector."""

def cartesian_prod(*tensors: Any) -> Tensor:
    """Rows with one element of each vector, all that there are; of one vector itself."""

def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Rows with `r` elements of a vector, all that there are, in order."""

def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = ...) -> Tensor:
    """Rows and columns of the elements of a lower triangle; see `tril`."""

def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = ...) -> Tensor:
    """Rows and columns of the elements of an upper triangle; see `tril_indices`."""

def is_complex(input: Any) -> bool:
    """Whether a tensor has a complex dtype."""

def is_floating_point(input: Any) -> bool:
    """Whether a tensor has a real floating dtype."""

def bitwise_and(input: Any, other: Any) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where both are."""

def bitwise_or(input: Any, other: Any) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where one of the two is."""

def bitwise_xor(input: Any, other: Any) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where the two differ."""

def bitwise_not(input: Any) -> Tensor:
    """Invert integers bit by bit, or truth values."""

def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and the same elements."""

def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within ``atol + rtol * abs(other)``."""

def constant_pad_nd(input: Any, pad: Sequence[int], value: float = 0) -> Tensor:
    """Add a number at the ends of dimensions; negative lengths take elements away."""

def manual_seed(seed: int) -> Generator:
    """Set the seed of the generator that is used where none is given, and return that generator."""

def rand(
    *size: Any, generator: Generator | None = None, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return independent random numbers, uniform on [0, 1), of a shape."""

def rand_like(
    input: Any, *, generator: Generator | None = None, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return independent random numbers, uniform on [0, 1), of the shape and dtype of another tensor."""

def randn(
    *size: Any, generator: Generator | None = None, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return independent random numbers, normal with mean 0 and variance 1, of a shape."""

def randn_like(
    input: Any, *, generator: Generator | None = None, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return independent random numbers, normal with mean 0 and variance 1, of the shape and dtype of another tensor."""

def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = ...,
    requires_grad: bool = False,
) -> Tensor:
    """Return integers drawn uniformly from `low` up to and without `high`."""

def randperm(
    n: int, *, generator: Generator | None = None, dtype: DTypeLike = ..., requires_grad: bool = False
) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order."""

def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normally distributed numbers."""

def bernoulli(input: Any, *, generator: Generator | None = None) -> Tensor:
    """Return ones with the given probabilities, zeros otherwise."""

def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return the values from `start` (0 if only one is given) up to and without `end`, `step` apart."""

def linspace(
    start: Any, end: Any, steps: int, *, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return evenly spaced values from `start` to `end`, both included."""

def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: DTypeLike | None = None, requires_grad: bool = False
) -> Tensor:
    """Return `base` to the power of evenly spaced values from `start` to `end`, both included."""

def tile(input: Any, dims: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat the tensor along dimensions, in a copy."""

def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element along a dimension, in a copy."""

def as_strided(input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """View of the elements, in the order of memory, with another shape and other strides."""

def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    """Copy with one index of a dimension replaced; see `select`."""

def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Copy with a slice of a dimension replaced."""

def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy with the diagonal of each matrix replaced; see `diagonal`."""

def as_strided_scatter(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Copy with the elements replaced that `as_strided` would show."""

def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Add `other`, times a factor."""

def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `other`, times a factor."""

def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `other`, times a factor."""

def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `input`, times a factor, from `other`."""

def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Add a product, times a factor: ``input + value * tensor1 * tensor2``."""

def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Add a quotient, times a factor: ``input + value * tensor1 / tensor2``."""

def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """Linear interpolation, ``input + weight * (end - input)``."""

def ldexp(input: Any, other: Any) -> Tensor:
    """Multiply `input` by 2 to the power `other`."""

def float_power(input: Any, other: Any) -> Tensor:
    """Raise `input` to the power `other` in double precision."""

def deg2rad(input: Any) -> Tensor:
    """Convert degrees to radians."""

def rad2deg(input: Any) -> Tensor:
    """Convert radians to degrees."""

def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views, at indices or into nearly equal parts."""

def hsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 1, the only one of a vector; see `tensor_split`. A number of parts must divide the length."""

def vsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split matrices along dimension 0; see `tensor_split`. A number of parts must divide the length."""

def dsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 2; see `tensor_split`. A number of parts must divide the length."""

def roll(input: Any, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Move the elements along dimensions; those that leave at the end come in at the beginning. A copy."""

def rot90(input: Any, k: int = 1, dims: Sequence[int] = ...) -> Tensor:
    """Rotate the matrices that two dimensions form by 90 degrees, `k` times, from the first to the second. A copy."""

def fliplr(input: Any) -> Tensor:
    """Reverse the order of columns, that is along dimension 1, in a copy; see `flip`."""

def flipud(input: Any) -> Tensor:
    """Reverse the order of rows, that is along dimension 0, in a copy; see `flip`."""

def channel_shuffle(input: Any, groups: int) -> Tensor:
    """Put channels, dimension 1, into another order: the first of each group, then the second of each, and so on."""

def tril(input: Any, diagonal: int = 0) -> Tensor:
    """Lower triangles of matrices: zero above a diagonal."""

def triu(input: Any, diagonal: int = 0) -> Tensor:
    """Upper triangles of matrices: zero below a diagonal; see `tril`."""

def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices that have the lines along the last dimension as diagonals, and zeros elsewhere."""

def diag(input: Any, diagonal: int = 0) -> Tensor:
    """Matrix with a vector as diagonal; of a matrix its diagonal, in a copy."""

def diagflat(input: Any, offset: int = 0) -> Tensor:
    """Matrix with the elements of a tensor, joined into one dimension, as diagonal."""

def var(
    input: Any, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False
) -> Tensor:
    """Variance of the elements."""

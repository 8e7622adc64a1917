"""The functions of `tapegrad` itself, for files that call many of them.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.devices import DeviceLike
from tapegrad.ops.determinants import LinalgSlogdet
from tapegrad.ops.embedding import MinMax
from tapegrad.ops.generators import Generator as Generator
from tapegrad.ops.histograms import Histogram, HistogramDD
from tapegrad.ops.lu import LU
from tapegrad.ops.numbers import Frexp
from tapegrad.ops.older import SVD
from tapegrad.ops.older_factors import TriangularSolve
from tapegrad.ops.ordering import ValuesIndices
from tapegrad.ops.qr import QR
from tapegrad.ops.table.op import Sample
from tapegrad.tensor import Tensor

__all__ = ["BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "Generator", "IntTensor", "LongTensor", "ShortTensor", "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "adjoint", "alias_copy", "all", "allclose", "alpha_dropout", "amax", "amin", "aminmax", "angle", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "are_deterministic_algorithms_enabled", "argmax", "argmin", "argsort", "argwhere", "as_strided", "as_strided_copy", "as_strided_scatter", "as_tensor", "asarray", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "avg_pool1d", "baddbmm", "bartlett_window", "bernoulli", "bilinear", "bincount", "binomial", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "ceil", "celu", "channel_shuffle", "cholesky", "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "column_stack", "combinations", "complex", "concat", "concatenate", "conj", "conj_physical", "constant_pad_nd", "contiguous", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "copysign", "corrcoef", "cos", "cosh", "cosine_similarity", "count_nonzero", "cov", "cross", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "deg2rad", "det", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "diagonal_scatter", "diff", "digamma", "dist", "div", "divide", "dot", "dropout", "dsplit", "dstack", "einsum", "empty", "empty_like", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expand", "expand_as", "expand_copy", "expm1", "eye", "feature_alpha_dropout", "feature_dropout", "fill", "fix", "flatten", "flip", "fliplr", "flipud", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "frexp", "from_dlpack", "from_numpy", "frombuffer", "full", "full_like", "gather", "gcd", "ge", "ger", "get_float32_matmul_precision", "get_rng_state", "gradient", "greater", "greater_equal", "gru", "gru_cell", "gt", "hamming_window", "hann_window", "hardshrink", "heaviside", "histc", "histogram", "histogramdd", "hsplit", "hstack", "hypot", "i0", "igamma", "igammac", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "initial_seed", "inner", "inverse", "is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_storage", "is_tensor", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft", "kaiser_window", "kernel_op", "kron", "kthvalue", "layer_norm", "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "lstm", "lstm_cell", "lt", "lu", "lu_solve", "lu_unpack", "manual_seed", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power", "max", "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm", "mode", "moveaxis", "movedim", "msort", "mul", "multinomial", "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "narrow_copy", "ne", "neg", "negative", "nextafter", "nonzero", "nonzero_static", "norm", "normal", "not_equal", "numel", "ones", "ones_like", "orgqr", "ormqr", "outer", "pairwise_distance", "pca_lowrank", "pdist", "permute", "permute_copy", "pinverse", "pixel_shuffle", "pixel_unshuffle", "poisson", "polar", "polygamma", "positive", "pow", "prelu", "prod", "promote_types", "put", "qr", "quantile", "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "ravel", "real", "reciprocal", "relu", "remainder", "renorm", "repeat_interleave", "reshape", "reshape_as", "resolve_conj", "resolve_neg", "result_type", "rms_norm", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "roll", "rot90", "round", "row_stack", "rrelu", "rsqrt", "rsub", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "seed", "segment_reduce", "select", "select_copy", "select_scatter", "selu", "set_float32_matmul_precision", "set_rng_state", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "slice_scatter", "slogdet", "softmax", "sort", "split", "split_with_sizes", "split_with_sizes_copy", "sqrt", "square", "squeeze", "squeeze_copy", "stack", "std", "std_mean", "stft", "sub", "subtract", "sum", "sum_to_size", "svd", "svd_lowrank", "swapaxes", "swapdims", "t", "t_copy", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split", "tensordot", "threshold", "tile", "topk", "trace", "transpose", "transpose_copy", "trapezoid", "trapz", "triangular_solve", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "typename", "unbind", "unbind_copy", "unflatten", "unfold_copy", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_copy", "use_deterministic_algorithms", "vander", "var", "var_mean", "vdot", "view", "view_as", "view_as_complex", "view_as_real", "view_copy", "vsplit", "vstack", "where", "xlogy", "zeros", "zeros_like"]  # fmt: skip

def BoolTensor(*data: Any) -> Tensor:
    """Return a new bool tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def ByteTensor(*data: Any) -> Tensor:
    """Return a new uint8 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def CharTensor(*data: Any) -> Tensor:
    """Return a new int8 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def DoubleTensor(*data: Any) -> Tensor:
    """Return a new float64 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def FloatTensor(*data: Any) -> Tensor:
    """Return a new float32 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def IntTensor(*data: Any) -> Tensor:
    """Return a new int32 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def LongTensor(*data: Any) -> Tensor:
    """Return a new int64 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def ShortTensor(*data: Any) -> Tensor:
    """Return a new int16 tensor with a copy of the data; today one writes `tensor` with a `dtype`."""

def abs(input: Any, *, out: Any = ...) -> Tensor:
    """Absolute value."""

def absolute(input: Any, *, out: Any = ...) -> Tensor:
    """Absolute value."""

def acos(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a cosine."""

def acosh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic cosine."""

def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of signals over windows, as many of one dimension as asked for, which may overlap."""

def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = ...) -> Tensor:
    """Add `other`, times a factor."""

def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1, out: Any = ...) -> Tensor:
    """Sum of the products of two batches of matrices, times `alpha`, plus `beta` times a matrix."""

def addcdiv(
    input: Any,
    tensor1: Any = ...,
    tensor2: Any = ...,
    *,
    value: Any = 1,
    tensor: Any = ...,
    other: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Add a quotient, times a factor: ``input + value * tensor1 / tensor2``."""

def addcmul(
    input: Any,
    tensor1: Any = ...,
    tensor2: Any = ...,
    *,
    value: Any = 1,
    tensor: Any = ...,
    other: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Add a product, times a factor: ``input + value * tensor1 * tensor2``."""

def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1, out: Any = ...) -> Tensor:
    """Product of two matrices, times `alpha`, plus `beta` times a matrix."""

def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1, out: Any = ...) -> Tensor:
    """Product of a matrix and a vector, times `alpha`, plus `beta` times a vector."""

def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1, out: Any = ...) -> Tensor:
    """Outer product of two vectors, times `alpha`, plus `beta` times a matrix."""

def adjoint(input: Any, *, out: Any = ...) -> Tensor:
    """Conjugates of matrices, transposed."""

def alias_copy(input: Any, *, memory_format: Any = None, out: Any = ...) -> Tensor:
    """Copy, recorded: :math:`\\bar x = \\bar y`. `memory_format` is ignored."""

def all(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Whether all elements are nonzero, :math:`y = \\prod_i [x_i \\ne 0]`; of uint8 in uint8. Over no dimension, ``dim=()``, of each element."""

def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within ``atol + rtol * abs(other)``."""

def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = ...
) -> Tensor:
    """Set elements to the lower limit of `selu` at random, and keep mean 0 and variance 1 by a scale and a shift."""

def amax(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Largest element; nan if there is one."""

def amin(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Smallest element; nan if there is one."""

def aminmax(
    input: Any,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> MinMax:
    """Return the smallest and the largest elements: what `amin` and `amax` return."""

def angle(input: Any, *, out: Any = ...) -> Tensor:
    """Angle of complex numbers, in radians; 0 or pi of real ones."""

def any(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Whether an element is nonzero, :math:`y = 1 - \\prod_i [x_i = 0]`; of uint8 in uint8. Over no dimension, ``dim=()``, of each element."""

def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return the values from `start` (0 if only one is given) up to and without `end`, `step` apart."""

def arccos(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a cosine."""

def arccosh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic cosine."""

def arcsin(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a sine."""

def arcsinh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic sine."""

def arctan(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a tangent."""

def arctan2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of the point with ordinate `input` and abscissa `other`."""

def arctanh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic tangent."""

def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told last; False at first."""

def argmax(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Index of the first largest element (see `amax`) or nan, in the flat tensor or along a dimension."""

def argmin(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Index of the first smallest element (see `amin`) or nan, in the flat tensor or along a dimension."""

def argsort(
    input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False, axis: int = ..., out: Any = ...
) -> Tensor:
    """Return the indices that sort the elements along a dimension; equal ones keep their order."""

def argwhere(input: Any, *, out: Any = ...) -> Tensor:
    """Find the elements that are not zero: a row of indices for each; see `nonzero`."""

def as_strided(
    input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None, *, out: Any = ...
) -> Tensor:
    """View of the elements, in the order of memory, with another shape and other strides."""

def as_strided_copy(
    input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None, *, out: Any = ...
) -> Tensor:
    """Compute `as_strided` in a copy, which shares no memory with the tensor."""

def as_strided_scatter(
    input: Any,
    src: Any,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Any = ...,
) -> Tensor:
    """Copy with the elements replaced that `as_strided` would show."""

def as_tensor(data: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Tensor:
    """Return data as a tensor, sharing memory where that is possible."""

def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    copy: bool | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return data as a tensor: as `as_tensor` does, or as a copy."""

def asin(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a sine."""

def asinh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic sine."""

def atan(input: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of a tangent."""

def atan2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Angle in radians of the point with ordinate `input` and abscissa `other`."""

def atanh(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse hyperbolic tangent."""

def atleast_1d(*tensors: Any) -> Any:
    """Return tensors as views with at least one dimension: one tensor, or a tuple if there are several."""

def atleast_2d(*tensors: Any) -> Any:
    """Return tensors as views with at least two dimensions, new ones in front; see `atleast_1d`."""

def atleast_3d(*tensors: Any) -> Any:
    """Return tensors as views with at least three dimensions; vectors of shape (1, n, 1). See `atleast_1d`."""

def avg_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of signals, of one dimension."""

def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1, out: Any = ...) -> Tensor:
    """Products of two batches of matrices, times `alpha`, plus `beta` times a batch."""

def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Bartlett window, a triangle from 0 to 1 and back."""

def bernoulli(input: Any, p: float | None = None, *, generator: Generator | None = None, out: Any = ...) -> Tensor:
    """Return ones with the given probabilities, zeros otherwise."""

def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None, *, out: Any = ...) -> Tensor:
    """Bilinear forms of pairs of vectors."""

def bincount(input: Any, weights: Any = None, minlength: int = 0, *, out: Any = ...) -> Tensor:
    """Count how often each number from 0 on is there."""

def binomial(count: Any, prob: Any, generator: Generator | None = None, *, out: Any = ...) -> Tensor:
    """Draw how many of so many trials succeed."""

def bitwise_and(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where both are, :math:`z = \\sum_k 2^k x_k y_k`."""

def bitwise_left_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Integers times powers of two, :math:`z = x 2^{y}`."""

def bitwise_not(input: Any, *, out: Any = ...) -> Tensor:
    """Invert integers bit by bit, or truth values."""

def bitwise_or(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where one is, :math:`z = \\sum_k 2^k (x_k + y_k - x_k y_k)`."""

def bitwise_right_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Integers by powers of two, :math:`z = \\lfloor x / 2^{y} \\rfloor`."""

def bitwise_xor(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Combine integers bit by bit, or truth values: 1 where they differ, :math:`z = \\sum_k 2^k [x_k \\ne y_k]`."""

def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Blackman window :math:`0.42 - 0.5\\cos(2\\pi n/N) + 0.08\\cos(4\\pi n/N)`."""

def block_diag(*tensors: Any) -> Tensor:
    """Matrix that has matrices as blocks on its diagonal, and zeros elsewhere."""

def bmm(input: Any, mat2: Any, *, out: Any = ...) -> Tensor:
    """Products of two batches of matrices, which do not broadcast; see `matmul`."""

def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to."""

def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Repeat tensors to the shape that they broadcast to, as views; see `expand`."""

def broadcast_to(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat to the shape `size`, a sequence of integers; see `expand`."""

def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = ...) -> Tensor:
    """Numbers of the buckets that values lie in: as `searchsorted`, with the arguments the other way round."""

def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Whether numbers of a dtype may be written to a tensor of another: its kind must be the same or a wider one."""

def cartesian_prod(*tensors: Any) -> Tensor:
    """Rows with one element of each vector, all that there are; of one vector itself."""

def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Join tensors along a dimension that they have."""

def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary", *, out: Any = ...
) -> Tensor:
    """Distances between each row of a matrix and each of another."""

def ceil(input: Any, *, out: Any = ...) -> Tensor:
    """The smallest integer that is not smaller; integers stay as they are."""

def celu(input: Any, alpha: float = 1.0, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Return `input` where it is positive, and :math:`\\alpha (e^{x/\\alpha} - 1)` elsewhere."""

def channel_shuffle(input: Any, groups: int, *, out: Any = ...) -> Tensor:
    """Put channels, dimension 1, into another order: the first of each group, then the second of each, and so on."""

def cholesky(A: Any = ..., upper: bool = False, *, input: Any = ..., out: Any = ...) -> Tensor:
    """Cholesky factors of symmetric or Hermitian positive-definite matrices, :math:`A = L L^H`."""

def cholesky_inverse(input: Any, upper: bool = False, *, out: Any = ...) -> Tensor:
    """Inverses of matrices with given Cholesky factors."""

def cholesky_solve(input: Any, L: Any = ..., upper: bool = False, *, input2: Any = ..., out: Any = ...) -> Tensor:
    """Solutions of :math:`A X = B` with the Cholesky factor of :math:`A`."""

def chunk(input: Any, chunks: int, dim: int = 0, *, axis: int = ..., out: Any = ...) -> tuple[Tensor, ...]:
    """Split along a dimension into views of one length, of which the last may be shorter."""

def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = ...) -> Tensor:
    """Limit elements to the range from `min` to `max`: :math:`\\min(\\max(x, \\mathit{min}), \\mathit{max})`."""

def clamp_max(input: Any, max: Any, *, out: Any = ...) -> Tensor:
    """Lower elements to at most `max`; see `clamp`."""

def clamp_min(input: Any, min: Any, *, out: Any = ...) -> Tensor:
    """Raise elements to at least `min`; see `clamp`."""

def clip(input: Any, min: Any = None, max: Any = None, *, out: Any = ...) -> Tensor:
    """Limit elements to the range from `min` to `max`: :math:`\\min(\\max(x, \\mathit{min}), \\mathit{max})`."""

def clone(input: Any, *, memory_format: Any = None, out: Any = ...) -> Tensor:
    """Copy, recorded: :math:`\\bar x = \\bar y`. `memory_format` is ignored."""

def column_stack(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Join matrices along dimension 1, vectors as columns; see `cat`."""

def combinations(input: Any, r: int = 2, with_replacement: bool = False, *, out: Any = ...) -> Tensor:
    """Rows with `r` elements of a vector, all that there are, in order."""

def complex(real: Any, imag: Any, *, out: Any = ...) -> Tensor:
    """Complex numbers with these real and imaginary parts."""

def concat(tensors: Sequence[Any], dim: int = 0, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Join tensors along a dimension that they have."""

def concatenate(tensors: Sequence[Any], dim: int = 0, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Join tensors along a dimension that they have."""

def conj(input: Any, *, out: Any = ...) -> Tensor:
    """Complex conjugate; of real numbers the tensor itself."""

def conj_physical(input: Any, *, out: Any = ...) -> Tensor:
    """Complex conjugate; the same as `conj`."""

def constant_pad_nd(input: Any, pad: Sequence[int], value: float = 0, *, out: Any = ...) -> Tensor:
    """Add a number at the ends of dimensions; negative lengths take elements away."""

def contiguous(input: Any, memory_format: Any = None, *, out: Any = ...) -> Tensor:
    """Return the tensor itself if its elements lie in memory in their order, else a copy (`clone`) that is so."""

def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of signals with kernels, which networks call convolution."""

def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of images with kernels, which networks call convolution."""

def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of volumes with kernels, which networks call convolution."""

def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of signals: the adjoint of a convolution, which makes them larger."""

def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of images: the adjoint of a convolution, which makes them larger."""

def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of volumes: the adjoint of a convolution, which makes them larger."""

def copysign(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The size of `input` with the sign of `other`."""

def corrcoef(input: Any, *, out: Any = ...) -> Tensor:
    """Correlations of variables, each of which is a row of observations; see `cov`."""

def cos(input: Any, *, out: Any = ...) -> Tensor:
    """Cosine of an angle in radians."""

def cosh(input: Any, *, out: Any = ...) -> Tensor:
    """Hyperbolic cosine."""

def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Cosine of the angle between vectors along a dimension: :math:`x \\cdot y / (\\lVert x \\rVert \\lVert y \\rVert)`."""

def count_nonzero(input: Any, dim: Any = None, *, axis: Any = ..., out: Any = ...) -> Tensor:
    """How many elements are not zero."""

def cov(
    input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None, ddof: int = ..., out: Any = ...
) -> Tensor:
    """Covariances of variables, each of which is a row of observations."""

def cross(input: Any, other: Any, dim: int | None = None, *, axis: int | None = ..., out: Any = ...) -> Tensor:
    """Cross products of vectors of three elements; see `tapegrad.linalg.cross`."""

def cummax(input: Any, dim: int = ..., *, axis: int = ..., out: Any = ...) -> ValuesIndices:
    """The largest elements so far along a dimension, and the indices of the last of each."""

def cummin(input: Any, dim: int = ..., *, axis: int = ..., out: Any = ...) -> ValuesIndices:
    """The smallest elements so far along a dimension, and the indices of the last of each."""

def cumprod(input: Any, dim: int = ..., *, dtype: DTypeLike | None = None, axis: int = ..., out: Any = ...) -> Tensor:
    """Cumulative products along a dimension: of each element and those before it."""

def cumsum(input: Any, dim: int = ..., *, dtype: DTypeLike | None = None, axis: int = ..., out: Any = ...) -> Tensor:
    """Cumulative sums along a dimension: of each element and those before it."""

def cumulative_trapezoid(
    y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1, axis: int = ..., out: Any = ...
) -> Tensor:
    """Integrals along a dimension from its beginning to each later point, by the trapezoidal rule; see `trapezoid`."""

def deg2rad(input: Any, *, out: Any = ...) -> Tensor:
    """Convert degrees to radians."""

def det(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Return the determinants of square matrices."""

def diag(input: Any, diagonal: int = 0, *, out: Any = ...) -> Tensor:
    """Matrix with a vector as diagonal; of a matrix its diagonal, in a copy."""

def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1, *, out: Any = ...) -> Tensor:
    """Matrices that have the lines along the last dimension as diagonals, and zeros elsewhere."""

def diagflat(input: Any, offset: int = 0, *, out: Any = ...) -> Tensor:
    """Matrix with the elements of a tensor, joined into one dimension, as diagonal."""

def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = ...) -> Tensor:
    """Diagonal of each matrix that two dimensions form, as a view."""

def diagonal_copy(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = ...) -> Tensor:
    """Compute `diagonal` in a copy, which shares no memory with the tensor."""

def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = ...) -> Tensor:
    """Copy with the diagonal of each matrix replaced; see `diagonal`."""

def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Differences of neighbours along a dimension: each element less the one before it."""

def digamma(input: Any, *, out: Any = ...) -> Tensor:
    """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

def dist(input: Any, other: Any, p: float = 2, *, out: Any = ...) -> Tensor:
    """Norm of the difference of two tensors."""

def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = ...) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def divide(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = ...) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def dot(input: Any, tensor: Any, *, out: Any = ...) -> Tensor:
    """Product of two vectors, without conjugation."""

def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Set elements to zero at random, and divide the others by the probability to stay, which keeps the mean."""

def dsplit(
    input: Any,
    indices_or_sections: int | Sequence[int] = ...,
    *,
    sections: int | Sequence[int] = ...,
    indices: int | Sequence[int] = ...,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Split along dimension 2; see `tensor_split`. A number of parts must divide the length."""

def dstack(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Join tensors along dimension 2, after `atleast_3d`; see `cat`."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of elements over labels of dimensions, as Einstein wrote it."""

def empty(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return a tensor whose elements are not set to anything."""

def empty_like(
    input: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of elements that are not set to anything, of the shape and dtype of another."""

def eq(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether elements are equal, :math:`z = [x = y]`."""

def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and the same elements."""

def erf(input: Any, *, out: Any = ...) -> Tensor:
    """Error function."""

def erfc(input: Any, *, out: Any = ...) -> Tensor:
    """Complementary error function :math:`1 - \\mathrm{erf}\\,x`, precise where that is small."""

def erfinv(input: Any, *, out: Any = ...) -> Tensor:
    """Inverse of the error function."""

def exp(input: Any, *, out: Any = ...) -> Tensor:
    """Exponential."""

def exp2(input: Any, *, out: Any = ...) -> Tensor:
    """Power of 2."""

def expand(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat along dimensions of length 1 and along new ones in front, as a view that may not be written to."""

def expand_as(input: Any, other: Tensor, *, out: Any = ...) -> Tensor:
    """Repeat to the shape of `other`, of which only that counts; see `expand`."""

def expand_copy(input: Any, size: int | Sequence[int], *rest: int, out: Any = ...) -> Tensor:
    """Compute `expand` in a copy, which shares no memory with the tensor."""

def expm1(input: Any, *, out: Any = ...) -> Tensor:
    """Exponential less 1, precise near 0."""

def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return a matrix with ones on its diagonal and zeros elsewhere."""

def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False, *, out: Any = ...
) -> Tensor:
    """`alpha_dropout` of whole channels, which are the second dimension."""

def feature_dropout(input: Any, p: float, train: bool, *, out: Any = ...) -> Tensor:
    """`dropout` of whole channels, which are the second dimension."""

def fill(input: Any, value: Any, *, out: Any = ...) -> Tensor:
    """Copy in which all elements are one number."""

def fix(input: Any, *, out: Any = ...) -> Tensor:
    """The number without its fraction; integers stay as they are."""

def flatten(input: Any, start_dim: int | str = 0, end_dim: int = -1, order: str = "C", *, out: Any = ...) -> Tensor:
    """Join neighbouring dimensions into one."""

def flip(input: Any, dims: int | Sequence[int] = ..., *rest: int, axis: int | Sequence[int] = ...) -> Tensor:
    """Reverse the order along dimensions, in a copy: :math:`y_i = x_{n-1-i}`, :math:`\\bar x_i = \\bar y_{n-1-i}`."""

def fliplr(input: Any, *, out: Any = ...) -> Tensor:
    """Reverse the order of columns, that is along dimension 1, in a copy; see `flip`."""

def flipud(input: Any, *, out: Any = ...) -> Tensor:
    """Reverse the order of rows, that is along dimension 0, in a copy; see `flip`."""

def float_power(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """Raise `input` to the power `exponent` in double precision."""

def floor(input: Any, *, out: Any = ...) -> Tensor:
    """The largest integer that is not larger; integers stay as they are."""

def floor_divide(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The largest integer that is not larger than the quotient: Python's ``//``."""

def fmax(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The larger of the two; the other one where one is nan."""

def fmin(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The smaller of the two; the other one where one is nan."""

def fmod(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Remainder of a division, of the sign of `input`: that of C."""

def frac(input: Any, *, out: Any = ...) -> Tensor:
    """Fraction of a number, of its sign."""

def frexp(input: Any, *, out: Any = ...) -> Frexp:
    """Split numbers into a mantissa from 0.5 to 1 and a power of 2."""

def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: bool | None = None, out: Any = ...) -> Tensor:
    """Return a tensor over the memory of another library's array or tensor, by the DLPack protocol."""

def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array."""

def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False, out: Any = ...
) -> Tensor:
    """Return a vector over the memory of a buffer; a copy if that may not be written to."""

def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of one value."""

def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of one value, of the shape and dtype of another."""

def gather(
    input: Any, dim: int = ..., index: Any = ..., *, sparse_grad: bool = False, axis: int = ..., out: Any = ...
) -> Tensor:
    """Elements that indices choose along a dimension; the result has the shape of the indices."""

def gcd(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Greatest common divisor, :math:`z = \\gcd(x, y) \\ge 0`."""

def ge(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is at least `other`, :math:`z = [x \\ge y]`."""

def ger(input: Any, vec2: Any, *, out: Any = ...) -> Tensor:
    """Products of each element of one vector with each of another."""

def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told last; "highest" at first."""

def get_rng_state(*, out: Any = ...) -> Tensor:
    """Return the state of the default generator, for `set_rng_state`."""

def gradient(
    input: Any,
    *,
    spacing: Any = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
    axis: int | Sequence[int] | None = ...,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Slopes along dimensions, by differences of neighbours."""

def greater(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is greater than `other`, :math:`z = [x > y]`."""

def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is at least `other`, :math:`z = [x \\ge y]`."""

def gru(
    input: Any,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Gated recurrent unit: a state that is partly replaced at each step."""

def gru_cell(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, out: Any = ...
) -> Tensor:
    """Take one step of a GRU; gates are to reset, to keep, and new values."""

def gt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is greater than `other`, :math:`z = [x > y]`."""

def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Hamming window :math:`\\alpha - \\beta\\cos(2\\pi n/N)`."""

def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Hann window :math:`\\sin^2(\\pi n/N)`."""

def hardshrink(input: Any, lambd: float = 0.5, *, out: Any = ...) -> Tensor:
    """Replace elements from ``-lambd`` to `lambd` by 0."""

def heaviside(input: Any, values: Any, *, out: Any = ...) -> Tensor:
    """Step function: 0 where `input` is negative, 1 where it is positive, `values` where it is 0."""

def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = ...) -> Tensor:
    """Count the elements in bins of equal width."""

def histogram(
    input: Any,
    bins: Any = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
    out: Any = ...,
) -> Histogram:
    """Count the elements between edges, or sum up their weights."""

def histogramdd(
    input: Any,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
    *,
    out: Any = ...,
) -> HistogramDD:
    """Count points in the cells of a grid, or sum up their weights; see `histogram`."""

def hsplit(
    input: Any,
    indices_or_sections: int | Sequence[int] = ...,
    *,
    sections: int | Sequence[int] = ...,
    indices: int | Sequence[int] = ...,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Split along dimension 1, the only one of a vector; see `tensor_split`. A number of parts must divide the length."""

def hstack(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Join tensors along dimension 1, vectors along their only one; see `cat`."""

def hypot(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Length :math:`\\sqrt{x^2 + y^2}`."""

def i0(input: Any, *, out: Any = ...) -> Tensor:
    """Modified Bessel function of the first kind of order 0."""

def igamma(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`."""

def igammac(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`."""

def imag(input: Any, *, out: Any = ...) -> Tensor:
    """Imaginary part of complex numbers."""

def index_add(
    input: Any,
    dim: int = ...,
    index: Any = ...,
    source: Any = ...,
    *,
    alpha: float = 1,
    axis: int = ...,
    out: Any = ...,
) -> Tensor:
    """Copy to which slices of `source` are added at indices along a dimension; several may go to one place."""

def index_copy(
    input: Any, dim: int = ..., index: Any = ..., source: Any = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Copy in which slices of `source` replace those at indices along a dimension."""

def index_fill(
    input: Any, dim: int = ..., index: Any = ..., value: Any = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Copy in which a number replaces the slices at indices along a dimension."""

def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *, out: Any = ...) -> Tensor:
    """Copy with values written at indices: what ``x[indices] = values`` does to a copy."""

def index_reduce(
    input: Any,
    dim: int = ...,
    index: Any = ...,
    source: Any = ...,
    reduce: str = ...,
    *,
    include_self: bool = True,
    axis: int = ...,
    out: Any = ...,
) -> Tensor:
    """Copy in which slices of `source` are combined with those at indices along a dimension."""

def index_select(input: Any, dim: int = ..., index: Any = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Slices at indices along a dimension."""

def initial_seed() -> int:
    """Return the seed of the default generator that was set last; see `manual_seed`."""

def inner(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Products of each vector along the last dimension of one tensor with each of another; see `matmul`."""

def inverse(input: Any, *, out: Any = ...) -> Tensor:
    """Inverses of square matrices; see `tapegrad.linalg.inv`."""

def is_complex(input: Any) -> bool:
    """Whether a tensor has a complex dtype."""

def is_conj(input: Any) -> bool:
    """Return False: conjugates and negatives are computed at once."""

def is_floating_point(input: Any) -> bool:
    """Whether a tensor has a real floating dtype."""

def is_inference(input: Any) -> bool:
    """Whether a tensor was computed in `inference_mode`."""

def is_neg(input: Any) -> bool:
    """Return False: conjugates and negatives are computed at once."""

def is_nonzero(input: Any) -> bool:
    """Whether the only element is not zero."""

def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""

def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers."""

def is_storage(obj: Any) -> bool:
    """Whether an object is the memory of a tensor."""

def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor."""

def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, *, out: Any = ...
) -> Tensor:
    """Whether elements are equal within ``atol + rtol * abs(other)``."""

def isfinite(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is finite, :math:`y = [\\left|x\\right| < \\infty]`."""

def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Any = ...
) -> Tensor:
    """Tell of each element whether it is among others."""

def isinf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is infinite, :math:`y = [\\left|x\\right| = \\infty]`."""

def isnan(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is nan, :math:`y = [x \\ne x]`."""

def isneginf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is minus infinity, :math:`y = [x = -\\infty]`."""

def isposinf(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is plus infinity, :math:`y = [x = \\infty]`."""

def isreal(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element has no imaginary part, :math:`y = [\\operatorname{Im}(x) = 0]`."""

def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
    *,
    out: Any = ...,
) -> Tensor:
    """Signal whose frames have such Fourier transforms, in the sense of least squares: the inverse of `stft`."""

def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Kaiser window :math:`I_0(\\beta\\sqrt{1 - (2n/N - 1)^2}) / I_0(\\beta)`."""

def kernel_op(
    forward: Callable[..., Any],
    vjp: Callable[..., Any] | Sequence[Callable[..., Any] | None],
    *,
    shape: Callable[..., tuple[int, ...]] | None = None,
    name: str | None = None,
    domain: tuple[float, float] = ...,
    samples: Sequence[Sample] | None = None,
    oracle: Callable[..., Any] | None = None,
) -> Callable[..., Tensor]:
    """Make an operation of functions that are compiled: no Python runs in a backward pass."""

def kron(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Kronecker product: :math:`Z_{ij} = X_{\\lfloor i/p \\rfloor, \\lfloor j/q \\rfloor} Y_{i \\bmod p, j \\bmod q}`."""

def kthvalue(
    input: Any, k: int, dim: int = -1, keepdim: bool = False, *, axis: int = ..., keepdims: bool = ..., out: Any = ...
) -> ValuesIndices:
    """Choose the `k`-th smallest elements along a dimension, and their indices; nan counts as the largest."""

def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-05,
    *,
    out: Any = ...,
) -> Tensor:
    """Normalise over the last dimensions: :math:`(x - m)/\\sqrt{v + \\epsilon}`, with mean and variance."""

def lcm(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Least common multiple, :math:`z = |x y| / \\gcd(x, y)`."""

def ldexp(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Multiply `input` by 2 to the power `other`."""

def le(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is at most `other`, :math:`z = [x \\le y]`."""

def lerp(input: Any, end: Any, weight: Any, *, out: Any = ...) -> Tensor:
    """Linear interpolation, ``input + weight * (end - input)``."""

def less(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is less than `other`, :math:`z = [x < y]`."""

def less_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is at most `other`, :math:`z = [x \\le y]`."""

def lgamma(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of the absolute value of the gamma function."""

def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return evenly spaced values from `start` to `end`, both included."""

def log(input: Any, *, out: Any = ...) -> Tensor:
    """Natural logarithm."""

def log10(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm to base 10."""

def log1p(input: Any, *, out: Any = ...) -> Tensor:
    """Natural logarithm of 1 + x, precise near 0."""

def log2(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithm to base 2."""

def log_softmax(
    input: Any, dim: int = ..., dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def logaddexp(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Logarithm of the sum of exponentials."""

def logaddexp2(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Logarithm to base 2 of the sum of powers of 2."""

def logcumsumexp(input: Any, dim: int = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Logarithms of the cumulative sums of exponentials along a dimension, computed so that nothing overflows."""

def logdet(input: Any, *, out: Any = ...) -> Tensor:
    """Logarithms of determinants; nan where these are negative numbers."""

def logical_and(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether both are nonzero, :math:`z = [x \\ne 0] [y \\ne 0]`."""

def logical_not(input: Any, *, out: Any = ...) -> Tensor:
    """Whether an element is zero, :math:`y = [x = 0]`."""

def logical_or(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether one is nonzero, :math:`z = 1 - [x = 0] [y = 0]`."""

def logical_xor(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether just one of the two is nonzero, :math:`z = [[x = 0] \\ne [y = 0]]`."""

def logit(input: Any, eps: float | None = None, *, out: Any = ...) -> Tensor:
    """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return `base` to the power of evenly spaced values from `start` to `end`, both included."""

def logsumexp(
    input: Any,
    dim: int | tuple[int, ...] = ...,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows."""

def lstm(
    input: Any,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Long short-term memory: a state with gates that write, keep and show it."""

def lstm_cell(
    input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, out: Any = ...
) -> tuple[Tensor, Tensor]:
    """Take one step of an LSTM; gates are those of the input, to forget, new values, and of the output."""

def lt(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether `input` is less than `other`, :math:`z = [x < y]`."""

def lu(A: Any = ..., pivot: bool = True, get_infos: bool = False, *, input: Any = ..., out: Any = ...) -> Any:
    """LU factors with exchanges of rows, in one matrix; see `tapegrad.linalg.lu_factor`."""

def lu_solve(input: Any, LU_data: Any, LU_pivots: Any, *, out: Any = ...) -> Tensor:
    """Solutions of linear systems with the factors by `tapegrad.linalg.lu_factor`; see `tapegrad.linalg.lu_solve`."""

def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = ...
) -> LU:
    """Return the factors of a decomposition that are packed into one matrix, as by `lu_factor`."""

def manual_seed(seed: int) -> Generator:
    """Set the seed of the generator that is used where none is given, and return that generator."""

def masked_fill(input: Any, mask: Any, value: Any, *, out: Any = ...) -> Tensor:
    """Copy in which a number stands where a mask is true."""

def masked_scatter(input: Any, mask: Any, source: Any, *, out: Any = ...) -> Tensor:
    """Copy in which elements of a tensor, in their order, stand where a mask is true."""

def masked_select(input: Any, mask: Any, *, out: Any = ...) -> Tensor:
    """Vector of the elements where a mask is true."""

def matmul(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

def matrix_exp(A: Any = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Exponentials of square matrices."""

def matrix_power(A: Any = ..., n: int = ..., *, input: Any = ..., out: Any = ...) -> Tensor:
    """Powers of square matrices, by products of squares."""

def max(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Any:
    """Return the largest element; along a dimension, with its index; of two tensors, element by element."""

def max_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of signals, of one dimension."""

def max_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of images, of two dimensions."""

def max_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of volumes, of three dimensions."""

def maximum(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The larger of the two; nan if one is."""

def mean(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Mean of the elements; nan if there is none."""

def median(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Any:
    """Median of the elements; along a dimension, with its index. Of an even number, the lower middle one."""

def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return coordinates of the points of a grid, as views: one tensor for each vector."""

def min(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Any:
    """Return the smallest element; along a dimension, with its index; of two tensors, element by element."""

def minimum(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The smaller of the two; nan if one is."""

def mm(input: Any, mat2: Any, *, out: Any = ...) -> Tensor:
    """Product of two matrices; see `matmul`."""

def mode(
    input: Any, dim: int = -1, keepdim: bool = False, *, axis: int = ..., keepdims: bool = ..., out: Any = ...
) -> ValuesIndices:
    """Choose the most frequent elements along a dimension, and the last index of each; of several, the smallest."""

def moveaxis(input: Any, source: int | Sequence[int], destination: int | Sequence[int], *, out: Any = ...) -> Tensor:
    """Move dimensions to other positions, as a view; the others keep their order."""

def movedim(input: Any, source: int | Sequence[int], destination: int | Sequence[int], *, out: Any = ...) -> Tensor:
    """Move dimensions to other positions, as a view; the others keep their order."""

def msort(input: Any, *, out: Any = ...) -> Tensor:
    """Sort along the first dimension."""

def mul(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Multiply."""

def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Any = ...
) -> Tensor:
    """Draw indices with probabilities that are proportional to the elements of a row."""

def multiply(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Multiply."""

def mv(input: Any, vec: Any, *, out: Any = ...) -> Tensor:
    """Product of a matrix and a vector; see `matmul`."""

def mvlgamma(input: Any, p: int, *, out: Any = ...) -> Tensor:
    """Logarithm of the multivariate gamma function."""

def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Any = ...
) -> Tensor:
    """Replace nan and infinities by numbers."""

def nanmean(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Mean of the elements that are not nan; nan if all are."""

def nanmedian(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Any:
    """Median of the elements that are not nan; along a dimension, with its index."""

def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Quantiles of the elements that are not nan; nan if all are."""

def nansum(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Sum of the elements that are not nan."""

def narrow(
    input: Any, dim: int = ..., start: Any = ..., length: int = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Return some neighbouring indices of a dimension, as a view."""

def narrow_copy(
    input: Any, dim: int = ..., start: Any = ..., length: int = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Compute `narrow` in a copy, which shares no memory with the tensor."""

def ne(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether elements differ, :math:`z = [x \\ne y]`."""

def neg(input: Any, *, out: Any = ...) -> Tensor:
    """Negate."""

def negative(input: Any, *, out: Any = ...) -> Tensor:
    """Negate."""

def nextafter(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The floating-point number next to `input` in the direction of `other`."""

def nonzero(input: Any, *, as_tuple: bool = False, out: Any = ...) -> Any:
    """Find the elements that are not zero."""

def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = ...) -> Tensor:
    """Find a given number of elements that are not zero: a row of indices for each; see `nonzero`."""

def norm(
    input: Any,
    p: float | str | None = "fro",
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    *,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Norms of vectors; see `tapegrad.linalg.vector_norm`."""

def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return normally distributed numbers."""

def not_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Whether elements differ, :math:`z = [x \\ne y]`."""

def numel(input: Any) -> int:
    """Return how many elements a tensor has."""

def ones(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of ones."""

def ones_like(
    input: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of ones, of the shape and dtype of another."""

def orgqr(A: Any = ..., tau: Any = ..., *, input: Any = ..., input2: Any = ..., out: Any = ...) -> Tensor:
    """First columns of a product of Householder reflections :math:`I - \\tau_k v_k v_k^H`."""

def ormqr(
    input: Any,
    tau: Any = ...,
    other: Any = ...,
    left: bool = True,
    transpose: bool = False,
    *,
    input2: Any = ...,
    out: Any = ...,
) -> Tensor:
    """Product of a matrix and a product of Householder reflections; see `tapegrad.linalg.householder_product`."""

def outer(input: Any, vec2: Any, *, out: Any = ...) -> Tensor:
    """Products of each element of one vector with each of another."""

def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False, *, keepdims: bool = ..., out: Any = ...
) -> Tensor:
    """Distances between vectors, along the last dimension."""

def pca_lowrank(
    A: Any = ..., q: int | None = None, center: bool = True, niter: int = 2, *, input: Any = ..., out: Any = ...
) -> SVD:
    """Principal components of rows, by `svd_lowrank`."""

def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Distances between each two rows of a matrix."""

def permute(input: Any, dims: int | Sequence[int] = ..., *rest: int, axis: int | Sequence[int] = ...) -> Tensor:
    """Put the dimensions into another order, as a view."""

def permute_copy(
    input: Any, dims: int | Sequence[int] = ..., *rest: int, axis: int | Sequence[int] = ..., out: Any = ...
) -> Tensor:
    """Compute `permute` in a copy, which shares no memory with the tensor."""

def pinverse(input: Any, rcond: float = 1e-15, *, out: Any = ...) -> Tensor:
    """Pseudoinverses of matrices; see `tapegrad.linalg.pinv`."""

def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Make images of r = `upscale_factor` times the size of channels: (..., c r^2, h, w) to (..., c, h r, w r)."""

def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Make channels of pixels, the inverse of `pixel_shuffle`: (..., c, h r, w r) to (..., c r^2, h, w)."""

def poisson(input: Any, generator: Generator | None = None, *, out: Any = ...) -> Tensor:
    """Draw numbers of the Poisson distribution."""

def polar(abs: Any, angle: Any, *, out: Any = ...) -> Tensor:
    """Complex numbers with these absolute values and angles."""

def polygamma(n: int, input: Any, *, out: Any = ...) -> Tensor:
    """Differentiate the digamma function `n` times: :math:`\\psi^{(n)}(x)`."""

def positive(input: Any, *, out: Any = ...) -> Tensor:
    """Return the tensor itself: what ``+x`` computes."""

def pow(input: Any, exponent: Any, *, out: Any = ...) -> Tensor:
    """Raise `input` to the power `exponent`."""

def prelu(input: Any, weight: Any, *, out: Any = ...) -> Tensor:
    """Return `input` where it is positive, and `weight` times `input` elsewhere."""

def prod(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Product of the elements; 1 if there is none."""

def promote_types(type1: DTypeLike, type2: DTypeLike) -> np.dtype:
    """Return the dtype that holds the numbers of two."""

def put(input: Any, index: Any, source: Any, accumulate: bool = False, *, out: Any = ...) -> Tensor:
    """Copy with elements written at indices of the flat tensor."""

def qr(input: Any, some: bool = True, *, out: Any = ...) -> QR:
    """QR decomposition; see `tapegrad.linalg.qr`."""

def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Quantiles of the elements, interpolated between neighbours in order; nan if an element is."""

def rad2deg(input: Any, *, out: Any = ...) -> Tensor:
    """Convert radians to degrees."""

def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return independent random numbers, uniform on [0, 1), of a shape."""

def rand_like(
    input: Any,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return independent random numbers, uniform on [0, 1), of the shape and dtype of another tensor."""

def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = ...,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return integers drawn uniformly from `low` up to and without `high`."""

def randint_like(
    input: Any,
    low: int,
    high: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return integers, as `randint` draws them, of the shape and dtype of another tensor."""

def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return independent random numbers, normal with mean 0 and variance 1, of a shape."""

def randn_like(
    input: Any,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return independent random numbers, normal with mean 0 and variance 1, of the shape and dtype of another tensor."""

def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = ...,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order."""

def ravel(input: Any, order: str = "C", *, out: Any = ...) -> Tensor:
    """Join all dimensions into one; a view if that is possible."""

def real(input: Any, *, out: Any = ...) -> Tensor:
    """Real part; of real numbers the tensor itself."""

def reciprocal(input: Any, *, out: Any = ...) -> Tensor:
    """Elementwise reciprocal, :math:`1/x`."""

def relu(input: Any, *, out: Any = ...) -> Tensor:
    """The larger of `input` and 0."""

def remainder(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Remainder of a division, of the sign of `other`: Python's ``%``."""

def renorm(input: Any, p: float, dim: int = ..., maxnorm: float = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Scale parts of a tensor, one for each index of a dimension, so that their norms are not above a bound."""

def repeat_interleave(
    input: Any,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    axis: int | None = ...,
    out: Any = ...,
) -> Tensor:
    """Repeat each element along a dimension, in a copy."""

def reshape(input: Any, shape: int | Sequence[int], *rest: int, order: str = "C") -> Tensor:
    """Give the elements, in their order, another shape; a view if that is possible, else a copy."""

def reshape_as(input: Any, other: Tensor, *, out: Any = ...) -> Tensor:
    """Give the elements the shape of another tensor; see `reshape`."""

def resolve_conj(input: Any, *, out: Any = ...) -> Tensor:
    """Return the tensor itself: conjugates are computed at once here."""

def resolve_neg(input: Any, *, out: Any = ...) -> Tensor:
    """Return the tensor itself: conjugates are computed at once here."""

def result_type(tensor1: Any = ..., tensor2: Any = ..., *, tensor: Any = ..., other: Any = ...) -> np.dtype:
    """Return the dtype of a sum of two tensors, or of a tensor and a number."""

def rms_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None, *, out: Any = ...
) -> Tensor:
    """Divide by the root of the mean square over the last dimensions: :math:`x/\\sqrt{\\overline{x^2} + \\epsilon}`."""

def rnn_relu(
    input: Any,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Elman's recurrent layer, with `relu`."""

def rnn_relu_cell(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, out: Any = ...
) -> Tensor:
    """Take one step of a recurrent layer: `relu` of what the input and the state give."""

def rnn_tanh(
    input: Any,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Elman's recurrent layer, with `tanh`."""

def rnn_tanh_cell(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, *, out: Any = ...
) -> Tensor:
    """Take one step of a recurrent layer: `tanh` of what the input and the state give."""

def roll(
    input: Any,
    shifts: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    *,
    axis: int | Sequence[int] | None = ...,
    out: Any = ...,
) -> Tensor:
    """Move the elements along dimensions; those that leave at the end come in at the beginning. A copy."""

def rot90(input: Any, k: int = 1, dims: Sequence[int] = ..., *, axis: Sequence[int] = ..., out: Any = ...) -> Tensor:
    """Rotate the matrices that two dimensions form by 90 degrees, `k` times, from the first to the second. A copy."""

def round(input: Any, decimals: int | None = None, *, out: Any = ...) -> Tensor:
    """Round to the nearest integer, halves to the even one; integers stay as they are."""

def row_stack(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Join tensors along dimension 0, vectors as rows of a matrix; see `cat`."""

def rrelu(
    input: Any,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
    *,
    out: Any = ...,
) -> Tensor:
    """Return `input` where it is positive, and `input` times a slope elsewhere: a random one for each element."""

def rsqrt(input: Any, *, out: Any = ...) -> Tensor:
    """Reciprocal of the square root."""

def rsub(input: Any, other: Any, *, alpha: Any = 1, out: Any = ...) -> Tensor:
    """Subtract `input`, times a factor, from `other`."""

def scalar_tensor(
    s: Any, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False, out: Any = ...
) -> Tensor:
    """Return a tensor without dimensions."""

def scatter(
    input: Any,
    dim: int = ...,
    index: Any = ...,
    src: Any = None,
    value: Any = None,
    *,
    reduce: str | None = None,
    axis: int = ...,
    out: Any = ...,
) -> Tensor:
    """Copy with elements of `src` written where indices say along a dimension."""

def scatter_add(
    input: Any, dim: int = ..., index: Any = ..., src: Any = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Copy to which elements of `src` are added where indices say along a dimension; several may go to one place."""

def scatter_reduce(
    input: Any,
    dim: int = ...,
    index: Any = ...,
    src: Any = ...,
    reduce: str = ...,
    *,
    include_self: bool = True,
    axis: int = ...,
    out: Any = ...,
) -> Tensor:
    """Copy in which elements of `src` are combined with those where indices say along a dimension."""

def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
    out: Any = ...,
) -> Tensor:
    """Places at which values would be inserted into sorted lines so that these stay sorted."""

def seed() -> int:
    """Seed the default generator by a number from the operating system, and return it; see `manual_seed`."""

def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
    out: Any = ...,
) -> Tensor:
    """Reduce segments of a dimension, one behind the other."""

def select(input: Any, dim: int = ..., index: Any = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Return one index of a dimension, as a view without that dimension."""

def select_copy(input: Any, dim: int = ..., index: Any = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Compute `select` in a copy, which shares no memory with the tensor."""

def select_scatter(
    input: Any, src: Any, dim: int = ..., index: int = ..., *, axis: int = ..., out: Any = ...
) -> Tensor:
    """Copy with one index of a dimension replaced; see `select`."""

def selu(input: Any, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Return :math:`s x` where `input` is positive, and :math:`s \\alpha (e^x - 1)` elsewhere."""

def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of matrices in single precision to lose digits: they never do."""

def set_rng_state(new_state: Any) -> None:
    """Let the default generator go back to a state that `get_rng_state` returned."""

def sgn(input: Any, *, out: Any = ...) -> Tensor:
    """Sign; :math:`x/|x|` for complex numbers, 0 at 0."""

def sigmoid(input: Any, *, out: Any = ...) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def sign(input: Any, *, out: Any = ...) -> Tensor:
    """Sign of a real number; 0 at 0."""

def signbit(input: Any, *, out: Any = ...) -> Tensor:
    """Whether the sign bit is set, :math:`y = [\\operatorname{copysign}(1, x) < 0]`."""

def sin(input: Any, *, out: Any = ...) -> Tensor:
    """Sine of an angle in radians."""

def sinc(input: Any, *, out: Any = ...) -> Tensor:
    """Normalised sine :math:`\\sin(\\pi x)/(\\pi x)`, 1 at 0."""

def sinh(input: Any, *, out: Any = ...) -> Tensor:
    """Hyperbolic sine."""

def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    axis: int = ...,
    out: Any = ...,
) -> Tensor:
    """Copy with a slice of a dimension replaced."""

def slogdet(A: Any = ..., *, input: Any = ..., out: Any = ...) -> LinalgSlogdet:
    """Signs of determinants, and logarithms of their absolute values."""

def softmax(input: Any, dim: int = ..., dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, axis: int = ..., out: Any = ...
) -> ValuesIndices:
    """Sort the elements, of a real dtype, along a dimension; nan counts as the largest."""

def split(
    tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0, *, axis: int = ..., out: Any = ...
) -> tuple[Tensor, ...]:
    """Split along a dimension into views."""

def split_with_sizes(
    input: Any, split_sizes: Sequence[int], dim: int = 0, *, axis: int = ..., out: Any = ...
) -> tuple[Tensor, ...]:
    """Split along a dimension into views of these lengths; see `split`."""

def split_with_sizes_copy(
    input: Any, split_sizes: Sequence[int], dim: int = 0, *, axis: int = ..., out: Any = ...
) -> tuple[Tensor, ...]:
    """Compute `split_with_sizes` in a copy, which shares no memory with the tensor."""

def sqrt(input: Any, *, out: Any = ...) -> Tensor:
    """Square root."""

def square(input: Any, *, out: Any = ...) -> Tensor:
    """Elementwise square."""

def squeeze(
    input: Any, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = ..., out: Any = ...
) -> Tensor:
    """Drop dimensions of length 1, as a view; see `reshape`."""

def squeeze_copy(
    input: Any, dim: int | Sequence[int] | None = None, *, axis: int | Sequence[int] | None = ..., out: Any = ...
) -> Tensor:
    """Compute `squeeze` in a copy, which shares no memory with the tensor."""

def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int = ..., out: Any = ...) -> Tensor:
    """Join tensors of one shape along a new dimension."""

def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    ddof: float | None = ...,
    out: Any = ...,
) -> Tensor:
    """Take the standard deviation of the elements: the square root of the variance."""

def std_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    ddof: float | None = ...,
    out: Any = ...,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean of the elements; arguments are those of `var`."""

def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
    *,
    out: Any = ...,
) -> Tensor:
    """Fourier transforms of the frames of a signal: which frequencies it has, and when."""

def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = ...) -> Tensor:
    """Subtract `other`, times a factor."""

def subtract(input: Any, other: Any, *, alpha: Any = 1, out: Any = ...) -> Tensor:
    """Subtract `other`, times a factor."""

def sum(
    input: Any,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: int | tuple[int, ...] | None = ...,
    keepdims: bool = ...,
    out: Any = ...,
) -> Tensor:
    """Sum of the elements."""

def sum_to_size(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Sum over what broadcasting would stretch: :math:`y_j = \\sum_i X_{ij}`, :math:`\\bar X_{ij} = \\bar y_j`."""

def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = ...) -> SVD:
    """Singular values and vectors; see `tapegrad.linalg.svd`."""

def svd_lowrank(
    A: Any = ..., q: int | None = 6, niter: int | None = 2, M: Any = None, *, input: Any = ..., out: Any = ...
) -> SVD:
    """Leading singular values and vectors of matrices, of about a rank."""

def swapaxes(input: Any, axis0: int, axis1: int, *, out: Any = ...) -> Tensor:
    """Swap two dimensions, as a view; see `transpose`."""

def swapdims(input: Any, dim0: int, dim1: int, *, out: Any = ...) -> Tensor:
    """Swap two dimensions, as a view."""

def t(input: Any, *, out: Any = ...) -> Tensor:
    """Transpose a matrix, as a view; fewer dimensions stay as they are."""

def t_copy(input: Any, *, out: Any = ...) -> Tensor:
    """Compute `t` in a copy, which shares no memory with the tensor."""

def take(input: Any, index: Any, *, out: Any = ...) -> Tensor:
    """Elements of the flat tensor at indices."""

def take_along_dim(
    input: Any, indices: Any, dim: int | None = None, *, axis: int | None = ..., out: Any = ...
) -> Tensor:
    """Elements that indices choose along a dimension, or in the flat tensor: as `gather`, with broadcasting."""

def tan(input: Any, *, out: Any = ...) -> Tensor:
    """Tangent of an angle in radians."""

def tanh(input: Any, *, out: Any = ...) -> Tensor:
    """Hyperbolic tangent."""

def tensor(
    data: Any, *, dtype: DTypeLike | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Return a new leaf tensor with a copy of the data."""

def tensor_split(
    input: Any,
    indices_or_sections: Any = ...,
    dim: int = 0,
    *,
    sections: Any = ...,
    indices: Any = ...,
    axis: int = ...,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Split along a dimension into views, at indices or into nearly equal parts."""

def tensordot(a: Any, b: Any, dims: Any = 2, *, axis: Any = ..., out: Any = ...) -> Tensor:
    """Sum products of elements over pairs of dimensions; see `einsum`."""

def threshold(input: Any, threshold: float, value: float, inplace: bool = False, *, out: Any = ...) -> Tensor:
    """Replace elements that are not above `threshold` by `value`."""

def tile(input: Any, dims: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat the tensor along dimensions, in a copy."""

def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, axis: int = ..., out: Any = ...
) -> ValuesIndices:
    """Choose the `k` largest elements along a dimension, and their indices, in order; nan counts as the largest."""

def trace(input: Any, *, out: Any = ...) -> Tensor:
    """Sum of the diagonal of a matrix."""

def transpose(input: Any, dim0: int, dim1: int, *, out: Any = ...) -> Tensor:
    """Swap two dimensions, as a view."""

def transpose_copy(input: Any, dim0: int, dim1: int, *, out: Any = ...) -> Tensor:
    """Compute `transpose` in a copy, which shares no memory with the tensor."""

def trapezoid(
    y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1, axis: int = ..., out: Any = ...
) -> Tensor:
    """Integral along a dimension, by the trapezoidal rule."""

def trapz(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1, axis: int = ..., out: Any = ...) -> Tensor:
    """Integral along a dimension, by the trapezoidal rule."""

def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = ...
) -> TriangularSolve:
    """Solutions of systems with triangular matrices; see `tapegrad.linalg.solve_triangular`."""

def tril(input: Any, diagonal: int = 0, *, out: Any = ...) -> Tensor:
    """Lower triangles of matrices: zero above a diagonal."""

def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = ..., out: Any = ...) -> Tensor:
    """Rows and columns of the elements of a lower triangle; see `tril`."""

def triu(input: Any, diagonal: int = 0, *, out: Any = ...) -> Tensor:
    """Upper triangles of matrices: zero below a diagonal; see `tril`."""

def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = ..., out: Any = ...) -> Tensor:
    """Rows and columns of the elements of an upper triangle; see `tril_indices`."""

def true_divide(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = ...) -> Tensor:
    """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

def trunc(input: Any, *, out: Any = ...) -> Tensor:
    """The number without its fraction; integers stay as they are."""

def typename(obj: Any) -> str:
    """Return the name of the type of an object, with its module; of a tensor PyTorch's name of its type."""

def unbind(input: Any, dim: int = 0, *, axis: int = ..., out: Any = ...) -> tuple[Tensor, ...]:
    """Return each index of a dimension, as views without that dimension."""

def unbind_copy(input: Any, dim: int = 0, *, axis: int = ..., out: Any = ...) -> tuple[Tensor, ...]:
    """Compute `unbind` in a copy, which shares no memory with the tensor."""

def unflatten(input: Any, dim: int = ..., sizes: Sequence[int] = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Give one dimension another shape, as a view."""

def unfold_copy(input: Any, dimension: int, size: int, step: int, *, out: Any = ...) -> Tensor:
    """Compute `unfold` in a copy, which shares no memory with the tensor."""

def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = ...,
    out: Any = ...,
) -> Any:
    """Different elements, or slices along a dimension, in order."""

def unique_consecutive(
    input: Any,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = ...,
    out: Any = ...,
) -> Any:
    """Elements, or slices along a dimension, that differ from the one before."""

def unravel_index(indices: Any, shape: Any, *, out: Any = ...) -> tuple[Tensor, ...]:
    """Return the indices in each dimension of elements that are numbered one after another."""

def unsafe_chunk(input: Any, chunks: int, dim: int = 0, *, axis: int = ..., out: Any = ...) -> tuple[Tensor, ...]:
    """Split along a dimension into a number of views; see `chunk`. Writes to them are recorded."""

def unsafe_split(input: Any, split_size: int, dim: int = 0, *, axis: int = ..., out: Any = ...) -> tuple[Tensor, ...]:
    """Split along a dimension into views of a length; see `split`. Writes to them are recorded."""

def unsafe_split_with_sizes(
    input: Any, split_sizes: Sequence[int], dim: int = 0, *, axis: int = ..., out: Any = ...
) -> tuple[Tensor, ...]:
    """Split along a dimension into views of these lengths; see `split_with_sizes`. Writes to them are recorded."""

def unsqueeze(input: Any, dim: int = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Insert a dimension of length 1, as a view; see `reshape`."""

def unsqueeze_copy(input: Any, dim: int = ..., *, axis: int = ..., out: Any = ...) -> Tensor:
    """Compute `unsqueeze` in a copy, which shares no memory with the tensor."""

def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in each run: they are so in any case."""

def vander(x: Any, N: int | None = None, increasing: bool = False, *, out: Any = ...) -> Tensor:
    """Vandermonde's matrix: powers of each element in a row, from N - 1 down to 0."""

def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    ddof: float | None = ...,
    out: Any = ...,
) -> Tensor:
    """Variance of the elements."""

def var_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = ...,
    keepdims: bool = ...,
    ddof: float | None = ...,
    out: Any = ...,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean of the elements; arguments are those of `var`."""

def vdot(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product of two vectors, of which the first is conjugated."""

def view(input: Any, size: Any, *rest: int) -> Tensor:
    """Give the elements another shape without copying them."""

def view_as(input: Any, other: Tensor, *, out: Any = ...) -> Tensor:
    """Give the elements the shape of another tensor without copying them; see `view`."""

def view_as_complex(input: Any, *, out: Any = ...) -> Tensor:
    """Complex numbers whose real and imaginary parts stand along the last dimension, as a view."""

def view_as_real(input: Any, *, out: Any = ...) -> Tensor:
    """Real and imaginary parts along a new last dimension, as a view."""

def view_copy(input: Any, size: Any, *rest: int, out: Any = ...) -> Tensor:
    """Compute `view` in a copy, which shares no memory with the tensor."""

def vsplit(
    input: Any,
    indices_or_sections: int | Sequence[int] = ...,
    *,
    sections: int | Sequence[int] = ...,
    indices: int | Sequence[int] = ...,
    out: Any = ...,
) -> tuple[Tensor, ...]:
    """Split matrices along dimension 0; see `tensor_split`. A number of parts must divide the length."""

def vstack(tensors: Sequence[Any], *, out: Any = ...) -> Tensor:
    """Join tensors along dimension 0, vectors as rows of a matrix; see `cat`."""

def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = ...) -> Tensor:
    """Choose elements of `input` where the condition holds, of `other` elsewhere."""

def xlogy(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Product :math:`x \\log y`, which is 0 where `input` is 0 (unless `other` is nan)."""

def zeros(
    *shape: Any,
    size: Any = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of zeros."""

def zeros_like(
    input: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    out: Any = ...,
) -> Tensor:
    """Return a tensor of zeros, of the shape and dtype of another."""

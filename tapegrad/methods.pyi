"""The operations of Tensor, as type checkers see them.

Written by `python -m tools.stubs`, from the public functions.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.devices import DeviceLike
from tapegrad.ops.determinants import LinalgSlogdet
from tapegrad.ops.embedding import MinMax
from tapegrad.ops.generators import Generator
from tapegrad.ops.histograms import Histogram
from tapegrad.ops.numbers import Frexp
from tapegrad.ops.older import SVD
from tapegrad.ops.older_factors import TriangularSolve
from tapegrad.ops.ordering import ValuesIndices
from tapegrad.ops.qr import QR
from tapegrad.ops.storages import TypedStorage, UntypedStorage
from tapegrad.tensor import Tensor

class TensorMethods:
    """The operations of Tensor, as type checkers see them."""

    def __add__(self, other: Any) -> Tensor:
        """Add."""

    def __radd__(self, other: Any) -> Tensor:
        """Add."""

    def __iadd__(self, other: Any) -> Any:
        """Compute ``+=`` in place; recorded where a gradient is wanted."""

    def __sub__(self, other: Any) -> Tensor:
        """Subtract `other` from `input`."""

    def __rsub__(self, other: Any) -> Tensor:
        """Subtract `other` from `input`."""

    def __isub__(self, other: Any) -> Any:
        """Compute ``-=`` in place; recorded where a gradient is wanted."""

    def __mul__(self, other: Any) -> Tensor:
        """Multiply."""

    def __rmul__(self, other: Any) -> Tensor:
        """Multiply."""

    def __imul__(self, other: Any) -> Any:
        """Compute ``*=`` in place; recorded where a gradient is wanted."""

    def __truediv__(self, other: Any) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype."""

    def __rtruediv__(self, other: Any) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype."""

    def __itruediv__(self, other: Any) -> Any:
        """Compute ``/=`` in place; recorded where a gradient is wanted."""

    def __mod__(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `other`: Python's ``%``."""

    def __rmod__(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `other`: Python's ``%``."""

    def __imod__(self, other: Any) -> Any:
        """Compute ``%=`` in place; recorded where a gradient is wanted."""

    def __floordiv__(self, other: Any) -> Tensor:
        """The largest integer that is not larger than the quotient: Python's ``//``."""

    def __rfloordiv__(self, other: Any) -> Tensor:
        """The largest integer that is not larger than the quotient: Python's ``//``."""

    def __ifloordiv__(self, other: Any) -> Any:
        """Compute ``//=`` in place; recorded where a gradient is wanted."""

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        """Return quotients rounded down, and remainders."""

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        """Return the same of another value divided by this one."""

    def __pow__(self, exponent: Any) -> Tensor:
        """Raise `input` to the power `exponent`."""

    def __rpow__(self, other: Any) -> Tensor:
        """Raise `input` to the power `exponent`."""

    def __ipow__(self, other: Any) -> Any:
        """Compute ``**=`` in place; recorded where a gradient is wanted."""

    def __neg__(self) -> Tensor:
        """Negate."""

    def __abs__(self) -> Tensor:
        """Absolute value."""

    def __matmul__(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def __rmatmul__(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def __eq__(self, other: Any) -> Any:
        """Whether elements are equal, :math:`z = [x = y]`."""

    def __ne__(self, other: Any) -> Any:
        """Whether elements differ, :math:`z = [x \\ne y]`."""

    def __lt__(self, other: Any) -> Any:
        """Whether `input` is less than `other`, :math:`z = [x < y]`."""

    def __le__(self, other: Any) -> Any:
        """Whether `input` is at most `other`, :math:`z = [x \\le y]`."""

    def __gt__(self, other: Any) -> Any:
        """Whether `input` is greater than `other`, :math:`z = [x > y]`."""

    def __ge__(self, other: Any) -> Any:
        """Whether `input` is at least `other`, :math:`z = [x \\ge y]`."""

    def __and__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are, :math:`z = \\sum_k 2^k x_k y_k`."""

    def __rand__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are, :math:`z = \\sum_k 2^k x_k y_k`."""

    def __or__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one is, :math:`z = \\sum_k 2^k (x_k + y_k - x_k y_k)`."""

    def __ror__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one is, :math:`z = \\sum_k 2^k (x_k + y_k - x_k y_k)`."""

    def __xor__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where they differ, :math:`z = \\sum_k 2^k [x_k \\ne y_k]`."""

    def __rxor__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where they differ, :math:`z = \\sum_k 2^k [x_k \\ne y_k]`."""

    def __invert__(self) -> Tensor:
        """Return `bitwise_not`."""

    def __lshift__(self, other: Any) -> Tensor:
        """Integers times powers of two, :math:`z = x 2^{y}`."""

    def __rlshift__(self, other: Any) -> Tensor:
        """Integers times powers of two, :math:`z = x 2^{y}`."""

    def __rshift__(self, other: Any) -> Tensor:
        """Integers by powers of two, :math:`z = \\lfloor x / 2^{y} \\rfloor`."""

    def __rrshift__(self, other: Any) -> Tensor:
        """Integers by powers of two, :math:`z = \\lfloor x / 2^{y} \\rfloor`."""

    def __contains__(self, value: Any) -> builtins.bool:
        """Whether an element equals a value."""

    def __reversed__(self) -> Any:
        """Return the items in reverse."""

    def __getitem__(self, key: Any) -> Tensor:
        """Index: what ``x[key]`` computes. A view for integers and slices, a copy for arrays and masks."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write at an index, as ``x[index] = value`` does; recorded where a gradient is wanted."""

    def __pos__(self) -> Tensor:
        """Return the tensor itself: what ``+x`` computes."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Call the function that a ufunc, or its reduction, stands for."""

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call what the table has for one of NumPy's functions."""

    def _is_view(self) -> builtins.bool:
        """Whether the memory belongs to another tensor, of whose history this one's is a part."""

    def abs(self) -> Tensor:
        """Absolute value."""

    def absolute(self) -> Tensor:
        """Absolute value."""

    def acos(self) -> Tensor:
        """Angle in radians of a cosine."""

    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine."""

    def add(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Add `other`, times a factor."""

    def addbmm(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Sum of the products of two batches of matrices, times `alpha`, plus `beta` times a matrix."""

    def addcdiv(
        self, tensor1: Any = ..., tensor2: Any = ..., *, value: Any = 1, tensor: Any = ..., other: Any = ...
    ) -> Tensor:
        """Add a quotient, times a factor: ``input + value * tensor1 / tensor2``."""

    def addcmul(
        self, tensor1: Any = ..., tensor2: Any = ..., *, value: Any = 1, tensor: Any = ..., other: Any = ...
    ) -> Tensor:
        """Add a product, times a factor: ``input + value * tensor1 * tensor2``."""

    def addmm(self, mat1: Any, mat2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Product of two matrices, times `alpha`, plus `beta` times a matrix."""

    def addmv(self, mat: Any, vec: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Product of a matrix and a vector, times `alpha`, plus `beta` times a vector."""

    def addr(self, vec1: Any, vec2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Outer product of two vectors, times `alpha`, plus `beta` times a matrix."""

    def adjoint(self) -> Tensor:
        """Conjugates of matrices, transposed."""

    def alias_copy(self, *, memory_format: Any = None) -> Tensor:
        """Copy, recorded: :math:`\\bar x = \\bar y`. `memory_format` is ignored."""

    def all(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Whether all elements are nonzero, :math:`y = \\prod_i [x_i \\ne 0]`; of uint8 in uint8. Over no dimension, ``dim=()``, of each element."""

    def allclose(
        self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False
    ) -> builtins.bool:
        """Whether all elements are equal within ``atol + rtol * abs(other)``."""

    def amax(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Largest element; nan if there is one."""

    def amin(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Smallest element; nan if there is one."""

    def aminmax(
        self,
        *,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> MinMax:
        """Return the smallest and the largest elements: what `amin` and `amax` return."""

    def angle(self) -> Tensor:
        """Angle of complex numbers, in radians; 0 or pi of real ones."""

    def any(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Whether an element is nonzero, :math:`y = 1 - \\prod_i [x_i = 0]`; of uint8 in uint8. Over no dimension, ``dim=()``, of each element."""

    def arccos(self) -> Tensor:
        """Angle in radians of a cosine."""

    def arccosh(self) -> Tensor:
        """Inverse hyperbolic cosine."""

    def arcsin(self) -> Tensor:
        """Angle in radians of a sine."""

    def arcsinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def arctan(self) -> Tensor:
        """Angle in radians of a tangent."""

    def arctan2(self, other: Any) -> Tensor:
        """Angle in radians of the point with ordinate `input` and abscissa `other`."""

    def arctanh(self) -> Tensor:
        """Inverse hyperbolic tangent."""

    def argmax(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Index of the first largest element (see `amax`) or nan, in the flat tensor or along a dimension."""

    def argmin(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Index of the first smallest element (see `amin`) or nan, in the flat tensor or along a dimension."""

    def argsort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        *,
        stable: builtins.bool = False,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Return the indices that sort the elements along a dimension; equal ones keep their order."""

    def argwhere(self) -> Tensor:
        """Find the elements that are not zero: a row of indices for each; see `nonzero`."""

    def as_strided(
        self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = None
    ) -> Tensor:
        """View of the elements, in the order of memory, with another shape and other strides."""

    def as_strided_scatter(
        self,
        src: Any,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """Copy with the elements replaced that `as_strided` would show."""

    def asin(self) -> Tensor:
        """Angle in radians of a sine."""

    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def astype(self, dtype: DTypeLike, *, copy: builtins.bool = True) -> Tensor:
        """Return a copy of the tensor in a dtype, as NumPy's arrays do."""

    def atan(self) -> Tensor:
        """Angle in radians of a tangent."""

    def atan2(self, other: Any) -> Tensor:
        """Angle in radians of the point with ordinate `input` and abscissa `other`."""

    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent."""

    def baddbmm(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Products of two batches of matrices, times `alpha`, plus `beta` times a batch."""

    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Return ones with the given probabilities, zeros otherwise."""

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with ones with a probability, or with those of a tensor, and with zeros otherwise, in place."""

    def bincount(self, weights: Any = None, minlength: builtins.int = 0) -> Tensor:
        """Count how often each number from 0 on is there."""

    def bitwise_and(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are, :math:`z = \\sum_k 2^k x_k y_k`."""

    def bitwise_left_shift(self, other: Any) -> Tensor:
        """Integers times powers of two, :math:`z = x 2^{y}`."""

    def bitwise_not(self) -> Tensor:
        """Invert integers bit by bit, or truth values."""

    def bitwise_or(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one is, :math:`z = \\sum_k 2^k (x_k + y_k - x_k y_k)`."""

    def bitwise_right_shift(self, other: Any) -> Tensor:
        """Integers by powers of two, :math:`z = \\lfloor x / 2^{y} \\rfloor`."""

    def bitwise_xor(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where they differ, :math:`z = \\sum_k 2^k [x_k \\ne y_k]`."""

    def bmm(self, mat2: Any) -> Tensor:
        """Products of two batches of matrices, which do not broadcast; see `matmul`."""

    def broadcast_to(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Repeat to the shape `size`, a sequence of integers; see `expand`."""

    def cauchy_(
        self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers of the Cauchy distribution, in place."""

    def ceil(self) -> Tensor:
        """The smallest integer that is not smaller; integers stay as they are."""

    def cholesky(self, upper: builtins.bool = False, *, input: Any = ...) -> Tensor:
        """Cholesky factors of symmetric or Hermitian positive-definite matrices, :math:`A = L L^H`."""

    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """Inverses of matrices with given Cholesky factors."""

    def cholesky_solve(self, L: Any = ..., upper: builtins.bool = False, *, input2: Any = ...) -> Tensor:
        """Solutions of :math:`A X = B` with the Cholesky factor of :math:`A`."""

    def chunk(self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split along a dimension into views of one length, of which the last may be shorter."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit elements to the range from `min` to `max`: :math:`\\min(\\max(x, \\mathit{min}), \\mathit{max})`."""

    def clamp_max(self, max: Any) -> Tensor:
        """Lower elements to at most `max`; see `clamp`."""

    def clamp_min(self, min: Any) -> Tensor:
        """Raise elements to at least `min`; see `clamp`."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit elements to the range from `min` to `max`: :math:`\\min(\\max(x, \\mathit{min}), \\mathit{max})`."""

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """Copy, recorded: :math:`\\bar x = \\bar y`. `memory_format` is ignored."""

    def conj(self) -> Tensor:
        """Complex conjugate; of real numbers the tensor itself."""

    def conj_physical(self) -> Tensor:
        """Complex conjugate; the same as `conj`."""

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """Return the tensor itself if its elements lie in memory in their order, else a copy (`clone`) that is so."""

    def copy(self, *, memory_format: Any = None) -> Tensor:
        """Copy, recorded: :math:`\\bar x = \\bar y`. `memory_format` is ignored."""

    def copysign(self, other: Any) -> Tensor:
        """The size of `input` with the sign of `other`."""

    def corrcoef(self) -> Tensor:
        """Correlations of variables, each of which is a row of observations; see `cov`."""

    def cos(self) -> Tensor:
        """Cosine of an angle in radians."""

    def cosh(self) -> Tensor:
        """Hyperbolic cosine."""

    def count_nonzero(self, dim: Any = None, *, axis: Any = ...) -> Tensor:
        """How many elements are not zero."""

    def cov(
        self, *, correction: builtins.int = 1, fweights: Any = None, aweights: Any = None, ddof: builtins.int = ...
    ) -> Tensor:
        """Covariances of variables, each of which is a row of observations."""

    def cpu(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the tensor itself: all are in the memory of the CPU."""

    def cross(self, other: Any, dim: builtins.int | None = None, *, axis: builtins.int | None = ...) -> Tensor:
        """Cross products of vectors of three elements; see `tapegrad.linalg.cross`."""

    def cuda(self, *args: Any, **kwargs: Any) -> Tensor:
        """Raise PyTorch's error: there is no GPU."""

    def cummax(self, dim: builtins.int = ..., *, axis: builtins.int = ...) -> ValuesIndices:
        """The largest elements so far along a dimension, and the indices of the last of each."""

    def cummin(self, dim: builtins.int = ..., *, axis: builtins.int = ...) -> ValuesIndices:
        """The smallest elements so far along a dimension, and the indices of the last of each."""

    def cumprod(self, dim: builtins.int = ..., *, dtype: DTypeLike | None = None, axis: builtins.int = ...) -> Tensor:
        """Cumulative products along a dimension: of each element and those before it."""

    def cumsum(self, dim: builtins.int = ..., *, dtype: DTypeLike | None = None, axis: builtins.int = ...) -> Tensor:
        """Cumulative sums along a dimension: of each element and those before it."""

    def data_ptr(self) -> builtins.int:
        """Return the address of the first element, 0 if there is none."""

    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""

    def det(self, *, input: Any = ...) -> Tensor:
        """Return the determinants of square matrices."""

    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Matrix with a vector as diagonal; of a matrix its diagonal, in a copy."""

    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Matrices that have the lines along the last dimension as diagonals, and zeros elsewhere."""

    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """Matrix with the elements of a tensor, joined into one dimension, as diagonal."""

    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """Diagonal of each matrix that two dimensions form, as a view."""

    def diagonal_scatter(
        self, src: Any, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """Copy with the diagonal of each matrix replaced; see `diagonal`."""

    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Any = None,
        append: Any = None,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Differences of neighbours along a dimension: each element less the one before it."""

    def digamma(self) -> Tensor:
        """Digamma function :math:`\\psi`: the derivative of `lgamma`."""

    def dist(self, other: Any, p: builtins.float = 2) -> Tensor:
        """Norm of the difference of two tensors."""

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def dot(self, tensor: Any) -> Tensor:
        """Product of two vectors, without conjugation."""

    def dsplit(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int] = ...,
        *,
        sections: builtins.int | Sequence[builtins.int] = ...,
        indices: builtins.int | Sequence[builtins.int] = ...,
    ) -> tuple[Tensor, ...]:
        """Split along dimension 2; see `tensor_split`. A number of parts must divide the length."""

    def element_size(self) -> builtins.int:
        """Return the size of an element in bytes, as `itemsize`."""

    def eq(self, other: Any) -> Tensor:
        """Whether elements are equal, :math:`z = [x = y]`."""

    def equal(self, other: Any) -> builtins.bool:
        """Whether two tensors have the same shape and the same elements."""

    def erf(self) -> Tensor:
        """Error function."""

    def erfc(self) -> Tensor:
        """Complementary error function :math:`1 - \\mathrm{erf}\\,x`, precise where that is small."""

    def erfinv(self) -> Tensor:
        """Inverse of the error function."""

    def exp(self) -> Tensor:
        """Exponential."""

    def exp2(self) -> Tensor:
        """Power of 2."""

    def expand(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Repeat along dimensions of length 1 and along new ones in front, as a view that may not be written to."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Repeat to the shape of `other`, of which only that counts; see `expand`."""

    def expm1(self) -> Tensor:
        """Exponential less 1, precise near 0."""

    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with exponentially distributed numbers of the mean ``1 / lambd``, in place."""

    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor:
        """Write a number to the diagonal, in place; recorded where a gradient is wanted."""

    def fix(self) -> Tensor:
        """The number without its fraction; integers stay as they are."""

    def flatten(self, start_dim: builtins.int | str = 0, end_dim: builtins.int = -1, order: str = "C") -> Tensor:
        """Join neighbouring dimensions into one."""

    def flip(
        self,
        dims: builtins.int | Sequence[builtins.int] = ...,
        *rest: builtins.int,
        axis: builtins.int | Sequence[builtins.int] = ...,
    ) -> Tensor:
        """Reverse the order along dimensions, in a copy: :math:`y_i = x_{n-1-i}`, :math:`\\bar x_i = \\bar y_{n-1-i}`."""

    def fliplr(self) -> Tensor:
        """Reverse the order of columns, that is along dimension 1, in a copy; see `flip`."""

    def flipud(self) -> Tensor:
        """Reverse the order of rows, that is along dimension 0, in a copy; see `flip`."""

    def float_power(self, exponent: Any) -> Tensor:
        """Raise `input` to the power `exponent` in double precision."""

    def floor(self) -> Tensor:
        """The largest integer that is not larger; integers stay as they are."""

    def floor_divide(self, other: Any) -> Tensor:
        """The largest integer that is not larger than the quotient: Python's ``//``."""

    def fmax(self, other: Any) -> Tensor:
        """The larger of the two; the other one where one is nan."""

    def fmin(self, other: Any) -> Tensor:
        """The smaller of the two; the other one where one is nan."""

    def fmod(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `input`: that of C."""

    def frac(self) -> Tensor:
        """Fraction of a number, of its sign."""

    def frexp(self) -> Frexp:
        """Split numbers into a mantissa from 0.5 to 1 and a power of 2."""

    def gather(
        self, dim: builtins.int = ..., index: Any = ..., *, sparse_grad: builtins.bool = False, axis: builtins.int = ...
    ) -> Tensor:
        """Elements that indices choose along a dimension; the result has the shape of the indices."""

    def gcd(self, other: Any) -> Tensor:
        """Greatest common divisor, :math:`z = \\gcd(x, y) \\ge 0`."""

    def ge(self, other: Any) -> Tensor:
        """Whether `input` is at least `other`, :math:`z = [x \\ge y]`."""

    def geometric_(self, p: builtins.float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the numbers of trials up to the first success, which has the probability `p`, in place."""

    def ger(self, vec2: Any) -> Tensor:
        """Products of each element of one vector with each of another."""

    def get_device(self) -> builtins.int:
        """Return the number of the GPU: -1, as there is none."""

    def greater(self, other: Any) -> Tensor:
        """Whether `input` is greater than `other`, :math:`z = [x > y]`."""

    def greater_equal(self, other: Any) -> Tensor:
        """Whether `input` is at least `other`, :math:`z = [x \\ge y]`."""

    def gt(self, other: Any) -> Tensor:
        """Whether `input` is greater than `other`, :math:`z = [x > y]`."""

    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """Replace elements from ``-lambd`` to `lambd` by 0."""

    def heaviside(self, values: Any) -> Tensor:
        """Step function: 0 where `input` is negative, 1 where it is positive, `values` where it is 0."""

    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Tensor:
        """Count the elements in bins of equal width."""

    def histogram(
        self,
        bins: Any = 100,
        *,
        range: Sequence[builtins.float] | None = None,
        weight: Any = None,
        density: builtins.bool = False,
    ) -> Histogram:
        """Count the elements between edges, or sum up their weights."""

    def hsplit(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int] = ...,
        *,
        sections: builtins.int | Sequence[builtins.int] = ...,
        indices: builtins.int | Sequence[builtins.int] = ...,
    ) -> tuple[Tensor, ...]:
        """Split along dimension 1, the only one of a vector; see `tensor_split`. A number of parts must divide the length."""

    def hypot(self, other: Any) -> Tensor:
        """Length :math:`\\sqrt{x^2 + y^2}`."""

    def i0(self) -> Tensor:
        """Modified Bessel function of the first kind of order 0."""

    def igamma(self, other: Any) -> Tensor:
        """Regularised lower incomplete gamma function :math:`P(a, x)`, of the parameter `input` and the limit `other`."""

    def igammac(self, other: Any) -> Tensor:
        """Regularised upper incomplete gamma function :math:`Q(a, x)`, of the parameter `input` and the limit `other`."""

    def index_add(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        source: Any = ...,
        *,
        alpha: builtins.float = 1,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Copy to which slices of `source` are added at indices along a dimension; several may go to one place."""

    def index_copy(
        self, dim: builtins.int = ..., index: Any = ..., source: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Copy in which slices of `source` replace those at indices along a dimension."""

    def index_fill(
        self, dim: builtins.int = ..., index: Any = ..., value: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Copy in which a number replaces the slices at indices along a dimension."""

    def index_put(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Copy with values written at indices: what ``x[indices] = values`` does to a copy."""

    def index_reduce(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        source: Any = ...,
        reduce: str = ...,
        *,
        include_self: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Copy in which slices of `source` are combined with those at indices along a dimension."""

    def index_select(self, dim: builtins.int = ..., index: Any = ..., *, axis: builtins.int = ...) -> Tensor:
        """Slices at indices along a dimension."""

    def inner(self, other: Any) -> Tensor:
        """Products of each vector along the last dimension of one tensor with each of another; see `matmul`."""

    def inverse(self) -> Tensor:
        """Inverses of square matrices; see `tapegrad.linalg.inv`."""

    def is_conj(self) -> builtins.bool:
        """Return False: conjugates and negatives are computed at once."""

    def is_contiguous(self) -> builtins.bool:
        """Whether the elements lie in memory in their order."""

    def is_inference(self) -> builtins.bool:
        """Whether a tensor was computed in `inference_mode`."""

    def is_neg(self) -> builtins.bool:
        """Return False: conjugates and negatives are computed at once."""

    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not zero."""

    def is_pinned(self) -> builtins.bool:
        """Return False: there is no other device that memory could be pinned for."""

    def is_same_size(self, other: Any) -> builtins.bool:
        """Whether two tensors have the same shape."""

    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        """Whether two tensors show the same elements of the same memory, in the same shape."""

    def is_shared(self) -> builtins.bool:
        """Return False: other processes do not see the memory."""

    def is_signed(self) -> builtins.bool:
        """Whether the dtype has negative numbers."""

    def isclose(
        self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False
    ) -> Tensor:
        """Whether elements are equal within ``atol + rtol * abs(other)``."""

    def isfinite(self) -> Tensor:
        """Whether an element is finite, :math:`y = [\\left|x\\right| < \\infty]`."""

    def isinf(self) -> Tensor:
        """Whether an element is infinite, :math:`y = [\\left|x\\right| = \\infty]`."""

    def isnan(self) -> Tensor:
        """Whether an element is nan, :math:`y = [x \\ne x]`."""

    def isneginf(self) -> Tensor:
        """Whether an element is minus infinity, :math:`y = [x = -\\infty]`."""

    def isposinf(self) -> Tensor:
        """Whether an element is plus infinity, :math:`y = [x = \\infty]`."""

    def isreal(self) -> Tensor:
        """Whether an element has no imaginary part, :math:`y = [\\operatorname{Im}(x) = 0]`."""

    def istft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Any = None,
        center: builtins.bool = True,
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        length: builtins.int | None = None,
        return_complex: builtins.bool = False,
    ) -> Tensor:
        """Signal whose frames have such Fourier transforms, in the sense of least squares: the inverse of `stft`."""

    def kron(self, other: Any) -> Tensor:
        """Kronecker product: :math:`Z_{ij} = X_{\\lfloor i/p \\rfloor, \\lfloor j/q \\rfloor} Y_{i \\bmod p, j \\bmod q}`."""

    def kthvalue(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int = ...,
        keepdims: builtins.bool = ...,
    ) -> ValuesIndices:
        """Choose the `k`-th smallest elements along a dimension, and their indices; nan counts as the largest."""

    def lcm(self, other: Any) -> Tensor:
        """Least common multiple, :math:`z = |x y| / \\gcd(x, y)`."""

    def ldexp(self, other: Any) -> Tensor:
        """Multiply `input` by 2 to the power `other`."""

    def le(self, other: Any) -> Tensor:
        """Whether `input` is at most `other`, :math:`z = [x \\le y]`."""

    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Linear interpolation, ``input + weight * (end - input)``."""

    def less(self, other: Any) -> Tensor:
        """Whether `input` is less than `other`, :math:`z = [x < y]`."""

    def less_equal(self, other: Any) -> Tensor:
        """Whether `input` is at most `other`, :math:`z = [x \\le y]`."""

    def lgamma(self) -> Tensor:
        """Logarithm of the absolute value of the gamma function."""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log10(self) -> Tensor:
        """Logarithm to base 10."""

    def log1p(self) -> Tensor:
        """Natural logarithm of 1 + x, precise near 0."""

    def log2(self) -> Tensor:
        """Logarithm to base 2."""

    def log_normal_(
        self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers whose logarithms are normally distributed, in place."""

    def log_softmax(
        self, dim: builtins.int = ..., dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

    def logaddexp(self, other: Any) -> Tensor:
        """Logarithm of the sum of exponentials."""

    def logaddexp2(self, other: Any) -> Tensor:
        """Logarithm to base 2 of the sum of powers of 2."""

    def logcumsumexp(self, dim: builtins.int = ..., *, axis: builtins.int = ...) -> Tensor:
        """Logarithms of the cumulative sums of exponentials along a dimension, computed so that nothing overflows."""

    def logdet(self) -> Tensor:
        """Logarithms of determinants; nan where these are negative numbers."""

    def logical_and(self, other: Any) -> Tensor:
        """Whether both are nonzero, :math:`z = [x \\ne 0] [y \\ne 0]`."""

    def logical_not(self) -> Tensor:
        """Whether an element is zero, :math:`y = [x = 0]`."""

    def logical_or(self, other: Any) -> Tensor:
        """Whether one is nonzero, :math:`z = 1 - [x = 0] [y = 0]`."""

    def logical_xor(self, other: Any) -> Tensor:
        """Whether just one of the two is nonzero, :math:`z = [[x = 0] \\ne [y = 0]]`."""

    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

    def logsumexp(
        self,
        dim: builtins.int | tuple[builtins.int, ...] = ...,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Logarithm of the sum of exponentials, computed so that nothing overflows."""

    def lt(self, other: Any) -> Tensor:
        """Whether `input` is less than `other`, :math:`z = [x < y]`."""

    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, input: Any = ...) -> Any:
        """LU factors with exchanges of rows, in one matrix; see `tapegrad.linalg.lu_factor`."""

    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Tensor:
        """Solutions of linear systems with the factors by `tapegrad.linalg.lu_factor`; see `tapegrad.linalg.lu_solve`."""

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        """Copy in which a number stands where a mask is true."""

    def masked_scatter(self, mask: Any, source: Any) -> Tensor:
        """Copy in which elements of a tensor, in their order, stand where a mask is true."""

    def masked_select(self, mask: Any) -> Tensor:
        """Vector of the elements where a mask is true."""

    def matmul(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def matrix_exp(self, *, input: Any = ...) -> Tensor:
        """Exponentials of square matrices."""

    def matrix_power(self, n: builtins.int, *, input: Any = ...) -> Tensor:
        """Powers of square matrices, by products of squares."""

    def max(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Any = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """Return the largest element; along a dimension, with its index; of two tensors, element by element."""

    def maximum(self, other: Any) -> Tensor:
        """The larger of the two; nan if one is."""

    def mean(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Mean of the elements; nan if there is none."""

    def median(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """Median of the elements; along a dimension, with its index. Of an even number, the lower middle one."""

    def min(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Any = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """Return the smallest element; along a dimension, with its index; of two tensors, element by element."""

    def minimum(self, other: Any) -> Tensor:
        """The smaller of the two; nan if one is."""

    def mm(self, mat2: Any) -> Tensor:
        """Product of two matrices; see `matmul`."""

    def mode(
        self,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int = ...,
        keepdims: builtins.bool = ...,
    ) -> ValuesIndices:
        """Choose the most frequent elements along a dimension, and the last index of each; of several, the smallest."""

    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move dimensions to other positions, as a view; the others keep their order."""

    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move dimensions to other positions, as a view; the others keep their order."""

    def msort(self) -> Tensor:
        """Sort along the first dimension."""

    def mul(self, other: Any) -> Tensor:
        """Multiply."""

    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Draw indices with probabilities that are proportional to the elements of a row."""

    def multiply(self, other: Any) -> Tensor:
        """Multiply."""

    def mv(self, vec: Any) -> Tensor:
        """Product of a matrix and a vector; see `matmul`."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Logarithm of the multivariate gamma function."""

    def nan_to_num(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Replace nan and infinities by numbers."""

    def nanmean(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Mean of the elements that are not nan; nan if all are."""

    def nanmedian(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """Median of the elements that are not nan; along a dimension, with its index."""

    def nanquantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Quantiles of the elements that are not nan; nan if all are."""

    def nansum(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Sum of the elements that are not nan."""

    def narrow(
        self, dim: builtins.int = ..., start: Any = ..., length: builtins.int = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Return some neighbouring indices of a dimension, as a view."""

    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""

    def ne(self, other: Any) -> Tensor:
        """Whether elements differ, :math:`z = [x \\ne y]`."""

    def neg(self) -> Tensor:
        """Negate."""

    def negative(self) -> Tensor:
        """Negate."""

    def nelement(self) -> builtins.int:
        """Return the number of elements."""

    def new_empty(
        self,
        *shape: Any,
        size: Any = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor as `empty` does, by default of this tensor's dtype."""

    def new_full(
        self,
        size: Any,
        fill_value: Any,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor as `full` does, by default of this tensor's dtype."""

    def new_ones(
        self,
        *shape: Any,
        size: Any = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor as `ones` does, by default of this tensor's dtype."""

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor with a copy of the data, by default of this tensor's dtype."""

    def new_zeros(
        self,
        *shape: Any,
        size: Any = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor as `zeros` does, by default of this tensor's dtype."""

    def nextafter(self, other: Any) -> Tensor:
        """The floating-point number next to `input` in the direction of `other`."""

    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """Find the elements that are not zero."""

    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
        """Find a given number of elements that are not zero: a row of indices for each; see `nonzero`."""

    def norm(
        self,
        p: builtins.float | str | None = "fro",
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        dtype: DTypeLike | None = None,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Norms of vectors; see `tapegrad.linalg.vector_norm`."""

    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with normally distributed numbers, in place."""

    def not_equal(self, other: Any) -> Tensor:
        """Whether elements differ, :math:`z = [x \\ne y]`."""

    def orgqr(self, tau: Any = ..., *, input: Any = ..., input2: Any = ...) -> Tensor:
        """First columns of a product of Householder reflections :math:`I - \\tau_k v_k v_k^H`."""

    def ormqr(
        self,
        tau: Any = ...,
        other: Any = ...,
        left: builtins.bool = True,
        transpose: builtins.bool = False,
        *,
        input2: Any = ...,
    ) -> Tensor:
        """Product of a matrix and a product of Householder reflections; see `tapegrad.linalg.householder_product`."""

    def outer(self, vec2: Any) -> Tensor:
        """Products of each element of one vector with each of another."""

    def permute(
        self,
        dims: builtins.int | Sequence[builtins.int] = ...,
        *rest: builtins.int,
        axis: builtins.int | Sequence[builtins.int] = ...,
    ) -> Tensor:
        """Put the dimensions into another order, as a view."""

    def pin_memory(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the tensor itself: there is no other device that its memory could be pinned for."""

    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """Pseudoinverses of matrices; see `tapegrad.linalg.pinv`."""

    def polygamma(self, n: Any) -> Tensor: ...
    def positive(self) -> Tensor:
        """Return the tensor itself: what ``+x`` computes."""

    def pow(self, exponent: Any) -> Tensor:
        """Raise `input` to the power `exponent`."""

    def prelu(self, weight: Any) -> Tensor:
        """Return `input` where it is positive, and `weight` times `input` elsewhere."""

    def prod(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Product of the elements; 1 if there is none."""

    def put(self, index: Any, source: Any, accumulate: builtins.bool = False) -> Tensor:
        """Copy with elements written at indices of the flat tensor."""

    def qr(self, some: builtins.bool = True) -> QR:
        """QR decomposition; see `tapegrad.linalg.qr`."""

    def quantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Quantiles of the elements, interpolated between neighbours in order; nan if an element is."""

    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""

    def random_(self, *bounds: builtins.int, generator: Generator | None = None) -> Tensor:
        """Fill with integers up to and without a bound, or from one to another, in place."""

    def ravel(self, order: str = "C") -> Tensor:
        """Join all dimensions into one; a view if that is possible."""

    def reciprocal(self) -> Tensor:
        """Elementwise reciprocal, :math:`1/x`."""

    def relu(self) -> Tensor:
        """The larger of `input` and 0."""

    def remainder(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `other`: Python's ``%``."""

    def renorm(
        self, p: builtins.float, dim: builtins.int = ..., maxnorm: builtins.float = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Scale parts of a tensor, one for each index of a dimension, so that their norms are not above a bound."""

    def repeat(self, repeats: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Repeat the tensor along each dimension, in a copy. NumPy's function of this name is `repeat_interleave`."""

    def repeat_interleave(
        self,
        repeats: Any = None,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Repeat each element along a dimension, in a copy."""

    def reshape(self, shape: builtins.int | Sequence[builtins.int], *rest: builtins.int, order: str = "C") -> Tensor:
        """Give the elements, in their order, another shape; a view if that is possible, else a copy."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Give the elements the shape of another tensor; see `reshape`."""

    def resolve_conj(self) -> Tensor:
        """Return the tensor itself: conjugates are computed at once here."""

    def resolve_neg(self) -> Tensor:
        """Return the tensor itself: conjugates are computed at once here."""

    def roll(
        self,
        shifts: builtins.int | Sequence[builtins.int],
        dims: builtins.int | Sequence[builtins.int] | None = None,
        *,
        axis: builtins.int | Sequence[builtins.int] | None = ...,
    ) -> Tensor:
        """Move the elements along dimensions; those that leave at the end come in at the beginning. A copy."""

    def rot90(
        self, k: builtins.int = 1, dims: Sequence[builtins.int] = ..., *, axis: Sequence[builtins.int] = ...
    ) -> Tensor:
        """Rotate the matrices that two dimensions form by 90 degrees, `k` times, from the first to the second. A copy."""

    def round(self, decimals: builtins.int | None = None) -> Tensor:
        """Round to the nearest integer, halves to the even one; integers stay as they are."""

    def rsqrt(self) -> Tensor:
        """Reciprocal of the square root."""

    def scatter(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        src: Any = None,
        value: Any = None,
        *,
        reduce: str | None = None,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Copy with elements of `src` written where indices say along a dimension."""

    def scatter_add(
        self, dim: builtins.int = ..., index: Any = ..., src: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Copy to which elements of `src` are added where indices say along a dimension; several may go to one place."""

    def scatter_reduce(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        src: Any = ...,
        reduce: str = ...,
        *,
        include_self: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Copy in which elements of `src` are combined with those where indices say along a dimension."""

    def select(self, dim: builtins.int = ..., index: Any = ..., *, axis: builtins.int = ...) -> Tensor:
        """Return one index of a dimension, as a view without that dimension."""

    def select_scatter(
        self, src: Any, dim: builtins.int = ..., index: builtins.int = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Copy with one index of a dimension replaced; see `select`."""

    def set_(self, source: Tensor) -> Tensor:
        """Let the tensor show the memory of another one, with its shape, as ``x.data = source`` does."""

    def sgn(self) -> Tensor:
        """Sign; :math:`x/|x|` for complex numbers, 0 at 0."""

    def share_memory_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the tensor itself: threads share memory."""

    def sigmoid(self) -> Tensor:
        """Logistic function :math:`1/(1 + e^{-x})`."""

    def sign(self) -> Tensor:
        """Sign of a real number; 0 at 0."""

    def signbit(self) -> Tensor:
        """Whether the sign bit is set, :math:`y = [\\operatorname{copysign}(1, x) < 0]`."""

    def sin(self) -> Tensor:
        """Sine of an angle in radians."""

    def sinc(self) -> Tensor:
        """Normalised sine :math:`\\sin(\\pi x)/(\\pi x)`, 1 at 0."""

    def sinh(self) -> Tensor:
        """Hyperbolic sine."""

    def slice_scatter(
        self,
        src: Any,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Copy with a slice of a dimension replaced."""

    def slogdet(self, *, input: Any = ...) -> LinalgSlogdet:
        """Signs of determinants, and logarithms of their absolute values."""

    def softmax(self, dim: builtins.int = ..., dtype: DTypeLike | None = None, *, axis: builtins.int = ...) -> Tensor:
        """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

    def softplus(self) -> Tensor:
        """Smooth relu :math:`\\log(1 + e^x)`."""

    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
        *,
        axis: builtins.int = ...,
    ) -> ValuesIndices:
        """Sort the elements, of a real dtype, along a dimension; nan counts as the largest."""

    def split(
        self,
        split_size: builtins.int | Sequence[builtins.int],
        dim: builtins.int = 0,
        *,
        axis: builtins.int | None = None,
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into views; see `tapegrad.split`."""

    def split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into views of these lengths; see `split`."""

    def sqrt(self) -> Tensor:
        """Square root."""

    def square(self) -> Tensor:
        """Elementwise square."""

    def squeeze(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        *,
        axis: builtins.int | Sequence[builtins.int] | None = ...,
    ) -> Tensor:
        """Drop dimensions of length 1, as a view; see `reshape`."""

    def squeeze_(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        *,
        axis: builtins.int | Sequence[builtins.int] | None = ...,
    ) -> Tensor:
        """Give the tensor the shape of what `squeeze` returns; recorded where a gradient is wanted."""

    def std(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        ddof: builtins.float | None = ...,
    ) -> Tensor:
        """Take the standard deviation of the elements: the square root of the variance."""

    def stft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Any = None,
        center: builtins.bool = True,
        pad_mode: str = "reflect",
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        return_complex: builtins.bool | None = None,
        align_to_window: builtins.bool | None = None,
    ) -> Tensor:
        """Fourier transforms of the frames of a signal: which frequencies it has, and when."""

    def storage(self) -> TypedStorage:
        """Return the elements of the memory that the tensor looks at; PyTorch has deprecated it."""

    def storage_offset(self) -> builtins.int:
        """Return how many elements of the memory stand before the first one: 0 if the tensor is no view."""

    def stride(self, dim: builtins.int | None = None, *, axis: builtins.int | None = ...) -> Any:
        """Return the strides in elements, or that of one dimension."""

    def sub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract `other`, times a factor."""

    def subtract(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract `other`, times a factor."""

    def sum(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Sum of the elements."""

    def sum_to_size(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Sum over what broadcasting would stretch: :math:`y_j = \\sum_i X_{ij}`, :math:`\\bar X_{ij} = \\bar y_j`."""

    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> SVD:
        """Singular values and vectors; see `tapegrad.linalg.svd`."""

    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Swap two dimensions, as a view; see `transpose`."""

    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Give the tensor the shape of what `swapaxes` returns; recorded where a gradient is wanted."""

    def swapdims(self, dim0: Any = None, dim1: builtins.int | None = None, *rest: builtins.int) -> Tensor:
        """Swap two dimensions, as a view; or, as of NumPy's arrays, reverse all, or put all into an order."""

    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Give the tensor the shape of what `swapdims` returns; recorded where a gradient is wanted."""

    def t(self) -> Tensor:
        """Transpose a matrix, as a view; fewer dimensions stay as they are."""

    def t_(self) -> Tensor:
        """Give the tensor the shape of what `t` returns; recorded where a gradient is wanted."""

    def take(self, index: Any) -> Tensor:
        """Elements of the flat tensor at indices."""

    def take_along_dim(
        self, indices: Any, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """Elements that indices choose along a dimension, or in the flat tensor: as `gather`, with broadcasting."""

    def tan(self) -> Tensor:
        """Tangent of an angle in radians."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def tensor_split(
        self,
        indices_or_sections: Any = ...,
        dim: builtins.int = 0,
        *,
        sections: Any = ...,
        indices: Any = ...,
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into views, at indices or into nearly equal parts."""

    def tile(self, dims: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Repeat the tensor along dimensions, in a copy."""

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: DeviceLike = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Return the tensor converted to another dtype; itself if it has that dtype."""

    def topk(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
        *,
        axis: builtins.int = ...,
    ) -> ValuesIndices:
        """Choose the `k` largest elements along a dimension, and their indices, in order; nan counts as the largest."""

    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix."""

    def transpose(self, dim0: Any = None, dim1: builtins.int | None = None, *rest: builtins.int) -> Tensor:
        """Swap two dimensions, as a view; or, as of NumPy's arrays, reverse all, or put all into an order."""

    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Give the tensor the shape of what `transpose` returns; recorded where a gradient is wanted."""

    def triangular_solve(
        self,
        A: Any,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> TriangularSolve:
        """Solutions of systems with triangular matrices; see `tapegrad.linalg.solve_triangular`."""

    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Lower triangles of matrices: zero above a diagonal."""

    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Upper triangles of matrices: zero below a diagonal; see `tril`."""

    def true_divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def trunc(self) -> Tensor:
        """The number without its fraction; integers stay as they are."""

    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
        """Return PyTorch's name of the tensor's type; or the tensor converted to a dtype, as `to` does."""

    def type_as(self, other: Tensor) -> Tensor:
        """Return the tensor converted to the dtype of another."""

    def unbind(self, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """Return each index of a dimension, as views without that dimension."""

    def unflatten(
        self, dim: builtins.int = ..., sizes: Sequence[builtins.int] = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Give one dimension another shape, as a view."""

    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Windows of neighbours along a dimension, as a view: its elements stand along a new last dimension."""

    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers drawn uniformly from a bound to another, in place."""

    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = ...,
    ) -> Any:
        """Different elements, or slices along a dimension, in order."""

    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = ...,
    ) -> Any:
        """Elements, or slices along a dimension, that differ from the one before."""

    def unsafe_chunk(
        self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into a number of views; see `chunk`. Writes to them are recorded."""

    def unsafe_split(
        self, split_size: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into views of a length; see `split`. Writes to them are recorded."""

    def unsafe_split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Split along a dimension into views of these lengths; see `split_with_sizes`. Writes to them are recorded."""

    def unsqueeze(self, dim: builtins.int = ..., *, axis: builtins.int = ...) -> Tensor:
        """Insert a dimension of length 1, as a view; see `reshape`."""

    def unsqueeze_(self, dim: builtins.int = ..., *, axis: builtins.int = ...) -> Tensor:
        """Give the tensor the shape of what `unsqueeze` returns; recorded where a gradient is wanted."""

    def untyped_storage(self) -> UntypedStorage:
        """Return the bytes of the memory that the tensor, and all that share its memory, look at."""

    def var(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        ddof: builtins.float | None = ...,
    ) -> Tensor:
        """Variance of the elements."""

    def vdot(self, other: Any) -> Tensor:
        """Product of two vectors, of which the first is conjugated."""

    def view(self, size: Any, *rest: builtins.int) -> Tensor:
        """Give the elements another shape without copying them."""

    def view_as(self, other: Tensor) -> Tensor:
        """Give the elements the shape of another tensor without copying them; see `view`."""

    def vsplit(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int] = ...,
        *,
        sections: builtins.int | Sequence[builtins.int] = ...,
        indices: builtins.int | Sequence[builtins.int] = ...,
    ) -> tuple[Tensor, ...]:
        """Split matrices along dimension 0; see `tensor_split`. A number of parts must divide the length."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """Choose elements of the tensor where the condition holds, of `other` elsewhere."""

    def xlogy(self, other: Any) -> Tensor:
        """Product :math:`x \\log y`, which is 0 where `input` is 0 (unless `other` is nan)."""

    def abs_(self) -> Tensor:
        """Compute `abs` in place; recorded where a gradient is wanted."""

    def absolute_(self) -> Tensor:
        """Compute `absolute` in place; recorded where a gradient is wanted."""

    def acos_(self) -> Tensor:
        """Compute `acos` in place; recorded where a gradient is wanted."""

    def acosh_(self) -> Tensor:
        """Compute `acosh` in place; recorded where a gradient is wanted."""

    def addbmm_(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Compute `addbmm` in place; recorded where a gradient is wanted."""

    def addcdiv_(
        self, tensor1: Any = ..., tensor2: Any = ..., *, value: Any = 1, tensor: Any = ..., other: Any = ...
    ) -> Tensor:
        """Compute `addcdiv` in place; recorded where a gradient is wanted."""

    def addcmul_(
        self, tensor1: Any = ..., tensor2: Any = ..., *, value: Any = 1, tensor: Any = ..., other: Any = ...
    ) -> Tensor:
        """Compute `addcmul` in place; recorded where a gradient is wanted."""

    def addmm_(self, mat1: Any, mat2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Compute `addmm` in place; recorded where a gradient is wanted."""

    def addmv_(self, mat: Any, vec: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Compute `addmv` in place; recorded where a gradient is wanted."""

    def addr_(self, vec1: Any, vec2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Compute `addr` in place; recorded where a gradient is wanted."""

    def arccos_(self) -> Tensor:
        """Compute `arccos` in place; recorded where a gradient is wanted."""

    def arccosh_(self) -> Tensor:
        """Compute `arccosh` in place; recorded where a gradient is wanted."""

    def arcsin_(self) -> Tensor:
        """Compute `arcsin` in place; recorded where a gradient is wanted."""

    def arcsinh_(self) -> Tensor:
        """Compute `arcsinh` in place; recorded where a gradient is wanted."""

    def arctan_(self) -> Tensor:
        """Compute `arctan` in place; recorded where a gradient is wanted."""

    def arctan2_(self, other: Any) -> Tensor:
        """Compute `arctan2` in place; recorded where a gradient is wanted."""

    def arctanh_(self) -> Tensor:
        """Compute `arctanh` in place; recorded where a gradient is wanted."""

    def asin_(self) -> Tensor:
        """Compute `asin` in place; recorded where a gradient is wanted."""

    def asinh_(self) -> Tensor:
        """Compute `asinh` in place; recorded where a gradient is wanted."""

    def atan_(self) -> Tensor:
        """Compute `atan` in place; recorded where a gradient is wanted."""

    def atan2_(self, other: Any) -> Tensor:
        """Compute `atan2` in place; recorded where a gradient is wanted."""

    def atanh_(self) -> Tensor:
        """Compute `atanh` in place; recorded where a gradient is wanted."""

    def baddbmm_(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Compute `baddbmm` in place; recorded where a gradient is wanted."""

    def bitwise_and_(self, other: Any) -> Tensor:
        """Compute `bitwise_and` in place; recorded where a gradient is wanted."""

    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """Compute `bitwise_left_shift` in place; recorded where a gradient is wanted."""

    def bitwise_not_(self) -> Tensor:
        """Compute `bitwise_not` in place; recorded where a gradient is wanted."""

    def bitwise_or_(self, other: Any) -> Tensor:
        """Compute `bitwise_or` in place; recorded where a gradient is wanted."""

    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """Compute `bitwise_right_shift` in place; recorded where a gradient is wanted."""

    def bitwise_xor_(self, other: Any) -> Tensor:
        """Compute `bitwise_xor` in place; recorded where a gradient is wanted."""

    def ceil_(self) -> Tensor:
        """Compute `ceil` in place; recorded where a gradient is wanted."""

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """Compute `clamp` in place; recorded where a gradient is wanted."""

    def clamp_max_(self, max: Any) -> Tensor:
        """Compute `clamp_max` in place; recorded where a gradient is wanted."""

    def clamp_min_(self, min: Any) -> Tensor:
        """Compute `clamp_min` in place; recorded where a gradient is wanted."""

    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """Compute `clip` in place; recorded where a gradient is wanted."""

    def conj_physical_(self) -> Tensor:
        """Compute `conj_physical` in place; recorded where a gradient is wanted."""

    def copysign_(self, other: Any) -> Tensor:
        """Compute `copysign` in place; recorded where a gradient is wanted."""

    def cos_(self) -> Tensor:
        """Compute `cos` in place; recorded where a gradient is wanted."""

    def cosh_(self) -> Tensor:
        """Compute `cosh` in place; recorded where a gradient is wanted."""

    def cumprod_(self, dim: builtins.int = ..., *, dtype: DTypeLike | None = None, axis: builtins.int = ...) -> Tensor:
        """Compute `cumprod` in place; recorded where a gradient is wanted."""

    def cumsum_(self, dim: builtins.int = ..., *, dtype: DTypeLike | None = None, axis: builtins.int = ...) -> Tensor:
        """Compute `cumsum` in place; recorded where a gradient is wanted."""

    def deg2rad_(self) -> Tensor:
        """Compute `deg2rad` in place; recorded where a gradient is wanted."""

    def digamma_(self) -> Tensor:
        """Compute `digamma` in place; recorded where a gradient is wanted."""

    def eq_(self, other: Any) -> Tensor:
        """Compute `eq` in place; recorded where a gradient is wanted."""

    def erf_(self) -> Tensor:
        """Compute `erf` in place; recorded where a gradient is wanted."""

    def erfc_(self) -> Tensor:
        """Compute `erfc` in place; recorded where a gradient is wanted."""

    def erfinv_(self) -> Tensor:
        """Compute `erfinv` in place; recorded where a gradient is wanted."""

    def exp_(self) -> Tensor:
        """Compute `exp` in place; recorded where a gradient is wanted."""

    def exp2_(self) -> Tensor:
        """Compute `exp2` in place; recorded where a gradient is wanted."""

    def expm1_(self) -> Tensor:
        """Compute `expm1` in place; recorded where a gradient is wanted."""

    def fix_(self) -> Tensor:
        """Compute `fix` in place; recorded where a gradient is wanted."""

    def float_power_(self, exponent: Any) -> Tensor:
        """Compute `float_power` in place; recorded where a gradient is wanted."""

    def floor_(self) -> Tensor:
        """Compute `floor` in place; recorded where a gradient is wanted."""

    def floor_divide_(self, other: Any) -> Tensor:
        """Compute `floor_divide` in place; recorded where a gradient is wanted."""

    def fmod_(self, other: Any) -> Tensor:
        """Compute `fmod` in place; recorded where a gradient is wanted."""

    def frac_(self) -> Tensor:
        """Compute `frac` in place; recorded where a gradient is wanted."""

    def gcd_(self, other: Any) -> Tensor:
        """Compute `gcd` in place; recorded where a gradient is wanted."""

    def ge_(self, other: Any) -> Tensor:
        """Compute `ge` in place; recorded where a gradient is wanted."""

    def greater_(self, other: Any) -> Tensor:
        """Compute `greater` in place; recorded where a gradient is wanted."""

    def greater_equal_(self, other: Any) -> Tensor:
        """Compute `greater_equal` in place; recorded where a gradient is wanted."""

    def gt_(self, other: Any) -> Tensor:
        """Compute `gt` in place; recorded where a gradient is wanted."""

    def heaviside_(self, values: Any) -> Tensor:
        """Compute `heaviside` in place; recorded where a gradient is wanted."""

    def hypot_(self, other: Any) -> Tensor:
        """Compute `hypot` in place; recorded where a gradient is wanted."""

    def i0_(self) -> Tensor:
        """Compute `i0` in place; recorded where a gradient is wanted."""

    def igamma_(self, other: Any) -> Tensor:
        """Compute `igamma` in place; recorded where a gradient is wanted."""

    def igammac_(self, other: Any) -> Tensor:
        """Compute `igammac` in place; recorded where a gradient is wanted."""

    def index_add_(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        source: Any = ...,
        *,
        alpha: builtins.float = 1,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Compute `index_add` in place; recorded where a gradient is wanted."""

    def index_copy_(
        self, dim: builtins.int = ..., index: Any = ..., source: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Compute `index_copy` in place; recorded where a gradient is wanted."""

    def index_fill_(
        self, dim: builtins.int = ..., index: Any = ..., value: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Compute `index_fill` in place; recorded where a gradient is wanted."""

    def index_put_(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Compute `index_put` in place; recorded where a gradient is wanted."""

    def index_reduce_(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        source: Any = ...,
        reduce: str = ...,
        *,
        include_self: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Compute `index_reduce` in place; recorded where a gradient is wanted."""

    def lcm_(self, other: Any) -> Tensor:
        """Compute `lcm` in place; recorded where a gradient is wanted."""

    def ldexp_(self, other: Any) -> Tensor:
        """Compute `ldexp` in place; recorded where a gradient is wanted."""

    def le_(self, other: Any) -> Tensor:
        """Compute `le` in place; recorded where a gradient is wanted."""

    def lerp_(self, end: Any, weight: Any) -> Tensor:
        """Compute `lerp` in place; recorded where a gradient is wanted."""

    def less_(self, other: Any) -> Tensor:
        """Compute `less` in place; recorded where a gradient is wanted."""

    def less_equal_(self, other: Any) -> Tensor:
        """Compute `less_equal` in place; recorded where a gradient is wanted."""

    def lgamma_(self) -> Tensor:
        """Compute `lgamma` in place; recorded where a gradient is wanted."""

    def log_(self) -> Tensor:
        """Compute `log` in place; recorded where a gradient is wanted."""

    def log10_(self) -> Tensor:
        """Compute `log10` in place; recorded where a gradient is wanted."""

    def log1p_(self) -> Tensor:
        """Compute `log1p` in place; recorded where a gradient is wanted."""

    def log2_(self) -> Tensor:
        """Compute `log2` in place; recorded where a gradient is wanted."""

    def logical_and_(self, other: Any) -> Tensor:
        """Compute `logical_and` in place; recorded where a gradient is wanted."""

    def logical_not_(self) -> Tensor:
        """Compute `logical_not` in place; recorded where a gradient is wanted."""

    def logical_or_(self, other: Any) -> Tensor:
        """Compute `logical_or` in place; recorded where a gradient is wanted."""

    def logical_xor_(self, other: Any) -> Tensor:
        """Compute `logical_xor` in place; recorded where a gradient is wanted."""

    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """Compute `logit` in place; recorded where a gradient is wanted."""

    def lt_(self, other: Any) -> Tensor:
        """Compute `lt` in place; recorded where a gradient is wanted."""

    def masked_fill_(self, mask: Any, value: Any) -> Tensor:
        """Compute `masked_fill` in place; recorded where a gradient is wanted."""

    def masked_scatter_(self, mask: Any, source: Any) -> Tensor:
        """Compute `masked_scatter` in place; recorded where a gradient is wanted."""

    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """Compute `mvlgamma` in place; recorded where a gradient is wanted."""

    def nan_to_num_(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Compute `nan_to_num` in place; recorded where a gradient is wanted."""

    def ne_(self, other: Any) -> Tensor:
        """Compute `ne` in place; recorded where a gradient is wanted."""

    def neg_(self) -> Tensor:
        """Compute `neg` in place; recorded where a gradient is wanted."""

    def negative_(self) -> Tensor:
        """Compute `negative` in place; recorded where a gradient is wanted."""

    def nextafter_(self, other: Any) -> Tensor:
        """Compute `nextafter` in place; recorded where a gradient is wanted."""

    def not_equal_(self, other: Any) -> Tensor:
        """Compute `not_equal` in place; recorded where a gradient is wanted."""

    def polygamma_(self, n: Any) -> Tensor:
        """Compute `polygamma` in place; recorded where a gradient is wanted."""

    def pow_(self, exponent: Any) -> Tensor:
        """Compute `pow` in place; recorded where a gradient is wanted."""

    def put_(self, index: Any, source: Any, accumulate: builtins.bool = False) -> Tensor:
        """Compute `put` in place; recorded where a gradient is wanted."""

    def rad2deg_(self) -> Tensor:
        """Compute `rad2deg` in place; recorded where a gradient is wanted."""

    def reciprocal_(self) -> Tensor:
        """Compute `reciprocal` in place; recorded where a gradient is wanted."""

    def relu_(self) -> Tensor:
        """Compute `relu` in place; recorded where a gradient is wanted."""

    def remainder_(self, other: Any) -> Tensor:
        """Compute `remainder` in place; recorded where a gradient is wanted."""

    def renorm_(
        self, p: builtins.float, dim: builtins.int = ..., maxnorm: builtins.float = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Compute `renorm` in place; recorded where a gradient is wanted."""

    def round_(self, decimals: builtins.int | None = None) -> Tensor:
        """Compute `round` in place; recorded where a gradient is wanted."""

    def rsqrt_(self) -> Tensor:
        """Compute `rsqrt` in place; recorded where a gradient is wanted."""

    def scatter_(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        src: Any = None,
        value: Any = None,
        *,
        reduce: str | None = None,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Compute `scatter` in place; recorded where a gradient is wanted."""

    def scatter_add_(
        self, dim: builtins.int = ..., index: Any = ..., src: Any = ..., *, axis: builtins.int = ...
    ) -> Tensor:
        """Compute `scatter_add` in place; recorded where a gradient is wanted."""

    def scatter_reduce_(
        self,
        dim: builtins.int = ...,
        index: Any = ...,
        src: Any = ...,
        reduce: str = ...,
        *,
        include_self: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Compute `scatter_reduce` in place; recorded where a gradient is wanted."""

    def sgn_(self) -> Tensor:
        """Compute `sgn` in place; recorded where a gradient is wanted."""

    def sigmoid_(self) -> Tensor:
        """Compute `sigmoid` in place; recorded where a gradient is wanted."""

    def sign_(self) -> Tensor:
        """Compute `sign` in place; recorded where a gradient is wanted."""

    def sin_(self) -> Tensor:
        """Compute `sin` in place; recorded where a gradient is wanted."""

    def sinc_(self) -> Tensor:
        """Compute `sinc` in place; recorded where a gradient is wanted."""

    def sinh_(self) -> Tensor:
        """Compute `sinh` in place; recorded where a gradient is wanted."""

    def sqrt_(self) -> Tensor:
        """Compute `sqrt` in place; recorded where a gradient is wanted."""

    def square_(self) -> Tensor:
        """Compute `square` in place; recorded where a gradient is wanted."""

    def tan_(self) -> Tensor:
        """Compute `tan` in place; recorded where a gradient is wanted."""

    def tanh_(self) -> Tensor:
        """Compute `tanh` in place; recorded where a gradient is wanted."""

    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """Compute `tril` in place; recorded where a gradient is wanted."""

    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """Compute `triu` in place; recorded where a gradient is wanted."""

    def trunc_(self) -> Tensor:
        """Compute `trunc` in place; recorded where a gradient is wanted."""

    def xlogy_(self, other: Any) -> Tensor:
        """Compute `xlogy` in place; recorded where a gradient is wanted."""

    def __init__(self, *data: Any) -> None:
        """Make ``Tensor(data)``, always of the default dtype. Only users call it: operations call ``Tensor.__new__``."""

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Set, in place, whether backward passes compute a gradient for this leaf."""

    def backward(
        self,
        gradient: Any = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the gradient of this tensor with respect to the leaves, and accumulate it in their `grad`."""

    def _renew(self) -> None:
        """Give a stale view a new history: it is a part of its base."""

    def float(self) -> Tensor:
        """Return the tensor converted to float32; itself if it has that dtype."""

    def double(self) -> Tensor:
        """Return the tensor converted to float64; itself if it has that dtype."""

    def cfloat(self) -> Tensor:
        """Return the tensor converted to complex64; itself if it has that dtype."""

    def cdouble(self) -> Tensor:
        """Return the tensor converted to complex128; itself if it has that dtype."""

    def long(self) -> Tensor:
        """Return the tensor converted to int64; itself if it has that dtype."""

    def int(self) -> Tensor:
        """Return the tensor converted to int32; itself if it has that dtype."""

    def short(self) -> Tensor:
        """Return the tensor converted to int16; itself if it has that dtype."""

    def char(self) -> Tensor:
        """Return the tensor converted to int8; itself if it has that dtype."""

    def byte(self) -> Tensor:
        """Return the tensor converted to uint8; itself if it has that dtype."""

    def bool(self) -> Tensor:
        """Return the tensor converted to bool; itself if it has that dtype."""

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute `add` in place, with `other` times `alpha`; recorded where a gradient is wanted."""

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute `sub` in place, with `other` times `alpha`; recorded where a gradient is wanted."""

    def subtract_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute `sub` in place, with `other` times `alpha`; recorded where a gradient is wanted."""

    def mul_(self, other: Any) -> Tensor:
        """Compute `mul` in place; recorded where a gradient is wanted."""

    def multiply_(self, other: Any) -> Tensor:
        """Compute `mul` in place; recorded where a gradient is wanted."""

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Compute `div` in place; recorded where a gradient is wanted."""

    def divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Compute `div` in place; recorded where a gradient is wanted."""

    def true_divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Compute `div` in place; recorded where a gradient is wanted."""

    def copy_(self, source: Any) -> Tensor:
        """Copy the elements of a tensor or array, broadcast to this one's shape; recorded where a gradient is wanted."""

    def fill_(self, value: Any) -> Tensor:
        """Set all elements to a number, in place; recorded where a gradient is wanted."""

    def zero_(self) -> Tensor:
        """Set all elements to zero, in place; recorded where a gradient is wanted."""

    def detach_(self) -> Tensor:
        """Make this result a leaf that no gradient is wanted for, in place."""

    @property
    def H(self) -> Tensor:
        """Conjugate of a matrix, transposed."""

    @property
    def T(self) -> Tensor:
        """Dimensions in reverse order, as a view; with a warning unless there are two, as in PyTorch."""

    @property
    def _base(self) -> Tensor | None:
        """Return the tensor of which a view shows a part; None if the tensor is no view."""

    @property
    def _version(self) -> builtins.int:
        """Return how often the memory was written to in place; views and `detach` share it."""

    @property
    def device(self) -> Any:
        """Return where the memory is: the CPU."""

    @property
    def imag(self) -> Tensor:
        """Imaginary part of complex numbers."""

    @property
    def is_cpu(self) -> builtins.bool:
        """Return True: all tensors are in the memory of the CPU."""

    @property
    def is_cuda(self) -> builtins.bool:
        """Return False: no tensor is in the memory of a GPU."""

    @property
    def is_meta(self) -> builtins.bool:
        """Return False: all tensors have elements."""

    @property
    def is_mkldnn(self) -> builtins.bool:
        """Return False: memory has NumPy's order."""

    @property
    def is_mps(self) -> builtins.bool:
        """Return False: no tensor is in the memory of a GPU."""

    @property
    def is_nested(self) -> builtins.bool:
        """Return False: all tensors are of one shape."""

    @property
    def is_quantized(self) -> builtins.bool:
        """Return False: there are no quantised tensors."""

    @property
    def is_sparse(self) -> builtins.bool:
        """Return False: all tensors are dense."""

    @property
    def is_sparse_csr(self) -> builtins.bool:
        """Return False: all tensors are dense."""

    @property
    def is_xpu(self) -> builtins.bool:
        """Return False: no tensor is in the memory of a GPU."""

    @property
    def itemsize(self) -> builtins.int:
        """Return the size of an element in bytes."""

    @property
    def layout(self) -> Any:
        """Return how elements are kept: all tensors are dense, which PyTorch calls strided."""

    @property
    def mH(self) -> Tensor:
        """Conjugates of matrices, transposed."""

    @property
    def mT(self) -> Tensor:
        """Matrices, transposed, as a view."""

    @property
    def nbytes(self) -> builtins.int:
        """Return the size of all elements in bytes."""

    @property
    def output_nr(self) -> builtins.int:
        """Return which result of its `grad_fn` the tensor is, counted from 0."""

    @property
    def real(self) -> Tensor:
        """Real part; of real numbers the tensor itself."""

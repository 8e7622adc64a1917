"""The operations of Tensor, as type checkers see them.

Written by `python -m tools.stubs`, from the public functions.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.ops.ordering import ValuesIndices
from tapegrad.ops.random import Generator
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

    def __pow__(self, other: Any) -> Tensor:
        """Raise `input` to the power `other`."""

    def __rpow__(self, other: Any) -> Tensor:
        """Raise `input` to the power `other`."""

    def __ipow__(self, other: Any) -> Any:
        """Compute ``**=`` in place; recorded where a gradient is wanted."""

    def __neg__(self) -> Tensor:
        """Negate."""

    def __pos__(self) -> Tensor:
        """Return the tensor itself: what ``+x`` computes."""

    def __abs__(self) -> Tensor:
        """Absolute value."""

    def __matmul__(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def __rmatmul__(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def __eq__(self, other: Any) -> Any:
        """Whether the two are equal, element by element."""

    def __ne__(self, other: Any) -> Any:
        """Whether the two differ, element by element."""

    def __lt__(self, other: Any) -> Any:
        """Whether `input` is less than `other`."""

    def __le__(self, other: Any) -> Any:
        """Whether `input` is at most `other`."""

    def __gt__(self, other: Any) -> Any:
        """Whether `input` is greater than `other`."""

    def __ge__(self, other: Any) -> Any:
        """Whether `input` is at least `other`."""

    def __and__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are."""

    def __rand__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are."""

    def __or__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one of the two is."""

    def __ror__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one of the two is."""

    def __xor__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where the two differ."""

    def __rxor__(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where the two differ."""

    def __invert__(self) -> Tensor:
        """Invert integers bit by bit, or truth values."""

    def __getitem__(self, key: Any) -> Tensor:
        """Index: what ``x[key]`` computes. A view for integers and slices, a copy for arrays and masks."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write at an index, as ``x[index] = value`` does; recorded where a gradient is wanted."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        """Call the function that a ufunc, or its reduction, stands for."""

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call what the table has for one of NumPy's functions."""

    def __init__(self, data: Any = ...) -> None:
        """Make ``Tensor(data)``, always of the default dtype. Only users call it: operations call ``Tensor.__new__``."""

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Switch on or off whether a gradient is wanted for this leaf, in place."""

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

    def mul(self, other: Any) -> Tensor:
        """Multiply."""

    def multiply(self, other: Any) -> Tensor:
        """Multiply."""

    def pow(self, other: Any) -> Tensor:
        """Raise `input` to the power `other`."""

    def neg(self) -> Tensor:
        """Negate."""

    def negative(self) -> Tensor:
        """Negate."""

    def abs(self) -> Tensor:
        """Absolute value."""

    def absolute(self) -> Tensor:
        """Absolute value."""

    def sign(self) -> Tensor:
        """Sign of a real number; 0 at 0."""

    def sgn(self) -> Tensor:
        """Sign; :math:`x/|x|` for complex numbers, 0 at 0."""

    def maximum(self, other: Any) -> Tensor:
        """The larger of the two; nan if one is."""

    def minimum(self, other: Any) -> Tensor:
        """The smaller of the two; nan if one is."""

    def relu(self) -> Tensor:
        """The larger of `input` and 0."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """Choose elements of the tensor where the condition holds, of `other` elsewhere."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit elements to the range from `min` to `max`."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit elements to the range from `min` to `max`."""

    def eq(self, other: Any) -> Tensor:
        """Whether the two are equal, element by element."""

    def ne(self, other: Any) -> Tensor:
        """Whether the two differ, element by element."""

    def not_equal(self, other: Any) -> Tensor:
        """Whether the two differ, element by element."""

    def lt(self, other: Any) -> Tensor:
        """Whether `input` is less than `other`."""

    def less(self, other: Any) -> Tensor:
        """Whether `input` is less than `other`."""

    def le(self, other: Any) -> Tensor:
        """Whether `input` is at most `other`."""

    def less_equal(self, other: Any) -> Tensor:
        """Whether `input` is at most `other`."""

    def gt(self, other: Any) -> Tensor:
        """Whether `input` is greater than `other`."""

    def greater(self, other: Any) -> Tensor:
        """Whether `input` is greater than `other`."""

    def ge(self, other: Any) -> Tensor:
        """Whether `input` is at least `other`."""

    def greater_equal(self, other: Any) -> Tensor:
        """Whether `input` is at least `other`."""

    def logical_and(self, other: Any) -> Tensor:
        """Whether both are nonzero."""

    def logical_or(self, other: Any) -> Tensor:
        """Whether one is nonzero."""

    def logical_not(self) -> Tensor:
        """Whether an element is zero."""

    def to(self, dtype: Any) -> Tensor:
        """Return the tensor converted to another dtype; itself if it has that dtype."""

    def type_as(self, other: Tensor) -> Tensor:
        """Return the tensor converted to the dtype of another."""

    def conj(self) -> Tensor:
        """Complex conjugate; of real numbers the tensor itself."""

    def sum(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Sum of the elements."""

    def mean(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Mean of the elements; nan if there is none."""

    def any(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Whether an element is nonzero; False if there is none. Of dtype bool, or uint8 for uint8."""

    def all(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Whether all elements are nonzero; True if there is none. Of dtype bool, or uint8 for uint8."""

    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
    ) -> ValuesIndices:
        """Sort the elements, of a real dtype, along a dimension; nan counts as the largest."""

    def amax(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Largest element; nan if there is one."""

    def amin(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Smallest element; nan if there is one."""

    def argmax(
        self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Index of the first largest element, or of the first nan, in the flat tensor or along a dimension."""

    def argmin(
        self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Index of the first smallest element, or of the first nan, in the flat tensor or along a dimension."""

    def max(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Any = None) -> Any:
        """Return the largest element; along a dimension, with its index; of two tensors, element by element."""

    def min(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Any = None) -> Any:
        """Return the smallest element; along a dimension, with its index; of two tensors, element by element."""

    def reshape(self, shape: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Give the elements, in their order, another shape; a view if that is possible, else a copy."""

    def view(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Give the elements another shape without copying them."""

    def view_as(self, other: Tensor) -> Tensor:
        """Give the elements the shape of another tensor without copying them; see `view`."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Give the elements the shape of another tensor; see `reshape`."""

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Join neighbouring dimensions into one."""

    def ravel(self) -> Tensor:
        """Join all dimensions into one; a view if that is possible."""

    def exp(self) -> Tensor:
        """Exponential."""

    def exp2(self) -> Tensor:
        """Power of 2."""

    def expm1(self) -> Tensor:
        """Exponential less 1, precise near 0."""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log2(self) -> Tensor:
        """Logarithm to base 2."""

    def log10(self) -> Tensor:
        """Logarithm to base 10."""

    def log1p(self) -> Tensor:
        """Natural logarithm of 1 + x, precise near 0."""

    def sqrt(self) -> Tensor:
        """Square root."""

    def rsqrt(self) -> Tensor:
        """Reciprocal of the square root."""

    def sin(self) -> Tensor:
        """Sine of an angle in radians."""

    def cos(self) -> Tensor:
        """Cosine of an angle in radians."""

    def tan(self) -> Tensor:
        """Tangent of an angle in radians."""

    def asin(self) -> Tensor:
        """Angle in radians of a sine."""

    def acos(self) -> Tensor:
        """Angle in radians of a cosine."""

    def atan(self) -> Tensor:
        """Angle in radians of a tangent."""

    def atan2(self, other: Any) -> Tensor:
        """Angle in radians of the point with ordinate `input` and abscissa `other`."""

    def sinh(self) -> Tensor:
        """Hyperbolic sine."""

    def cosh(self) -> Tensor:
        """Hyperbolic cosine."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine."""

    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent."""

    def sigmoid(self) -> Tensor:
        """Logistic function :math:`1/(1 + e^{-x})`."""

    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`."""

    def softplus(self) -> Tensor:
        """Smooth relu :math:`\\log(1 + e^x)`."""

    def logaddexp(self, other: Any) -> Tensor:
        """Logarithm of the sum of exponentials."""

    def hypot(self, other: Any) -> Tensor:
        """Length :math:`\\sqrt{x^2 + y^2}`."""

    def erf(self) -> Tensor:
        """Error function."""

    def softmax(self, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

    def log_softmax(self, dim: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

    def logsumexp(self, dim: builtins.int | tuple[builtins.int, ...], keepdim: builtins.bool = False) -> Tensor:
        """Logarithm of the sum of exponentials, computed so that nothing overflows."""

    def expand(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Repeat along dimensions of length 1 and along new ones in front, as a view that may not be written to."""

    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """Repeat to a shape; see `expand`."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Repeat to the shape of another tensor; see `expand`."""

    def sum_to_size(self, size: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Sum over the dimensions that broadcasting from a shape would have made or stretched."""

    def squeeze(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        *,
        axis: builtins.int | Sequence[builtins.int] | None = None,
    ) -> Tensor:
        """Drop dimensions of length 1, as a view."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a dimension of length 1, as a view."""

    def clone(self) -> Tensor:
        """Copy, recorded: gradients flow back to `input`."""

    def contiguous(self) -> Tensor:
        """Return the tensor itself if its elements lie in memory in their order, else a copy that is so."""

    def permute(self, dims: builtins.int | Sequence[builtins.int], *rest: builtins.int) -> Tensor:
        """Put the dimensions into another order, as a view."""

    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions, as a view."""

    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions, as a view."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions, as a view."""

    def t(self) -> Tensor:
        """Transpose a matrix, as a view; fewer dimensions stay as they are."""

    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move dimensions to other positions, as a view; the others keep their order."""

    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move dimensions to other positions, as a view; the others keep their order."""

    def matmul(self, other: Any) -> Tensor:
        """Product of matrices; of vectors and matrices; of batches of them, whose other dimensions broadcast."""

    def mm(self, mat2: Any) -> Tensor:
        """Product of two matrices; see `matmul`."""

    def mv(self, vec: Any) -> Tensor:
        """Product of a matrix and a vector; see `matmul`."""

    def dot(self, tensor: Any) -> Tensor:
        """Product of two vectors, without conjugation."""

    def outer(self, vec2: Any) -> Tensor:
        """Products of each element of one vector with each of another."""

    def square(self) -> Tensor:
        """Elementwise square."""

    def positive(self) -> Tensor:
        """Return the tensor itself: what ``+x`` computes."""

    def reciprocal(self) -> Tensor:
        """Elementwise reciprocal, :math:`1/x`."""

    def prod(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: builtins.int | tuple[builtins.int, ...] | None = None,
        keepdims: builtins.bool | None = None,
    ) -> Tensor:
        """Product of the elements; 1 if there is none."""

    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """Cumulative sums along a dimension: of each element and those before it."""

    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """Diagonal of each matrix that two dimensions form, as a view."""

    def fmax(self, other: Any) -> Tensor:
        """The larger of the two; the other one where one is nan."""

    def fmin(self, other: Any) -> Tensor:
        """The smaller of the two; the other one where one is nan."""

    def copysign(self, other: Any) -> Tensor:
        """The size of `input` with the sign of `other`."""

    def nextafter(self, other: Any) -> Tensor:
        """The floating-point number next to `input` in the direction of `other`."""

    def heaviside(self, other: Any) -> Tensor:
        """Step function: 0 where `input` is negative, 1 where it is positive, `other` where it is 0."""

    def nan_to_num(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Replace nan and infinities by numbers."""

    def clamp_min(self, min: Any) -> Tensor:
        """Raise elements to at least `min`; see `clamp`."""

    def clamp_max(self, max: Any) -> Tensor:
        """Lower elements to at most `max`; see `clamp`."""

    def new_empty(self, *size: Any, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Return a tensor as `empty` does, by default of this tensor's dtype."""

    def new_zeros(self, *size: Any, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Return a tensor as `zeros` does, by default of this tensor's dtype."""

    def new_ones(self, *size: Any, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Return a tensor as `ones` does, by default of this tensor's dtype."""

    def new_full(
        self, size: Any, fill_value: Any, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Return a tensor as `full` does, by default of this tensor's dtype."""

    def new_tensor(self, data: Any, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Return a tensor with a copy of the data, by default of this tensor's dtype."""

    def bitwise_and(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where both are."""

    def bitwise_or(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where one of the two is."""

    def bitwise_xor(self, other: Any) -> Tensor:
        """Combine integers bit by bit, or truth values: 1 where the two differ."""

    def bitwise_not(self) -> Tensor:
        """Invert integers bit by bit, or truth values."""

    def bernoulli(self, *, generator: Generator | None = None) -> Tensor:
        """Return ones with the given probabilities, zeros otherwise."""

    def floor(self) -> Tensor:
        """The largest integer that is not larger; integers stay as they are."""

    def ceil(self) -> Tensor:
        """The smallest integer that is not smaller; integers stay as they are."""

    def trunc(self) -> Tensor:
        """The number without its fraction; integers stay as they are."""

    def fix(self) -> Tensor:
        """The number without its fraction; integers stay as they are."""

    def frac(self) -> Tensor:
        """Fraction of a number, of its sign."""

    def round(self, *, decimals: builtins.int | None = None) -> Tensor:
        """Round to the nearest integer, halves to the even one; integers stay as they are."""

    def remainder(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `other`: Python's ``%``."""

    def fmod(self, other: Any) -> Tensor:
        """Remainder of a division, of the sign of `input`: that of C."""

    def floor_divide(self, other: Any) -> Tensor:
        """The largest integer that is not larger than the quotient: Python's ``//``."""

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def true_divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide `input` by `other`; integers give the default dtype unless they are rounded."""

    def add(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Add `other`, times a factor."""

    def sub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract `other`, times a factor."""

    def subtract(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract `other`, times a factor."""

    def addcmul(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """Add a product, times a factor: ``input + value * tensor1 * tensor2``."""

    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """Add a quotient, times a factor: ``input + value * tensor1 / tensor2``."""

    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Linear interpolation, ``input + weight * (end - input)``."""

    def ldexp(self, other: Any) -> Tensor:
        """Multiply `input` by 2 to the power `other`."""

    def float_power(self, other: Any) -> Tensor:
        """Raise `input` to the power `other` in double precision."""

    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""

    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""

    def var(
        self,
        dim: builtins.int | tuple[builtins.int, ...] | None = None,
        *,
        correction: builtins.float = 1,
        keepdim: builtins.bool = False,
    ) -> Tensor:
        """Variance of the elements."""

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

    def pow_(self, other: Any) -> Tensor:
        """Compute `pow` in place; recorded where a gradient is wanted."""

    def neg_(self) -> Tensor:
        """Compute `neg` in place; recorded where a gradient is wanted."""

    def negative_(self) -> Tensor:
        """Compute `negative` in place; recorded where a gradient is wanted."""

    def abs_(self) -> Tensor:
        """Compute `abs` in place; recorded where a gradient is wanted."""

    def absolute_(self) -> Tensor:
        """Compute `absolute` in place; recorded where a gradient is wanted."""

    def sign_(self) -> Tensor:
        """Compute `sign` in place; recorded where a gradient is wanted."""

    def relu_(self) -> Tensor:
        """Compute `relu` in place; recorded where a gradient is wanted."""

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """Compute `clamp` in place; recorded where a gradient is wanted."""

    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """Compute `clip` in place; recorded where a gradient is wanted."""

    def exp_(self) -> Tensor:
        """Compute `exp` in place; recorded where a gradient is wanted."""

    def exp2_(self) -> Tensor:
        """Compute `exp2` in place; recorded where a gradient is wanted."""

    def expm1_(self) -> Tensor:
        """Compute `expm1` in place; recorded where a gradient is wanted."""

    def log_(self) -> Tensor:
        """Compute `log` in place; recorded where a gradient is wanted."""

    def log2_(self) -> Tensor:
        """Compute `log2` in place; recorded where a gradient is wanted."""

    def log10_(self) -> Tensor:
        """Compute `log10` in place; recorded where a gradient is wanted."""

    def log1p_(self) -> Tensor:
        """Compute `log1p` in place; recorded where a gradient is wanted."""

    def sqrt_(self) -> Tensor:
        """Compute `sqrt` in place; recorded where a gradient is wanted."""

    def rsqrt_(self) -> Tensor:
        """Compute `rsqrt` in place; recorded where a gradient is wanted."""

    def sin_(self) -> Tensor:
        """Compute `sin` in place; recorded where a gradient is wanted."""

    def cos_(self) -> Tensor:
        """Compute `cos` in place; recorded where a gradient is wanted."""

    def tan_(self) -> Tensor:
        """Compute `tan` in place; recorded where a gradient is wanted."""

    def asin_(self) -> Tensor:
        """Compute `asin` in place; recorded where a gradient is wanted."""

    def acos_(self) -> Tensor:
        """Compute `acos` in place; recorded where a gradient is wanted."""

    def atan_(self) -> Tensor:
        """Compute `atan` in place; recorded where a gradient is wanted."""

    def atan2_(self, other: Any) -> Tensor:
        """Compute `atan2` in place; recorded where a gradient is wanted."""

    def sinh_(self) -> Tensor:
        """Compute `sinh` in place; recorded where a gradient is wanted."""

    def cosh_(self) -> Tensor:
        """Compute `cosh` in place; recorded where a gradient is wanted."""

    def tanh_(self) -> Tensor:
        """Compute `tanh` in place; recorded where a gradient is wanted."""

    def asinh_(self) -> Tensor:
        """Compute `asinh` in place; recorded where a gradient is wanted."""

    def acosh_(self) -> Tensor:
        """Compute `acosh` in place; recorded where a gradient is wanted."""

    def atanh_(self) -> Tensor:
        """Compute `atanh` in place; recorded where a gradient is wanted."""

    def sigmoid_(self) -> Tensor:
        """Compute `sigmoid` in place; recorded where a gradient is wanted."""

    def hypot_(self, other: Any) -> Tensor:
        """Compute `hypot` in place; recorded where a gradient is wanted."""

    def erf_(self) -> Tensor:
        """Compute `erf` in place; recorded where a gradient is wanted."""

    def square_(self) -> Tensor:
        """Compute `square` in place; recorded where a gradient is wanted."""

    def reciprocal_(self) -> Tensor:
        """Compute `reciprocal` in place; recorded where a gradient is wanted."""

    def copysign_(self, other: Any) -> Tensor:
        """Compute `copysign` in place; recorded where a gradient is wanted."""

    def nextafter_(self, other: Any) -> Tensor:
        """Compute `nextafter` in place; recorded where a gradient is wanted."""

    def heaviside_(self, other: Any) -> Tensor:
        """Compute `heaviside` in place; recorded where a gradient is wanted."""

    def nan_to_num_(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Compute `nan_to_num` in place; recorded where a gradient is wanted."""

    def clamp_min_(self, min: Any) -> Tensor:
        """Compute `clamp_min` in place; recorded where a gradient is wanted."""

    def clamp_max_(self, max: Any) -> Tensor:
        """Compute `clamp_max` in place; recorded where a gradient is wanted."""

    def floor_(self) -> Tensor:
        """Compute `floor` in place; recorded where a gradient is wanted."""

    def ceil_(self) -> Tensor:
        """Compute `ceil` in place; recorded where a gradient is wanted."""

    def trunc_(self) -> Tensor:
        """Compute `trunc` in place; recorded where a gradient is wanted."""

    def fix_(self) -> Tensor:
        """Compute `fix` in place; recorded where a gradient is wanted."""

    def frac_(self) -> Tensor:
        """Compute `frac` in place; recorded where a gradient is wanted."""

    def round_(self, *, decimals: builtins.int | None = None) -> Tensor:
        """Compute `round` in place; recorded where a gradient is wanted."""

    def remainder_(self, other: Any) -> Tensor:
        """Compute `remainder` in place; recorded where a gradient is wanted."""

    def fmod_(self, other: Any) -> Tensor:
        """Compute `fmod` in place; recorded where a gradient is wanted."""

    def floor_divide_(self, other: Any) -> Tensor:
        """Compute `floor_divide` in place; recorded where a gradient is wanted."""

    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """Compute `addcmul` in place; recorded where a gradient is wanted."""

    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
        """Compute `addcdiv` in place; recorded where a gradient is wanted."""

    def lerp_(self, end: Any, weight: Any) -> Tensor:
        """Compute `lerp` in place; recorded where a gradient is wanted."""

    def ldexp_(self, other: Any) -> Tensor:
        """Compute `ldexp` in place; recorded where a gradient is wanted."""

    def float_power_(self, other: Any) -> Tensor:
        """Compute `float_power` in place; recorded where a gradient is wanted."""

    def deg2rad_(self) -> Tensor:
        """Compute `deg2rad` in place; recorded where a gradient is wanted."""

    def rad2deg_(self) -> Tensor:
        """Compute `rad2deg` in place; recorded where a gradient is wanted."""

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute `add` in place, with `other` times `alpha`; recorded where a gradient is wanted."""

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute `sub` in place, with `other` times `alpha`; recorded where a gradient is wanted."""

    def mul_(self, other: Any) -> Tensor:
        """Compute `mul` in place; recorded where a gradient is wanted."""

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Compute `div` in place; recorded where a gradient is wanted."""

    def copy_(self, source: Any) -> Tensor:
        """Copy the elements of a tensor or array, broadcast to this one's shape; recorded where a gradient is wanted."""

    def fill_(self, value: Any) -> Tensor:
        """Set all elements to a number, in place; recorded where a gradient is wanted."""

    def zero_(self) -> Tensor:
        """Set all elements to zero, in place; recorded where a gradient is wanted."""

    def uniform_(
        self, low: builtins.float = 0.0, high: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers drawn uniformly from `low` to `high`, in place."""

    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with normally distributed numbers, in place."""

    def detach_(self) -> Tensor:
        """Make this result a leaf that no gradient is wanted for, in place."""

    @property
    def real(self) -> Tensor:
        """Real part; of real numbers the tensor itself."""

    @property
    def imag(self) -> Tensor:
        """Imaginary part of complex numbers."""

    @property
    def T(self) -> Tensor:
        """Dimensions in reverse order, as a view."""

    @property
    def mT(self) -> Tensor:
        """Matrices, transposed, as a view."""

    @property
    def H(self) -> Tensor:
        """Conjugate of a matrix, transposed."""

    @property
    def mH(self) -> Tensor:
        """Conjugates of matrices, transposed."""

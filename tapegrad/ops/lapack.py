"""What the ops of matrices share: checks of operands, LAPACK's errors, triangles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from tapegrad import errors
from tapegrad.errors import LinAlgError
from tapegrad.modes import interceptor
from tapegrad.ops.matrices import square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import MATRIX_KINKS
from tapegrad.tensor import Tensor

P = ParamSpec("P")
Shape = tuple[int, ...]


def decomposition(
    name: str, functions: tuple[str, ...] = (), names: dict[str, Any] | None = None, **fields: Any
) -> Callable[[Callable[Concatenate[Any, P], Bound]], Callable[Concatenate[Any, P], Any]]:
    """Make an op of matrices, as `operation` does, public in `tapegrad.linalg`.

    Parameters
    ----------
    name : str
    functions : tuple of str
        NumPy's functions that it is.
    names : dict
        Further arguments of `public`.
    **fields
        Of `Op`.
    """

    def decorate(bind: Callable[Concatenate[Any, P], Bound]) -> Callable[Concatenate[Any, P], Any]:
        made = operation(name, **{"family": "linalg", "kinks": MATRIX_KINKS, **fields})(bind)
        return public(**{"namespaces": (LINALG,), "functions": functions, **(names or {})})(made)

    return decorate


_OF_INPUT = ("linalg.lstsq", "ormqr")  # whose errors do not name their operand


def matrices(call: str, name: str, value: Any, position: int) -> Tensor:
    """Return an operand that is matrices of floating or complex numbers.

    Raises
    ------
    RuntimeError
        If it is something else.
    """
    x = as_operand(value, call, name, position)
    if x.ndim < 2:
        words = "input" if call in _OF_INPUT else f"The input tensor {name}"
        raise RuntimeError(f"{call}: {words} must have at least 2 dimensions; got {list(x.shape)}.")
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{call}: Expected a floating point or complex tensor as input. Got dtype {x.dtype}; convert it first"
        )
    return x


def hermitian(x: Any) -> Tensor:
    """Return the Hermitian part of square matrices: samples of functions that read one triangle are called with it."""
    x = square_matrices("linalg", "A", x, 1)
    return (x + adjoint(x)) * 0.5  # type: ignore[no-any-return]


def not_matrices(call: Callable[[Any], Any], name: str) -> tuple[ErrorSample, ErrorSample]:
    """Return the samples of a call with a vector, and with integers."""
    return (
        ErrorSample(lambda: call(np.ones(3)), RuntimeError, f"{name}: The input tensor "),
        ErrorSample(lambda: call(np.eye(2, dtype=int)), RuntimeError, "Expected a floating point or complex tensor"),
    )


def check_alike(call: str, a: Tensor, b: Tensor, names: str = "A and B") -> None:
    """Raise PyTorch's errors unless two operands have one dtype, and batches that broadcast."""
    first, second = names.split(" and ")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{call}: Expected {names} to have the same dtype, but found {first} of type {a.dtype} and {second} of "
            f"type {b.dtype} instead; convert one"
        )
    check_batches(call, a.shape[:-2], b.shape[:-2])


def check_batches(call: str, first: Shape, second: Shape) -> None:
    """Raise PyTorch's error unless the lengths of two batches broadcast."""
    try:
        np.broadcast_shapes(first, second)
    except ValueError:
        raise errors.broadcast_mismatch(call, first, second) from None


def not_converged(call: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward that raises our error where LAPACK does not converge."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        try:
            return forward(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{call}: The algorithm failed to converge ({error})") from None

    return computed


def untouched(*cts: Any) -> bool:
    """Whether cotangents are zeros that depend on nothing: a rule then leaves out what they would add."""
    if interceptor() is not None:
        return False
    return not any(ct._node is not None or np.count_nonzero(ct._array()) for ct in cts)


def seen(*values: Any) -> tuple[Any, ...]:
    """Return the arrays of tensors, for what a rule asks of numbers: NumPy is faster there; of a trace the tensors."""
    return values if interceptor() is not None else tuple([value._array() for value in values])


def are_apart(values: Any) -> bool:
    """Whether no two values of a matrix, which are in order, are equal up to rounding: a rule then asks no more.

    It is not known where they are traced.
    """
    if interceptor() is not None:
        return False
    numbers = values._array()
    if numbers.shape[-1] < 2:
        return True
    rounding = 64 * np.finfo(numbers.dtype).eps * np.maximum(np.abs(numbers[..., :1]), np.abs(numbers[..., -1:]))
    distances = np.abs(numbers[..., 1:] - numbers[..., :-1])
    return bool(np.count_nonzero(distances > rounding) == distances.size)


@functools.lru_cache(maxsize=256)
def triangle(rows: int, columns: int, upper: bool, k: int = 0) -> np.ndarray:
    """Return where a triangle of a matrix is, from the diagonal with number k on.

    >>> triangle(2, 2, True).tolist(), triangle(2, 2, False, -1).tolist()
    ([[True, True], [False, True]], [[False, False], [True, False]])
    """
    mask = np.tri(rows, columns, k - 1 if upper else k, dtype=bool)
    mask = ~mask if upper else mask
    mask.flags.writeable = False
    return mask


@functools.lru_cache(maxsize=256)
def diagonal_mask(n: int) -> np.ndarray:
    """Return where the diagonal of a square matrix is."""
    mask: np.ndarray = triangle(n, n, False) & triangle(n, n, True)
    mask.flags.writeable = False
    return mask


def lower(x: Any, k: int = 0) -> Any:
    """Return matrices with zeros above the diagonal with number k: for rules."""
    return xp.where(triangle(*x.shape[-2:], False, k), x, 0.0)


def upper(x: Any, k: int = 0) -> Any:
    """Return matrices with zeros below the diagonal with number k: for rules."""
    return xp.where(triangle(*x.shape[-2:], True, k), x, 0.0)


@functools.lru_cache(maxsize=256)
def identity(n: int, dtype: np.dtype) -> np.ndarray:
    """Return an identity matrix that nobody writes to."""
    eye = np.eye(n, dtype=dtype)
    eye.flags.writeable = False
    return eye

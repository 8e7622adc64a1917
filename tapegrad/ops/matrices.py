"""Ops: inverses and solutions of linear systems, by LAPACK; checks that all ops of square matrices share.

Their rules are those of Giles, "An extended collection of matrix derivative results" (2008). They are made of ops, and
have no kernels: LAPACK takes longer than the call of a rule.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.errors import LinAlgError
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.permutations import adjoint, transpose
from tapegrad.ops.routines import first_singular, inverted, solved
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import LINALG, public, publish
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import MATRIX_KINKS, invertible
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]

_SQUARE: Final = tuple(
    Sample((shape,), values=(invertible,)) for shape in ((1, 1), (3, 3), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 2, 2))
)
TWO_BY_THREE: Final = "A must be batches of square matrices, but they are 2 by 3 matrices"


def square_matrices(call: str, name: str, value: Any, position: int) -> Tensor:
    """Return an operand that is square matrices of floating or complex numbers.

    Raises
    ------
    RuntimeError
        If it is something else.
    """
    x = as_operand(value, call, name, position)
    if x.ndim < 2:
        raise RuntimeError(f"{call}: The input tensor {name} must have at least 2 dimensions; got {list(x.shape)}.")
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{call}: {name} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{call}: Expected a floating point or complex tensor as input. Got dtype {x.dtype}; convert it first"
        )
    return x


# Inverse -----------------------------------------------------------------------------------------------------------


def _inv_forward(x: Any) -> Any:
    try:
        return inverted(x)
    except np.linalg.LinAlgError:
        place, zero = first_singular(x)
        raise LinAlgError(
            f"linalg.inv: {_which(x, place)}The diagonal element {zero} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        ) from None


def _which(x: Any, place: int) -> str:
    return f"(Batch element {place}): " if x.ndim > 2 else ""


@public(namespaces=(LINALG,), functions=("linalg.inv",))
@operation(
    "inv",
    forward=_inv_forward,
    vjp=(lambda ct, out: -xp.matmul(xp.matmul(adjoint(out), ct), adjoint(out)),),
    family="linalg",
    kinks=MATRIX_KINKS,
    node_name="LinalgInvExBackward0",
    oracle=lambda x: np.linalg.solve(x, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)),
    samples=_SQUARE,
    errors=(
        ErrorSample(lambda: xp.inv(np.ones((2, 3))), RuntimeError, f"linalg.inv: {TWO_BY_THREE}"),
        ErrorSample(
            lambda: xp.inv(np.ones(3)), RuntimeError, "linalg.inv: The input tensor A must have at least 2 dim"
        ),
        ErrorSample(lambda: xp.inv(np.zeros((2, 2))), LinAlgError, "because the input matrix is singular"),
        ErrorSample(lambda: xp.inv(np.eye(2, dtype=int)), RuntimeError, "Expected a floating point or complex tensor"),
    ),
)
def inv(A: Any) -> Bound:  # PyTorch's name
    r"""Inverses of square matrices.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is singular: a RuntimeError, as in PyTorch, and a numpy.linalg.LinAlgError.
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`C = A^{-1}`, :math:`\bar A = -C^H \bar C C^H` (Giles 2008, 2.2.3).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> y = tg.linalg.inv(x)
    >>> y.tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    >>> y[0, 0].backward()
    >>> x.grad[0, 0].item()
    -0.25
    """
    return Bound((square_matrices("linalg.inv", "A", A, 1),))


# Linear systems ----------------------------------------------------------------------------------------------------


def _solve_forward(a: Any, b: Any, vector: bool) -> Any:
    try:
        return solved(a, b[..., None])[..., 0] if vector else solved(a, b)
    except np.linalg.LinAlgError:
        which = _which(a, first_singular(a)[0])
        raise LinAlgError(
            f"torch.linalg.solve: {which}The solver failed because the input matrix is singular."
        ) from None


def _solve_rule(ct: Any, a: Any, out: Any, vector: bool, wanted: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the cotangents of both: that of the right-hand side is half of that of the matrices."""
    of_b = solve_op(adjoint(a), ct, vector)
    if not wanted[0]:
        return None, of_b
    if vector:
        return -(xp.unsqueeze(of_b, -1) * xp.unsqueeze(xp.conj(out), -2)), of_b  # (..., n, 1) * (..., 1, n)
    return -xp.matmul(of_b, adjoint(out)), of_b


def _bind_solve(a: Any, b: Any, vector: bool) -> Bound:
    return Bound((as_operand(a, "linalg.solve", "A", 1), as_operand(b, "linalg.solve", "B", 2)), {"vector": vector})


def _is_vector(a: Shape, b: Shape) -> bool:
    """Whether right-hand sides are vectors: one, or one for each matrix; as PyTorch has it.

    >>> _is_vector((5, 2, 2), (2,)), _is_vector((5, 2, 2), (5, 2)), _is_vector((2, 2), (2, 3))
    (True, True, False)
    """
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


_solve = Op(
    name="solve",
    operands=("a", "b"),
    forward=_solve_forward,
    vjp=_solve_rule,
    family="linalg",
    kinks=MATRIX_KINKS,
    attrs=("vector",),
    bind=_bind_solve,
    node_name="LinalgSolveExBackward0",
    oracle=lambda a, b, left=True: (
        np.einsum("...ij,...j->...i", np.linalg.inv(a), b)
        if _is_vector(a.shape, b.shape)
        else np.linalg.inv(a) @ b
        if left
        else b @ np.linalg.inv(a)
    ),
    samples=tuple(
        Sample(tuple(shapes), {} if left else {"left": False}, values=(invertible, None))
        for *shapes, left in (
            ((3, 3), (3, 2), True),
            ((3, 3), (3,), True),
            ((2, 3, 3), (2, 3, 1), True),
            ((2, 3, 3), (2, 3), True),
            ((2, 3, 3), (3,), True),
            ((3, 3), (2, 3, 4), True),
            ((2, 1, 2, 2), (3, 2, 2), True),
            ((3, 3), (2, 3), False),
            ((2, 3, 3), (4, 3), False),
            ((0, 0), (0, 2), True),
        )
    ),
    errors=(
        ErrorSample(lambda: xp.solve(np.ones((2, 3)), np.ones(2)), RuntimeError, f"linalg.solve: {TWO_BY_THREE}"),
        ErrorSample(
            lambda: xp.solve(np.eye(2), np.ones(3)), RuntimeError,
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
        ),
        ErrorSample(
            lambda: xp.solve(np.eye(2), np.ones((2, 3)), left=False), RuntimeError,
            "linalg.solve: Incompatible shapes of A and B for the equation XA = B (2x2 and 2x3)",
        ),
        ErrorSample(
            lambda: xp.solve(np.ones((3, 2, 2)), np.ones((2, 2, 2))), RuntimeError,
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
        ),
        ErrorSample(
            lambda: xp.solve(np.eye(2), np.ones(2, np.float32)), RuntimeError,
            "linalg.solve: Expected A and B to have the same dtype, but found A of type float64 and B of type float32",
        ),
        ErrorSample(
            lambda: xp.solve(np.zeros((2, 2)), np.ones(2)), LinAlgError,
            "torch.linalg.solve: The solver failed because the input matrix is singular.",
        ),
    ),
)  # fmt: skip
connect(_solve, n_arguments=1)


def solve_op(a: Any, b: Any, vector: bool) -> Tensor:
    """Return the solutions for operands that are known to fit."""
    result: Tensor = _solve.plans.call(a, b, vector)
    return result


def _solve_as_numpy(a: Any, b: Any) -> Tensor:
    x, y = as_operand(a, "linalg.solve", "a", 1), as_operand(b, "linalg.solve", "b", 2)
    while 1 < y.ndim < x.ndim:  # NumPy takes these for matrices, where PyTorch might see vectors
        y = unsqueeze(y, 0)
    return solve(x, y)


@public(namespaces=(LINALG,), functions=("linalg.solve",), adapter=_solve_as_numpy, of=_solve)
def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:  # PyTorch's names
    r"""Solutions of systems of linear equations with square matrices, :math:`A X = B`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.
    B : Tensor or array, (..., n, k), (n,) or (..., n)
        Of the same dtype. It is vectors if it has one dimension, or the shape of `A` but for the last.
    left : bool
        If False, solve :math:`X A = B`, where `B` is (..., k, n).

    Returns
    -------
    Tensor
        Of the shape of `B`, with the batches of both broadcast.

    Raises
    ------
    LinAlgError
        If a matrix is singular: a RuntimeError, as in PyTorch, and a numpy.linalg.LinAlgError.
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Notes
    -----
    Derivatives: :math:`\bar B = A^{-H} \bar X` and :math:`\bar A = -\bar B X^H` (Giles 2008, 2.3.1).

    Examples
    --------
    >>> import tapegrad as tg
    >>> a = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> x = tg.linalg.solve(a, tg.tensor([1.0, 1.0]))
    >>> x.tolist()
    [0.5, 0.25]
    >>> x.sum().backward()
    >>> a.grad.tolist()
    [[-0.25, -0.125], [-0.125, -0.0625]]
    """
    a, b = square_matrices("linalg.solve", "A", A, 1), as_operand(B, "linalg.solve", "B", 2)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {a.dtype} and B of type "
            f"{b.dtype} instead; convert one"
        )
    vector = _is_vector(a.shape, b.shape)
    shape = (*b.shape, 1) if vector else b.shape
    n = a.shape[-1]
    if len(shape) < 2 or shape[-2 if left else -1] != n:
        sizes = f"{n}x{n} and {'x'.join(map(str, shape[-2:])) or 'a number'}"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B ({sizes})"
        )
    try:
        np.broadcast_shapes(a.shape[:-2], shape[:-2])
    except ValueError:
        raise errors.broadcast_mismatch("linalg.solve", a.shape[:-2], shape[:-2]) from None
    if not left:
        return transpose(solve_op(transpose(a, -1, -2), transpose(b, -1, -2), False), -1, -2)
    return solve_op(a, b, vector)


publish(solve, _solve, solve.__doc__ or "")

"""Transforms of vectors and matrices to Cholesky factors, and to matrices that have them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.composition import Transform
from tapegrad.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from tapegrad.linalg import cholesky
from tapegrad.nn.functional import pad, softplus
from tapegrad.ops.ranges import eye
from tapegrad.ops.triangles import diag_embed
from tapegrad.tensor import Tensor

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform"]


class LowerCholeskyTransform(Transform):
    """Lower triangular matrices, with exponentials of the diagonal.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.LowerCholeskyTransform()(tg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain: constraints.Constraint = constraints.lower_cholesky
    bijective = False  # what stands above the diagonal is dropped

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Positive definite matrices, of their Cholesky factors, which `LowerCholeskyTransform` makes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.PositiveDefiniteTransform()(tg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(cholesky(y))


class CorrCholeskyTransform(Transform):
    r"""Cholesky factors of correlation matrices, of vectors of :math:`n (n - 1)/2` numbers.

    Row by row, the squares of the elements are shares that are broken off a stick: `tanh` of a number says how much of
    the rest (Stan's reference manual, 10.12).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.CorrCholeskyTransform()(tg.tensor([0.0]))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        size = self.forward_shape(x.shape)[-1]
        eps = float(np.finfo(x.dtype).eps)
        below = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        rest = (1 - below**2).sqrt().cumprod(-1)
        return (below + eye(size, dtype=x.dtype)) * pad(rest[..., :-1], [1, 0], value=1.0)

    def _rest(self, y: Tensor) -> Tensor:
        """Return what each element leaves of the sum 1 of its row's squares."""
        return 1 - (y**2).cumsum(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        before = tril_matrix_to_vec(pad(self._rest(y)[..., :-1], [1, 0], value=1.0), -1)
        return (tril_matrix_to_vec(y, -1) / before.sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rest = tril_matrix_to_vec(self._rest(y), -2)
        tanh = 2 * (math.log(2) - x - softplus(-2 * x)).sum(-1)
        return 0.5 * rest.log().sum(-1) + tanh

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape:
            raise ValueError("Too few dimensions on input")
        size = round(math.sqrt(0.25 + 2 * shape[-1]) + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)

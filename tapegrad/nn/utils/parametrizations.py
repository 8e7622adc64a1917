"""Parametrisations of weights: by length and direction, by their largest singular value, as orthogonal matrices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.modes import no_grad
from tapegrad.nn import functional
from tapegrad.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tapegrad.nn.modules.module import Module
from tapegrad.nn.utils.parametrize import register_parametrization
from tapegrad.ops.concat import cat
from tapegrad.ops.fill import zeros, zeros_like
from tapegrad.ops.linalg import mv
from tapegrad.ops.matrices import solve
from tapegrad.ops.matrix_functions import matrix_exp
from tapegrad.ops.norms import vector_norm
from tapegrad.ops.products import vdot
from tapegrad.ops.qr import householder_product
from tapegrad.ops.random import randn
from tapegrad.ops.ranges import eye
from tapegrad.tensor import Tensor, from_array

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS: Final = ("matrix_exp", "cayley", "householder")


def norm_except_dim(weight: Tensor, dim: int | None) -> Tensor:
    """Return the norms of the slices of a tensor along a dimension, which keeps its length; of all for None or -1."""
    if dim is None or dim == -1:
        whole: Tensor = vector_norm(weight)
        return whole
    dims = tuple(own for own in range(weight.ndim) if own != dim % weight.ndim)
    norms: Tensor = vector_norm(weight, dim=dims, keepdim=True)
    return norms


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Parametrise a weight by length and direction: :math:`g v/\lVert v \rVert`.

    Parameters
    ----------
    module : Module
    name : str
    dim : int or None
        Each slice along this dimension has a length of its own; None: there is one.

    Returns
    -------
    Module
        `module`.

    Notes
    -----
    T. Salimans and D. Kingma, "Weight normalization" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.weight_norm(tg.nn.Linear(3, 2))
    >>> [(name, param.shape) for name, param in layer.parametrizations.weight.named_parameters()]
    [('original0', (2, 1)), ('original1', (2, 3))]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"  # of the older function of the name
        if all(key in state_dict for key in old):
            for place, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{place}"] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            for own, length in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(own, functional.normalize(randn(length, dtype=weight.dtype), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix, whose rows are slices along the dimension."""
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        """Improve the singular vectors, in new memory: what was recorded needs old ones. A program writes to them."""
        u, v = self._u, self._v
        with no_grad():
            for _ in range(count):
                u = functional.normalize(mv(matrix, v), dim=0, eps=self.eps)
                v = functional.normalize(mv(matrix.mH, u), dim=0, eps=self.eps)
            if modes.is_traced():
                self._u.copy_(u)
                self._v.copy_(v)
            else:
                self._u, self._v = u, v

    def forward(self, weight: Tensor) -> Any:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / vdot(self._u, mv(matrix, self._v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def weight_of(module: Module, name: str) -> Tensor:
    """Return a parameter or buffer; raise ValueError if there is none."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def dim_of_outputs(module: Module, dim: int | None) -> int:
    """Return the dimension of a weight that stands for outputs, unless one is given."""
    return dim if dim is not None else int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    r"""Divide a weight by its largest singular value, which the power method approximates.

    Parameters
    ----------
    module : Module
    name : str
    n_power_iterations : int
        At each reading, in training.
    eps : float
        At least what vectors are divided by.
    dim : int, optional
        That of outputs, default 0; 1 for transposed convolutions.

    Raises
    ------
    ValueError
        If there is no such weight, or `n_power_iterations` is not positive.

    Notes
    -----
    T. Miyato et al., "Spectral normalization for generative adversarial networks" (2018).

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.spectral_norm(tg.nn.Linear(3, 2), n_power_iterations=30)
    >>> round(float(tg.linalg.matrix_norm(layer.weight.detach(), 2)), 3)
    1.0
    """
    weight = weight_of(module, name)
    norm = _SpectralNorm(weight, n_power_iterations, dim_of_outputs(module, dim), eps)
    return register_parametrization(module, name, norm)


# Orthogonal matrices -------------------------------------------------------------------------------------------------


def _orthonormal(matrix: np.ndarray) -> Any:
    """Return the factor Q of a QR decomposition in which the diagonal of R is not negative."""
    q, r = np.linalg.qr(matrix)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    return q * np.where(diagonal == 0, 1, np.sign(diagonal))[..., None, :]


def _is_orthonormal(matrix: np.ndarray) -> bool:
    n, k = matrix.shape[-2:]
    product = np.conj(np.swapaxes(matrix, -1, -2)) @ matrix
    return bool(np.allclose(product, np.eye(k), atol=10.0 * n * np.finfo(matrix.dtype).eps))


class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows if there are fewer, as a function of any matrix."""

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, matrix: Tensor) -> Any:
        is_wide = matrix.shape[-2] < matrix.shape[-1]
        x: Any = matrix.mT if is_wide else matrix
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            scales = 2.0 / (1.0 + (below * below).sum(-2))
            signs = from_array(np.trunc(np.diagonal(np.asarray(x._data), axis1=-2, axis2=-1)))
            q = householder_product(below, scales) * signs.unsqueeze(-2)
        else:
            lower = x.tril()
            if n != k:
                lower = cat([lower, zeros((*x.shape[:-1], n - k), dtype=x.dtype)], -1)
            skew = lower - lower.mH
            if self.orthogonal_map == "matrix_exp":
                q = matrix_exp(skew)
            else:
                identity = eye(n, dtype=x.dtype)
                q = solve(identity - 0.5 * skew, identity + 0.5 * skew)
            q = q[..., :k] if n != k else q
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if is_wide else q

    def right_inverse(self, matrix: Tensor) -> Tensor:
        """Return what the matrix is computed from; with a base, that is another function than before."""
        if matrix.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {matrix.shape}."
            )
        is_wide = matrix.shape[-2] < matrix.shape[-1]
        data = np.asarray((matrix.mT if is_wide else matrix).detach().numpy())
        n, k = data.shape[-2:]
        if not hasattr(self, "base"):
            return self._of_reflections(data, is_wide)
        if n != k:
            rest = randn((*data.shape[:-1], n - k), dtype=matrix.dtype).numpy()
            data = _orthonormal(np.concatenate([data, rest], -1))
        elif not _is_orthonormal(data):
            data = _orthonormal(data)
        self.base = from_array(np.ascontiguousarray(data))
        return zeros_like(matrix) - eye(*matrix.shape[-2:], dtype=matrix.dtype)

    def _of_reflections(self, data: np.ndarray, is_wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        raw, scales = np.linalg.qr(data, "raw")
        packed = np.swapaxes(raw, -1, -2).copy()
        diagonal = np.einsum("...ii->...i", packed[..., : data.shape[-1], :])
        diagonal[...] = np.sign(diagonal) * np.where(scales == 0, -1, 1)
        found = from_array(np.ascontiguousarray(np.swapaxes(packed, -1, -2) if is_wide else packed))
        return found


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal: its columns are orthonormal, or its rows if there are fewer.

    Parameters
    ----------
    module : Module
    name : str
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        What makes it of any matrix; default "matrix_exp" for square and complex ones, else "householder".
    use_trivialization : bool
        Compute it as the product of a fixed orthogonal matrix and of one near the identity.

    Raises
    ------
    ValueError
        If the weight is no matrix, or there is no such map.

    Notes
    -----
    M. Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds" (2019).

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.utils.parametrizations.orthogonal(tg.nn.Linear(3, 3))
    >>> bool(tg.allclose(layer.weight.T @ layer.weight, tg.eye(3)))
    True
    """
    weight = weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    square = weight.shape[-2] == weight.shape[-1]
    chosen = orthogonal_map or ("matrix_exp" if square or weight.is_complex() else "householder")
    if chosen not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    norm = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return register_parametrization(module, name, norm, unsafe=True)

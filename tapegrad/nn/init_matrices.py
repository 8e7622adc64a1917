"""Initial values that are matrices of a kind: identities, orthogonal and sparse ones. They are functions of `init`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.ops.generators import Generator, numpy_generator
from tapegrad.ops.table.docs import Common, documented
from tapegrad.tensor import Tensor, from_array

FILLED: Final = Common("tensor : Tensor", returns="Tensor\n    The tensor.")
WITH_GENERATOR: Final = FILLED._replace(options="generator : Generator, optional")
_OF_MATRIX: Final = FILLED._replace(raises="ValueError\n    If it has another number of dimensions than 2.")


def _check_matrix(tensor: Tensor) -> None:
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported; this one has {tensor.ndim}")


@no_grad()
def _fill(tensor: Tensor, values: np.ndarray) -> Tensor:
    return tensor.copy_(from_array(values))


@documented(_OF_MATRIX)
def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.eye_(tg.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    _check_matrix(tensor)
    return _fill(tensor, np.eye(tensor.shape[0], tensor.shape[1]))


@documented(FILLED)
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weights of a convolution so that channels stay as they are.

    Parameters
    ----------
    groups : int

    Raises
    ------
    ValueError
        If it does not have 3 to 5 dimensions, or its first cannot be divided into so many groups.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.init.dirac_(tg.empty(2, 2, 3))[0]
    tensor([[0., 1., 0.],
            [0., 0., 0.]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values, of_group = np.zeros(tensor.shape), tensor.shape[0] // groups
    middle = tuple(length // 2 for length in tensor.shape[2:])
    for first in range(0, tensor.shape[0], of_group):
        for channel in range(min(of_group, tensor.shape[1])):
            values[(first + channel, channel, *middle)] = 1
    return _fill(tensor, values)


@documented(WITH_GENERATOR)
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with an orthogonal matrix, drawn uniformly (Saxe et al., arXiv:1312.6120; Mezzadri, math-ph/0609050).

    Parameters
    ----------
    gain : float
        A factor. Dimensions behind the first count as one.

    Raises
    ------
    ValueError
        If it has fewer than 2 dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> q = tg.nn.init.orthogonal_(tg.empty(2, 3))
    >>> tg.allclose(q @ q.t(), tg.eye(2))
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    drawn = numpy_generator(generator).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q *= np.sign(np.diag(r))
    return _fill(tensor, (gain * (q.T if rows < columns else q)).reshape(tensor.shape))


@documented(WITH_GENERATOR)
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, of which a share in each column is zero (Martens, 2010).

    Parameters
    ----------
    sparsity : float
        The share.
    std : float

    Raises
    ------
    ValueError
        If it has another number of dimensions than 2.

    Examples
    --------
    >>> import tapegrad as tg
    >>> (tg.nn.init.sparse_(tg.empty(4, 3), 0.5) == 0).sum(0)
    tensor([2, 2, 2])
    """
    _check_matrix(tensor)
    rng, (rows, columns) = numpy_generator(generator), tensor.shape
    values = rng.normal(0, std, tensor.shape)
    ranks = rng.random((rows, columns)).argsort(0)
    values[ranks < math.ceil(sparsity * rows)] = 0
    return _fill(tensor, values)

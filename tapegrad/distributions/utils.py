"""What programs import to write distributions of their own, with PyTorch's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.distributions.distribution import broadcast_all
from tapegrad.distributions.odds import clamp_probs, lazy
from tapegrad.nn.functional import softmax
from tapegrad.tensor import Tensor

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]  # fmt: skip


def lazy_property(wrapped: Callable[[Any], Any]) -> functools.cached_property[Any]:
    """Return a property that is computed when it is first asked for, with its gradient, and kept.

    Examples
    --------
    >>> from tapegrad.distributions.utils import lazy_property
    >>> class Square:
    ...     side = 3
    ...
    ...     @lazy_property
    ...     def area(self):
    ...         return self.side**2
    >>> Square().area
    9
    """
    return functools.cached_property(lazy(wrapped))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of log odds, or of logarithms of probabilities up to a constant.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import logits_to_probs
    >>> logits_to_probs(tg.zeros(2)), logits_to_probs(tg.zeros(1), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor([0.5000]))
    """
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log odds of probabilities, or their logarithms, finite also of 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import probs_to_logits
    >>> probs_to_logits(tg.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def _below(size: int, diagonal: int) -> Any:
    """Return the index of the elements of matrices on and below a diagonal, row by row."""
    return (..., *np.tril_indices(size, diagonal))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of matrices on and below a diagonal, row by row.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 3., 4.])
    """
    found: Tensor = mat[_below(mat.shape[-1], diag)]
    return found


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices with these elements on and below a diagonal, row by row.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(tg.tensor([1.0, 3.0, 4.0]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    count = vec.shape[-1]
    size = round(((1 + 8 * count) ** 0.5 - 1) / 2) - diag
    result: Tensor = vec.new_zeros((*vec.shape[:-1], size, size))
    result[_below(size, diag)] = vec
    return result

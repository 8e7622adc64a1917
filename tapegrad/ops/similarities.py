"""How alike vectors are: cosines, distances; and vectors of length 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.errors import broadcast_mismatch
from tapegrad.ops.arithmetic import add, div, mul, sub
from tapegrad.ops.broadcasting import broadcast_to
from tapegrad.ops.casts import cast
from tapegrad.ops.extremes import clamp_min
from tapegrad.ops.norms import norm_by_numpy, vector_norm
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.callers import into
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.promotion import promote
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.table.values import KINKS
from tapegrad.tape.layout import broadcast_shape
from tapegrad.tensor import Tensor

# Near 0 they are quotients by `eps`, whose second derivatives PyTorch has as nan.
AWAY_FROM_ZERO: Final = (*KINKS[:1], *KINKS[2:])


def _normalize_by_numpy(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return input / np.maximum(norm_by_numpy(input, p, dim, True), eps).astype(input.dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3),)), Sample(((3,),), {"p": 1.0, "dim": 0}), Sample(((2, 3, 2),), {"p": 3.0, "dim": -1})),
    _normalize_by_numpy,
    kinks=AWAY_FROM_ZERO,
)
def normalize(
    input: Any, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    r"""Divide vectors along a dimension by their norms, or by `eps` where a norm is less.

    Parameters
    ----------
    input : Tensor or array
    p : float
        Order of the norm.
    dim : int or tuple of int
    eps : float
    out : Tensor, optional
        To write the result to.

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Notes
    -----
    Derivative for `p` = 2: with the norm r, :math:`\bar x_i = \frac{1}{r} (\bar y_i - y_i \sum_j y_j \bar y_j)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.normalize(tg.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    if out is not None:
        return into(out, "normalize", normalize, (input, p, dim, eps))  # type: ignore[no-any-return]
    return div(input, clamp_min(vector_norm(input, p, dim, True), eps))


def _cosine_by_numpy(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    lengths = [np.maximum(norm_by_numpy(own, 2, dim), eps) for own in (x1, x2)]
    return ((x1 * x2).sum(dim) / lengths[0] / lengths[1]).astype(x1.dtype)


@public(namespaces=(TOP, FUNCTIONAL))
@composite(
    (Sample(((2, 3), (2, 3))), Sample(((3,), (3,)), {"dim": 0}), Sample(((2, 1, 3), (4, 3)), {"dim": -1, "eps": 0.5})),
    _cosine_by_numpy, real_only=True, kinks=AWAY_FROM_ZERO,
)  # fmt: skip
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Cosine of the angle between vectors along a dimension: :math:`x \cdot y / (\lVert x \rVert \lVert y \rVert)`.

    Parameters
    ----------
    x1, x2 : Tensor or array
        Of shapes that broadcast.
    dim : int
    eps : float
        Norms that are less count as this.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast, or the dtype is one of integers.
    IndexError
        If there is no such dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cosine_similarity(tg.tensor([1.0, 0.0]), tg.tensor([3.0, 4.0]), dim=0)
    tensor(0.6000)
    """
    x, y = as_operand(x1, "cosine_similarity", "x1", 1), as_operand(x2, "cosine_similarity", "x2", 2)
    if "c" in (x.dtype.kind, y.dtype.kind) or not (x._layout.floating or y._layout.floating):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {x.dtype} and {y.dtype} in "
            "cosine_similarity(); convert with .to(...) first"
        )
    if x.dtype != y.dtype:
        dtype = promote((x._layout, y._layout))
        x, y = cast(x, dtype), cast(y, dtype)
    if x.shape != y.shape:
        try:
            shape = broadcast_shape(x.shape, y.shape)
        except ValueError:
            raise broadcast_mismatch("cosine_similarity()", x.shape, y.shape) from None
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    units = [div(own, clamp_min(vector_norm(own, 2, dim, True), eps)) for own in (x, y)]  # whose products are finite
    return sum(mul(*units), dim)


def _pairwise_by_numpy(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return norm_by_numpy(x1 - x2 + eps, p, -1, keepdim)


@public(namespaces=(TOP, FUNCTIONAL))
@composite(
    (Sample(((2, 3), (2, 3))), Sample(((3,), (3,)), {"p": 1.0}), Sample(((2, 3), (3,)), {"p": 3.0, "keepdim": True})),
    _pairwise_by_numpy,
)
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    r"""Distances between vectors, along the last dimension.

    Formula: :math:`y = \|x_1 - x_2 + \epsilon\|_p`. Derivative: as of `vector_norm`.

    Parameters
    ----------
    x1, x2 : Tensor or array
        Of shapes that broadcast.
    p : float
        Order of the norm.
    eps : float
        Added to each difference, so that distances have derivatives.
    keepdim : bool
        Keep the last dimension, with length 1.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.pairwise_distance(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    result: Tensor = vector_norm(add(sub(x1, x2), eps), p, -1, keepdim)
    return result

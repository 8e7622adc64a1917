"""Losses that are 0 beyond a margin: of pairs, triplets and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import add, div, minimum, mul, sub
from tapegrad.ops.losses import REDUCTIONS, in_dtype_of, reduced
from tapegrad.ops.reductions import sum
from tapegrad.ops.shaped import shaped
from tapegrad.ops.similarities import pairwise_distance
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.transcendental import sqrt
from tapegrad.tensor import Tensor

_SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
_LABELS = np.array([1, -1, 1, -1])  # what has no derivative by them is no function of others
_ANY = np.array([0.5, 0.25, -2.0, 1.5])

# Pairs -------------------------------------------------------------------------------------------------

_hinge = shaped(  # the slope at the margin is that of clamp_min
    "hinge", {"margin": 10.0}, lambda x, y, margin: xp.where(margin - y * x < 0, 0.0, margin - y * x),
    (
        lambda ct, x, y, margin: xp.where(margin - y * x >= 0, -ct * y, 0.0),
        lambda ct, x, y, margin: xp.where(margin - y * x >= 0, -ct * x, 0.0),
    ),
    lambda x, y, margin: np.maximum(margin - y * x, 0), special={(10.0, 1.0): (-1.0, -10.0), (11.0, 1.0): (0.0, 0.0)},
    values=(_ANY, _SIGNS),
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS, of=_hinge)
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean") -> Tensor:
    r"""Which of two should be larger, by a margin: :math:`\max(0, m - y (x_1 - x_2))`.

    Parameters
    ----------
    input1, input2 : Tensor or array
    target : Tensor or array
        1 where `input1` should be larger, -1 where `input2` should be.
    margin : float

    Raises
    ------
    RuntimeError
        If the numbers of dimensions differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.margin_ranking_loss(tg.tensor([1.0]), tg.tensor([3.0]), tg.tensor([1.0]), margin=0.5)
    tensor(2.5000)
    """
    shapes = [list(shape_of(own)) for own in (input1, input2, target)]
    if len({len(shape) for shape in shapes}) > 1:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {shapes[0]}, input2: {shapes[1]}, target: {shapes[2]} "
        )
    return reduced("margin_ranking_loss", _hinge(sub(input1, input2), target, margin), reduction)


def _hinge_embedding(x: Any, y: Any, margin: Any) -> Any:
    return xp.where(y != 1, xp.where(margin - x < 0, 0.0, margin - x), 0.0) + xp.where(y != -1, x, 0.0)


_hinge_embedding_loss = shaped(
    "hinge_embedding", {"margin": 1.0}, _hinge_embedding,
    (
        lambda ct, x, y, margin: xp.where(y != -1, ct, 0.0) - xp.where((y != 1) & (margin - x >= 0), ct, 0.0),
        lambda ct: xp.where(ct == ct, 0.0, 0.0),
    ),
    lambda x, y, margin: np.where(y == 1, 0, np.maximum(margin - x, 0)) + np.where(y == -1, 0, x),
    special={(1.0, -1.0): (-1.0, 0.0), (2.0, -1.0): (0.0, 0.0), (2.0, 1.0): (1.0, 0.0)}, values=(_ANY, _LABELS),
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_hinge_embedding_loss)
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    r"""Distances of pairs that are alike, and :math:`\max(0, m - x)` for distances of pairs that are not.

    Parameters
    ----------
    target : Tensor or array
        1 for pairs that are alike, -1 for those that are not.
    margin : float

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.hinge_embedding_loss(tg.tensor([0.5, 0.75]), tg.tensor([1.0, -1.0]))
    tensor(0.3750)
    """
    return reduced("hinge_embedding_loss", _hinge_embedding_loss(input, target, margin), reduction)


_soft_margin = shaped(
    "soft_margin", {}, lambda x, y: xp.softplus(-y * x),
    (lambda ct, x, y: -ct * (y * xp.sigmoid(-y * x)), lambda ct, x, y: -ct * (x * xp.sigmoid(-y * x))),
    lambda x, y: np.logaddexp(np.zeros_like(x), -x * y), special={(0.0, 1.0): (-0.5, 0.0)},
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_soft_margin)
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    r"""Logistic loss :math:`\log(1 + e^{-y x})` of scores with the signs that they should have.

    Parameters
    ----------
    target : Tensor or array
        1 or -1.

    Notes
    -----
    Derivative: :math:`-y \sigma(-y x)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.soft_margin_loss(tg.tensor([0.0, -1000.0]), tg.tensor([1.0, 1.0]))
    tensor(500.3466)
    """
    return reduced("soft_margin_loss", in_dtype_of(input, _soft_margin(input, target)), reduction)


_cosine_embedding = shaped(
    "cosine_embedding", {"margin": 0.125},
    lambda x, y, margin: xp.where(y == 1, 1 - x, xp.where((y != -1) | (x - margin <= 0), 0.0, x - margin)),
    (
        lambda ct, x, y, margin: xp.where(y == 1, -ct, xp.where((y == -1) & (x - margin >= 0), ct, 0.0)),
        lambda ct: xp.where(ct == ct, 0.0, 0.0),
    ),
    lambda x, y, margin: np.where(y == 1, 1 - x, np.where(y == -1, np.maximum(x - margin, 0), 0)),
    special={(0.5, 1.0): (-1.0, 0.0), (0.125, -1.0): (1.0, 0.0), (0.0, -1.0): (0.0, 0.0)}, values=(_ANY, _LABELS),
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS, of=_cosine_embedding)
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean") -> Tensor:
    r"""Of vectors that are alike :math:`1 - \cos`, of those that are not :math:`\max(0, \cos - m)`.

    Parameters
    ----------
    input1, input2 : Tensor or array, (n, d) or (d,)
    target : Tensor or array, (n,) or ()
        1 for vectors that are alike, -1 for those that are not.
    margin : float

    Raises
    ------
    RuntimeError
        If the numbers of dimensions do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y = tg.tensor([[1.0, 0.0]]), tg.tensor([[3.0, 4.0]])
    >>> tg.nn.functional.cosine_embedding_loss(x, y, tg.tensor([1.0]))
    tensor(0.4000)
    """
    x, y = (
        as_operand(own, "cosine_embedding_loss", f"input{place}", place)
        for place, own in enumerate((input1, input2), 1)
    )
    goal = as_operand(target, "cosine_embedding_loss", "target", 3)
    if goal.ndim not in (0, 1) or x.ndim != goal.ndim + 1 or y.ndim != goal.ndim + 1:
        raise RuntimeError(
            f"{goal.ndim}D target tensor expects {goal.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(x.shape)} and {list(y.shape)}. cosine_embedding_loss() has a target for each vector."
        )
    sizes = mul(add(sum(mul(x, x), -1), 1e-12), add(sum(mul(y, y), -1), 1e-12))
    cosines = div(sum(mul(x, y), -1), sqrt(sizes))
    return reduced("cosine_embedding_loss", _cosine_embedding(cosines, goal, margin), reduction)


# Triplets ----------------------------------------------------------------------------------------------


def _triplets(
    call: str, distance: Callable[[Any, Any], Tensor], anchor: Any, positive: Any, negative: Any, margin: float,
    swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    ndims = [len(shape_of(own)) for own in (anchor, positive, negative)]
    if len(set(ndims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {ndims[0]}D, positive {ndims[1]}D, and negative {ndims[2]}D inputs"
        )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}; {call}() is 0 beyond it")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; {call}() takes 'mean', 'sum' or 'none'")
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(call, _hinge(sub(far, distance(anchor, positive)), 1.0, margin), reduction)


def _triplets_by_numpy(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, swap: bool = False,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    def distance(x: Any, y: Any) -> Any:
        return (np.abs(x - y + 1e-6) ** p).sum(-1) ** (1 / p)

    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    loss = np.maximum(0, margin + distance(anchor, positive) - far).astype(anchor.real.dtype)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


_THREE = ((2, 3), (2, 3), (2, 3))


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS)
@composite(
    (Sample(_THREE), Sample(_THREE, {"swap": True, "margin": 5.0}), Sample(_THREE, {"p": 3.0, "reduction": "none"})),
    _triplets_by_numpy, real_only=True,
)  # fmt: skip
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""Loss of anchors that are not nearer to one vector than to another, by a margin: :math:`\max(0, m + d_+ - d_-)`.

    Parameters
    ----------
    anchor, positive, negative : Tensor or array, (n, d) or (d,)
        The vectors; those that should be near the anchor; and those that should be far.
    margin : float
    p, eps : float
        Of `pairwise_distance`.
    swap : bool
        Take the distance between `positive` and `negative` where that is less than the one between `anchor` and
        `negative`.

    Raises
    ------
    RuntimeError
        If the numbers of dimensions differ.

    Notes
    -----
    V. Balntas et al., "Learning shallow convolutional feature descriptors with triplet losses" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y, z = (tg.tensor([[value, 0.0]]) for value in (0.0, 3.0, 1.0))
    >>> tg.nn.functional.triplet_margin_loss(x, y, z)
    tensor(3.0000)
    """

    def distance(x: Any, y: Any) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplets("triplet_margin_loss", distance, anchor, positive, negative, margin, swap, reduction)


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS)
@composite(
    (Sample(_THREE), Sample(_THREE, {"swap": True, "margin": 5.0}), Sample(_THREE, {"reduction": "sum"})),
    _triplets_by_numpy, real_only=True,
)  # fmt: skip
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor or array
    distance_function : callable, optional
        From two of them to their distances; default `pairwise_distance`.
    margin, swap
        As in `triplet_margin_loss`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y, z = (tg.tensor([[value, 0.0]]) for value in (0.0, 3.0, 1.0))
    >>> tg.nn.functional.triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: abs(a - b).sum(-1))
    tensor(3.)
    """
    return _triplets(
        "triplet_margin_with_distance_loss", distance_function or pairwise_distance, anchor, positive, negative,
        margin, swap, reduction,
    )  # fmt: skip

"""Losses with a margin: of pairs, of triplets, and of the right class against the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.nn.modules.loss import Loss
from tapegrad.nn.modules.shaping import PairwiseDistance

__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip


class HingeEmbeddingLoss(Loss, function="hinge_embedding_loss"):
    """`hinge_embedding_loss` of distances of pairs that are alike or not.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.HingeEmbeddingLoss()(tg.tensor([0.5, 0.2]), tg.tensor([1.0, -1.0]))
    tensor(0.6500)
    """

    margin: float = 1.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class CosineEmbeddingLoss(Loss, function="cosine_embedding_loss"):
    """`cosine_embedding_loss` of pairs of vectors that are alike or not.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x, y = tg.tensor([[1.0, 0.0]]), tg.tensor([[1.0, 1.0]])
    >>> tg.nn.CosineEmbeddingLoss()(x, y, tg.tensor([1.0]))
    tensor(0.2929)
    """

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MarginRankingLoss(Loss, function="margin_ranking_loss"):
    """`margin_ranking_loss`: which of two scores should be larger.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MarginRankingLoss()(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 1.0]), tg.tensor([1.0, 1.0]))
    tensor(1.)
    """

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MultiMarginLoss(Loss, function="multi_margin_loss"):
    """`multi_margin_loss`: the score of the right class should be larger than the others, by a margin.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MultiMarginLoss()(tg.tensor([[0.1, 0.2, 0.9]]), tg.tensor([2]))
    tensor(0.1667)
    """

    p: int = 1
    margin: float = 1.0
    weight: Any = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class TripletMarginLoss(Loss, function="triplet_margin_loss"):
    """`triplet_margin_loss`: anchors that are to be nearer to one than to another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> anchor, near, far = tg.tensor([[0.0, 0.0]]), tg.tensor([[1.0, 0.0]]), tg.tensor([[0.0, 1.5]])
    >>> tg.nn.TripletMarginLoss()(anchor, near, far)
    tensor(0.5000)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(Loss, function="triplet_margin_with_distance_loss"):
    """`triplet_margin_with_distance_loss`: the same with any distance.

    Examples
    --------
    >>> import tapegrad as tg
    >>> loss = tg.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(tg.tensor([[0.0, 0.0]]), tg.tensor([[1.0, 0.0]]), tg.tensor([[1.0, 0.5]]))
    tensor(0.5000)
    """

    distance_function: Callable[[Any, Any], Any] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _setup(self) -> None:
        super()._setup()
        if self.margin <= 0:
            raise ValueError(f"{self._get_name()}: expected margin to be greater than 0, got {self.margin} instead")
        self.distance_function = self.__dict__.pop("distance_function") or PairwiseDistance()

"""Losses: how far results are from targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.members import BUFFER
from tapegrad.nn.modules.shaping import PairwiseDistance
from tapegrad.ops.table.callers import OLDER_NAMES, reduction_of

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Layer, show=""):
    """A loss whose `weight` and `pos_weight` are buffers. PyTorch's older arguments stand for a `reduction`."""

    def _setup(self) -> None:
        own = self.__dict__
        older = [own.pop(name, None) for name in OLDER_NAMES["reduction"]]
        if older.count(None) < len(older):
            self.reduction = reduction_of(older, 4)
        for name in ("weight", "pos_weight"):
            if name in self._fields:
                self._register(name, own[name], BUFFER)


class _Elements(_Loss):
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class _Weighted(_Loss):
    weight: Any = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class _OfClasses(_Loss):
    weight: Any = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"


class L1Loss(_Elements, function="l1_loss"):
    """`l1_loss`: absolute values of the differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.L1Loss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(1.)
    """


class MSELoss(_Elements, function="mse_loss"):
    """`mse_loss`: squares of the differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MSELoss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(2.)
    """


class KLDivLoss(_Elements, function="kl_div"):
    """`kl_div`: the Kullback-Leibler divergence of a distribution from a target.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.KLDivLoss(reduction="sum")(tg.log(tg.tensor([0.5, 0.5])), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    log_target: bool = False


class SmoothL1Loss(_Elements, function="smooth_l1_loss"):
    """`smooth_l1_loss`: squares of small differences, absolute values of large ones."""

    beta: float = 1.0


class HuberLoss(_Loss, function="huber_loss"):
    """`huber_loss`: squares of small differences, absolute values of large ones.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.HuberLoss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    reduction: str = "mean"
    delta: float = 1.0


class SoftMarginLoss(_Elements, function="soft_margin_loss"):
    """`soft_margin_loss`: the logistic loss of scores and signs."""


class MultiLabelMarginLoss(_Elements, function="multilabel_margin_loss"):
    """`multilabel_margin_loss`: scores of the right classes should be larger than those of others."""


class NLLLoss(_OfClasses, function="nll_loss"):
    """`nll_loss`: the negative logarithm of the probability of the right class.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.NLLLoss()(tg.tensor([[-0.5, -1.0]]), tg.tensor([1]))
    tensor(1.)
    """


class NLLLoss2d(NLLLoss):
    """`nll_loss`, under its older name for images."""


class CrossEntropyLoss(_OfClasses, function="cross_entropy"):
    """`cross_entropy` of scores and classes, or probabilities of classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CrossEntropyLoss()(tg.tensor([[0.0, 0.0]]), tg.tensor([1]))
    tensor(0.6931)
    """

    label_smoothing: float = 0.0


class BCELoss(_Weighted, function="binary_cross_entropy"):
    """`binary_cross_entropy` of probabilities.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BCELoss()(tg.tensor([0.5, 0.5]), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """


class BCEWithLogitsLoss(_Weighted, function="binary_cross_entropy_with_logits"):
    """`binary_cross_entropy_with_logits`, of scores.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BCEWithLogitsLoss()(tg.tensor([0.0, 0.0]), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    pos_weight: Any = None


class MultiLabelSoftMarginLoss(_Weighted, function="multilabel_soft_margin_loss"):
    """`multilabel_soft_margin_loss` of items that may be of several classes."""


class PoissonNLLLoss(_Loss, function="poisson_nll_loss"):
    """`poisson_nll_loss`: counts and the logarithms of their means."""

    log_input: bool = True
    full: bool = False
    size_average: bool | None = None
    eps: float = 1e-8
    reduce: bool | None = None
    reduction: str = "mean"


class GaussianNLLLoss(_Loss, function="gaussian_nll_loss"):
    """`gaussian_nll_loss`: measurements with means and variances."""

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


class HingeEmbeddingLoss(_Loss, function="hinge_embedding_loss"):
    """`hinge_embedding_loss` of distances of pairs that are alike or not."""

    margin: float = 1.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class CosineEmbeddingLoss(_Loss, function="cosine_embedding_loss"):
    """`cosine_embedding_loss` of pairs of vectors that are alike or not."""

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MarginRankingLoss(_Loss, function="margin_ranking_loss"):
    """`margin_ranking_loss`: which of two scores should be larger."""

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MultiMarginLoss(_Loss, function="multi_margin_loss"):
    """`multi_margin_loss`: the score of the right class should be larger than the others, by a margin."""

    p: int = 1
    margin: float = 1.0
    weight: Any = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class TripletMarginLoss(_Loss, function="triplet_margin_loss"):
    """`triplet_margin_loss`: anchors that are to be nearer to one than to another."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(_Loss, function="triplet_margin_with_distance_loss"):
    """`triplet_margin_with_distance_loss`: the same with any distance."""

    distance_function: Callable[[Any, Any], Any] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _setup(self) -> None:
        super()._setup()
        if self.margin <= 0:
            raise ValueError(f"{self._get_name()}: expected margin to be greater than 0, got {self.margin} instead")
        self.distance_function = self.__dict__.pop("distance_function") or PairwiseDistance()


class CTCLoss(_Loss, function="ctc_loss"):
    """`ctc_loss`: sequences of classes, over all ways to align them with the steps."""

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

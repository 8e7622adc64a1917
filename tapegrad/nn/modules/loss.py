"""Losses: how far results are from targets."""

from __future__ import annotations

from typing import Any

from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.members import BUFFER
from tapegrad.ops.table.callers import OLDER_NAMES, reduction_of

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HuberLoss", "KLDivLoss",
    "L1Loss", "MSELoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss",
]  # fmt: skip


class Loss(Layer, show=""):
    """A loss whose `weight` and `pos_weight` are buffers. PyTorch's older arguments stand for a `reduction`."""

    def _setup(self) -> None:
        own = self.__dict__
        older = [own.pop(name, None) for name in OLDER_NAMES["reduction"]]
        if older.count(None) < len(older):
            self.reduction = reduction_of(older, 4)
        for name in ("weight", "pos_weight"):
            if name in self._fields:
                self._register(name, own[name], BUFFER)


# The next two have PyTorch's names: programs derive their own losses from them.
class _Loss(Loss):
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class _WeightedLoss(Loss):
    weight: Any = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class _OfClasses(Loss):
    weight: Any = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"


class L1Loss(_Loss, function="l1_loss"):
    """`l1_loss`: absolute values of the differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.L1Loss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(1.)
    """


class MSELoss(_Loss, function="mse_loss"):
    """`mse_loss`: squares of the differences.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MSELoss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(2.)
    """


class KLDivLoss(_Loss, function="kl_div"):
    """`kl_div`: the Kullback-Leibler divergence of a distribution from a target.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.KLDivLoss(reduction="sum")(tg.log(tg.tensor([0.5, 0.5])), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    log_target: bool = False


class SmoothL1Loss(_Loss, function="smooth_l1_loss"):
    """`smooth_l1_loss`: squares of small differences, absolute values of large ones.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.SmoothL1Loss()(tg.tensor([1.0, 2.0]), tg.tensor([1.5, 5.0]))
    tensor(1.3125)
    """

    beta: float = 1.0


class HuberLoss(Loss, function="huber_loss"):
    """`huber_loss`: squares of small differences, absolute values of large ones.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.HuberLoss()(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def _setup(self) -> None:
        if not isinstance(self.delta, (int, float)):
            raise TypeError(f"delta must be a float or int, got: {type(self.delta)}")
        super()._setup()


class SoftMarginLoss(_Loss, function="soft_margin_loss"):
    """`soft_margin_loss`: the logistic loss of scores and signs.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.SoftMarginLoss()(tg.tensor([2.0, -1.0]), tg.tensor([1.0, -1.0]))
    tensor(0.2201)
    """


class MultiLabelMarginLoss(_Loss, function="multilabel_margin_loss"):
    """`multilabel_margin_loss`: scores of the right classes should be larger than those of others.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MultiLabelMarginLoss()(tg.tensor([0.1, 0.2, 0.4]), tg.tensor([2, -1, 0]))  # -1 ends the list
    tensor(0.5000)
    """


class NLLLoss(_OfClasses, function="nll_loss"):
    """`nll_loss`: the negative logarithm of the probability of the right class.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.NLLLoss()(tg.tensor([[-0.5, -1.0]]), tg.tensor([1]))
    tensor(1.)
    """


class NLLLoss2d(NLLLoss):
    """`nll_loss`, under its older name for images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.NLLLoss2d()(tg.log(tg.full((1, 2, 2, 2), 0.5)), tg.zeros(1, 2, 2, dtype=tg.int64))
    tensor(0.6931)
    """


class CrossEntropyLoss(_OfClasses, function="cross_entropy"):
    """`cross_entropy` of scores and classes, or probabilities of classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CrossEntropyLoss()(tg.tensor([[0.0, 0.0]]), tg.tensor([1]))
    tensor(0.6931)
    """

    label_smoothing: float = 0.0


class BCELoss(_WeightedLoss, function="binary_cross_entropy"):
    """`binary_cross_entropy` of probabilities.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BCELoss()(tg.tensor([0.5, 0.5]), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """


class BCEWithLogitsLoss(_WeightedLoss, function="binary_cross_entropy_with_logits"):
    """`binary_cross_entropy_with_logits`, of scores.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.BCEWithLogitsLoss()(tg.tensor([0.0, 0.0]), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    pos_weight: Any = None


class MultiLabelSoftMarginLoss(_WeightedLoss, function="multilabel_soft_margin_loss"):
    """`multilabel_soft_margin_loss` of items that may be of several classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MultiLabelSoftMarginLoss()(tg.tensor([[1.0, -2.0]]), tg.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """


class PoissonNLLLoss(Loss, function="poisson_nll_loss"):
    """`poisson_nll_loss`: counts and the logarithms of their means.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.PoissonNLLLoss()(tg.tensor([0.0, 1.0]), tg.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    log_input: bool = True
    full: bool = False
    size_average: bool | None = None
    eps: float = 1e-8
    reduce: bool | None = None
    reduction: str = "mean"


class GaussianNLLLoss(Loss, function="gaussian_nll_loss"):
    """`gaussian_nll_loss`: measurements with means and variances.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.GaussianNLLLoss()(tg.tensor([1.0]), tg.tensor([3.0]), tg.tensor([4.0]))
    tensor(1.1931)
    """

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


class CTCLoss(Loss, function="ctc_loss"):
    """`ctc_loss`: sequences of classes, over all ways to align them with the steps.

    Examples
    --------
    >>> import tapegrad as tg
    >>> log_probs = tg.log(tg.full((4, 1, 3), 1 / 3))  # 4 times, a batch of 1, 3 classes, of which 0 is the blank
    >>> tg.nn.CTCLoss()(log_probs, tg.tensor([[1, 2]]), tg.tensor([4]), tg.tensor([2]))
    tensor(0.8432)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

"""Losses that are negative logarithms of probabilities: of truth values, counts and measurements; and divergences."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.arithmetic import add, div, mul, sub, where
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.losses import REDUCTIONS, reduced
from tapegrad.ops.reductions import mean
from tapegrad.ops.shaped import shaped
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import as_operand, shape_of, values_of
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.promotion import check_same, one_dtype, only_floats
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.transcendental import log
from tapegrad.tensor import Tensor

# Truth values ------------------------------------------------------------------------------------------


def _bce(x: Any, y: Any) -> Any:
    yes, no = xp.log(x), xp.log1p(-x)
    return (y - 1) * xp.where(no < -100, -100.0, no) - y * xp.where(yes < -100, -100.0, yes)


def _bce_target_rule(ct: Any, x: Any) -> Any:
    yes, no = xp.log(x), xp.log1p(-x)
    return ct * (xp.where(no < -100, -100.0, no) - xp.where(yes < -100, -100.0, yes))


def _bce_input_rule(ct: Any, x: Any, y: Any) -> Any:
    product = x * (1 - x)
    return ct * (x - y) / xp.where(product < 1e-12, 1e-12, product)


def _bce_by_numpy(x: Any, y: Any) -> Any:
    yes, no = np.log(x), np.log1p(-x)
    return (y - 1) * np.where(no < -100, -100, no) - y * np.where(yes < -100, -100, yes)


_binary_cross_entropy = shaped(
    "binary_cross_entropy", {}, _bce, (_bce_input_rule, _bce_target_rule), _bce_by_numpy,
    special={(0.5, 0.5): (0.0, 0.0), (0.5, 1.0): (-2.0, 0.0), (1.0, 1.0): (0.0, -100.0)}, domain=(0.05, 0.95),
    check_dtypes=one_dtype(partial(check_same, "Found dtype {1} but expected {0}"), only_floats("cross entropy")),
)  # fmt: skip


def _check_same_shape(call: str, input: Any, target: Any) -> None:
    shapes = shape_of(target), shape_of(input)
    if shapes[0] != shapes[1]:
        first = f"Using a target size ({list(shapes[0])}) that is different to the input size ({list(shapes[1])}) is "
        first += "deprecated. Please ensure they have the same size. "
        if call.endswith("logits"):
            first = ""
        raise ValueError(
            f"{first}Target size ({list(shapes[0])}) must be the same as input size ({list(shapes[1])}) in {call}()"
        )


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_binary_cross_entropy)
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    r"""Cross entropy of probabilities :math:`p` with truth values :math:`y`: :math:`-y \log p - (1 - y) \log(1 - p)`.

    Parameters
    ----------
    weight : Tensor or array, optional
        Of each element; broadcast.

    Raises
    ------
    ValueError
        If the shapes differ.
    RuntimeError
        If a probability is outside of 0 to 1. (Compiled functions give nan.)

    Notes
    -----
    Logarithms are at least -100. Derivative: :math:`(p - y)/(p (1 - p))`, of
    which the denominator is at least :math:`10^{-12}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.binary_cross_entropy(tg.tensor([0.5, 0.5]), tg.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    _check_same_shape("binary_cross_entropy", input, target)
    loss = _binary_cross_entropy(input, target)
    result = reduced("binary_cross_entropy", loss if weight is None else mul(loss, weight), reduction)
    if not modes.mode.value & modes.INTERCEPTORS and np.isnan(result._data).any():
        _check_probabilities(as_operand(input, "binary_cross_entropy", "input", 1)._array())
    return result


def _check_probabilities(x: np.ndarray) -> None:
    if ((x < 0) | (x > 1)).any():
        raise RuntimeError(
            "all elements of input should be between 0 and 1; binary_cross_entropy() takes probabilities, got numbers "
            f"from {x.min()} to {x.max()}: use binary_cross_entropy_with_logits for scores"
        )


_bce_with_logits = shaped(
    "bce_with_logits", {}, lambda x, y, z: (1 - y) * x + (1 + (z - 1) * y) * xp.softplus(-x),
    (
        lambda ct, x, y, z: ct * ((1 - y) - (1 + (z - 1) * y) * xp.sigmoid(-x)),
        lambda ct, x, z: ct * ((z - 1) * xp.softplus(-x) - x),
        lambda ct, x, y: ct * (y * xp.softplus(-x)),
    ),
    lambda x, y, z: (1 - y) * x + (1 + (z - 1) * y) * np.logaddexp(-x, np.zeros_like(x)),
    special={(0.0, 1.0, 1.0): (-0.5, 0.0, math.log(2)), (0.0, 0.0, 3.0): (0.5, 2 * math.log(2), 0.0)},
    node_name="BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_bce_with_logits)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    r"""Cross entropy of the `sigmoid` of scores with truth values, computed so that nothing overflows.

    Parameters
    ----------
    weight : Tensor or array, optional
        Of each element; broadcast.
    pos_weight : Tensor or array, optional
        Of the truth values that are 1; broadcast.

    Raises
    ------
    ValueError
        If the shapes differ.

    Notes
    -----
    Derivative: :math:`\sigma(x) - y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.binary_cross_entropy_with_logits(tg.tensor([0.0, 1000.0]), tg.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    _check_same_shape("binary_cross_entropy_with_logits", input, target)
    loss = _bce_with_logits(input, target, 1.0 if pos_weight is None else pos_weight)
    loss = loss if weight is None else mul(loss, weight)
    return reduced("binary_cross_entropy_with_logits", loss, reduction)


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_bce_with_logits)
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Mean over the classes of `binary_cross_entropy_with_logits`: of items of which each may be of several classes.

    Parameters
    ----------
    weight : Tensor or array, optional
        Of the classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.multilabel_soft_margin_loss(tg.tensor([[0.0, 0.0]]), tg.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    loss = _bce_with_logits(input, target, 1.0)
    if not loss.ndim:
        raise IndexError(
            "Dimension specified as -1 but tensor has no dimensions; multilabel_soft_margin_loss needs one"
        )
    return reduced("multilabel_soft_margin_loss", mean(loss if weight is None else mul(loss, weight), -1), reduction)


# Divergences -------------------------------------------------------------------------------------------

_kl_div = shaped(
    "kl_div", {}, lambda x, y: xp.where(y == 0, 0.0, y * xp.log(xp.where(y == 0, 1.0, y))) - y * x,
    (lambda ct, y: -ct * y, lambda ct, x, y: ct * (xp.log(y) + y / y - x)),
    lambda x, y: np.where(y == 0, 0, y * np.log(np.where(y == 0, 1, y))) - y * x,
    special={(0.0, 1.0): (-1.0, 1.0), (0.0, 0.0): (0.0, np.nan)}, domain=(0.1, 2.0),
)  # fmt: skip
_kl_div_of_logs = shaped(
    "kl_div_of_logs", {}, lambda x, y: xp.exp(y) * (y - x),
    (lambda ct, y: -ct * xp.exp(y), lambda ct, x, y: ct * xp.exp(y) * (y - x + 1)), lambda x, y: (y - x) * np.exp(y),
    special={(0.0, 0.0): (-1.0, 1.0)}, node_name="KlDivBackward0", doc="`kl_div` with logarithms of targets.",
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_kl_div)
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    r"""Kullback-Leibler divergence of a distribution from a target: :math:`y (\log y - x)` for logarithms :math:`x`.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean" is the sum, divided by the length of the first dimension.
    log_target : bool
        Whether `target` has logarithms, too.

    Warns
    -----
    UserWarning
        For "mean", which divides by the number of elements: the divergence of distributions is "batchmean".

    Notes
    -----
    Derivative: :math:`-y`, and for `target` :math:`\log y + 1 - x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.kl_div(tg.log(tg.tensor([[0.5, 0.5]])), tg.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=2,
        )
    loss = (_kl_div_of_logs if log_target else _kl_div)(input, target)
    if reduction != "batchmean":
        return reduced("kl_div", loss, reduction)
    total, shape = reduced("kl_div", loss, "sum"), shape_of(input)
    return div(total, shape[0]) if shape else total


# Counts and measurements -------------------------------------------------------------------------------

_poisson_nll = shaped(
    "poisson_nll", {}, lambda x, y: xp.exp(x) - y * x,
    (lambda ct, x, y: ct * (xp.exp(x) - y), lambda ct, x: -ct * x), lambda x, y: -x * y + np.exp(x),
    special={(0.0, 1.0): (0.0, 0.0)},
)  # fmt: skip
_poisson_nll_of_rates = shaped(
    "poisson_nll_of_rates", {"eps": 0.125}, lambda x, y, eps: x - y * xp.log(x + eps),
    (lambda ct, x, y, eps: ct * (1 - y / (x + eps)), lambda ct, x, eps: -ct * xp.log(x + eps)),
    lambda x, y, eps: -y * np.log(x + eps) + x, special={(0.875, 1.0): (0.0, 0.0)}, domain=(0.1, 3.0),
    doc="`poisson_nll` of rates.",
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_poisson_nll)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    r"""Negative log-likelihood of counts with a Poisson distribution: :math:`e^x - y x` for logarithms of rates.

    Parameters
    ----------
    log_input : bool
        Whether `input` has the logarithms of the rates; else the loss is :math:`x - y \log(x + \epsilon)`.
    full : bool
        Add Stirling's approximation of :math:`\log y!`, where the count is above 1.
    eps : float
        Keeps the logarithm of a rate finite.

    Notes
    -----
    Derivative: :math:`e^x - y`; for rates, :math:`1 - y/(x + \epsilon)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.poisson_nll_loss(tg.tensor([0.0, 1.0]), tg.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    loss = _poisson_nll(input, target) if log_input else _poisson_nll_of_rates(input, target, eps)
    if full:
        above = target > 1
        count = where(above, target, 1.0)
        stirling = add(sub(mul(count, log(count)), count), mul(0.5, log(mul(2 * math.pi, count))))
        loss = add(loss, where(above, stirling, 0.0))
    return reduced("poisson_nll_loss", loss, reduction)


# Not a clamp: its derivative is 1 everywhere.
_floor_at = shaped(
    "floor_at", {"low": -4.0}, lambda x, low: xp.where(x < low, low, x), lambda ct: ct,
    lambda x, low: np.where(x < low, low, x), special={-5.0: 1.0, 1.0: 1.0},
    doc="Larger of two numbers, with the derivative 1 throughout.",
)  # fmt: skip
_gaussian_nll = shaped(
    "gaussian_nll", {}, lambda x, y, z: 0.5 * (xp.log(z) + (x - y) * (x - y) / z),
    (
        lambda ct, x, y, z: ct * ((x - y) / z),
        lambda ct, x, y, z: ct * ((y - x) / z),
        lambda ct, x, y, z: 0.5 * ct * (1 - (x - y) * (x - y) / z) / z,
    ),
    lambda x, y, z: (np.square(x - y) / z + np.log(z)) / 2, special={(2.0, 1.0, 1.0): (1.0, -1.0, 0.0)},
    domain=(0.1, 3.0),
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_gaussian_nll)
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    r"""Negative log-likelihood of measurements with a normal distribution: :math:`(\log v + (x - y)^2/v)/2`.

    Parameters
    ----------
    var : Tensor, array or number
        Variances: of the shape of `input`, or with a last dimension of length 1 or none.
    full : bool
        Add :math:`\log(2 \pi)/2`.
    eps : float
        Variances below are computed with as `eps`; their derivatives are those at `eps`.

    Raises
    ------
    ValueError
        If `var` is of another shape, or has negative numbers.

    Notes
    -----
    Derivative: :math:`(x - y)/v`, and for `var` :math:`(1 - (x - y)^2/v)/(2 v)`. D. A. Nix, A. S. Weigend, "Estimating
    the mean and variance of the target probability distribution" (1994).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.gaussian_nll_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]), tg.tensor([1.0, 2.0]))
    tensor(0.6733)
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid; gaussian_nll_loss() takes 'mean', 'sum' or 'none'")
    shape, of_var = shape_of(input), shape_of(var)
    if not isinstance(var, (int, float)) and of_var != shape:
        if of_var == shape[:-1]:
            var = unsqueeze(var, -1)
        elif len(of_var) != len(shape) or any(m not in (n, 1) for n, m in zip(shape, of_var, strict=True)):
            raise ValueError(f"var is of incorrect size {list(of_var)}; input has shape {list(shape)}")
    if not modes.is_traced() and (values_of(var, "gaussian_nll_loss", "var", 3) < 0).any():
        raise ValueError("var has negative entry/entries; a variance is not negative")
    loss = _gaussian_nll(input, target, _floor_at(var, eps))
    if full:
        loss = add(loss, 0.5 * math.log(2 * math.pi))
    return reduced("gaussian_nll_loss", loss, reduction)

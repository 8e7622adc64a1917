"""Composite: samples of categories that have a gradient."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from tapegrad.ops.along import softmax
from tapegrad.ops.arithmetic import add, div, sub
from tapegrad.ops.extrema import argmax
from tapegrad.ops.fill import zeros
from tapegrad.ops.generators import drawn, manual_seed
from tapegrad.ops.scatter import scatter
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor

# At this temperature the result does not depend on what is drawn.
_HOT = {"tau": math.inf}


def _seeded(function: Any, logits: Any, **options: Any) -> Any:
    manual_seed(0)
    return function(logits, **options)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3),), _HOT), Sample(((2, 3),), {"dim": 0} | _HOT)),
    lambda x, tau, dim=-1: np.full_like(x, 1 / x.shape[dim]), real_only=True, call=_seeded,
)  # fmt: skip
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    r"""Probabilities near to a category that is drawn: :math:`\operatorname{softmax}((x + g)/\tau)`.

    Parameters
    ----------
    logits : Tensor or array
        Logarithms of probabilities, or of multiples of them.
    tau : float
        The temperature: the lower, the nearer to 0 and 1.
    hard : bool
        Return 1 for the category that was drawn and 0 for others, with the gradient of the probabilities.
    eps : float
        Has no effect.
    dim : int
        Along which categories stand.

    Returns
    -------
    Tensor
        Of the shape of `logits`.

    Raises
    ------
    RuntimeError
        If `logits` are no floating numbers.
    IndexError
        If `logits` do not have such a dimension.

    Notes
    -----
    The g are drawn from the Gumbel distribution, :math:`-\log(-\log u)`. E. Jang, S. Gu and B. Poole, "Categorical
    reparameterization with Gumbel-softmax" (2017).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.gumbel_softmax(tg.tensor([0.0, 1000.0]), hard=True)
    tensor([0., 1.])
    """
    x = as_operand(logits, "gumbel_softmax", "logits", 1)
    if x.dtype.kind != "f":
        raise RuntimeError(f"Gumbel distribution is continuous: gumbel_softmax() takes floating numbers, not {x.dtype}")
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    place = one_dim("gumbel_softmax", x.ndim, dim)
    shape, dtype = x.shape, x.dtype
    noise = drawn(None, lambda rng: -np.log(rng.standard_exponential(shape)).astype(dtype))
    soft = softmax(div(add(x, noise), tau), place)
    if not hard:
        return soft
    chosen = scatter(zeros(x.shape, dtype=x.dtype), place, argmax(soft, place, True), value=1.0)
    return add(sub(chosen, soft.detach()), soft)

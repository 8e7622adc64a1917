"""Reductions and normalisations of the elements that a mask keeps, with the names of `torch.masked`.

What a mask leaves out counts as the number that changes nothing, such as 0 for sums. Where it leaves out all, this
number is the result; means and variances are nan there.
"""

from tapegrad.masked.normalisations import log_softmax, norm, normalize, softmax, softmin, std, var
from tapegrad.masked.reductions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logaddexp,
    logsumexp,
    mean,
    median,
    prod,
    sum,
)

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

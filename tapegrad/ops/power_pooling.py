"""Norms of windows of signals, images and volumes: composites of means of powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import abs, mul, neg, pow, where
from tapegrad.ops.pool_arguments import numbers
from tapegrad.ops.pooling import SHAPES, over_windows, pool_doc, publish_composite, windows_of
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, find
from tapegrad.tensor import Tensor

_PARAMETERS: Final = """\
norm_type : number
    The order p of the norm.
kernel_size : int or tuple of int
    Of the window.
stride : int or tuple of int, optional
    How far it moves; default its size.
ceil_mode : bool
    The last window may reach beyond the end."""


def _by_numpy(x: Any, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> Any:
    stride = kernel_size if stride is None else stride
    windows = [windows_of(n, kernel_size, stride, 0, 1, ceil_mode) for n in x.shape[2:]]
    if norm_type == np.inf:
        return over_windows(x, windows, lambda own: np.abs(own).max(-1))
    whole = kernel_size ** len(windows)  # PyTorch: a window that is not whole counts as if it were
    means = over_windows(x, windows, lambda own: (own**norm_type).mean(-1))
    return ((whole * means) ** (1 / norm_type)).astype(x.dtype)


def _function(n: int) -> None:
    """Make the function of `n` dimensions."""
    name = f"lp_pool{n}d"
    average, largest = (one.function for kind in ("avg", "max") if (one := find(FUNCTIONAL, f"{kind}_pool{n}d")))
    what = ("signals", "images", "volumes")[n - 1]

    def norms(
        input: Any,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        if math.isinf(norm_type):
            sizes = abs(input) if norm_type > 0 else neg(abs(input))
            found: Tensor = largest(sizes, kernel_size, stride, 0, 1, ceil_mode)
            return found if norm_type > 0 else neg(found)
        means = average(pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
        means = where(means == 0, 0.0, means)  # so that the slope is 0 where the norm is
        whole = math.prod(numbers(name, "kernel_size", kernel_size, n))
        return pow(mul(means, whole), 1.0 / norm_type)

    doc = pool_doc(
        name, n, f"Norm of each window of {what}: :math:`(\\sum x^p)^{{1/p}}`.", _PARAMETERS,
        ":math:`x^{p-1} / y^{p-1}` for a norm y. PyTorch's is that of a sum of powers, without absolute values.",
        2, 4.0, [1.0, 1.0],
    ).replace("(x, ", "(x, 1, ")  # fmt: skip
    options: list[dict[str, Any]] = [
        {"norm_type": 2, "kernel_size": 2},
        {"norm_type": 3.0, "kernel_size": 2, "stride": 1},
        {"norm_type": np.inf, "kernel_size": 2},
        {"norm_type": 2.5, "kernel_size": 2, "stride": 3, "ceil_mode": True},
    ]
    samples = [Sample((SHAPES[n],), own) for own in options]
    publish_composite(name, norms, doc, samples, _by_numpy, domain=(0.5, 3.0))


for _n in (1, 2, 3):
    _function(_n)

"""Activations that replace small elements: softshrink, hardshrink, threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.shaped import and_inplace, applied, shaped
from tapegrad.ops.table import docs
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.tensor import Tensor

_softshrink = shaped(
    "softshrink", {"lambd": 0.5},
    lambda x, lambd: xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0.0)),
    lambda ct, x, lambd: xp.flat_by(xp.where((x >= -lambd) & (x <= lambd), 0.0, ct), x),
    lambda x, lambd: np.where(
        x > lambd, x - lambd, np.where(x < -lambd, x + lambd, np.where(abs(x) < np.inf, 0, np.nan).astype(x.dtype))
    ),
    special={-0.5: 0.0, 0.5: 0.0, 0.0: 0.0, 1.0: 1.0},
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY, of=_softshrink)
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Move elements towards 0 by `lambd`, and those nearer than that to 0.

    Parameters
    ----------
    lambd : float

    Raises
    ------
    RuntimeError
        If `lambd` is negative.

    Notes
    -----
    Derivative: 0 from ``-lambd`` to ``lambd``, 1 elsewhere.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softshrink(tg.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if not lambd >= 0:
        raise RuntimeError(f"lambda must be in range [0, inf], but found {lambd:g} in softshrink()")
    return _softshrink(input, lambd)


_hardshrink = shaped(
    "hardshrink", {"lambd": 0.5}, lambda x, lambd: xp.where((x >= -lambd) & (x <= lambd), 0.0, x),
    lambda ct, x, lambd: xp.flat_by(xp.where((x >= -lambd) & (x <= lambd), 0.0, ct), x),
    lambda x, lambd: np.where((x < -lambd) | (x > lambd) | np.isnan(x) | np.isnan(lambd), x, 0),
    special={-0.5: 0.0, 0.5: 0.0, 0.0: 0.0, 1.0: 1.0},
)  # fmt: skip


@public(namespaces=(TOP, FUNCTIONAL), method=True, common=docs.UNARY, of=_hardshrink)
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Replace elements from ``-lambd`` to `lambd` by 0.

    Parameters
    ----------
    lambd : float

    Notes
    -----
    Derivative: 0 from ``-lambd`` to `lambd`, 1 elsewhere.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.hardshrink(tg.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return _hardshrink(input, lambd)


_threshold = shaped(
    "threshold", {"threshold": 0.5, "value": 2.0}, lambda x, threshold, value: xp.where(x <= threshold, value, x),
    lambda ct, x, threshold: xp.flat_by(xp.where(x <= threshold, 0.0, ct), x),
    lambda x, threshold, value: np.where((x > threshold) | np.isnan(x) | np.isnan(threshold), x, value),
    special={0.5: 0.0, 1.0: 1.0}, takes_integers=True,
)  # fmt: skip


@and_inplace
@public(namespaces=(TOP, FUNCTIONAL), common=docs.ACTIVATION, of=_threshold)
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replace elements that are not above `threshold` by `value`.

    Parameters
    ----------
    threshold, value : float

    Notes
    -----
    Derivative: 1 above `threshold`, 0 elsewhere. Of integers both numbers are cut to integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.threshold(tg.tensor([-1.0, 0.5, 2.0]), 0.5, 20.0)
    tensor([20., 20.,  2.])
    """
    if not (isinstance(input, Tensor) and input._layout.floating):
        input = as_operand(input, "threshold", "input", 1)
        if input.dtype.kind in "iu":
            threshold, value = int(threshold), int(value)
    return applied(inplace, _threshold, input, threshold, value)

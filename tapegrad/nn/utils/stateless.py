"""The older name of `tapegrad.func.functional_call`."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.func import functional_call as _call

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters, as `tapegrad.func.functional_call` does.

    Warns
    -----
    FutureWarning

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(2, 1)
    >>> params = {"weight": tg.ones(1, 2), "bias": tg.zeros(1)}
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     y = tg.nn.utils.stateless.functional_call(layer, params, tg.ones(3, 2))
    >>> y.shape
    (3, 1)
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)

"""NumPy's functions that PyTorch has under other names, with other arguments, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.strided import unfold
from tapegrad.tensor import Tensor


def _refuse(name: str, **options: Any) -> None:
    given = [f"{key}=" for key, value in options.items() if value is not None and value is not False]
    if given:
        raise TypeError(f"np.{name} does not work on tensors with {', '.join(given)}; leave it away")


# Other arrangements ------------------------------------------------------------------------------------------------


def _windows(x: Tensor, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Tensor:
    """Return views of all windows: where they begin, and along new last dimensions their elements."""
    _refuse("lib.stride_tricks.sliding_window_view", writeable=writeable)
    lengths = tuple(np.atleast_1d(window_shape).tolist())
    dims = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if len(lengths) != len(dims):
        raise ValueError(f"sliding_window_view() got {len(lengths)} lengths of windows for {len(dims)} dimensions")
    places = [dim + x.ndim if dim < 0 else dim for dim in dims]  # the windows' dimensions come last
    for place, length in zip(places, lengths, strict=True):
        x = unfold(x, place, length, 1)
    return x


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.lib.stride_tricks.sliding_window_view: _windows,
}

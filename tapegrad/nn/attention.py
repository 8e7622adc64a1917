"""`sdpa_kernel`: which code computes attention in PyTorch. There is one here, so nothing is to choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """PyTorch's kinds of code for attention.

    Examples
    --------
    >>> from tapegrad.nn.attention import SDPBackend
    >>> SDPBackend.MATH.value
    0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Return a context in which attention is computed as outside of it.

    Parameters
    ----------
    backends : SDPBackend or list of SDPBackend
        Has no effect.
    set_priority : bool
        Has no effect.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.attention import SDPBackend, sdpa_kernel
    >>> query = tg.ones(1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     tg.nn.functional.scaled_dot_product_attention(query, query, query).shape
    (1, 2, 4)
    """
    yield

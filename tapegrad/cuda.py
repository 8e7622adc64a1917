"""What programs ask of CUDA before they use it: there is none."""

from __future__ import annotations

from typing import Any

from tapegrad.devices import not_here

__all__ = ["current_device", "device_count", "empty_cache", "get_device_name", "is_available", "manual_seed",
           "manual_seed_all", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """Return False.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.is_available(), tg.cuda.device_count()
    (False, 0)
    """
    return False


def device_count() -> int:
    """Return 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing, as PyTorch does without a GPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.manual_seed(0)
    """


def manual_seed_all(seed: int) -> None:
    """Do nothing, as PyTorch does without a GPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.manual_seed_all(0)
    """


def empty_cache() -> None:
    """Do nothing, as PyTorch does without a GPU; `tapegrad.empty_cache` is for the memory of the CPU.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.empty_cache()
    """


def synchronize(device: Any = None) -> None:
    """Raise PyTorch's error.

    Examples
    --------
    >>> import tapegrad as tg
    >>> try:
    ...     tg.cuda.synchronize()
    ... except Exception as error:
    ...     print(type(error).__name__)
    AssertionError
    """
    raise not_here("cuda")


def current_device() -> int:
    """Raise PyTorch's error.

    Examples
    --------
    >>> import tapegrad as tg
    >>> try:
    ...     tg.cuda.current_device()
    ... except Exception as error:
    ...     print(type(error).__name__)
    AssertionError
    """
    raise not_here("cuda")


def get_device_name(device: Any = None) -> str:
    """Raise PyTorch's error.

    Examples
    --------
    >>> import tapegrad as tg
    >>> try:
    ...     tg.cuda.get_device_name()
    ... except Exception as error:
    ...     print(type(error).__name__)
    AssertionError
    """
    raise not_here("cuda")

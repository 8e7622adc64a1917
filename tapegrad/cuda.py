"""What programs ask of CUDA before they use it: there is none."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from tapegrad.devices import not_here

__all__ = ["current_device", "device_count", "empty_cache", "get_device_name", "is_available",
           "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
           "max_memory_reserved", "memory_allocated", "memory_reserved", "synchronize"]  # fmt: skip

__path__: list[str] = []  # so that import statements look for tapegrad.cuda.amp: see runtime/module_names.py


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


def memory_allocated(device: Any = None) -> int:
    """Return 0; `tapegrad.memory_allocated` is for the memory of the CPU."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated
is_initialized = is_available


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cuda.is_bf16_supported()
    False
    """
    return False


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


def __getattr__(name: str) -> Any:
    if name == "amp":  # PyTorch's older place of it, where the device goes without saying
        from tapegrad.amp import GradScaler, autocast

        return SimpleNamespace(autocast=partial(autocast, "cuda"), GradScaler=partial(GradScaler, "cuda"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

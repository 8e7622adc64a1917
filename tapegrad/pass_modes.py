"""Further modes of a thread: inference mode; strong zeros and anomaly mode, in which passes call rules from Python."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import Final

from tapegrad import modes


class _Local(threading.local):
    checks: bool | None = None
    inference = False
    tracing = False


_local: Final = _Local()


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in `inference_mode`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.inference_mode():
    ...     print(tg.is_inference_mode_enabled())
    True
    """
    return _local.inference


def set_inference(enabled: bool) -> None:
    """Note that this thread is in inference mode, or not."""
    _local.inference = enabled


def calls_rules() -> bool:
    """Whether passes of this thread call all rules from Python: for strong zeros, in anomaly mode, and to be traced."""
    return bool(modes.mode.value & modes.PASS_MODES) and (
        modes.thread.strong_zero or _local.checks is not None or _local.tracing
    )


def is_tracing() -> bool:
    """Whether this thread traces a function."""
    return _local.tracing


def checks() -> bool | None:
    """Whether passes of this thread look for nan; None outside of anomaly mode."""
    return _local.checks


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode: see `tapegrad.autograd.detect_anomaly`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_anomaly_enabled()
    False
    """
    return checks() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for nan.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_anomaly_check_nan_enabled()
    True
    """
    return checks() is not False


def set_checks(check_nan: bool | None) -> None:
    """Let passes of this thread look for nan, or say only where errors come from; None: neither."""
    _local.checks = check_nan
    modes.note_pass_mode()


def is_strong_zero() -> bool:
    """Whether a cotangent that is zero stays zero in this thread's passes: see `strong_zero`."""
    return modes.thread.strong_zero


def set_strong_zero(mode: bool) -> None:
    """Let a cotangent that is zero stay zero, or not, in the passes of this thread: see `strong_zero`."""
    modes.switch_strong_zero(bool(mode))


@contextlib.contextmanager
def tracing() -> Generator[None, None, None]:
    """Let the passes of this thread call rules, whose operations can be traced, in a ``with`` block."""
    before = _local.tracing
    modes.note_pass_mode()
    try:
        _local.tracing = True
        yield
    finally:
        _local.tracing = before


class strong_zero(contextlib.ContextDecorator):
    """Let a cotangent that is exactly zero stay zero, also where the slope is infinite or nan.

    In ``where(x > 0, sqrt(x), 0.0)`` the branch that is not chosen gets the cotangent 0, and 0 times an infinite slope
    is nan. In this mode it is 0, in all elementwise operations, for passes of this thread. Tangents are not changed.

    Parameters
    ----------
    mode : bool

    Notes
    -----
    Off by default: PyTorch has no such mode. A pass in this mode calls the rules of all entries from Python, so
    it is slower than an ordinary pass, most of all on small arrays. Recording costs the same. A compiled function that
    is called in this mode runs operation by operation. One that enters the mode itself is compiled with it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([0.0, 4.0], requires_grad=True)
    >>> with tg.autograd.strong_zero():
    ...     tg.where(x > 0, tg.sqrt(x), 0.0).sum().backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(is_strong_zero())
        set_strong_zero(self.mode)

    def __exit__(self, *_: object) -> None:
        set_strong_zero(self.before.pop())


def weak_zeros() -> contextlib.AbstractContextManager[None]:
    """Leave the mode of strong zeros, for a pass whose cotangents are zeros of which only the graph counts."""
    return strong_zero(False) if is_strong_zero() else contextlib.nullcontext()

"""Anomaly mode: where a nan of a backward pass, or an error of it, comes from in the program."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.autograd.observing import Observer
from tapegrad.ops.table.op import Bound, Op
from tapegrad.pass_modes import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_checks
from tapegrad.tape import traces, versions
from tapegrad.tape.entries import TapeNode

__all__ = ["detect_anomaly", "set_anomaly_enabled", "set_detect_anomaly"]

_observers: list[Observer] = []


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off; see `detect_anomaly`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     print(tg.is_anomaly_enabled())
    True
    """
    was_enabled = is_anomaly_enabled()
    set_checks(check_nan if enabled else None)
    if enabled and not was_enabled:
        observer = Observer(_note)
        observer.__enter__()
        _observers.append(observer)
        versions.on_write = traces.note_write
    elif was_enabled and not enabled:
        _observers.pop().__exit__()
        if not _observers:
            versions.on_write = None


def _note(_op: Op, _bound: Bound, node: TapeNode) -> None:
    traces.note_call(node)


class set_detect_anomaly:
    """Switch anomaly mode on or off at once. As a context manager, restore the previous mode on exit.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Raise an error where a backward pass makes a nan.

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     print(tg.is_anomaly_enabled())
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        set_anomaly_enabled(*self._before)


class detect_anomaly:
    """Find the operation that makes a nan in a backward pass, or whose derivative fails: a context manager.

    Operations in the block note where they are called. A backward pass in the block raises at the first nan, and warns
    with the line of the operation's call. If a saved tensor was written to, the error has the lines of both.

    Parameters
    ----------
    check_nan : bool
        Raise an error where a backward pass makes a nan.

    Notes
    -----
    The mode belongs to the thread. It is slow: each operation walks the stack, and passes call all rules from Python.

    Examples
    --------
    >>> import warnings
    >>> import tapegrad as tg
    >>> warnings.simplefilter("ignore")
    >>> x = tg.tensor([0.0, 4.0], requires_grad=True)
    >>> with tg.autograd.detect_anomaly():
    ...     (tg.sqrt(x) * tg.tensor([0.0, 1.0])).sum().backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._before: list[Any] = []
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before.append(set_detect_anomaly(True, self.check_nan))

    def __exit__(self, *_: object) -> None:
        self._before.pop().__exit__()

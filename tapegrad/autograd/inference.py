"""Inference mode: no recording, and results that can never take part in it."""

from __future__ import annotations

import functools
from typing import Any, Final, overload

from tapegrad.modes import F, Interceptor, decorated, interceptor_here, is_enabled_here, set_interceptor, switch
from tapegrad.ops.table.gateway import compute
from tapegrad.pass_modes import is_inference_mode_enabled, set_inference
from tapegrad.recording.marking import Marking

__all__ = ["inference_mode"]

_marking: Final = Marking(None, compute)


class inference_mode:
    """Do not record, and make results that never take part in recording: a context manager and a decorator.

    Such a result is no residual of a recorded operation, is not written to outside of the mode, and gets no
    `requires_grad` there. `clone` gives a normal tensor.

    Parameters
    ----------
    mode : bool
        False: leave the mode inside of it, and record.

    Notes
    -----
    Marked are results of operations, and new tensors. Views of normal tensors, and of arrays, are normal. Compiled code
    marks results too, so that an operation takes little longer than under `no_grad`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.inference_mode():
    ...     y = x * x
    >>> y.requires_grad, y.is_inference()
    (False, True)
    >>> x * y
    Traceback (most recent call last):
        ...
    RuntimeError: Inference tensors cannot be saved for backward. ...
    """

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else decorated(mode, cls)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool, Interceptor | None]] = []

    def __enter__(self) -> None:
        outer = interceptor_here()
        self._before.append((is_enabled_here(), is_inference_mode_enabled(), outer))
        if not self.mode:
            set_interceptor(None)
        elif outer.__class__ is not Marking:
            set_interceptor(_marking if outer is None else Marking(outer, compute))
        set_inference(self.mode)
        switch(not self.mode)

    def __exit__(self, *_: object) -> None:
        is_enabled, was_on, outer = self._before.pop()
        switch(is_enabled)
        set_inference(was_on)
        set_interceptor(outer)

    def __call__(self, function: F) -> F:
        """Return a function, or a generator function, that runs in this mode."""
        return decorated(function, functools.partial(inference_mode, self.mode))

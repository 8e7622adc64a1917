"""Inference mode: no recording, and results that can never take part in it."""

from __future__ import annotations

import functools
from typing import Any, overload

import numpy as np

from tapegrad.modes import F, Interceptor, decorated, intercept, is_grad_enabled, switch
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import Bound, Op
from tapegrad.pass_modes import is_inference_mode_enabled, set_inference
from tapegrad.tape.layout import InferenceLayout, inference
from tapegrad.tape.versions import owner_of
from tapegrad.tensor import Tensor

__all__ = ["inference_mode"]


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
    `no_grad` is faster: in inference mode each operation goes through Python, which marks its result and takes some
    4 µs. Marked are results of operations, and new tensors. Views of normal tensors, and of arrays, are normal.

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
        self._before: list[tuple[bool, bool, intercept | None]] = []

    def __enter__(self) -> None:
        before = is_grad_enabled(), is_inference_mode_enabled()
        marking = intercept(None) if not self.mode else _marking()
        marking.__enter__()
        self._before.append((*before, marking))
        set_inference(self.mode)
        switch(not self.mode)

    def __exit__(self, *_: object) -> None:
        recorded, was_on, marking = self._before.pop()
        switch(recorded)
        set_inference(was_on)
        if marking is not None:
            marking.__exit__()

    def __call__(self, function: F) -> F:
        """Return a function, or a generator function, that runs in this mode."""
        return decorated(function, functools.partial(inference_mode, self.mode))


def _marking() -> intercept:
    before: list[Interceptor | None] = []
    mark = intercept(functools.partial(_marked, before))
    mark.before = before
    return mark


def _marked(before: list[Interceptor | None], op: Op, bound: Bound) -> Any:
    outer = before[-1]
    result = compute(op, bound)[0] if outer is None else outer(op, bound)
    for value in result if isinstance(result, tuple) else (result,):
        if value._node is None and not _is_view_of_normal(value, bound):
            value._layout = inference(value._layout)
    return result


def _is_view_of_normal(value: Tensor, bound: Bound) -> bool:
    data = value._data
    if not isinstance(data, np.ndarray) or data.base is None:
        return False
    normal = [x._data for x in bound.operands if x._layout.__class__ is not InferenceLayout]
    return any(isinstance(own, np.ndarray) and owner_of(own) is owner_of(data) for own in normal)

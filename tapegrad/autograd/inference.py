"""Inference mode: no recording, and results that can never take part in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from tapegrad.modes import F, decorated, intercept, is_grad_enabled, switch, uninterrupted
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
    `no_grad` is faster: in inference mode each operation passes through Python, which marks its result and takes some
    2 µs. Marked are results of operations, and new tensors. Views of normal tensors, and of arrays, are normal.

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
        marking = _Marking() if self.mode else intercept(None)
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


class _Marking(intercept):
    """Marks what operations return. It is the interceptor itself: that of one ``with`` block."""

    def __init__(self) -> None:
        super().__init__(self)

    def __call__(self, op: Op, bound: Bound) -> Any:
        """Compute an op as it would be without this mode, and mark what it returns."""
        outer = self.before[-1]
        return _mark(compute(op, bound)[0] if outer is None else outer(op, bound), bound.operands)

    def around(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of an op, in compiled code where it has a plan, and mark what it returns.

        Returns NotImplemented if there is an outer interceptor, which wants to see the operation.
        """
        if self.before[-1] is not None:
            return NotImplemented
        with uninterrupted():
            result = call(*args, **kwargs)
        return _mark(result, args[0] if args and args[0].__class__ in (list, tuple) else args)


def _mark(result: Any, operands: Sequence[Any]) -> Any:
    for value in result if isinstance(result, tuple) else (result,):
        if (
            value.__class__ is Tensor
            and value._node is None
            and value._layout.__class__ is not InferenceLayout
            and not _is_of_normal(value, operands)
        ):
            value._layout = inference(value._layout)
    return result


def _is_of_normal(value: Tensor, operands: Sequence[Any]) -> bool:
    """Whether a tensor is an operand itself, or a view of a normal one."""
    data = value._data
    owner = owner_of(data) if data.__class__ is np.ndarray and data.base is not None else data
    for x in operands:
        own = x
        if isinstance(x, Tensor):
            if x is value:
                return True
            own = x._data if x._layout.__class__ is not InferenceLayout else None
        if own.__class__ is np.ndarray and owner_of(own) is owner:
            return True
    return False

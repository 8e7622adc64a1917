"""Modes of a thread: whether operations are recorded, and who is shown them before they are computed."""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Final, TypeVar, overload

from tapegrad.runtime.locks import in_child, module_lock

F = TypeVar("F", bound=Callable[..., Any])

# What compiled code reads once a call. The lower half counts the modes in force in any thread that turn recording off:
# while it is 0, nobody looks at the thread-local value, which costs 35 ns. The upper half counts interceptors in any
# thread: while there is one, every call goes to Python, which serves it or goes on as usual. A bit says whether
# anything was ever written to in place with a gradient: from then on it is looked whether an operand is a view that the
# write made stale (see `tapegrad.tape.views`).
INTERCEPTED: Final = 1 << 32
WRITES_NOTED: Final = 1 << 62
DISABLED: Final = INTERCEPTED - 1  # the bits that count them
INTERCEPTORS: Final = WRITES_NOTED - INTERCEPTED
mode = ctypes.c_int64(0)

Interceptor = Callable[..., Any]

_local = threading.local()
_lock = module_lock()
#: Whether operations of this thread are recorded, where `mode` says that some thread's are not: no Python in between.
is_enabled_here: Final[Callable[[], bool]] = functools.partial(getattr, _local, "enabled", True)


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded.

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.no_grad():
    ...     tg.is_grad_enabled()
    False
    """
    return not mode.value & DISABLED or is_enabled_here()


def _switch(enabled: bool) -> None:
    with _lock:
        difference = int(is_enabled_here()) - int(enabled)
        # No call between the two, after which a signal's handler that raises would leave one without the other.
        _local.enabled = enabled
        mode.value += difference


def note_write() -> None:
    """Let the recording path look for stale views from now on."""
    if not mode.value & WRITES_NOTED:
        with _lock:
            mode.value |= WRITES_NOTED


def interceptor() -> Interceptor | None:
    """Return what this thread's operations are shown to before they are computed."""
    return getattr(_local, "interceptor", None) if mode.value & INTERCEPTORS else None


class intercept:
    """Show every operation of this thread to a function, in a ``with`` block; tracing and checks stand on it.

    Parameters
    ----------
    function : callable
        Called as ``function(op, bound)`` (see `tapegrad.ops.table.op.Bound`) in place of the operation. What it returns
        is the result; inside it, operations are computed as usual.
    """

    def __init__(self, function: Interceptor) -> None:
        self.function = function
        self.before: list[Interceptor | None] = []

    def __enter__(self) -> None:
        self.before.append(getattr(_local, "interceptor", None))
        _set_interceptor(self.function)

    def __exit__(self, *_: object) -> None:
        _set_interceptor(self.before.pop())


def _set_interceptor(function: Interceptor | None) -> None:
    with _lock:
        before = getattr(_local, "interceptor", None)
        difference = int(function is not None) - int(before is not None)
        _local.interceptor = function  # as in `_switch`
        mode.value += INTERCEPTED * difference


class uninterrupted:
    """Compute operations as usual in a ``with`` block, whatever looks at them outside."""

    def __enter__(self) -> None:
        self.before = getattr(_local, "interceptor", None)
        _set_interceptor(None)

    def __exit__(self, *_: object) -> None:
        _set_interceptor(self.before)


def _forget_other_threads() -> None:
    intercepted = getattr(_local, "interceptor", None) is not None
    mode.value = int(not is_enabled_here()) + INTERCEPTED * int(intercepted)


in_child(_forget_other_threads)


class _Mode:
    """A mode as context manager and decorator, of functions and of generators."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before: list[bool] = []

    def __enter__(self) -> None:
        before = is_grad_enabled()
        try:
            self.before.append(before)
            _switch(self.mode)
        except BaseException:  # a signal's handler raised: no `__exit__` will follow
            _switch(before)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self.before[-1]
        try:
            _switch(before)
            self.before.pop()
        except BaseException:
            _switch(before)
            raise

    def __call__(self, function: F) -> F:
        return _decorate(function, self.mode)


def _decorate(function: F, mode: bool) -> F:
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            # The mode holds while the generator runs, and not while its consumer does.
            inner = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, inner)
            try:
                while True:
                    with _Mode(mode):
                        value = resume()
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume = functools.partial(inner.throw, error)
                    else:
                        resume = functools.partial(inner.send, sent)
            except StopIteration as stop:
                return stop.value
            finally:
                with _Mode(mode):
                    inner.close()

        return generator  # type: ignore[return-value]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Mode(mode):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


class no_grad(_Mode):
    """Do not record: a context manager, and a decorator with or without parentheses.

    Holds for the calling thread only; the mode before is restored, also after an error.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    @overload
    def __new__(cls) -> no_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: F | None = None) -> Any:
        return super().__new__(cls) if function is None else _decorate(function, False)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):
    """Record again inside `no_grad`: a context manager and a decorator.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad(), tg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    @overload
    def __new__(cls) -> enable_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: F | None = None) -> Any:
        return super().__new__(cls) if function is None else _decorate(function, True)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_Mode):
    """Switch recording on or off at once; as a context manager, restore the mode before on exit.

    Parameters
    ----------
    mode : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> with tg.set_grad_enabled(False):
    ...     tg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.before.append(is_grad_enabled())
        _switch(mode)

    def __enter__(self) -> None:
        if not self.before:
            super().__enter__()

    def __call__(self, function: F) -> F:
        _switch(self.before.pop())  # as a decorator it holds inside the function only
        return super().__call__(function)

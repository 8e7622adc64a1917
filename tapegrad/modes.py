"""Modes of a thread: whether its operations are recorded, and which function intercepts them."""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

from tapegrad.errors import check_bool
from tapegrad.runtime.locks import in_child

_new: Final = object.__new__  # half the time of `cls.__new__`, which goes through a wrapper
F = TypeVar("F", bound=Callable[..., Any])

# The mode word, which compiled code reads once a call. The lower half counts the threads that do not record: while it
# is 0, nobody looks at the thread-local value, which would cost 35 ns. The next bits count the threads with an
# interceptor: while there is one, every call goes to Python. Then stand those in the mode of strong zeros: while there
# is one, calls of compiled functions go to Python. The highest bit says whether a write in place was ever recorded:
# from then on, recording checks whether an operand is a stale view (see `tapegrad.tape.views`). The bit below it says
# whether a thread ever asked for strong zeros or anomaly mode: from then on, passes look at the thread-local values.
INTERCEPTED: Final = 1 << 32
STRONG_ZEROS: Final = 1 << 48
PASS_MODES: Final = 1 << 61
WRITES_NOTED: Final = 1 << 62
DISABLED: Final = INTERCEPTED - 1
INTERCEPTORS: Final = STRONG_ZEROS - INTERCEPTED
NOT_COMPILED: Final = PASS_MODES - INTERCEPTED  # what sends calls of compiled functions to Python
mode = ctypes.c_int64(0)

Interceptor = Callable[..., Any]


class _Thread(threading.local):
    enabled = True
    interceptor: Interceptor | None = None
    strong_zero = False


# CPython switches threads, and calls signal handlers, where code calls or jumps back. Statements that belong together
# contain neither, and need no lock: the thread's value, then its part of the mode word.
thread: Final = _Thread()
#: Whether this thread records, for when the mode word says that some thread does not. It runs no Python code.
is_enabled_here: Final[Callable[[], bool]] = functools.partial(getattr, thread, "enabled")
#: The function that intercepts this thread's operations, None if there is none; it runs no Python code.
interceptor_here: Final[Callable[[], Interceptor | None]] = functools.partial(getattr, thread, "interceptor")


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


def switch(enabled: bool) -> None:
    """Let this thread record, or not: what is behind `no_grad` and its kin, which restore the mode before."""
    if thread.enabled is not enabled:
        thread.enabled = enabled
        mode.value += -1 if enabled else 1


def pause() -> None:
    """Stop recording in this thread, which records: `switch`, in less time.

    A signal handler may raise behind every call. So ask `is_grad_enabled` before a ``try``, call this in it, and
    `resume` at its end.
    """
    thread.enabled = False
    mode.value += 1


def resume() -> None:
    """Let this thread record, whether `pause` was called or not."""
    if not thread.enabled:
        thread.enabled = True
        mode.value -= 1


def note_write() -> None:
    """Let the recording path look for stale views from now on."""
    mode.value |= WRITES_NOTED


def note_pass_mode() -> None:
    """Let passes look at the modes of `tapegrad.pass_modes` from now on."""
    mode.value |= PASS_MODES


def switch_strong_zero(enabled: bool) -> None:
    """Let zeros stay zeros in the passes of this thread, or not: what is behind `tapegrad.pass_modes.strong_zero`."""
    note_pass_mode()
    if thread.strong_zero is not enabled:
        thread.strong_zero = enabled
        mode.value += STRONG_ZEROS if enabled else -STRONG_ZEROS


def interceptor() -> Interceptor | None:
    """Return the function that intercepts this thread's operations, None if there is none."""
    return thread.interceptor if mode.value & INTERCEPTORS else None


def tracer() -> Any:
    """Return this thread's interceptor if it is a trace, which follows writes and what is read from outside."""
    own = interceptor()
    return own if hasattr(own, "overwrite") else None


def is_traced() -> bool:
    """Whether this thread traces a function: `tapegrad.program.trace`."""
    return tracer() is not None


def around_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Let the interceptor call a function of an op if it serves whole calls; return NotImplemented if it does not."""
    around = getattr(thread.interceptor, "around", None)
    return NotImplemented if around is None else around(function, args, kwargs)


def tell(event: str, *about: Any) -> None:
    """Call the interceptor's method of this name, if it has one: what happens beside operations."""
    if mode.value & INTERCEPTORS:
        told = getattr(thread.interceptor, event, None)
        if told is not None:
            told(*about)


class intercept:
    """Call a function in place of every operation of this thread, in a ``with`` block: the base of tracing and checks.

    Parameters
    ----------
    function : callable
        Called as ``function(op, bound)`` (see `tapegrad.ops.table.op.Bound`); it returns the result of the operation.
        Operations inside the function are computed as usual.
    """

    def __init__(self, function: Interceptor | None) -> None:
        self.function = function
        self.before: list[Interceptor | None] = []

    def __enter__(self) -> None:
        before = thread.interceptor
        try:
            self.before.append(before)
            set_interceptor(self.function)
        except BaseException:  # a signal handler raised: `__exit__` will not be called
            set_interceptor(before)
            raise

    def __exit__(self, *_: object) -> None:
        before = self.before[-1]
        try:
            set_interceptor(before)
            self.before.pop()
        except BaseException:
            set_interceptor(before)
            raise


def set_interceptor(function: Interceptor | None) -> None:
    """Let a function intercept this thread's operations, or none: what is behind `intercept`."""
    before = thread.interceptor
    thread.interceptor = function
    if before is None:
        if function is not None:
            mode.value += INTERCEPTED
    elif function is None:
        mode.value -= INTERCEPTED


class uninterrupted:
    """Compute operations as usual in a ``with`` block, without the interceptor."""

    def __enter__(self) -> None:
        self.before = thread.interceptor
        set_interceptor(None)

    def __exit__(self, *_: object) -> None:
        set_interceptor(self.before)


def _forget_other_threads() -> None:
    counts = int(not is_enabled_here()), int(thread.interceptor is not None), int(thread.strong_zero)
    mode.value &= WRITES_NOTED | PASS_MODES
    mode.value += counts[0] + INTERCEPTED * counts[1] + STRONG_ZEROS * counts[2]


in_child(_forget_other_threads)


class _Mode:
    """A grad mode as a context manager, and as a decorator of functions and generators."""

    mode: bool
    before: list[bool]

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: F | None = None) -> Any:
        if function is not None:
            return decorated(function, cls)
        self = _new(cls)
        self.before = []
        return self

    def __enter__(self) -> None:
        before = thread.enabled
        self.before.append(before)  # the last call: a signal handler that raises behind it has changed nothing
        if before is not self.mode:
            thread.enabled = self.mode
            mode.value += 1 if before else -1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self.before[-1]
        if thread.enabled is not before:
            thread.enabled = before
            mode.value += -1 if before else 1
        del self.before[-1]

    def __call__(self, function: F) -> F:
        return decorated(function, enable_grad if self.mode else no_grad)


def decorated(function: F, context: Callable[[], Any]) -> F:
    """Return a function, or a generator function, whose code runs in a mode, which `context` makes anew."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            # The mode is on while the generator runs, and off while its consumer does.
            inner = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, inner)
            try:
                while True:
                    with context():
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
                with context():
                    inner.close()

        return generator  # type: ignore[return-value]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


class no_grad(_Mode):
    """Switch recording off: a context manager, and a decorator with or without parentheses.

    Only the calling thread is affected. The previous mode is restored at the end, also after an error.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    mode = False


class enable_grad(_Mode):
    """Switch recording on again inside `no_grad`: a context manager and a decorator.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad(), tg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    mode = True


class set_grad_enabled(_Mode):
    """Switch recording on or off at once. As a context manager, restore the previous mode on exit.

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

    def __new__(cls, mode: bool) -> Self:
        if mode.__class__ is not bool:
            check_bool("set_grad_enabled", "mode", mode)  # type: ignore[unreachable]
            mode = bool(mode)
        self = _new(cls)
        before = thread.enabled
        self.mode, self.before = mode, [before]
        if before is not self.mode:
            switch(self.mode)
        return self

    def __enter__(self) -> None:
        if not self.before:
            super().__enter__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"

    def __call__(self, function: F) -> F:
        if self.before:
            switch(self.before.pop())  # a decorator switches only inside the function
        return super().__call__(function)

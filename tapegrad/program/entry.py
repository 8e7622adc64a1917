"""The entry of a program: a built-in function that checks its arguments, and calls machine code or Python."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from tapegrad.forward.direct import run_loop
from tapegrad.forward.results import make_forward
from tapegrad.program import columns, traced_calls, walking
from tapegrad.program.calling import run
from tapegrad.program.sharing import run_blocks, run_stages
from tapegrad.program.standing import stand
from tapegrad.program.templates import Input, Output
from tapegrad.program.variants import Dispatch, Variant
from tapegrad.recording import leaves
from tapegrad.recording.native import load, make_together
from tapegrad.recording.objects import with_runtime
from tapegrad.recording.record import record
from tapegrad.recording.rule_calls import call
from tapegrad.runtime.objects import numpy_function
from tapegrad.runtime.signals import undisturbed
from tapegrad.sweep.find import find
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

__all__ = ["FIRST", "Dispatch", "Input", "Output", "Variant", "argument_kind", "make_entry"]

#: The compiled functions that the first program needs; they are made in this order.
FIRST: Final = (
    run, *columns.FUNCTIONS, *walking.FUNCTIONS, record, traced_calls.call_traced, leaves.tensor_over, leaves.as_leaf,
    find, call, make_forward, run_loop, stand,
)  # fmt: skip

_NEW_SCALAR: Final = 60  # of PyArray_Scalar in NumPy's table
_OF_PYTHON: Final = ("PyDict_Next", "PyObject_RichCompareBool", "PyDict_New", "PyDict_SetItem", "PyDict_Size")


@functools.cache
def _fields() -> np.ndarray:
    """Return the memory of `DispatchFields`."""
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _OF_PYTHON]
    return with_runtime(
        "what calls programs", str, dict, numpy_function("_ARRAY_API", _NEW_SCALAR), *functions, run_stages, Exception,
    )  # fmt: skip


def load_all() -> None:
    """Load the compiled functions that make programs and call them, or compile them."""
    load_tracing()
    traced_calls.load_all()
    for function in (run, run_blocks, stand):
        load(function, None)


def _load_tracing() -> None:
    columns.load_all()
    walking.load_all()


@functools.cache
def load_tracing() -> None:
    """Load the compiled functions that traces need, or compile them: all at once, as each would start a thread."""
    undisturbed(_load_tracing)


@functools.cache
def _make_first() -> None:
    """Compile what the first program needs, if it is not known."""
    if make_together(FIRST):
        import_module("tapegrad.program.lowered")  # what makes programs is needed too, and LLVM is at work


def make_entry(
    fallback: Callable[..., Any], variants: Sequence[Variant] = (), name: str = "run", doc: str = ""
) -> tuple[Callable[..., Any], Dispatch]:
    """Return a function that calls the first variant that serves its arguments, and what holds the variants.

    Parameters
    ----------
    fallback : callable
        Called with the same arguments if none serves them: for other classes, shapes or dtypes, for keyword
        arguments, if a guard has another outcome, if an argument wants a gradient, and while operations of any thread
        are intercepted.
    variants : sequence of Variant
    name, doc : str
        Of the function.

    Returns
    -------
    function : builtin_function_or_method
    dispatch : Dispatch

    Examples
    --------
    >>> import numpy as np
    >>> function, dispatch = make_entry(lambda *args: "Python was called")
    >>> function(np.zeros(3))
    'Python was called'
    """
    _make_first()
    dispatch = Dispatch(fallback, _fields())
    dispatch.variants = tuple(variants)
    return load(run, dispatch, name, doc), dispatch


def argument_kind(leaf: Any, layout: Layout) -> type | None:
    """Return which arguments a compiled entry takes in the place of this one; None if it takes no such ones."""
    kind: type = leaf.__class__
    if kind is np.ndarray or issubclass(kind, Tensor):
        return kind
    if kind in (float, complex, int):
        return kind if layout.dtype == kind else None
    return np.ndarray if isinstance(leaf, np.generic) else None

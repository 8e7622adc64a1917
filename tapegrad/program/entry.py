"""The entry of a program: a built-in function that checks its arguments, and calls machine code or Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.program.calling import run
from tapegrad.program.variants import Dispatch, Input, Variant
from tapegrad.recording.native import load
from tapegrad.recording.objects import with_runtime
from tapegrad.runtime.objects import numpy_function

__all__ = ["Dispatch", "Input", "Variant", "make_entry"]


@functools.cache
def _fields() -> np.ndarray:
    """Return the memory of `DispatchFields`."""
    return with_runtime("what calls programs", numpy_function("_ARRAY_API", 60))  # PyArray_Scalar


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
    dispatch = Dispatch(fallback, _fields())
    dispatch.variants = tuple(variants)
    return load(run, dispatch, name, doc), dispatch

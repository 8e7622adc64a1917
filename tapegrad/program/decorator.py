"""`compile`: a function, or a decorator of functions, that run as programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.program.compiled import Compiled


def compile(
    function: Callable[..., Any] | None = None, *, memory: int | None = None, disable: bool = False,
    fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None, mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Compile a function of tensors, arrays and numbers to machine code.

    The function is called once with the arguments of its first call, and all its operations are written down: a
    `tapegrad.program.Program`. From then on the program runs, and the function does not. Gradients in the function,
    e.g. by `tapegrad.func.value_and_grad`, are a part of the program.

    Parameters
    ----------
    function : callable
        Takes and returns tensors, arrays and numbers, and lists, dicts and tuples of them. Floats are inputs; integers,
        bools and strings are a part of the signature, as are shapes and dtypes: for others the function is traced
        again. Where Python depends on values, e.g. in ``if x > 0``, there is a program for each way.
    memory : int, optional
        How many bytes each loop by `tapegrad.func.scan`, `while_loop` or `fori_loop` may keep for its derivative. A
        loop that would keep more keeps what some turns were given, and computes the turns between again: as few as can
        be for so many checkpoints.
    disable : bool
        Return the function as it is.
    fullgraph, dynamic, backend, mode, options
        PyTorch's choices of how to compile, of no effect: there is one way, in which a function is one program.

    Returns
    -------
    Compiled
        Called like the function. It returns arrays if all inputs are arrays or numbers, otherwise tensors, which can
        be differentiated.

    Raises
    ------
    TracingError
        When called, if a value leaves the function in a way that cannot be followed, e.g. by ``numpy()``. The message
        names the line.

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> @tg.compile
    ... def f(x):
    ...     return (tg.sin(x) * x).sum()
    >>> float(f(np.zeros(3)))
    0.0
    >>> value_and_slope = tg.compile(tg.func.value_and_grad(lambda x: (x * x).sum()))
    >>> value_and_slope(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    if memory is not None and memory < 0:
        raise ValueError(f"compile: memory must be a number of bytes, got {memory!r}")
    if function is None:
        return functools.partial(compile, memory=memory, disable=disable)
    if disable:
        return function
    return Compiled(function, memory)

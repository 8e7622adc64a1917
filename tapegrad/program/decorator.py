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

    The first call runs the function once and traces its operations into a `tapegrad.program.Program`. Later calls run
    the program, not the function. Gradients that the function computes, e.g. by `tapegrad.func.value_and_grad`, are a
    part of the program.

    Parameters
    ----------
    function : callable
        Takes and returns tensors, arrays and numbers, and lists, dicts and tuples of them. Floats are inputs of the
        program. Bools, strings, shapes and dtypes are constants of it: for other ones the function is traced again. An
        integer is a constant until another one comes, then an input, unless Python looks at it, as `range` does. If
        the Python code depends on values, e.g. in ``if x > 0``, each branch has its own program. ``return x.item()``
        is an output like another.
    memory : int, optional
        How many bytes each loop by `tapegrad.func.scan`, `while_loop` or `fori_loop` may keep for its derivative, and
        how many the program may keep between its operations. A loop that needs more keeps the inputs of some iterations
        (checkpoints), and recomputes the iterations between them. The number of recomputed iterations is the least for
        that number of checkpoints. A program that needs more computes parts of the forward pass again. If no way with
        so few bytes is found, the one with the fewest that was found runs; `Program.memory` says how many these are.
    disable : bool
        Return the function as it is.
    fullgraph, dynamic, backend, mode, options
        PyTorch's options. They have no effect: a function is always compiled as a whole.

    Returns
    -------
    Compiled
        Called like the function. It returns arrays if all inputs are arrays or numbers, otherwise tensors, which can
        be differentiated. `tapegrad.func.grad` and its kin make compiled functions of it.

    Raises
    ------
    TracingError
        In a call, if the function uses a value outside of its operations, e.g. by ``numpy()``. The message names the
        line.

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

"""`Program`: a pure function of arrays, as a straight list of operations on numbered values."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tapegrad.program.lists import Entry, Guard, Listed, detach_op

if TYPE_CHECKING:
    from tapegrad.program.memory import Memory
    from tapegrad.program.run import Runner

__all__ = ["Entry", "Guard", "Program", "detach_op"]

File = str | os.PathLike[str] | IO[bytes]


class Program(Listed):
    """A function of arrays, as the list of operations that computes its results.

    Values have numbers: first the inputs, then constants and results in the order in which they came. An operation
    stands behind those whose results it takes. The list is pure: it changes no value, and computes the same from the
    same inputs.

    Attributes
    ----------
    layouts : list of Layout
        Shape and dtype of each value. All stand row by row; a Python number, which does not decide a dtype, is `weak`.
    inputs, outputs : tuple of int
    constants : dict
        From numbers of values to arrays and Python numbers.
    entries : list of Entry
    guards : tuple of Guard
    has_functions : bool
        Whether a `tapegrad.autograd.Function` was called, whose rule is not a part of the program.
    tracked : tuple of bool
        Which outputs wanted a gradient in the trace.
    limit : int, optional
        How many bytes each loop may keep for its derivative.
    function : callable, optional
        From tensors in place of the inputs to outputs and what they depend on: what was traced, for `has_functions`.
    signature : Signature, optional
        The arguments and results of the function, if the program is all of it.
    impure : Functional, optional
        How it becomes a pure one, if the function has effects.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.program.Program.trace(lambda x: x * x, 2.0)(3.0)
    np.float64(9.0)
    """

    _called: Callable[..., Any] | None = None

    @staticmethod
    def trace(function: Callable[..., Any], *examples: Any) -> Program:
        """Return the program of a function, for arguments like these.

        Parameters
        ----------
        function : callable
            As for `tapegrad.compile`. It is called once.
        examples
            Its arguments.

        Returns
        -------
        Program
            It is called like the function, and returns the same.

        Raises
        ------
        TracingError
            If a value leaves the function in a way that cannot be followed.
        ValueError
            When the program is called, if the arguments have other shapes, dtypes or containers than the examples, or
            if Python would take another branch. `tapegrad.compile` traces again in these cases.

        Examples
        --------
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> program = tg.program.Program.trace(lambda x: (x * x).sum(), np.ones(3))
        >>> print(program)
        program(in0: float64[3])
            %0: float64[3] = mul(in0, in0)
            %1: float64[] = sum(%0, dim=(0,), keepdim=False, dtype=None)
            return %1
        >>> float(program(np.array([1.0, 2.0, 3.0])))
        14.0
        """
        from tapegrad.program.fixed import Fixed

        called: Any = Fixed(function)
        called(*examples)
        if not called.programs:  # the step of an optimizer that has no states yet, or arguments that share memory
            raise ValueError(
                "the function was called as it is written, and not traced: an optimizer has made its states, or what "
                "is written to shares memory with another argument. Call trace() again, with arguments that share none"
            )
        program: Program = called.programs[0]
        program._called = called
        return program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns that was traced; see `trace`."""
        if self._called is None:
            from tapegrad.program.fixed import called

            self._called = called(self)
        return self._called(*args, **kwargs)

    @functools.cached_property
    def run(self) -> Runner:
        """How it runs."""
        from tapegrad.program.run import Runner

        return Runner(self)

    def functional(self) -> Program:
        """Return the program as a pure function: itself, or if the function has effects, with these as results.

        Such a program takes its state behind the other positional arguments, as a tuple: tensors from outside that the
        function writes to, gradients that it adds to, and numbers of Python that it looks at in each call, e.g. the
        learning rate of an optimizer. It returns the function's result, the next state, and the gradients that the
        function would have left in ``.grad``.

        Raises
        ------
        TypeError
            If the function draws random numbers, or writes to its arguments.

        Examples
        --------
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> total = tg.zeros(2)
        >>> def add(x):
        ...     total.add_(x)
        ...     return total.sum()
        >>> program = tg.program.Program.trace(add, np.ones(2))
        >>> program.state()
        (array([1., 1.]),)
        >>> program.functional()(np.array([1.0, 2.0]), program.state())
        (np.float64(5.0), (array([2., 3.]),), ())
        >>> total
        tensor([1., 1.])
        """
        return self if self.impure is None else self.impure.program()

    def state(self) -> tuple[Any, ...]:
        """Return the state of the function as it is now, for `functional`, in new arrays and numbers."""
        return () if self.impure is None else self.impure.state()

    def save(self, file: File) -> None:
        """Write the program to a file; `tapegrad.save` does the same for programs in containers.

        Parameters
        ----------
        file : path or binary file

        Raises
        ------
        TypeError
            See `text`.
        """
        from tapegrad import serialization

        serialization.save(self, file)

    @staticmethod
    def load(file: File) -> Program:
        """Return the program of a file; nothing of it runs, and each operation is checked.

        Parameters
        ----------
        file : path or binary file

        Raises
        ------
        RuntimeError
            If the file is damaged, or has no program.
        """
        from tapegrad import serialization

        found = serialization.load(file)
        if not isinstance(found, Program):
            raise RuntimeError(f"load(): the file has a {type(found).__name__}, and no program; tapegrad.load reads it")
        return found

    @functools.cached_property
    def njit(self) -> Any:
        """The program as a function for code that Numba compiles; it needs no Python.

        It takes NumPy arrays that stand row by row, and numbers; containers are tuples, of the values of dicts, too.
        It returns what the traced function does, in new arrays. Threads may call it at the same time.

        Raises
        ------
        TypeError
            If the function takes or returns something that this code cannot have, or an operation needs Python; the
            message says which.

        Notes
        -----
        In compiled code, an array of another shape raises a `ValueError`. A `RuntimeError` is raised if Python would
        take another branch than in the trace, if a matrix cannot be factored, or if a tensor from outside the function
        has got other memory since. Tensors from outside are else looked at in every call. A program with effects is
        called as `functional` says: state comes in, and goes out.

        Examples
        --------
        >>> import numba
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> slope = tg.program.Program.trace(tg.func.grad(lambda x: (x * x).sum()), np.ones(3)).njit
        >>> @numba.njit
        ... def descend(x):
        ...     for _ in range(100):
        ...         x = x - 0.1 * slope(x)
        ...     return x
        >>> bool(abs(descend(np.array([1.0, 2.0, 3.0]))).max() < 1e-8)
        True
        """
        from tapegrad.program.export.njit import njit_of

        return njit_of([self])

    def c(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the program as object code, and a header of its function, which C calls; neither needs Python.

        Parameters
        ----------
        path : path
            Of the two files, without suffix, or a folder; the function has the file's name, or that of the traced one.

        Returns
        -------
        tuple of Path
            Where the object code and the header stand.

        Raises
        ------
        TypeError
            If an operation needs Python; the message says which.

        Notes
        -----
        The function takes a pointer for each input, then one for each output; the header has their sizes, and what the
        function returns. Code is for this CPU; ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` name another. Tensors from
        outside the traced function become constants, but for the state of one with effects: see `functional`.
        """
        from tapegrad.program.export.c import written

        return written(self, path)

    def source(self) -> str:
        """Return its loops as readable code."""
        return self.run.source()

    def memory(self) -> Memory:
        """Return what a call keeps in memory, as numbers of bytes that are printed as a table.

        Examples
        --------
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> program = tg.program.Program.trace(lambda x: (x * x).sum(), np.ones(100))
        >>> print(program.memory())
        inputs                800 bytes
        outputs                 8 bytes
        constants               0 bytes
        arena                   0 bytes
          residuals of loops    0 bytes
          checkpoints           0 bytes
        total                 808 bytes
        """
        from tapegrad.program.memory import memory_of

        return memory_of(self)

    def text(self) -> str:
        """Return all of the program, or of its `functional` form if it has effects, as text that `parse` reads.

        Raises
        ------
        TypeError
            If Python functions are a part of it, e.g. an `autograd.Function`.
        """
        from tapegrad.program.files import text_of

        return text_of(self)

    @staticmethod
    def parse(text: str) -> Program:
        """Return the program of a text that `text` wrote; nothing of it runs.

        Parameters
        ----------
        text : str

        Raises
        ------
        ValueError
            If it is no program; the message names the line. The result of each operation is derived anew.

        Examples
        --------
        >>> import numpy as np
        >>> import tapegrad as tg
        >>> from tapegrad.program import Program
        >>> program = Program.trace(lambda x: tg.sin(x) * x, np.ones(3))
        >>> print(program.text())
        tapegrad program 1
        program(in0: float64[3]):
            %0: float64[3] = sin(in0)
            %1: float64[3] = mul(%0, in0)
            return %1
        name = "<lambda>"
        arguments = ((<0>,), {})
        result = <0>
        wanted = (False,)
        captured = ()
        <BLANKLINE>
        >>> Program.parse(program.text()) == program
        True
        """
        from tapegrad.program.files import parsed

        return parsed(text)

    def explain(self) -> str:
        """Return how it runs, and why."""
        return self.run.explain()

    def __str__(self) -> str:
        from tapegrad.program.shown import lines_of

        return "\n".join(lines_of(self))

    def __copy__(self) -> Program:
        return self

    def __reduce__(self) -> Any:
        return Program.parse, (self.text(),)

"""Functions of SciPy as forwards. SciPy is loaded at the first call: it would double the time of `import tapegrad`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.ufuncs import Function, completed
from tapegrad.runtime.extensions import scipy_extension


class SciPy(Function):
    """A function of `scipy.special`, by its name.

    Parameters
    ----------
    name : str
    most : callable, optional
        A formula that is faster for most operands, and nan for the others.
    """

    def __init__(self, name: str, most: Callable[..., Any] | None = None) -> None:
        super().__init__(name, lambda *operands: scipy_function(name)(*operands))
        self._most = most

    def of(self, dtype: np.dtype) -> Callable[..., Any]:
        """Return SciPy's function; it would widen single precision beside Python numbers."""
        function = scipy_function(self.name)
        if self._most is not None and dtype.name in ("float32", "float64"):
            if dtype not in self._chosen:
                self._chosen[dtype] = completed(self._most, function, dtype)  # type: ignore[arg-type]
            return self._chosen[dtype]
        narrow = dtype == np.float32 and getattr(function, "nin", 1) > 1
        return functools.partial(function, dtype=dtype) if narrow else function


@functools.cache
def scipy_function(name: str) -> Callable[..., Any]:
    """Return a function of `scipy.special`, from the compiled module that has most of them if it can be."""
    try:
        function = getattr(scipy_extension("special", "_special_ufuncs"), name, None)
    except ImportError:  # before version 1.14
        function = None
    if function is None:
        import scipy.special

        function = getattr(scipy.special, name)
        if not isinstance(function, np.ufunc):  # perhaps a function around one
            function = getattr(scipy.special._ufuncs, f"_{name}", function)
    return function


def scipy_result(name: str, number: int) -> Callable[..., Any]:
    """Return what computes one of the results of a function of `scipy.special`."""
    return lambda *operands: scipy_function(name)(*operands)[number]


def log1p_complex(z: Any) -> Any:
    """Return the logarithm of 1 + z for complex z; NumPy's has no digits of the real part where that is near 0."""
    return scipy_function("log1p")(z)

"""Functions that SciPy calls with arrays: compiled, or as they are written where that cannot be.

A function is traced in each call of a solver, so that it sees the data of its surroundings as they are then. Machine
code is shared by equal programs.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

from tapegrad.func.level import array_of
from tapegrad.func.trees import flatten, tree_map
from tapegrad.modes import no_grad
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table import functions as ops
from tapegrad.program.compiled import Compiled
from tapegrad.program.program import Program
from tapegrad.program.trace import TracingError
from tapegrad.runtime import state
from tapegrad.runtime.locks import hold_while_forking, module_lock
from tapegrad.tensor import Tensor

__all__ = ["Derivative", "Fallback", "Recent", "as_scalar", "as_vector"]

_MOST: Final = 64
_DTYPES: Final = (np.dtype(np.float64), np.dtype(np.complex128))
_LARGE: Final = 1 << 20  # bytes of constants: of larger programs there is one each

T = TypeVar("T")


class Recent(Generic[T]):
    """What was used last, by keys.

    Parameters
    ----------
    name : str
        Its name among the caches of the process.
    """

    def __init__(self, name: str) -> None:
        self._known: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = module_lock()
        hold_while_forking(self._lock)
        state.register(name, lambda: len(self._known), self._known.clear)

    def found(self, key: Hashable, new: T, is_wanted: Callable[[T], bool] = lambda _: True) -> T:
        """Return what is known by a key, or else what is new; also if what is known is not wanted any more."""
        with self._lock:
            known = self._known.setdefault(key, new)
            if not is_wanted(known):
                known = self._known[key] = new
            self._known.move_to_end(key)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return known


_recent: Final[Recent[Program]] = Recent("scipy.derivatives: programs")


class Fallback:
    """Whether the functions of one call of a solver are compiled; tells the user once if not.

    Parameters
    ----------
    api : str
        The call of the solver.
    name : str
        The user's function.
    """

    def __init__(self, api: str, name: str) -> None:
        self.api, self.name, self.is_used = api, name, False

    def use(self, error: TracingError) -> None:
        """Compile no more functions."""
        if not self.is_used:
            self.is_used = True
            warnings.warn(
                f"{self.api}: {self.name} is not compiled, and its derivatives are those of ordinary operations, which "
                f"takes longer: {error}",
                UserWarning,
                stacklevel=4,
            )


class Derivative(Compiled):
    """A function of arrays and numbers, which returns arrays.

    Attributes
    ----------
    fallback : Fallback
    n_unknowns : int
        How many arguments the solver chooses. Where the function is not compiled, the others stay arrays.
    """

    fallback: Fallback
    n_unknowns: int

    @classmethod
    def of(cls, function: Callable[..., Any], fallback: Fallback, n_unknowns: int = 1) -> Callable[..., Any]:
        """Return a function of tensors as one of arrays."""
        self = cls(function)
        self.fallback, self.n_unknowns = fallback, n_unknowns
        return cast("Callable[..., Any]", self)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        unknowns, rest = args[: self.n_unknowns], args[self.n_unknowns :]
        if any(isinstance(own, np.ndarray) and own.dtype not in _DTYPES for own in unknowns):
            # SciPy's linear operators are asked for products with integers.
            return cast("Callable[..., Any]", self)(*[np.asarray(own, np.float64) for own in unknowns], *rest)
        if not self.fallback.is_used:
            try:
                with no_grad():  # SciPy takes arrays, also if parameters from outside require grad
                    return super()._call(args, kwargs)
            except TracingError as error:
                self.fallback.use(error)
        out = self.function(*map(as_tensor, unknowns), *rest)
        return tree_map(lambda leaf: array_of(leaf) if isinstance(leaf, Tensor) else leaf, out)

    def _known(self, program: Program) -> Program:
        """Return an equal program whose machine code is there."""
        if sum(np.asarray(value).nbytes for value in program.constants.values()) > _LARGE:
            return program
        program = program.compact()
        return _recent.found(program.key(), program)


def as_scalar(value: Any) -> Tensor:
    """Return what an objective has returned as a tensor without dimensions."""
    tensor = as_vector(value)
    if tensor.numel() != 1:
        raise ValueError(
            f"The user-provided objective function must return a scalar value, but it returned {tensor.numel()} "
            "numbers; add them up, e.g. by sum()"
        )
    return tensor.reshape(())


def as_vector(value: Any, dtype: np.dtype = _DTYPES[0]) -> Tensor:
    """Return what a function has returned, a tensor or a container of tensors and numbers, as one vector."""
    leaves = [as_tensor(leaf) for leaf in flatten(value)]
    for leaf in leaves:
        if leaf.is_complex() and dtype.kind != "c":
            raise TypeError("the function returned complex numbers; return their real and imaginary parts")
    if len(leaves) > 1 and all(not leaf.ndim for leaf in leaves):
        vector = ops.stack(leaves)
    else:
        parts = [leaf if leaf.ndim == 1 else leaf.reshape(-1) for leaf in leaves]
        vector = parts[0] if len(parts) == 1 else ops.cat(parts)
    return vector if vector.dtype == dtype else vector.to(dtype)

"""A user's function of unknowns and further arguments, as functions of one vector, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.func import hessian, hvp, jacfwd, jacrev, value_and_grad
from tapegrad.func.trees import flatten, rebuild, tree_map
from tapegrad.modes import is_grad_enabled, no_grad
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.trace import TracingError
from tapegrad.scipy.derivatives import Derivative, Fallback, Recent, as_scalar, as_vector
from tapegrad.scipy.packing import Packing
from tapegrad.scipy.snapshots import Unseen, frozen
from tapegrad.sparse.matrices import SparseDerivative
from tapegrad.tensor import Tensor

__all__ = ["Problem", "as_tuple"]

_FLOATS: Final = (np.ndarray, np.floating, float)
_VALUE: Final = "a floating value"  # in the place of one


def as_tuple(args: Any) -> tuple[Any, ...]:
    """Return further arguments as SciPy takes them: what is no tuple is the only one."""
    return args if isinstance(args, tuple) else (args,)


class _Known:
    """The functions of one problem, for any values of its further arguments.

    Attributes
    ----------
    derivatives : dict
        By their names.
    counts : dict
        How many results there are, by the shapes of arguments.
    """

    def __init__(self, fallback: Fallback) -> None:
        self.fallback = fallback
        self.derivatives: dict[str, Callable[..., Any]] = {}
        self.counts: dict[Any, int] = {}


_DOUBLE: Final = {float: np.float64, complex: np.complex128}


def _as_is(value: Any) -> Any:
    return value


_recent: Final[Recent[_Known]] = Recent("scipy.problem: functions")


class Problem:
    """A function, and how it is called.

    Parameters
    ----------
    api : str
        The call of the solver, for messages.
    function : callable
        The user's.
    packing : Packing
        Of its first argument.
    args, kwargs : tuple and dict
        The others.

    Attributes
    ----------
    values : tuple of numpy.ndarray and float
        The floating arrays and numbers among the others: behind the vector they are arguments of all functions here.
    tensors : list
        The same, as the user gave them.
    """

    def __init__(
        self, api: str, function: Callable[..., Any], packing: Packing, args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if not callable(function):
            raise TypeError(f"{api} needs a function, but got {type(function).__name__}")
        self.function, self.packing = function, packing
        self._others = tuple(args), dict(kwargs or {})
        leaves = flatten(self._others)
        arrays = [raw_data(own) if isinstance(own, Tensor) else own for own in leaves]
        places = [place for place, own in enumerate(arrays) if _is_floating(own)]
        # SciPy's numbers have double precision, whatever the default dtype is.
        self.values = tuple([_DOUBLE.get(type(arrays[place]), _as_is)(arrays[place]) for place in places])
        self.tensors = [leaves[place] for place in places]
        # The functions outlive the values.
        self._others = rebuild(self._others, [_VALUE if own in places else arrays[own] for own in range(len(arrays))])
        self._known = self._found(api)

    def _found(self, api: str) -> _Known:
        """Return what is known of the function."""
        known = _Known(Fallback(api, getattr(self.function, "__name__", type(self.function).__name__)))
        try:
            key = frozen((self.function, self.packing.tree, self.packing.shapes, *self._others))
        except Unseen:
            return known
        return _recent.found(key, known, lambda own: not own.fallback.is_used)  # which would not warn again

    def call(self, x: Any, *values: Any, before: tuple[Any, ...] = ()) -> Any:
        """Call the user's function with a vector and the values of further arguments, perhaps behind others."""
        args, kwargs = self._filled(values)
        return self.function(*before, self.packing.unpack(x), *args, **kwargs)

    def _filled(self, values: Sequence[Any]) -> Any:
        """Return the further arguments."""
        rest = iter(values)
        return tree_map(lambda leaf: next(rest) if leaf is _VALUE else leaf, self._others)

    def scalar(self, x: Any, *values: Any) -> Tensor:
        """Return what the function returns, a number."""
        return self._followed(x, lambda: as_scalar(self.call(x, *values)))

    def vector(self, x: Any, *values: Any, before: tuple[Any, ...] = ()) -> Tensor:
        """Return what the function returns, as a vector."""
        return self._followed(x, lambda: as_vector(self.call(x, *values, before=before), self.packing.vector.dtype))

    def _followed(self, x: Any, call: Callable[[], Tensor]) -> Tensor:
        """Return the result of a call, unless the function made Python's numbers of its unknowns."""
        looks = getattr(modes.tracer(), "looks", 0)
        result = call()
        is_lost = isinstance(x, Tensor) and x.requires_grad and not result.requires_grad and is_grad_enabled()
        if is_lost and getattr(modes.tracer(), "looks", 0) > looks:
            raise ValueError(
                f"{self._known.fallback.api}: {self._known.fallback.name} looks at its unknowns, and no unknown leads "
                "to what it returns: float(), item() and the functions of math make numbers of Python's, which have no "
                "derivative; use tapegrad's or NumPy's functions, or a method without derivatives"
            )
        return result

    @property
    def others(self) -> tuple[Any, ...]:
        """The further arguments, with arrays in place of tensors."""
        args: tuple[Any, ...] = self._filled(self.values)[0]
        return args

    def wants_gradients(self) -> bool:
        """Whether one of the further arguments requires grad."""
        return is_grad_enabled() and any(isinstance(own, Tensor) and own.requires_grad for own in self.tensors)

    def derivative(self, name: str, function: Callable[..., Any], n_unknowns: int = 1) -> Callable[..., Any]:
        """Return a function of tensors as one that is compiled: by its name, if it was compiled before."""
        known = self._known.derivatives.get(name)
        if known is None:
            known = self._known.derivatives[name] = Derivative.of(function, self._known.fallback, n_unknowns)
        return known

    def value(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for a number."""
        return self.derivative("value", self.scalar)

    def value_and_grad(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for a number and its gradient."""
        return self.derivative("value_and_grad", value_and_grad(self.scalar))

    def hessian(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for the Hessian."""
        return self.derivative("hessian", hessian(self.scalar))

    def hvp(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for the Hessian times a vector."""

        def product(x: Any, vector: Any, *values: Any) -> Any:
            return hvp(lambda x: self.scalar(x, *values), (x,), (vector,))[0]

        return self.derivative("hvp", product, 2)

    def results(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for a vector."""

        def results(x: Tensor, *values: Any) -> Tensor:
            vector = self.vector(x, *values)
            self._known.counts[_shapes(x, values)] = vector.numel()
            return vector

        return self.derivative("results", results)

    def jacobian(self) -> Callable[..., Any]:
        """Return the function that SciPy calls for the Jacobian of a vector: by rows if these are fewer."""

        def jacobian(x: Tensor, *values: Any) -> Any:
            count = self._known.counts.get(_shapes(x, values))
            if count is None:
                with no_grad():
                    count = self.vector(x, *values).numel()
            return (jacrev if count <= x.numel() else jacfwd)(self.vector)(x, *values)

        return self.derivative("jacobian", jacobian)

    def sparse(self, function: Callable[..., Tensor], dense: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
        """Return the Jacobian of a function as one that is sparse, or dense where the function cannot be traced."""
        known = self._known
        if "sparse" not in known.derivatives:
            known.derivatives["sparse"] = SparseDerivative(
                "sparse_jacobian", lambda *args: [function(*args)], argnum, "csr", is_hessian=False
            )
        jacobian = known.derivatives["sparse"]

        def call(*args: Any) -> Any:
            if not known.fallback.is_used:
                try:
                    return jacobian(*args)
                except TracingError as error:
                    known.fallback.use(error)
            return dense(*args)

        return call

    def given(self, function: Callable[..., Any], name: str = "", n_unknowns: int = 1) -> Callable[..., Any]:
        """Return a function that the user gave, as SciPy calls it; what it returns is packed if it has a name."""
        others, kwargs = self._filled(self.values)

        def call(*args: Any) -> Any:
            unknowns = [self.packing.unpack(own) for own in args[:n_unknowns]]
            out = function(*unknowns, *others, **kwargs)
            return self.packing.pack(out, name) if name else out

        return call


def _is_floating(leaf: Any) -> bool:
    return isinstance(leaf, _FLOATS) and np.asarray(leaf).dtype.kind == "f"


def _shapes(*tree: Any) -> Hashable:
    return tuple([np.shape(raw_data(own) if isinstance(own, Tensor) else own) for own in flatten(tree)])

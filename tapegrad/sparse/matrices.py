"""`sparse_jacobian` and `sparse_hessian`: functions that return matrices of `scipy.sparse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from tapegrad.dtypes import default_dtype
from tapegrad.func.gradients import grad
from tapegrad.func.level import Argnums, chosen_arguments, named_after
from tapegrad.func.trees import flatten, rebuild, structure
from tapegrad.modes import enable_grad
from tapegrad.ops.creation import as_tensor
from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.trace import trace
from tapegrad.sparse.coloring import Coloring, of_hessian, of_jacobian
from tapegrad.sparse.patterns import pattern_of
from tapegrad.sparse.sweeps import Sweeps
from tapegrad.tensor import Tensor, from_array

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian"]

#: How many programs there may be for one signature: one for each way through branches, and for other integers.
LIMIT: Final = 16
_VALUES: Final = (Tensor, np.ndarray, np.generic, float)


class _Arguments:
    """The arguments of a call: inputs of a program, and what is a part of its signature.

    Attributes
    ----------
    arrays : list of numpy.ndarray
        The inputs.
    wanted : list of int
        Those that are differentiated, by their places among the inputs.
    fixed : list of numpy.ndarray
        Integers and truth values, on which a pattern depends.
    """

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> None:
        chosen = chosen_arguments(argnums, len(args))
        self._tree, self._leaves = (args, kwargs), flatten((args, kwargs))
        counts = [len(flatten(arg)) for arg in args]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = [place for number in chosen for place in range(starts[number], starts[number + 1])]
        self._inputs: list[int] = []
        self._fixed: list[int] = []
        self.arrays: list[np.ndarray] = []
        self.fixed: list[np.ndarray] = []
        for place, leaf in enumerate(self._leaves):
            is_wanted = place in places
            if not isinstance(leaf, _VALUES) and not is_wanted:
                continue
            data = np.asarray(raw_data(leaf) if isinstance(leaf, Tensor) else leaf)
            if is_wanted and data.dtype.kind in "iub":
                data = data.astype(default_dtype())
            if data.dtype.kind == "f":
                self._inputs.append(place)
                self.arrays.append(data)
            elif is_wanted or data.dtype.kind not in "iub":
                raise TypeError(
                    f"{name}() differentiates real numbers, but got {'an argument' if is_wanted else 'a value'} of "
                    f"dtype {data.dtype}; pass real and imaginary parts"
                )
            else:
                self._fixed.append(place)
                self.fixed.append(data)
        self.wanted = [self._inputs.index(place) for place in places]
        if not self.wanted:
            raise ValueError(f"{name}() differentiates arguments with numbers, but argument {chosen[0]} has none")
        values = {*self._inputs, *self._fixed}
        self.key = (
            structure(self._tree),
            tuple(self._inputs),
            tuple([(own.shape, own.dtype) for own in (*self.arrays, *self.fixed)]),
            tuple([(leaf.__class__, leaf) for place, leaf in enumerate(self._leaves) if place not in values]),
            default_dtype(),
        )

    def with_inputs(self, tensors: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with tensors as inputs."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._inputs, tensors, strict=True):
            leaves[place] = tensor
        for place, data in zip(self._fixed, self.fixed, strict=True):
            copy = data.copy()
            copy.flags.writeable = False  # a constant of the program
            leaves[place] = from_array(copy) if isinstance(leaves[place], Tensor) else copy[()]
        args, kwargs = rebuild(self._tree, leaves)
        return args, kwargs


class _Matrix:
    """One program of a function: its matrix, and how that is computed."""

    def __init__(
        self, name: str, function: Callable[..., Sequence[Tensor]], arguments: _Arguments, is_hessian: bool
    ) -> None:
        self.fixed = [own.copy() for own in arguments.fixed]

        def call(*tensors: Tensor) -> Sequence[Tensor]:
            args, kwargs = arguments.with_inputs(tensors)
            return function(*args, **kwargs)

        arrays, wanted = arguments.arrays, arguments.wanted
        with enable_grad():
            program, captured = trace(call, arrays, [place in wanted for place in range(len(arrays))])
        if program.has_functions:
            raise NotImplementedError(
                f"{name}: the function calls a tapegrad.autograd.Function, and a pattern of its own rule is not known; "
                "use jacrev(), jacfwd() or hessian()"
            )
        self.program, self.captured = program, captured
        self.pattern = pattern_of(program, [program.inputs[place] for place in wanted])
        if is_hessian:
            self.pattern = csr_array(self.pattern + self.pattern.T)
            self.pattern.sort_indices()
        self.coloring = (of_hessian if is_hessian else of_jacobian)(self.pattern)
        arrays = [*arrays, *[np.asarray(raw_data(own)) for own in captured]]
        self.sweeps = Sweeps(program, wanted, arrays, self.coloring, self.pattern)

    def fits(self, arguments: _Arguments) -> bool:
        """Whether the integers are those of the trace."""
        return all(np.array_equal(one, two) for one, two in zip(self.fixed, arguments.fixed, strict=True))

    def elements(self, arguments: _Arguments) -> np.ndarray | None:
        """Return the matrix's elements; None if Python would have taken another way."""
        arrays = [*arguments.arrays, *[raw_data(own) for own in self.captured]]
        found = self.sweeps.run(arrays)
        return found[0] if found is not None and self.program.holds(found[1]) else None


class SparseDerivative:
    """A function that returns a sparse matrix; see `sparse_jacobian` and `sparse_hessian`."""

    def __init__(
        self, name: str, function: Callable[..., Sequence[Tensor]], argnums: Argnums, format: str, is_hessian: bool
    ) -> None:
        if format not in _FORMATS:
            raise ValueError(f"{name}: format must be one of {', '.join(_FORMATS)}, but is {format!r}")
        self._name, self._function, self._argnums, self._format = name, function, argnums, format
        self._is_hessian = is_hessian
        self._matrices: dict[Any, list[_Matrix]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the matrix at these arguments."""
        matrix, data = self._found(args, kwargs)
        pattern = matrix.pattern
        found = csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
        return found if self._format == "csr" else found.asformat(self._format)

    def pattern(self, *args: Any, **kwargs: Any) -> csr_array:
        """Return which elements may differ from 0, as a boolean matrix."""
        return self._found(args, kwargs)[0].pattern.copy()

    def colors(self, *args: Any, **kwargs: Any) -> Coloring:
        """Return the colours of columns, rows or unknowns; their `n_colors` is the number of sweeps."""
        coloring = self._found(args, kwargs)[0].coloring
        return coloring._replace(colors=coloring.colors.copy())

    def explain(self) -> str:
        """Return how the programs run."""
        return "\n\n".join(own.sweeps.program.explain() for matrices in self._matrices.values() for own in matrices)

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Matrix, np.ndarray]:
        arguments = _Arguments(self._name, args, kwargs, self._argnums)
        known = self._matrices.setdefault(arguments.key, [])
        for matrix in known:
            if matrix.fits(arguments):
                data = matrix.elements(arguments)
                if data is not None:
                    return matrix, data
        if len(known) == LIMIT:
            known.pop()  # the one that was made first
        matrix = _Matrix(self._name, self._function, arguments, self._is_hessian)
        data = matrix.elements(arguments)
        if data is None:
            raise ValueError(
                f"{self._name}: the function takes another way in each call, as Python looks at a value that depends "
                f"on more than its arguments, and a pattern belongs to a way. {matrix.program.guards[-1].where}"
            )
        known.insert(0, matrix)
        return matrix, data


_FORMATS: Final = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def sparse_jacobian(func: Callable[..., Any], argnums: Argnums = 0, *, format: str = "csr") -> SparseDerivative:
    """Return the function that computes the Jacobian of a function as a sparse matrix.

    Parameters
    ----------
    func : callable
        A function that returns a tensor, or a dict, list or tuple of tensors: the rows are the elements of all.
    argnums : int or tuple of int
        The arguments to differentiate, each of which may be nested containers of arrays: the columns are the elements
        of all.
    format : str
        Of the matrix, as SciPy names them.

    Returns
    -------
    SparseDerivative
        Called like the function. It returns a `scipy.sparse.csr_array`, or one of another format. Its methods `pattern`
        and `colors` take the same arguments; they return a boolean matrix, and the colours.

    Raises
    ------
    TracingError
        When called, if the function cannot be traced; see `tapegrad.compile`.
    ValueError
        When called, if an operation makes the pattern so dense that it does not fit.
    TypeError
        When called, if an argument has complex numbers.
    NotImplementedError
        When called, if the function calls a `tapegrad.autograd.Function`, which has a rule of its own.

    Notes
    -----
    When it is first called for a signature, the function is traced. The pattern is found from its operations; it holds
    for all values along the same way through branches, and there is one for each way. Integers and truth values belong
    to the signature. Columns, or rows, that have nothing in common get the same colour, and one sweep for each colour
    computes all elements [1]_. The sweeps are one compiled program. A function of which all elements depend on all
    unknowns has as many colours as columns or rows; then `jacrev` and `jacfwd` take less time.

    References
    ----------
    .. [1] A. H. Gebremedhin, F. Manne and A. Pothen, "What color is your Jacobian?", SIAM Rev. 47, 629 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> jacobian = tg.func.sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> jacobian(x).toarray()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]])
    >>> jacobian.colors(x).n_colors
    2
    """

    @named_after(func)
    def outputs(*args: Any, **kwargs: Any) -> list[Tensor]:
        leaves = [as_tensor(leaf) for leaf in flatten(func(*args, **kwargs))]
        for leaf in leaves:
            if not leaf.is_floating_point():
                raise TypeError(
                    f"sparse_jacobian() differentiates real numbers, but the function returned a tensor of {leaf.dtype}"
                )
        return leaves

    return SparseDerivative("sparse_jacobian", outputs, argnums, format, False)


def sparse_hessian(func: Callable[..., Any], argnums: Argnums = 0, *, format: str = "csr") -> SparseDerivative:
    """Return the function that computes the Hessian of a scalar function as a sparse matrix.

    Parameters
    ----------
    func : callable
        A function that returns a scalar.
    argnums, format
        As for `sparse_jacobian`; the rows are those of the columns.

    Returns
    -------
    SparseDerivative
        As for `sparse_jacobian`.

    Raises
    ------
    TracingError, ValueError, TypeError
        As for `sparse_jacobian`.

    Notes
    -----
    The pattern is that of the gradient's program, made symmetric. Elements are read in their row or in their column,
    which takes fewer colours: those of a star colouring [1]_. An unknown that all others meet costs one more.

    References
    ----------
    .. [1] T. F. Coleman and J. J. Moré, "Estimation of sparse Hessian matrices and graph coloring problems",
       Math. Program. 28, 243 (1984).

    Examples
    --------
    >>> import numpy as np
    >>> import tapegrad as tg
    >>> hessian = tg.func.sparse_hessian(lambda x: (x[0] * x[1:] ** 2).sum())
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> hessian(x).toarray()
    array([[0., 4., 6.],
           [4., 2., 0.],
           [6., 0., 2.]])
    >>> hessian.colors(x).n_colors
    2
    """
    gradient = grad(func, argnums)

    @named_after(func)
    def outputs(*args: Any, **kwargs: Any) -> list[Tensor]:
        return [as_tensor(leaf) for leaf in flatten(gradient(*args, **kwargs))]

    return SparseDerivative("sparse_hessian", outputs, argnums, format, True)
